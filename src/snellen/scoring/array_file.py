"""Named numpy arrays in one file: written one after the other, read where they lie, each with its checksum.

The list of the arrays comes last, and the file's seal is the hash of that list: who knows the seal knows every byte.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from hashlib import sha256
from io import RawIOBase
from itertools import pairwise
from pathlib import Path
from typing import Any, Self
from zlib import crc32

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..core.errors import EnvironmentProblem
from .packed import AT_ONCE, MadeWhenAsked, PackedTexts, fewest_bytes

MAGIC = b"snellen columns 1\n"
ALIGNED = 64
"""Arrays begin at multiples of so many bytes."""
KINDS = "iufS"
"""Numbers and texts of fixed width; nothing of a file is ever an object."""
CHECKED_AT_ONCE = 1 << 20
_END = len(MAGIC) + 8
"""How large the list is, and the magic once more."""


class Lying(Struct, array_like=True, frozen=True):
    """Where an array lies, and what it is."""

    offset: int
    count: int
    kind: str
    crc: int

    @property
    def size(self) -> int:
        """Return its bytes."""
        return self.count * np.dtype(self.kind).itemsize


class Listed(Struct, frozen=True):
    """What is in a file."""

    arrays: dict[str, Lying]
    about: dict[str, Any]


class ArrayWriter:
    """Writes arrays as they come: none is held."""

    def __init__(self, file: RawIOBase, path: Path) -> None:
        self._file, self._path = file, path
        self._arrays: dict[str, Lying] = {}
        self._at = 0
        self._write(MAGIC)

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Write one array under a new name."""
        self._write(b"\0" * (-self._at % ALIGNED))
        content = np.ascontiguousarray(array).view(np.uint8).data if array.size else memoryview(b"")
        self._arrays[name] = Lying(self._at, array.size, array.dtype.str, crc32(content))
        self._write(content)

    def _write(self, content: bytes | memoryview) -> None:
        left = memoryview(content)
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
        except OSError as error:
            again = f"the run itself is safe, repeat with `snellen score {self._path.parent}`"
            raise EnvironmentProblem(f"cannot write {self._path}: {error.strerror}; {again}") from None
        self._at += len(content)

    def add_bytes(self, name: str, content: bytes) -> None:
        """Write bytes."""
        self.add(name, np.frombuffer(content, np.uint8))

    def add_texts(self, name: str, texts: Sequence[str]) -> None:
        """Write texts, as the block they are in or one after the other."""
        if isinstance(texts, PackedTexts):
            self.add(name, texts.block)
            return
        content = [text.encode("utf-8", "surrogatepass") for text in texts]
        self.add(f"{name} ends", fewest_bytes(np.cumsum([len(text) for text in content], dtype=np.int64)))
        self.add_bytes(name, b"".join(content))

    def end(self, about: dict[str, Any]) -> str:
        """Write the list, and return the seal of the file."""
        listed = msgspec.json.encode(Listed(self._arrays, about))
        self._write(listed + len(listed).to_bytes(8, "little") + MAGIC)
        return sha256(listed).hexdigest()


class ArrayFile:
    """Reads arrays; each is checked at its first use. Raises EnvironmentProblem for a file that is not as written."""

    def __init__(self, path: Path, file: int, listed: Listed) -> None:
        self._path, self._file = path, file
        self._mapped = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
        weakref.finalize(self, os.close, file)
        self._arrays, self.about = listed.arrays, listed.about
        self._checked: set[str] = set()

    @classmethod
    def sealed(cls, path: Path, seal: str) -> Self | None:
        """Open the file that has a seal; None where there is another one, or none."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        listed = _read_list(file)
        if sha256(listed).hexdigest() != seal:
            os.close(file)
            return None
        return cls(path, file, msgspec.json.decode(listed, type=Listed))

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def mapped_array(self, name: str) -> NDArray[Any]:
        """Return an array as it lies in the file: what is not looked at takes no memory."""
        lying = self._lying(name)
        if not lying.count:
            return np.empty(0, lying.kind)
        return np.frombuffer(self._mapped, lying.kind, lying.count, lying.offset)

    def read_array(self, name: str) -> NDArray[Any]:
        """Return a copy of an array: for those that are looked at once in a while, from one end to the other."""
        lying = self._lying(name)
        return np.frombuffer(os.pread(self._file, lying.size, lying.offset), lying.kind)

    def read_texts(self, name: str) -> Sequence[str]:
        """Return texts, each of which is made when it is asked for."""
        if f"{name} ends" in self:
            return LaidTexts(self.mapped_array(name), self.mapped_array(f"{name} ends"))
        return PackedTexts(self.mapped_array(name))

    def _lying(self, name: str) -> Lying:
        """Return where an array lies, after its first use without looking at it again."""
        lying = self._arrays.get(name)
        if lying is None or lying.kind[1:2] not in KINDS:
            raise self._damaged(f"{name!r} is missing")
        if name not in self._checked:
            found, end = 0, lying.offset + lying.size
            for at in range(lying.offset, end, CHECKED_AT_ONCE):
                found = crc32(os.pread(self._file, min(CHECKED_AT_ONCE, end - at), at), found)
            if found != lying.crc:
                raise self._damaged(f"{name!r}")
            self._checked.add(name)
        return lying

    def _damaged(self, what: str) -> EnvironmentProblem:
        advice = f"`snellen score {self._path.parent}` writes it again from the stored replies"
        return EnvironmentProblem(f"{self._path} is damaged ({what}: not what was written): {advice}")


def _read_list(file: int) -> bytes:
    """Return the list at the end of a file; nothing where there is none."""
    end = os.fstat(file).st_size - _END
    last = os.pread(file, _END, max(0, end))
    size = int.from_bytes(last[:8], "little")
    return os.pread(file, size, end - size) if size <= end and last[8:] == MAGIC else b""


class LaidTexts(MadeWhenAsked[str]):
    """Texts of any length one after the other."""

    def __init__(self, content: NDArray[np.uint8], ends: NDArray[Any]) -> None:
        self._content, self._ends = content, ends

    def __len__(self) -> int:
        return int(self._ends.size)

    def made(self, place: int) -> str:
        """Return one text."""
        start = int(self._ends[place - 1]) if place else 0
        return self._content[start : int(self._ends[place])].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), AT_ONCE):
            ends = self._ends[first : first + AT_ONCE].tolist()
            start = int(self._ends[first - 1]) if first else 0
            content = self._content[start : ends[-1]].tobytes()
            for before, end in pairwise((start, *ends)):
                yield content[before - start : end - start].decode("utf-8", "surrogatepass")
