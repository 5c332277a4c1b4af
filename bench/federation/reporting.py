"""From figures to the section of docs/benchmarks.md: seconds, calls, and what was aimed at."""

from collections.abc import Iterable, Mapping, Sequence

from bench.federation.bursting import Burst, Moment
from bench.federation.counting import count_forward
from bench.reading.reporting import Goal, Row, megabytes, middle, spread, table

Bursts = Mapping[int, Sequence[Burst]]
"""By the calls a second that are allowed, one for each run."""

_SECONDS = {40: (16, 40), 400: (5, 10)}
_CALLS_TO_SCHEDULE, _CALLS_TO_PRESENCE = 2, 5
_RSS = 200
_MOMENTS = ("created", "scheduled", "present", "told")


def describe_bursts(bursts: Bursts, *, deployments: int) -> str:
    """One line for each allowance and moment."""
    head = ("calls a second", "all are", "after", "hub calls, a binding", "without reports")
    rows = (
        _describe_moment(rate, name, [getattr(run, name) for run in runs], deployments)
        for rate, runs in bursts.items()
        for name in _MOMENTS
    )
    return table(head, rows)


def _describe_moment(rate: int, name: str, moments: Sequence[Moment], deployments: int) -> Row:
    return (
        f"{rate}",
        name,
        spread((moment.seconds for moment in moments), "s"),
        spread((moment.calls.total() / deployments for moment in moments), ""),
        spread((count_forward(moment.calls) / deployments for moment in moments), ""),
    )


def describe_calls(bursts: Bursts, *, deployments: int) -> str:
    """What the hub was asked for until all was told, a binding; of the last run."""
    kinds = sorted({what for runs in bursts.values() for what in runs[-1].told.calls})
    rows = (
        (f"`{what}`", *(_each(runs[-1], what, deployments) for runs in bursts.values())) for what in kinds
    )
    return table(("call", *(f"{rate}/s" for rate in bursts)), rows)


def _each(run: Burst, what: str, deployments: int) -> str:
    return f"{run.told.calls[what] / deployments:.2f}"


def describe_costs(bursts: Bursts) -> str:
    rows = (
        (
            f"{rate}",
            spread((run.cpu for run in runs), "s"),
            spread((megabytes(run.resident) for run in runs), "MB"),
        )
        for rate, runs in bursts.items()
    )
    return table(("calls a second", "CPU", "RSS at the end"), rows)


def describe_goals(bursts: Bursts, many: Burst, *, deployments: int, bindings: int) -> str:
    goals = [
        *(goal for rate, runs in bursts.items() for goal in _list_goals(rate, runs, deployments)),
        Goal(f"RSS with {bindings:,} bindings", _RSS, megabytes(many.resident), "MB"),
    ]
    return table(("goal", "at most", "reached (median)", "met"), (goal.row for goal in goals))


def _list_goals(rate: int, runs: Sequence[Burst], deployments: int) -> Iterable[Goal]:
    scheduled, present = _SECONDS[rate]
    yield Goal(f"all scheduled at {rate}/s", scheduled, middle(run.scheduled.seconds for run in runs), "s")
    yield Goal(f"all present at {rate}/s", present, middle(run.present.seconds for run in runs), "s")
    calls = middle(count_to_schedule(run) / deployments for run in runs)
    yield Goal(f"calls to schedule one at {rate}/s", _CALLS_TO_SCHEDULE, calls, "calls")
    calls = middle(count_forward(run.present.calls) / deployments for run in runs)
    yield Goal(f"calls until it is present at {rate}/s", _CALLS_TO_PRESENCE, calls, "calls")


def count_to_schedule(run: Burst) -> int:
    """Count what is said of bindings until all are scheduled; the rest goes on meanwhile."""
    return sum(count for what, count in run.scheduled.calls.items() if "resourcebindings" in what)
