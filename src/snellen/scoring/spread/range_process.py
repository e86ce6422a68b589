"""A process that scores ranges (`python -m snellen.scoring.spread.range_process`), and the line to it.

Frames go in by one pipe and out by another, as those of replicas do. The process reads run.db itself and ends with the
driver: when the pipe is closed, nobody waits for parts any more.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from typing import BinaryIO

from ...core.errors import EnvironmentProblem, SnellenError
from ...core.garbage import rare_collections
from ...core.registry import foreign_code
from ...fleet.lease_format import WireError, write_wire_error
from ...fleet.links import ReplicaLost
from ...fleet.process_link import last_words
from ...fleet.process_main import LENGTH, write_frame
from ...store.reader import Rows
from ..ranges import RangeErrand, RangeScorer, ScoredRange

ADVICE = "by hand, or the machine is out of memory: fewer --replicas"


class RangeAnswerer:
    """Answers errands with packed parts; the last errand is kept, as a run has one for thousands of ranges."""

    def __init__(self) -> None:
        self._scorer = RangeScorer()
        self._known: tuple[bytes, RangeErrand] | None = None

    def answer(self, errand: bytes, rows: Rows) -> bytes:
        """Return the part of one range, or the error that ends the scoring, as bytes."""
        try:
            with foreign_code("a range cannot be scored:"):
                return pickle.dumps(self._score(errand, rows), 5)
        except SnellenError as error:
            return pickle.dumps(write_wire_error(error))

    def _score(self, errand: bytes, rows: Rows) -> ScoredRange:
        if self._known is None or self._known[0] != errand:
            self._known = errand, RangeErrand.loaded(errand)
        try:
            return self._scorer.score(self._known[1], rows)
        except MemoryError:
            raise EnvironmentProblem("out of memory while scoring: fewer --replicas, or --executor local") from None


def read_scored_range(answer: bytes) -> ScoredRange:
    """Return the part that was answered, or raise the error; only bytes of our own processes come here."""
    found: ScoredRange | WireError = pickle.loads(answer)  # noqa: S301
    if isinstance(found, WireError):
        raise found.revive()
    return found


class RangeProcess:
    """The line to one process: started when it is needed, and again when it was lost."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the line

    def run(self, errand: bytes, rows: Rows) -> bytes:
        """Hand one range over and wait for its answer; raise ReplicaLost if the process ends before it."""
        process = self._process or self._start()
        source, sink = process.stdout, process.stdin
        if source is None or sink is None:
            raise ReplicaLost("it has no pipes")
        try:
            write_frame(sink, pickle.dumps((errand, rows), 5))  # type: ignore[arg-type]  # a pipe is a BinaryIO
            answer = read_pipe(source)  # type: ignore[arg-type]
        except OSError:
            answer = None
        if answer is None:
            self._process = None
            process.communicate()  # waits for its end, and closes the pipes
            raise ReplicaLost(last_words(process.returncode, self._said, ADVICE))
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        self._said.seek(0)
        self._said.truncate()
        self._process = subprocess.Popen(  # noqa: S603 - this program itself
            (sys.executable, "-m", __name__),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # a Ctrl-C is for the driver, which ends its processes
        )
        return self._process

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
        self._said.close()


def read_pipe(source: BinaryIO) -> bytes | None:
    """Return the next frame of a pipe, or None when the other side is gone."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    content = source.read(size)
    return content if len(content) == size else None


@rare_collections()
def _main() -> None:
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a scorer prints must not be taken for parts
    answerer = RangeAnswerer()
    while (frame := read_pipe(source)) is not None:
        write_frame(sink, answerer.answer(*pickle.loads(frame)))  # noqa: S301 - the driver's own bytes


if __name__ == "__main__":
    _main()
