"""The rows of the benchmark that predictions were made for, to give them ids, pictures and questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ...core.errors import DataError, UsageError
from ...core.types import Form, Sample
from ...data.answers import fold
from ...data.foreign.damage_counts import Damage
from ...data.foreign.foreign_rows import ForeignRow
from ..load import load_dataset

BY_ID, BY_ORDER = "id", "order"
JOINS = (BY_ID, BY_ORDER)


class BenchmarkRows:
    """The samples of a dataset, found by id or by the place a row says it has."""

    def __init__(self, task: str, join: str | None, catalogs: Sequence[str | Path] = ()) -> None:
        if join is not None and join not in JOINS:
            raise UsageError(f"--join {join!r} is none of {', '.join(JOINS)}")
        self._name, self._join = task, join
        self._samples = list(load_dataset(task, catalogs=catalogs))
        self._by_id = {sample.id: sample for sample in self._samples}
        self._used: set[str] = set()

    def __len__(self) -> int:
        return len(self._samples)

    def compare(self, rows: Iterable[ForeignRow], damage: Damage) -> None:
        """Find every row and count what reads otherwise, or has no prediction.

        A row that is not in the data is refused, and so is data of which most questions read otherwise.
        """
        for row in rows:
            self._compare(row, self.find(row), damage)
        self._check(damage)

    def _compare(self, row: ForeignRow, sample: Sample, damage: Damage) -> None:
        self._used.add(sample.id)
        if row.question and sample.question and fold(row.question) != fold(sample.question):
            damage.add("other_question", row.id)
        if row.answers and sample.answers and set(map(fold, row.answers)) != set(map(fold, sample.answers)):
            damage.add("other_gold", row.id)

    def find(self, row: ForeignRow) -> Sample:
        """Return the sample of a row: by its id, or by its place where the file names only that."""
        by_order = self._join == BY_ORDER or (
            self._join is None and row.place is not None and row.id not in self._by_id
        )
        if by_order:
            place = row.place if row.place is not None else -1
            if 0 <= place < len(self._samples):
                return self._samples[place]
            raise DataError(f"row {row.id!r} has no place in {self._name} ({len(self)} rows): is it another split?")
        if row.id not in self._by_id:
            first = next(iter(self._by_id), "")
            advice = f"its ids look like {first!r}; is it another version, or do rows join by --join order?"
            raise DataError(f"row {row.id!r} is not in {self._name}: {advice}")
        return self._by_id[row.id]

    def _check(self, damage: Damage) -> None:
        differing = damage.counts["other_question"]
        if differing * 2 > len(self._used):
            first = damage.named["other_question"][0]
            raise DataError(
                f"{differing} of {len(self._used)} questions read otherwise in {self._name} (first: row {first!r}): "
                "this is another benchmark, or another version of it"
            )
        for sample in self._samples:
            if sample.id not in self._used:
                damage.add("missing", sample.id)


def merged_sample(row: ForeignRow, sample: Sample) -> Sample:
    """Return the sample with what the file says of it: its options and right answers are what the number came from."""
    form = sample.form if sample.form is not Form.AUTO and not row.options and not row.answers else row.form
    return replace(
        sample,
        form=form,
        options=tuple(row.options.values()) or sample.options,
        answers=row.answers or sample.answers,
        group=row.group or sample.group,
        tags={**row.tags, **sample.tags},
    )
