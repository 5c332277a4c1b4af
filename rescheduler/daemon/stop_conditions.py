"""What stops moves at this moment: the pause, `mode: off`, and the brakes that only the daemon can see."""

from collections.abc import Callable

from reberth.values.refusal import Refused
from rescheduler.daemon.resources import DaemonResources
from rescheduler.moves.lifecycle import MANUAL


class StopConditions:
    """Asked when a plan is made, when a move begins, and once more right before its eviction."""

    def __init__(self, resources: DaemonResources, find_drift: Callable[[], Refused | None]) -> None:
        self._resources = resources
        self._find_drift = find_drift

    def list_brakes(self) -> tuple[Refused, ...]:
        """Give the brakes that are on.

        With `extender: required` replacements are promised to land on their destinations. Then everything
        that would break that promise is a brake: extenders that cannot be reached, and a wrong forecast.
        """
        resources = self._resources
        unread = resources.refuse_unread()
        if resources.settings().extender != "required":
            return (unread,) if unread else ()
        return tuple(filter(None, (unread, resources.extender_health.refused, self._find_drift())))

    def stop_reason(self, policy: str = "") -> Refused | None:
        """Tell why a move of this policy must not be made now.

        A move that a person requested takes precedence over the policy's mode and the brakes. The pause takes
        precedence over it: a person has set it to stop everything.
        """
        resources = self._resources
        if resources.pause.refused or policy == MANUAL:
            return resources.pause.refused
        return resources.policy().stop_reason() or next(iter(self.list_brakes()), None)
