"""Why nothing can be said of a pod's replacement, or why there would be none."""

from typing import Final

from reberth.values.refusal import Refused

CANNOT_FORECAST: Final = "CannotForecast"
CANNOT_BE_REPLACED: Final = "CannotBeReplaced"


def cannot_forecast(reason: str) -> Refused:
    """Refuse: it is not known what the next pod would be."""
    return Refused(CANNOT_FORECAST, reason)


def cannot_be_replaced(reason: str) -> Refused:
    """Refuse: the API server would not let the controller create the next pod."""
    return Refused(CANNOT_BE_REPLACED, f"the API server would refuse the replacement: {reason}")
