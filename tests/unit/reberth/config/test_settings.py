import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from reberth.config.settings import Section, load, parse
from reberth.values.duration import Duration
from reberth.values.errors import ConfigurationError, FieldFault, SettingsError

HEADER = "apiVersion: reberth.dev/v1alpha1\nkind: DemoSettings\n"


class Inner(Section, frozen=True):
    under_limit: int = 0


class DemoSettings(Section, frozen=True):
    interval: Duration
    mode: Literal["off", "on"] = "on"
    inner: Inner = Inner()


def refusal(content: str) -> str:
    with pytest.raises(SettingsError) as caught:
        parse(content.encode(), DemoSettings, source="demo.yaml")
    return str(caught.value)


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Root may read everything; nobody may not."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield
    if root:
        os.seteuid(0)


def test_a_file_becomes_a_frozen_struct_with_defaults(tmp_path: Path) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(HEADER + "interval: 1m30s\nmode: off\ninner: {underLimit: 3}\n")
    assert load(file, DemoSettings) == DemoSettings(
        interval=Duration(90), mode="off", inner=Inner(under_limit=3)
    )


def test_the_header_is_the_loaders_and_no_field() -> None:
    settings = parse(f"interval: 1s\n{HEADER}".encode(), DemoSettings)
    assert settings == DemoSettings(interval=Duration(1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("- a", "line 1: expected a mapping, found a list of length 1"),
        ("interval: 1s", "apiVersion (line 1): is missing, expected reberth.dev/v1alpha1; kind (line 1): is"),
        ("apiVersion: v1\nkind: X\nzzz: 1", "apiVersion (line 1): expected reberth.dev/v1alpha1, found"),
        (HEADER.replace("Demo", "Dmo"), 'kind (line 2): expected DemoSettings, found "DmoSettings", did'),
        (HEADER, "interval (line 1): is missing, expected a duration such as 30s"),
        (HEADER + "interval: 1s\ninnner: {}", "innner (line 4): unknown field, did you mean inner?"),
        (HEADER + "interval: 1s\ninterval: 2s", "interval (line 4): is a duplicate, first in line 3"),
    ],
)
def test_a_refusal_names_the_file_and_the_field(content: str, message: str) -> None:
    assert refusal(content).startswith(f"demo.yaml: {message}")


def test_all_faults_come_in_one_line_by_their_lines() -> None:
    message = refusal(HEADER + "mode: of\ninner: {a: 1}\ninterval: x\ninner: {a: 1}\n")
    places = [part.split("):")[0] for part in message.removeprefix("demo.yaml: ").split("; ")]
    assert places == ["mode (line 3", "interval (line 5", "inner (line 6", "inner.a (line 6"]
    assert "\n" not in message


def test_a_file_of_another_kind_is_refused_by_its_kind_alone() -> None:
    assert "zzz" not in refusal("apiVersion: reberth.dev/v1alpha1\nkind: OtherSettings\nzzz: 1")


def test_more_faults_than_anyone_reads_are_counted() -> None:
    many = "".join(f"x{number}: 1\n" for number in range(30))
    with pytest.raises(SettingsError) as caught:
        parse((HEADER + "interval: 1s\n" + many).encode(), DemoSettings)
    assert len(caught.value.faults) == 30
    assert str(caught.value).endswith("x19 (line 23): unknown field; and 10 more")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.yaml", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("large.yaml", "is larger than 1048576 bytes"),
    ],
)
def test_an_unreadable_file_is_refused_with_the_reason(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "large.yaml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(SettingsError) as caught:
        load(tmp_path / name, DemoSettings)
    assert str(caught.value) == f"{tmp_path / name}: {reason}"


@pytest.mark.usefixtures("unprivileged")
def test_a_forbidden_file_is_refused_with_permission_denied() -> None:
    with pytest.raises(SettingsError, match="cannot be read: Permission denied"):
        load(Path("/etc/shadow"), DemoSettings)


def test_a_settings_error_is_a_fault_of_the_configuration() -> None:
    error = SettingsError("a.yaml", [FieldFault("is empty")])
    assert isinstance(error, ConfigurationError)
    assert error.source == "a.yaml"
    assert error.faults == (FieldFault("is empty"),)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (FieldFault("is bad"), "is bad"),
        (FieldFault("is bad", line=3), "line 3: is bad"),
        (FieldFault("is bad", "a.b"), "a.b: is bad"),
        (FieldFault("is bad", "a.b", 3), "a.b (line 3): is bad"),
    ],
)
def test_a_fault_prints_the_file_line_and_field_it_has(fault: FieldFault, text: str) -> None:
    assert str(fault) == text
