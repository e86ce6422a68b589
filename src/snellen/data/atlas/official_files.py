"""A benchmark's files as its authors give them away: several that are one, columns beside a table, picture folders."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import PIL.Image
from msgspec import Struct
from PIL import ImageDraw, ImageFont

from ...core.errors import DataError
from ...core.ids import sha256_hex
from ...core.types import Image
from ..files.rows import NOT_JSON, Row, read_rows, refuse_twice
from ..images.decode import encode_png, open_image, read_bytes
from ..images.embedded import write_picture
from ..images.frames import PictureError
from ..loaders.authors_files import ReadFile
from .card_sources import CardSource, QuestionTemplates

INK, GROUND, FRAME = "black", "white", (200, 0, 0)
SMALLEST_PX, LARGEST_PX = 8, 100


class LetteredPlace(NamedTuple):
    """A letter and the box it names, in pixels: left, top, right, bottom."""

    letter: str
    box: tuple[int, int, int, int]


def draw_letters(picture: PIL.Image.Image, places: Sequence[LetteredPlace], *, covered: bool) -> PIL.Image.Image:
    """Return the picture with every letter: in a white box over its place, or beside its place, which is framed."""
    drawn = picture.convert("RGB")
    pen = ImageDraw.Draw(drawn)
    for place in places:
        (_cover if covered else _frame)(pen, place, drawn.width)
    return drawn


def _cover(pen: ImageDraw.ImageDraw, place: LetteredPlace, width: int) -> None:
    left, top, right, bottom = place.box
    pen.rectangle(place.box, fill=GROUND)
    size = min(LARGEST_PX, bottom - top, (right - left) * 2 // max(1, len(place.letter)))
    pen.text(((left + right) / 2, (top + bottom) / 2), place.letter, INK, _letters(size), anchor="mm")


def _frame(pen: ImageDraw.ImageDraw, place: LetteredPlace, width: int) -> None:
    left, top, right, bottom = place.box
    pen.rectangle(place.box, outline=FRAME)
    font = _letters(min(LARGEST_PX, bottom - top))
    needed = pen.textlength(place.letter, font) + 4
    across = left - needed if left >= needed or right + needed > width else right + 4
    at = (max(0, across), (top + bottom) / 2)
    pen.text(at, place.letter, FRAME, font, anchor="lm", stroke_width=2, stroke_fill=GROUND)


def _letters(size_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(max(SMALLEST_PX, size_px))


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
                write_picture(
                    target, encode_png(draw_letters(open_image(image), places, covered=self._letters == OVER))
                )
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
    where, data = f"{file.parent.name}/{file.name}", file.read_bytes()
    refuse_twice(data, where)
    try:
        return msgspec.json.decode(data, type=kind, strict=False)
    except (msgspec.ValidationError, *NOT_JSON) as error:
        raise DataError(f"{where}: {error}") from None


MOST_BYTES = 1_000_000
NUMBERED = range(1, 10)
LISTS, COLUMNS = ("qids", "answers"), "descriptive_"
"""Where a row holds all its questions: they are no tags of one."""


def templated_rows(told: QuestionTemplates, rows: Iterator[tuple[int, Row]], table: Path) -> Iterator[tuple[int, Row]]:
    """Yield every question of every row with its text; a number that has no template is refused."""
    templates = read_question_templates(find_templates(told, table), told.name)
    count = 0
    for number, row in rows:
        where = f"{table.name} record {number}"
        place = _figure_place(told, row, where)
        kept = {name: value for name, value in row.items() if name not in LISTS and not name.startswith(COLUMNS)}
        for at, (template, answer) in enumerate(_questions(row, where)):
            count += 1
            own = {"id": f"{_figure(row, number)}_{at}", "figure": str(_figure(row, number)), "qid": template}
            yield count, {**kept, **own, "question": _text(told, templates, template, place, where), "answer": answer}


def _figure(row: Row, number: int) -> Any:
    return next((row[name] for name in ("figure_id", "original_id", "id") if row.get(name) is not None), number)


def _questions(row: Row, where: str) -> list[tuple[int, str]]:
    """Return template and answer of a row's questions."""
    numbers, answers = _listed(row)
    if not isinstance(numbers, list) or not isinstance(answers, list) or len(numbers) != len(answers):
        raise DataError(f"{where}: it has not one answer for each question")
    if any(type(one) is not int for one in numbers) or any(answer is None for answer in answers):
        raise DataError(f"{where}: a question has no template's number, or no answer (the test's are withheld)")
    return [(number, str(answer)) for number, answer in zip(numbers, answers, strict=True)]


def _listed(row: Row) -> tuple[Any, Any]:
    """Return templates and answers as a row has them: as two lists, or in numbered columns."""
    if "qids" in row:
        return row["qids"], row.get("answers")
    columns = [number for number in NUMBERED if f"descriptive_q{number}" in row]
    return [row[f"descriptive_q{one}"] for one in columns], [row.get(f"descriptive_a{one}") for one in columns]


def _figure_place(told: QuestionTemplates, row: Row, where: str) -> str:
    place = row.get("subplot_loc")
    if place is None or place == "":
        place = [row.get("subplot_row"), row.get("subplot_col")]
    if isinstance(place, str):
        return told.other.replace("{place}", place)
    if not isinstance(place, list) or len(place) != 2 or any(type(one) is not int for one in place):
        raise DataError(f"{where}: subplot_loc {place!r} is neither a row and a column nor words")
    if place[0] == 0:
        return told.whole
    return told.cell.replace("{row}", str(place[0])).replace("{column}", str(place[1]))


def _text(told: QuestionTemplates, templates: Mapping[int, str], number: int, place: str, where: str) -> str:
    if number not in templates:
        raise DataError(f"{where}: {told.file} has no template {number}: another version?")
    template = templates[number]
    if number in told.without:
        return template.strip()
    if template.count("{}") != 1:
        raise DataError(f"{told.file}: template {number} has not one {{}} for the place that is asked about")
    return template.replace("{}", place).strip()


def find_templates(told: QuestionTemplates, table: Path) -> Path:
    """Return the file of templates near a table; told a path of its own, that one."""
    own = Path(told.file)
    folders = [table.parent / inner for inner in ("", "src", "..", "../src")]
    places = [own] if own.parent != Path() or own.is_absolute() else [folder / own for folder in folders]
    found = next((place / own.name if place.is_dir() else place for place in places if place.exists()), None)
    if found is None or not found.is_file():
        what = f"{table.name} names its questions by the numbers of templates, and there is no {told.file} near it"
        raise DataError(f"{what}: {told.bring}")
    return found


def read_question_templates(file: Path, name: str) -> dict[int, str]:
    """Return the table of texts that a Python file assigns to a name; the file is parsed and nothing in it runs."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise DataError(f"{file.name} is larger than any table of questions")
        body = ast.parse(file.read_bytes()).body
        found = [_assigned(statement, name) for statement in body]
        value = next(ast.literal_eval(one) for one in found if one is not None)
    except (OSError, SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise DataError(f"{file.name} cannot be read for {name}: {error}") from None
    except StopIteration:
        raise DataError(f"{file.name} assigns nothing to {name}: another version?") from None
    if not isinstance(value, dict) or not all(type(at) is int and isinstance(text, str) for at, text in value.items()):
        raise DataError(f"{file.name}: {name} is no table of texts by number: another version?")
    return value


def _assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in targets):
        return statement.value
    return None


def named_files(sources: Mapping[str, CardSource], folder: Path) -> list[Path]:
    """Return the table in a folder that a source names, all of them where they are one; none where none is there."""
    for source in sources.values():
        found = [folder / name for name in source.files if (folder / name).is_file()]
        if not found:
            _check_list(source, folder)
            continue
        missing = [name for name in source.files if not (folder / name).is_file()]
        if source.together and missing:
            fix = f"bring it, or name {found[0].name} itself to ask that part alone"
            raise DataError(f"{str(folder)!r} holds {found[0].name} and not {missing[0]}: {fix}")
        return found if source.together else found[:1]
    return []


def _check_list(source: CardSource, folder: Path) -> None:
    """Refuse an archive of questions without the list that says which of them are the test."""
    if source.letters and any((folder / place / "questions").is_dir() for place in ("", "ai2d")):
        name = next(iter(source.files))
        raise DataError(f"{str(folder)!r} holds questions and not {name}, the list of the test's: {source.bring}")


def source_rows(
    source: CardSource,
    file: Path,
    sheet: str = "",
    drawn: Path | None = None,
    notes: Notes | None = None,
    *,
    read: ReadFile = read_rows,
) -> Iterator[tuple[int, Row]]:
    """Return the rows of one file of a source; of AI2's archive, those of the pictures that it lists."""
    if source.templates:
        return templated_rows(source.templates, read(file, sheet), file)
    if not source.letters:
        return read(file, sheet)
    return DiagramArchive(file, source.letters, drawn, {} if notes is None else notes).rows()


def home_of(source: CardSource, path: Path) -> Path:
    """Return the folder that the names of a source's files begin in, told that folder or one of the files."""
    if path.is_dir():
        return path
    fitting = (name for name in source.files if path.as_posix().endswith(f"/{name}"))
    return path.parents[next(fitting, "").count("/")]


def picture_folder(source: CardSource, home: Path) -> dict[str, str]:
    """Return what the table loader is told of a source's pictures; without their folder they lie beside the table."""
    folder = home / source.pictures
    return {"image_root": str(folder.resolve())} if source.pictures and folder.is_dir() else {}


class SideColumns:
    """Columns that do not stand in the table: the values of objects beside it, and the name of the file."""

    def __init__(self, source: CardSource, folder: Path, *, asked: bool = True) -> None:
        self._together = source.together
        beside = source.beside if asked else {}  # replies are scored without what was asked
        self._columns = {column: (file, _read_object(folder / file)) for file, column in beside.items()}

    def rows(self, rows: Iterator[tuple[int, Row]], file: Path) -> Iterator[tuple[int, Row]]:
        """Yield every row with its columns; a row that an object says nothing of is refused."""
        for number, row in rows:
            more: Row = {"file_name": file.name} if self._together else {}
            for column, (name, values) in self._columns.items():
                if str(row.get("id")) not in values:
                    raise DataError(f"record {number}: {name} says nothing of {row.get('id')!r}: another version?")
                more[column] = values[str(row.get("id"))]
            yield number, {**row, **more} if more else row


def _read_object(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise DataError(
            f"{file.name} must lie beside the table, in {str(file.parent)!r}: it holds a column of its rows"
        )
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except (msgspec.ValidationError, *NOT_JSON) as error:
        raise DataError(f"{file.name} is not a JSON object by id: {error}") from None
