"""Messages to one plain string, for models that take text and know no chat template; a reply up to its stop strings."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.types import Turn

ROLES = {"system": "", "user": "User: ", "assistant": "Assistant: "}


def plain_text(messages: Sequence[Turn], *, answer: bool = True, image_token: str = "") -> str:
    """Return the messages as text: one question as it is, a dialogue with role names and, if told, an open answer.

    `image_token` stands where each image of a turn does: before its text (unless that already holds it) or inside it.
    """
    texts = [(turn.role, _with_images(turn, image_token)) for turn in messages]
    if sum(role != "system" for role, _ in texts) == 1:
        return "\n".join(text for _, text in texts)
    lines = [ROLES.get(role, f"{role}: ") + text for role, text in texts]
    return "\n".join([*lines, "Assistant:" if answer else ""])


def separator(text: str) -> str:
    """Return what stands between a prompt and its continuation: a space, unless one or a special token ends it."""
    return "" if not text or text[-1].isspace() or text[-1] == ">" else " "


def _with_images(turn: Turn, image_token: str) -> str:
    if image_token and turn.parts:
        return "".join(turn.arrange([image_token] * len(turn.images)))
    if not image_token or image_token in turn.text:
        return turn.text
    return image_token * len(turn.images) + turn.text


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """Return a text up to the first of some stop strings."""
    ends = [text.index(stop) for stop in stops if stop and stop in text]
    return text[: min(ends)] if ends else text
