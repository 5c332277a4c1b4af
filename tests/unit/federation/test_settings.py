import re

import pytest

from federation.settings import FederationSettings
from reberth.config.settings import parse
from reberth.values.errors import SettingsError
from tests.support.repository import DOCS

DOCUMENT = DOCS / "federation-running.md"


def test_the_documented_settings_are_the_defaults() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert parse(example.encode(), FederationSettings) == FederationSettings()


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("controllers: {detectors: false}", "controllers.detectors"),
        ("works: {workers: 0}", "works.workers"),
        ("members: {probeEvery: soon}", "members.probeEvery"),
        ("scheduler: {lookAgain: 0s}", "scheduler.lookAgain"),
        ("failback: {lookAgain: 0s}", "failback.lookAgain"),
        ("applicationFailover: {lookAgain: 0s}", "applicationFailover.lookAgain"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_field(line: str, field: str) -> None:
    text = f"apiVersion: reberth.dev/v1alpha1\nkind: FederationSettings\n{line}\n"
    with pytest.raises(SettingsError) as error:
        parse(text.encode(), FederationSettings)
    assert error.value.faults[0].field == field
