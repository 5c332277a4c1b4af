"""Whether kube-scheduler would see a difference between two pods, and which."""

from collections.abc import Iterator

from msgspec.structs import replace

from reberth.cluster.templates import Template
from reberth.records import PodSpec


def is_alike(made: Template, known: Template) -> bool:
    return find_difference(made, known) is None


def find_difference(made: Template, known: Template) -> str | None:
    """Name the first field in which they differ."""
    return next(_list_differences(made, known), None)


def _list_differences(made: Template, known: Template) -> Iterator[str]:
    if made.main != known.main or made.extended != known.extended:
        yield "requests"
    if made.labels != known.labels:
        yield f"label {min(key for key, _ in made.labels.items() ^ known.labels.items())}"
    first, second = _normalise(made.spec), _normalise(known.spec)
    if first != second:
        fields = PodSpec.__struct_fields__
        yield from (name for name in fields if getattr(first, name) != getattr(second, name))


def _normalise(spec: PodSpec) -> PodSpec:
    """Nothing depends on the order of these, which a StatefulSet shuffles, nor on empty values."""
    return replace(
        spec,
        volumes=tuple(sorted(spec.volumes or (), key=lambda each: each.name)),
        tolerations=tuple(sorted(spec.tolerations or (), key=repr)),
        node_selector=spec.node_selector or None,
        init_containers=spec.init_containers or None,
        overhead=spec.overhead or None,
        resources=spec.resources if spec.resources and spec.resources.requests else None,
    )
