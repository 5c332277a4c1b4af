"""A refusal as a value: which rule refused, why, and until when."""

import msgspec


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A refusal. The rule is a constant that Events and metrics carry; the reason is for people."""

    rule: str
    reason: str
    until: float | None = None  # seconds since the epoch; None: time alone changes nothing
    key: str = ""  # what refused, if the rule alone does not say it: the name of a webhook
