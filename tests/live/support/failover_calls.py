"""What a failover costs and when it comes, by the audit log of the hub."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from localcluster.audit_log import Call
from reberth.values.timestamp import parse_time

AGENT = "reberth"
BODIES = (
    {
        "group": "work.karmada.io",
        "resources": ["works", "works/status", "resourcebindings"],
    },
)


class FailoverCalls(NamedTuple):
    """One failover of a workload: how late it began, and the calls that it took."""

    late: float
    """Seconds from when it was due until the API server had the write that begins it."""
    to_new_work: Counter[str]
    """Calls from that write until the Work of the new cluster was answered, both with them."""
    whole: Counter[str]
    """All calls about the workload from the first that told of the failure on."""

    @property
    def binding_calls(self) -> int:
        return sum(count for what, count in self.to_new_work.items() if "resourcebindings" in what)


def read_failovers(
    calls: Iterable[Call], names: Iterable[str], *, seconds: int
) -> dict[str, FailoverCalls | None]:
    """Return the failover of each workload, in which it fails once; None if there was none."""
    by_name: dict[str, list[Call]] = {name: [] for name in names}
    for call in calls:
        name = _find_workload(call)
        if name in by_name and call.agent.startswith(AGENT) and call.verb in {"create", "patch", "delete"}:
            by_name[name].append(call)
    return {name: _read(found, seconds) for name, found in by_name.items()}


def _find_workload(call: Call) -> str:
    """Deployments, bindings, Works and Events are named after it, or tell of an object that is."""
    named = call.name or call.body.get("metadata", {}).get("name", "")
    if call.resource == "events":
        named = call.body.get("regarding", {}).get("name", "")
    return "-".join(named.split("-")[:2])


def _read(calls: Sequence[Call], seconds: int) -> FailoverCalls | None:
    fails = next((each for each in calls if _tells_failure(each)), None)
    begins = next((each for each in calls if _begins(each)), None)
    if fails is None or begins is None:
        return None
    new = next((each for each in calls if each.received >= begins.received and _creates_work(each)), None)
    if new is None or new.answered is None:
        return None
    since = max(parse_time(each["lastTransitionTime"]) for each in _conditions(fails) if _is_failing(each))
    until_new = [each for each in calls if begins.received <= each.received <= new.answered]
    whole = [each for each in calls if each.received >= fails.received]
    return FailoverCalls(begins.received - since - seconds, _count(until_new), _count(whole))


def _count(calls: Iterable[Call]) -> Counter[str]:
    return Counter(f"{each.verb} {each.resource}" for each in calls)


def _conditions(call: Call) -> list[dict[str, str]]:
    return list(call.body.get("status", {}).get("conditions") or ())


def _is_failing(condition: dict[str, str]) -> bool:
    return (condition["type"], condition["status"]) == ("Failing", "True")


def _tells_failure(call: Call) -> bool:
    return call.resource == "works/status" and any(map(_is_failing, _conditions(call)))


def _begins(call: Call) -> bool:
    spec = call.body.get("spec", {})
    return call.resource == "resourcebindings" and bool(spec.get("activeEvictionHistory"))


def _creates_work(call: Call) -> bool:
    return (call.verb, call.resource, call.code) == ("create", "works", 201)


def describe(found: Iterable[FailoverCalls]) -> str:
    """One line for each kind of call: how many a failover took, in the mean and at most."""
    found = list(found)
    kinds = sorted({kind for each in found for kind in each.whole})
    lines = [
        f"  {kind}: {sum(each.whole[kind] for each in found) / len(found):.2f}, at most "
        f"{max(each.whole[kind] for each in found)}"
        for kind in kinds
    ]
    total = sum(sum(each.whole.values()) for each in found) / len(found)
    until_new = Counter(sum(each.to_new_work.values()) for each in found)
    of_binding = Counter(each.binding_calls for each in found)
    lines.append(f"  all: {total:.2f}")
    lines.append(f"  until the new Work: {_list(until_new)}; of them about the binding: {_list(of_binding)}")
    return "\n".join(lines)


def _list(counts: Counter[int]) -> str:
    return ", ".join(f"{calls} calls for {count}" for calls, count in sorted(counts.items()))
