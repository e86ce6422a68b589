"""Dialogues of one's own, as rows with group and round or as a list in one row, to Samples with their history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice, pairwise
from typing import Any, NamedTuple

from msgspec.structs import replace

from ...core.errors import DataError
from ...core.message_parts import OPENING, holds_marker, marked_pictures, name_all, number_markers, write_marker
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
    """One message: who, what, and the pictures it brings. Markers stand in the text unless all pictures come first."""

    role: str
    text: str
    images: tuple[Image, ...]
    placeholders: int = 0
    """How many pictures of the row its text says stand in it."""


def with_rounds(samples: Iterable[Sample], *, needs_answers: bool) -> Iterator[Sample]:
    """Give each row of a group the rounds before it as turns; rows that have their turns already stay as they are.

    All rounds see the pictures of the first; where rounds have pictures of their own, or markers, each shows its own.
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
    _check_numbers(rounds)
    shared = _share_pictures(rounds)
    turns: tuple[Turn, ...] = ()
    options: list[list[str]] = []
    for place, sample in enumerate(rounds):
        meta = {**sample.meta, "history_options": list(options)} if any(options) else sample.meta
        yield replace(sample, turns=turns, meta=meta)
        if needs_answers and not sample.answers and place < len(rounds) - 1:
            fix = "--infer-method every uses the model's own"
            raise DataError(f"sample {sample.id!r} has no answer to put into the history of the next round; {fix}")
        asked = Turn("user", sample.question, () if shared else sample.images)
        turns = (*turns, asked, Turn("assistant", (*sample.answers, "")[0]))
        options.append(list(sample.options))


def _check_numbers(rounds: list[Sample]) -> None:
    for before, sample in pairwise(rounds):
        if sample.tags["round"] == before.tags["round"]:
            twice = f"group {sample.group!r} has round {sample.tags['round']} twice"
            raise DataError(f"{twice}: rounds must be numbered")


def _share_pictures(rounds: list[Sample]) -> bool:
    """Give all rounds the pictures of the first, and tell so; else each later one says where its own stand."""
    images = rounds[0].images
    differ = any(sample.images and sample.images != images for sample in rounds)
    if differ or any(map(_has_marker, rounds)):
        rounds[1:] = [_with_own(sample, shown=differ or _has_marker(sample)) for sample in rounds[1:]]
        return False
    rounds[:] = [replace(sample, images=images) for sample in rounds]
    return True


def _with_own(sample: Sample, *, shown: bool) -> Sample:
    """Return a later round whose text names the pictures it shows, but those of its options: they stand after them."""
    if not shown or not sample.images:
        return replace(sample, images=())
    own = min([*marked_pictures(sample.options), len(sample.images) + 1]) - 1
    return replace(sample, question=name_all(sample.question, own))


def _has_marker(sample: Sample) -> bool:
    return any(map(holds_marker, (sample.question, *sample.options)))


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
    system = "\n".join(one.text for one in said if one.role == "system")
    spoken = [one for one in said if one.role != "system"]
    _check_turns(spoken, where)
    spoken = _with_pictures(base.images, spoken, where)
    meta = {**base.meta, "system": system} if system else base.meta
    base = replace(base, images=(), meta=meta)
    if answer is not None:
        asked = spoken[:-1] if spoken[-1].role == "assistant" else spoken
        if len(asked) > 1 and any(map(holds_marker, base.options)):
            raise DataError(f"{where}: options name pictures (<image 1>) after several messages: of which one?")
        yield Round(_asked(base, asked), answer)
        return
    if base.options:
        raise DataError(f"{where} has options and no answer: which of its rounds are they of? Add a column `answer`")
    yield from _every_round(base, spoken, where)


def _every_round(base: Sample, spoken: list[Said], where: str) -> Iterator[Round]:
    pairs = len(spoken) // 2
    if not pairs:
        yield Round(_asked(base, spoken), None)
    for number in range(pairs):
        sample = replace(
            _asked(base, spoken[: 2 * number + 1]),
            id=f"{base.id}_{number}" if pairs > 1 else base.id,
            group=base.group or base.id,
            tags={**base.tags, "round": number} if pairs > 1 else base.tags,
        )
        yield Round(sample, spoken[2 * number + 1].text)
    if pairs and len(spoken) % 2:
        raise DataError(f"{where}: the last thing the user says has no answer; add one, or a column `answer`")


def _asked(base: Sample, said: Sequence[Said]) -> Sample:
    """Return the sample that asks the last of these messages, with those before it.

    Pictures that all come first are those of the sample; else each message shows its own, where its text says.
    """
    *before, last = said
    if not before or not (holds_marker(said[0].text) or any(one.images for one in said[1:])):
        turns = tuple(Turn(one.role, one.text) for one in before)
        return replace(base, question=last.text, turns=turns, images=said[0].images)
    turns = tuple(Turn(one.role, one.text, one.images) for one in before)
    question = name_all(last.text, len(last.images))
    return replace(base, question=question, turns=turns, images=last.images)


def _check_turns(spoken: list[Said], where: str) -> None:
    if not spoken:
        raise DataError(f"{where}: its messages hold nothing that the user says")
    for place, one in enumerate(spoken):
        wanted = "assistant" if place % 2 else "user"
        if one.role != wanted:
            raise DataError(f"{where}: message {place + 1} is the {one.role}'s; user and assistant must take turns")


def _with_pictures(own: tuple[Image, ...], spoken: list[Said], where: str) -> list[Said]:
    """Return the messages with their pictures: those they bring, or the row's in the order of the placeholders.

    Without any placeholder the row's pictures are those of the first message.
    """
    brought = tuple(image for one in spoken for image in one.images)
    told = sum(one.placeholders for one in spoken)
    _check_pictures(own, brought, told, where)
    _check_assistant(spoken, where)
    if not own or brought:
        return spoken
    if not told:
        return [spoken[0]._replace(images=own), *spoken[1:]]
    left = iter(own)
    return [one._replace(images=tuple(islice(left, one.placeholders))) for one in spoken]


def _check_pictures(own: tuple[Image, ...], brought: tuple[Image, ...], told: int, where: str) -> None:
    """Refuse placeholders without their pictures, and pictures of messages beside other ones of the row."""
    if told and told != len(own):
        raise DataError(f"{where}: {told} × {PLACEHOLDER} in its messages and {len(own)} pictures in its columns")
    if own and brought and own != brought:
        raise DataError(f"{where} has pictures in its messages and in a column; leave one out with --map")


def _check_assistant(spoken: list[Said], where: str) -> None:
    for number, one in enumerate(spoken, 1):
        if one.images and one.role == "assistant":
            raise DataError(f"{where}: message {number} is the assistant's and brings a picture; only the user's can")


def _read_message(message: Any, pictures: Pictures, where: str) -> Said:
    if not isinstance(message, dict):
        raise DataError(f"{where}: a message must be an object with role and content, not {type(message).__name__}")
    role = ROLES.get(str(message.get("role", message.get("from", ""))).casefold())
    if role is None:
        raise DataError(f"{where}: a message has no role (role or from: user, assistant, system, human, gpt)")
    content = next((message[key] for key in ("content", "value", "text") if message.get(key) is not None), None)
    if isinstance(content, str):
        return _read_text(role, content)
    if not isinstance(content, list):
        raise DataError(f"{where}: a message has no content (content, value or text)")
    return _read_parts(role, [_read_part(part, pictures, where) for part in content])


def _read_text(role: str, content: str) -> Said:
    """Read a text with placeholders: those before the first word go, as their pictures come first anyway."""
    told = content.count(PLACEHOLDER) if role == "user" else 0
    if not told:
        return Said(role, content.strip("\n") if role == "user" else content, ())
    bare = content.replace(PLACEHOLDER, "").strip("\n")
    opening = OPENING.match(content)
    if opening is not None and opening[0].count(PLACEHOLDER) == told:
        return Said(role, bare, (), told)
    return Said(role, number_markers([content.strip("\n")])[0], (), told)


def _read_parts(role: str, parts: Sequence[str | Image]) -> Said:
    """Read a list of parts: pictures after a text become markers in it."""
    images = tuple(part for part in parts if isinstance(part, Image))
    places = [place for place, part in enumerate(parts) if isinstance(part, Image)]
    if places == list(range(len(places))):
        return Said(role, "\n".join(part for part in parts if isinstance(part, str)), images)
    text, numbers = "", count(1)
    for place, part in enumerate(parts):
        joins = place and isinstance(part, str) and isinstance(parts[place - 1], str)
        text += ("\n" if joins else "") + (part if isinstance(part, str) else write_marker(next(numbers)))
    return Said(role, text, images)


def _read_part(part: Any, pictures: Pictures, where: str) -> str | Image:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("text", "input_text"):
        return str(part.get("text", ""))
    if kind in ("image_url", "image", "input_image"):
        value = part.get("image_url", part.get("image"))
        value = value.get("url") if isinstance(value, dict) and "url" in value else value
        return pictures.read([value], where)[0]
    raise DataError(f"{where}: a part of a message is {kind!r}; text and image_url are known")
