"""Rows to Samples by a row map: what each cell means, which form the record has, and what cannot be understood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError, did_you_mean
from ...core.folders import cache_folder
from ...core.ids import content_hash
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import OFFERED, Form, Sample, Video
from ..answers import WHOLE, find_answer_set, find_answers, is_plain_number
from ..files.rows import Row, read_rows
from ..images.embedded import ImageStore, Remembered
from .row_cells import Cells, token_limit
from .row_dialogues import DIALOGUES, Doors, list_rounds
from .row_images import RowImages
from .row_map import Places, Recognised, RowMap, choose_map, find_places, told
from .row_markers import AS_TEXTS, RowOptions, read_row_options, settle_markers
from .row_options import marked_answer, options_in_text, parse_list, parse_literal, repeated
from .row_pictures import Pictures, looks_like_pictures
from .row_source import TableSource
from .row_videos import RowVideos, told_of_videos

SEARCHED_ROWS = 1_000
"""A column named by the user must be in one of so many first rows."""
UNANSWERED = "rows without an answer: asked, and unscored"
ReadRows = Callable[[Path, str], Iterator[tuple[int, Row]]]
YES_NO = frozenset({"yes", "no", "true", "false"})
"""JSON and sheets write the answers of yes/no questions as truth values; the scorer takes "Yes" for "True"."""


class RowReader:
    """Reads the rows of one file; what it found out about them is noted in the context."""

    def __init__(
        self, task: Task, source: TableSource, files: Sequence[Path], context: LoadContext, read: ReadRows = read_rows
    ) -> None:
        self._read_file = read
        self.task = task
        self.source = source
        self.files = files
        self.path = files[0]
        self.notes = context.notes
        root = self._root = source.picture_root(self.path, context.root)
        kept = self._kept = (context.workdir or cache_folder() / "generated") / "rows"
        context.folders.update(dict.fromkeys(map(str, (root, self.path.parent, kept))))
        self.pictures = Pictures(root, kept, source.pdf_dpi, _remembered(files, context))
        self._places: dict[tuple[str, ...], Places] = {}
        self._use(RowMap())

    def samples(self) -> Iterator[Sample]:
        """Yield the samples of all rows."""
        for place, file in enumerate(self.files):
            rows = self._read_file(file, self.source.sheet)
            if not place:
                head = list(islice(rows, SEARCHED_ROWS if self.source.columns else 1))
                self._recognise([row for _, row in head])
                rows = chain(head, rows)
            name = file.name
            for number, row in rows:
                yield from self._read(row, f"{name} record {number}")

    def _use(self, rows: RowMap) -> None:
        self.rows = rows
        self.cells = Cells(rows.absent)
        self._first, self._absent = self.cells.first, self.cells.is_empty
        self._images = RowImages(self.files, rows, self.cells, self.pictures).of_places
        self.videos = RowVideos(self.source, self.cells, self._root, ImageStore(self._kept))

    def _recognise(self, head: Sequence[Row]) -> None:
        found: Recognised = choose_map(self.source.preset, head[0] if head else {})
        if found.reason:
            self._note(f"read as {found.name} because {found.reason}")
        self._use(told(found.map, self.source.columns))
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
        images = self._images(row, places, where)
        options, keyed, shown = self._options(row, places, len(images), where)
        if shown:
            raise DataError(f"{where}: a row of messages cannot have pictures as options yet; {AS_TEXTS}")
        videos = self.videos.of_places(row, places, where)
        base = Sample(
            id=self._identity(row, places, (messages,), where),
            dataset=self.task.name,
            form=Form.OPEN,
            question="",
            images=images,
            options=options,
            tags=self._tags(row, places, where, self.videos.columns_used(places, videos)),
            group=self._group(row, places),
            meta=self._meta(row, places, where),
            videos=videos,
        )
        answer = self._answer(row, places)
        for round_ in list_rounds(base, messages, answer, Doors(self.pictures, self.videos), where):
            yield self._decided(round_.sample, self._stated(row, places), round_.answer, keyed, where)

    def _sample(self, row: Row, places: Places, where: str) -> Sample | None:
        images = self._images(row, places, where)
        options, keyed, pictured = self._options(row, places, len(images), where)
        images = (*images, *pictured) if pictured else images
        question = self._question(row, places, len(images), where)
        answer, stated = self._answer(row, places), self._stated(row, places)
        if not options and self._in_text(answer):
            question, options = self._from_text(question, answer, stated)
        question, options, keyed = settle_markers(question, options, keyed, len(images), where)
        meta: dict[str, Any] = self._meta(row, places, where)
        twice = repeated(options)
        if twice:
            if self.source.duplicates == "drop":
                self._note("rows with an option twice: left out (--duplicates drop)", where)
                return None
            meta |= self._keep_twice(options, twice, where)
        answers = self._answers(answer, options, keyed, where, stated)
        videos = self.videos.of_places(row, places, where)
        names, told = (_file_names(videos), told_of_videos(row, videos, question, options)) if videos else ((), ())
        sample = Sample(
            id=self._identity(row, places, (*names, *told), where),
            dataset=self.task.name,
            form=self._form(options, answers, stated, where),
            question=question,
            images=images,
            options=options,
            answers=answers,
            group=self._group(row, places, *names),
            tags=self._tags(row, places, where, self.videos.columns_used(places, videos)),
            meta=meta,
            videos=videos,
        )
        if self.rows.row_images and images:
            self.pictures.remember(sample.id, images)
        self._note_sample(sample)
        return sample

    def _meta(self, row: Row, places: Places, where: str) -> dict[str, Any]:
        """Return what a row says of how it is to be asked: its own limit of tokens."""
        columns = places.fields["max_tokens"]
        limit = token_limit(self._first(row, columns), where) if columns else None
        if limit is None:
            return {}
        self._note("rows with a max_tokens of their own: it is sent instead of the run's")
        return {"max_tokens": limit}

    def _note_sample(self, sample: Sample) -> None:
        """Note of a row that its dialogue is not asked as one, or that it has no answer."""
        if sample.group is not None and "round" in sample.tags and self.task.infer not in DIALOGUES:
            self._note("rows with group and round: each asked alone (--infer-method every asks them as dialogues)")
        if not sample.answers:
            self._note(UNANSWERED, sample.id)
        elif sample.form is Form.OPEN and self.task.form is Form.AUTO and all(map(is_plain_number, sample.answers)):
            self._note("rows with a number as answer: compared as texts (--form number reads numbers)", sample.id)

    def _decided(self, sample: Sample, stated: str, answer: Any, keyed: Mapping[str, str], where: str) -> Sample:
        """Return a round of a dialogue with its answers as texts and its form."""
        answers = self._answers(answer, sample.options, keyed, where, stated)
        if not answers:
            self._note(UNANSWERED, sample.id)
        form = self._form(sample.options, answers, stated, where)
        return msgspec.structs.replace(sample, answers=answers, form=form)

    def _answers(
        self, answer: Any, options: tuple[str, ...], keyed: Mapping[str, str], where: str, stated: str
    ) -> tuple[str, ...]:
        if options and self._is_set(stated) and not (isinstance(answer, str) and answer in keyed):
            return find_answer_set(answer, options, self.source.answer_kind, where)
        if not isinstance(answer, list):
            return self._texts(answer, options, keyed, where)
        return tuple(text for one in answer for text in self._texts(one, options, keyed, where))

    def _texts(self, answer: Any, options: tuple[str, ...], keyed: Mapping[str, str], where: str) -> tuple[str, ...]:
        """Return the texts of one answer; one that names an option by the key its data gives it means that option."""
        kind = self.source.answer_kind
        if self.source.strip_marks and (named := marked_answer(answer, options)) is not None:
            return (named,)
        if kind != "text" and str(answer) in keyed:
            return (keyed[str(answer)],)
        return find_answers(answer, options, kind, where)

    def _is_set(self, stated: str) -> bool:
        """Tell whether several options may be right: the user or the row says so; it is never guessed from answers."""
        return self.task.form is Form.MULTIPLE or (self.task.form is Form.AUTO and stated == Form.MULTIPLE)

    def _form(self, options: tuple[str, ...], answers: tuple[str, ...], stated: str, where: str) -> Form:
        if self.task.form is not Form.AUTO:
            return self._forced_form(bool(options), where)
        if options:
            return Form.MULTIPLE if stated == Form.MULTIPLE else Form.CHOICE
        if stated in OFFERED:
            fix = "name their column with --map options=COLUMN, or force --form open"
            raise DataError(f"{where} says it is a choice and has no options; {fix}")
        if stated:
            return Form(stated)
        return Form.YESNO if answers and YES_NO.issuperset(map(str.casefold, answers)) else Form.OPEN

    def _forced_form(self, has_options: bool, where: str) -> Form:
        forced = self.task.form
        if forced in OFFERED and not has_options:
            raise DataError(
                f"{where} has no options and the form is {forced.value}; --form auto decides for each record"
            )
        if forced not in OFFERED and has_options:
            self._note(f"rows with options that are not shown (--form {forced.value})")
        return forced

    def _stated(self, row: Row, places: Places) -> str:
        value = self._first(row, places.fields["form"]) if places.fields["form"] else None
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
            hint = self._first(row, places.fields["hint"]) if places.fields["hint"] else None
            return question if hint is None else f"{hint}\n{question}"
        if pictures and question is None and places.fields["question"]:
            return ""  # the question stands in the picture
        raise DataError(f"{where} has no question{_hint('question', row)}; name its column with --map question=COLUMN")

    def _answer(self, row: Row, places: Places) -> Any:
        value = self._first(row, places.fields["answer"])
        if self.source.answer_kind == WHOLE:
            return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
        if isinstance(value, str) and value.startswith("[") and value.rstrip().endswith("]"):
            parsed = parse_literal(value.strip())
            return parsed if isinstance(parsed, list) else value
        return value

    def _in_text(self, answer: Any) -> bool:
        """Tell whether options may stand in the question: the format says so, or the answer is a letter."""
        if self.task.form not in (Form.AUTO, *OFFERED):
            return False
        letter = isinstance(answer, str) and answer.strip("(). ").isalpha() and len(answer.strip("(). ")) == 1
        return letter or self.rows.options_in_question

    def _from_text(self, question: str, answer: Any, stated: str) -> tuple[str, tuple[str, ...]]:
        found = options_in_text(question)
        if found is None:
            return question, ()
        try:
            self._answers(answer, found.options, {}, "", stated)
        except DataError:
            return question, ()  # what looks like options does not hold the answer: the text stays as it is
        self._note(f"rows with options in the text of the question: read where marked {found.pattern}")
        return found.question, found.options

    def _options(self, row: Row, places: Places, pictures: int, where: str) -> RowOptions:
        """Return the options of a row that has so many pictures beside them."""
        door = None if "options" in self.source.not_pictures else self.pictures
        value = self._first(row, places.fields["options"])
        if isinstance(value, str):
            value = parse_list(value, where)
        if value is None:
            value = {letter: row[column] for letter, column in places.lettered.items() if not self._absent(row[column])}
            if len(value) == 1:
                only = next(iter(value.items()))
                raise DataError(f"{where} has one option alone ({only[0]}: {only[1]!r}); a choice needs two")
        elif isinstance(value, dict):
            value = {key: value[key] for key in sorted(value, key=str) if not self._absent(value[key])}
        elif not isinstance(value, list):
            raise DataError(f"{where}: options must be a list or a mapping of letters, not {type(value).__name__}")
        found = read_row_options(value, pictures + 1, door, where)
        if found.images:
            self._note("rows with pictures as options: shown as pictures")
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

    def _group(self, row: Row, places: Places, *videos: str) -> str | None:
        """Return the group a row names, or its video: questions about one video are not independent."""
        value = self._first(row, places.fields["group"])
        return (videos[0] if videos else None) if value is None else str(value)

    def _tags(
        self, row: Row, places: Places, where: str, shown: Collection[str] = ()
    ) -> dict[str, str | int | float | bool | None]:
        if not places.tags and not places.fields["round"]:
            return {}
        columns = [column for column in places.tags if column not in shown]
        for column in columns:
            cell = row[column]
            used = cell and column not in self.source.not_pictures
            if used and looks_like_pictures(column, cell, self.pictures.root):
                use = f"--map images={column} shows them, -p dataset.not_pictures=[{column!r}] keeps a tag"
                raise DataError(f"{where}: column {column!r} looks like pictures and is not used; {use}")
        tags = {column: _tag(row[column]) for column in columns}
        for column in places.fields["round"][:1]:
            tags["round"] = _round(row[column], where)
        return tags

    def _note(self, text: str, who: str = "") -> None:
        self.notes.setdefault(text, Counter())[who] += 1


def _remembered(files: Sequence[Path], context: LoadContext) -> Remembered:
    """Return what was found out about the embedded pictures of these files, as long as they are the same."""
    stats = [(str(file), file.stat()) for file in files if file.is_file()]
    key = ("pictures", *((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats))
    found: Remembered = context.memory.setdefault(key, Remembered())
    return found


def _file_names(videos: Sequence[Video]) -> tuple[str, ...]:
    return tuple([Path(video.ref).name for video in videos])


def _round(value: Any, where: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: round {value!r} is not a whole number") from None


def _tag(value: Any) -> str | int | float | bool | None:
    return value if value is None or isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()


def _hint(field: str, row: Row) -> str:
    return did_you_mean(field, row) or f" (columns: {', '.join(list(row)[:20])}{', …' if len(row) > 20 else ''})"
