"""Events of steps: told to all whom they concern, and not even made up where many wait."""

import pytest

from federation.hub.hub import refer_to
from federation.hub.telemetry.step_events import SPACE_CREATED, tell_step
from federation.objects import resources
from reberth.records import ObjectMeta
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import WEB

pytestmark = pytest.mark.looptime


class Word:
    """Counts how often it is written."""

    written = 0

    def __str__(self) -> str:
        self.written += 1
        return "karmada-es-m1"


@pytest.mark.parametrize(("takes_minor", "written"), [(True, 1), (False, 0)])
async def test_a_note_is_made_up_once_and_only_if_it_is_recorded(*, takes_minor: bool, written: int) -> None:
    hub, word = FakeHub(resources.CLUSTERS), Word()
    hub.takes_minor = takes_minor
    one = refer_to(WEB, ObjectMeta("web", uid="u"))
    tell_step(hub.hub, SPACE_CREATED, one, one, namespace=word)
    assert word.written == written
    assert hub.events == [("CreateExecutionSpaceSucceed", "Created namespace karmada-es-m1.")] * 2 * written
