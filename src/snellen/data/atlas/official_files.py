"""A benchmark's files as its authors give them away: several that are one, columns beside a table, picture folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError
from ..files.rows import NOT_JSON, Row, read_rows
from ..loaders.authors_files import ReadFile
from .card_sources import CardSource
from .diagram_archive import DiagramArchive, Notes
from .template_rows import templated_rows


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
