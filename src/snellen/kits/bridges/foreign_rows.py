"""One row of another harness's predictions in our words, and the file it stands in."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from ...core.builtins import default_registry
from ...core.types import BASE_VARIANT, Form, Image
from ...data.files.records import is_nothing as is_nothing  # noqa: PLC0414 - readers of files ask it of cells
from ...data.files.records import parse_literal
from ...data.loaders.option_texts import OPTION_MARK, fold, options_in_text
from .damage import Damage

_WHOLE = re.compile(r"(-?\d+)\.0+")
_LONGEST_TAG = 64
WORDS = {"true": 1, "false": 0, "correct": 1, "incorrect": 0, "right": 1, "wrong": 0, "yes": 1, "no": 0}
"""How verdicts are written out."""
CUT = ("max_tokens", "model_length", "length")
Tag = str | int | float | bool | None


class ForeignRow(Struct, frozen=True, gc=False, omit_defaults=True, array_like=True):
    """What one row says: a reply, log-likelihoods of its options, or (`reply` None) why there is none."""

    id: str
    form: Form
    reply: str | None = None
    failure: str | None = None
    """Why there is no reply: the harness's own words."""
    repeat: int = 0
    question: str = ""
    prompt: str = ""
    """What was sent, where the file holds it."""
    options: dict[str, str] = {}
    """Letter -> text, as they were shown."""
    answers: tuple[str, ...] = ()
    """The right answers as texts; of a choice, texts of options."""
    images: tuple[Image, ...] = ()
    reasoning: str | None = None
    finish: str | None = None
    group: str | None = None
    tags: dict[str, Tag] = {}
    tokens: tuple[int, int] | None = None
    """Input and output, where the file counts them."""
    read_reply: str | None = None
    """The text the harness read an answer from, where not the reply: a failure's text, `nan` of an empty cell."""
    read_answer: str | None = None
    """What the harness says it read."""
    verdict: float | None = None
    """What the harness says the row scored, from 0 to 1."""
    place: int | None = None
    """Which row of the benchmark it is, counted from 0, where the file says so."""
    variant: str = BASE_VARIANT
    right: int | None = None
    """Which of the options was right as they were shown, where repeats of a question may show others."""
    meta: dict[str, Any] = {}
    """What only the scorer of this format understands."""
    detail: dict[str, Any] = {}
    """What the prediction keeps beside the reply."""
    loglikelihoods: tuple[float, ...] = ()
    """Instead of a reply: one value an option, in the order shown."""
    reduction: str = "sum"
    """How these become one value an option (`REDUCTIONS`)."""
    latency_s: float | None = None
    at: str | None = None
    """When it was asked: ISO 8601, where the file says so."""


@dataclass
class ForeignFile:
    """A file of predictions, opened: its rows are read once, in order."""

    harness: str
    path: Path
    rows: Iterator[ForeignRow]
    task: str = ""
    """The benchmark as the harness calls it."""
    model: str = ""
    reported: Mapping[str, float] = field(default_factory=dict)
    """The numbers its own report gives, by their names there."""
    expected: int | None = None
    """How many rows there should be, where a file beside it says so."""
    notes: list[str] = field(default_factory=list)
    scoring: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the task that the format itself knows: scorers, aggregates, figures …"""


RowReader = Callable[[], Iterator[ForeignRow]]


def plain_id(value: Any) -> str:
    """Return an id as text; a sheet's 12.0 is 12."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    match = _WHOLE.fullmatch(text)
    return match[1] if match else text


def how_it_ended(reason: Any) -> str | None:
    """Return why a generation stopped; all words for a cut one are `length`."""
    if not isinstance(reason, str):
        return None
    return "length" if reason in CUT else reason


def share(value: Any) -> float | None:
    """Return a verdict as a number from 0 to 1; None for anything else, NaN too."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        value = WORDS.get(value.strip().lower(), value)
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def short_tags(row: Mapping[str, Any], without: frozenset[str]) -> dict[str, Tag]:
    """Return the columns that can be groups: short values, none of those named."""
    return {
        name: value
        for name, value in row.items()
        if name not in without
        and not is_nothing(value)
        and isinstance(value, str | int | float | bool)
        and (not isinstance(value, str) or len(value) <= _LONGEST_TAG)
    }


def token_pair(spent: Any, names: tuple[str, str]) -> tuple[int, int] | None:
    """Return the tokens in and out that an object counts under these names, or None."""
    if not isinstance(spent, dict):
        return None
    taken, given = (spent.get(name) for name in names)
    return (taken, given) if type(taken) is int and type(given) is int else None


YES_NO = ("yes", "no")
FEWEST_LETTERS = 4
KEPT_BACK = ("?", "hidden")
"""What stands in the place of right answers that are not published."""
_LETTER = re.compile(r"\(?\s*([A-Z])\s*\)?\.?")
_LETTERS = re.compile(r"[A-Z](?:\s*[,;]?\s*[A-Z])+")


NO_REPLY = "the file holds no reply"


def reply_in(value: Any, row: str, damage: Damage) -> tuple[str | None, str | None]:
    """Return the reply of a cell, or why there is none; a lost and an empty one are counted."""
    if value == "":
        damage.add("empty", row)
        return "", None
    if is_nothing(value):
        damage.add("lost", row)
        return None, NO_REPLY
    return str(value), None


def object_in(file: Path) -> dict[str, Any]:
    """Return the object that a file of JSON beside the predictions holds; nothing where there is none to be read."""
    try:
        told = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


class Gold(NamedTuple):
    """The form of a question and its right answers."""

    form: Form
    answers: tuple[str, ...]


def lettered(texts: Sequence[Any]) -> dict[str, str]:
    """Return texts under the letters A, B, C …; more than there are letters are none that a harness shows."""
    return {letter: str(text) for letter, text in zip(string.ascii_uppercase, texts, strict=False)}


def as_list(value: Any) -> Any:
    """Return a list that is written as text as the list it is; anything else as it is."""
    if isinstance(value, str) and value.strip().startswith("[") and value.strip().endswith("]"):
        read = parse_literal(value.strip())
        return read if isinstance(read, list) else value
    return value


def shown_options(prompt: str) -> dict[str, str]:
    """Return the options that a prompt shows marked A, B, C …, by letter; none where it shows none."""
    found = options_in_text(prompt) if prompt else None
    return lettered(found.options) if found else {}


def listed_options(listed: Any, prompt: str) -> dict[str, str]:
    """Return the options of a list, also of one written as text; where there is none, those that the prompt shows."""
    listed = as_list(listed)
    return lettered(listed) if isinstance(listed, list) else shown_options(prompt)


def settle_gold(options: Mapping[str, str], value: Any, row: str, damage: Damage) -> Gold:
    """Return form and right answers of a row; what does not fit is counted, and the row then has no right answer."""
    value = as_list(value)
    if is_nothing(value) or value == [] or (isinstance(value, str) and value.strip("() ").lower() in KEPT_BACK):
        damage.add("no_gold", row)
        return Gold(Form.CHOICE if options else Form.OPEN, ())
    if len(set(map(fold, options.values()))) < len(options):
        damage.add("same_options", row)
    if options:
        return _among(options, value, row, damage)
    return _without_options(value, row, damage)


def _among(options: Mapping[str, str], value: Any, row: str, damage: Damage) -> Gold:
    if isinstance(value, str) and value in options:  # nearly all: one letter
        return Gold(Form.CHOICE, (options[value],))
    several = _several(options, value)
    if several:
        return Gold(Form.MULTIPLE, several)
    text = _one(options, value[0] if isinstance(value, list) and len(value) == 1 else value)
    if text is None:
        damage.add("odd_gold", row)
        return Gold(Form.CHOICE, ())
    return Gold(Form.CHOICE, (text,))


def _several(options: Mapping[str, str], value: Any) -> tuple[str, ...]:
    """Return the texts of several letters (`A, C`, `AC`, a list of them), or nothing."""
    if isinstance(value, str) and fold(value) in map(fold, options.values()):
        return ()
    letters = re.findall("[A-Z]", value) if isinstance(value, str) and _LETTERS.fullmatch(value.strip()) else value
    if not isinstance(letters, list) or len(letters) < 2 or not set(map(str, letters)) <= options.keys():
        return ()
    return tuple(options[letter] for letter in letters)


def _one(options: Mapping[str, str], value: Any) -> str | None:
    text = str(value).strip()
    letter = _LETTER.fullmatch(text)
    if letter and letter[1] in options:
        return options[letter[1]]
    own = next((option for option in options.values() if fold(option) == fold(text)), None)
    marked = OPTION_MARK.match(text)
    if own is not None or marked is None:
        return own
    named = options.get(marked[1].upper(), "")  # `A. a cat`: the letter and the text of one option
    return named if named and fold(named) == fold(text[marked.end() :]) else None


def _without_options(value: Any, row: str, damage: Damage) -> Gold:
    if isinstance(value, bool):  # JSON writes the answers of yes/no questions so
        return Gold(Form.YESNO, (YES_NO[not value],))
    if isinstance(value, str) and value.strip().lower().rstrip(".") in YES_NO:
        return Gold(Form.YESNO, (value.strip().rstrip(".").lower(),))
    letters = _bare_letters(value)
    if letters:
        damage.add("no_options", row)
        return Gold(Form.CHOICE if len(letters) == 1 else Form.MULTIPLE, letters)
    values = value if isinstance(value, list) else [value]
    return Gold(Form.OPEN, tuple(str(item) for item in values if not is_nothing(item)))


def _bare_letters(value: Any) -> tuple[str, ...]:
    """Return the letters that a right answer consists of: `C`, `(C)`, `['a', 'c']`; else nothing."""
    found = [_LETTER.fullmatch(str(item).strip().upper()) for item in (value if isinstance(value, list) else [value])]
    return tuple(letter_option(match[1]) for match in found if match) if found and all(found) else ()


def letter_option(letter: str) -> str:
    """Return the text of an option that is known by its letter only: in brackets, as no article is."""
    return f"({letter})"


def letter_options(highest: str) -> dict[str, str]:
    """Return options that are known by their letters only, from A to the highest that is right in any row."""
    letters = string.ascii_uppercase[: max(FEWEST_LETTERS, string.ascii_uppercase.find(highest) + 1)]
    return {letter: letter_option(letter) for letter in letters}


def has_letters_alone(options: Mapping[str, str], answers: Sequence[str]) -> bool:
    """Tell whether a row's right answers are letters of options that its file does not show."""
    return not options and bool(answers) and all(re.fullmatch(r"\([A-Z]\)", answer) for answer in answers)


_TRUTHS = (True, False, "True", "False")
_PAIR = 2


def likelihoods_in(replies: Any) -> list[tuple[float, ...]]:
    """Return the values of all options, once a repeat; nothing where these are no log-likelihoods but texts.

    `[[["-0.1", "False"]], [["-0.5", "False"]]]` (an option, a repeat, a pair), or without the level of repeats.
    """
    if not isinstance(replies, list) or not replies:
        return []
    options = [[_value(entry)] if _is_pair(entry) else _values(entry) for entry in replies]
    if any(not values or None in values for values in options):
        return []
    return [tuple(float(value) for value in repeat if value is not None) for repeat in zip(*options, strict=False)]


def _values(entry: Any) -> list[float | None]:
    return [_value(pair) if _is_pair(pair) else None for pair in entry] if isinstance(entry, list) else []


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == _PAIR and value[1] in _TRUTHS and _value(value) is not None


def _value(pair: Any) -> float | None:
    if is_nothing(pair[0]) or isinstance(pair[0], bool | list | dict):
        return None
    try:
        return float(pair[0])
    except ValueError:
        return None


_MADE_HERE = frozenset(("exam", "rationale", "annotated", "peer", "parse", "parse_official"))
"""Scorers that need more than the trials: a reading of such a run keeps the file's own verdicts."""


def own_scoring(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a task that a file may set: names of scorers and aggregates that there are."""
    known = default_registry()
    scorers = [name for name in task.get("scorers") or () if name in known.names("scorer") and name not in _MADE_HERE]
    if not scorers or len(scorers) != len(task.get("scorers") or ()):
        return {}
    aggregates = tuple(name for name in task.get("aggregates") or () if name in known.names("aggregate"))
    return {"scorers": tuple(scorers), **({"aggregates": aggregates} if aggregates else {})}
