"""AI2's diagrams as their archive has them: a list of the test's pictures, and for each a JSON file of questions.

Questions that name letters (`abcLabel`) are asked of a picture with letters on its words. Ready ones lie in
`abc_images`; without that folder they are drawn by the boxes in `annotations`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...core.errors import DataError, EnvironmentProblem
from ...core.ids import sha256_hex
from ...core.types import Image
from ..files.rows import NOT_JSON, Row
from ..images.decode import encode_png, open_image, read_bytes
from ..images.frames import PictureError
from ..images.lettered import LetteredPlace, draw_letters

_Kind = TypeVar("_Kind")
Notes = dict[str, Counter[str]]
OVER, BESIDE = "over", "beside"
"""How letters stand on a picture: in place of the words (with mask), or next to them (without)."""
DRAWN = "letters drawn by Snellen from the archive's annotations: not the pictures of the hub's and the TSV's rows"
NO_QUESTIONS = "pictures of the test without a file of questions"


class _Question(Struct, rename="camel"):
    answer_texts: list[str | int | float]
    correct_answer: int
    question_id: str
    abc_label: bool


class _Questions(Struct, rename="camel"):
    image_name: str
    questions: dict[str, _Question]


class _Text(Struct, rename="camel"):
    rectangle: tuple[tuple[int, int], tuple[int, int]]
    replacement_text: str


class _Annotations(Struct):
    text: dict[str, _Text] = {}


class DiagramArchive:
    """The test of AI2D around its list of pictures; `drawn` is where pictures with letters are written."""

    def __init__(self, ids: Path, letters: str, drawn: Path | None, notes: Notes) -> None:
        self._ids, self._letters, self._drawn, self._notes = ids, letters, drawn, notes
        self._home = archive_home(ids)
        self._ready: dict[str, str] = {}

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the questions of every picture in the list, each with its picture and options."""
        number = 0
        for picture in read_picture_ids(self._ids):
            file = self._home / "questions" / f"{picture}.png.json"
            if not file.is_file():
                self._note(NO_QUESTIONS, picture)
                continue
            found = _decode(file, _Questions)
            if Path(found.image_name).name != found.image_name:
                raise DataError(f"questions/{file.name}: imageName {found.image_name!r} is no name of a file")
            for text, question in found.questions.items():
                number += 1
                yield number, self._row(text, question, found.image_name)

    def _row(self, text: str, question: _Question, name: str) -> Row:
        return {
            "id": question.question_id,
            "question": text,
            "options": list(map(str, question.answer_texts)),
            "answer": str(question.correct_answer),
            "image": self._picture(name, lettered=question.abc_label),
            "diagram": name,
            "letters": "yes" if question.abc_label else "no",
        }

    def _picture(self, name: str, *, lettered: bool) -> str:
        plain = self._home / "images" / name
        if not lettered or self._drawn is None:
            return str(plain)
        ready = self._home / "abc_images"
        if self._letters == OVER and ready.is_dir():
            return str(ready / name)
        if name not in self._ready:
            self._ready[name] = str(self._draw(name, plain, self._drawn))
        return self._ready[name]

    def _draw(self, name: str, plain: Path, folder: Path) -> Path:
        file = self._home / "annotations" / f"{name}.json"
        if not file.is_file():
            what = f"{name}: its questions name letters, and there is no annotations/{file.name} to draw them by"
            raise DataError(f"{what}; unpack the whole archive, or bring a folder abc_images with the pictures")
        self._note(DRAWN, name)
        if not plain.is_file():
            return plain  # a missing picture is reported where all of them are
        image = Image(str(plain))
        places = [_place(one) for one in _decode(file, _Annotations).text.values()]
        try:
            key = sha256_hex(b"\0".join((self._letters.encode(), read_bytes(image), repr(places).encode())))
            target = folder / f"letters-{key[:32]}.png"
            if not target.is_file():
                _write(target, encode_png(draw_letters(open_image(image), places, covered=self._letters == OVER)))
        except PictureError:
            return plain  # a damaged one too
        return target

    def _note(self, what: str, which: str) -> None:
        self._notes.setdefault(what, Counter())[which] += 1


def archive_home(ids: Path) -> Path:
    """Return the archive's folder: the one its list of pictures lies in, or `ai2d` in it, as the ZIP unpacks."""
    places = (ids.parent, ids.parent / "ai2d")
    found = next((place for place in places if (place / "questions").is_dir()), None)
    if found is None:
        raise DataError(
            f"{ids.name}: there is no folder questions beside it: unpack ai2d-all.zip in {str(ids.parent)!r}"
        )
    return found


def read_picture_ids(file: Path) -> list[str]:
    """Return the ids in a list of pictures, one a line without a head; one that stands there twice is refused."""
    try:
        lines = file.read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file.name} is no list of picture ids: {error}") from None
    found = [line.strip("\",'").removesuffix(".png") for line in lines]
    odd = next((one for one in found if not one.isdecimal()), None)
    if odd is not None or not found:
        raise DataError(f"{file.name} is no list of picture ids, one number a line: it has {odd!r}")
    twice = [one for one, count in Counter(found).items() if count > 1]
    if twice:
        raise DataError(f"{file.name} names picture {twice[0]} twice")
    return found


def _place(text: _Text) -> LetteredPlace:
    (one, two), (three, four) = text.rectangle
    box = (min(one, three), min(two, four), max(one, three), max(two, four))
    return LetteredPlace(text.replacement_text, box)


def _decode(file: Path, kind: type[_Kind]) -> _Kind:
    """Read one file of the archive; a key that stands in it twice is refused, because one of the two would be lost."""
    try:
        table = json.loads(file.read_bytes(), object_pairs_hook=_unique)
        return msgspec.convert(table, kind, strict=False)
    except (ValueError, msgspec.ValidationError, *NOT_JSON) as error:
        raise DataError(f"{file.parent.name}/{file.name}: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"{twice!r} stands in it twice")
    return table


def _write(target: Path, data: bytes) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(".part")
        draft.write_bytes(data)
        draft.replace(target)
    except OSError as error:
        raise EnvironmentProblem(f"cannot store a picture in {target.parent}: {error.strerror}") from None
