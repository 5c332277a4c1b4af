"""What is known beforehand of the user's scheduler: its configuration, and our extender's settings."""

from collections.abc import Callable
from pathlib import Path

from reberth import settings
from reberth.landing.advising import DEFAULTS, ExtenderSettings
from reberth.landing.profiles import API_VERSION, KubeSchedulerConfiguration, arrange
from reberth.requests import Version, read_version
from rescheduler.foreseeing import Foreseeing
from rescheduler.settings import SchedulerSettings


def foreseeing(given: SchedulerSettings) -> Callable[[Version], Foreseeing]:
    """Read the files at once. Raises SettingsError; the API server's version may come later."""
    configuration = KubeSchedulerConfiguration()
    if given.configuration:
        file = Path(given.configuration)
        configuration = settings.load(file, KubeSchedulerConfiguration, api_version=API_VERSION)
    extender = settings.load(Path(given.extender), ExtenderSettings) if given.extender else DEFAULTS

    def foresee(version: Version) -> Foreseeing:
        known = read_version(given.kubernetes) if given.kubernetes else version
        return Foreseeing(known, arrange(configuration, version=known), extender)

    return foresee
