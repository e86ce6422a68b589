"""Dialogues of one's own, as rows with group and round or as a list in one row, to Samples with their history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from ...core.errors import DataError
from ...core.types import Image, Sample, Turn
from .row_pictures import Pictures

DIALOGUES = ("every", "every_likelihood", "every_with_gt", "last")
"""Inferencers that ask a round with the rounds before it."""
ROUNDS = ("all", "last")
ROLES = {
    **dict.fromkeys(("user", "human", "question"), "user"),
    **dict.fromkeys(("assistant", "gpt", "model", "answer", "bot"), "assistant"),
    "system": "system",
}
PLACEHOLDER = "<image>"


class Round(NamedTuple):
    """A sample without its answer, and the answer as the data has it."""

    sample: Sample
    answer: Any


class Said(NamedTuple):
    """One message: who, what, and the pictures it brings."""

    role: str
    text: str
    images: tuple[Image, ...]
    placeholders: int = 0
    """How many pictures its text says stand in it."""


def with_rounds(samples: Iterable[Sample], *, needs_answers: bool) -> Iterator[Sample]:
    """Give each row of a group the rounds before it as turns; rows that have their turns already stay as they are.

    All rounds see the pictures of the first. Rounds whose pictures differ are refused: which is meant is not known.
    """
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.turns or sample.group is None or "round" not in sample.tags:
            groups[f"\0{len(groups)}"] = [sample]
        else:
            groups.setdefault(sample.group, []).append(sample)
    for members in groups.values():
        yield from members if members[0].turns else _chained(members, needs_answers)


def _chained(members: list[Sample], needs_answers: bool) -> Iterator[Sample]:
    rounds = sorted(members, key=lambda sample: int(sample.tags.get("round") or 0))
    images = rounds[0].images
    turns: tuple[Turn, ...] = ()
    options: list[list[str]] = []
    for place, sample in enumerate(rounds):
        if place:
            _check_follows(rounds[place - 1], sample, images)
        meta = {**sample.meta, "history_options": list(options)} if any(options) else sample.meta
        yield replace(sample, turns=turns, images=images, meta=meta)
        if needs_answers and not sample.answers and place < len(rounds) - 1:
            fix = "--infer-method every uses the model's own"
            raise DataError(f"sample {sample.id!r} has no answer to put into the history of the next round; {fix}")
        turns = (*turns, Turn("user", sample.question), Turn("assistant", (*sample.answers, "")[0]))
        options.append(list(sample.options))


def _check_follows(before: Sample, sample: Sample, images: tuple[Image, ...]) -> None:
    """Refuse a round with the number of the one before it, or with other pictures than the first round's."""
    number = sample.tags["round"]
    if number == before.tags["round"]:
        raise DataError(f"group {sample.group!r} has round {number} twice: rounds must be numbered")
    if sample.images and sample.images != images:
        fix = "give every round the same picture, or ask the rows alone (--infer-method generation)"
        raise DataError(f"sample {sample.id!r}: round {number} has pictures of its own; {fix}")


def last_rounds(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Keep the last round of each dialogue."""
    before: Sample | None = None
    for sample in samples:
        if before is not None and (sample.group is None or sample.group != before.group):
            yield before
        before = sample
    if before is not None:
        yield before


def list_rounds(base: Sample, messages: Sequence[Any], answer: Any, pictures: Pictures, where: str) -> Iterator[Round]:
    """Yield the rounds of a list of messages.

    With an answer of its own the row is one question, the last thing the user says; else every message of the user
    that is answered is a round of its own.
    """
    said = [_read_message(message, pictures, where) for message in messages]
    if not any(one.role == "user" for one in said):
        raise DataError(f"{where}: its messages hold nothing that the user says")
    system = "\n".join(one.text for one in said if one.role == "system")
    spoken = [one for one in said if one.role != "system"]
    _check_turns(spoken, where)
    images = _all_pictures(base.images, spoken, where)
    meta = {**base.meta, "system": system} if system else base.meta
    base = replace(base, images=images, meta=meta)
    if answer is not None:
        asked = spoken[:-1] if spoken[-1].role == "assistant" else spoken
        yield Round(replace(base, question=asked[-1].text, turns=_turns(asked[:-1])), answer)
        return
    if base.options:
        raise DataError(f"{where} has options and no answer: which of its rounds are they of? Add a column `answer`")
    yield from _every_round(base, spoken, where)


def _every_round(base: Sample, spoken: list[Said], where: str) -> Iterator[Round]:
    pairs = len(spoken) // 2
    if not pairs:
        yield Round(replace(base, question=spoken[0].text), None)
    for number in range(pairs):
        sample = replace(
            base,
            id=f"{base.id}_{number}" if pairs > 1 else base.id,
            question=spoken[2 * number].text,
            turns=_turns(spoken[: 2 * number]),
            group=base.group or base.id,
            tags={**base.tags, "round": number} if pairs > 1 else base.tags,
        )
        yield Round(sample, spoken[2 * number + 1].text)
    if pairs and len(spoken) % 2:
        raise DataError(f"{where}: the last thing the user says has no answer; add one, or a column `answer`")


def _turns(said: Sequence[Said]) -> tuple[Turn, ...]:
    return tuple(Turn(one.role, one.text) for one in said)


def _check_turns(spoken: list[Said], where: str) -> None:
    for place, one in enumerate(spoken):
        wanted = "assistant" if place % 2 else "user"
        if one.role != wanted:
            raise DataError(f"{where}: message {place + 1} is the {one.role}'s; user and assistant must take turns")


def _all_pictures(own: tuple[Image, ...], spoken: list[Said], where: str) -> tuple[Image, ...]:
    """Return the pictures of a dialogue: the row's, or those its first message brings."""
    later = next((number for number, one in enumerate(spoken[1:], 2) if one.images or one.placeholders), None)
    if later is not None:
        raise DataError(f"{where}: message {later} brings a picture; only the first message may yet")
    brought = spoken[0].images
    told = spoken[0].placeholders
    if told and told != len(own):
        raise DataError(f"{where}: {told} × {PLACEHOLDER} in its messages and {len(own)} pictures in its columns")
    if own and brought and own != brought:
        raise DataError(f"{where} has pictures in its messages and in a column; leave one out with --map")
    return brought or own


def _read_message(message: Any, pictures: Pictures, where: str) -> Said:
    if not isinstance(message, dict):
        raise DataError(f"{where}: a message must be an object with role and content, not {type(message).__name__}")
    role = ROLES.get(str(message.get("role", message.get("from", ""))).casefold())
    if role is None:
        raise DataError(f"{where}: a message has no role (role or from: user, assistant, system, human, gpt)")
    content = next((message[key] for key in ("content", "value", "text") if message.get(key) is not None), None)
    if isinstance(content, str):
        text = content.replace(PLACEHOLDER, "").strip("\n") if role == "user" else content
        return Said(role, text, (), content.count(PLACEHOLDER) if role == "user" else 0)
    if not isinstance(content, list):
        raise DataError(f"{where}: a message has no content (content, value or text)")
    texts: list[str] = []
    images: list[Image] = []
    for part in content:
        _read_part(part, texts, images, pictures, where)
    return Said(role, "\n".join(texts), tuple(images))


def _read_part(part: Any, texts: list[str], images: list[Image], pictures: Pictures, where: str) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("text", "input_text"):
        texts.append(str(part.get("text", "")))
    elif kind in ("image_url", "image", "input_image"):
        value = part.get("image_url", part.get("image"))
        value = value.get("url") if isinstance(value, dict) and "url" in value else value
        images += pictures.read([value], where)
    else:
        raise DataError(f"{where}: a part of a message is {kind!r}; text and image_url are known")
