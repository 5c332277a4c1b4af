import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.values.duration import Duration, Percentage, PositiveDuration, TextValue, convert


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0.0),
        ("30s", 30.0),
        ("250ms", 0.25),
        ("1h30m", 5400.0),
        ("1h2m3s4ms", 3723.004),
        ("1.5h", 5400.0),
        ("90m", 5400.0),
        ("5m5ms", 300.005),
        ("87600h", 315_360_000.0),
    ],
)
def test_a_duration_is_read_as_seconds(text: str, seconds: float) -> None:
    assert Duration.from_text(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "s",
        "-1s",
        "1s1h",
        "5s5s",
        "1h 1m",
        "1e3s",
        "1d",
        ".5s",
        "\u0661s",
        "30s\n",
        "87601h",
        "9" * 5000 + "h",
    ],
)
def test_an_invalid_duration_is_refused(text: str) -> None:
    assert Duration.from_text(text) is None


@pytest.mark.parametrize(("text", "share"), [("0%", 0.0), ("10%", 0.1), ("33.3%", 0.333), ("100%", 1.0)])
def test_a_percentage_is_read_as_a_share(text: str, share: float) -> None:
    assert Percentage.from_text(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "10", "%", "100.1%", "-1%", "10 %", "1e1%", "10%%"])
def test_an_invalid_percentage_is_refused(text: str) -> None:
    assert Percentage.from_text(text) is None


@given(st.integers(0, 87_599), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_every_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int, millis: int) -> None:
    read = Duration.from_text(f"{hours}h{minutes}m{seconds}s{millis}ms")
    assert read == pytest.approx(hours * 3600 + minutes * 60 + seconds + millis / 1000)


@given(st.text())
def test_reading_never_fails(text: str) -> None:
    assert isinstance(Duration.from_text(text), Duration | None)
    assert isinstance(Percentage.from_text(text), Percentage | None)


def test_a_measure_converts_to_its_own_type() -> None:
    read = convert("10s", Duration)
    assert isinstance(read, Duration)
    assert read == 10.0


@pytest.mark.parametrize(("kind", "value"), [(Duration, "soon"), (Duration, 30), (Percentage, None)])
def test_the_error_names_the_expected_format(kind: type[TextValue], value: object) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"expected {kind.expected}"):
        convert(value, kind)


def test_a_measure_must_know_its_text() -> None:
    with pytest.raises(NotImplementedError):
        TextValue.from_text("1")


@pytest.mark.parametrize(
    ("text", "seconds"), [("1ms", 0.001), ("2h", 7200.0), ("0s", None), ("0h0m", None), ("", None)]
)
def test_a_span_takes_its_time(text: str, seconds: float | None) -> None:
    assert PositiveDuration.from_text(text) == seconds
