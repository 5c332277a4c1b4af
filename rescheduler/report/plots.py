"""The plots of the page, as SVG: how full the nodes are, and which rules keep cores in place."""

from collections.abc import Iterator, Sequence
from html import escape

from rescheduler.report.cluster_report import BARS, HeldBack, NodeShares

_WIDTH, _HEIGHT, _FOOT, _HEAD = 400, 170, 20, 14
_STEP = _WIDTH / BARS
_BAR = _STEP * 0.36
_LONG, _ROW, _LABELS, _FIGURES = 640, 22, 150, 70
_LEGEND = '<span><span class="now">■</span> now <span class="after">■</span> after</span>'


def plot_balance(balance: NodeShares) -> str:
    """Draw two bars for each tenth; their heights are numbers of nodes."""
    title = f"{escape(balance.resource)}: {balance.share:.0%} of all is requested"
    return (
        f"<figure><figcaption><span>{title}</span>{_LEGEND}</figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">'
        f"{''.join(_list_bars(balance))}{''.join(_list_labels())}</svg></figure>"
    )


def _list_bars(balance: NodeShares) -> Iterator[str]:
    most = max(*balance.before, *balance.after, 1)
    sides = (("now", balance.before, 0.12, "end"), ("after", balance.after, 0.52, "start"))
    for name, counts, shift, anchor in sides:
        for place, count in enumerate(counts):
            high = count / most * (_HEIGHT - _FOOT - _HEAD)
            left, top = (place + shift) * _STEP, _HEIGHT - _FOOT - high
            said = f"{place * 10} to {place * 10 + 10} %, {name}: {count:,} nodes"
            yield (
                f'<rect class="{name}" x="{left:.1f}" y="{top:.1f}" width="{_BAR:.1f}" height="{high:.1f}">'
                f"<title>{said}</title></rect>"
            )
            if count:
                edge = left + _BAR if anchor == "end" else left
                yield _write(edge, top - 3, f"{count}", f' text-anchor="{anchor}"')


def _list_labels() -> Iterator[str]:
    yield f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{_HEIGHT - _FOOT}" y2="{_HEIGHT - _FOOT}"/>'
    for place in range(BARS):
        yield _write(place * _STEP, _HEIGHT - 5, f"{place * 10}%")


def plot_rules(rules: Sequence[HeldBack]) -> str:
    """Draw a bar for each rule; its length is the number of cores."""
    bars = "".join(_list_rules(rules))
    title = "cores that each rule keeps in place"
    return f'<svg viewBox="0 0 {_LONG} {len(rules) * _ROW}" role="img" aria-label="{title}">{bars}</svg>'


def _list_rules(rules: Sequence[HeldBack]) -> Iterator[str]:
    most = max((each.amounts.cores for each in rules), default=0) or 1
    for place, each in enumerate(rules):
        top, wide = place * _ROW, each.amounts.cores / most * (_LONG - _LABELS - _FIGURES)
        yield _write(0, top + 15, each.rule)
        yield f'<rect class="held" x="{_LABELS}" y="{top + 4}" width="{wide:.1f}" height="{_ROW - 8}"/>'
        yield _write(_LABELS + wide + 6, top + 15, f"{each.amounts.cores:,.1f} cores")


def _write(left: float, top: float, text: str, more: str = "") -> str:
    return f'<text x="{left:.1f}" y="{top:.1f}"{more}>{escape(text)}</text>'
