"""The power fails anywhere: what was acknowledged is there, whatever of the unsynced sectors reached the disk.

A small library (power_cut.c, LD_PRELOAD) notes every write and sync of a real run; the disk after a cut is made from that:
all that was synced, and of what came later each sector of 512 bytes by chance. Names of files count as written at once.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from figures import note_figure
from line_doubles import header
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter

SECTOR = 512
ROWS = 200
WORK = """
import asyncio, os, sys
from pathlib import Path
from line_doubles import header
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey, Turn
from snellen.store.writer import RunWriter

writer = RunWriter(Path(sys.argv[1]), header())
writer._database.execute("PRAGMA wal_autocheckpoint=25")
acknowledged = os.open(Path(sys.argv[1]) / "acknowledged", os.O_WRONLY | os.O_CREAT)

async def put(number):
    key = TrialKey("t", f"s{number:04}")
    sample = Sample(key.sample, "t", Form.OPEN, "?" * 50)
    request = Request(key, (Turn("user", "?"),))
    await writer.put(number, sample, request, Prediction(key, text=f"reply {number} " * 20), "d")
    os.write(acknowledged, b"%04d\\n" % number)

async def go():
    for start in range(0, int(sys.argv[2]), 4):
        await asyncio.gather(*(put(number) for number in range(start, start + 4)))

asyncio.run(go())
writer.close()
"""


class Step(NamedTuple):
    """One thing that was done to a file: W(rite), T(runcate), U(nlink) or S(ync)."""

    kind: str
    name: str
    offset: int
    data: bytes


def record(tmp_path: Path) -> list[Step]:
    """Run the work below the library and return what it did to its files, in order."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library, log, folder = tmp_path / "power_cut.so", tmp_path / "log", tmp_path / "run"
    source = Path(__file__).with_name("power_cut.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "LD_PRELOAD": str(library)}
    environment |= {"POWER_DIR": f"{folder}/", "POWER_LOG": str(log)}
    subprocess.run([sys.executable, "-c", WORK, str(folder), str(ROWS)], check=True, env=environment)
    return list(read_steps(log.read_bytes()))


def read_steps(log: bytes) -> Iterator[Step]:
    place = 0
    while place < len(log):
        kind, path_length, offset, length = struct.unpack_from("=cIQQ", log, place)
        start = place + 21
        name = Path(log[start : start + path_length].decode()).name
        place = start + path_length + length
        yield Step(kind.decode(), name, offset, log[start + path_length : place])


class Disk:
    """What is safe on the disk, and what was written after the last sync of each file."""

    def __init__(self) -> None:
        self.safe: dict[str, bytearray] = {}
        self.loose: dict[str, list[Step]] = {}
        self.acknowledged = 0

    def do(self, step: Step) -> None:
        if step.name == "acknowledged":
            self.acknowledged += step.kind == "W"
            return
        if step.kind == "U":
            self.safe.pop(step.name, None)
            self.loose.pop(step.name, None)
            return
        self.safe.setdefault(step.name, bytearray())
        loose = self.loose.setdefault(step.name, [])
        if step.kind != "S":
            loose.append(step)
            return
        for done in loose:
            apply(self.safe[step.name], done)
        loose.clear()

    def cut(self, folder: Path, draw: random.Random) -> None:
        """Write the files as the next start finds them."""
        folder.mkdir()
        for name, content in self.safe.items():
            found = bytearray(content)
            for step in self.loose[name]:
                for part in sectors(step):
                    if draw.random() < 0.5:
                        apply(found, part)
            if not name.endswith("-shm"):
                (folder / name).write_bytes(found)


def sectors(step: Step) -> Iterator[Step]:
    if step.kind == "T":
        yield step
        return
    start = 0
    while start < len(step.data):
        end = start + SECTOR - (step.offset + start) % SECTOR
        yield step._replace(offset=step.offset + start, data=step.data[start:end])
        start = end


def apply(content: bytearray, step: Step) -> None:
    if step.kind == "T":
        del content[step.offset :]
        content.extend(bytes(step.offset - len(content)))
        return
    if len(content) < step.offset:
        content.extend(bytes(step.offset - len(content)))
    content[step.offset : step.offset + len(step.data)] = step.data


@pytest.mark.parametrize("cuts", [60, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.crash])])
def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path, cuts: int) -> None:
    steps, draw, disk = record(tmp_path), random.Random(cuts), Disk()
    first = next(number for number, step in enumerate(steps) if step.name == "acknowledged")
    places = sorted(draw.randrange(first, len(steps)) for _ in range(cuts))
    done, more, least = 0, 0, ROWS
    for number, place in enumerate(places):
        while done < place:
            disk.do(steps[done])
            done += 1
        folder = tmp_path / f"cut{number}"
        disk.cut(folder, draw)
        writer = RunWriter(folder, header())
        assert writer.lost == 0, "a row that was stored is damaged"
        assert writer._database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        writer.close()
        with RunReader(folder) as reader:
            trials = list(reader.trials("t"))
        assert len(trials) >= disk.acknowledged, "an acknowledged row is gone"
        assert [trial.sample.id for trial in trials] == [f"s{place:04}" for place in range(len(trials))]
        assert all(trial.prediction.text == f"reply {place} " * 20 for place, trial in enumerate(trials))
        more, least = more + len(trials) - disk.acknowledged, min(least, disk.acknowledged)
        shutil.rmtree(folder)
    syncs = sum(step.kind == "S" for step in steps)
    assert syncs > ROWS // 8, "the library saw the syncs"
    if cuts >= 1000:
        told = f"{cuts} cuts anywhere in {len(steps):,} writes and {syncs} syncs of {ROWS} rows: 0 acknowledged rows lost, 0 wrong"
        note_figure("crash", "power cut (LD_PRELOAD, unsynced sectors by chance)", told)


def test_without_syncs_the_same_cut_loses_rows(tmp_path: Path) -> None:
    """The test has teeth: where nothing is synced, acknowledged rows are gone or the file does not open."""
    steps, draw, disk = [step for step in record(tmp_path) if step.kind != "S"], random.Random(1), Disk()
    for step in steps[: len(steps) // 2]:
        disk.do(step)
    disk.cut(tmp_path / "cut", draw)
    from snellen.core.errors import EnvironmentProblem

    try:
        writer = RunWriter(tmp_path / "cut", header())
        writer.close()
        with RunReader(tmp_path / "cut") as reader:
            assert len(list(reader.trials("t"))) < disk.acknowledged
    except EnvironmentProblem as problem:
        assert "\n" not in str(problem)
