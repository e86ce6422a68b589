"""One row of another harness's predictions in our words, and the file it stands in."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...core.types import BASE_VARIANT, Form, Image

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


def is_nothing(value: Any) -> bool:
    """Tell whether a cell holds nothing: null, NaN or the empty text."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


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
