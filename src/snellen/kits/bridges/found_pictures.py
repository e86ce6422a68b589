"""Pictures that a file of predictions names: bytes it holds, addresses, or files beside it; never a path elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from ...core.types import Image
from ...data.foreign.damage_counts import Damage

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
