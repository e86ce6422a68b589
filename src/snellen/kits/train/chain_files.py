"""Files of others to chains: messages, ShareGPT and LLaVA conversations, prompt and completion, our own chains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError
from ...core.types import Image, Turn
from ...data.files.rows import Row, read_rows
from .chains import Chain

MARKER = "<image>"
ROLES = {
    **{"human": "user", "user": "user"},
    **{"gpt": "assistant", "assistant": "assistant", "model": "assistant"},
    **{"system": "system"},
}
CONVERSATIONS = ("conversations", "messages", "conversation")
PICTURES = ("images", "image", "image_path", "picture")
PROMPTS = ("prompt", "question", "query", "instruction")
REPLIES = ("completion", "chosen", "response", "rationale", "answer")
Said = tuple[str, str | list[Any]]


def read_chains(path: Path, image_root: Path | None = None) -> Iterator[Chain]:
    """Yield one chain a reply of the model, each with all that was said before it; lazily, errors by record."""
    root = image_root or path.parent
    for number, row in read_rows(path):
        where = f"{path.name} record {number}"
        yield from _chains_of(row, f"{path.stem}:{number}", root, where)


def _chains_of(row: Row, name: str, root: Path, where: str) -> Iterator[Chain]:
    if "turns" in row and "id" in row:
        yield _own(row, root, where)
        return
    find = Finder(row, root, where)
    said, rejected = _said(row, where), _text(row, "rejected", where) if "rejected" in row else ""
    turns: list[Turn] = []
    replies = 0
    for role, content in said:
        if role != "assistant":
            turns.append(find.turn(role, content))
            continue
        replies += 1
        turn = find.turn(role, content)
        if not turn.text.strip():
            raise DataError(f"{where}: reply {replies} of the model is empty; give it a text or take the record out")
        if not turns or turns[-1].role != "user":
            raise DataError(f"{where}: reply {replies} of the model answers nothing that a user said")
        yield Chain(f"{name}.{replies}", tuple(turns), turn.text, rejected)
        turns.append(turn)
    find.check_all_used()
    if not replies:
        raise DataError(f"{where}: nothing the model should reply (no turn of 'assistant' or 'gpt')")


def _own(row: Row, root: Path, where: str) -> Chain:
    """Return a chain as we write it ourselves; pictures beside the file are found."""
    try:
        chain = msgspec.convert(row, Chain)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {error}") from None
    return found_from(chain, root)


def found_from(chain: Chain, root: Path) -> Chain:
    """Return a chain whose pictures are found from anywhere: what was relative is relative to `root`."""
    turns = tuple(msgspec.structs.replace(turn, images=tuple(_at(image, root) for image in turn.images))
                  for turn in chain.turns)  # fmt: skip
    return msgspec.structs.replace(chain, turns=turns)


def _at(image: Image, root: Path) -> Image:
    return image if "://" in image.ref[:9] or image.ref[:5] == "data:" else msgspec.structs.replace(
        image, ref=str(root / image.ref)
    )  # fmt: skip


def _said(row: Row, where: str) -> list[Said]:
    """Return who said what, from the conversation, or from prompt and completion."""
    for field in CONVERSATIONS:
        if isinstance(row.get(field), list):
            system = [("system", row["system"])] if isinstance(row.get("system"), str) and row["system"] else []
            return [*system, *(_one_said(turn, f"{where}, turn {n}") for n, turn in enumerate(row[field], 1))]
    prompt, reply = _first(row, PROMPTS), _first(row, REPLIES)
    if not prompt or not reply:
        known = f"{', '.join(CONVERSATIONS)}, or prompt and completion ({', '.join(REPLIES[1:])})"
        raise DataError(f"{where}: no conversation; known fields: {known}; it has {', '.join(row) or 'none'}")
    return [("user", _text(row, prompt, where)), ("assistant", _text(row, reply, where))]


def _first(row: Row, names: tuple[str, ...]) -> str:
    return next((name for name in names if name in row), "")


def _one_said(turn: Any, where: str) -> Said:
    if not isinstance(turn, Mapping):
        raise DataError(f"{where}: a turn is an object with role and content, or from and value")
    role, content = turn.get("role", turn.get("from")), turn.get("content", turn.get("value"))
    if role not in ROLES:
        raise DataError(f"{where}: unknown speaker {role!r}; known: {', '.join(ROLES)}")
    if not isinstance(content, str | list):
        raise DataError(f"{where}: content is neither a text nor a list of parts")
    return ROLES[role], content


def _text(row: Row, name: str, where: str) -> str:
    value = row[name]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):  # one message in a list
        value = value[0].get("content")
    if not isinstance(value, str):
        raise DataError(f"{where}: {name} is not a text")
    return value


class Finder:
    """The pictures of one record, handed out in the order of their markers."""

    def __init__(self, row: Row, root: Path, where: str) -> None:
        self._root, self._where = root, where
        listed: Any = next((row[name] for name in PICTURES if row.get(name)), [])
        self._waiting = [self.image(each) for each in (listed if isinstance(listed, list) else [listed])]
        self._handed = 0
        self._count = len(self._waiting)
        self._marked = MARKER in str([row.get(name) for name in (*CONVERSATIONS, "prompt", "question", "query")])

    def image(self, value: Any) -> Image:
        """Return one picture: a path beside the file, or a data: URL."""
        reference = value.get("path") if isinstance(value, Mapping) else value
        if not isinstance(reference, str) or not reference:
            raise DataError(f"{self._where}: a picture is a path, not {type(value).__name__}")
        return Image(reference if reference.startswith("data:") else str(self._root / reference))

    def turn(self, role: str, content: str | list[Any]) -> Turn:
        """Return a turn with the pictures that stand in it; without any marker all stand in the first of the user."""
        pieces = self._pieces(content)
        if not self._marked and self._handed == 0 and role == "user":
            pieces = [*(self._next() for _ in range(self._count)), *pieces]
        turn = _turn(role, pieces)
        if role == "assistant" and turn.images:
            raise DataError(f"{self._where}: a picture in what the model says; pictures stand in turns of the user")
        return turn

    def _pieces(self, content: str | list[Any]) -> list[str | Image]:
        if isinstance(content, str):
            texts = content.split(MARKER)
            pieces: list[str | Image] = [texts[0]]
            for text in texts[1:]:
                pieces += [self._next(), text]
            return [piece for piece in pieces if piece not in ("", "\n")] if len(texts) > 1 else pieces
        return [self._part(part) for part in content]

    def _part(self, part: Any) -> str | Image:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text" and isinstance(part.get("text"), str):
            return str(part["text"])
        if kind == "image":
            self._marked = True
            given = part.get("image") or part.get("path") or part.get("url")
            return self.image(given) if given else self._next()
        if kind == "image_url":
            self._marked = True
            url = part.get("image_url")
            return self.image(url.get("url") if isinstance(url, Mapping) else url)
        raise DataError(f"{self._where}: a part of a message is a text or an image, not {kind!r}")

    def _next(self) -> Image:
        if self._handed >= self._count:
            raise DataError(f"{self._where}: more {MARKER} markers than pictures ({self._count})")
        self._handed += 1
        return self._waiting[self._handed - 1]

    def check_all_used(self) -> None:
        """Refuse a picture that no marker shows: it would be left out in silence."""
        if self._handed < self._count:
            raise DataError(f"{self._where}: {self._count} pictures and {self._handed} {MARKER} markers")


def _turn(role: str, pieces: list[str | Image]) -> Turn:
    images = [piece for piece in pieces if isinstance(piece, Image)]
    counter = iter(range(len(images)))
    parts = tuple(piece if isinstance(piece, str) else next(counter) for piece in pieces)
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    return Turn(role, text, tuple(images), parts if len(pieces) > 1 and images else ())
