"""Requests into batches and answers out of them: files are sent when full, looked after, fetched, and asked again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from ...core.clock import Clock
from ...core.errors import EnvironmentProblem, ModelError
from ...model.served.http_client import Body
from .batch_ledger import ENDED, FILES, READ, SENT, VOID, WRITTEN, BatchLedger, SentFile
from .batch_lines import LinesWriter, idents_of, lines_file
from .batch_service import UNANSWERED, BatchResult, BatchService, BatchState


class _Named(msgspec.Struct):
    custom_id: str = ""
    key: str = ""


class BatchAnswers:
    """Where every answer stands. Of two for one request the later holds: it was asked again."""

    def __init__(self, service: BatchService) -> None:
        self._service = service
        self._files: list[IO[bytes]] = []
        self._places: dict[str, tuple[int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def load(self, path: Path, idents: frozenset[str]) -> int:
        """Take in a file of results; return how many of these requests it answers. Others' lines are not ours."""
        try:
            opened = path.open("rb")
        except FileNotFoundError:
            return 0
        self._files.append(opened)
        number, offset, answered = len(self._files) - 1, 0, set()
        for line in opened:
            if line.strip():
                result = self._name_of(line, path)
                if result in idents and self._is_answer(line):
                    self._places[result] = number, offset, len(line)
                    answered.add(result)
            offset += len(line)
        return len(answered)

    def _name_of(self, line: bytes, path: Path) -> str:
        try:
            named = msgspec.json.decode(line, type=_Named)
        except msgspec.DecodeError as error:
            raise EnvironmentProblem(
                f"{path}: a line of results cannot be read ({error}); delete it and try again"
            ) from None
        return named.custom_id or named.key

    def _is_answer(self, line: bytes) -> bool:
        return self._service.read(line).status != UNANSWERED

    def get(self, ident: str) -> BatchResult | None:
        """Return the answer to a request, if it is here."""
        place = self._places.get(ident)
        if place is None:
            return None
        number, offset, size = place
        self._files[number].seek(offset)
        return self._service.read(self._files[number].read(size))

    def forget(self, ident: str) -> None:
        """Leave an answer out: its request is asked again."""
        self._places.pop(ident, None)

    def close(self) -> None:
        """Forget everything and close the files."""
        for opened in self._files:
            opened.close()
        self._files.clear()
        self._places.clear()


T = TypeVar("T")
Say = Callable[[str], None]
TRIES = 6
"""How often a question about a batch is put when the network or the server fails."""
MOST_ROUNDS = 5
"""How often one command asks again what batches did not answer."""
SLOWEST_POLL_S = 300.0
SENDING = "sending"


class BatchQueue:
    """The batches of one run."""

    def __init__(
        self, folder: Path, ledger: BatchLedger, service: BatchService, writer: LinesWriter, *, clock: Clock, say: Say
    ) -> None:
        self._folder = folder
        self._files = folder / FILES
        self.ledger = ledger
        self._service = service
        self._writer = writer
        self._clock = clock
        self._say = say
        self.answers = BatchAnswers(service)
        self._waiting: set[str] = set()
        self._lock = asyncio.Lock()
        self._left = asyncio.Event()
        self.rounds = 0
        self.again: Counter[str] = Counter()
        """Why requests are asked again, and how many."""
        for file in ledger.open:
            self._waiting.update(idents_of(self._files, file))
        for file in ledger.unread:
            self._load(file)

    @property
    def waiting(self) -> int:
        """Return how many requests wait, in batches and in the file that is being written."""
        return self.ledger.waiting + self._writer.lines

    @property
    def has_ended_ones(self) -> bool:
        """Tell whether some batch of the run, of this command or an earlier one, has ended."""
        return any(file.state in (ENDED, READ, VOID) for file in self.ledger.files)

    @property
    def may_ask_again(self) -> bool:
        """Tell whether what was not answered may go into another batch of this command."""
        return self.rounds < MOST_ROUNDS

    def waits(self, ident: str) -> bool:
        """Tell whether a request is in a batch that has not ended."""
        return ident in self._waiting

    def answer(self, ident: str) -> BatchResult | None:
        """Return the answer to a request, if its batch has brought one."""
        return self.answers.get(ident)

    def ask_again(self, ident: str, why: str) -> None:
        """Leave an answer out that is none: its request goes into the next batch."""
        self.answers.forget(ident)
        self.again[why] += 1

    async def put(self, ident: str, body: Body) -> None:
        """Put a request into the file that is being written; one that is full is sent first."""
        line = self._service.line(ident, body)
        size_bytes = sum(map(len, line))
        while not self._writer.fits(size_bytes):  # while one file is sent, others may fill the next
            async with self._lock:
                if not self._writer.fits(size_bytes):
                    await self._send(self._close_file())
        self._writer.put(ident, line)
        self._waiting.add(ident)

    async def flush(self) -> None:
        """Send what is written, also what an earlier command wrote and did not send."""
        async with self._lock:
            self._close_file()
            written = [file for file in self.ledger.files if file.state == WRITTEN]
            for file in written:
                await self._send(file)
            if written:
                self.rounds += 1
        for why, count in self.again.items():
            self._say(f"{count} asked again: {why}")
        self.again.clear()

    def _close_file(self) -> SentFile | None:
        file = self._writer.finish(len(self.ledger.files) + 1)
        if file is not None:
            self.ledger.files.append(file)
            self.ledger.save(self._folder)
        return file

    async def _send(self, file: SentFile | None) -> None:
        """Make a batch of a written file; one that was made without our hearing of it is taken up."""
        if file is None or file.state != WRITTEN:
            return
        lines = lines_file(self._files, file)
        known = frozenset(one.batch for one in self.ledger.files if one.batch is not None)
        unsure = file.words == SENDING

        async def submit() -> str:
            nonlocal unsure
            found = await self._service.find(lines, known) if unsure else None
            unsure = True
            return found or await self._service.submit(lines)

        file.words = SENDING  # from here on a crash may leave a batch that nobody noted: then it is looked for
        self.ledger.save(self._folder)
        file.batch = await self._steadily(submit)
        file.state, file.words = SENT, "sent"
        self.ledger.save(self._folder)
        lines.path.unlink(missing_ok=True)
        self._say(f"batch {file.batch}: {file.lines:,} requests sent, {file.size_bytes / 1e6:,.1f} MB")

    async def look(self) -> None:
        """Ask how every open batch stands; fetch the results of those that have ended."""
        for file in self.ledger.files:
            if file.state == SENT and file.batch is not None:
                await self._look_at(file, file.batch)

    async def _look_at(self, file: SentFile, batch: str) -> None:
        told = await self._steadily(lambda: self._service.look(batch))
        if (told.words, told.done) != (file.words, file.done):
            file.words, file.done = told.words, told.done
            self.ledger.save(self._folder)
            self._say(f"batch {batch}: {told.words}, {told.done:,} of {told.total or file.lines:,}")
        if told.state == "failed":
            self._refuse(file, told)
        if told.state == "ended":
            await self._fetch(file, batch, told)

    def _refuse(self, file: SentFile, told: BatchState) -> None:
        file.state = VOID
        self._waiting.difference_update(idents_of(self._files, file))
        self.ledger.save(self._folder)
        what = f"batch {file.batch} of {file.lines:,} requests was refused: {told.problem}"
        raise EnvironmentProblem(f"{what}; nothing of it was answered, the same command sends it again")

    async def _fetch(self, file: SentFile, batch: str, told: BatchState) -> None:
        into = self._files / f"{file.name}.results"

        async def fetch() -> None:
            into.unlink(missing_ok=True)
            await self._service.fetch(batch, told, into)

        await self._steadily(fetch)
        file.state = ENDED
        file.answered = self._load(file)
        self.ledger.save(self._folder)
        rest = file.lines - file.answered
        lost = f", {rest:,} not answered ({told.words})" if rest else ""
        self._say(f"batch {batch}: {file.answered:,} answers{lost}")

    def _load(self, file: SentFile) -> int:
        idents = frozenset(idents_of(self._files, file))
        self._waiting -= idents
        return self.answers.load(self._files / f"{file.name}.results", idents)

    def settle(self) -> None:
        """All answers are stored: let their files go."""
        for file in self.ledger.unread:
            file.state = READ
            for ending in (".ids", ".results"):
                (self._files / f"{file.name}{ending}").unlink(missing_ok=True)
        self.answers.close()
        self.ledger.save(self._folder)

    def leave(self) -> None:
        """Wait no longer; batches go on without us."""
        self._left.set()

    async def wait(self, poll_s: float, until: float | None = None) -> bool:
        """Wait until every batch has ended; False where it was left before, or the moment `until` came."""
        pause_s = poll_s
        while True:
            await self.look()
            if not self.ledger.open:
                return True
            if self._left.is_set() or (until is not None and self._clock.monotonic() + pause_s > until):
                return False
            left = asyncio.create_task(self._left.wait())
            slept = asyncio.create_task(self._clock.sleep(pause_s))
            await asyncio.wait({left, slept}, return_when=asyncio.FIRST_COMPLETED)
            for task in (left, slept):
                task.cancel()
            pause_s = min(max(SLOWEST_POLL_S, poll_s), pause_s * 1.5)

    async def close(self) -> None:
        """Close files and connections."""
        self.answers.close()
        await self._service.close()

    async def _steadily(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what a call returns; what may help is tried again, and what fails in the end is one line."""
        for attempt in range(TRIES):
            try:
                return await call()
            except ModelError as error:
                if not error.retryable or attempt == TRIES - 1:
                    kept = "what was sent stays sent, and the same command goes on"
                    raise EnvironmentProblem(f"batches: {error}; {kept}") from None
                await self._clock.sleep(max(error.retry_after_s or 0.0, 0.5 * 2.0**attempt))
        raise AssertionError("the last try returns or raises")
