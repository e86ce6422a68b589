"""The videos of a row: files, bytes or folders of frames, with their subtitles and the part that is meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import DataError
from ...core.types import Video
from ..files.rows import Row
from ..images.embedded import ImageStore
from .row_cells import Cells, fill_name
from .row_map import Places
from .row_source import TableSource

VIDEO_NAME = re.compile(r"[^\n]{1,1000}\.(?:mp4|m4v|mov|mkv|webm|avi|ts|mpe?g|flv|ogv|wmv|gif)", re.IGNORECASE)
DATA_URL = "data:video/"
ANY_FOLDER = "*/"
PLACE_COLUMNS = ("video", "subtitles", "start", "end", "fps")


class RowVideos:
    """Finds the videos of rows of one file."""

    def __init__(self, source: TableSource, cells: Cells, root: Path, store: ImageStore) -> None:
        self._source = source
        self._cells = cells
        self._root = root.parent if root.is_file() else root
        self._store = store
        self._named = "video" in source.columns or "videos" in source.columns

    def of_places(self, row: Row, places: Places, where: str) -> tuple[Video, ...]:
        """Return the videos of a row; a cell that holds none stays what it was, unless the user named its column."""
        if not places.fields["video"] and not self._source.video:  # most tables have none
            return ()
        cells = self._video_cells(row, places, where)
        if not cells:
            return ()
        start, end, fps = (self._seconds(row, places, name, where) for name in ("start", "end", "fps"))
        if start is not None and end is not None and end <= start:
            raise DataError(f"{where}: the video's part from {start:g} s to {end:g} s is empty")
        subtitles = self._subtitles(row, places, where)
        return tuple(Video(self._ref(cell, where), subtitles, start, end, fps) for cell in cells)

    def of_cell(self, cell: Any, where: str) -> Video:
        """Return the video that a part of a message names."""
        if not self._is_video(cell):
            raise DataError(f"{where}: {str(cell)[:80]!r} in a message is no video; expected a file name or a data URL")
        return Video(self._ref(cell, where))

    def columns_used(self, places: Places, videos: tuple[Video, ...]) -> set[str]:
        """Return the columns that say what is shown: no tags where there is a video."""
        return {column for name in PLACE_COLUMNS for column in places.fields[name]} if videos else set()

    def _video_cells(self, row: Row, places: Places, where: str) -> list[Any]:
        if self._source.video:
            return [self._in_any_folder(fill_name(self._source.video, row, where), where)]
        for column in places.fields["video"]:
            cell = self._cells.first(row, (column,))
            cells = cell if isinstance(cell, list) else [] if cell is None else [cell]
            if cells and all(map(self._is_video, cells)):
                return cells
        if self._named and self._cells.first(row, places.fields["video"]) is not None:
            fix = "a file name ending in .mp4, .mkv, .webm …, a folder of frames, or dataset.video='videos/{id}.mp4'"
            raise DataError(f"{where}: the cell of column {places.fields['video'][0]!r} is no video; expected {fix}")
        return []

    def _in_any_folder(self, name: str, where: str) -> str:
        """Return a name that begins with `*/` with the one folder that holds it; as it is where none does."""
        if not name.startswith(ANY_FOLDER) or not self._root.is_dir():
            return name
        held = [folder.name for folder in sorted(self._root.iterdir()) if (folder / name[2:]).is_file()]
        if len(held) > 1:
            raise DataError(f"{where}: video {name[2:]!r} lies in {' and '.join(held)}: which one is meant?")
        return f"{held[0]}/{name[2:]}" if held else name

    def _is_video(self, cell: Any) -> bool:
        if isinstance(cell, dict):
            return isinstance(cell.get("bytes"), bytes) or self._is_video(cell.get("path"))
        if isinstance(cell, bytes):
            return bool(cell)
        if not isinstance(cell, str) or not cell:
            return False
        return cell.startswith(DATA_URL) or VIDEO_NAME.fullmatch(cell) is not None or self._is_folder(cell)

    def _is_folder(self, name: str) -> bool:
        try:
            return (self._root / name).is_dir()
        except (OSError, ValueError):
            return False

    def _ref(self, cell: Any, where: str) -> str:
        if isinstance(cell, dict):
            cell = cell.get("bytes") or cell.get("path")
        if isinstance(cell, bytes):
            return self._store.put(cell).ref
        text = str(cell)
        if text.startswith(DATA_URL):
            return self._store.put_base64(text, where).ref
        if "://" in text:
            raise DataError(f"{where}: video {text!r} is a URL: download it and name the file (URLs are never fetched)")
        return str(self._root / text)

    def _subtitles(self, row: Row, places: Places, where: str) -> str:
        if self._source.subtitles:
            path = self._root / fill_name(self._source.subtitles, row, where)
            return str(path) if path.is_file() else ""  # some videos of a set have none
        cell = self._cells.first(row, places.fields["subtitles"]) if places.fields["subtitles"] else None
        return str(self._root / str(cell)) if isinstance(cell, str) else ""

    def _seconds(self, row: Row, places: Places, name: str, where: str) -> float | None:
        cell = self._cells.first(row, places.fields[name]) if places.fields[name] else None
        if cell is None:
            return None
        try:
            number = float(cell)
        except (TypeError, ValueError):
            number = -1.0
        if not 0 <= number < 1e7:
            raise DataError(f"{where}: {name} {cell!r} is not a number of seconds from 0")
        return number


def names_of_videos(videos: Sequence[Video]) -> list[str]:
    """Return the names of the files."""
    return [Path(video.ref).name for video in videos]


def told_of_videos(row: Row, videos: Sequence[Video], question: str, options: Sequence[str]) -> tuple[Any, ...]:
    """Return what tells rows without an id apart that ask several things about one video, in columns of other names."""
    told: list[Any] = [*names_of_videos(videos), *(() if "question" in row else (question,))]
    told += [] if "options" in row else list(options)
    return (*told, *((video.start, video.end) for video in videos if video.start is not None or video.end is not None))
