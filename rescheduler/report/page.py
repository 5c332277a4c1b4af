"""The report as one HTML file without outside assets, in light or dark as the reader prefers."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from rescheduler.report.cluster_report import ClusterReport
from rescheduler.report.output import (
    SHOWN_MOVES,
    SHOWN_RULES,
    describe,
    describe_amounts,
    show_moves,
    show_repeated,
    show_scores,
)
from rescheduler.report.plots import plot_balance, plot_rules
from rescheduler.report.steps import list_steps
from rescheduler.report.style import STYLE


def write_page(report: ClusterReport) -> str:
    return "\n".join(_list_parts(report))


def _list_parts(report: ClusterReport) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Reberth: report of {escape(report.now)}</title><style>{STYLE}</style></head><body>"
    yield "<h1>What Reberth would do in this cluster</h1>"
    yield _say(f"{describe(report)}. Read at {report.now}; nothing was written.")
    yield from _list_facts(report)
    yield "<h2>What to do first</h2><ol>"
    yield from (f"<li>{escape(step)}</li>" for step in list_steps(report))
    yield "</ol><h2>How balanced the nodes are</h2>"
    yield _say("Nodes by the share of what they offer that is requested: now, and after the moves.")
    yield '<div class="plots">'
    yield from map(plot_balance, report.balance)
    yield "</div>"
    yield from _list_moves(report)
    yield from _list_held_back(report)
    yield from _list_repeated(report)
    yield "</body></html>"


def _list_facts(report: ClusterReport) -> Iterator[str]:
    yield '<div class="facts">'
    more = "+" if report.is_cut else ""
    yield _fact(f"{len(report.moves):,}{more}", "moves that pay")
    yield _fact(f"{report.movable.pods:,}", f"of {report.everything.pods:,} pods may be moved")
    for name, before, after in show_scores(report):
        if before != after:
            yield _fact(f"{before} → {after}", name)
    yield "</div>"


def _say(text: str) -> str:
    return f'<p class="soft">{escape(text)}</p>'


def _fact(figure: str, meaning: str) -> str:
    return f'<div class="fact"><b>{escape(figure)}</b><span class="soft">{escape(meaning)}</span></div>'


def _list_moves(report: ClusterReport) -> Iterator[str]:
    if not report.moves:
        return
    yield "<h2>Moves that pay</h2>"
    if len(report.moves) > SHOWN_MOVES:
        yield _say(f"The first {SHOWN_MOVES} of {len(report.moves):,}; -o json has all of them.")
    yield _table(("Pod", "From", "To", "Policy", "Worth", "Why"), show_moves(report), numbers={4})


def _list_held_back(report: ClusterReport) -> Iterator[str]:
    if not report.held_back:
        return
    yield "<h2>What cannot move</h2>"
    free = describe_amounts(report.movable)
    yield _say(f"All but {free}. Each pod counts for the first rule that protects it.")
    shown = report.held_back[:SHOWN_RULES]
    yield plot_rules(shown)
    rows = [
        (each.rule, f"{each.amounts.pods:,}", f"{each.amounts.cores:,.1f}", each.meaning, each.example)
        for each in shown
    ]
    yield _table(("Rule", "Pods", "Cores", "Meaning", "One of them"), rows, numbers={1, 2})


def _list_repeated(report: ClusterReport) -> Iterator[str]:
    if not report.repeated:
        return
    yield "<h2>What would move, but is refused</h2>"
    yield _table(("Rule", "Policy", "Pods", "One of them"), show_repeated(report), numbers={2})


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: set[int]) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        kinds = (' class="number"' if place in numbers else "" for place in range(len(row)))
        return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(row, kinds, strict=True))

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{cells(head, "th")}</tr>{body}</table></div>'
