"""A harness's right answer (letter, text, list, list written as text) with its options to the texts a Sample keeps."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...core.types import Form
from ..files.written_lists import parse_literal
from ..loaders.answers import fold
from ..loaders.row_options import OPTION_MARK, options_in_text
from .damage_counts import Damage
from .foreign_rows import is_nothing

YES_NO = ("yes", "no")
FEWEST_LETTERS = 4
KEPT_BACK = ("?", "hidden")
"""What stands in the place of right answers that are not published."""
_LETTER = re.compile(r"\(?\s*([A-Z])\s*\)?\.?")
_LETTERS = re.compile(r"[A-Z](?:\s*[,;]?\s*[A-Z])+")


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
