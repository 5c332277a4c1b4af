"""The next pod of a controller: its template, through today's admission, as kube-scheduler will get it.

What comes out is the same for all pods of a controller and a revision, and nearly always it is what the
newest of them shows: then it shares their template, and every answer about that. An answer is kept until
something that it depends on changes.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from reberth.cluster.kinds import POD
from reberth.cluster.pods.interning import PodOwnFields
from reberth.cluster.rows import PodRow
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.templates import Template
from reberth.forecast.replacement.assembly import POD_NAME, Assembled, Question, assemble
from reberth.forecast.replacement.origin import Copied, describe, find_origin
from reberth.forecast.replacement.refusals import cannot_forecast
from reberth.forecast.replacement.siblings import Sibling, find_sibling, has_one_size
from reberth.values.quantity import QuantityError
from reberth.values.refusal import Refused


class NextPod(NamedTuple):
    """The pod that would be created: its template, its claims, and what was learnt of webhooks."""

    template: Template
    claims: tuple[str, ...] | None = None
    """None: those of the pod that it replaces."""
    learnt: tuple[str, ...] = ()
    limits: Mapping[str, int] | None = None
    """The sums of its limits in nanos, if they are known."""

    def own_fields(self, row: PodRow) -> PodOwnFields:
        """Give what the replacement of this pod does not share with its siblings."""
        if self.claims is None:
            return row.own
        return row.own._replace(claims=tuple(each.replace(POD_NAME, row.name) for each in self.claims))


class _Kept(NamedTuple):
    """An answer, and what it depends on. It must not keep the pod's template alive under which it is kept."""

    inputs: tuple[Any, ...]
    sibling: "ref[Template]"
    answer: Assembled | Refused


_MOST_REVISIONS = 2
"""The pods of one template are created again in the current revision, or in the newest."""
_answers: WeakKeyDictionary[Template, dict[str, _Kept]] = WeakKeyDictionary()
_found: WeakKeyDictionary[Snapshot, dict[Template, NextPod | Refused]] = WeakKeyDictionary()


def find_next(snapshot: Snapshot, row: PodRow) -> NextPod | Refused:
    """Find the pod that would be created in the place of this one.

    It is found once for all pods of a template; of a StatefulSet the ordinal decides, too.
    """
    template = row.template
    if template.controller is None or template.controller.kind == "StatefulSet":
        return _find(snapshot, row)
    found = _found.setdefault(snapshot, {})
    if template not in found:
        found[template] = _find(snapshot, row)
    return found[template]


def _find(snapshot: Snapshot, row: PodRow) -> NextPod | Refused:
    origin = find_origin(snapshot, row)
    if isinstance(origin, Refused):
        return origin
    if isinstance(origin, Copied):
        return NextPod(row.template)
    sibling = find_sibling(snapshot, row, origin.revision if origin else "")
    if origin is None:
        return _find_unread(snapshot, row, sibling)
    if origin.is_custom:
        sibling = _trust(snapshot, row, sibling)
    question = Question(snapshot, row.template, origin, sibling)
    answer = _remember(question)
    return answer if isinstance(answer, Refused) else _name(answer, question)


def _name(found: Assembled, question: Question) -> NextPod:
    if found.made is not None:
        return NextPod(found.made, found.claims, found.learnt, found.limits)
    shared = question.sibling.template if found.is_siblings else question.template
    return NextPod(shared, None, found.learnt, found.limits)


def _remember(question: Question) -> Assembled | Refused:
    known, revision = _answers.setdefault(question.template, {}), question.origin.revision
    kept, inputs = known.get(revision), question.inputs
    if kept is not None and kept.sibling() is question.sibling.template and kept.inputs == inputs:
        return kept.answer
    answer = _answer(question)
    known.pop(revision, None)
    if len(known) >= _MOST_REVISIONS:
        known.pop(next(iter(known)))
    known[revision] = _Kept(inputs, ref(question.sibling.template), answer)
    return answer


def _answer(question: Question) -> Assembled | Refused:
    try:
        return assemble(question)
    except QuantityError as error:
        return cannot_forecast(f"an amount cannot be read: {error}")


def _find_unread(snapshot: Snapshot, row: PodRow, sibling: Sibling) -> NextPod | Refused:
    """Of a kind whose template is not read, a pod that is as it was created shows the next one.

    Without one the pod shows it itself: such kinds update images and labels in place. But if the pods of its
    controller differ in what they request, one of them may have been resized.
    """
    if sibling.is_whole:
        return NextPod(sibling.template)
    controller = row.template.controller
    if controller is None or _is_of_one_size(snapshot, row):
        return NextPod(row.template)
    return cannot_forecast(
        f"the template of {describe(controller)} is not read, none of its pods is as it was created, "
        "and they differ in their requests"
    )


def _trust(snapshot: Snapshot, row: PodRow, sibling: Sibling) -> Sibling:
    """Let a changed pod show what was added to it, unless one like it may have been resized by itself.

    Kinds of other projects update images and labels in place.
    """
    is_trusted = sibling.is_changed and _is_of_one_size(snapshot, row)
    return sibling._replace(is_changed=False) if is_trusted else sibling


def _is_of_one_size(snapshot: Snapshot, row: PodRow) -> bool:
    controller = row.template.controller
    return controller is not None and has_one_size(snapshot.of(POD).part(row.namespace), controller.uid)
