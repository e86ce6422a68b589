"""Pictures as they were sent, kept by their hash: pages show what the model saw, whatever became of the file.

Kept by default are pictures up to `SMALL_BYTES` each, `SMALL_RUN_BYTES` a run; of others the file is compared by hash.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO

import pybase64
from msgspec.structs import replace

from ..core.errors import DataError, EnvironmentProblem
from ..core.ids import sha256_hex
from ..core.protocols import EncodedImage, ImagePolicy
from ..core.types import Image, ImageSent
from ..data.images.decode import CHANGED, read_stamped
from ..data.images.encode import encode_moving
from .database import BROKEN, connect, insert_rows, is_on_network, set_journal
from .part_log import FOLDER as PARTS
from .part_log import PICTURE, LogReading, encode_line

FILE = "pictures.db"
SMALL_BYTES = 256 * 1024
SMALL_RUN_BYTES = 64 * 2**20
GROUP = 32
OF_A_PART = ".pictures"
SCHEMA = "CREATE TABLE IF NOT EXISTS pictures (sha256 TEXT PRIMARY KEY, mime TEXT NOT NULL, body BLOB NOT NULL) STRICT"
PUT = "INSERT OR IGNORE INTO pictures VALUES {rows}"


class PictureKeeper(ABC):
    """Keeps each picture that is sent once, as far as the limits allow; a full disk costs the copy, never the run."""

    def __init__(self, *, everything: bool, parts: int = 1) -> None:
        self._most, self._whole = (2**31, 2**62) if everything else (SMALL_BYTES, SMALL_RUN_BYTES // parts)
        self._known: set[str] = set()
        self._used = 0
        self._pending: list[tuple[str, str, bytes]] = []
        self._writing: ThreadPoolExecutor | None = None
        """Made with the first picture: a run of texts opens nothing."""

    @abstractmethod
    def _begin(self) -> None:
        """Learn what is kept already."""

    @abstractmethod
    def _store(self, pending: list[tuple[str, str, bytes]]) -> None:
        """Write pictures: hash, type and base64."""

    @abstractmethod
    def _let_go(self) -> None:
        """Close what is written to."""

    def put(self, encoded: EncodedImage) -> None:
        """Keep a picture that is not here yet; costs a look where it is."""
        if self._writing is None:
            self._writing = ThreadPoolExecutor(1, "snellen-pictures")
            self._begin()
        sent = encoded.sent
        if sent.sha256 in self._known or sent.size_bytes > self._most or self._used + sent.size_bytes > self._whole:
            return
        self._known.add(sent.sha256)
        self._used += sent.size_bytes
        self._pending.append((sent.sha256, sent.mime, encoded.base64))
        if len(self._pending) >= GROUP:
            self._write_pending(self._writing)

    def close(self) -> None:
        """Write what is pending."""
        if self._writing is not None:
            self._write_pending(self._writing)
            self._writing.shutdown()
            self._let_go()

    def _write_pending(self, writing: ThreadPoolExecutor) -> None:
        pending, self._pending = self._pending, []
        if pending:
            writing.submit(self._write, pending)

    def _write(self, pending: list[tuple[str, str, bytes]]) -> None:
        try:
            self._store(pending)
        except (OSError, *BROKEN):
            self._most = 0


class RunPictures(PictureKeeper):
    """The pictures of a run that one process asks."""

    def __init__(self, folder: Path, *, everything: bool) -> None:
        super().__init__(everything=everything)
        self._folder = folder
        self._database: sqlite3.Connection | None = None

    def _begin(self) -> None:
        with suppress(EnvironmentProblem, *BROKEN):  # then no copies are kept
            self._database = _open(self._folder)
            rows = self._database.execute("SELECT sha256, LENGTH(body) FROM pictures").fetchall()
            self._known = {sha256 for sha256, _ in rows}
            self._used = sum(size for _, size in rows)

    def _store(self, pending: list[tuple[str, str, bytes]]) -> None:
        if self._database is not None:
            insert_rows(self._database, PUT, [(*name, pybase64.b64decode(body)) for *name, body in pending])

    def _let_go(self) -> None:
        if self._database is not None:
            self._database.close()


class PartPictures(PictureKeeper):
    """The pictures of one attempt at one part, in a log beside its own, within the part's share of the limit.

    Parts on several machines must not write one database: a network file system does not keep them apart.
    """

    def __init__(self, log: Path, *, everything: bool, parts: int) -> None:
        super().__init__(everything=everything, parts=parts)
        self._path = log.with_suffix(OF_A_PART)
        self._file: IO[bytes] | None = None

    def _begin(self) -> None:
        """Nothing is: the log of an attempt is its own."""

    def _store(self, pending: list[tuple[str, str, bytes]]) -> None:
        self._file = self._file or self._path.open("xb")
        self._file.writelines(encode_line(PICTURE, (*name, body.decode())) for *name, body in pending)
        self._file.flush()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()


def join_pictures(folder: Path) -> int:
    """Bring pictures.db up to what the parts of a run have kept; return how many pictures they hold."""
    logs, count = sorted((folder / PARTS).glob(f"*{OF_A_PART}")), 0
    if not logs:
        return 0
    with closing(_open(folder)) as database:
        for log in logs:
            lines = (line.row for line in LogReading(log) if line.kind == PICTURE)
            while batch := list(islice(lines, GROUP)):
                insert_rows(database, PUT, [(*name, pybase64.b64decode(body)) for *name, body in batch])
                count += len(batch)
        set_journal(database, "DELETE")
    return count


def _open(folder: Path) -> sqlite3.Connection:
    database = connect(folder / FILE)
    set_journal(database, "DELETE" if is_on_network(folder / FILE) else "WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    database.execute(SCHEMA)
    return database


class SeenPictures:
    """The pictures of a run as its model saw them: the kept bytes, the file where it is still that, or why not."""

    def __init__(self, folder: Path, policy: ImagePolicy, began: str) -> None:
        self._path = folder / FILE
        self._policy = policy
        try:
            self._began = datetime.fromisoformat(began).timestamp()
        except ValueError:
            self._began = 0.0

    def seen(self, image: Image, sent: ImageSent | None) -> Image:
        """Return a reference to what was sent; one that nobody has any more says so when it is opened."""
        if sent is None or image.ref.startswith("data:"):
            return image
        if image.frame is None and not self._is_newer(image):
            return image
        kept = self._kept(sent)
        if kept is None and self._is_the_same(image, sent):
            return image
        frame = None if image.frame is None else replace(image.frame, still=True)  # the reference is the frame itself
        return Image(kept or f"{CHANGED}{image.ref}", page=image.page, frame=frame)

    def _is_newer(self, image: Image) -> bool:
        """Tell whether the file was touched after the run began; where it was not, it is what was sent."""
        try:
            found = Path(image.ref).stat()
        except (OSError, ValueError):
            return True
        return max(found.st_mtime, found.st_ctime) >= self._began

    def _kept(self, sent: ImageSent) -> str | None:
        if not self._path.is_file():
            return None
        try:
            with closing(connect(self._path, read_only=True)) as database:
                row = database.execute("SELECT mime, body FROM pictures WHERE sha256 = ?", (sent.sha256,)).fetchone()
        except (*BROKEN, sqlite3.Error):
            return None
        if row is None or sha256_hex(row[1]) != sent.sha256:
            return None
        return f"data:{row[0]};base64,{pybase64.b64encode(row[1]).decode()}"

    def _is_the_same(self, image: Image, sent: ImageSent) -> bool:
        try:
            if sha256_hex(read_stamped(image)[0]) == sent.sha256 and not image.edits:
                return True
            made = encode_moving(image, self._policy)
        except DataError:
            return True  # gone or unreadable: opening it says so, and nothing wrong is shown
        return made.sent.sha256 == sent.sha256
