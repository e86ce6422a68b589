"""One chain: what a model is told, what it should reply; and the row of pictures and messages a trainer takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ...core.errors import DataError
from ...core.types import Image, Turn
from ...data.images.decode import open_image


class Chain(Struct, frozen=True, gc=False, omit_defaults=True):
    """One sample of any training: SFT reads `reply`, DPO also `rejected`, GRPO the labels alone."""

    id: str
    turns: tuple[Turn, ...]
    """What the model is told; the last turn is the user's."""
    reply: str = ""
    rejected: str = ""
    answers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    """What a right rationale states, in order: the right answers of the steps."""
    good: bool | None = None
    """What a judge said of the reply, where it did (conditional training)."""

    @property
    def pictures(self) -> tuple[Image, ...]:
        """Return all pictures in the order shown."""
        return tuple(image for turn in self.turns for image in turn.images)


def mark_control(chain: Chain, words: Sequence[str]) -> Chain:
    """Return the chain with the control word of its verdict before the last thing the user says."""
    *before, last = chain.turns
    word = words[0] if chain.good else words[1]
    text = f"{word} {last.text}"
    parts = last.parts
    if parts:
        first = next(place for place, part in enumerate(parts) if isinstance(part, str))
        parts = (*parts[:first], f"{word} {parts[first]}", *parts[first + 1 :])
    return Chain(chain.id, (*before, Turn(last.role, text, last.images, parts)), chain.reply)


def open_pictures(chain: Chain) -> list[Any]:
    """Return the pixels of all pictures through the one door, edits applied: as a model is asked, so it is taught."""
    try:
        return [open_image(image).convert("RGB") for image in chain.pictures]
    except DataError as error:
        raise DataError(f"{chain.id}: {error}") from None


def message_of(turn: Turn) -> dict[str, Any]:
    """Return a turn as the message a chat template takes, pictures as placeholders where they stand."""
    shown = turn.arrange([{"type": "image"} for _ in turn.images])
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in shown]
    return {"role": turn.role, "content": content}


def _said(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def sft_row(chain: Chain) -> dict[str, Any]:
    """Return prompt and completion: the loss is on the completion only."""
    prompt = [message_of(turn) for turn in chain.turns]
    return {"images": open_pictures(chain), "prompt": prompt, "completion": _said(chain.reply)}


def preference_row(chain: Chain) -> dict[str, Any]:
    """Return a prompt with the better and the worse reply."""
    prompt = [message_of(turn) for turn in chain.turns]
    chosen, rejected = _said(chain.reply), _said(chain.rejected)
    return {"images": open_pictures(chain), "prompt": prompt, "chosen": chosen, "rejected": rejected}


def prompt_row(chain: Chain) -> dict[str, Any]:
    """Return a prompt with what a reward needs to know of it."""
    prompt = [message_of(turn) for turn in chain.turns]
    labels = {"answers": list(chain.answers), "options": list(chain.options), "facts": list(chain.facts)}
    return {"images": open_pictures(chain), "prompt": prompt, **labels}
