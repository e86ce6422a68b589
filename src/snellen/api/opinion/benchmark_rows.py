"""The rows of the benchmark that predictions were made for, to give them ids, pictures and questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ...core.errors import DataError, UsageError
from ...core.types import Form, Sample
from ...data.answers import fold
from ...data.dataset import fingerprint_of
from ...data.foreign.damage_counts import Damage
from ...data.foreign.foreign_rows import ForeignRow
from ...data.foreign.gold import has_letters_alone, lettered
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

    @property
    def fingerprint(self) -> str:
        """Return what these rows are known by."""
        return fingerprint_of(self._samples)

    def compare(self, rows: Iterable[ForeignRow], damage: Damage) -> None:
        """Find every row and count what reads otherwise, or has no prediction.

        A row that is not in the data is refused, and so is data of which most questions read otherwise.
        """
        for row in rows:
            self._compare(row, self.find(row), damage)
        self._check(damage)

    def _compare(self, row: ForeignRow, sample: Sample, damage: Damage) -> None:
        self._used.add(sample.id)
        if sample.options and has_letters_alone(row.options, row.answers):
            row = _by_letters(row, sample)
            damage.mend(row.id)
        pairs = {
            "other_question": ([row.question] if row.question else [], [sample.question] if sample.question else []),
            "other_options": (row.options.values(), sample.options),
            "other_gold": (row.answers, sample.answers),
        }
        for kind, (told, known) in pairs.items():
            if told and known and not _same(told, known):
                damage.add(kind, row.id)
        if sample.answers and not row.answers:
            damage.mend(row.id)

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


def _same(texts: Iterable[str], others: Iterable[str]) -> bool:
    """Tell whether two lists hold the same texts, in whatever order."""
    return sorted(map(fold, texts)) == sorted(map(fold, others))


def join_row(row: ForeignRow, sample: Sample) -> ForeignRow:
    """Return a row with the options of its benchmark where the file shows none or others, and its right answers.

    Options that only stand in another order are kept as the file shows them; so are its right answers, since the
    harness's number came from them.
    """
    if not sample.options or (row.options and _same(row.options.values(), sample.options)):
        return replace(row, answers=row.answers or sample.answers)
    if has_letters_alone(row.options, row.answers):
        return _by_letters(row, sample)
    letters = {letter: text for letter, text in row.options.items() if text in row.answers}
    options = lettered(sample.options)
    answers = tuple(options[letter] for letter in letters if letter in options)
    form = row.form if row.form is Form.MULTIPLE else Form.CHOICE
    return replace(row, options=options, answers=answers or sample.answers, form=form)


def _by_letters(row: ForeignRow, sample: Sample) -> ForeignRow:
    """Return a row of which only letters are known with the options of its benchmark in their order."""
    options = lettered(sample.options)
    answers = tuple(options[answer[1]] for answer in row.answers if answer[1] in options)
    return replace(row, options=options, answers=answers or sample.answers)


def merged_sample(row: ForeignRow, sample: Sample) -> Sample:
    """Return the sample with what its joined row says of it."""
    return replace(
        sample,
        form=row.form,
        options=tuple(row.options.values()),
        answers=row.answers,
        group=row.group or sample.group,
        tags={**row.tags, **sample.tags},
    )
