"""From figures to the section of docs/benchmarks.md: seconds, calls, and goals."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from bench.federation.counting import Calls, count_all, count_bindings, count_forward
from bench.federation.following import Moment, Run
from bench.reading.reporting import Goal, Row, megabytes, middle, spread, table

BURST, REBALANCE, MEMORY, DECISIONS = "burst", "rebalance", "memory", "decisions"

_SECONDS = {40: (16, 40), 400: (5, 10)}
_SECONDS_TO_FINISH = {40: 15, 400: 3}
_CALLS_TO_SCHEDULE, _CALLS_TO_PRESENCE, _CALLS_TO_FINISH = 2, 5, 2
_RSS = 200
_SECONDS_TO_DECIDE, _RSS_TO_DECIDE = 10, 600
_NOT_MEASURED = "Not measured."


def describe(runs: Sequence[Run], *, conditions: str) -> str:
    """Compose the section of all runs that there are."""
    bursts, rebalances = _group(runs, BURST), _group(runs, REBALANCE)
    return f"""## The federation

{conditions}

A hub and three members: one API server each on a shared etcd, and nothing else. The federation is one
process, limited to the given number of calls a second to the hub and to each member, with bursts of one and a
half times as many. Each run has new clusters; where there were several runs, figures are medians, with the
lowest and the highest in brackets. Calls are writes, as the hub's API server counts them, without those of
the measurement and of the lease.{_describe_times(runs)}

### Many Deployments at once

{_describe_sizes(bursts, "Deployments of one replica are created at once")}; a policy propagates each of
them to two of the three members. The last column excludes reports: Events, and the status of the copies.
*Present* means that the Deployments exist in the members, *told* that each binding reports that it is fully
applied.

{describe_moments(bursts)}

{describe_calls(bursts, until="told")}

{describe_costs(bursts)}

### One WorkloadRebalancer

{_describe_sizes(rebalances, "workloads are named in one WorkloadRebalancer")}; each moves to another
cluster. *Finished* means that the WorkloadRebalancer has a `finishTime`; every binding was checked then: all
had been rescheduled. *Settled* means that the hub had nothing left to do except Events; this includes some
seconds in which it did nothing.

{describe_moments(rebalances)}

{describe_calls(rebalances, until="settled")}

### Decisions alone

Without a server, in a process of its own: generated bindings are decided one after the other, as the
scheduler decides them at its start. No two are alike; they have seven kinds of placements and five of
requests, and six in seven have replicas somewhere. Memory is the highest RSS of the process. One thread
decides: where nothing else runs, it takes as long as its CPU.

{describe_decisions(_group(runs, DECISIONS))}

### Goals

Calls to schedule one, or to rebalance one, are those on its binding. The tables above also count the status
of the WorkloadRebalancer, and the claims and Works of workloads that were finished before the last one.

{describe_goals(runs)}
"""


def _group(runs: Iterable[Run], part: str) -> list[list[Run]]:
    """Group the runs of a part by size and rate."""
    groups: dict[tuple[int, int], list[Run]] = {}
    for run in runs:
        if run.part == part:
            groups.setdefault((run.rate, run.size), []).append(run)
    return [groups[key] for key in sorted(groups)]


def _describe_times(runs: Sequence[Run]) -> str:
    """Mention it if the runs were not made in one go."""
    first, last = (pick((run.ended for run in runs if run.ended), default="") for pick in (min, max))
    return f" The runs ended between {first} and {last} UTC." if first != last else ""


def _describe_sizes(groups: Sequence[Sequence[Run]], what: str) -> str:
    sizes = sorted({runs[0].size for runs in groups})
    return f"{' or '.join(f'{size:,}' for size in sizes) or 'No'} {what}"


def describe_moments(groups: Sequence[Sequence[Run]]) -> str:
    """One line for each allowance and moment."""
    head = ("calls a second", "runs", "all are", "after", "hub calls per binding", "without reports")
    rows = (_describe_moment(runs, name) for runs in groups for name in runs[0].moments)
    return table(head, rows) if groups else _NOT_MEASURED


def _describe_moment(runs: Sequence[Run], name: str) -> Row:
    return (
        f"{runs[0].rate}",
        f"{len(runs)}",
        name,
        spread((run.moments[name].seconds for run in runs), "s"),
        spread((_each(run, name, count_all) for run in runs), ""),
        spread((_each(run, name, count_forward) for run in runs), ""),
    )


def describe_calls(groups: Sequence[Sequence[Run]], *, until: str) -> str:
    """What the hub was asked for until a moment, a binding; of the last run."""
    last = [runs[-1] for runs in groups]
    kinds = sorted({what for run in last for what in run.moments[until].calls})
    rows = (
        (f"`{what}`", *(f"{run.moments[until].calls.get(what, 0) / run.size:.2f}" for run in last))
        for what in kinds
    )
    return table(("call", *(f"{run.rate}/s" for run in last)), rows) if groups else _NOT_MEASURED


def describe_costs(groups: Sequence[Sequence[Run]]) -> str:
    rows = (
        (
            f"{runs[0].rate}",
            spread((run.cpu for run in runs), "s"),
            spread((megabytes(run.resident) for run in runs), "MB"),
        )
        for runs in groups
    )
    return table(("calls a second", "CPU", "RSS at the end"), rows) if groups else _NOT_MEASURED


def describe_decisions(groups: Sequence[Sequence[Run]]) -> str:
    rows = (
        (
            f"{runs[0].size:,}",
            f"{runs[0].rate}",
            f"{len(runs)}",
            spread((run.moments["decided"].seconds for run in runs), "s"),
            spread((run.cpu for run in runs), "s"),
            spread((megabytes(run.resident) for run in runs), "MB"),
        )
        for runs in groups
    )
    head = ("bindings", "members", "runs", "decided after", "CPU", "highest RSS")
    return table(head, rows) if groups else _NOT_MEASURED


def describe_goals(runs: Sequence[Run]) -> str:
    goals = [
        *(goal for group in _group(runs, BURST) for goal in _list_goals(group)),
        *(goal for group in _group(runs, REBALANCE) for goal in _list_goals_of_rebalances(group)),
        *(_aim_at_memory(group) for group in _group(runs, MEMORY)),
        *(goal for group in _group(runs, DECISIONS) for goal in _list_goals_of_decisions(group)),
    ]
    return table(("goal", "at most", "reached (median)", "met"), (goal.row for goal in goals))


def _list_goals(runs: Sequence[Run]) -> Iterator[Goal]:
    at = f"at {runs[0].rate}/s"
    scheduled, present = _SECONDS[runs[0].rate]
    yield Goal(f"all scheduled {at}", scheduled, _middle(runs, "scheduled", _seconds), "s")
    yield Goal(f"all present {at}", present, _middle(runs, "present", _seconds), "s")
    # Of bindings alone: the rest goes on meanwhile.
    calls = middle(_each(run, "scheduled", count_bindings) for run in runs)
    yield Goal(f"calls to schedule one {at}", _CALLS_TO_SCHEDULE, calls, "calls")
    calls = middle(_each(run, "present", count_forward) for run in runs)
    yield Goal(f"calls until it is present {at}", _CALLS_TO_PRESENCE, calls, "calls")


def _list_goals_of_rebalances(runs: Sequence[Run]) -> Iterator[Goal]:
    at = f"at {runs[0].rate}/s"
    seconds = _middle(runs, "finished", _seconds)
    yield Goal(f"all rebalanced {at}", _SECONDS_TO_FINISH[runs[0].rate], seconds, "s")
    calls = middle(_each(run, "finished", count_bindings) for run in runs)
    yield Goal(f"calls to rebalance one {at}", _CALLS_TO_FINISH, calls, "calls")


def _aim_at_memory(runs: Sequence[Run]) -> Goal:
    resident = middle(megabytes(run.resident) for run in runs)
    return Goal(f"RSS with {runs[0].size:,} bindings", _RSS, resident, "MB")


def _list_goals_of_decisions(runs: Sequence[Run]) -> Iterator[Goal]:
    what = f"{runs[0].size:,} bindings on {runs[0].rate} members"
    yield Goal(f"CPU to decide {what}", _SECONDS_TO_DECIDE, middle(run.cpu for run in runs), "s")
    resident = middle(megabytes(run.resident) for run in runs)
    yield Goal(f"highest RSS while {what} are decided", _RSS_TO_DECIDE, resident, "MB")


def _seconds(moment: Moment) -> float:
    return moment.seconds


def _middle(runs: Sequence[Run], name: str, read: Callable[[Moment], float]) -> float:
    return middle(read(run.moments[name]) for run in runs)


def _each(run: Run, name: str, count: Callable[[Calls], int]) -> float:
    """Count the calls until a moment, a binding."""
    return round(count(run.moments[name].calls) / run.size, 2)
