"""ZIP archives of pictures beside a table: a member's bytes by the name a row gives it, within limits, in memory."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from ...core.errors import DataError
from ..images.frames import MAX_FILE_BYTES

BAD_ZIP = (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError, zlib.error)
"""What `zipfile` raises on damaged, encrypted or unknown members."""


class PictureZips:
    """The archives of a folder, or one archive; opened when the first picture is looked for."""

    def __init__(self, place: Path) -> None:
        self._files = [place] if place.is_file() else sorted(place.glob("*.[zZ][iI][pP]"))
        self._open: list[zipfile.ZipFile] | None = None
        self._names: dict[str, list[tuple[zipfile.ZipFile, str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._files)

    def read_member(self, name: str, where: str) -> bytes | None:
        """Return a picture by the path it has in an archive, or below the archive's one folder; None if there is none.

        Two members of that name are refused: which is meant is not known.
        """
        if self._open is None:
            self._open = [self._list(file) for file in self._files]
        found = self._names.get(name.replace("\\", "/").removeprefix("./"), [])
        if not found:
            return None
        if len(found) > 1:
            both = " and ".join(f"{archive.filename}: {member}" for archive, member in found[:2])
            raise DataError(f"{where}: picture {name!r} is in {both}; take one away, or unpack them")
        return _unpacked(*found[0], where)

    def _list(self, file: Path) -> zipfile.ZipFile:
        try:
            archive = zipfile.ZipFile(file)
        except BAD_ZIP as error:
            raise DataError(f"{file.name} is not a readable ZIP archive: {error}") from None
        members = [member for member in archive.namelist() if not member.endswith("/")]
        tops = {member.partition("/")[0] for member in members if not member.startswith("__MACOSX/")}
        for member in members:
            self._names.setdefault(member, []).append((archive, member))
            below = member.partition("/")[2] if len(tops) == 1 else ""
            if below:
                self._names.setdefault(below, []).append((archive, member))
        return archive


def _unpacked(archive: zipfile.ZipFile, member: str, where: str) -> bytes:
    try:
        size = archive.getinfo(member).file_size
        if size > MAX_FILE_BYTES:
            limit = f"the limit is {MAX_FILE_BYTES >> 20} MB"
            raise DataError(f"{where}: {member} in {archive.filename} has {size >> 20} MB; {limit}")
        with archive.open(member) as stream:  # the size may lie: no more than the limit is ever unpacked
            data = stream.read(MAX_FILE_BYTES + 1)
    except BAD_ZIP as error:
        raise DataError(f"{where}: {member} in {archive.filename} cannot be unpacked: {error}") from None
    if len(data) > MAX_FILE_BYTES:
        raise DataError(f"{where}: {member} in {archive.filename} is larger than {MAX_FILE_BYTES >> 20} MB")
    return data
