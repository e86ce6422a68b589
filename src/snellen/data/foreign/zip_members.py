"""The members of a ZIP, those compressed by Zstandard (method 93) too, which Python reads itself from 3.14 on."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import BinaryIO

from ...core.errors import DataError, MissingExtra
from ..files.picture_zip import BAD_ZIP

ZSTANDARD = 93
MEMBER_LIMIT = 256 << 20
"""A member that unpacks to more is no sample, but a reason to eat the machine's memory."""
_LOCAL_HEADER = struct.Struct("<26xHH")


class LogArchive:
    """A ZIP opened for reading; of members of one name the last counts, as its writers mean it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream: BinaryIO = path.open("rb")
        try:
            self._archive = zipfile.ZipFile(self._stream)
        except BAD_ZIP as error:
            self._stream.close()
            raise DataError(f"{path} is no readable ZIP archive: {error}") from None
        self.members: dict[str, zipfile.ZipInfo] = {}
        self.repeated: list[str] = []
        for member in self._archive.infolist():
            if member.filename in self.members:
                self.repeated.append(member.filename)
            self.members[member.filename] = member

    def read(self, name: str) -> bytes:
        """Return the content of a member; one that is damaged or too large is refused by name."""
        member = self.members[name]
        try:
            if member.compress_type == ZSTANDARD:
                return self._unpack(member)
            with self._archive.open(member) as stream:
                return self._bounded(stream.read(MEMBER_LIMIT + 1), member)
        except (*BAD_ZIP, EOFError, struct.error) as error:
            raise DataError(f"{self._path}: member {name} cannot be read: {error}") from None

    def _unpack(self, member: zipfile.ZipInfo) -> bytes:
        try:
            import zstandard
        except ImportError:
            raise MissingExtra("inspect", f"reading {self._path.name} (members compressed by Zstandard)") from None
        self._stream.seek(member.header_offset)
        name_length, extra_length = _LOCAL_HEADER.unpack(self._stream.read(_LOCAL_HEADER.size))
        self._stream.seek(member.header_offset + _LOCAL_HEADER.size + name_length + extra_length)
        packed = io.BytesIO(self._stream.read(member.compress_size))
        try:
            # A member may hold several frames, one after the other.
            with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
                # The reader sets aside as much as it is asked for, so it is asked for what the member says it has.
                size = min(member.file_size, MEMBER_LIMIT) + 1
                return self._bounded(stream.read(size), member)
        except zstandard.ZstdError as error:
            raise DataError(f"{self._path}: member {member.filename} cannot be unpacked: {error}") from None

    def _bounded(self, data: bytes, member: zipfile.ZipInfo) -> bytes:
        if len(data) > min(member.file_size, MEMBER_LIMIT):
            limit = f"{MEMBER_LIMIT >> 20} MB" if member.file_size > MEMBER_LIMIT else "it says"
            raise DataError(f"{self._path}: member {member.filename} unpacks to more than {limit}")
        return data

    def close(self) -> None:
        """Close the file."""
        self._archive.close()
        self._stream.close()
