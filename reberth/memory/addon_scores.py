"""The scores that add-ons give to nodes: which of them count, how much, and their weighted mean.

A source writes named scores from -100 to 100 for a node into its own object, valid until a given time or
without limit. A missing or expired score is 0, and so is one that is valid for longer than the settings
allow. A score that is not a number in that range never counts. Of two objects of one source for the same
node, the one that is valid for longer counts. A weight from -10 to 10
determines how much a score counts; a negative weight prefers nodes with low scores. A node's total is the
weighted mean of its scores, so it also lies between -100 and 100.

The settings list the scores and their weights, and the range within which a pod may choose other weights by
an annotation such as "load/cpu=3, power/green=-2".
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from reberth.records import NodePlacementScore, PlacementScore
from reberth.values.duration import PositiveDuration
from reberth.values.refusal import Refused
from reberth.values.text_limits import LONGEST_TEXT
from reberth.values.timestamp import parse_time

ANNOTATION = "reberth.dev/score-weights"
MOST_SCORE = 100
MOST_GRADE = 10

NOT_A_NUMBER = Refused("NotANumber", "the score is not a number")
OUT_OF_RANGE = Refused("OutOfRange", "the score is not between -100 and 100")
BAD_VALIDITY = Refused("BadValidity", "validUntil is not a time")
EXPIRED = Refused("Expired", "the score has expired")
VALID_FOR_TOO_LONG = Refused("ValidForTooLong", "the score is valid for longer than the settings allow")
MISSING = Refused("Missing", "no add-on has written this score")

_BAD_WEIGHTS = "BadScoreWeights"
UNREADABLE_CHOICE = Refused(_BAD_WEIGHTS, "the annotation is not of the form source/name=weight, ...")
UNKNOWN_CHOICE = Refused(_BAD_WEIGHTS, "the annotation names a score that the settings do not")
REPEATED_CHOICE = Refused(_BAD_WEIGHTS, "the annotation names a score twice")
LONG_CHOICE = Refused(_BAD_WEIGHTS, f"the annotation is longer than {LONGEST_TEXT} characters")
FORBIDDEN_CHOICE = Refused(_BAD_WEIGHTS, "the annotation gives a weight that the settings do not allow")

_CHOICE = re.compile(r"\s*([^/=,\s]+)/([^=,\s]+)=(-?[0-9]{1,3})\s*")

# The source and name of a score.
ScoreKey = tuple[str, str]
Weights = dict[ScoreKey, int]
_Weight = Annotated[int, msgspec.Meta(ge=-10, le=10)]
_Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Grades = npt.NDArray[np.uint8]

# The number of different weights whose grades are kept; pods rarely choose their own.
_MOST_GRADED = 16


class WeightedScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A score that counts by its weight, unless a pod chooses a weight from `least` to `most`."""

    source: str
    name: str
    weight: _Weight = 1
    least: _Weight | None = None
    most: _Weight | None = None

    def __post_init__(self) -> None:
        if not self.allows(self.weight):
            raise ValueError("weight must lie between least and most")

    def allows(self, weight: int) -> bool:
        least = self.weight if self.least is None else self.least
        most = self.weight if self.most is None else self.most
        return least <= weight <= most


class ScoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which scores count, and how much."""

    scores: tuple[WeightedScore, ...] = ()
    longest_validity: PositiveDuration | None = None
    """A score counts only if it expires within this time; null: also one that never expires."""

    def __post_init__(self) -> None:
        if len(self.table()) < len(self.scores):
            raise ValueError("scores must not name the same source and name twice")

    def table(self) -> dict[ScoreKey, WeightedScore]:
        return {(score.source, score.name): score for score in self.scores}


class WeightChoice(NamedTuple):
    """The weights that apply to a pod, and why those of its annotation are refused."""

    weights: Weights
    refused: Refused | None = None


def choose_weights(annotation: str | None, settings: ScoreSettings) -> WeightChoice:
    """Apply the weights of the annotation; if any of them is invalid, none of them applies."""
    table = settings.table()
    weights = {coordinate: score.weight for coordinate, score in table.items()}
    if not annotation:
        return WeightChoice(weights)
    chosen = _read_choice(annotation)
    if isinstance(chosen, Refused):
        return WeightChoice(weights, chosen)
    if not chosen.keys() <= table.keys():
        return WeightChoice(weights, UNKNOWN_CHOICE)
    if not all(table[coordinate].allows(weight) for coordinate, weight in chosen.items()):
        return WeightChoice(weights, FORBIDDEN_CHOICE)
    return WeightChoice(weights | chosen)


class ValidScore(NamedTuple):
    """A score that counts until a given time; the one that lasts longer is the greater one."""

    valid_until: float
    value: float


def read_score(score: PlacementScore, valid_until: str | None) -> ValidScore | Refused:
    """Validate one score of an object."""
    value = score.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NOT_A_NUMBER
    if not -MOST_SCORE <= value <= MOST_SCORE:
        return OUT_OF_RANGE
    try:
        return ValidScore(math.inf if valid_until is None else parse_time(valid_until), float(value))
    except ValueError:
        return BAD_VALIDITY


class _Graded:
    """The grades of all rows for certain weights, valid for a period except for rows that change."""

    def __init__(self, grades: Grades, since: float, until: float) -> None:
        self.grades = grades
        self.since = since
        self.until = until
        self.changed: set[int] = set()


class ScoreTable:
    """The scores that the settings list, for many nodes at once.

    A node's scores are kept by its name and are in the table while the node has a row. The last row, at -1,
    is for nodes that are not cached.
    """

    def __init__(self, settings: ScoreSettings) -> None:
        self._longest = settings.longest_validity or math.inf
        self._coordinates = {coordinate: column for column, coordinate in enumerate(settings.table())}
        self._objects: dict[str, NodePlacementScore] = {}
        self._names: dict[str, set[str]] = {}
        self._rows: dict[str, int] = {}
        self._values: _Floats = np.zeros((1, len(self._coordinates)))
        self._valid_until: _Floats = np.full(self._values.shape, -np.inf)
        self._graded: dict[tuple[tuple[ScoreKey, int], ...], _Graded] = {}

    def put(self, score: NodePlacementScore) -> None:
        self.drop(score.metadata.name)
        self._objects[score.metadata.name] = score
        self._names.setdefault(score.spec.node_name, set()).add(score.metadata.name)
        self._write(score.spec.node_name)

    def drop(self, name: str) -> None:
        score = self._objects.pop(name, None)
        if score is None:
            return
        node = score.spec.node_name
        self._names[node].discard(name)
        self._write(node)
        if not self._names[node]:
            del self._names[node]

    def seat(self, node: str, row: int) -> None:
        """Assign a row to a node."""
        self._grow(row + 2)
        self._rows[node] = row
        self._write(node)

    def seat_first(self, rows: Mapping[str, int]) -> None:
        """Assign rows to nodes, before any score is added."""
        self._grow(len(rows) + 1)
        self._rows.update(rows)

    def unseat(self, node: str) -> None:
        row = self._rows.pop(node)
        self._values[row], self._valid_until[row] = 0.0, -np.inf
        self._note_change(row)

    def grade(self, weights: Weights, now: float) -> Grades:
        """Give the grades of the nodes in all rows, from 0 to 10. The array is shared: do not change it.

        Most pods have the same weights: only rows that changed since the last call are graded again.
        """
        key = tuple(weights.items())
        known = self._graded.get(key)
        if known is None or not known.since <= now < known.until:
            if len(self._graded) >= _MOST_GRADED:
                self._graded.clear()
            known = self._graded[key] = self._grade_all(weights, now)
        elif known.changed:
            self._grade_changed(known, weights, now)
        return known.grades

    def combine(self, weights: Weights, rows: Rows, now: float) -> _Floats:
        """Give the total of the nodes in these rows, from -100 to 100."""
        factors = np.array([weights.get(coordinate, 0) for coordinate in self._coordinates], dtype=np.float64)
        ends = self._valid_until.take(rows, axis=0)
        is_valid = (ends > now) & (ends <= now + self._longest)
        valid = np.where(is_valid, self._values.take(rows, axis=0), 0.0)
        # Divided last: the sum of whole numbers is exact, so equal totals are equal to the last bit.
        worth: _Floats = (valid @ factors) / max(1.0, np.abs(factors).sum())
        return worth

    def explain(self, node: str, now: float) -> dict[ScoreKey, float | Refused]:
        """Give the scores of a node that count, and the reasons why others do not."""
        return {coordinate: self._judge(node, coordinate, now) for coordinate in self._coordinates}

    def next_expiry(self, now: float) -> float | None:
        """Give the time when the next score expires."""
        first = _find_next(self._valid_until, now)
        return first if math.isfinite(first) else None

    def _grade_all(self, weights: Weights, now: float) -> _Graded:
        rows = np.arange(len(self._values))
        return _Graded(self._grade_rows(weights, rows, now), now, self._find_change(self._valid_until, now))

    def _grade_changed(self, known: _Graded, weights: Weights, now: float) -> None:
        rows = np.fromiter(known.changed, np.intp, len(known.changed))
        known.grades[rows] = self._grade_rows(weights, rows, now)
        known.until = min(known.until, self._find_change(self._valid_until[rows], now))
        known.changed.clear()

    def _find_change(self, ends: _Floats, now: float) -> float:
        """Give the time when the next of these scores begins to count, or expires."""
        first = _find_next(ends, now)
        return first if math.isinf(self._longest) else min(first, _find_next(ends - self._longest, now))

    def _grade_rows(self, weights: Weights, rows: Rows, now: float) -> Grades:
        return np.floor((MOST_SCORE + self.combine(weights, rows, now)) / 20 + 0.5).astype(np.uint8)

    def _note_change(self, row: int) -> None:
        for graded in self._graded.values():
            graded.changed.add(row)

    def _judge(self, node: str, coordinate: ScoreKey, now: float) -> float | Refused:
        readings = list(self._readings(node, coordinate))
        best = _best(readings)
        if best is None:
            return next((one for one in readings if isinstance(one, Refused)), MISSING)
        if best.valid_until <= now:
            return EXPIRED
        return best.value if best.valid_until <= now + self._longest else VALID_FOR_TOO_LONG

    def _readings(self, node: str, coordinate: ScoreKey) -> Iterator[ValidScore | Refused]:
        source, name = coordinate
        for object_name in sorted(self._names.get(node, ())):
            holder = self._objects[object_name]
            for score in holder.status.scores or ():
                if (holder.spec.source, score.name) == (source, name):
                    yield read_score(score, holder.status.valid_until)

    def _write(self, node: str) -> None:
        row = self._rows.get(node)
        if row is None:
            return
        for coordinate, column in self._coordinates.items():
            best = _best(self._readings(node, coordinate))
            self._valid_until[row, column], self._values[row, column] = best or (-math.inf, 0.0)
        self._note_change(row)

    def _grow(self, rows: int) -> None:
        missing = max(rows - len(self._values), 0)
        if missing:
            more = ((0, max(missing, len(self._values))), (0, 0))
            self._values = np.pad(self._values, more)
            self._valid_until = np.pad(self._valid_until, more, constant_values=-np.inf)
            self._graded.clear()


def _find_next(moments: _Floats, now: float) -> float:
    return float(np.min(moments, initial=np.inf, where=moments > now))


def _best(readings: Iterable[ValidScore | Refused]) -> ValidScore | None:
    return max((one for one in readings if isinstance(one, ValidScore)), default=None)


def _read_choice(annotation: str) -> Weights | Refused:
    if len(annotation) > LONGEST_TEXT:
        return LONG_CHOICE
    found = [_CHOICE.fullmatch(part) for part in annotation.split(",")]
    if not all(found):
        return UNREADABLE_CHOICE
    chosen = {(part[1], part[2]): int(part[3]) for part in found if part}
    return chosen if len(chosen) == len(found) else REPEATED_CHOICE
