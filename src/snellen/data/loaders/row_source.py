"""What the table loader can be told, and the files it stands for."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ..files.folder_tables import find_tables, tables_by_name


class TableSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the table loader."""

    loader: str
    path: str
    """A file, or a folder with one table, or with the shards of one config and split."""
    columns: dict[str, str] = {}
    """Our field -> the file's column (`question = "prompt"`)."""
    image_root: str | None = None
    """The folder, or the ZIP archive, that the names of pictures are looked for in."""
    answer_kind: str = "auto"
    capitalise: bool = False
    reader: str = ""
    """The function that makes rows of a file whose records are none yet (`authors_files.READERS`)."""
    preset: str = ""
    """The row map (catalog/rows); empty: recognised by the columns."""
    duplicates: str = "error"
    """What to do with a row that has an option twice: refuse the file, keep the row, or drop it."""
    bad_rows: str = "refuse"
    """What to do with a row that cannot be asked (no question, an answer that is no option): refuse the file, or leave
    the row out and say so."""
    not_pictures: tuple[str, ...] = ()
    """Columns that look like pictures and are tags all the same."""
    not_options: tuple[str, ...] = ()
    """Columns that look like options and are tags all the same."""
    rounds: str = "all"
    """Which rounds of a dialogue are asked: all, or the last."""
    split: str = ""
    config: str = ""
    """Of a folder with several: which is meant."""
    sheet: str = ""
    """Of a workbook with several sheets: which is meant."""
    pdf_dpi: int = 144
    """How fine the pages of a PDF are drawn."""

    one_picture: bool = False
    """Whether a row's one picture shows all that its text numbers (`<image3>`): such markers are words."""
    strip_marks: bool = False
    """Whether options that begin with their own letters (`A. a cat`) lose them: the prompt writes its own."""
    keep_marks: bool = False
    """Whether options whose own letters contradict the prompt's are asked all the same, as a benchmark's authors do."""
    image: str = ""
    """Where a row's picture lies, by its columns (`val2014/COCO_val2014_{image_id:012}.jpg`); empty: cells say so."""
    video: str = ""
    """Where a row's video lies, by its columns (`videos/{videoID}.mp4`); empty: the cell says so itself.

    `*/{id}.mp4`: in whichever folder beside the table."""
    subtitles: str = ""
    """The same for its subtitles."""
    table_tag: str = ""
    """The tag that says which table of a folder a row is from: all its tables are read, unless `config` names one."""
    table_roots: dict[str, str] = {}
    """By table: the folder under `image_root` that its videos lie in, where that is there."""

    def tables(self, root: Path | None) -> dict[str, list[Path]]:
        """Return the files of every table by its name."""
        return tables_by_name(resolve(self.path, root), self.config, self.split)

    def files(self, root: Path | None) -> list[Path]:
        """Return the files whose rows are read, in order."""
        path = resolve(self.path, root)
        return find_tables(path, self.config, self.split) if path.is_dir() else [path]

    def picture_root(self, table: Path, root: Path | None) -> Path:
        """Return the folder that pictures and videos are named in: `image_root` as it resolves, or beside the table."""
        if not self.image_root:
            return table.parent
        told, path = resolve(self.image_root, root), resolve(self.path, root)
        beside = (folder / self.image_root for folder in (path, table.parent, table.parent.parent))
        return told if told.exists() else next((folder for folder in beside if folder.exists()), told)


def data_home() -> Path:
    """Return where datasets are kept when nobody says otherwise: `$SNELLEN_DATA`, or ./data."""
    return Path(os.environ.get("SNELLEN_DATA") or "data")


def resolve(path: str, root: Path | None) -> Path:
    """Return a path under the data root; told none, the path as it is written, else the one under `data_home`."""
    if root is not None:
        return root / path
    fetched = data_home() / path
    return fetched if not Path(path).exists() and fetched.exists() else Path(path)
