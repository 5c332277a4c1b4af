"""What the setting `extender` does not guarantee is reported."""

from rescheduler.model.extender_guarantees import list_missing_guarantees


def test_only_required_extenders_need_no_warning() -> None:
    assert list(list_missing_guarantees("required")) == []
    for setting in ("optional", "none"):
        (said,) = list_missing_guarantees(setting)
        assert said.startswith(f"extender: {setting}: ")
