"""The report as text no wider than the terminal, and as JSON."""

from collections.abc import Iterator

import msgspec

from reberth.values.table import BELOW, GAP, align, printable, wrap_table, wrap_text
from rescheduler.report.cluster_report import Amounts, ClusterReport, NodeShares
from rescheduler.report.steps import list_steps

SHOWN_MOVES, SHOWN_RULES = 10, 12
_LONGEST_BAR = 16
_NARROWEST = 60
SCORES = (
    "broken rules",
    "pods on leaving nodes",
    "requests above the thresholds, in nodes",
    "spread of the nodes' utilisation",
)


def write_json(report: ClusterReport) -> str:
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def write_text(report: ClusterReport, *, width: int) -> str:
    return "\n".join(map(printable, _list_lines(report, max(width, _NARROWEST))))


def describe(report: ClusterReport) -> str:
    """Say in one line what the report is about."""
    leaving = f", {report.leaving:,} of them leaving" if report.leaving else ""
    nodes = f"Kubernetes {report.kubernetes}: {report.nodes:,} nodes{leaving}"
    return f"{nodes}; {describe_amounts(report.everything)}"


def describe_amounts(amounts: Amounts) -> str:
    return f"{amounts.pods:,} pods with {amounts.cores:,.1f} cores and {amounts.gibibytes:,.1f} GiB"


def show_scores(report: ClusterReport) -> Iterator[tuple[str, str, str]]:
    for name, before, after in zip(SCORES, report.score, report.score_after, strict=True):
        yield name, _show(name, before), _show(name, after)


def show_moves(report: ClusterReport) -> Iterator[tuple[str, ...]]:
    """Give the first moves, one row each."""
    for each in report.moves[:SHOWN_MOVES]:
        first = each.destinations[0].node
        yield each.pod, each.from_, first, each.policy, f"{each.worth:.0f}", each.reason


def show_repeated(report: ClusterReport) -> Iterator[tuple[str, ...]]:
    """Give the rules that refuse most, one row each."""
    for each in report.repeated[:SHOWN_RULES]:
        yield each.rule, each.policy, f"{each.pods:,}", each.example


def _show(name: str, value: float) -> str:
    if name == SCORES[3]:
        return f"{value:.1%}"
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}"


def _list_lines(report: ClusterReport, width: int) -> Iterator[str]:
    yield from wrap_text(f"Report of {report.now}. {describe(report)}.", width=width)
    yield ""
    yield "WHAT TO DO FIRST"
    for number, step in enumerate(list_steps(report), 1):
        yield from wrap_text(step, width=width, first=f"{number:>2}. ", rest=BELOW)
    yield ""
    yield from wrap_table([("ALL OF IT (less is better)", "NOW", "AFTER"), *show_scores(report)], width=width)
    for each in report.balance:
        yield ""
        yield from _draw(each)
    yield from _list_moves(report, width)
    yield from _list_held_back(report, width)
    yield from _list_repeated(report, width)


def _draw(balance: NodeShares) -> Iterator[str]:
    yield f"NODES BY REQUESTED {balance.resource.upper()} ({balance.share:.0%} of all is requested)"
    most = max(*balance.before, *balance.after, 1)
    rows = [("", "NOW", "", "AFTER", "")]
    for place, (now, then) in enumerate(zip(balance.before, balance.after, strict=True)):
        tenth = f"{place * 10}-{place * 10 + 10}%"
        rows.append((tenth, f"{now:,}", _bar(now, most), f"{then:,}", _bar(then, most)))
    yield from align(rows, right={0, 1, 3}, indent=GAP)


def _bar(count: int, most: int) -> str:
    return "#" * -(-count * _LONGEST_BAR // most)


def _list_moves(report: ClusterReport, width: int) -> Iterator[str]:
    if not report.moves:
        return
    yield ""
    more = ", or more" if report.is_cut else ""
    shown = f"; the first {SHOWN_MOVES}" if len(report.moves) > SHOWN_MOVES else ""
    yield f"MOVES THAT PAY: {len(report.moves):,}{more}{shown}"
    head = ("POD", "FROM", "TO", "POLICY", "WORTH", "REASON")
    yield from wrap_table([head, *show_moves(report)], width=width)


def _list_held_back(report: ClusterReport, width: int) -> Iterator[str]:
    if not report.held_back:
        return
    yield ""
    free = describe_amounts(report.movable)
    title = f"WHAT CANNOT MOVE: all but {free}, by the first rule that protects a pod"
    yield from wrap_text(title, width=width)
    rows = [
        (each.rule, f"{each.amounts.pods:,}", f"{each.amounts.cores:,.1f}", f"{each.meaning} {each.example}")
        for each in report.held_back[:SHOWN_RULES]
    ]
    yield from wrap_table([("RULE", "PODS", "CORES", "MEANING, AND ONE OF THEM"), *rows], width=width)


def _list_repeated(report: ClusterReport, width: int) -> Iterator[str]:
    if not report.repeated:
        return
    yield ""
    yield "WHAT WOULD MOVE, BUT IS REFUSED"
    head = ("RULE", "POLICY", "PODS", "ONE OF THEM")
    yield from wrap_table([head, *show_repeated(report)], width=width)
