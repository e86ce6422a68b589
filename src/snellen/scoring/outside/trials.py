"""Turns outside records with one answer each into scored trials: rows of the table that all aggregates read."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from itertools import islice

from ...core.errors import DataError
from ...core.types import BASE_VARIANT, Score, TrialKey
from ...data.files.records import Record
from ..aggregates.instability import ROUND_AXIS
from ..reading import ScoreRow, TableBuilder
from ..table import ScoreTable

METRIC = "accuracy"
KEY = TrialKey("", "")
"""What scorers are given for a key: which trial it is, only the row of the table says."""
ScoreRecord = Callable[[Record], Score]
_ROWS_AT_ONCE = 2_000
"""Rows coded together: what a numpy call costs is shared by many, and they still lie in the processor's cache."""
_LONGEST_CLASS = 64
_LARGEST_ROUND = 1e12
_MOST_NAMED = 3


def read_trials(records: Iterable[Record], score: ScoreRecord, *, with_rounds: bool, with_classes: bool) -> ScoreTable:
    """Return the table of a file whose records with one `sample_id` are repeats of one sample.

    `with_rounds` keeps `round_id` as an axis of the variant; `with_classes` keeps what was answered, for instability.
    Raises DataError for an empty file and for unequal numbers of repeats: a mean would weigh samples by accident.
    """
    numbering = Numbering()
    rows = _rows(records, score, numbering, with_rounds, with_classes)
    builder = TableBuilder(())
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        builder.add_scores(chunk)
    numbering.check()
    return builder.tables((METRIC,))[METRIC]


def _rows(
    records: Iterable[Record], score: ScoreRecord, numbering: Numbering, with_rounds: bool, with_classes: bool
) -> Iterator[ScoreRow]:
    for record in records:
        scored = score(record)
        sample, repeat = numbering.next(record)
        # A record that could not be read is not right in its round; where it names none it needs none.
        in_round = with_rounds and (scored.value is not None or record.fields.get("round_id") is not None)
        variant = _variant(record.number_of("round_id", _LARGEST_ROUND)) if in_round else BASE_VARIANT
        answer = _class(record, scored) if with_classes else None
        yield sample, variant, repeat, METRIC, scored.value, answer, scored.rule, scored.reason


@lru_cache
def _variant(number: float) -> str:
    return f"{ROUND_AXIS}={number!r}"


def _class(record: Record, score: Score) -> str:
    """An answer that names no option is a class of its own; long ones by their hash, so that each costs the same."""
    answer = score.answer if score.answer is not None else str(record.get("prediction"))
    if len(answer) <= _LONGEST_CLASS:
        return answer
    return hashlib.blake2b(answer.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Numbering:
    """Names samples by the order of the file, and numbers the records of each as its repeats."""

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}
        self._first_record = array("q")
        self._sizes = array("q")
        self._origin = "predictions"

    def next(self, record: Record) -> tuple[str, int]:
        """Return the name of the record's sample, and which repeat of it the record is."""
        code = self._codes.setdefault(record.identifier("sample_id"), len(self._codes))
        if code == len(self._sizes):
            self._origin = record.origin
            self._first_record.append(record.number)
            self._sizes.append(0)
        repeat = self._sizes[code]
        self._sizes[code] = repeat + 1
        return f"{code:09}", repeat

    def check(self) -> None:
        """Refuse an empty file and ragged repeats."""
        if not self._sizes:
            raise DataError(f"{self._origin}: holds no records, so there is nothing to score")
        usual = Counter(self._sizes).most_common(1)[0][0]
        samples = zip(self._codes, self._first_record, self._sizes, strict=True)
        odd = [sample for sample in samples if sample[2] != usual]
        if odd:
            texts = (f"sample {name!r} (first at record {first}) has {size}" for name, first, size in odd)
            named = ", ".join(islice(texts, _MOST_NAMED))
            more = f" and {len(odd) - _MOST_NAMED} more differ," if len(odd) > _MOST_NAMED else ","
            problem = f"ragged repeats (a record lost or doubled?): {named}{more} but the others {usual}"
            raise DataError(f"{self._origin}: {problem}")
