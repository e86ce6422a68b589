"""Samples to the same samples with every text beginning with a capital letter (`--capitalize`)."""

from __future__ import annotations

import msgspec

from ..core.types import Sample, Turn


def capitalise(sample: Sample) -> Sample:
    """Begin every text with a capital letter; the rest of it stays as it is."""
    change = {field: tuple(map(_raise, getattr(sample, field))) for field in ("options", "answers")}
    turns = tuple(Turn(turn.role, _raise(turn.text), turn.images) for turn in sample.turns)
    rounds = sample.meta.get("history_options")
    meta = (
        {**sample.meta, "history_options": [[_raise(text) for text in texts] for texts in rounds]}
        if rounds
        else sample.meta
    )
    return msgspec.structs.replace(sample, question=_raise(sample.question), turns=turns, meta=meta, **change)


def _raise(text: str) -> str:
    return text[:1].upper() + text[1:]
