"""Reports the progress of a move: as lines of text, and as Events on the pod and its workload."""

from collections.abc import Callable

from reberth.client.events import NORMAL, WARNING, EventRecorder
from reberth.records import ObjectReference, OpenMove, WorkloadIdentity
from rescheduler.moves.outcome import MoveReport

REPORTER = "reberth.dev/rescheduler"
_ACTION = "Move"


class MoveReporter:
    """Reports the moves of one workload."""

    def __init__(
        self,
        namespace: str,
        workload: WorkloadIdentity,
        *,
        tell: Callable[[str], None],
        recorder: EventRecorder,
    ) -> None:
        self.tell = tell
        self._recorder = recorder
        self._namespace = namespace
        self._workload = ObjectReference(
            workload.api_version, workload.kind, namespace, workload.name, workload.uid or None
        )

    def ended(self, report: MoveReport) -> None:
        """Record how the move ended: on the pod if it was not evicted, else on its workload.

        Why a pod is evicted also stands in the annotations of its eviction.
        """
        move = report.entry
        if report.refused:
            self._record(self._pod(move), self._workload, "MoveRefused", str(report))
            return
        kind = NORMAL if report.is_well else WARNING
        note = f"{move.pod} off {move.from_} ({move.reason or move.policy}): {report}"
        self._record(self._workload, self._pod(move), "MoveEnded", note, kind)

    def given_up(self, until: str) -> None:
        note = f"too many moves gained nothing: the workload is not moved until {until}"
        self._record(self._workload, None, "GivenUp", note, WARNING)

    def _pod(self, move: OpenMove) -> ObjectReference:
        return ObjectReference("v1", "Pod", self._namespace, move.pod, move.pod_uid)

    def _record(
        self,
        regarding: ObjectReference,
        related: ObjectReference | None,
        reason: str,
        note: str,
        kind: str = NORMAL,
    ) -> None:
        self._recorder.record(regarding, reason=reason, note=note, action=_ACTION, kind=kind, related=related)
