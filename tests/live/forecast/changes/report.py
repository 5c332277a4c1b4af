"""What was foretold wrongly, and how moves went: by what is said today, and by what was said before."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from reberth.records import Container
from reberth.values.refusal import Refused
from tests.live.forecast.changes.change import ChangeClass, Expected
from tests.live.forecast.changes.replacing import Replaced
from tests.live.forecast.changes.verdicts import Verdict
from tests.support.builders import Object

MOVED, LANDED, STUCK, REFUSED, WRONGLY = (
    "moved",
    "landed as foretold",
    "stuck",
    "refused",
    "refused wrongly",
)


def count_moves(found: Iterable[Replaced], verdict_of: Callable[[Replaced], Verdict]) -> Counter[str]:
    """Count what would have become of the moves. A replacement without a node, or none at all, is stuck."""
    counted = Counter[str]()
    for one in found:
        verdict = verdict_of(one)
        counted[MOVED if verdict.nodes else REFUSED] += 1
        if verdict.nodes:
            counted[LANDED] += one.node in verdict.nodes
            counted[STUCK] += _is_stuck(one)
        else:
            counted[WRONGLY] += not _is_stuck(one) and verdict.refused != "CannotForecast"
    return counted


def _is_stuck(one: Replaced) -> bool:
    return not one.is_created or (one.shape is not None and one.node is None)


def say(name: str, found: list[Replaced]) -> str:
    """Say it of a class in one line."""
    today = count_moves(found, lambda one: one.verdict)
    before = count_moves(found, lambda one: one.before)
    counts = "; before: ".join(", ".join(f"{each[key]} {key}" for key in _ORDER) for each in (today, before))
    return f"{name}: {len(found)} pods: {counts}"


_ORDER = (MOVED, LANDED, STUCK, REFUSED, WRONGLY)


def list_faults(each: ChangeClass, found: list[Replaced]) -> list[str]:
    """List what was foretold wrongly, by the answer that was stated first and by the pod that came."""
    faults = [f"{one.name}: {fault}" for one in found for fault in _compare(each.expected, one)]
    return [f"{each.name}: {fault}" for fault in faults]


def _compare(expected: Expected, one: Replaced) -> list[str]:
    if isinstance(one.foretold, Refused) or expected.refused:
        rule = one.verdict.refused
        return [] if rule == expected.refused else [f"{one.foretold}, {one.verdict}, not {expected.refused}"]
    assert one.shape is not None
    spec, came = one.foretold.template.spec, one.shape.template
    faults = (
        []
        if _shape(one.foretold.template) == _shape(came)
        else [f"foretold {_shape(one.foretold.template)}, came {_shape(came)}"]
    )
    containers: dict[str, Container] = {each.name: each for each in spec.containers or ()}
    main = containers["main"]
    cpu = (main.resources.requests or {}).get("cpu") if main.resources else None
    wrong = {
        "cpu": cpu != expected.cpu,
        "containers": tuple(containers) != expected.containers,
        "tolerations": expected.tolerates not in {None, *(each.key for each in spec.tolerations or ())},
        "priority": expected.priority not in {None, spec.priority},
        "image": expected.image not in {None, main.image},
        "overhead": (spec.overhead or {}).get("cpu") != expected.overhead_cpu,
        "affinity": bool(spec.affinity) != expected.has_affinity,
    }
    return [*faults, *(f"wrong {name}: {spec}" for name, is_wrong in wrong.items() if is_wrong)]


def _shape(template: Any) -> Object:
    """All that kube-scheduler reads of a pod, in one order."""
    spec, labels = template.spec, template.labels
    fields: Object = {name: getattr(spec, name) for name in spec.__struct_fields__}
    fields["tolerations"] = sorted(spec.tolerations or (), key=repr)
    fields["volumes"] = sorted(spec.volumes or (), key=repr)
    for name in ("containers", "init_containers"):
        fields[name] = [_plain(each) for each in fields[name] or ()]
    return {
        **{name: value or None for name, value in fields.items()},
        "labels": labels,
        "main": template.main,
    }


def _plain(container: Container) -> Object:
    requests = container.resources.requests if container.resources else None
    return {"name": container.name, "image": container.image, "requests": requests or {}}
