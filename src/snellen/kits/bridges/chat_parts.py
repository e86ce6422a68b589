"""Chat messages of any API to words and what names their pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ...core.types import Image
from .damage import Damage

HELD = ("data:image/", "https://")
FOLDERS_ABOVE = 4
"""A run's files lie so deep in its folder at most: MODEL, predictions, the work folder, what it was started in."""


def picture_beside(file: Path, ref: str) -> Image | None:
    """Return a picture that a file holds or names; of paths only such as lie below the file's own folders."""
    if ref.startswith(HELD):
        return Image(ref)
    place = PurePosixPath(ref.removeprefix("file://").replace("\\", "/"))
    if not ref or place.is_absolute() or ".." in place.parts or ":" in ref:
        return None
    folders = file.absolute().parents[:FOLDERS_ABOVE]
    found = next((folder / place for folder in folders if (folder / place).is_file()), None)
    return None if found is None else Image(str(found))


def pictures_beside(file: Path, refs: Iterable[str], row: str, damage: Damage) -> tuple[Image, ...]:
    """Return the pictures of a row that there are; those that there are not are counted."""
    found = []
    for ref in refs:
        picture = picture_beside(file, ref)
        if picture is None:
            damage.add("no_picture", row)
        else:
            found.append(picture)
    return tuple(found)


def content_of(messages: Any, roles: tuple[str | None, ...] = (None, "user", "human")) -> tuple[str, list[str]]:
    """Return the texts that these roles say, joined, and the references of their pictures in order."""
    if isinstance(messages, str):
        return messages, []
    if isinstance(messages, Mapping):
        messages = messages.get("messages", [messages])
    texts: list[str] = []
    refs: list[str] = []
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, Mapping) and message.get("role") in roles:
            for part in parts_of(message.get("content")):
                text, ref = read_part(part)
                texts += [text] if text else []
                refs += [ref] if ref else []
    return "\n".join(texts), refs


def parts_of(content: Any) -> list[Any]:
    """Return the parts of a message's content: a text alone is one."""
    return content if isinstance(content, list) else [content] if content else []


def read_part(part: Any) -> tuple[str, str]:
    """Return the text of a part, or what names its picture: one of both is empty."""
    if isinstance(part, str):
        return part, ""
    if not isinstance(part, Mapping):
        return "", ""
    picture = part.get("image_url", part.get("image", part.get("source")))
    if isinstance(picture, Mapping):
        picture = _addressed(picture)
    if isinstance(picture, str) and picture:
        return "", picture
    text = part.get("text", part.get("content"))
    return (text, "") if isinstance(text, str) else ("", "")


def _addressed(picture: Mapping[str, Any]) -> str:
    """Return the reference of a picture that is an object: its address, or its bytes as a data URL."""
    data = picture.get("data")
    if isinstance(data, str) and picture.get("type") in ("base64", None):
        return f"data:{picture.get('media_type') or picture.get('mime_type') or 'image/png'};base64,{data}"
    found = picture.get("url", picture.get("image_url"))
    return found if isinstance(found, str) else "unknown:picture"
