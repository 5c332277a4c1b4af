"""The rescheduler's settings: defaults, a whole file, and what is refused."""

import re

import pytest

from reberth.config.settings import parse
from reberth.values.errors import SettingsError
from rescheduler.settings import ExtenderAccess, ReschedulerSettings
from tests.support.repository import DOCS

HEADER = "apiVersion: reberth.dev/v1alpha1\nkind: ReschedulerSettings\n"
DOCUMENT = DOCS / "moving.md"


def read(text: str) -> ReschedulerSettings:
    return parse(f"{HEADER}{text}".encode(), ReschedulerSettings)


def test_an_empty_file_gives_the_defaults() -> None:
    assert read("") == ReschedulerSettings()
    assert read("").extender == "required"


def test_the_documented_file_holds_the_defaults() -> None:
    found = re.search(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found
    documented = parse(found[1].encode(), ReschedulerSettings)
    assert documented.extender_access.tls is not None
    assert documented.extender_access.tls.server_name == "reberth-extender.reberth-system.svc"
    assert documented.extender_access.wait == ExtenderAccess().wait
    for name in (
        "extender",
        "lease",
        "api",
        "note_life",
        "note_sweep",
        "eviction_timeout",
        "replacement_timeout",
        "min_ready",
    ):
        assert getattr(documented, name) == getattr(ReschedulerSettings(), name), name


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("extender: sometimes", "extender"),
        ("extenders: required", "extenders"),
        ("lease: {duration: 1s}", "lease"),
        ("extenderAccess: {tls: {ca: x}}", "extenderAccess.tls"),
        ("extenderAccess: {wait: 0s}", "extenderAccess.wait"),
        ("extenderAccess: {wait: 11s}", "wait must be at most 10s"),
        (
            "extenderAccess: {addresses: [localhost]}",
            "addresses must have the form host:port: invalid address 'localhost'",
        ),
        ("extenderAccess: {addresses: ['::1:8443']}", "addresses must have the form host:port"),
        ("noteLife: 0s", "noteLife"),
        ("noteSweep: 0s", "noteSweep"),
        ("evictionTimeout: 3", "evictionTimeout"),
        ("evictionTimeout: 59s", "evictionTimeout must be at least 60s"),
        ("replacementTimeout: 0s", "replacementTimeout"),
        ("minReady: -1s", "minReady"),
        ("drift: {least: 2}", "drift.least"),
        ("cycle: {interval: often}", "cycle.interval"),
    ],
)
def test_an_invalid_field_is_named(text: str, field: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(field)):
        read(text)
