"""A dataset's own published files to Items: one question each, still as the annotators wrote it."""

from __future__ import annotations

import os
import pickletools  # lists instructions, runs none
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...core.errors import DataError, did_you_mean
from ...core.types import Image
from ...data.files.jsonstream import iterate_array, iterate_members
from ...data.files.rows import READERS, read_rows
from ...data.images.decode import read_bytes, read_header

Stack = list[Any]
_MARK = object()


def read_pickled(path: Path) -> Any:
    """Return the value in the file, or DataError if it holds anything but plain data."""
    stack: Stack = []
    memo: dict[int, Any] = {}
    try:
        for code, argument, _ in pickletools.genops(path.read_bytes()):
            if code.name == "STOP":
                return stack.pop()
            _step(code.name, argument, stack, memo)
    except (ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is cut off or is not a pickle of plain data: {error}") from None
    raise DataError(f"{path} is cut off: the end mark is missing")


def _step(name: str, argument: Any, stack: Stack, memo: dict[int, Any]) -> None:
    if name in BUILDERS:
        BUILDERS[name](stack)
    elif name in PUTS:
        memo[len(memo) if argument is None else int(argument)] = stack[-1]
    elif name not in IGNORED:
        stack.append(_value(name, argument, memo))


def _value(name: str, argument: Any, memo: dict[int, Any]) -> Any:
    """Return what an instruction puts on the stack."""
    if name in VALUES:
        return argument
    if name in FIXED:
        return FIXED[name]()
    if name in GETS:
        return memo[int(argument)]
    raise ValueError(f"the instruction {name} can run code")


def _since_mark(stack: Stack) -> list[Any]:
    """Take everything above the last mark."""
    place = len(stack) - 1 - stack[::-1].index(_MARK)
    taken = stack[place + 1 :]
    del stack[place:]
    return taken


def _append(stack: Stack) -> None:
    value = stack.pop()
    stack[-1].append(value)


def _appends(stack: Stack) -> None:
    values = _since_mark(stack)
    stack[-1].extend(values)


def _set_item(stack: Stack) -> None:
    value, key = stack.pop(), stack.pop()
    stack[-1][key] = value


def _set_items(stack: Stack) -> None:
    pairs = _pairs(_since_mark(stack))
    stack[-1].update(pairs)


def _collect(kind: Callable[[list[Any]], Any], stack: Stack) -> None:
    stack.append(kind(_since_mark(stack)))


def _pairs(values: list[Any]) -> dict[Any, Any]:
    return dict(zip(values[::2], values[1::2], strict=True))


def _short_tuple(size: int, stack: Stack) -> None:
    values = tuple(stack[-size:])
    del stack[-size:]
    stack.append(values)


IGNORED = ("PROTO", "FRAME")
PUTS = ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE")
GETS = ("GET", "BINGET", "LONG_BINGET")
VALUES = (
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES",
)  # fmt: skip
FIXED: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: _MARK,
}
BUILDERS: dict[str, Callable[[Stack], None]] = {
    "APPEND": _append,
    "APPENDS": _appends,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "LIST": partial(_collect, list),
    "DICT": partial(_collect, _pairs),
    "TUPLE": partial(_collect, tuple),
    **{f"TUPLE{size}": partial(_short_tuple, size) for size in (1, 2, 3)},
}


Box = tuple[float, float, float, float]
"""x, y, width, height in pixels."""

Tags = dict[str, str | int | float | bool | None]
"""What a Sample can be grouped by."""

_PLACE = re.compile(r"\{(\w+)(?::0(\d+))?\}")


class Item(Struct, frozen=True, omit_defaults=True):
    """One raw question. What a reader does not know stays empty; a reformulator fills the options."""

    id: str
    image: str = ""
    """A file name as the dataset writes it, or a `data:` URL."""
    more_images: tuple[str, ...] = ()
    question: str = ""
    answer: str = ""
    accepted: tuple[str, ...] = ()
    """Every answer an annotator gave: never a distractor, and all right for an open question."""
    options: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """Question or answer kinds from narrow to wide."""
    slots: dict[str, str] = {}
    """Texts a question template can name ({caption}, {method}, {context})."""
    wordings: tuple[str, ...] = ()
    """Several wordings of the question, where the dataset brings its own."""
    boxes: tuple[Box, ...] = ()
    size: tuple[int, int] | None = None
    crop: bool = False
    """Cut the first box out instead of drawing the boxes."""
    group: str | None = None
    tags: Tags = {}
    data: dict[str, Any] = {}
    """What the family's own reformulator needs."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The files of one dataset under one root; every path stays inside it."""

    root: Path
    files: Mapping[str, str]
    images: str = "{image}"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the card's `raw` table, for the reader."""

    def path(self, name: str) -> Path:
        """Return the file the card calls `name`, or say which file is missing."""
        if name not in self.files:
            raise DataError(f"the card names no file {name!r}{did_you_mean(name, self.files)}")
        path = self.inside(self.files[name])
        if not path.exists():
            raise DataError(f"{path} does not exist: put the dataset's {self.files[name]!r} under {self.root}")
        return path

    def has(self, name: str) -> bool:
        """Say whether an optional file is there."""
        return name in self.files and self.inside(self.files[name]).exists()

    def rows(self, name: str, *pointer: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a file; in JSON those of the array at `pointer` (none: the top, or `data`)."""
        path = self.path(name)
        if path.suffix == ".p" or (path.suffix == ".json" and not _is_lines(path)):
            records = read_pickled(path) if path.suffix == ".p" else iterate_array(path, pointer)
            yield from (_table(record, path, number) for number, record in enumerate(records, 1))
        else:
            reader = READERS[".jsonl"](path) if path.suffix == ".json" else read_rows(path)
            yield from (row for _, row in reader)

    def members(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield the (key, value) pairs of a JSON file that is one large object keyed by id."""
        return iterate_members(self.path(name))

    def lines(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield the numbered, non-empty lines of a text file, without a byte-order mark."""
        with self.path(name).open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")

    def glob(self, name: str) -> list[Path]:
        """Return the files that match the pattern the card calls `name`, sorted."""
        paths = sorted(path for path in self.root.glob(self.files[name]) if path.is_file())
        if not paths:
            raise DataError(f"no file matches {self.files[name]!r} under {self.root}")
        return [self.inside(path.relative_to(self.root).as_posix()) for path in paths]

    def tables(self, name: str) -> Iterator[tuple[Path, Iterator[dict[str, Any]]]]:
        """Yield each file that matches the pattern the card calls `name`, with its records."""
        for path in self.glob(name):
            yield path, Corpus(self.root, {name: path.relative_to(self.root.resolve()).as_posix()}).rows(name)

    def image(self, name: str, size: tuple[int, int] | None = None) -> Image:
        """Return the reference to a picture by the name the dataset gives it."""
        if name.startswith("data:"):
            return Image(name)
        width, height = size or (None, None)
        path = self.inside(fill(self.images, {"image": name}))  # no stat: whoever opens it looks
        return Image(str(path), width=width, height=height)

    def inside(self, relative: str) -> Path:
        """Resolve a path under the root; one that leads out of it is refused."""
        root = str(self.root.absolute())
        path = os.path.normpath(os.path.join(root, relative))  # noqa: PTH118 - a Path for each picture is slow
        if path != root and not path.startswith(root.rstrip(os.sep) + os.sep):
            raise DataError(f"path {relative!r} leads out of the data root {self.root}")
        return Path(path)


def fill(pattern: str, fields: Mapping[str, str]) -> str:
    """Fill `{image}` or, zero-padded, `{image:012}` in a file name pattern."""
    return _PLACE.sub(lambda match: fields[match[1]].zfill(int(match[2] or 0)), pattern)


def box_edits(item: Item, image: Image, colours: tuple[str, ...] = ("",)) -> tuple[str, ...]:
    """Return the edits that draw (or cut out) the item's pixel boxes on its picture, as fractions of its size."""
    if not item.boxes:
        return ()
    size = item.size or picture_size(image)
    if item.crop:
        return (f"crop:{_fractions(item.boxes[0], size, item.id)}",)
    marked = zip(item.boxes, cycle(colours), strict=False)
    return tuple(f"box:{_fractions(box, size, item.id)},{colour}".rstrip(",") for box, colour in marked)


def _fractions(box: Box, size: tuple[int, int], name: str) -> str:
    """Return `x0,y0,x1,y1` as shares of the picture; a box that misses the picture is an error."""
    (x, y, w, h), (width, height) = box, size
    x0, y0, x1, y1 = x / width, y / height, (x + w) / width, (y + h) / height
    if not (x0 < min(x1, 1) and y0 < min(y1, 1) and min(x1, y1) > 0):
        raise DataError(f"record {name}: box {(x, y, w, h)} lies outside the {width}×{height} picture")
    return ",".join(f"{value:.5g}" for value in (x0, y0, x1, y1))


def picture_size(image: Image) -> tuple[int, int]:
    """Return width and height in pixels from the picture's header."""
    if image.width and image.height:
        return image.width, image.height
    header = read_header(read_bytes(image), image.ref)
    return header.width, header.height


def need(record: Mapping[str, Any], key: str, where: str) -> Any:
    """Return `record[key]`, or name the record and the columns it has."""
    if key not in record:
        columns = ", ".join(map(str, record))
        raise DataError(f"{where} has no column {key!r}{did_you_mean(key, record)}; it has: {columns}")
    return record[key]


def _table(record: Any, path: Path, number: int) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise DataError(f"{path.name} record {number} is a {type(record).__name__}, not an object")
    return record


def _is_lines(path: Path) -> bool:
    """Say whether a `.json` file really holds one object a line, as some datasets publish."""
    with path.open("rb") as stream:
        first, second = stream.readline(1 << 20).strip(), stream.readline(1 << 20).strip()
    return first.startswith(b"{") and first.endswith(b"}") and second.startswith(b"{")
