"""Answers that are not right to groups that say why, by rules that are shown with each group."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from ...core.types import Prediction, Sample, Score, TrialKey
from ...core.variants import variants_beside
from ...extract.extraction import REFUSED, TRUNCATED
from ...extract.numbers import parse_number
from ...extract.phrases import REFUSAL
from ...stats.distributions import binomial_cdf
from ...store.reader import RunReader, Trial
from ..scorers.text_match import fold, place_of, reply_text
from ..tables.table import lower_is_better


class Kind(NamedTuple):
    """One reason why an answer is not right."""

    title: str
    rule: str
    """When a trial is in this group, in a sentence."""
    step: str = ""
    """What to do about it; empty where nothing general can be said."""


KINDS: dict[str, Kind] = {
    "empty": Kind("empty reply", "The reply has no text.", "look at the raw reply: reasoning may have used all tokens"),
    "cut_off": Kind("cut off", "The reply ended at its token limit before an answer.", "raise --max-tokens"),
    "refused": Kind("refused", "The reply declines to answer, or says that it cannot see or tell."),
    "unread": Kind("not read", "There is a reply, and no single answer could be read from it.", "read a few of them"),
    "other_words": Kind(
        "right answer in other words",
        "The expected answer stands in the reply, or is it but for articles, accents, hyphens or plurals.",
        "try another scorer: snellen score RUN --scorer short",
    ),
    "format": Kind(
        "unit or format",
        "The same number in another unit, power of ten, sign or rounding.",
        "say the unit and precision in the question",
    ),
    "off_by_one": Kind("off by one", "A whole number one above or below the expected one."),
    "misread": Kind("text misread", "At most a third of the expected answer's characters differ."),
    "neighbour": Kind("neighbouring option", "All options are numbers, and the chosen one is next to the right one."),
    "other_picture": Kind(
        "another picture's answer",
        "The same question is asked of other pictures, and this is the right answer to one of them.",
        "check that each row names its own picture",
    ),
    "position": Kind(
        "position habit",
        "Wrong answers stand at this place in the list far more often than chance allows.",
        "ask with --shuffle-options",
    ),
    "other": Kind("another answer", "A wrong answer that no rule above explains."),
}
"""In the order in which they are tried; the first that fits names the group."""

MOST_GROUPED = 50_000
"""Trials of a task that are read for their groups without being asked for."""
MOST_DIFFERENT = 1 / 3
"""Share of characters by which a misread text differs at most."""
ROUNDED = 0.01
"""Relative difference up to which two numbers are one that was rounded."""
FEWEST_SAME = 5
"""So many different answers a question must have before that of another picture says anything."""
MOST_COMMON = 0.2
"""An answer that more pictures than this have is no other picture's in particular."""
SURE = 0.001
"""Chance below which a place in the list is a habit; for all places together."""
FEWEST_AT_PLACE = 10
HABIT = 1.5
"""A habit has at least so many times what chance would put there."""

_ARTICLE = re.compile(r"\b(?:an?|the)\b")
_NO_LETTER = re.compile(r"[\W_]+")
_PLURAL = re.compile(r"(?<=\w{3})s\b")


class Mistake(NamedTuple):
    """A trial that is not right, as far as its group depends on it."""

    key: TrialKey
    kind: str
    reply: str
    expected: tuple[str, ...]
    given: str | None
    question: str = ""
    place: int = -1
    """Of a choice: which option was chosen, counted as shown."""
    right: int = -1
    places: int = 0
    """How many options there were."""
    row: int = -1
    """Of the stored prediction."""


class ErrorGroup(NamedTuple):
    """Trials that are not right for one reason."""

    kind: str
    title: str
    rule: str
    step: str
    trials: tuple[Mistake, ...]
    share: float
    """Of all trials of the task that are not right."""


def group_errors(trials: Iterable[tuple[Trial, Score]]) -> list[ErrorGroup]:
    """Return the groups of all trials of a task that are wrong or unread, largest first, unexplained last.

    Each comes with the score it is judged by.
    """
    mistakes: list[Mistake] = []
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    seen: set[str] = set()
    for trial, score in trials:
        sample = trial.sample
        if sample.id not in seen:
            seen.add(sample.id)
            answers[sample.question].update(fold(answer) for answer in sample.answers[:1])
        if trial.prediction.failure is None and _is_mistake(score):
            mistakes.append(_mistake(trial, score))
    named = _by_place([_of_another_picture(one, answers) for one in mistakes])
    groups: defaultdict[str, list[Mistake]] = defaultdict(list)
    for one in named:
        groups[one.kind].append(one)
    order = list(KINDS)
    found = sorted(groups.items(), key=lambda item: (item[0] == "other", -len(item[1]), order.index(item[0])))
    return [ErrorGroup(kind, *KINDS[kind], tuple(own), len(own) / len(named)) for kind, own in found]


def read_errors(reader: RunReader, task: str) -> list[ErrorGroup]:
    """Return the groups of a stored task; trials are judged by their first score, which the headline is made of.

    Arms are left out: a question asked without its picture is expected to be missed.
    """
    variants = [name for (name,) in reader.rows("SELECT DISTINCT variant FROM predictions WHERE task = ?", (task,))]
    beside = variants_beside(variants)
    judged = ((trial, scores[0]) for trial, scores in reader.with_scores(task) if scores)
    return group_errors(one for one in judged if one[0].prediction.key.variant not in beside)


def _is_mistake(score: Score) -> bool:
    """Tell whether a reply was not read or is wrong; what is right in part (some lines of a chart) is none."""
    if score.value is None:
        return True
    return score.value >= 1.0 if lower_is_better(score.metric) else score.value <= 0.0


def _mistake(trial: Trial, score: Score) -> Mistake:
    sample, request, prediction, row = trial
    options = request.shown or sample.options
    place = options.index(score.answer) if score.answer in options else -1
    right = next((number for number, option in enumerate(options) if option in sample.answers), -1)
    said = (prediction.text or "", sample.answers, score.answer, sample.question)
    return Mistake(prediction.key, _kind(sample, prediction, score, options), *said, place, right, len(options), row)


def _kind(sample: Sample, prediction: Prediction, score: Score, options: Sequence[str]) -> str:
    """Return the group of one trial by what itself says; `other` where the other trials must decide."""
    unread = _why_unread(prediction, score, options)
    if unread:
        return unread
    if options:
        return "neighbour" if _is_neighbour(score.answer, sample.answers, options) else "other"
    said = reply_text(prediction) or ""
    given = score.answer if score.answer is not None else said
    fits = (kind for kind, rule in TEXT_RULES for answer in sample.answers if rule(given, answer, fold(said)))
    return next(fits, "other")


def _why_unread(prediction: Prediction, score: Score, options: Sequence[str]) -> str:
    """Return the group of a reply that holds no answer; nothing where it holds one."""
    if prediction.text is not None and not prediction.text.strip():
        return "empty"
    if score.reason == TRUNCATED or (score.value is None and prediction.finish == "length"):
        return "cut_off"
    if score.reason == REFUSED or (not options and _declines(prediction)):
        return "refused"
    return "unread" if score.value is None else ""


def _declines(prediction: Prediction) -> bool:
    return REFUSAL.search((reply_text(prediction) or "").lower()) is not None


def _is_neighbour(chosen: str | None, right: Sequence[str], options: Sequence[str]) -> bool:
    """Tell whether the options are different numbers and the chosen one is the next above or below a right one."""
    numbers = [_number(option) for option in options]
    if (
        chosen is None
        or chosen not in options
        or len(options) < 3
        or None in numbers
        or len(set(numbers)) < len(numbers)
    ):
        return False
    order = sorted(range(len(options)), key=lambda place: numbers[place] or 0.0)
    rank = {options[place]: position for position, place in enumerate(order)}
    return any(abs(rank[chosen] - rank[answer]) == 1 for answer in right if answer in rank)


def _number(text: str) -> float | None:
    found = parse_number(text.strip())
    return None if found is None else found.value


def _bare(text: str) -> str:
    """Return a text without what is no other answer: accents, articles, plurals, hyphens and spaces."""
    plain = "".join(one for one in unicodedata.normalize("NFKD", fold(text)) if not unicodedata.combining(one))
    return _NO_LETTER.sub("", _PLURAL.sub("", _ARTICLE.sub(" ", plain)))


def _in_other_words(given: str, answer: str, said: str) -> bool:
    wanted, bare = fold(answer), _bare(answer)
    # A number stands in many replies by chance: only the one that was read is held against the answer.
    if not bare or _number(answer) is not None:
        return False
    return place_of(wanted, said) >= 0 or _bare(given) == bare


def _in_other_format(given: str, answer: str, said: str) -> bool:
    one, other = _number(given), _number(answer)
    if one is None or other is None or not one or not other:
        return False
    if math.isclose(one, -other, rel_tol=1e-9) or math.isclose(one, other, rel_tol=ROUNDED):
        # Of whole numbers 100 and 101 are two answers; what was rounded has decimals on one side.
        return one != int(one) or other != int(other) or one in (-other, other)
    power = math.log10(abs(one / other))
    return abs(power - round(power)) < 1e-9 and 1 <= abs(round(power)) <= 9


def _off_by_one(given: str, answer: str, said: str) -> bool:
    one, other = _number(given), _number(answer)
    return one is not None and other is not None and abs(one - other) == 1 and one == int(one)


def _misread(given: str, answer: str, said: str) -> bool:
    one, other = fold(given), fold(answer)
    # 3 for 8 is another number; of 2013 for 2015 a digit was misread.
    if len(other) < 3 or (_number(answer) is not None and not other.isdigit()):
        return False
    return 0 < Levenshtein.distance(one, other) <= MOST_DIFFERENT * len(other)


TEXT_RULES: tuple[tuple[str, Callable[[str, str, str], bool]], ...] = (
    ("other_words", _in_other_words),
    ("format", _in_other_format),
    ("off_by_one", _off_by_one),
    ("misread", _misread),
)
"""For answers without options, tried in this order on what was read, the expected answer and the reply."""


def _of_another_picture(one: Mistake, answers: dict[str, Counter[str]]) -> Mistake:
    if one.kind != "other" or one.places or one.given is None:
        return one
    known, given = answers[one.question], fold(one.given)
    if not given or given not in known or len(known) < FEWEST_SAME or _number(one.given) is not None:
        return one
    return one._replace(kind="other_picture") if known[given] <= MOST_COMMON * known.total() else one


def _by_place(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Name the wrong choices that stand at a place which is chosen far more often than chance would."""
    wrong = [one for one in mistakes if one.place >= 0 and one.places > 1]
    habits: set[int] = set()
    most = max((one.places for one in wrong), default=0)
    for place in range(most):
        # Without a habit a wrong answer stands with equal chance at each place but the right one's.
        could = [one for one in wrong if place < one.places and place != one.right]
        chance = sum(1 / (one.places - 1) for one in could) / len(could) if could else 0.0
        count = sum(one.place == place for one in could)
        rare = 1.0 - binomial_cdf(count - 1, len(could), chance) if count else 1.0
        if count >= FEWEST_AT_PLACE and count >= HABIT * chance * len(could) and rare < SURE / most:
            habits.add(place)
    return [one._replace(kind="position") if one.kind == "other" and one.place in habits else one for one in mistakes]
