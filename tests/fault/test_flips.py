"""Cuts and flipped bits of run.db, its log and the cache: true rows, or one line that says what is left; repair saves the rest."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from figures import note_figure
from line_doubles import header
from snellen.core.errors import EnvironmentProblem
from snellen.core.types import Form, Prediction, Request, Sample, Score, TrialKey, Turn
from snellen.store.cache import ResponseCache
from snellen.store.damage import look_at_run, repair_run
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter
from stored_scores import write_scores

ROWS = 120
FILES = ("run.db", "run.db-wal", "cache.db", "cache.db-wal")


def text_of(number: int) -> str:
    return f"reply {number} " * 20


def write_run(folder: Path, *, checkpointed: bool) -> None:
    """Write a run as it lies on the disk: finished, or in the middle of its work with most of it in the log."""

    async def put(writer: RunWriter) -> None:
        for number in range(ROWS):
            key = TrialKey("t", f"s{number:04}")
            sample = Sample(key.sample, "t", Form.OPEN, f"question {number}?")
            request = Request(key, (Turn("user", f"question {number}?"),))
            await writer.put(number, sample, request, Prediction(key, text=text_of(number)), f"digest {number}")

    live = folder.with_name(f"{folder.name}-live")
    writer = RunWriter(live, header())
    asyncio.run(put(writer))
    folder.mkdir()
    if checkpointed:
        writer.close()
        write_scores(live, "t", [Score(TrialKey("t", f"s{n:04}"), "accuracy", n % 2) for n in range(ROWS)])
    for path in live.glob("run.db*"):
        if not path.name.endswith("-shm"):
            shutil.copy(path, folder / path.name)
    if not checkpointed:
        writer.close()


def write_cache(folder: Path) -> None:
    cache = ResponseCache(folder / "live" / "cache.db")
    for number in range(ROWS):
        cache.put(f"digest {number}", "m", Prediction(TrialKey("t", "s"), text=text_of(number)))
        if number % 10 == 0:
            cache.flush()
    cache.flush()
    for name in ("cache.db", "cache.db-wal"):
        shutil.copy(folder / "live" / name, folder / name)
    cache.close()
    shutil.copy(folder / "live" / "cache.db", folder / "whole.db")


def damage(path: Path, draw: random.Random) -> str:
    """Cut the file, flip one bit, or overwrite a stretch; say which."""
    content = bytearray(path.read_bytes())
    place = draw.randrange(len(content))
    how = draw.choice(["cut", "bit", "bit", "stretch"])
    if how == "cut":
        del content[place:]
    elif how == "bit":
        content[place] ^= 1 << draw.randrange(8)
    else:
        content[place : place + 40] = draw.randbytes(min(40, len(content) - place))
    path.write_bytes(content)
    return how


def check_rows(folder: Path, *, repaired: bool = False) -> int:
    """Every row that is read is a true one, in its place."""
    with RunReader(folder) as reader:
        trials = list(reader.trials("t"))
        scores = list(reader.scores("t"))
    for trial in trials:
        number = int(trial.sample.id[1:])
        if trial.prediction.failure is None:
            assert trial.prediction.text == text_of(number), "a reply is not what was stored"
        assert trial.sample.question == f"question {number}?" == trial.request.messages[0].text
    ids = [int(trial.sample.id[1:]) for trial in trials]
    assert ids == sorted(set(ids)) and (repaired or ids == list(range(len(ids)))), "not an exact prefix"
    assert all(score.value == int(score.key.sample[1:]) % 2 for score in scores), "a score is not what was stored"
    return len(trials)


def try_run(folder: Path, *, in_log: bool) -> str:
    """Open, look, repair; return what became of the run."""
    try:
        count = check_rows(folder)
    except EnvironmentProblem as problem:
        told = str(problem)
        assert "\n" not in told and str(folder) in told
    else:
        assert count == ROWS or (in_log and count < ROWS), "rows are gone without a word"
        return "read, all rows true" if count == ROWS else "read, an exact prefix"
    if "the scores of task" in told:
        return "refused: scores to be made again"
    health = look_at_run(folder) if (folder / "run.db").stat().st_size else None
    if health is None or not health.has_header:
        return "refused: no header left"
    assert not health.sound, f"refused though doctor calls it sound: {told}"
    repaired = repair_run(folder)
    assert look_at_run(folder).sound
    assert check_rows(folder, repaired=True) == repaired.saved["predictions"]
    readable = {table.table: table.readable for table in health.tables}
    assert repaired.saved["predictions"] >= readable["predictions"] - (ROWS - readable["samples"])
    return "refused, and every readable row saved by repair"


def try_cache(folder: Path) -> str:
    """What the damaged cache still answers is true."""
    try:
        cache = ResponseCache(folder / "cache.db")
    except EnvironmentProblem as problem:
        assert "\n" not in str(problem) and "--no-cache" in str(problem)
        return "refused"
    try:
        found = [cache.get(f"digest {number}", TrialKey("t", "s")) for number in range(ROWS)]
        cache.put("new", "m", Prediction(TrialKey("t", "s"), text="new"))
    finally:
        cache.close()
    for number, prediction in enumerate(found):
        assert prediction is None or prediction.text == text_of(number), "a cached reply is not what was stored"
    return "read, all replies true" if all(found) else "read, what is damaged is asked again"


def prepare(tmp_path: Path) -> dict[str, Path]:
    write_run(tmp_path / "finished", checkpointed=True)
    write_run(tmp_path / "running", checkpointed=False)
    write_cache(tmp_path)
    return {"run.db": tmp_path / "finished", "run.db-wal": tmp_path / "running"}


def damage_often(tmp_path: Path, times: int, seed: int) -> Counter[str]:
    runs, draw, seen = prepare(tmp_path), random.Random(seed), Counter[str]()
    for number in range(times):
        folder, name = tmp_path / f"try{number}", FILES[number % len(FILES)]
        if name in runs:
            shutil.copytree(runs[name], folder)
            damage(folder / name, draw)
            seen[f"{name}: {try_run(folder, in_log=name.endswith('wal'))}"] += 1
        else:
            folder.mkdir()
            shutil.copy(tmp_path / ("whole.db" if name == "cache.db" else "cache.db"), folder / "cache.db")
            if name == "cache.db-wal":
                shutil.copy(tmp_path / name, folder / name)
            damage(folder / name, draw)
            seen[f"{name}: {try_cache(folder)}"] += 1
        shutil.rmtree(folder)
    return seen


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.crash])])
def test_damaged_files_are_read_truly_or_refused_by_one_line(tmp_path: Path, times: int) -> None:
    seen = damage_often(tmp_path, times, seed=times)
    assert sum(seen.values()) == times
    if times >= 1000:
        for name in FILES:
            told = ", ".join(
                f"{count} {what.partition(': ')[2]}"
                for what, count in sorted(seen.items())
                if what.startswith(f"{name}:")
            )
            note_figure("crash", f"cuts and flipped bits of {name}", f"{told}; 0 wrong rows, 0 tracebacks")


@pytest.mark.parametrize("table", ["samples", "predictions"])
def test_a_damaged_index_hides_no_row(tmp_path: Path, table: str) -> None:
    """Rows are looked up by an index, of which nothing has a seal: what it no longer names must still be missed."""
    write_run(tmp_path / "run", checkpointed=True)
    path = tmp_path / "run" / "run.db"
    with closing(sqlite3.connect(path)) as database:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        page = database.execute(query, (f"sqlite_autoindex_{table}_1",)).fetchone()[0]
        size = database.execute("PRAGMA page_size").fetchone()[0]
    whole, draw, refused = path.read_bytes(), random.Random(7), 0
    for place in range((page - 1) * size, page * size, 37):
        path.write_bytes(whole[:place] + draw.randbytes(40) + whole[place + 40 :])
        refused += try_run(tmp_path / "run", in_log=False) != "read, all rows true"
        for spare in (tmp_path / "run").glob("*damaged*"):
            spare.unlink()
    assert refused
