"""Entries of replacingKinds: a group or an apiVersion, and a kind."""

import pytest

from reberth.config.settings import parse
from reberth.records import WorkloadIdentity
from reberth.values.errors import SettingsError
from rescheduler.model.replacing_kinds import ControllerKind, kind_of, parse_kind
from rescheduler.planning.policy_file import ReschedulerPolicy

FILE = """\
apiVersion: reberth.dev/v1alpha1
kind: ReschedulerPolicy
protections:
  replacingKinds: [apps.kruise.io/CloneSet, CloneSet]
"""


@pytest.mark.parametrize(
    ("text", "group", "kind"),
    [
        ("apps.kruise.io/CloneSet", "apps.kruise.io", "CloneSet"),
        ("apps.kruise.io/v1beta1/StatefulSet", "apps.kruise.io", "StatefulSet"),
        ("apps/v1/DaemonSet", "apps", "DaemonSet"),
        ("v1/Pod", "", "Pod"),
        ("v2alpha1/Pod", "", "Pod"),
        ("v0/Pod", "v0", "Pod"),
    ],
)
def test_an_entry_is_a_group_or_an_api_version_and_a_kind(text: str, group: str, kind: str) -> None:
    assert parse_kind(text) == ControllerKind(group, kind)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "CloneSet",
        "/CloneSet",
        "apps.kruise.io/",
        "apps.kruise.io/cloneset",
        "apps.kruise.io/*",
        "apps.kruise.io/stable/CloneSet",
        "apps.kruise.io/v1/x/CloneSet",
        "Apps.kruise.io/CloneSet",
        "apps..io/CloneSet",
        "apps.kruise.io/CloneSet ",
        "apps.kruise.io/CloneSet\n",
        f"apps.kruise.io/C{'x' * 63}",
    ],
)
def test_anything_else_is_refused_with_the_name_of_the_field(text: str) -> None:
    with pytest.raises(ValueError, match="^replacingKinds: .* neither group/Kind nor apiVersion/Kind"):
        parse_kind(text)


def test_a_policy_file_with_an_invalid_entry_is_refused_with_its_line() -> None:
    with pytest.raises(SettingsError) as caught:
        parse(FILE.encode(), ReschedulerPolicy, source="policy.yaml")
    assert "replacingKinds: 'CloneSet' is neither group/Kind nor apiVersion/Kind" in str(caught.value)
    assert "protections" in str(caught.value)


@pytest.mark.parametrize("api_version", ["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"])
def test_the_kind_of_a_controller_does_not_depend_on_its_version(api_version: str) -> None:
    found = kind_of(WorkloadIdentity(api_version, "CloneSet", "web"))
    assert found == parse_kind("apps.kruise.io/CloneSet")


@pytest.mark.parametrize("entry", ["apps.kruise.io/CloneSet", "v1/Pod"])
def test_a_kind_is_written_as_the_entry_that_names_it(entry: str) -> None:
    assert str(parse_kind(entry)) == entry
