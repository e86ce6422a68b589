"""Rows that name their questions by the numbers of templates: the texts come from the user's copy of the benchmark.

The templates stand in a Python file of its authors. It is parsed, never run, and none of its words is shipped here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...core.errors import DataError
from ..files.rows import Row

MOST_BYTES = 1_000_000
NUMBERED = range(1, 10)
LISTS, COLUMNS = ("qids", "answers"), "descriptive_"
"""Where a row holds all its questions: they are no tags of one."""


class QuestionTemplates(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the templates of a benchmark stand, and how a row says what its questions are about."""

    file: str
    """The authors' file: beside the table, in `src`, or one folder up."""
    name: str
    """The table in it: number -> text with `{}` for the place that is asked about."""
    bring: str
    """How people get the file."""
    whole: str = ""
    """What stands for `{}` where a figure has one plot."""
    cell: str = ""
    """The same for a plot of a grid, with {row} and {column}."""
    other: str = ""
    """The same for a plot that the row describes in words, with {place}."""
    without: tuple[int, ...] = ()
    """Templates about the whole figure: they have no `{}`."""


def templated_rows(told: QuestionTemplates, rows: Iterator[tuple[int, Row]], table: Path) -> Iterator[tuple[int, Row]]:
    """Yield every question of every row with its text; a number that has no template is refused."""
    templates = read_question_templates(find_templates(told, table), told.name)
    count = 0
    for number, row in rows:
        where = f"{table.name} record {number}"
        place = _place(told, row, where)
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


def _place(told: QuestionTemplates, row: Row, where: str) -> str:
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
