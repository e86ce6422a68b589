"""Stored trials to files other programs read: JSONL, CSV, Parquet, and data frames."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import EnvironmentProblem, MissingExtra
from ..core.text import quoted_line, safe_cell
from ..core.types import Usage
from ..scoring.tables.table import lower_is_better
from ..store.reader import RunReader
from .exported_run import Details, ExportedRun, check_details
from .files import Record, record_lines, records, write_atomically

COLUMNS = (
    *("task", "sample", "variant", "repeat", "outcome", "metric", "value", "answer", "rule", "reason", "text"),
    *("reasoning", "finish", "input_tokens", "output_tokens", "latency_s", "cached", "error_kind", "error_message"),
    *("question", "expected", "group", "tags"),
)
REPEATED = frozenset({"task", "variant", "metric", "answer", "rule", "reason", "finish", "error_kind"})
PART_ROWS = 20_000
"""Rows that are held as Python's values before they become columns: a million of them are two gigabytes."""


def frame_records(reader: RunReader) -> Iterator[dict[str, Any]]:
    """Yield the rows of a data frame: as `flat_records`, and each metric and each tag a column of its own."""
    for row, each in _rows(reader):
        del row["tags"]
        tags = {f"tag_{name}" if name in (*COLUMNS, *each.scores) else name: value for name, value in each.tags.items()}
        yield row | each.scores | tags


def flat_records(reader: RunReader) -> Iterator[dict[str, Any]]:
    """Yield every trial as one flat record of plain values, its tags as JSON: the rows of a file."""
    return (row for row, _ in _rows(reader))


def _rows(reader: RunReader) -> Iterator[tuple[dict[str, Any], Record]]:
    facts: dict[tuple[str, str], tuple[str, str, str | None]] = {}
    for task in reader.header().tasks:
        for sample in reader.samples(task.name):
            facts[(task.name, sample.id)] = (sample.question, "\n".join(sample.answers), sample.group)
    for each in records(reader):
        usage, error = each.usage or Usage(), each.error or {}
        question, expected, group = facts.get((each.task, each.sample), ("", "", None))
        row = {name: getattr(each, name, None) for name in COLUMNS}
        row |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        row |= {"error_kind": str(error["kind"]) if error else None, "error_message": error.get("message")}
        row |= {
            "question": question,
            "expected": expected,
            "group": group,
            "tags": msgspec.json.encode(each.tags).decode(),
        }
        yield row, each


def csv_lines(reader: RunReader) -> Iterator[str]:
    """Yield the lines of a CSV file; cells that a spreadsheet would run as formulas are defused."""
    yield quoted_line(COLUMNS)
    for row in flat_records(reader):
        yield quoted_line([safe_cell(value) for value in row.values()])


def jsonl_lines(reader: RunReader) -> Iterator[str]:
    """Yield the lines of records.jsonl."""
    for each in records(reader):
        yield record_lines([each]).decode()


def parquet_bytes(reader: RunReader) -> bytes:
    """Return a Parquet file (extra `parquet`)."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("parquet", "writing Parquet") from None
    rows, parts = flat_records(reader), list[Any]()
    while part := list(islice(rows, PART_ROWS)):
        parts.append(_arrow_table(pyarrow, part))
    table = pyarrow.concat_tables(_alike(pyarrow, parts or [_arrow_table(pyarrow, [])])).combine_chunks()
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out)
    return out.getvalue()


def _arrow_table(pyarrow: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    return pyarrow.table({name: _column(pyarrow, [row[name] for row in rows]) for name in COLUMNS})


def _alike(pyarrow: Any, parts: Sequence[Any]) -> list[Any]:
    """Return tables with the types that all their rows together would have: a part may hold nothing but nulls."""
    schema = pyarrow.unify_schemas([part.schema for part in parts], promote_options="permissive")
    return [part.cast(schema, safe=False) for part in parts]  # a huge count was rounded before parts were


def _column(pyarrow: Any, values: list[Any]) -> Any:
    """Return a column; counts beyond 64 bits, which a server may claim, become floating numbers."""
    try:
        return pyarrow.array(values)
    except (OverflowError, pyarrow.ArrowInvalid):
        return pyarrow.array([None if value is None else float(value) for value in values], pyarrow.float64())


def _write_table(form: str, run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write all trials of a run to one file, whole or not at all."""
    check_details(details, {}, form)
    output.mkdir(parents=True, exist_ok=True)
    target = output / f"trials.{form}"
    if form == "parquet":
        content = parquet_bytes(run.reader)
        write_atomically(target, lambda file: file.write(content))
    else:
        lines = csv_lines(run.reader) if form == "csv" else jsonl_lines(run.reader)
        write_atomically(target, lambda file: file.writelines(line.encode("utf-8", "replace") for line in lines))
    return [target]


write_jsonl, write_csv, write_parquet = (partial(_write_table, form) for form in ("jsonl", "csv", "parquet"))


def frame(run: str | Path) -> Any:
    """Return all trials of a run as a pandas data frame, else a polars one: one row a trial; without both an error.

    Every metric and every tag is a column of its own; a tag whose name is taken is called `tag_NAME`.
    """
    with RunReader(run) as reader:
        made = as_frame(frame_records(reader))
    if made is None:
        raise EnvironmentProblem(
            "a data frame needs pandas or polars, and neither is installed: pip install pandas; "
            "RunResult.rows() gives plain records"
        )
    return made


def plain_rows(run: str | Path) -> list[dict[str, Any]]:
    """Return all trials of a run as records, as a data frame has them."""
    with RunReader(run) as reader:
        return list(frame_records(reader))


def wrong_rows(run: str | Path, task: str | None = None) -> Any:
    """Return the trials whose main score is not the best there is; those without a score are not among them.

    A data frame where pandas or polars is installed, else plain records.
    """
    with RunReader(run) as reader:
        rows = [row for row in frame_records(reader) if task in (None, row["task"]) and _is_wrong(row)]
    made = as_frame(rows)
    return rows if made is None else made


def _is_wrong(row: Mapping[str, Any]) -> bool:
    value, metric = row["value"], row["metric"]
    return value is not None and (value > 0.0 if lower_is_better(metric or "") else value < 1.0)


def as_frame(rows: Iterable[dict[str, Any]]) -> Any:
    """Return rows as a pandas data frame, else a polars one; None where neither is installed."""
    try:
        import pandas

        columns = _frame_columns(rows, math.nan)
        return pandas.DataFrame(columns if columns[COLUMNS[0]] else None, columns=list(columns), copy=False)
    except ImportError:
        pass
    try:
        import polars
    except ImportError:
        return None
    return polars.DataFrame(_frame_columns(rows, None), strict=False)


def _frame_columns(rows: Iterable[Mapping[str, Any]], missing: float | None) -> dict[str, list[Any]]:
    """Return rows as columns, in the order in which they are first named; texts that repeat are held once."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS[:-1]}
    texts: dict[str, str] = {}
    for place, row in enumerate(rows):
        columns |= {name: [missing] * place for name in row if name not in columns}
        for name, column in columns.items():
            value = row.get(name, missing)
            column.append(texts.setdefault(value, value) if name in REPEATED and type(value) is str else value)
    return columns
