"""Dialogues of one's own, as rows with group and round or as a list in one row, to Samples with their history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice, pairwise
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from ...core.errors import DataError
from ...core.message_parts import (
    OPENING,
    VIDEO_MARKER,
    holds_marker,
    marked_pictures,
    name_all,
    number_markers,
    write_marker,
)
from ...core.types import Image, Sample, Turn, Video
from .row_media import Pictures, RowVideos

DIALOGUES = ("every", "every_likelihood", "every_with_gt", "last")
"""Inferencers that ask a round with the rounds before it."""
ROUNDS = ("all", "last")
ROLES = {
    **dict.fromkeys(("user", "human", "question"), "user"),
    **dict.fromkeys(("assistant", "gpt", "model", "answer", "bot"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
}
PLACEHOLDER = "<image>"
SHOWN = "\0image"
"""A part of a message that shows the row's next picture without naming it."""
VIDEO_PLACEHOLDER = "<video>"
Shown = TypeVar("Shown", Image, Video)


class Round(NamedTuple):
    """A sample without its answer, and the answer as the data has it."""

    sample: Sample
    answer: Any


class Message(NamedTuple):
    """One message: who, what, and the pictures it brings. Markers stand in the text unless all pictures come first."""

    role: str
    text: str
    images: tuple[Image, ...]
    placeholders: int = 0
    """How many pictures of the row its text says stand in it."""
    videos: tuple[Video, ...] = ()


class MediaReaders(NamedTuple):
    """What reads the pictures and the videos that messages bring."""

    pictures: Pictures
    videos: RowVideos


def with_rounds(samples: Iterable[Sample], *, needs_answers: bool) -> Iterator[Sample]:
    """Give each row of a group the rounds before it as turns; rows that have their turns already stay as they are.

    All rounds see the pictures of the first; where rounds have pictures of their own, or markers, each shows its own.
    A video stays in the round that showed it first.
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
    _show_videos_once(rounds)
    turns: tuple[Turn, ...] = ()
    options: list[list[str]] = []
    for place, sample in enumerate(rounds):
        meta = {**sample.meta, "history_options": list(options)} if any(options) else sample.meta
        yield replace(sample, turns=turns, meta=meta)
        if needs_answers and not sample.answers and place < len(rounds) - 1:
            fix = "--infer-method every uses the model's own"
            raise DataError(f"sample {sample.id!r} has no answer to put into the history of the next round; {fix}")
        asked = Turn("user", sample.question, () if shared else sample.images, videos=sample.videos)
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


def _show_videos_once(rounds: list[Sample]) -> None:
    """Leave out of later rounds what the history shows already, unless a marker says where it is shown again."""
    shown: set[Video] = set()
    for place, sample in enumerate(rounds):
        if sample.videos and not VIDEO_MARKER.search(sample.question):
            rounds[place] = replace(sample, videos=tuple(one for one in sample.videos if one not in shown))
        shown.update(sample.videos)


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


def list_rounds(base: Sample, messages: Sequence[Any], answer: Any, media: MediaReaders, where: str) -> Iterator[Round]:
    """Yield the rounds of a list of messages.

    With an answer of its own the row is one question, the last thing the user says; else every message of the user
    that is answered is a round of its own.
    """
    said = [_read_message(message, media, where) for message in messages]
    system = "\n".join(one.text for one in said if one.role == "system")
    spoken = [one for one in said if one.role != "system"]
    _check_turns(spoken, where)
    spoken = _with_videos(base.videos, _with_pictures(base.images, spoken, where), where)
    if system and base.meta.get("system", system) != system:
        raise DataError(f"{where} has a system prompt in its messages and another one in a column; leave one out")
    meta = {**base.meta, "system": system} if system else base.meta
    base = replace(base, images=(), videos=(), meta=meta)
    if answer is not None:
        asked = spoken[:-1] if spoken[-1].role == "assistant" else spoken
        if len(asked) > 1 and any(map(holds_marker, base.options)):
            raise DataError(f"{where}: options name pictures (<image 1>) after several messages: of which one?")
        yield Round(_asked(base, asked), answer)
        return
    if base.options:
        raise DataError(f"{where} has options and no answer: which of its rounds are they of? Add a column `answer`")
    yield from _every_round(base, spoken, where)


def check_question(question: Any, messages: Sequence[Any], where: str) -> None:
    """Refuse a question beside messages that do not ask it."""
    if isinstance(question, str) and question.strip() not in "\n".join(_walk_texts(messages)):
        raise DataError(f"{where} has messages and a question that is not in them; leave one of both out")


def _walk_texts(messages: Sequence[Any]) -> Iterator[str]:
    """Yield every text of messages, whatever their dialect."""
    for one in messages:
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict | list):
            yield from _walk_texts(list(one.values()) if isinstance(one, dict) else one)


def brings_pictures(messages: Sequence[Any]) -> bool:
    """Tell whether messages hold more than texts."""
    contents = [message.get("content") for message in messages if isinstance(message, dict)]
    return any(
        _kind_of(part) not in ("text", "input_text", "str")
        for content in contents
        if isinstance(content, list)
        for part in content
    )


def _every_round(base: Sample, spoken: list[Message], where: str) -> Iterator[Round]:
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


def _asked(base: Sample, said: Sequence[Message]) -> Sample:
    """Return the sample that asks the last of these messages, with those before it.

    Pictures that all come first are those of the sample; else each message shows its own, where its text says.
    """
    *before, last = said
    base = replace(base, videos=last.videos)
    if not before or not (holds_marker(said[0].text) or any(one.images for one in said[1:])):
        turns = tuple(Turn(one.role, one.text, videos=one.videos) for one in before)
        return replace(base, question=last.text, turns=turns, images=said[0].images)
    turns = tuple(Turn(one.role, one.text, one.images, videos=one.videos) for one in before)
    question = name_all(last.text, len(last.images))
    return replace(base, question=question, turns=turns, images=last.images)


def _check_turns(spoken: list[Message], where: str) -> None:
    if not spoken:
        raise DataError(f"{where}: its messages hold nothing that the user says")
    for place, one in enumerate(spoken):
        wanted = "assistant" if place % 2 else "user"
        if one.role != wanted:
            raise DataError(f"{where}: message {place + 1} is the {one.role}'s; user and assistant must take turns")


def _with_pictures(own: tuple[Image, ...], spoken: list[Message], where: str) -> list[Message]:
    """Return the messages with their pictures: those they bring, or the row's in the order of the placeholders.

    Without any placeholder the row's pictures are those of the first message.
    """
    brought = tuple(image for one in spoken for image in one.images)
    told = sum(one.placeholders for one in spoken)
    _check_pictures(own, brought, told, where)
    _check_assistant(spoken, where)
    if not own or brought:
        return spoken
    parts = _dealt(own, [one.placeholders for one in spoken])
    return [one._replace(images=images) for one, images in zip(spoken, parts, strict=True)]


def _check_pictures(own: tuple[Image, ...], brought: tuple[Image, ...], told: int, where: str) -> None:
    """Refuse placeholders without their pictures, and pictures of messages beside other ones of the row."""
    if told and told != len(own):
        fix = "one picture each is needed (--map images=COLUMN names where they are)"
        raise DataError(
            f"{where}: {told} × {PLACEHOLDER} in its messages and {len(own)} pictures in its columns; {fix}"
        )
    if own and brought and own != brought:
        raise DataError(f"{where} has pictures in its messages and in a column; leave one out with --map")


def _check_assistant(spoken: list[Message], where: str) -> None:
    for number, one in enumerate(spoken, 1):
        if (one.images or one.videos) and one.role == "assistant":
            brings = f"brings a {'picture' if one.images else 'video'}"
            raise DataError(f"{where}: message {number} is the assistant's and {brings}; only the user's can")


def _with_videos(own: tuple[Video, ...], spoken: list[Message], where: str) -> list[Message]:
    """Return the messages with their videos: those they bring, or the row's in the order of the placeholders.

    Without any placeholder the row's videos are those of the first message.
    """
    if not own:
        return spoken
    if any(one.videos for one in spoken):
        raise DataError(f"{where} has videos in its messages and in a column; leave one out with --map")
    told = [len(VIDEO_MARKER.findall(one.text)) if one.role == "user" else 0 for one in spoken]
    if sum(told) not in (0, len(own)):
        named = f"{sum(told)} × {VIDEO_PLACEHOLDER} in its messages"
        raise DataError(f"{where}: {named} and {len(own)} videos in its columns")
    return [one._replace(videos=videos) for one, videos in zip(spoken, _dealt(own, told), strict=True)]


def _dealt(own: tuple[Shown, ...], told: Sequence[int]) -> list[tuple[Shown, ...]]:
    """Return for each message what it shows of the row's own: as many as it names, or the first all of them."""
    left = iter(own)
    counts = told if any(told) else [len(own), *[0] * (len(told) - 1)]
    return [tuple(islice(left, count)) for count in counts]


def _read_message(message: Any, media: MediaReaders, where: str) -> Message:
    if not isinstance(message, dict):
        kind = type(message).__name__
        raise DataError(f"{where}: a message must be an object with role and content, not {kind}")
    role = _role_of(message, where)
    content = next((message[key] for key in ("content", "value", "text") if message.get(key) is not None), None)
    if isinstance(content, str):
        return _read_text(role, content)
    if not isinstance(content, list):
        raise DataError(f"{where}: a message has no content (content, value or text)")
    parts = [_read_part(part, media, where) for part in content]
    return _read_shown(role, parts, where) if SHOWN in parts else _read_parts(role, parts)


def _role_of(message: dict[str, Any], where: str) -> str:
    said = message.get("role", message.get("from"))
    role = ROLES.get(str(said).casefold())
    if role is None:
        what = "has no role" if said is None else f"has role {said!r}"
        raise DataError(f"{where}: a message {what} (role or from: user, assistant, system, human, gpt)")
    return role


def _read_shown(role: str, parts: Sequence[str | Image | Video], where: str) -> Message:
    """Read parts that show the row's pictures in turn, without naming them."""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise DataError(f"{where}: some pictures of a message are named and others are not; name all of them or none")
    return _read_text(role, "".join(PLACEHOLDER if part == SHOWN else part for part in texts))


def _read_text(role: str, content: str) -> Message:
    """Read a text with placeholders: those before the first word go, as their pictures come first anyway."""
    told = content.count(PLACEHOLDER) if role == "user" else 0
    if not told:
        return Message(role, content.strip("\n") if role == "user" else content, ())
    bare = content.replace(PLACEHOLDER, "").strip("\n")
    opening = OPENING.match(content)
    if opening is not None and opening[0].count(PLACEHOLDER) == told:
        return Message(role, bare, (), told)
    return Message(role, number_markers([content.strip("\n")])[0], (), told)


def _read_parts(role: str, parts: Sequence[str | Image | Video]) -> Message:
    """Read a list of parts: pictures and videos after a text become markers in it."""
    images = tuple(part for part in parts if isinstance(part, Image))
    videos = tuple(part for part in parts if isinstance(part, Video))
    places = [place for place, part in enumerate(parts) if not isinstance(part, str)]
    if places == list(range(len(places))) and not (images and videos):
        return Message(role, "\n".join(part for part in parts if isinstance(part, str)), images, videos=videos)
    return Message(role, _with_markers(parts), images, videos=videos)


def _with_markers(parts: Sequence[str | Image | Video]) -> str:
    text, numbers = "", count(1)
    for place, part in enumerate(parts):
        joins = place and isinstance(part, str) and isinstance(parts[place - 1], str)
        text += ("\n" if joins else "") + _as_text(part, numbers)
    return text


def _as_text(part: str | Image | Video, numbers: Iterator[int]) -> str:
    if isinstance(part, str):
        return part
    return VIDEO_PLACEHOLDER if isinstance(part, Video) else write_marker(next(numbers))


def _read_part(part: Any, media: MediaReaders, where: str) -> str | Image | Video:
    if isinstance(part, str):
        return part
    kind = _kind_of(part)
    if kind in ("text", "input_text"):
        return str(part.get("text", ""))
    if kind in ("image_url", "image", "input_image"):
        value = _picture_of(part)
        return SHOWN if value is None else media.pictures.read([value], where)[0]
    if kind in ("video_url", "video", "input_video"):
        value = part.get("video_url", part.get("video"))
        return media.videos.of_cell(value.get("url") if isinstance(value, dict) and "url" in value else value, where)
    raise DataError(f"{where}: a part of a message is {kind!r}; text, image_url and video_url are known")


def _kind_of(part: Any) -> Any:
    """Return what kind of part it is: what it says, or the one field it has (`{"image": "a.png"}`)."""
    if not isinstance(part, dict):
        return type(part).__name__
    return next(iter(part)) if len(part) == 1 and "type" not in part else part.get("type")


def _picture_of(part: dict[str, Any]) -> Any:
    """Return the picture of a part by whatever field its dialect has for it, or None."""
    value = part.get("image_url", part.get("image", part.get("source")))
    if isinstance(value, dict) and isinstance(value.get("data"), str):
        return f"data:{value.get('media_type', 'image/unknown')};base64,{value['data']}"
    return value.get("url") if isinstance(value, dict) and "url" in value else value
