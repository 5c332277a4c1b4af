"""What cannot be promised is said."""

from rescheduler.model.promises import list_promises_missing


def test_only_an_extender_that_is_required_leaves_nothing_open() -> None:
    assert list(list_promises_missing("required")) == []
    for setting in ("optional", "none"):
        (said,) = list_promises_missing(setting)
        assert said.startswith(f"extender: {setting}: ")
