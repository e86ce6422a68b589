"""The questions of a run as a dataset with its Croissant description: rows.jsonl, pictures, croissant.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ...core.errors import DataError
from ...core.types import Image, Sample
from ...data.images.decode import encode_png, open_image, read_bytes, read_header
from ..files import atomic_file, write_atomically
from .exported_run import Details, ExportedRun, check_details

DETAILS = {
    "name": "the dataset's name",
    "description": "what it holds",
    "licence": "an address or an SPDX name",
    "url": "where it is published",
}
ROWS, PICTURES, CARD = "rows.jsonl", "img", "croissant.json"
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}
_CHUNK = 1 << 20
FIELDS: Final = {
    "id": ("sc:Text", False, "the question's id"),
    "task": ("sc:Text", False, "the task it belongs to"),
    "form": ("sc:Text", False, "what kind of answer is wanted"),
    "question": ("sc:Text", False, "the question"),
    "options": ("sc:Text", True, "the options, in their order"),
    "answers": ("sc:Text", True, "the right answers as texts"),
    "images": ("sc:Text", True, "the pictures, as paths beside this file"),
    "sha256": ("sc:Text", True, "their SHA-256"),
}
"""Column -> its type, whether it is a list, what it is."""
CONTEXT: Final[Mapping[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context as the specification (1.0) writes it: readers compare it whole."""


def write(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write rows, pictures and their description."""
    check_details(details, DETAILS, "croissant")
    output.mkdir(parents=True, exist_ok=True)
    pictures = _Pictures(output / PICTURES, run)
    with atomic_file(output / ROWS) as file:
        for task in run.tasks:
            for sample in run.reader.samples(task.name):
                file.write(
                    json.dumps(pictures.row(sample, task.name), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
                )
    about = {"name": " and ".join(task.name for task in run.tasks), "date": run.began.date().isoformat(), **details}
    card = write_card(output, FIELDS, about, pictures.endings)
    return [card, output / ROWS]


def write_card(folder: Path, fields: Mapping[str, Any], about: Mapping[str, str], endings: Iterable[str] = ()) -> Path:
    """Write croissant.json beside rows.jsonl and img/: what is there, with its hash and its columns."""
    card = describe(about, fields, _sha256(folder / ROWS), sorted(endings))
    content = json.dumps(card, indent=2, ensure_ascii=False).encode() + b"\n"
    write_atomically(folder / CARD, lambda file: file.write(content))
    return folder / CARD


def describe(about: Mapping[str, str], fields: Mapping[str, Any], digest: str, endings: list[str]) -> dict[str, Any]:
    """Return a dataset's description in Croissant 1.0."""
    files: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": ROWS,
            "name": ROWS,
            "contentUrl": ROWS,
            "encodingFormat": "application/jsonlines",
            "sha256": digest,
        }
    ]
    mimes = {ending: mime for mime, ending in _ENDINGS.items()}
    files += [
        {
            "@type": "cr:FileSet",
            "@id": f"pictures-{ending}",
            "name": f"pictures-{ending}",
            "encodingFormat": mimes[ending],
            "includes": f"{PICTURES}/*.{ending}",
        }
        for ending in endings
    ]
    return {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": about["name"],
        "description": about.get("description", f"Questions of {about['name']}, written by Snellen."),
        "license": about.get("licence", "unknown"),
        "url": about.get("url", "https://example.org/unpublished"),
        "version": "1.0.0",
        "datePublished": about["date"],
        "citeAs": about["name"],
        "distribution": files,
        "recordSet": [
            {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": list(_fields(fields))},
        ],
    }


def _fields(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, (kind, repeated, words) in fields.items():
        yield {
            "@type": "cr:Field",
            "@id": f"rows/{name}",
            "name": name,
            "description": words,
            "dataType": kind,
            **({"repeated": True} if repeated else {}),
            "source": {"fileObject": {"@id": ROWS}, "extract": {"column": name}},
        }


class _Pictures:
    """Pictures written once each, by their hash."""

    def __init__(self, folder: Path, run: ExportedRun) -> None:
        self._folder, self._run = folder, run
        self._known: dict[tuple[str, tuple[str, ...], Any], tuple[str, str] | None] = {}
        self.endings: set[str] = set()

    def row(self, sample: Sample, task: str) -> dict[str, Any]:
        """Return a question as a row; a picture that is gone is counted."""
        placed = [place for place in map(self._place, sample.images) if place is not None]
        return {
            "id": sample.id,
            "task": task,
            "form": sample.form.value,
            "question": sample.question,
            "options": list(sample.options),
            "answers": list(sample.answers),
            "images": [path for path, _ in placed],
            "sha256": [digest for _, digest in placed],
        }

    def _place(self, image: Image) -> tuple[str, str] | None:
        key = (image.ref, image.edits, image.frame)
        if key not in self._known:
            self._known[key] = self._put(image)
        return self._known[key]

    def _put(self, image: Image) -> tuple[str, str] | None:
        try:
            data = encode_png(open_image(image)) if image.edits else read_bytes(image)
            ending = _ENDINGS.get(read_header(data, image.ref).mime) or "png"
        except DataError:
            self._run.pictures_missing += 1
            return None
        digest = hashlib.sha256(data).hexdigest()
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{digest[:32]}.{ending}"
        if not path.exists():
            write_atomically(path, lambda file: file.write(data))
        self.endings.add(ending)
        return f"{PICTURES}/{path.name}", digest


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
