"""Whose predictions a path holds: by what the file shows, or by the name told; folders are searched.

Formats are registered as `predictions`: rows of one's own here, those of other harnesses by a kit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ...core.builtins import default_registry
from ...core.errors import DataError, UsageError, did_you_mean, not_among
from ...core.registry import Registry
from ...core.types import Form
from ...data.files.jsonstream import iterate_members, iterate_records
from ...data.files.records import root_of, value_at
from ...data.files.rows import READERS, read_rows
from ...data.loaders.option_texts import fold
from ...data.loaders.row_answers import find_answers, is_plain_number
from ...data.loaders.row_map import lettered_columns
from .damage import Damage, each_readable, failure_anywhere, refuse_malformed
from .foreign_rows import (
    NO_REPLY,
    ForeignFile,
    ForeignRow,
    Gold,
    as_list,
    is_nothing,
    lettered,
    plain_id,
    settle_gold,
    share,
    short_tags,
    shown_options,
)

Record = dict[str, Any]
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
PICKLES = (".pkl", ".pickle")
REPLIES = ("response", "prediction", "reply", "output", "model_output", "generated_text", "text")
"""What a column of replies is called where nobody says."""
IDS = ("id", "index", "question_id", "sample_id", "sample", "pid", "idx")
_PEEKED = 4096
_LONGEST_LINE = 64 << 20
Path_ = tuple[str | int, ...]


class ForeignSource:
    """A path with what its first bytes and its first record say; `columns` are the user's (`--map response=PATH`)."""

    def __init__(self, path: Path, columns: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.columns = dict(columns or {})
        self.ending = path.suffix.lower()
        if self.ending in PICKLES:
            raise UsageError(
                f"{path} is a pickle, and reading one runs what it holds: write the predictions anew as "
                "PRED_FORMAT=json or tsv (VLMEvalKit falls back to pickles when a reply is too long for Excel)"
            )
        if not path.exists():
            raise DataError(f"predictions {str(path)!r} do not exist")

    @cached_property
    def opening(self) -> str:
        """Return the first character that is no space: `[` a list, `{` an object or lines of them."""
        with self.path.open("rb") as stream:
            start = stream.read(_PEEKED).removeprefix(b"\xef\xbb\xbf").lstrip()
        return start[:1].decode("latin-1")

    @cached_property
    def is_object(self) -> bool:
        """Tell whether the file is one large JSON object rather than records, one a line or one after the other."""
        if self.ending not in JSON_ENDINGS or self.path.is_dir() or self.opening != "{":
            return False
        with self.path.open("rb") as stream:
            line = stream.readline(_LONGEST_LINE).removeprefix(b"\xef\xbb\xbf").strip()
            more = bool(stream.read(_PEEKED).strip())
        try:
            json.loads(line.removesuffix(b","))
        except (ValueError, RecursionError):
            return line == b"{" or self.ending == ".json"
        return self.ending == ".json" and not more

    @cached_property
    def first(self) -> Record:
        """Return the first record, or an empty one where the file holds none that could be told."""
        if self.path.is_dir() or self.ending not in (*JSON_ENDINGS, *READERS):
            return {}
        number_and_record = next(self._rest, None)
        if number_and_record is None and self.is_object:
            return {}
        if number_and_record is None:
            raise DataError(f"{self.path} holds no rows")
        self._taken.append(number_and_record)
        return number_and_record[1]

    @cached_property
    def first_key(self) -> str:
        """Return the first key of one large object, or the empty text."""
        return next((key for key, _ in iterate_members(self.path, nan=True)), "") if self.is_object else ""

    def shown_columns(self, most: int) -> list[str]:
        """Return columns of the file, for a message: of its first record, or of its first innermost object."""
        found: Any = self.first
        if not found and self.is_object:
            found = self._whole()
            while inner := next((item for item in _below(found) if isinstance(item, dict | list) and item), None):
                found = inner
        return list(map(str, found))[:most] if isinstance(found, dict) else []

    def records(self) -> Iterator[tuple[int, Record]]:
        """Yield (number from 1, record), the first one too; once."""
        _ = self.first
        return chain(self._taken, self._rest)

    @cached_property
    def _taken(self) -> list[tuple[int, Record]]:
        return []

    @cached_property
    def _rest(self) -> Iterator[tuple[int, Record]]:
        if self.is_object:
            return enumerate(records_in(self._whole(), self.columns.get("response", "")), 1)
        if self.ending in JSON_ENDINGS:
            return iterate_records(self.path, nan=True)
        return read_rows(self.path)

    def _whole(self) -> Record:
        try:
            whole: Record = json.loads(self.path.read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path} is not valid JSON: {error}") from None
        return whole


def records_in(whole: Record, response: str = "") -> Iterator[Record]:
    """Yield the records of one large object, wherever in it they stand; `response` is the path of the replies, if told.

    `{id: record}`, `{id: reply}`, `{"val": [record, …]}`, `{video: {aspect: [record, …]}}`, or columns by id
    (`{"outputs": {id: reply}, "results": {…}}`). A record without an id gets its place as one.
    """
    names = (root_of(response),) if response else REPLIES
    column = next((name for name in names if isinstance(whole.get(name), dict)), None)
    if column is not None:
        tables = {name: values for name, values in whole.items() if isinstance(values, dict)}
        for key in whole[column]:
            yield {"id": key} | {name: values[key] for name, values in tables.items() if key in values}
    elif _is_record(whole, names):
        yield whole
    elif whole and all(isinstance(value, str | None) for value in whole.values()):
        yield from ({"id": key, REPLIES[0]: text} for key, text in whole.items())
    else:
        for place, record in _walk(whole, names, ()):
            yield _named(record, place)


def _below(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _is_record(value: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return any(name in value for name in names)


def _walk(value: Any, names: tuple[str, ...], place: Path_) -> Iterator[tuple[Path_, Record]]:
    """Yield every record below a value; what has no reply and nothing below it is no record (`args`, `acc`)."""
    if isinstance(value, dict) and place and _is_record(value, names):
        yield place, value
    elif isinstance(value, dict | list):
        children = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in children:
            yield from _walk(child, names, (*place, key))


def _named(record: Record, place: Path_) -> Record:
    """Return a record with what its place says: its id, the part of the file it stands in, and whose part that is."""
    keys = [key for key in place[: len(place) - isinstance(place[-1], str)] if isinstance(key, str)]
    told: Record = {} if any(name in record for name in IDS) else {"id": "/".join(map(str, place))}
    told |= {"part": keys[-1]} if keys else {}
    told |= {"group": keys[0]} if len(keys) > 1 else {}
    return {**told, **record}


HARNESS = "rows"
FIELDS: Mapping[str, Sequence[str]] = {
    "id": IDS,
    "response": REPLIES,
    "answer": ("answer", "gold", "target", "label", "ground_truth"),
    "options": ("options", "choices", "answer_options"),
    "question": ("question",),
    "prompt": ("prompt",),
    "verdict": ("correct", "hit", "is_correct", "score", "acc", "true_false"),
    "read": ("extracted", "parsed", "pred", "extracted_answer", "extraction"),
    "error": ("error",),
    "finish": ("finish",),
    "repeat": ("repeat",),
    "group": ("group",),
}
"""What `--map FIELD=PATH` can name, and the columns that are looked at where nobody says; the first with something."""


def is_plain(source: ForeignSource) -> bool:
    """Tell rows of one's own by a column for the reply, or by the user's word for it."""
    return "response" in source.columns or bool(source.first.keys() & set(REPLIES))


def open_plain(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open rows of one's own; they name no harness, so a second opinion must be told whose rule read them."""
    fields = RowFields(source.columns)
    fields.check(source.first, source.path.name)
    rows = each_readable(source.records(), partial(_row, fields=fields, damage=damage), damage)
    return ForeignFile(HARNESS, source.path, rows, source.path.stem, source.path.stem)


class RowFields:
    """Where the fields of a row stand: the user's paths, else columns that are called so and serve no other field."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        for field, path in columns.items():
            if field not in FIELDS:
                raise UsageError(f"--map {field}={path}: there is no field {not_among(field, FIELDS)}")
        self._told = dict(columns)
        used = {part.strip() for path in columns.values() for part in (path, *path.split(","))}
        self._names = {field: [name for name in names if name not in used] for field, names in FIELDS.items()}
        self._taken = frozenset(used | {root_of(path) for path in used}) | {
            name for names in FIELDS.values() for name in names
        }

    def get(self, record: Record, field: str) -> Any:
        """Return what a record has of a field, or None."""
        if field in self._told:
            value = value_at(record, self._told[field])
            return None if is_nothing(value) and value != "" else value
        return next((record[name] for name in self._names[field] if not is_nothing(record.get(name))), None)

    def reply(self, record: Record) -> Any:
        """Return the reply, the empty one too: it is another thing than none."""
        if "response" in self._told:
            return self.get(record, "response")
        value = self.get(record, "response")
        return value if value is not None else next((record[n] for n in self._names["response"] if n in record), None)

    def check(self, first: Record, name: str) -> None:
        """Refuse a path whose column the first record has not, with the columns that it has."""
        for field, path in self._told.items():
            parts = [path] if path in first else [part.strip() for part in path.split(",")]
            missing = next((part for part in parts if part not in first and root_of(part) not in first), None)
            if missing is not None:
                raise DataError(f"--map {field}={path}: {name} has no column {not_among(root_of(missing), first)}")

    def tags(self, record: Record) -> dict[str, Any]:
        """Return the columns that are no field and can be groups."""
        return short_tags(record, self._taken | frozenset(lettered_columns(tuple(record)).values()))


def _row(number: int, record: Record, *, fields: RowFields, damage: Damage) -> Iterator[ForeignRow]:
    named = fields.get(record, "id")
    name = plain_id(named) if named is not None else f"row-{number}"
    question, prompt = (_text(fields.get(record, field) or "") for field in ("question", "prompt"))
    answer = fields.get(record, "answer")
    options = _options(fields.get(record, "options"), record) or _in_text((question, prompt), answer)
    gold = _gold(options, answer, name, damage)
    reply, failure = _reply(fields.reply(record), fields.get(record, "error"), name, damage)
    finish, read = fields.get(record, "finish"), fields.get(record, "read")
    yield ForeignRow(
        name,
        gold.form,
        reply,
        failure,
        _repeat(fields.get(record, "repeat"), name),
        question=question,
        prompt=prompt,
        options=options,
        answers=gold.answers,
        finish=None if finish is None else str(finish),
        group=None if fields.get(record, "group") is None else str(fields.get(record, "group")),
        tags=fields.tags(record),
        read_reply=failure,
        read_answer=None if read is None else str(read),
        verdict=share(fields.get(record, "verdict")),
    )


def _repeat(value: Any, name: str) -> int:
    repeat = int(value or 0)
    if repeat < 0:
        raise DataError(f"row {name!r}: repeat {value!r} is no whole number from 0")
    return repeat


def _text(value: Any) -> str:
    """Return the words of a cell: a text, or a message as a chat API has it, with its parts."""
    if isinstance(value, dict):
        value = value.get("content", value.get("text", value))
    if isinstance(value, list) and value and all(isinstance(part, dict | str) for part in value):
        texts = [part if isinstance(part, str) else part.get("text") for part in value]
        value = "\n".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) else str(value)


def _options(value: Any, record: Record) -> dict[str, str]:
    listed = as_list(value)
    if isinstance(listed, list):
        return lettered(listed)
    if isinstance(listed, dict):
        return {str(letter): str(text) for letter, text in listed.items()}
    columns = lettered_columns(tuple(record))
    return {letter: str(record[column]) for letter, column in columns.items() if not is_nothing(record[column])}


def _in_text(texts: Sequence[str], answer: Any) -> dict[str, str]:
    """Return the options that question or prompt list, unless the right answer is none of them: it is open then."""
    found = next(filter(None, map(shown_options, texts)), {})
    return found if found and (answer is None or settle_gold(found, answer, "", Damage()).answers) else {}


def _gold(options: dict[str, str], value: Any, name: str, damage: Damage) -> Gold:
    """Return form and right answer; a number beside options is read as the table loader reads it, or not at all."""
    if options and not isinstance(value, bool) and isinstance(value, int):
        try:
            return Gold(Form.CHOICE, find_answers(value, tuple(options.values()), "auto", name))
        except DataError:
            if fold(str(value)) in map(fold, options.values()):  # one option's text and the place of another
                damage.add("two_golds", name)
                return Gold(Form.CHOICE, ())
    gold = settle_gold(options, value, name, damage)
    # No harness says how the answers of one's own rows are compared, so numbers are compared as numbers.
    numbers = gold.form is Form.OPEN and gold.answers and all(is_plain_number(text.strip()) for text in gold.answers)
    return gold._replace(form=Form.NUMBER) if numbers else gold


def _reply(value: Any, error: Any, name: str, damage: Damage) -> tuple[str | None, str | None]:
    if error is not None and is_nothing(value):
        return None, str(error)
    if value == "":
        damage.add("empty", name)
        return "", None
    if is_nothing(value):
        damage.add("lost", name)
        return None, NO_REPLY
    if not isinstance(value, str | list | dict):
        damage.add("typed", name)
    text = _text(value)
    failure = failure_anywhere(text)
    return (None, failure) if failure else (text, None)


MOST_NAMED = 8
OWN_ROWS = "rows"
_SKIPPED = ("_evaluated", "_failed", "_result", "_checkpoint", "_PREV", "_structs", "task_info", "status")
_ENDINGS = (".eval", ".xlsx", ".tsv", ".jsonl", ".json")


class PredictionFormat(NamedTuple):
    """How the files of one harness are told from others, and opened: what is registered as `predictions`."""

    recognises: Callable[[ForeignSource], bool]
    open: Callable[[ForeignSource, Damage], ForeignFile]
    is_named: Callable[[Path], bool] | None = None
    """Tells its files of predictions in a folder by their names, where these are particular."""
    beside: tuple[str, ...] = ()
    """How names end of what it writes beside its predictions."""


ROWS_FORMAT = PredictionFormat(is_plain, open_plain)


def formats(registry: Registry | None = None) -> dict[str, PredictionFormat]:
    """Return harness -> its format, in the order they are tried; rows of one's own are told by least, and come last."""
    registry = registry or default_registry()
    names = [name for name in registry.entries("predictions") if name != OWN_ROWS]
    return {name: registry.get("predictions", name) for name in (*names, OWN_ROWS)}


def open_predictions(
    path: str | Path, damage: Damage, harness: str | None = None, columns: Mapping[str, str] | None = None
) -> ForeignFile:
    """Open a file of predictions, or the only one in a folder, and count in `damage` what it has lost.

    `columns` (field -> path) says where the fields of one's own rows stand; it makes them rows, whoever wrote them.
    """
    if columns and harness not in (None, OWN_ROWS):
        raise UsageError(f"--map says nothing of files of {harness}: their columns are known; leave one of both out")
    known = formats()
    harness = OWN_ROWS if columns else harness
    if harness is not None and harness not in known:
        raise UsageError(f"--from {harness!r} is no format{did_you_mean(harness, known)}; known: {', '.join(known)}")
    source = ForeignSource(_one_file(Path(path), known), columns)
    with refuse_malformed(str(source.path)):
        return _recognised(source, harness, known).open(source, damage)


def _recognised(source: ForeignSource, harness: str | None, known: Mapping[str, PredictionFormat]) -> PredictionFormat:
    if harness is not None:
        return known[harness]
    found = next((made for made in known.values() if made.recognises(source)), None)
    if found is None:
        shown = ", ".join(source.shown_columns(MOST_NAMED)) or f"ending {source.ending or '(none)'}"
        fix = f"name the column of replies by --map response=COLUMN, or whose it is by --from {'|'.join(known)}"
        raise DataError(f"{source.path} is of no known format ({shown}): {fix}")
    return found


def _one_file(path: Path, known: Mapping[str, PredictionFormat]) -> Path:
    """Return the one file of predictions in a folder; several, or only pickles, are refused with their names."""
    if not path.is_dir():
        return path
    skipped = (*_SKIPPED, *(ending for made in known.values() for ending in made.beside))
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.stem.endswith(skipped)]
    found = _predictions_in(files, known)
    if len(found) == 1:
        return found[0]
    if not found:
        pickles = [file.name for file in files if file.suffix in PICKLES]
        why = f"only pickles ({', '.join(pickles[:3])}), which are never read" if pickles else "no predictions"
        raise DataError(f"{path} holds {why}: name a file")
    named = ", ".join(str(file.relative_to(path)) for file in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    raise UsageError(f"{path} holds {len(found)} files ({named}{more}): name one of them")


def _predictions_in(files: list[Path], known: Mapping[str, PredictionFormat]) -> list[Path]:
    """Return what of these may be predictions, by the first shape of a run's folder that fits; reports never."""
    shapes = [made.is_named for made in known.values() if made.is_named is not None]
    found = next(filter(None, ([file for file in files if is_named(file)] for is_named in shapes)), None)
    return found or [file for file in files if file.suffix.lower() in _ENDINGS and "_results" not in file.stem]
