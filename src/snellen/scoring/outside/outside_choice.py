"""Turns outside single-choice records into a Tally: what was chosen, was it right, and could it be read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from ...extract.choice import read
from ...extract.mark_patterns import derive_marks
from ...extract.option_set import compile_options
from ...extract.profiles import parse_reform, place_of, profile_named
from .outside_fields import Row
from .outside_tally import Tally

MOST_OPTIONS = 702
"""As many as there are marks of one or two letters."""


def tally_choices(rows: Iterable[Row], *, profile: str, infer_method: str, with_rounds: bool) -> Tally:
    """Score every record of a SingleChoice file; `infer_method` says whether predictions are texts or option indices."""
    tally = Tally(with_rounds=with_rounds)
    for row in rows:
        options = row.options()
        if profile != "reform":
            _require_options(row, options)
        answer = answer_index(row, options, lenient=profile == "reform")
        chosen = _chosen_index(row, options, profile, infer_method)
        value = None if chosen is None and profile == "snellen" else float(chosen == answer)
        tally.add(row, value, hit=chosen is not None, chosen=_chosen_class(row, options, chosen))
    return tally


def _require_options(row: Row, options: Sequence[Any] | None) -> None:
    if not options or not 2 <= len(options) <= MOST_OPTIONS:
        row.fail(f"needs 'answer_options' with 2 to {MOST_OPTIONS} options (profile 'reform' does without)")


def answer_index(row: Row, options: Sequence[Any] | None, *, lenient: bool) -> int:
    """Return the index of the right option: 'answer' is an index, an index as text, or the option's own text.

    `lenient` takes indices as ReForm-Eval does: fractions are cut off, and nothing checks the range.
    """
    answer = row.get("answer")
    index = _whole(answer, lenient=lenient)
    size = len(options or ())
    if index is not None and (lenient or 0 <= index < size):
        return index
    matches = [
        position for position, option in enumerate(options or ()) if option == answer and isinstance(answer, str)
    ]
    if len(matches) != 1:
        row.fail(
            f"'answer' must be an option index{f' from 0 to {size - 1}' if size else ''} or the text of one option, not {answer!r:.60}"
        )
    return matches[0]


def _whole(value: Any, *, lenient: bool) -> int | None:
    if isinstance(value, bool | float) and not lenient:
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _chosen_index(row: Row, options: Sequence[Any] | None, profile: str, infer_method: str) -> int | None:
    if infer_method == "likelihood":
        index = row.whole("prediction")
        if profile != "reform" and not 0 <= index < len(options or ()):
            row.fail(f"'prediction' {index} is no option index: there are {len(options or ())} options, counted from 0")
        return index
    text = row.text("prediction")
    if profile == "reform":
        return reform_index(text)
    return _extracted_index(text, tuple(map(str, options or ())), profile)


def reform_index(text: str) -> int | None:
    """Return the option index of the first `(A)`, `(a)` or `(1)` in a reply: ReForm-Eval's rule."""
    found = parse_reform(text)
    return None if found is None else place_of(found[0])


def _extracted_index(text: str, options: tuple[str, ...], profile: str) -> int | None:
    marks = _marks(len(options))
    found = (
        read(compile_options(marks, options), text) if profile == "snellen" else profile_named(profile).read(text, marks)
    )
    return None if found.letter is None else marks.index(found.letter)


@lru_cache
def _marks(count: int) -> tuple[str, ...]:
    return derive_marks(count)


def _chosen_class(row: Row, options: Sequence[Any] | None, chosen: int | None) -> Hashable:
    """The class for instability is the option's text; an answer that names no option is a class of its own."""
    if chosen is not None and options is not None and -len(options) <= chosen < len(options):
        option: Hashable = options[chosen]
        return option
    prediction: Hashable = row.get("prediction")
    return prediction
