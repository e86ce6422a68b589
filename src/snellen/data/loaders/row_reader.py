"""Rows to Samples by a row map: what each cell means, which form the record has, and what cannot be understood."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError, did_you_mean
from ...core.folders import cache_folder
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import OFFERED, Form, Image, Sample, Turn, Video
from ..files.rows import Row, read_rows
from ..images.embedded import ImageStore
from . import row_options
from .answers import alphabets_of, look_at_options, names_several, refuse_contrary
from .row_answers import RowAnswers, yes_or_no
from .row_dialogues import DIALOGUES, Doors, brings_pictures, check_question, list_rounds
from .row_map import (
    Cells,
    Places,
    Recognised,
    RowMap,
    RowNames,
    choose_map,
    fill_name,
    find_places,
    page_numbers,
    round_number,
    tag_value,
    token_limit,
    with_columns,
)
from .row_media import (
    Pictures,
    RowVideos,
    are_same,
    is_row_name,
    looks_like_pictures,
    names_of_videos,
    picture_values,
    remembered,
    told_of_videos,
)
from .row_notes import (
    RowNotes,
    is_file_name,
    names_picture,
    names_video,
    question_hint,
    refuse_family,
    refuse_list,
    says_picture,
    unread_options,
)
from .row_options import AS_TEXTS, NO_OPTIONS, RowOptions, foreign_marker, padded, read_row_options, settle_markers
from .row_source import TableSource


class RowImages:
    """Finds the pictures of rows of the same files."""

    def __init__(
        self, files: Sequence[Path], rows: RowMap, cells: Cells, pictures: Pictures, source: TableSource
    ) -> None:
        self._files = files
        self._rows = rows
        self._cells = cells
        self._pictures = pictures
        self._template = source.image
        self._not_pictures = source.not_pictures

    def by_template(self, row: Row, places: Places, where: str) -> tuple[Image, ...]:
        """Return the picture whose place the user told, by the cells of the row that name it."""
        return self._pictures.read([fill_name(self._template, row, where)], where)

    def of_places(self, row: Row, places: Places, where: str) -> tuple[Image, ...]:
        """Return the pictures of a row in order."""
        filled = self._picture_cells(row, places.images) if places.images else ()
        if not filled:
            return ()
        same = self._rows.same_pictures and all(are_same(filled[0], cells) for cells in filled[1:])
        if len(filled) > 1 and not same:
            raise self._several(row, places, where)
        values = [value for cell in filled[0] for value in picture_values(cell)]
        if self._rows.row_images and len(values) == 1 and is_row_name(values[0]):
            return self._of_row(str(values[0]), where)
        return self._pictures.read_pages(values, where, self._cells.first(row, places.fields["pages"]))

    def refuse_unread(self, row: Row, columns: Sequence[str], places: Places, pictured: bool, where: str) -> None:
        """Refuse a column that nothing reads and that holds pictures, or names one in a row that shows none."""
        columns = [column for column in columns if row[column] and column not in self._not_pictures]
        for column in columns:
            if not pictured:
                self._refuse_said(column, row[column], where)
            alike = looks_like_pictures(column, row[column], self._pictures.root)
            if alike or (not pictured and names_picture(column, row[column])):
                fix = self._how_to_show(row, column, columns, places)
                use = f"{fix} shows them, -p dataset.not_pictures=[{column!r}] keeps a tag"
                raise DataError(f"{where}: column {column!r} looks like pictures and is not used; {use}")

    def _refuse_said(self, column: str, cell: Any, where: str) -> None:
        """Refuse a cell that says that the row is about a picture, or that names a video, in a row that shows none."""
        keep = f"-p dataset.not_pictures=[{column!r}] asks without"
        if says_picture(column, cell):
            fix = f"-p 'dataset.image=FOLDER/{{COLUMN}}.jpg' says where they lie, {keep}"
            raise DataError(f"{where}: column {column!r} says {cell!r} and the row shows no picture; {fix}")
        if names_video(cell):
            raise DataError(
                f"{where}: column {column!r} names a video and is not used; --map video={column} shows it, {keep}"
            )

    def _how_to_show(self, row: Row, column: str, columns: Sequence[str], places: Places) -> str:
        if not is_file_name(row[column]):
            return f"-p 'dataset.image=FOLDER/{{{column}}}.jpg'"
        shown = [name for group in places.images for name in group if not self._cells.is_empty(row[name])]
        alike = [name for name in columns if looks_like_pictures(name, row[name], self._pictures.root)]
        return f"--map images={','.join([*shown, *(alike or [column])])}"

    def _picture_cells(self, row: Row, groups: Sequence[Sequence[str]]) -> list[list[Any]]:
        """Return what the columns of pictures hold, by the groups that belong together; empty groups are left out."""
        if len(groups) == len(groups[0]) == 1:  # one column, as in most files
            cell = self._cells.first(row, groups[0])
            return [] if cell is None else [[cell]]
        return [cells for group in groups if (cells := self._cells.filled(row, group))]

    def _several(self, row: Row, places: Places, where: str) -> DataError:
        groups = [group for group in places.images if self._cells.filled(row, group)]
        names, every = [group[0] for group in groups], ",".join(name for group in groups for name in group)
        fix = f"say which with --map images={every} (all of them) or --map images={','.join(groups[0])}"
        return DataError(f"{where} has pictures in columns {' and '.join(names)}; {fix}")

    def _of_row(self, name: str, where: str) -> tuple[Image, ...]:
        """Return the pictures of the row that a cell names; one that comes later is looked for once."""
        if self._pictures.of_row(name) is None:
            self._remember_all()
        found = self._pictures.of_row(name)
        if found is None:
            raise DataError(f"{where}: image {name!r} is neither a picture nor the index of a row that has one")
        return found

    def _remember_all(self) -> None:
        for place, row in self._all_rows():
            identity = str(self._cells.first(row, [column for column in self._rows.id if column in row]))
            cells = picture_values(row.get("image"))
            if self._pictures.of_row(identity) is None and cells and not is_row_name(cells[0]):
                self._pictures.remember(identity, self._pictures.read_pages(cells, place, None))

    def _all_rows(self) -> Iterable[tuple[str, Row]]:
        return ((f"{file.name} record {number}", row) for file in self._files for number, row in read_rows(file))


SEARCHED_ROWS = 1_000
"""A column named by the user must be in one of so many first rows."""
ReadRows = Callable[[Path, str], Iterator[tuple[int, Row]]]
YES_NO = frozenset({"yes", "no", "true", "false"})
"""JSON and sheets write the answers of yes/no questions as truth values; the scorer takes "Yes" for "True"."""


PAGE_COLUMNS = ("blocks", "tests")
"""Of a page that is to be turned into text: its blocks with their categories, or unit tests of the reply."""


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
        self._context = context
        self._leaves = source.bad_rows != "refuse" or context.refused is not None
        root = self._root = source.picture_root(self.path, context.root)
        kept = self._kept = (context.workdir or cache_folder() / "generated") / "rows"
        context.folders.update(dict.fromkeys(map(str, (root, self.path.parent, kept))))
        self.pictures = Pictures(root, kept, source.pdf_dpi, remembered(files, context.memory))
        self._places: dict[tuple[str, ...], Places] = {}
        self._is_offered = task.form in (Form.AUTO, *OFFERED)
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
                where = f"{name} record {number}"
                found = self._read_or_leave(row, where) if self._leaves else self._read(row, where)
                if isinstance(found, Sample):
                    yield found
                else:
                    yield from found

    def _read_or_leave(self, row: Row, where: str) -> Sample | Iterable[Sample]:
        """Return what a row holds; one that cannot be asked is left out, and said or entered with its reason."""
        try:
            found = self._read(row, where)
            return found if isinstance(found, Sample) else list(found)
        except DataError as error:
            if self._context.refused is not None:
                self._context.refuse(where, error)
                return ()
            reason = str(error).removeprefix(where).lstrip(": ").partition(";")[0]
            self._note(f"rows left out that cannot be asked ({reason})", where)
            return ()

    def _use(self, rows: RowMap) -> None:
        self.rows = rows
        self.cells = Cells(rows.absent)
        self._first, self._absent = self.cells.first, self.cells.is_empty
        self.noted = RowNotes(self.notes, self.cells.is_empty)
        self._note = self.noted.add
        self._name = RowNames(self.cells, self._note, joined="," in self.source.columns.get("id", "")).of_row
        self.images = RowImages(self.files, rows, self.cells, self.pictures, self.source)
        self._images = self.images.by_template if self.source.image else self.images.of_places
        self.answers = RowAnswers(self.task, self.source, rows, self.cells)
        self.videos = RowVideos(self.source, self.cells, self._root, ImageStore(self._kept))

    def _recognise(self, head: Sequence[Row]) -> None:
        found: Recognised = choose_map(self.source.preset, head[0] if head else {})
        if found.reason and self.task.dataset.get("loader") != "card":  # a card chose the map, not whoever asks
            self._note(f"read as {found.name} because {found.reason}")
        self._use(with_columns(found.map, self.source.columns))
        if head:
            inside = [row[name] for row in head for name in self.rows.inside if isinstance(row.get(name), dict)]
            self._check_columns(list(dict.fromkeys(chain.from_iterable([*head, *inside]))))

    def _check_columns(self, known: list[str]) -> None:
        """Refuse a column named by the user that no row of the head has."""
        for field, column in self.source.columns.items():
            parts = [column] if column in known else column.split(",")
            for part in map(str.strip, parts):
                if part not in known:
                    where, has = f"{self.path.name} has no column {part!r}", f"it has: {', '.join(known)}"
                    raise DataError(
                        f"{where}{did_you_mean(part, known)} for {field}; {has}; --map {field}=COLUMN names one"
                    )

    def _read(self, row: Row, where: str) -> Sample | Iterable[Sample]:
        """Return the sample of a row, those of a dialogue, or none."""
        if self.rows.inside:
            for column in self.rows.inside:
                nested = row.get(column)
                row = {**nested, **row} if isinstance(nested, dict) else row
        columns = tuple(row)
        places = self._places.get(columns)
        if places is None:
            places = find_places(columns, self.rows, offered=self._is_offered)
            places = self._places[columns] = places._replace(labelled=True) if self.source.video else places
        if places.fields["dialogue"]:
            dialogue = self._first(row, places.fields["dialogue"])
            if isinstance(dialogue, str):
                dialogue = row_options.parse_list(dialogue, where, "messages")
            if isinstance(dialogue, list):
                return self._dialogue(row, places, dialogue, where)
        return self._sample(row, places, where) or ()

    def _dialogue(self, row: Row, places: Places, messages: list[Any], where: str) -> Iterator[Sample]:
        images = self._images(row, places, where)
        offered = self._options(row, places, len(images), where)
        if offered.images:
            raise DataError(f"{where}: a row of messages cannot have pictures as options yet; {AS_TEXTS}")
        videos = self.videos.of_places(row, places, where)
        pictured = bool(images or videos or brings_pictures(messages))
        check_question(self._first(row, places.fields["question"]), messages, where)
        base = Sample(
            id=self._name(row, places, (messages,), where),
            dataset=self.task.name,
            form=Form.OPEN,
            question="",
            images=images,
            options=offered.texts,
            tags=self._tags(row, places, where, pictured, self.videos.columns_used(places, videos)),
            group=self._group(row, places),
            meta=self._meta(row, places, where),
            videos=videos,
        )
        answer = self.answers.of_places(row, places, where)
        for round_ in list_rounds(base, messages, answer, Doors(self.pictures, self.videos), where):
            yield self._decided(round_.sample, self._stated(row, places), round_.answer, offered.keyed, where)

    def _sample(self, row: Row, places: Places, where: str) -> Sample | None:
        images, question, offered, answer, stated = self._asked(row, places, where)
        self._note_foreign(question, len(images), where)
        seen = offered.seen
        options, meta = seen.options, self._meta(row, places, where) if places.told else {}
        if self.task.form is Form.PARSE:
            meta |= {name: row[name] for name in PAGE_COLUMNS if isinstance(row.get(name), list)}
        if seen.twice and self.source.duplicates == "drop":
            self._note("rows with an option twice: left out (--duplicates drop)", where)
            return None
        if seen.twice:
            meta |= self._keep_twice(options, seen.twice, where)
        answers, form = self._answered(row, places, offered, answer, stated=stated, where=where)
        videos = self.videos.of_places(row, places, where) if places.labelled else ()
        name = self._name(row, places, told_of_videos(row, videos, question, options) if videos else (), where)
        group, tags = self._labels(row, places, images, videos, where) if places.labelled else (None, {})
        # By place: every row of every table is made here, and names cost as much as all the rest.
        sample = Sample(name, self.task.name, form, question, images, options, answers, (), group, tags, meta, videos)
        if self.rows.row_images and images:
            self.pictures.remember(name, images)
        if options:
            self._check_choice(sample, offered, answer, where)
        self._note_sample(sample, places)
        return sample

    def _answered(
        self, row: Row, places: Places, offered: RowOptions, answer: Any, *, stated: str, where: str
    ) -> tuple[tuple[str, ...], Form]:
        """Return the answers of a row as texts, and the form they make of it."""
        answers = self.answers.texts(answer, offered.seen, offered.keyed, where, stated)
        options = offered.seen.options
        if options and len(places.fields["answer"]) > 1 and answers:
            self.answers.refuse_other(row, places, answers, offered.seen, where)
        form = self._form(options, answers, stated, where)
        if form is Form.YESNO and not options and answers != (worded := yes_or_no(answers)):
            self._note("rows whose answer is 1, Y or T, or 0, N or F: taken for yes, or no")
            answers = worded
        return answers, form

    def _asked(self, row: Row, places: Places, where: str) -> tuple[tuple[Image, ...], str, RowOptions, Any, str]:
        """Return pictures, question and options of a row, its answer as it is written, and the form it states."""
        images = self._images(row, places, where)
        may_offer = places.fields["options"] or places.lettered
        offered = self._options(row, places, len(images), where) if may_offer else NO_OPTIONS
        images = (*images, *offered.images) if offered.images else images
        question = self._question(row, places, len(images), where)
        if self._context.replies_only:
            images = padded(images, (question, *offered.texts))
        answer = self.answers.of_places(row, places, where, offered.texts)
        stated = self._stated(row, places) if places.fields["form"] else ""
        if not offered.texts:
            question, offered = self._from_text(question, answer, stated, where)
            self._check_unread(row, places, answer, where, offered.texts)
        elif (found := row_options.split_listed(question, offered.texts)) is not None:
            # The question stays as the row has it: whether the list is shown by it or by the prompt is the prompt's.
            row_options.refuse_other_order(found, offered.texts, where)
            self._note("rows whose question lists its options as their column does: shown once")
        if self.source.one_picture:
            return images, question, offered, answer, stated
        return images, *settle_markers(question, offered, len(images), where), answer, stated

    def _labels(
        self, row: Row, places: Places, images: tuple[Image, ...], videos: tuple[Video, ...], where: str
    ) -> tuple[str | None, dict[str, str | int | float | bool | None]]:
        """Return the group and the tags of a row."""
        tags = self._tags(row, places, where, bool(images or videos), self.videos.columns_used(places, videos))
        return self._group(row, places, *names_of_videos(videos)), tags

    def _note_foreign(self, question: str, pictures: int, where: str) -> None:
        odd = foreign_marker(question, pictures or self._context.replies_only, where)
        if odd is not None:
            said = f"rows whose question holds another tool's marker ({odd}): it is sent as text; write <image>"
            self._note(said, where)

    def _check_unread(self, row: Row, places: Places, answer: Any, where: str, options: tuple[str, ...]) -> None:
        """Refuse a row that would be asked without options it has, or scored by some of its answers only."""
        if options:
            return
        columns = [column for column in places.unread if column not in self.source.not_options]
        if self._is_offered and places.family:
            family = [column for column in places.family if column in columns and not self._absent(row[column])]
            refuse_family(family, where)
        if self._is_offered and (column := unread_options(columns, row, answer)):
            use = f"--map options={column} offers them, -p dataset.not_options=[{column!r}] keeps a tag"
            raise DataError(f"{where}: column {column!r} looks like options and is not used; {use}")
        self.answers.refuse_more(row, places, answer, where)

    def _meta(self, row: Row, places: Places, where: str) -> dict[str, Any]:
        """Return what a row says of how it is asked (limit of tokens, system prompt) and of where its answer stands."""
        limit, system = (self._first(row, places.fields[field]) for field in ("max_tokens", "system"))
        told = {"max_tokens": token_limit(limit, where), "system": str(system) if system else None}
        meta = self.noted.sent({name: value for name, value in told.items() if value is not None})
        pages = page_numbers(self._first(row, places.fields["evidence_pages"]))
        if pages is None:
            self._note("rows whose evidence_pages are no numbers from 1: as if they named none", where)
        return meta | ({"needle_pages": pages} if pages else {})

    def _check_choice(self, sample: Sample, offered: RowOptions, answer: Any, where: str) -> None:
        """Note what is odd about a choice; refuse options whose own letters contradict the prompt's."""
        seen = offered.seen
        if type(answer) is str and answer.isalpha() and seen.settled and not seen.marks:  # most rows
            return
        if not self.source.strip_marks and not self.source.keep_marks:
            refuse_contrary(seen.marks, where)
            self.noted.options(seen)
        if len(sample.answers) > 1 and sample.form is Form.CHOICE:
            self.noted.several(sample.id)
        if self.source.answer_kind == "auto":
            self.noted.place(None if offered.keyed else answer, sample)

    def _note_sample(self, sample: Sample, places: Places) -> None:
        """Note of a row that its dialogue is not asked as one, or that it has no answer."""
        if sample.group is not None and "round" in sample.tags and self.task.infer not in DIALOGUES:
            self._note("rows with group and round: each asked alone (--infer-method every asks them as dialogues)")
        if not sample.answers:
            self.noted.unanswered(sample.id, () if places.fields["answer"] else places.tags)
        elif not sample.options:
            self.noted.texts(sample, forced=self.task.form is not Form.AUTO)

    def _decided(self, sample: Sample, stated: str, answer: Any, keyed: Mapping[str, str], where: str) -> Sample:
        """Return a round of a dialogue with its answers as texts and its form."""
        if not (sample.options or sample.turns or "round" in sample.tags):
            question, offered = self._from_text(sample.question, answer, stated, where)
            sample = msgspec.structs.replace(sample, question=question, options=offered.texts)
            keyed = offered.keyed or keyed
        for turn in (*sample.turns, Turn("user", sample.question)):
            if turn.role == "user":
                self._note_foreign(turn.text, len(turn.images or sample.images), where)
        if isinstance(answer, str) and "</think>" in answer:
            raise DataError(f"{where}: the answer holds thinking ({answer[:30]!r}); write what follows </think> alone")
        answers = self.answers.texts(answer, look_at_options(sample.options), keyed, where, stated)
        form = self._form(sample.options, answers, stated, where)
        sample = msgspec.structs.replace(sample, answers=answers, form=form)
        if not answers:
            self.noted.unanswered(sample.id, ())
        elif not sample.options:
            self.noted.texts(sample, forced=self.task.form is not Form.AUTO)
        return sample

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
        value = self._first(row, places.fields["form"])
        if value is None:
            return ""
        stated = self.rows.forms.get(str(value).strip().casefold(), "")
        if not stated and "form" in row:
            self._note(f"rows whose column 'form' says {str(value)[:20]!r}, which is no form: the row decides")
        return stated

    def _keep_twice(self, options: tuple[str, ...], twice: tuple[int, int], where: str) -> dict[str, Any]:
        first, second = twice
        if self.source.duplicates == "error":
            same = f"options {first + 1} and {second + 1} are the same ({options[second]!r})"
            raise DataError(f"{where}: {same}; --duplicates keep asks it all the same, drop leaves it out")
        self._note("rows with an option twice: kept, either counts (--duplicates keep)", where)
        return {"duplicate_options": True}

    def _question(self, row: Row, places: Places, pictures: int, where: str) -> str:
        question = self._first(row, places.fields["question"])
        hint = self._first(row, places.fields["hint"]) if places.fields["hint"] else None
        if isinstance(question, str) and question.strip():
            if question[0] == "[":
                refuse_list(question, where)
            return question if hint is None else f"{hint}\n{question}"
        if pictures and question is None and (places.fields["question"] or self.task.form is Form.PARSE):
            if hint is None and self.task.form is not Form.PARSE:
                self._note("rows with an empty question: only their pictures and options are asked", where)
            return str(hint or "")  # the question stands in the picture
        drawn = "; where it stands in the picture, add an empty column `question`" if pictures else ""
        fix = f"name its column with --map question=COLUMN{drawn}"
        raise DataError(f"{where} has no question{question_hint(row)}; {fix}")

    def _in_text(self, question: str, answer: Any, stated: str) -> tuple[str, ...]:
        """Return the alphabets in which options may be marked in a question: none where nothing speaks for options.

        The format says so, the answer is a letter, several are right, or an option seems to begin a line.
        """
        if not self._is_offered:
            return ()
        text = answer.strip("()[]. ") if isinstance(answer, str) else ""
        told = self.rows.options_in_question or Form.MULTIPLE in (stated, self.task.form)
        worded = text and not text.isdecimal()
        if told or (worded and (len(text) == 1 or row_options.FIRST_ON_LINE.search(question))):
            return alphabets_of(text if len(text) == 1 else "")
        return ()

    def _from_text(self, question: str, answer: Any, stated: str, where: str) -> tuple[str, RowOptions]:
        alphabets = self._in_text(question, answer, stated)
        found = row_options.options_in_text(question, alphabets) if alphabets else None
        if found is None:
            return question, NO_OPTIONS
        offered = RowOptions(look_at_options(found.options), found.keyed)
        try:
            self.answers.texts(answer, offered.seen, offered.keyed, where, stated)
        except DataError:
            if names_several(answer, found.options):
                raise
            self._note("rows whose question lists what may be options, without the answer: asked as it is", where)
            return question, NO_OPTIONS
        self._note(f"rows with options in the text of the question: read where marked {found.pattern}")
        return found.question, offered

    def _options(self, row: Row, places: Places, pictures: int, where: str) -> RowOptions:
        """Return the options of a row that has so many pictures beside them."""
        as_texts = self._context.replies_only or "options" in self.source.not_pictures
        door = None if as_texts else self.pictures
        columns = places.fields["options"]
        several = len(columns) > 1 and "," in self.source.columns.get("options", "")
        value = row_options.plain_options(
            [row[name] for name in columns] if several else self._first(row, columns), where
        )
        if value is None:
            value = row_options.lettered_options(row, places.lettered, self._absent, where)
        elif not isinstance(value, list):
            value = {key: text for key, text in row_options.in_order(value, where).items() if not self._absent(text)}
        found = read_row_options(value, pictures + 1, door, where)
        if places.rivals and found.texts and not several:
            row_options.refuse_rivals(row, places, found.texts, self._absent, where)
        if found.images:
            self._note("rows with pictures as options: shown as pictures")
        return found

    def _group(self, row: Row, places: Places, *videos: str) -> str | None:
        """Return the group a row names, or its video: questions about one video are not independent."""
        value = self._first(row, places.fields["group"])
        return (videos[0] if videos else None) if value is None else str(value)

    def _tags(
        self, row: Row, places: Places, where: str, pictured: bool, shown: Collection[str] = ()
    ) -> dict[str, str | int | float | bool | None]:
        if not places.tags and not places.fields["round"]:
            return {}
        columns = [column for column in places.tags if column not in shown]
        if not self._context.replies_only:
            self.images.refuse_unread(row, columns, places, pictured, where)
        self.noted.lost(row, places.lost)
        self.noted.contexts(row, places.contexts)
        tags = {column: tag_value(row[column]) for column in columns}
        for column in places.fields["round"][:1]:
            tags["round"] = round_number(row[column], where)
        return tags
