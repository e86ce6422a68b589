"""Turns a single-choice record into a Sample, a Request and a Prediction, and these into its Score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from ...core.types import Form, Prediction, Request, Sample, Score
from ...data.files.records import Record, kind_of
from ...extract.choice import extract_choice
from ...extract.extraction import AMBIGUOUS
from ...extract.profiles import reform_index
from ...prompt.marks import make_marks
from ..scorers import option_choice
from .record_marks import AUTO, mark_style
from .trials import KEY, ScoreRecord

MOST_OPTIONS = 702
"""As many as there are marks of one or two letters."""
_OPTION_TYPES = frozenset({str, int, float, bool})


def choice_scorer(
    profile: str, infer_method: str, option_mark: str = AUTO, read_as: Counter[str] | None = None
) -> ScoreRecord:
    """Return how a SingleChoice record is scored; by `infer_method` predictions are texts or option indices.

    `option_mark` says how the options were marked, or `auto`; `read_as` counts what was found.
    """
    if profile != "reform" and infer_method == "generation":
        return partial(
            _score_reply, profile=profile, option_mark=option_mark, read_as=Counter() if read_as is None else read_as
        )
    return partial(_score_index, lenient=profile == "reform", by_likelihood=infer_method == "likelihood")


def _score_reply(record: Record, *, profile: str, option_mark: str, read_as: Counter[str]) -> Score:
    shown = _options(record, required=True)
    right = answer_index(record, shown, lenient=False)
    reply = record.text("prediction")
    style = mark_style(record, reply, shown) if option_mark == AUTO else option_mark
    read_as[style or AMBIGUOUS] += 1
    if style is None:
        return Score(KEY, option_choice.METRIC, None, reason=AMBIGUOUS)
    sample, request = _asked(shown, right, style)
    (score,) = option_choice.score(sample, request, Prediction(KEY, text=reply), {"profile": profile})
    if score.answer is None or shown.count(score.answer) == 1:
        return score
    # Two options of one text: only the label tells which of them was meant.
    mark = extract_choice(reply, dict(zip(request.marks, shown, strict=True)), profile=profile).letter
    return option_choice.score_index(KEY, request.marks.index(mark or ""), right, shown)


@lru_cache(maxsize=4096)
def _asked(shown: tuple[str, ...], right: int, style: str) -> tuple[Sample, Request]:
    """Return the question of a record: repeats of a sample ask the same few again and again."""
    sample = Sample("", "", Form.CHOICE, "", options=shown, answers=(shown[right],))
    return sample, Request(KEY, (), marks=make_marks(style, len(shown)), shown=shown)


def _score_index(record: Record, *, lenient: bool, by_likelihood: bool) -> Score:
    shown = _options(record, required=not lenient)
    right = answer_index(record, shown, lenient=lenient)
    chosen = record.whole("prediction") if by_likelihood else reform_index(record.text("prediction"))
    if not lenient and chosen not in range(len(shown)):
        record.fail(f"'prediction' {chosen} is no option index: there are {len(shown)} options, counted from 0")
    return option_choice.score_index(KEY, chosen, right, shown)


def _options(record: Record, *, required: bool) -> tuple[str, ...]:
    """Return `answer_options` as texts; they may be numbers, and only profile `reform` does without."""
    options = record.fields.get("answer_options")
    if options is None:
        options = []
    if not isinstance(options, list) or not _OPTION_TYPES.issuperset(map(type, options)):
        record.fail(f"'answer_options' must be a list of texts, not {kind_of(options)}")
    if required and not 2 <= len(options) <= MOST_OPTIONS:
        record.fail(f"needs 'answer_options' with 2 to {MOST_OPTIONS} options (profile 'reform' does without)")
    return tuple(map(str, options))


def answer_index(record: Record, options: Sequence[str], *, lenient: bool) -> int:
    """Return the index of the right option: 'answer' is an index, an index as text, or the option's own text.

    `lenient` takes indices as ReForm-Eval does: fractions are cut off, and nothing checks the range.
    """
    answer = record.get("answer")
    index = _whole(answer, lenient=lenient)
    if index is not None and (lenient or index in range(len(options))):
        return index
    if not isinstance(answer, str) or options.count(answer) != 1:
        indices = f" from 0 to {len(options) - 1}" if options else ""
        record.fail(f"'answer' must be an option index{indices} or the text of one option, not {answer!r:.60}")
    return options.index(answer)


def _whole(value: Any, *, lenient: bool) -> int | None:
    if isinstance(value, bool | float) and not lenient:
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
