"""One row to the Sample it asks, or to those of its dialogue: what its cells mean, and what cannot be understood."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...core.errors import DataError
from ...core.folders import cache_folder
from ...core.ids import content_hash
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import OFFERED, Form, Image, Sample, Turn, Video
from ..files.rows import Row
from ..images.embedded import ImageStore
from .option_texts import (
    FIRST_ON_LINE,
    alphabets_of,
    option_facts,
    options_in_text,
    refuse_other_order,
    split_listed,
)
from .row_answers import RowAnswers, names_several, yes_or_no
from .row_dialogues import DIALOGUES, MediaReaders, brings_pictures, check_question, list_rounds
from .row_map import Cells, Places, RowMap, find_places
from .row_media import Pictures, RowImages, RowVideos, names_of_videos, remembered, told_of_videos
from .row_notes import RowNotes, UnreadColumns, question_hint, refuse_list
from .row_options import (
    AS_TEXTS,
    NO_OPTIONS,
    RowOptions,
    foreign_marker,
    in_order,
    lettered_options,
    padded,
    parse_list,
    plain_options,
    read_row_options,
    read_texts,
    refuse_rivals,
    settle_markers,
)
from .row_source import TableSource

YES_NO = frozenset({"yes", "no", "true", "false"})
"""JSON and sheets write the answers of yes/no questions as truth values; the scorer takes "Yes" for "True"."""
PAGE_COLUMNS = ("blocks", "tests")
"""Of a page that is to be turned into text: its blocks with their categories, or unit tests of the reply."""
Tags = dict[str, str | int | float | bool | None]


class AskedRow(NamedTuple):
    """What a row asks, and its answer and its form as they are written."""

    images: tuple[Image, ...]
    question: str
    offered: RowOptions
    answer: Any
    form: str
    """Empty where the row states none."""


class RowReader:
    """Reads rows of one map; what it finds out about them is noted in the context."""

    def __init__(
        self, task: Task, source: TableSource, rows: RowMap, files: Sequence[Path], context: LoadContext
    ) -> None:
        self.task, self.source, self.rows = task, source, rows
        self._files, self._context = files, context
        self._root = source.picture_root(files[0], context.root)
        self._kept = (context.workdir or cache_folder() / "generated") / "rows"
        context.folders.update(dict.fromkeys(map(str, (self._root, files[0].parent, self._kept))))
        self.cells = Cells(rows.absent)
        self._first = self.cells.first
        self.notes = RowNotes(context.notes, source, task.form)
        self._note = self.notes.add
        self._ids = RowIds(self.cells, self._note, joined="," in source.columns.get("id", ""))
        self.answers = RowAnswers(task, source, rows, self.cells)
        self._places: dict[tuple[str, ...], Places] = {}
        self._is_offered = task.form in (Form.AUTO, *OFFERED)

    @cached_property
    def pictures(self) -> Pictures:
        """Return what reads cells that hold pictures; made, as the next three, when a row needs it."""
        memory = remembered(self._files, self._context.memory)
        return Pictures(self._root, self._kept, self.source.pdf_dpi, memory)

    @cached_property
    def images(self) -> RowImages:
        """Return what finds the pictures of a row."""
        return RowImages(self._files, self.rows, self.cells, self.pictures, self.source)

    @cached_property
    def videos(self) -> RowVideos:
        """Return what finds the videos of a row."""
        return RowVideos(self.source, self.cells, self._root, ImageStore(self._kept))

    @cached_property
    def unread(self) -> UnreadColumns:
        """Return what looks at the columns that nothing reads."""
        return UnreadColumns(self.source, self.cells, self.pictures.root, self.notes)

    def read_or_leave(self, row: Row, where: str) -> Sample | Iterable[Sample]:
        """Return what a row holds; one that cannot be asked is left out, and said or entered with its reason."""
        try:
            found = self.read(row, where)
            return found if isinstance(found, Sample) else list(found)
        except DataError as error:
            if self._context.refused is not None:
                self._context.refuse(where, error)
                return ()
            reason = str(error).removeprefix(where).lstrip(": ").partition(";")[0]
            self._note(f"rows left out that cannot be asked ({reason})", where)
            return ()

    def read(self, row: Row, where: str) -> Sample | Iterable[Sample]:
        """Return the sample of a row, those of a dialogue, or none."""
        if self.rows.inside:
            for column in self.rows.inside:
                nested = row.get(column)
                row = {**nested, **row} if isinstance(nested, dict) else row
        columns = tuple(row)
        places = self._places.get(columns)
        if places is None:
            places = find_places(columns, self.rows, offered=self._is_offered)
            if self.source.video:
                places = places._replace(labelled=True)
            self._places[columns] = places
        if places.fields["dialogue"]:
            dialogue = self._first(row, places.fields["dialogue"])
            if isinstance(dialogue, str):
                dialogue = parse_list(dialogue, where, "messages")
            if isinstance(dialogue, list):
                return self._dialogue(row, places, dialogue, where)
        return self._sample(row, places, where) or ()

    def _dialogue(self, row: Row, places: Places, messages: list[Any], where: str) -> Iterator[Sample]:
        images = self.images.of_places(row, places, where)
        offered = self._options(row, places, len(images), where)
        if offered.images:
            raise DataError(f"{where}: a row of messages cannot have pictures as options yet; {AS_TEXTS}")
        videos = self.videos.of_places(row, places, where)
        pictured = bool(images or videos or brings_pictures(messages))
        check_question(self._first(row, places.fields["question"]), messages, where)
        base = Sample(
            id=self._ids.of_row(row, places, (messages,), where),
            dataset=self.task.name,
            form=Form.OPEN,
            question="",
            images=images,
            options=offered.texts,
            tags=self._tags(row, places, where, pictured, videos),
            group=self._group(row, places, ()),
            meta=self._meta(row, places, where),
            videos=videos,
        )
        answer = self.answers.of_places(row, places, where)
        for round_ in list_rounds(base, messages, answer, MediaReaders(self.pictures, self.videos), where):
            yield self._decided(round_.sample, self._stated(row, places), round_.answer, offered.keyed, where)

    def _sample(self, row: Row, places: Places, where: str) -> Sample | None:
        asked = self._asked(row, places, where)
        images, question, facts = asked.images, asked.question, asked.offered.facts
        odd = foreign_marker(question, len(images) or self._context.replies_only, where)
        if odd is not None:
            self._note_marker(odd, where)
        options, meta = facts.options, self._meta(row, places, where) if places.told else {}
        if self.task.form is Form.PARSE:
            meta |= {name: row[name] for name in PAGE_COLUMNS if isinstance(row.get(name), list)}
        if facts.twice and self.source.duplicates == "drop":
            self._note("rows with an option twice: left out (--duplicates drop)", where)
            return None
        if facts.twice:
            meta |= self._keep_twice(options, facts.twice, where)
        answers, form = self._answered(row, places, asked, where)
        videos = self.videos.of_places(row, places, where) if places.fields["video"] or self.source.video else ()
        name = self._ids.of_row(row, places, told_of_videos(row, videos, question, options) if videos else (), where)
        group, tags = None, {}
        if places.labelled:
            tags = self._tags(row, places, where, bool(images or videos), videos)
            group = self._group(row, places, videos)
        # By place: every row of every table is made here, and names cost as much as all the rest.
        sample = Sample(name, self.task.name, form, question, images, options, answers, (), group, tags, meta, videos)
        if images:
            self.images.remember(name, images)
        plain = type(asked.answer) is str and asked.answer.isalpha() and facts.settled and not facts.marks  # most rows
        if options and not plain:
            self.notes.choice(sample, facts, None if asked.offered.keyed else asked.answer, where)
        if group is not None and "round" in tags and self.task.infer not in DIALOGUES:
            self._note("rows with group and round: each asked alone (--infer-method every asks them as dialogues)")
        if not answers or not options:
            self.notes.answers(sample, () if places.fields["answer"] else places.tags)
        return sample

    def _answered(self, row: Row, places: Places, asked: AskedRow, where: str) -> tuple[tuple[str, ...], Form]:
        """Return the answers of a row as texts, and the form they make of it."""
        facts = asked.offered.facts
        options = facts.options
        answers = self.answers.texts(asked.answer, facts, asked.offered.keyed, where, asked.form)
        if options and len(places.fields["answer"]) > 1 and answers:
            self.answers.refuse_other(row, places, answers, facts, where)
        form = self._form(options, answers, asked.form, where)
        if form is Form.YESNO and not options and answers != (worded := yes_or_no(answers)):
            self._note("rows whose answer is 1, Y or T, or 0, N or F: taken for yes, or no")
            answers = worded
        return answers, form

    def _asked(self, row: Row, places: Places, where: str) -> AskedRow:
        images = self.images.of_places(row, places, where) if places.images or self.source.image else ()
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
            if not offered.texts:
                self._refuse_unread(row, places, answer, where)
        elif (found := split_listed(question, offered.texts)) is not None:
            # The question stays as the row has it: whether the list is shown by it or by the prompt is the prompt's.
            refuse_other_order(found, offered.texts, where)
            self._note("rows whose question lists its options as their column does: shown once")
        if not self.source.one_picture:
            question, offered = settle_markers(question, offered, len(images), where)
        return AskedRow(images, question, offered, answer, stated)

    def _note_marker(self, odd: str, where: str) -> None:
        self._note(f"rows whose question holds another tool's marker ({odd}): it is sent as text; write <image>", where)

    def _refuse_unread(self, row: Row, places: Places, answer: Any, where: str) -> None:
        """Refuse a row that would be asked without options it has, or scored by some of its answers only."""
        if self._is_offered and places.unread:
            self.unread.refuse_options(row, places, answer, where)
        self.answers.refuse_more(row, places, answer, where)

    def _meta(self, row: Row, places: Places, where: str) -> dict[str, Any]:
        """Return what a row says of how it is asked (limit of tokens, system prompt) and of where its answer stands."""
        limit, system = (self._first(row, places.fields[field]) for field in ("max_tokens", "system"))
        told = {"max_tokens": token_limit(limit, where), "system": str(system) if system else None}
        meta = self.notes.sent({name: value for name, value in told.items() if value is not None})
        pages = evidence_pages(self._first(row, places.fields["evidence_pages"]))
        if pages is None:
            self._note("rows whose evidence_pages are no numbers from 1: as if they named none", where)
        return meta | ({"needle_pages": pages} if pages else {})

    def _decided(self, sample: Sample, stated: str, answer: Any, keyed: Mapping[str, str], where: str) -> Sample:
        """Return a round of a dialogue with its answers as texts and its form."""
        if not (sample.options or sample.turns or "round" in sample.tags):
            question, offered = self._from_text(sample.question, answer, stated, where)
            sample = msgspec.structs.replace(sample, question=question, options=offered.texts)
            keyed = offered.keyed or keyed
        for turn in (*sample.turns, Turn("user", sample.question)):
            if turn.role == "user":
                pictures = len(turn.images or sample.images) or self._context.replies_only
                if (odd := foreign_marker(turn.text, pictures, where)) is not None:
                    self._note_marker(odd, where)
        if isinstance(answer, str) and "</think>" in answer:
            raise DataError(f"{where}: the answer holds thinking ({answer[:30]!r}); write what follows </think> alone")
        answers = self.answers.texts(answer, option_facts(sample.options), keyed, where, stated)
        form = self._form(sample.options, answers, stated, where)
        sample = msgspec.structs.replace(sample, answers=answers, form=form)
        self.notes.answers(sample)
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
        if told or (worded and (len(text) == 1 or FIRST_ON_LINE.search(question))):
            return alphabets_of(text if len(text) == 1 else "")
        return ()

    def _from_text(self, question: str, answer: Any, stated: str, where: str) -> tuple[str, RowOptions]:
        alphabets = self._in_text(question, answer, stated)
        found = options_in_text(question, alphabets) if alphabets else None
        if found is None:
            return question, NO_OPTIONS
        offered = RowOptions(option_facts(found.options), found.keyed)
        try:
            self.answers.texts(answer, offered.facts, offered.keyed, where, stated)
        except DataError:
            if names_several(answer, found.options):
                raise
            self._note("rows whose question lists what may be options, without the answer: asked as it is", where)
            return question, NO_OPTIONS
        self._note(f"rows with options in the text of the question: read where marked {found.pattern}")
        return found.question, offered

    def _options(self, row: Row, places: Places, pictures: int, where: str) -> RowOptions:
        """Return the options of a row that has so many pictures beside them."""
        columns = places.fields["options"]
        several = len(columns) > 1 and "," in self.source.columns.get("options", "")
        value = plain_options([row[name] for name in columns] if several else self._first(row, columns), where)
        if value is None:
            value = lettered_options(row, places.lettered, self.cells.is_empty, where)
        elif not isinstance(value, list):
            ordered = in_order(value, where)
            value = {key: text for key, text in ordered.items() if not self.cells.is_empty(text)}
        found = read_texts(value)
        if found is None:
            as_texts = self._context.replies_only or "options" in self.source.not_pictures
            found = read_row_options(value, pictures + 1, None if as_texts else self.pictures, where)
        if places.rivals and found.texts and not several:
            refuse_rivals(row, places, found.texts, self.cells.is_empty, where)
        if found.images:
            self._note("rows with pictures as options: shown as pictures")
        return found

    def _group(self, row: Row, places: Places, videos: Sequence[Video]) -> str | None:
        """Return the group a row names, or its video: questions about one video are not independent."""
        value = self._first(row, places.fields["group"])
        return next(iter(names_of_videos(videos)), None) if value is None else str(value)

    def _tags(self, row: Row, places: Places, where: str, pictured: bool, videos: Sequence[Video]) -> Tags:
        if not places.tags and not places.fields["round"]:
            return {}
        shown = self.videos.columns_used(places) if videos else ()  # what says which video is shown is no tag then
        columns = [column for column in places.tags if column not in shown]
        if not self._context.replies_only:
            self.unread.refuse_pictures(row, columns, places, pictured, where)
        if places.lost or places.contexts:
            self.unread.note(row, places)
        tags = {column: tag_value(row[column]) for column in columns}
        for column in places.fields["round"][:1]:
            tags["round"] = round_number(row[column], where)
        return tags


class RowIds:
    """Gives rows their ids: what their column says, or a hash of what they hold."""

    def __init__(self, cells: Cells, note: Callable[[str, str], None], *, joined: bool) -> None:
        self._cells, self._note = cells, note
        self._joined = joined
        """Whether the user named several columns that are one id together."""
        self._hashed: Counter[str] = Counter()

    def of_row(self, row: Row, places: Places, more: tuple[Any, ...], where: str) -> str:
        """Return the id of a row."""
        columns = places.fields["id"]
        value = self._cells.first(row, columns)
        if self._joined and len(columns) > 1:
            value = "/".join(str(row[column]) for column in columns)
        if value is None:
            if any(str(row[column]).isspace() for column in columns):
                raise DataError(f"{where} has an empty id")
            return self._hash(row, places, more, where)
        text = str(value)
        if not text.strip():
            raise DataError(f"{where} has an empty id")
        return text

    def _hash(self, row: Row, places: Places, more: tuple[Any, ...], where: str) -> str:
        """Return an id by what a row holds; where that is another's too, its question by whatever name counts.

        A row that is another's twin in all of this is a question of its own, as authors count theirs.
        """
        known = [row.get(name) for name in ("question", "image", "images", "options")]
        other = [row[name] for group in places.images for name in group if name not in ("image", "images")]
        parts = [*known, *([other] if other else []), *more]
        made = content_hash(parts, 12)
        if made in self._hashed and "question" not in row:
            asked = [row[name] for name in (*places.fields["question"], *places.fields["options"])]
            made = content_hash([*parts, asked], 12)
        self._hashed[made] += 1
        if self._hashed[made] == 1:
            return made
        self._note("rows without an id that ask what another row asks: each counts, whatever their answers", where)
        return f"{made}-{self._hashed[made]}"


def evidence_pages(value: Any) -> list[int] | None:
    """Return the pages that a cell names: a number, a list of them, or either as a text (`[3, 4]`, `3;4`).

    None where it names something else, such as a page 0: only who leaves pages out needs to know.
    """
    if value is None:
        return []
    cells = value if isinstance(value, list | tuple) else re.split(r"[,;\s]+", str(value).strip().strip("[]()"))
    try:
        numbers = [float(cell) for cell in cells if cell != ""]
    except (TypeError, ValueError):
        return None
    return sorted(map(int, set(numbers))) if all(one.is_integer() and one > 0 for one in numbers) else None


def token_limit(value: Any, where: str) -> int | None:
    """Return a row's own limit of tokens: a whole number above 0, also as sheets write it; None for none or 0."""
    if value is None:
        return None
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not number.is_integer() or number < 0:
        raise DataError(f"{where}: max_tokens {value!r} is not a whole number above 0")
    return int(number) or None


def round_number(value: Any, where: str) -> int:
    """Return the number of a dialogue's round."""
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: round {value!r} is not a whole number") from None


def tag_value(value: Any) -> str | int | float | bool | None:
    """Return a cell as a tag; what is no single value, as JSON."""
    return value if value is None or isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()
