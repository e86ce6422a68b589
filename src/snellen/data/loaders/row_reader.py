"""Rows to Samples by a row map: what each cell means, which form the record has, and what cannot be understood."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError, did_you_mean
from ...core.folders import cache_folder
from ...core.ids import content_hash
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Image, Sample
from ..answers import find_answers
from ..files.rows import Row, read_rows
from ..images.embedded import ImageStore
from .row_dialogues import DIALOGUES, list_rounds
from .row_map import Places, Recognised, RowMap, choose_map, find_places, told
from .row_options import options_in_text, parse_list, parse_literal, repeated
from .row_pictures import Pictures, is_row_name, looks_like_pictures, picture_values

SEARCHED_ROWS = 1_000
"""A column named by the user must be in one of so many first rows."""
UNANSWERED = "rows without an answer: asked, and unscored"
YES_NO = frozenset({"yes", "no", "true", "false"})
"""JSON and sheets write the answers of yes/no questions as truth values; the scorer takes "Yes" for "True"."""


class TableSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the table loader."""

    loader: str
    path: str
    columns: dict[str, str] = {}
    """Our field -> the file's column (`question = "prompt"`)."""
    image_root: str | None = None
    answer_kind: str = "auto"
    capitalise: bool = False
    preset: str = ""
    """The row map (catalog/rows); empty: recognised by the columns."""
    duplicates: str = "error"
    """What to do with a row that has an option twice: refuse the file, keep the row, or drop it."""
    not_pictures: tuple[str, ...] = ()
    """Columns that look like pictures and are tags all the same."""
    rounds: str = "all"
    """Which rounds of a dialogue are asked: all, or the last."""


class RowReader:
    """Reads the rows of one file; what it found out about them is noted in the context."""

    def __init__(self, task: Task, source: TableSource, path: Path, context: LoadContext) -> None:
        self.task = task
        self.source = source
        self.path = path
        self.notes = context.notes
        root = resolve(source.image_root, context.root) if source.image_root else path.parent
        store = ImageStore((context.workdir or cache_folder() / "generated") / "rows")
        self.pictures = Pictures(str(root / "x")[:-1], store)
        self.rows = RowMap()
        self._places: dict[tuple[str, ...], Places] = {}
        self._doubtful: frozenset[type] = frozenset()
        """Types of which a value can stand for nothing, beside None and the empty text."""

    def samples(self) -> Iterator[Sample]:
        """Yield the samples of all rows."""
        rows = read_rows(self.path)
        head = list(islice(rows, SEARCHED_ROWS if self.source.columns else 1))
        self._recognise([row for _, row in head])
        for number, row in chain(head, rows):
            yield from self._read(row, f"{self.path.name} record {number}")

    def _recognise(self, head: Sequence[Row]) -> None:
        found: Recognised = choose_map(self.source.preset, head[0] if head else {})
        if found.reason:
            self._note(f"read as {found.name} because {found.reason}")
        self.rows = told(found.map, self.source.columns)
        self._doubtful = frozenset({float, str} if self.rows.absent else {float})
        if head:
            self._check_columns(list(dict.fromkeys(chain.from_iterable(head))))

    def _check_columns(self, known: list[str]) -> None:
        """Refuse a column named by the user that no row of the head has."""
        for field, column in self.source.columns.items():
            parts = [column] if column in known else column.split(",")
            for part in map(str.strip, parts):
                if part not in known:
                    where, has = f"{self.path.name} has no column {part!r}", f"it has: {', '.join(known)}"
                    raise DataError(f"{where}{did_you_mean(part, known)} for {field}; {has}")

    def _read(self, row: Row, where: str) -> Iterable[Sample]:
        if self.rows.inside:
            for column in self.rows.inside:
                nested = row.get(column)
                row = {**nested, **row} if isinstance(nested, dict) else row
        columns = tuple(row)
        places = self._places.get(columns)
        if places is None:
            places = self._places[columns] = find_places(columns, self.rows)
        if places.fields["dialogue"]:
            dialogue = self._first(row, places.fields["dialogue"])
            if isinstance(dialogue, str):
                dialogue = parse_list(dialogue, where, "messages")
            if isinstance(dialogue, list):
                return self._dialogue(row, places, dialogue, where)
        sample = self._sample(row, places, where)
        return () if sample is None else (sample,)

    def _dialogue(self, row: Row, places: Places, messages: list[Any], where: str) -> Iterator[Sample]:
        options, keyed = self._options(row, places, where)
        base = Sample(
            id=self._identity(row, places, (messages,), where),
            dataset=self.task.name,
            form=Form.OPEN,
            question="",
            images=self._images(row, places, where),
            options=options,
            tags=self._tags(row, places, where),
            group=self._group(row, places),
        )
        answer = self._answer(row, places)
        for round_ in list_rounds(base, messages, answer, self.pictures, where):
            yield self._decided(round_.sample, self._stated(row, places), round_.answer, keyed, where)

    def _sample(self, row: Row, places: Places, where: str) -> Sample | None:
        options, keyed = self._options(row, places, where)
        images = self._images(row, places, where)
        question = self._question(row, places, len(images), where)
        answer = self._answer(row, places)
        if not options and self._in_text(answer):
            question, options = self._from_text(question, answer)
        meta: dict[str, Any] = {}
        twice = repeated(options)
        if twice:
            if self.source.duplicates == "drop":
                self._note("rows with an option twice: left out (--duplicates drop)", where)
                return None
            meta = self._keep_twice(options, twice, where)
        answers = self._answers(answer, options, keyed, where)
        sample = Sample(
            id=self._identity(row, places, (), where),
            dataset=self.task.name,
            form=self._form(options, answers, self._stated(row, places), where),
            question=question,
            images=images,
            options=options,
            answers=answers,
            group=self._group(row, places),
            tags=self._tags(row, places, where) if places.tags or places.fields["round"] else {},
            meta=meta,
        )
        if self.rows.row_images and images:
            self.pictures.remember(sample.id, images)
        self._note_sample(sample)
        return sample

    def _note_sample(self, sample: Sample) -> None:
        """Note of a row that its dialogue is not asked as one, or that it has no answer."""
        if sample.group is not None and "round" in sample.tags and self.task.infer not in DIALOGUES:
            self._note("rows with group and round: each asked alone (--infer-method every asks them as dialogues)")
        if not sample.answers:
            self._note(UNANSWERED, sample.id)

    def _decided(self, sample: Sample, stated: str, answer: Any, keyed: Mapping[str, str], where: str) -> Sample:
        """Return a round of a dialogue with its answers as texts and its form."""
        answers = self._answers(answer, sample.options, keyed, where)
        if not answers:
            self._note(UNANSWERED, sample.id)
        form = self._form(sample.options, answers, stated, where)
        return msgspec.structs.replace(sample, answers=answers, form=form)

    def _answers(self, answer: Any, options: tuple[str, ...], keyed: Mapping[str, str], where: str) -> tuple[str, ...]:
        if not isinstance(answer, list):
            return self._texts(answer, options, keyed, where)
        return tuple(text for one in answer for text in self._texts(one, options, keyed, where))

    def _texts(self, answer: Any, options: tuple[str, ...], keyed: Mapping[str, str], where: str) -> tuple[str, ...]:
        """Return the texts of one answer; one that names an option by the key its data gives it means that option."""
        kind = self.source.answer_kind
        if kind != "text" and str(answer) in keyed:
            return (keyed[str(answer)],)
        return find_answers(answer, options, kind, where)

    def _form(self, options: tuple[str, ...], answers: tuple[str, ...], stated: str, where: str) -> Form:
        if self.task.form is not Form.AUTO:
            return self._forced_form(bool(options), where)
        if options:
            return Form.CHOICE
        if stated == Form.CHOICE:
            fix = "name their column with --map options=COLUMN, or force --form open"
            raise DataError(f"{where} says it is a choice and has no options; {fix}")
        if stated:
            return Form(stated)
        return Form.YESNO if answers and YES_NO.issuperset(map(str.casefold, answers)) else Form.OPEN

    def _forced_form(self, has_options: bool, where: str) -> Form:
        forced = self.task.form
        if forced is Form.CHOICE and not has_options:
            raise DataError(f"{where} has no options and the form is choice; --form auto decides for each record")
        if forced is not Form.CHOICE and has_options:
            self._note(f"rows with options that are not shown (--form {forced.value})")
        return forced

    def _stated(self, row: Row, places: Places) -> str:
        value = self._first(row, places.fields["form"])
        return self.rows.forms.get(str(value).strip().casefold(), "") if value is not None else ""

    def _keep_twice(self, options: tuple[str, ...], twice: tuple[int, int], where: str) -> dict[str, Any]:
        first, second = twice
        if self.source.duplicates == "error":
            same = f"options {first + 1} and {second + 1} are the same ({options[second]!r})"
            raise DataError(f"{where}: {same}; --duplicates keep asks it all the same, drop leaves it out")
        self._note("rows with an option twice: kept, either counts (--duplicates keep)", where)
        return {"duplicate_options": True}

    def _question(self, row: Row, places: Places, pictures: int, where: str) -> str:
        question = self._first(row, places.fields["question"])
        if isinstance(question, str) and question.strip():
            _check_placeholders(question, pictures, where)
            hint = self._first(row, places.fields["hint"])
            return question if hint is None else f"{hint}\n{question}"
        if pictures and question is None and places.fields["question"]:
            return ""  # the question stands in the picture
        raise DataError(f"{where} has no question{_hint('question', row)}; name its column with --map question=COLUMN")

    def _answer(self, row: Row, places: Places) -> Any:
        value = self._first(row, places.fields["answer"])
        if isinstance(value, str) and value.startswith("[") and value.rstrip().endswith("]"):
            parsed = parse_literal(value.strip())
            return parsed if isinstance(parsed, list) else value
        return value

    def _in_text(self, answer: Any) -> bool:
        """Tell whether options may stand in the question: the format says so, or the answer is a letter."""
        if self.task.form not in (Form.AUTO, Form.CHOICE):
            return False
        letter = isinstance(answer, str) and answer.strip("(). ").isalpha() and len(answer.strip("(). ")) == 1
        return letter or self.rows.options_in_question

    def _from_text(self, question: str, answer: Any) -> tuple[str, tuple[str, ...]]:
        found = options_in_text(question)
        if found is None:
            return question, ()
        try:
            find_answers(answer, found.options, self.source.answer_kind, "")
        except DataError:
            return question, ()  # what looks like options does not hold the answer: the text stays as it is
        self._note(f"rows with options in the text of the question: read where marked {found.pattern}")
        return found.question, found.options

    def _options(self, row: Row, places: Places, where: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """Return the options, and the options by the keys the data gives them."""
        value = self._first(row, places.fields["options"])
        if isinstance(value, str):
            value = parse_list(value, where)
        if value is None:
            keyed = {
                letter: str(row[column]) for letter, column in places.lettered.items() if not self._absent(row[column])
            }
            if len(keyed) == 1:
                only = next(iter(keyed.items()))
                raise DataError(f"{where} has one option alone ({only[0]}: {only[1]!r}); a choice needs two")
            return tuple(keyed.values()), keyed
        if isinstance(value, list):
            return tuple(map(str, value)), {}
        if isinstance(value, dict):
            keyed = {str(key): str(value[key]) for key in sorted(value, key=str) if not self._absent(value[key])}
            return tuple(keyed.values()), keyed
        raise DataError(f"{where}: options must be a list or a mapping of letters, not {type(value).__name__}")

    def _images(self, row: Row, places: Places, where: str) -> tuple[Image, ...]:
        if not places.images:
            return ()
        filled = self._picture_cells(row, places.images)
        if not filled:
            return ()
        if len(filled) > 1 and not self.rows.same_pictures:
            raise self._several_pictures(row, places, where)
        values = [value for cell in filled[0] for value in picture_values(cell)]
        if self.rows.row_images and len(values) == 1 and is_row_name(values[0]):
            return self._pictures_of(str(values[0]), where)
        return self.pictures.read(values, where)

    def _picture_cells(self, row: Row, groups: Sequence[Sequence[str]]) -> list[list[Any]]:
        """Return what the columns of pictures hold, by the groups that belong together; empty groups are left out."""
        if len(groups) == len(groups[0]) == 1:  # one column, as in most files
            cell = self._first(row, groups[0])
            return [] if cell is None else [[cell]]
        return [cells for group in groups if (cells := self._filled(row, group))]

    def _several_pictures(self, row: Row, places: Places, where: str) -> DataError:
        names = [group[0] for group in places.images if self._filled(row, group)]
        fix = f"say which with --map images={','.join(names)} (all of them) or --map images={names[0]}"
        return DataError(f"{where} has pictures in columns {' and '.join(names)}; {fix}")

    def _filled(self, row: Row, columns: Sequence[str]) -> list[Any]:
        return [row[column] for column in columns if not self._absent(row[column])]

    def _pictures_of(self, name: str, where: str) -> tuple[Image, ...]:
        """Return the pictures of the row that a cell names; one that comes later is looked for once."""
        if self.pictures.of_row(name) is None:
            for number, row in read_rows(self.path):
                identity = str(self._first(row, [column for column in self.rows.id if column in row]))
                cells = picture_values(row.get("image"))
                if self.pictures.of_row(identity) is None and cells and not is_row_name(cells[0]):
                    self.pictures.remember(identity, self.pictures.read(cells, f"{self.path.name} record {number}"))
        found = self.pictures.of_row(name)
        if found is None:
            raise DataError(f"{where}: image {name!r} is neither a picture nor the index of a row that has one")
        return found

    def _identity(self, row: Row, places: Places, more: tuple[Any, ...], where: str) -> str:
        value = self._first(row, places.fields["id"])
        if value is None:
            if any(str(row[column]).isspace() for column in places.fields["id"]):
                raise DataError(f"{where} has an empty id")
            known = [row.get(name) for name in ("question", "image", "images", "options")]
            other = [row[name] for group in places.images for name in group if name not in ("image", "images")]
            return content_hash([*known, *([other] if other else []), *more], 12)
        text = str(value)
        if not text.strip():
            raise DataError(f"{where} has an empty id")
        return text

    def _group(self, row: Row, places: Places) -> str | None:
        value = self._first(row, places.fields["group"])
        return None if value is None else str(value)

    def _tags(self, row: Row, places: Places, where: str) -> dict[str, str | int | float | bool | None]:
        for column in places.tags:
            cell = row[column]
            if (
                cell
                and column not in self.source.not_pictures
                and looks_like_pictures(column, cell, self.pictures.root)
            ):
                use = f"--map images={column} shows them, -p dataset.not_pictures=[{column!r}] keeps a tag"
                raise DataError(f"{where}: column {column!r} looks like pictures and is not used; {use}")
        tags = {column: _tag(row[column]) for column in places.tags}
        for column in places.fields["round"][:1]:
            tags["round"] = _round(row[column], where)
        return tags

    def _first(self, row: Row, columns: Sequence[str]) -> Any:
        """Return what the first of these columns that has something holds, or None."""
        for column in columns:
            value = row[column]
            if value is not None and value != "" and not (type(value) in self._doubtful and self._absent(value)):
                return value
        return None

    def _absent(self, value: Any) -> bool:
        if value is None or value == "":
            return True
        # NaN stands for an empty cell in tables that came through pandas.
        return value in self.rows.absent if isinstance(value, str) else isinstance(value, float) and math.isnan(value)

    def _note(self, text: str, who: str = "") -> None:
        self.notes.setdefault(text, Counter())[who] += 1


def _check_placeholders(question: str, pictures: int, where: str) -> None:
    """Refuse a question that speaks of a picture the row does not have."""
    if "<image" not in question:
        return
    numbered = [int(number) for number in re.findall(r"<image[ _](\d{1,4})>", question)]
    wanted = max([*numbered, 1 if "<image>" in question else 0])
    if wanted > pictures:
        fix = "name their columns with --map images=COLUMN,COLUMN"
        raise DataError(f"{where}: the question speaks of picture {wanted} and the row has {pictures}; {fix}")


def _round(value: Any, where: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: round {value!r} is not a whole number") from None


def _tag(value: Any) -> str | int | float | bool | None:
    return value if value is None or isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()


def _hint(field: str, row: Row) -> str:
    return did_you_mean(field, row) or f" (columns: {', '.join(list(row)[:20])}{', …' if len(row) > 20 else ''})"


def resolve(path: str, root: Path | None) -> Path:
    """Return a path under the data root, if there is one."""
    return Path(path) if root is None else root / path
