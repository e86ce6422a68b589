"""The pictures of a row: in which of its columns they stand, in which row if a cell names one, and which pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import DataError
from ...core.types import Image
from ..files.rows import Row, read_rows
from ..overlooked import is_file_name, names_picture, names_video, says_picture
from .row_cells import Cells, fill_name
from .row_map import Places, RowMap
from .row_pictures import Pictures, are_same, is_row_name, looks_like_pictures, picture_values
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
