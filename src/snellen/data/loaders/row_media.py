"""Cells to pictures and videos: file names, URLs, bytes, base64, folders of frames; and which cells look like one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pybase64

from ...core.errors import DataError
from ...core.types import Image, Video
from ..files.records import as_list
from ..files.rows import Row, read_rows
from ..images.embedded import ImageStore, Remembered
from .row_map import Cells, Places, RowMap, fill_name, is_picture_struct
from .row_source import TableSource

if TYPE_CHECKING:
    from ..images.pdf_pages import PdfPages

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

    def columns_used(self, places: Places) -> set[str]:
        """Return the columns that say what is shown."""
        return {column for name in PLACE_COLUMNS for column in places.fields[name]}

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


PLAIN_PATH = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*")
"""What is joined to a folder's name as it is; any other path may be absolute, or say a step twice."""
SHORTEST_BASE64 = 65
"""A shorter cell is a name, or the id of another row."""
BASE64_SIGNATURES = ("/9j/", "iVBOR", "R0lG", "UklGR", "Qk", "SUkq", "TU0A", "JVBER")
"""How JPEG, PNG, GIF, WebP, BMP, TIFF and PDF begin in base64."""
LOOKED_AT = 4096
"""Characters by which base64 is known; a picture has thousands, and all are checked when it is decoded."""
BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
SIGNATURES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"BM", b"II*\0", b"MM\0*", b"%PDF")
ELSEWHERE = ("data:", "http://", "https://")
PDF, PDF_BASE64, PDF_URL = b"%PDF", "JVBER", "data:application/pdf;base64,"
PICTURE_NAME = re.compile(r"[^\n]{0,1000}\.(?:png|jpe?g|gif|webp|bmp|tiff?|pdf)", re.IGNORECASE)
BETWEEN_NAMES = re.compile(r"\s*[;|,\n]\s*")
LONGEST_NAMES = 4000
"""Characters of a cell that may hold several names of files."""
PICTURE_COLUMN = re.compile(r"(?:decoded_)?(?:image|img|picture|photo|page)s?(?:_?(?:path|file|url)s?)?_?\d*", re.I)


def remembered(files: Iterable[Path], memory: dict[Any, Any]) -> Remembered:
    """Return what was found out about the embedded pictures of these files, as long as they are the same."""
    stats = [(str(file), file.stat()) for file in files if file.is_file()]
    key = ("pictures", *((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats))
    found: Remembered = memory.setdefault(key, Remembered())
    return found


def picture_values(cell: Any) -> list[Any]:
    """Return the pictures of a cell: its list, the list it writes as text, or itself."""
    if isinstance(cell, str):
        cell = _written_values(cell)
    return [one for one in cell if one is not None and one != ""] if isinstance(cell, list) else [cell]


def _written_values(cell: str) -> Any:
    """Return the list that a text writes, or the names that stand in it; else the text."""
    if cell.lstrip().startswith("["):
        return as_list(cell)
    if len(cell) >= LONGEST_NAMES or "." not in cell[-5:]:
        return cell
    names = [name for name in BETWEEN_NAMES.split(cell.strip()) if name]
    return names if len(names) > 1 and all(map(PICTURE_NAME.fullmatch, names)) else cell


def read_picture(value: Any, root: str, where: str) -> Image:
    """Return the picture of one cell; a name is joined to `root`."""
    if isinstance(value, dict) and _held(value) is None:
        need = f"an image is an object with {', '.join(map(str, value))}, and bytes, path or url is needed"
        raise DataError(f"{where}: {need}; name a file, or several in a list")
    value = _held(value)
    if isinstance(value, bytes):
        return Image("data:image/unknown;base64," + pybase64.b64encode(value).decode())
    if not isinstance(value, str) or not value:
        raise DataError(f"{where}: an image must be a file name, not {type(value).__name__}")
    if value.startswith(ELSEWHERE):
        return Image(value)
    if is_base64(value):
        return Image("data:image/unknown;base64," + value.strip())
    return Image(root + value if PLAIN_PATH.fullmatch(value) else _find_file(value, root))


def _held(value: Any) -> Any:
    """Return what an object holds, the form in which Parquet files of the hubs carry pictures; any other as it is."""
    return value.get("bytes") or value.get("path") or value.get("url") if isinstance(value, dict) else value


def _find_file(name: str, root: str) -> str:
    """Return the path of a file; one that is not there is looked for as Windows and web pages would write it."""
    written = str(Path(root) / name.removeprefix("file://"))
    if not any(mark in name for mark in ("\\", "%", "file://")) or _is_file(written, root):
        return written
    meant = (unquote(name.removeprefix("file://")), name.replace("\\", "/"))
    return next((str(Path(root) / other) for other in meant if _is_file(other, root)), written)


def is_base64(text: str) -> bool:
    """Tell whether a text is a whole picture in base64: long, beginning as one, and of that alphabet as far as looked.

    What is not of that alphabet further on is refused when it is decoded.
    """
    if len(text) < SHORTEST_BASE64 or not text.lstrip().startswith(BASE64_SIGNATURES):
        return False
    return BASE64.fullmatch(text if len(text) <= LOOKED_AT else text[:LOOKED_AT]) is not None


def are_same(cells: Iterable[Any], others: Iterable[Any]) -> bool:
    """Tell whether other cells may hold the same pictures: the same bytes or names, or one named and the other held."""
    known, more = ({_known_by(value) for cell in some for value in picture_values(cell)} for some in (cells, others))
    return more <= known or not {type(one) for one in known} & {type(one) for one in more}


def _known_by(value: Any) -> str | bytes:
    """Return by what a picture is told from others: what it holds, or the name of its file without the folder."""
    value = _held(value)
    if isinstance(value, bytes):
        return value
    text = "" if value is None else str(value)
    return text.encode() if is_base64(text) or text.startswith("data:") else text.replace("\\", "/").rpartition("/")[2]


def looks_like_pictures(column: str, cell: Any, root: str) -> bool:
    """Tell whether a cell that nothing reads holds pictures: by its bytes, by a file that is there, or by its name."""
    if isinstance(cell, list):
        return any(looks_like_pictures(column, one, root) for one in cell)
    if holds_picture(cell):
        return True
    if isinstance(cell, dict):
        return any(holds_picture(value) or is_picture_struct(value) for value in cell.values())
    return isinstance(cell, str) and _names_pictures(column, cell, root)


def holds_picture(value: Any) -> bool:
    """Tell whether a value is a picture itself, and no mere name of one: its bytes, base64, or `{bytes, path}`."""
    if isinstance(value, str):
        return len(value) >= SHORTEST_BASE64 and (value.startswith("data:image/") or is_base64(value))
    if isinstance(value, bytes):
        return value.startswith(SIGNATURES)
    return isinstance(value, dict) and is_picture_struct(value)


def _names_pictures(column: str, text: str, root: str) -> bool:
    if PICTURE_NAME.fullmatch(text):
        return bool(PICTURE_COLUMN.fullmatch(column)) or _is_file(text, root)
    values = picture_values(text) if text.startswith("[") else []
    return any(looks_like_pictures(column, value, root) for value in values if value != text)


def _is_file(name: str, root: str) -> bool:
    try:
        return (Path(root) / name).is_file()
    except (OSError, ValueError):
        return False


def is_row_name(value: Any) -> bool:
    """Tell whether a cell is short and plain enough to be the id of the row that has the picture."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, str) and 0 < len(value) < SHORTEST_BASE64 and not PICTURE_NAME.fullmatch(value)


def pdf_of(value: Any) -> str | bytes | None:
    """Return the path or the bytes of a PDF, if a cell holds one."""
    value = _held(value)
    if isinstance(value, bytes):
        return value if value.startswith(PDF) else None
    return _pdf_of_text(value) if isinstance(value, str) else None


def _pdf_of_text(text: str) -> str | bytes | None:
    if text.startswith(PDF_URL) or (text.startswith(PDF_BASE64) and len(text) >= SHORTEST_BASE64):
        try:
            return pybase64.b64decode("".join(text.removeprefix(PDF_URL).split()), validate=True)
        except ValueError:
            return None
    named = text[-4:].casefold() == ".pdf"
    return text if named and not text.startswith(ELSEWHERE) else None


class Pictures:
    """Reads the pictures of one file's cells; embedded ones go to files, each content once, so samples stay small."""

    def __init__(self, root: Path, store: Path, dpi: int, remembered: Remembered) -> None:
        from ..files.picture_zip import PictureZips

        archive = root if root.is_file() else None
        folder = root.parent if archive else root
        self.root = str(folder / "x")[:-1]
        self._store = ImageStore(store)
        self._zips = PictureZips(archive or folder)
        self._kept_in, self._dpi = store, dpi
        self._remembered = remembered
        self._place = 0

    @cached_property
    def _pdf(self) -> PdfPages:
        from ..images.pdf_pages import PdfPages

        return PdfPages(self._kept_in, self._dpi)

    def read(self, values: Iterable[Any], where: str) -> tuple[Image, ...]:
        """Return the pictures of cells, one each: a PDF, which is several, is refused."""
        found = list(values)
        if any(pdf_of(value) is not None for value in found):
            raise DataError(f"{where}: a PDF can stand in a column of pictures, not in a message or an option")
        return tuple([self._read(value, where) for value in found])

    def read_pages(self, values: Iterable[Any], where: str, pages: Any) -> tuple[Image, ...]:
        """Return the pictures of cells; of a PDF the wanted pages, or all for None.

        A PDF that is missing or damaged stays one picture: it is counted as missing, or fails when it is asked.
        """
        found: list[Image] = []
        paged = 0
        for value in values:
            pdf = pdf_of(value)
            paged += pdf is not None
            found += (self._read(value, where),) if pdf is None else self._pages(pdf, value, where, pages)
        if paged > 1 and pages is not None:
            raise DataError(f"{where} has {paged} PDFs and one `pages`: of which are they? Give each its own row")
        return tuple(found)

    def _pages(self, pdf: str | bytes, value: Any, where: str, pages: Any) -> tuple[Image, ...]:
        found = self._pdf.pages_of(str(Path(self.root) / pdf) if isinstance(pdf, str) else pdf, pages, where)
        return (self._read(value, where),) if found is None else found

    def _read(self, value: Any, where: str) -> Image:
        if isinstance(value, dict):
            value = value.get("bytes") or value
        if isinstance(value, bytes):
            return self._store.put(value)
        if isinstance(value, str):
            if is_base64(value):
                return self._decode(value, where)
            if self._zips and not value.startswith(ELSEWHERE):
                return self._from_zip(value, where)
        return read_picture(value, self.root, where)

    def _decode(self, text: str, where: str) -> Image:
        """Return the picture of a base64 cell, decoded the first time the file is read."""
        place, self._place = self._place, self._place + 1
        known = self._remembered.find(place, len(text))
        if known is not None:
            return self._store.reference(*known)
        image = self._store.put_base64(text, where)
        self._remembered.keep(place, len(text), image)
        return image

    def _from_zip(self, name: str, where: str) -> Image:
        """Return a picture that is a file, or else a member of an archive beside the table."""
        image = read_picture(name, self.root, where)
        if Path(image.ref).is_file():
            return image
        data = self._zips.read_member(name, where)
        return image if data is None else self._store.put(data)


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
        self._of_rows: dict[str, tuple[Image, ...]] = {}
        """The pictures of rows that were read before, for rows that name them."""

    def of_places(self, row: Row, places: Places, where: str) -> tuple[Image, ...]:
        """Return the pictures of a row in order; where the user told their place, the one that its cells name."""
        if self._template:
            return self._pictures.read([fill_name(self._template, row, where)], where)
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

    def remember(self, row: str, images: tuple[Image, ...]) -> None:
        """Keep the pictures of a row, where rows of this format may name it."""
        if self._rows.row_images:
            self._of_rows[row] = images

    def _of_row(self, name: str, where: str) -> tuple[Image, ...]:
        """Return the pictures of the row that a cell names; one that comes later is looked for once."""
        if name not in self._of_rows:
            self._remember_all()
        if name not in self._of_rows:
            raise DataError(f"{where}: image {name!r} is neither a picture nor the index of a row that has one")
        return self._of_rows[name]

    def _remember_all(self) -> None:
        for file in self._files:
            for number, row in read_rows(file):
                identity = str(self._cells.first(row, [column for column in self._rows.id if column in row]))
                cells = picture_values(row.get("image"))
                if identity not in self._of_rows and cells and not is_row_name(cells[0]):
                    self._of_rows[identity] = self._pictures.read_pages(cells, f"{file.name} record {number}", None)
