"""The turns of a trial to rows of run.db, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import astuple

from ..core.errors import RunMismatch
from ..core.looks import Look
from ..core.types import Prediction, Request
from .database import Row, is_intact, seal

PUT_TURNS = """
INSERT OR REPLACE INTO turns (task, sample, variant, repeat, turn, digest, request, body, looks) VALUES {rows}
"""
"""What is there already and is asked again was damaged."""
JOIN_TURNS = PUT_TURNS.replace("REPLACE", "IGNORE")
"""Of logs that are joined the first counts, as of trials."""
STORED_TURN = """
SELECT turn, digest, request, body, looks FROM turns
WHERE task = ? AND sample = ? AND variant = ? AND repeat = ? AND turn = ?
"""
STORED_TURNS = """
SELECT turn, digest, request, body, looks FROM turns
WHERE task = ? AND sample = ? AND variant = ? AND repeat = ? ORDER BY turn
"""


class _Looks(msgspec.Struct, frozen=True):
    """A seal is a field of an object: the looks need one around them."""

    looks: tuple[Look, ...] = ()


class StoredTurn(NamedTuple):
    """One answered turn of a trial."""

    number: int
    digest: str
    """Of what was asked, without who was asked."""
    request: Request
    prediction: Prediction
    looks: tuple[Look, ...]
    """What the request showed for the first time: what came of the calls of the turn before."""

    def check(self, digest: str) -> None:
        """Refuse to go on from a turn that would be asked otherwise now."""
        if digest == self.digest:
            return
        key = self.prediction.key
        what = f"turn {self.number} of sample {key.sample!r} ({key.task}, {key.variant}, repeat {key.repeat})"
        advice = "put the data or the settings back, choose another -o, or ask all of it again with --fresh"
        raise RunMismatch(f"{what} was asked otherwise before: its pictures, its words or a tool changed; {advice}")


_encode = msgspec.json.Encoder().encode


def row_of_turn(number: int, request: Request, prediction: Prediction, looks: Sequence[Look], digest: str) -> Row:
    """Return one turn as its row."""
    body = seal(_encode(prediction), f"{number}\0{digest}")
    return (*astuple(request.key), number, digest, seal(_encode(request)), body, seal(_encode(_Looks(tuple(looks)))))


def is_turn(row: Row) -> bool:
    """Tell whether a row, without its key, is what was written."""
    number, digest, request, body, looks = row
    return is_intact(request) and is_intact(body, f"{number}\0{digest}") and is_intact(looks)


def turn_of_row(row: Row) -> StoredTurn:
    """Return the turn that an intact row, without its key, holds."""
    number, digest, request, body, looks = row
    asked, reply = msgspec.json.decode(request, type=Request), msgspec.json.decode(body, type=Prediction)
    return StoredTurn(number, digest, asked, reply, msgspec.json.decode(looks, type=_Looks).looks)
