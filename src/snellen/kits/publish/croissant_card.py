"""The questions of a run as a dataset with its Croissant description: rows.jsonl, pictures, croissant.json."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from ...core.errors import DataError
from ...core.ids import file_sha256
from ...core.types import Image, Sample
from ...data.files.croissant import CARD, ENDINGS, Field, Rows, card_bytes
from ...data.images.decode import encode_png, open_image, read_bytes, read_header
from ...report.exported_run import Details, ExportedRun, check_details
from ...report.files import atomic_file, write_atomically

DETAILS = {
    "name": "the dataset's name",
    "description": "what it holds",
    "licence": "an address or an SPDX name",
    "url": "where it is published",
}
ROWS, PICTURES = "rows.jsonl", "img"
FIELDS: Final = {
    "id": Field("the question's id"),
    "task": Field("the task it belongs to"),
    "form": Field("what kind of answer is wanted"),
    "question": Field("the question"),
    "options": Field("the options, in their order", repeated=True),
    "answers": Field("the right answers as texts", repeated=True),
    "images": Field("the pictures, as paths beside this file", repeated=True),
    "sha256": Field("their SHA-256", repeated=True),
}


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
    rows = Rows(ROWS, file_sha256(output / ROWS), FIELDS)
    content = card_bytes(about, rows, {PICTURES: sorted(pictures.endings)})
    write_atomically(output / CARD, lambda file: file.write(content))
    return [output / CARD, output / ROWS]


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
            ending = ENDINGS.get(read_header(data, image.ref).mime) or "png"
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
