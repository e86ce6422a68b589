"""VLMEvalKit's prediction files (xlsx, tsv, json), with verdicts and report from the files beside them."""

from __future__ import annotations

import csv
import json
import math
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import DataError
from ...data.atlas.peer_cards import peer_card, split_name
from ...data.loaders.option_texts import OPTION_MARK
from .damage import EXCEL_CELL, Damage, each_readable, failure_in
from .foreign_rows import (
    NO_REPLY,
    ForeignFile,
    ForeignRow,
    as_list,
    is_nothing,
    lettered,
    plain_id,
    settle_gold,
    share,
    short_tags,
)
from .formats import ForeignSource, PredictionFormat, Record

HARNESS = "vlmevalkit"
RESULTS = ("_result", "_results", "_auxmatch")
"""How files end that hold the harness's own verdicts beside the predictions."""
CIRCLE = 1_000_000
"""Rotated copies of row i are the rows i + 1,000,000, i + 2,000,000 …"""
_RESULT_STEM = re.compile(r"(?:_exact_matching|_[^_]+)?(?:_result|_results|_auxmatch)$")
_NO_TAGS = frozenset(
    (
        "index",
        "question",
        "hint",
        "answer",
        "prediction",
        "image",
        "image_path",
        "thinking",
        "hit",
        "log",
        "score",
        "extracted",
        "res",
        "eval_gt",
        "eval_pred",
        "eval_match",
        "eval_score",
        "g_index",
        "extra_records",
        "options",
        "choices",
        "candidates",
    )
) | frozenset(string.ascii_uppercase)


class _Verdict(NamedTuple):
    value: float | None
    read: str | None


def is_vlmevalkit(source: ForeignSource) -> bool:
    """Tell VLMEvalKit's files by their columns: `index` and `prediction`; a JSON object by its first key."""
    columns = {column.lower() for column in source.first}
    return {"index", "prediction"} <= columns or source.first_key in ("index", "columns")


def open_vlmevalkit(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a prediction file; verdicts and report are taken from the files beside it where there is one of each."""
    path = source.path
    stem = _RESULT_STEM.sub("", path.stem)
    folder = path.parent.parent.name if re.match(r"T\d{8}", path.parent.name) else path.parent.name
    model, task = split_name(stem, folder, peer_card(HARNESS))
    notes: list[str] = []
    verdicts = _verdicts_beside(path, notes)
    circular = peer_card(HARNESS).rules(task).aggregate == "all-of-group"
    rows = _rows(source, verdicts, circular, damage)
    return ForeignFile(HARNESS, path, rows, task, model, _reported(path.parent, stem), notes=notes)


def _rows(
    source: ForeignSource, verdicts: Mapping[str, _Verdict], circular: bool, damage: Damage
) -> Iterator[ForeignRow]:
    records = _columnar(source.path) if source.is_object else source.records()
    in_sheet = source.ending == ".xlsx"

    def read(number: int, record: Record) -> Iterator[ForeignRow]:
        """Yield the row of a record."""
        row = _lowered(record)
        if is_nothing(row.get("index")):
            raise DataError("it has no index")
        yield _row(row, verdicts, circular, damage, in_sheet)

    return each_readable(records, read, damage)


def _row(row: Record, verdicts: Mapping[str, _Verdict], circular: bool, damage: Damage, in_sheet: bool) -> ForeignRow:
    name = plain_id(row["index"])
    options, answer = _options(row)
    gold = settle_gold(options, answer, name, damage)
    reply, failure, read = read_cell(row.get("prediction"), name, damage, in_sheet=in_sheet)
    verdict = verdicts.get(name) or _own_verdict(row)
    return ForeignRow(
        name,
        gold.form,
        reply,
        failure,
        question=_question(row),
        options=options,
        answers=gold.answers,
        reasoning=None if is_nothing(row.get("thinking")) else str(row["thinking"]),
        finish="length" if in_sheet and reply is not None and len(reply) >= EXCEL_CELL else None,
        group=_group(row, name) if circular else None,
        tags=short_tags(row, _NO_TAGS),
        read_reply=read,
        read_answer=verdict.read,
        verdict=verdict.value,
    )


def _options(row: Record) -> tuple[dict[str, str], Any]:
    """Return the options by letter and the right answer: in columns A, B …, or, of videos, in a list `candidates`."""
    options = {letter: str(row[letter]) for letter in string.ascii_uppercase if not is_nothing(row.get(letter))}
    listed = as_list(row.get("candidates"))
    if options or not isinstance(listed, list) or not listed:
        return options, row.get("answer")
    texts = [str(text) for text in listed]
    bare = _unlettered(texts)
    answer = _numbered_answer(row)
    return lettered(bare), dict(zip(texts, bare, strict=True)).get(str(answer), answer)


def _unlettered(texts: Sequence[str]) -> list[str]:
    """Return options without the letters they begin with, if each begins with its own."""
    found = [OPTION_MARK.match(text) for text in texts]
    own = [match[1].upper() if match else "" for match in found] == list(string.ascii_uppercase[: len(texts)])
    return [text[match.end() :].strip() if own and match else text for text, match in zip(texts, found, strict=True)]


def _numbered_answer(row: Record) -> Any:
    """Return the right answer; LongVideoBench's is a number from 0, in a column of its own."""
    place = str(row.get("correct_choice"))
    if not is_nothing(row.get("answer")) or not place.isdecimal():
        return row.get("answer")
    return dict(enumerate(string.ascii_uppercase)).get(int(place))


def read_cell(value: Any, name: str, damage: Damage, *, in_sheet: bool) -> tuple[str | None, str | None, str | None]:
    """Return reply, failure, and what VLMEvalKit reads where that is neither: `nan` for an empty cell."""
    if value == "" or (in_sheet and value is None):
        damage.add("empty", name)
        return "", None, "nan"
    if is_nothing(value):
        damage.add("lost", name)
        return None, NO_REPLY, "nan"
    if not isinstance(value, str):
        damage.add("typed", name)
        return str(value), None, None
    if in_sheet and len(value) >= EXCEL_CELL:
        damage.add("cut", name)
    failure = failure_in(HARNESS, value)
    return (None, failure, value) if failure else (value, None, None)


def _question(row: Record) -> str:
    hint = "" if is_nothing(row.get("hint")) else f"{row['hint']}\n"
    return hint + ("" if is_nothing(row.get("question")) else str(row["question"]))


def _group(row: Record, name: str) -> str:
    if not is_nothing(row.get("g_index")):
        return plain_id(row["g_index"])
    return str(int(name) % CIRCLE) if name.isdecimal() else name


def _own_verdict(row: Record) -> _Verdict:
    # A benchmark may have a column `score` of its own: it is a verdict where the harness's own columns stand beside it.
    columns = ("hit", "eval_score", *(("score",) if "log" in row or "extracted" in row else ()))
    value = next((share(row[column]) for column in columns if column in row), None)
    return _Verdict(value, None if is_nothing(row.get("extracted")) else str(row["extracted"]))


def _verdicts_beside(path: Path, notes: list[str]) -> dict[str, _Verdict]:
    """Return index -> verdict of the one result file beside a prediction file."""
    files = _result_files(path)
    if len(files) > 1:
        notes.append(f"several result files ({', '.join(file.name for file in files)}): name one to use its verdicts")
    if len(files) != 1:
        return {}
    notes.append(f"verdicts of {files[0].name}")
    rows = (_lowered(record) for _, record in ForeignSource(files[0]).records())
    return {plain_id(row.get("index")): _own_verdict(row) for row in rows}


def _result_files(path: Path) -> list[Path]:
    if path.stem.endswith(RESULTS):
        return []
    files = [file for end in RESULTS for file in sorted(path.parent.glob(f"{_escaped(path.stem)}*{end}.*"))]
    own = [file for file in files if _RESULT_STEM.sub("", file.stem) == path.stem]
    return [file for file in own if file.suffix.lower() in (".xlsx", ".tsv", ".json")]


def _lowered(record: Record) -> Record:
    """Return a row with its columns in lower case, as VLMEvalKit reads them; options keep their capitals."""
    return {name if name in string.ascii_uppercase else name.lower(): value for name, value in record.items()}


def _escaped(stem: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", stem)


def _reported(folder: Path, stem: str) -> dict[str, float]:
    """Return the overall numbers of the report beside it, as shares."""
    found: dict[str, float] = {}
    for end, scale in (("_acc.csv", 1), ("_score.csv", 100)):
        file = folder / f"{stem}{end}"
        if file.is_file():
            with file.open(encoding="utf-8-sig", newline="") as lines:
                found |= dict(_overall(row, file.name, scale) for row in csv.DictReader(lines))
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _overall(row: Mapping[str, str], name: str, scale: int) -> tuple[str, float]:
    """Return a line's overall number; reports of texts are in percent, those of choices are shares."""
    try:
        value = float(row.get("Overall") or row.get("acc") or row.get("aAcc") or "nan")
    except ValueError:
        value = math.nan
    return f"{name} {row.get('split') or ''}".strip(), value / (100 if value > 1 else scale)


def _columnar(path: Path) -> Iterator[tuple[int, Record]]:
    """Yield the rows of the other two JSON forms its reader takes: columns by name, or names and rows of cells."""
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(table.get("columns"), list) and isinstance(table.get("data"), list):
        yield from enumerate((dict(zip(table["columns"], cells, strict=False)) for cells in table["data"]), 1)
        return
    lists = {name: list(column.values()) if isinstance(column, dict) else column for name, column in table.items()}
    if not all(isinstance(column, list) for column in lists.values()) or len(set(map(len, lists.values()))) != 1:
        raise DataError(f"{path} is neither rows, nor columns of one length")
    yield from enumerate((dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)), 1)


FORMAT = PredictionFormat(is_vlmevalkit, open_vlmevalkit, beside=RESULTS)
