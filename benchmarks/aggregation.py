"""How fast are stored trials aggregated? `python benchmarks/scoring.py aggregation`"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from snellen.core.types import Form, Sample, to_json
from snellen.scoring.aggregates.summary import summarize
from snellen.scoring.stored import stored_tables
from snellen.store.database import open_for_writing, seal
from snellen.store.reader import RunReader, write_score_rows

TRIALS, REPEATS, MOST_SECONDS, MOST_BYTES = 1_000_000, 5, 20.0, 1_000_000_000


def bench_aggregation() -> bool:
    """Aggregate 1,000,000 stored trials: 200,000 questions in 20,000 documents × 5 inferences, groups, votes, pass@k."""
    with tempfile.TemporaryDirectory() as folder:
        _write_run(Path(folder))
        started, started_cpu = time.perf_counter(), time.process_time()
        with RunReader(folder) as reader:
            tables = stored_tables(reader, "bench")
        read_s = time.perf_counter() - started
        result = summarize(tables, group_by=["topic", "level"])
        seconds, cpu_s = time.perf_counter() - started, time.process_time() - started_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    head = result["metrics"]["accuracy"]
    counted = head["n"] + head["unscored"] + head["failed"]
    print(
        f"aggregation: {counted:,} trials in {seconds:.1f} s (reading {read_s:.1f} s; {cpu_s:.1f} s of one core), peak memory {peak / 1e6:.0f} MB"
    )
    groups = sum(map(len, result["groups"].values()))
    print(f"  accuracy {head['value']:.4f} {head['ci95']}, {len(result['metrics'])} metrics, {groups} groups")
    in_time, in_memory = seconds <= MOST_SECONDS, peak <= MOST_BYTES
    print(f"{'PASS' if in_time else 'FAIL'} 1,000,000 trials in {seconds:.1f} s (bar {MOST_SECONDS:.0f} s)")
    print(f"{'PASS' if in_memory else 'FAIL'} peak memory {peak / 1e6:.0f} MB (bar {MOST_BYTES / 1e6:.0f} MB)")
    return in_time and in_memory and counted == TRIALS


def _write_run(folder: Path) -> None:
    database = open_for_writing(folder / "run.db")
    database.execute("PRAGMA synchronous=OFF")
    database.execute("BEGIN")
    database.executemany("INSERT INTO samples VALUES ('bench', ?, ?, ?)", _samples())
    database.executemany("INSERT INTO predictions VALUES ('bench', ?, 'base', ?, ?, 'digest', ?, ?)", _predictions())
    database.execute("COMMIT")
    database.close()
    write_score_rows(folder, "bench", _scores())


def _samples() -> Iterator[tuple[Any, ...]]:
    for i in range(TRIALS // REPEATS):
        tags: dict[str, Any] = {"topic": f"topic {i % 57}", "level": i % 3}
        sample = Sample(
            f"s{i:06}",
            "bench",
            Form.CHOICE,
            f"What is {i}?",
            options=("a", "b", "c", "d"),
            answers=("a",),
            group=f"doc{i // 10}",
            tags=tags,
        )
        yield sample.id, i, seal(to_json(sample), f"bench\0{sample.id}\0{i}")


def _predictions() -> Iterator[tuple[Any, ...]]:
    failure = b'{"key":{"task":"bench","sample":"s"},"failure":{"kind":"timeout","message":"late"}}'
    for i in range(TRIALS):
        failed = i % 211 == 0
        yield f"s{i // REPEATS:06}", i % REPEATS, int(failed), b"{}", failure if failed else b'{"text":"A"}'


def _scores() -> Iterator[tuple[Any, ...]]:
    generator = np.random.default_rng(0)
    chance = generator.beta(2, 1, TRIALS // REPEATS)
    draws = generator.random(TRIALS)
    for i in range(TRIALS):
        if i % 211 == 0:
            continue
        right = bool(draws[i] < chance[i // REPEATS])
        value, reason = (None, "refusal") if i % 97 == 0 else (float(right), None)
        answer = None if value is None else "a" if right else "bcd"[i % 3]
        yield (
            "bench",
            f"s{i // REPEATS:06}",
            "base",
            i % REPEATS,
            "accuracy",
            value,
            answer,
            "letter" if answer else None,
            reason,
            None,
        )
