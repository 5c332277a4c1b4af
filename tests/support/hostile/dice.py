"""What hostile objects of all kinds are made of, drawn by a seed."""

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from reberth.cluster.pods.interning import KEPT_ANNOTATIONS
from tests.support.builders import Object
from tests.support.hostile.values import KEYS, LABELS, MEANT, TEXTS


class HostileDice:
    """Draws values; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._drawn = 0

    def annotations(self) -> dict[str, str]:
        keys = self.random.sample(sorted(KEPT_ANNOTATIONS), self.random.randrange(3))
        odd = {key: self.text() for key in [*keys, f"junk-{self.random.randrange(10)}"]}
        key = self.one(tuple(MEANT))
        return {**odd, key: self.one(MEANT[key])}

    def selector(self) -> Object | None:
        if self.random.random() < 0.75:
            selector: Object | None = self.one((None, {}, {"matchLabels": {"app": "web"}}))
            return selector
        values = self.random.choices(LABELS, k=self.pick((1, 3, 200)))
        listed = {"key": self.pick(KEYS), "operator": self.pick(("In", "NotIn")), "values": values}
        exists = {"key": self.pick(KEYS), "operator": self.pick(("Exists", "DoesNotExist"))}
        return {"matchExpressions": [listed, exists]}

    def requirement(self) -> Object:
        operator = self.one(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        values = None if operator in {"Exists", "DoesNotExist"} else [self.one(LABELS)]
        return {"key": self.one(KEYS), "operator": operator, "values": values}

    def pod_term(self) -> Object:
        return {
            "topologyKey": self.one(KEYS[:2]),
            "labelSelector": self.selector(),
            "namespaces": self.one((None, [], ["shop"], ["nope"])),
            "namespaceSelector": self.one((None, {}, self.selector())),
            "matchLabelKeys": self.one((None, ["pod-template-hash"], ["nope"])),
        }

    def name(self, prefix: str) -> str:
        return f"{prefix}-{self.next_number()}"

    def next_number(self) -> int:
        self._drawn += 1
        return self._drawn

    def text(self) -> str:
        text: str = self.one(TEXTS)
        return text

    def one(self, choices: Sequence[Any]) -> Any:
        return copy.deepcopy(self.random.choice(choices))

    def pick(self, choices: Sequence[Any]) -> Any:
        """Draw one that is not changed afterwards; three times as fast as `random.choice`."""
        return choices[int(self.random.random() * len(choices))]

    def some(self, choices: Sequence[Any]) -> Sequence[Any]:
        return self.random.sample(choices, self.random.randint(1, 4))
