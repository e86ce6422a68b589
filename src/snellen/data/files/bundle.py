"""Samples to a portable folder and back: items, pictures named by content, and a manifest of checksums."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError, MissingExtra, UsageError
from ...core.ids import file_sha256, sha256_hex
from ...core.message_parts import all_pictures, all_videos, change_pictures
from ...core.types import Image, Sample
from ..images.decode import read_bytes, read_header
from ..images.embedded import ImageStore
from .croissant import CARD, LINES, PARQUET, Field, Rows, card_bytes
from .work import Mapper, WorkSpec, do_here


class ReadPicture(Struct, frozen=True, array_like=True):
    """A picture's file and what its header says; or what is wrong with it."""

    data: bytes = b""
    mime: str = ""
    width: int = 0
    height: int = 0
    problem: str = ""


class PictureReader:
    """Reads pictures. What is wrong with one belongs to its record, and is said there."""

    def __init__(self, settings: bytes) -> None:
        self.facts: dict[str, Any] = {}

    def __call__(self, item: bytes) -> bytes:
        """Return the files of the pictures of one record."""
        images = msgspec.msgpack.decode(item, type=list[Image])
        return msgspec.msgpack.encode([_read_picture(image) for image in images])


def _read_picture(image: Image) -> ReadPicture:
    try:
        data = read_bytes(image)
        header = read_header(data, image.ref[:80])
    except DataError as error:
        return ReadPicture(problem=str(error))
    return ReadPicture(data, header.mime, header.width, header.height)


MANIFEST = "bundle.json"
FORMAT = "snellen-bundle/1"
ROWS_A_GROUP = 512
WORK = "snellen.data.files.bundle:PictureReader"
COLUMNS = ("id", "question", "form", "options", "answers", "images", "group", "tags", "sample")


class Manifest(Struct, frozen=True):
    """The first thing to read in a bundle."""

    name: str
    samples: int
    images: int
    items: str
    items_sha256: str
    licence: str = ""
    source: str = ""
    seed: int = 0
    made_by: str = ""
    format: str = FORMAT


def write_bundle(
    samples: Iterable[Sample], out: Path, parquet: bool = False, mapper: Mapper = do_here, **facts: Any
) -> Manifest:
    """Write a bundle folder; nothing is left behind if it fails. Every picture is opened and checked, by `mapper`."""
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MANIFEST).is_file())):
        raise UsageError(f"{out} exists and is not a bundle: choose another folder")
    draft = out.with_name(f".{out.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        manifest = _fill(draft, samples, parquet, mapper, facts)
        (draft / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        (draft / CARD).write_bytes(_describe(draft, manifest, parquet))
        if out.exists():
            shutil.rmtree(out)
        draft.replace(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


DESCRIBED = {
    "id": Field("the question's id"),
    "form": Field("what kind of answer is wanted"),
    "question": Field("the question"),
    "options": Field("the options, in their order", repeated=True),
    "answers": Field("the right answers as texts", repeated=True),
}
"""The columns that croissant.json describes; the pictures of a row are files of the set beside it."""


def _describe(folder: Path, manifest: Manifest, parquet: bool) -> bytes:
    """Return the bundle's description in Croissant; of lines only the columns that every one has."""
    fields = dict(DESCRIBED)
    if not parquet:
        with (folder / manifest.items).open("rb") as lines:
            for line in lines:
                held = msgspec.json.decode(line)
                fields = {name: field for name, field in fields.items() if name in held}
    rows = Rows(manifest.items, manifest.items_sha256, fields, PARQUET if parquet else LINES)
    endings = sorted({file.suffix.removeprefix(".") for file in (folder / "images").glob("*.*")})
    about = {"name": manifest.name or folder.name, "licence": manifest.licence, "url": manifest.source}
    return card_bytes(about, rows, {"images": endings} if endings else {})


def _fill(folder: Path, samples: Iterable[Sample], parquet: bool, mapper: Mapper, facts: dict[str, Any]) -> Manifest:
    store, seen, count = _Pictures(folder), set[str](), 0
    items = folder / ("items.parquet" if parquet else "items.jsonl")
    with _Parquet(items) if parquet else _Lines(items) as writer:
        for sample in store.read_pictures(samples, mapper):
            if sample.id in seen:
                raise DataError(f"record {count + 1}: id {sample.id!r} occurs twice")
            if all_videos(sample):
                raise DataError(f"record {count + 1} ({sample.id}) has a video: bundles can hold pictures only")
            seen.add(sample.id)
            count += 1
            writer.write(change_pictures(sample, partial(store.keep, where=f"record {count} ({sample.id})")))
    return Manifest(samples=count, images=store.count, items=items.name, items_sha256=file_sha256(items), **facts)


class _Pictures:
    """Copies each picture once; the same reference is not read twice."""

    def __init__(self, folder: Path) -> None:
        self._store = ImageStore(folder / "images")
        self._asked: set[str] = set()
        self._known: dict[str, Image | str] = {}
        self.count = 0

    def read_pictures(self, samples: Iterable[Sample], mapper: Mapper) -> Iterator[Sample]:
        """Yield the samples in order, each once its pictures were read; reading may run ahead."""
        waiting: deque[tuple[Sample, list[str]]] = deque()

        def items() -> Iterator[bytes]:
            for sample in samples:
                new = {_key(image): image for image in all_pictures(sample) if _key(image) not in self._asked}
                self._asked.update(new.keys())
                waiting.append((sample, list(new)))
                yield msgspec.msgpack.encode(list(new.values()))

        for result in mapper(WorkSpec(WORK, b""), items()):
            sample, keys = waiting.popleft()
            for key, read in zip(keys, msgspec.msgpack.decode(result, type=list[ReadPicture]), strict=True):
                self._keep(key, read)
            yield sample

    def keep(self, image: Image, where: str) -> Image:
        """Return a picture's reference in the bundle."""
        known = self._known[_key(image)]
        if isinstance(known, str):
            raise DataError(f"{where}: {known}")
        return msgspec.structs.replace(known, edits=image.edits, page=image.page)

    def _keep(self, key: str, read: ReadPicture) -> None:
        if read.problem:
            self._known[key] = read.problem
            return
        kept = self._store.put(read.data)
        name, size = f"images/{Path(kept.ref).name}", (read.width, read.height)
        self._known[key] = Image(name, read.mime, *size, sha256=kept.sha256)
        self.count = len({known.ref for known in self._known.values() if isinstance(known, Image)})


def _key(image: Image) -> str:
    return image.ref if len(image.ref) < 512 else sha256_hex(image.ref.encode())


class _Lines:
    """Items as JSON Lines: readable by anything, no extra needed."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("wb")

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, sample: Sample) -> None:
        """Add one line."""
        self._stream.write(msgspec.json.encode(sample) + b"\n")


class _Parquet:
    """Items as Parquet: plain columns for other tools, and the whole record as JSON in `sample`."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise MissingExtra("parquet", "writing Parquet") from None
        text, texts = pyarrow.string(), pyarrow.list_(pyarrow.string())
        kinds = {"options": texts, "answers": texts, "images": texts}
        self._schema = pyarrow.schema([(name, kinds.get(name, text)) for name in COLUMNS])
        self._table = pyarrow.Table
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema)
        self._rows: list[dict[str, Any]] = []

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._writer.close()

    def write(self, sample: Sample) -> None:
        """Add one row."""
        row: dict[str, Any] = {name: getattr(sample, name) for name in ("id", "question", "group")}
        row |= {name: list(getattr(sample, name)) for name in ("options", "answers")}
        row |= {"form": sample.form.value, "images": [image.ref for image in sample.images]}
        row |= {"tags": msgspec.json.encode(sample.tags).decode(), "sample": msgspec.json.encode(sample).decode()}
        self._rows.append(row)
        if len(self._rows) >= ROWS_A_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a bundle folder."""
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is not a bundle manifest: {error}") from None
    if manifest.format != FORMAT:
        raise DataError(f"{path} is format {manifest.format!r}; this version reads {FORMAT!r}")
    return manifest


def read_bundle(folder: Path) -> Iterator[Sample]:
    """Yield the Samples of a bundle, picture references made absolute; the items file must match its checksum."""
    manifest = read_manifest(folder)
    items = folder / manifest.items
    if not items.is_file():
        raise DataError(f"{items} is missing from the bundle")
    if not items_match(folder, manifest):
        raise DataError(f"{items} does not match its checksum in {MANIFEST}: the bundle was changed or is incomplete")
    return decode_items(items, folder)


def items_match(folder: Path, manifest: Manifest) -> bool:
    """Tell whether the items file is the one the manifest was written for."""
    return file_sha256(folder / manifest.items) == manifest.items_sha256


def decode_items(items: Path, folder: Path) -> Iterator[Sample]:
    """Yield the Samples of an items file, picture references under `folder` made absolute."""
    decoder = msgspec.json.Decoder(Sample)
    root = folder.resolve()
    for number, text in enumerate(_texts(items), 1):
        try:
            sample = decoder.decode(text)
        except msgspec.DecodeError as error:
            raise DataError(f"{items.name} record {number}: {error}") from None
        yield change_pictures(sample, partial(_absolute, root=root, number=number))


def _texts(items: Path) -> Iterator[str | bytes]:
    if items.suffix == ".parquet":
        from .rows import read_rows

        yield from (row["sample"] for _, row in read_rows(items))
    else:
        with items.open("rb") as lines:
            yield from lines


def _absolute(image: Image, root: Path, number: int) -> Image:
    path = (root / image.ref).resolve()
    if not path.is_relative_to(root):
        raise DataError(f"record {number}: picture {image.ref!r} leads out of the bundle")
    return msgspec.structs.replace(image, ref=str(path))
