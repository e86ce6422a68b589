"""Columns that lie in a file against those made from the rows of run.db: the same trials, whatever is asked; or none."""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from made_runs import COLOURS, answer, ask, make_header, make_run, make_task, trials
from snellen.core.builtins import default_registry
from snellen.core.errors import EnvironmentProblem
from snellen.core.types import Form, Sample, Score, TrialKey
from snellen.report.finish import finish_run
from snellen.report.query import OUTCOMES, SORTS, Query, TextSearch, group_values, sift
from snellen.scoring import column_keeper
from snellen.scoring.array_file import ArrayFile, ArrayWriter, LaidTexts
from snellen.scoring.gathered import GatheredTask
from snellen.scoring.kept_columns import COLUMNS_FILE, KeptColumns
from snellen.scoring.ranges import RangeErrand, RangeScorer
from snellen.scoring.stored import columns_of, kept_task, read_columns, read_costs
from snellen.scoring.table import TrialColumns
from snellen.store import reader as reader_module
from snellen.store.column_seal import put_column_seal, stored_mark
from snellen.store.lock import RunLock
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter

TASK = make_task(variants=("wording=1", "base"), repeats=3)
NAMES = ("b", "Zebra", "äöü", "a\tb", "10", "9", "long " * 30, "日本", "z" * 64, "é")


def odd_samples(count: int) -> list[Sample]:
    """Samples whose names sort otherwise than they are planned, some in groups, some without tags."""
    draw, made = random.Random(7), list[Sample]()
    for number in range(count):
        tags: dict[str, Any] = {"page": number % 3, "flag": draw.choice([True, False, None])}
        tags |= {"rare": "x"} if number % 5 == 0 else {}
        group = draw.choice([None, "doc-1", "doc-2", "ä"])
        name = f"{NAMES[number % len(NAMES)]}-{(number * 37) % count}"
        question = f"Which COLOUR is number {number}?"
        made.append(
            Sample(name, "shapes", Form.CHOICE, question, (), COLOURS, (COLOURS[number % 4],), group=group, tags=tags)
        )
    return made


def write_trials(folder: Path, samples: list[Sample], *, model: str = "m") -> None:
    """Store all trials of the samples; the order in which they arrive is not that of the plan."""
    every = list(trials(TASK, samples))
    random.Random(1).shuffle(every)

    async def put() -> None:
        writer = RunWriter(folder, make_header(TASK, "openai/small", len(every)))
        for position, sample, key in every:
            await writer.put(position, sample, ask(sample, key), answer(sample, key, 0.6, model), "0" * 16)
        writer.close()

    asyncio.run(put())


@pytest.fixture(scope="module", autouse=True)
def kept_from_one() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_keeper, "KEPT_FROM", 1)
        patch.setattr(reader_module, "RANGE_TRIALS", 40)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    write_trials(folder, odd_samples(50))
    finish_run(folder, default_registry(), report=False)
    return folder


@pytest.fixture(scope="module")
def both(folder: Path) -> tuple[RunReader, TrialColumns, TrialColumns]:
    reader = RunReader(folder)
    task = reader.header().tasks[0]
    return reader, read_columns(reader, task), columns_of(reader, task)


def test_every_column_is_what_run_db_gives(both: tuple[RunReader, TrialColumns, TrialColumns]) -> None:
    _, kept, made = both
    assert isinstance(kept, KeptColumns)
    assert not isinstance(made, KeptColumns)
    for name, value in vars(made).items():
        if name in ("samples", "variants", "answers", "rules", "reasons", "facts"):
            assert list(getattr(kept, name)) == list(value), name
        elif name in ("tags", "groups"):
            continue
        else:
            np.testing.assert_equal(getattr(kept, name), value, name)
    assert kept.tags.keys() == made.tags.keys()
    assert kept.groups is not None and made.groups is not None
    for one, other in ((kept.groups, made.groups), *((kept.tags[key], made.tags[key]) for key in made.tags)):
        np.testing.assert_array_equal(one[0], other[0])
        assert list(one[1]) == list(other[1])
    assert [kept.facts[place] for place in range(len(kept.samples))] == list(made.facts)
    assert len(set(kept.outcome.tolist())) > 3, "a run without every kind of trial would show little"


def test_a_task_whose_tables_differ_in_length_is_named_and_not_left_out(tmp_path: Path, folder: Path) -> None:
    """A judge is heard after the replies were scored, and may speak of trials that were stored in between."""
    with RunReader(folder) as reader, (tmp_path / "columns.bin").open("wb", buffering=0) as file:
        task = reader.header().tasks[0]
        keeper, gathered = column_keeper.FileKeeper(ArrayWriter(file, tmp_path)), GatheredTask(task)
        errand = RangeErrand(str(folder), task, {}, tuple(task.scorers), for_viewer=True)
        parts = RangeScorer(default_registry()).score_all(errand, reader.sample_ranges(task.name))
        for part in keeper.watching(parts):
            gathered.absorb(part.gathered)
        gathered.add_scores([Score(TrialKey(task.name, "later"), "accuracy", 1.0)])
        with pytest.raises(EnvironmentProblem, match="'shapes' has 301 trials under 'accuracy', and 300 were scored"):
            keeper.add_task(gathered, ["accuracy"])


def test_costs_and_what_aggregates_read_are_the_same(both: tuple[RunReader, TrialColumns, TrialColumns]) -> None:
    reader, kept, made = both
    np.testing.assert_equal(vars_of(read_costs(reader, kept)), vars_of(read_costs(reader, made)))
    for name in ("sample", "variant", "repeat", "value", "outcome", "answer", "rule", "reason", "row"):
        column, other = getattr(kept.by_sample, name), getattr(made.by_sample, name)
        np.testing.assert_array_equal(column, other)
        assert column.dtype == other.dtype, "aggregates count in columns as wide as ever: eight bits overflow"


def vars_of(costs: Any) -> dict[str, Any]:
    return {name: getattr(costs, name) for name in ("latency_s", "tokens", "input_tokens")}


QUERIES = st.builds(
    Query,
    outcome=st.sampled_from(OUTCOMES),
    rule=st.sampled_from(["", "", "cue", "whole", "timeout", "nonsense"]),
    text=st.sampled_from(["", "", "COLOUR", "number 1", "zebra", "ö", "answer is", "in the middle", "a", "\n", "no"]),
    sort=st.sampled_from(SORTS),
    descending=st.booleans(),
    also=st.lists(
        st.sampled_from(
            [("page", "2"), ("flag", "true"), ("flag", "(none)"), ("rare", "x"), ("group", "doc-1"), ("group", "ä"),
             ("variant", "base"), ("variant", "no"), ("no", "x")]
        ),
        max_size=2,
    ).map(tuple),
    flipped=st.booleans(),
    slower=st.sampled_from([None, None, 0.3, 1.0]),
    longer=st.sampled_from([None, None, 5, 20]),
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=QUERIES)
def test_every_filter_finds_the_same_trials(both: tuple[RunReader, TrialColumns, TrialColumns], query: Query) -> None:
    reader, *ways = both
    found = []
    for columns in ways:
        search, costs = TextSearch(reader, columns), read_costs(reader, columns)
        rows, counts = sift(columns, query, search=search.find, costs=lambda costs=costs: costs)
        found.append((rows.tolist(), counts))
    assert found[0] == found[1]


def test_filters_against_the_samples_themselves(both: tuple[RunReader, TrialColumns, TrialColumns]) -> None:
    _, kept, made = both
    assert group_values(kept) == group_values(made)
    for key, value, holds in (
        ("flag", "true", lambda sample: sample.tags.get("flag") is True),
        ("flag", "(none)", lambda sample: sample.tags.get("flag") is None),
        ("rare", "x", lambda sample: "rare" in sample.tags),
        ("group", "doc-1", lambda sample: sample.group == "doc-1"),
    ):
        rows = sift(kept, Query(key=key, group=value))[0]
        wanted = [row for row in range(len(made)) if holds(made.facts[int(made.sample[row])])]
        assert rows.tolist() == wanted, (key, value)


def test_patterns_match_the_same_however_texts_are_cut(
    both: tuple[RunReader, TrialColumns, TrialColumns], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, kept, made = both
    monkeypatch.setattr("snellen.report.query.TRIED_AT_ONCE", 500)
    for pattern in (r"number 1\d?\?", r"answer is [ab]\.$", r"^ä.*-3"):
        found = TextSearch(reader, kept).match(pattern)
        assert found.tolist() == TextSearch(reader, made).match(pattern).tolist()
        replies = [trial.prediction.text or "" for trial in reader.trials("shapes")]
        for row, reply in enumerate(replies):
            facts = kept.facts[int(kept.sample[row])]
            held = [re.search(pattern, text, re.I | re.M) for text in (f"{facts.id}\n{facts.question}", reply)]
            assert found[row] == any(held)


def test_every_metric_has_its_own_columns(tmp_path: Path) -> None:
    write_trials(tmp_path, odd_samples(20))
    finish_run(tmp_path, default_registry(), report=False, more=["exact"])
    with RunReader(tmp_path) as reader:
        task = reader.header().tasks[0]
        metrics = read_columns(reader, task).metrics
        assert len(metrics) > 1
        for metric in (*metrics, "unknown"):
            kept, made = read_columns(reader, task, metric), columns_of(reader, task, metric)
            assert isinstance(kept, KeptColumns)
            assert kept.metric == made.metric
            for name in ("value", "outcome", "answer", "rule", "reason"):
                np.testing.assert_array_equal(getattr(kept, name), getattr(made, name), name)
            for name in ("answers", "rules", "reasons"):
                assert list(getattr(kept, name)) == list(getattr(made, name)), name


def test_a_writer_takes_the_columns_away(tmp_path: Path) -> None:
    write_trials(tmp_path, odd_samples(12))
    finish_run(tmp_path, default_registry(), report=False)
    with RunReader(tmp_path) as reader:
        assert kept_task(reader, "shapes") is not None
        header = reader.header()
    RunWriter(tmp_path, header).close()
    with RunReader(tmp_path) as reader:
        assert kept_task(reader, "shapes") is None, "it may have answered what had failed"
        assert len(read_columns(reader, header.tasks[0])) == 72
    finish_run(tmp_path, default_registry(), report=False)
    with RunReader(tmp_path) as reader:
        assert kept_task(reader, "shapes") is not None


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM predictions WHERE rowid = 3",
        "UPDATE predictions SET digest = 'x' WHERE rowid = (SELECT MAX(rowid) FROM predictions)",
        "UPDATE meta SET value = '1' WHERE key = 'scores/shapes'",
        "UPDATE meta SET value = '\"other\"' WHERE key = 'columns'",
    ],
)
def test_columns_of_another_state_are_not_used(tmp_path: Path, change: str) -> None:
    write_trials(tmp_path, odd_samples(12))
    finish_run(tmp_path, default_registry(), report=False)
    with sqlite3.connect(tmp_path / "run.db") as database:
        database.execute(change)
    with RunReader(tmp_path) as reader:
        assert kept_task(reader, "shapes") is None


def test_a_run_that_somebody_writes_has_no_columns(tmp_path: Path) -> None:
    write_trials(tmp_path, odd_samples(12))
    lock = RunLock(tmp_path)
    finish_run(tmp_path, default_registry(), report=False)
    lock.release()
    assert not (tmp_path / COLUMNS_FILE).exists()
    with RunReader(tmp_path) as reader:
        assert kept_task(reader, "shapes") is None
        assert not put_column_seal(tmp_path, "x", ["another"], ["shapes"]), "it has grown meanwhile"
        assert put_column_seal(tmp_path, "x", stored_mark(reader, ["shapes"]), ["shapes"])


def test_a_flipped_bit_is_told_with_what_helps(tmp_path: Path) -> None:
    write_trials(tmp_path, odd_samples(12))
    finish_run(tmp_path, default_registry(), report=False)
    path = tmp_path / COLUMNS_FILE
    with RunReader(tmp_path) as reader:
        seal = reader.meta("columns")
        file = ArrayFile.sealed(path, seal)
        assert file is not None
        place = file._arrays["0/sample"].offset
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)
        with pytest.raises(EnvironmentProblem, match=r"'0/sample': not what was written.*snellen score"):
            read_columns(reader, reader.header().tasks[0])
    assert ArrayFile.sealed(path, "0" * 64) is None
    path.write_bytes(content[:-30])
    assert ArrayFile.sealed(path, seal) is None
    assert ArrayFile.sealed(tmp_path / "none", seal) is None


def test_small_runs_have_no_such_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_keeper, "KEPT_FROM", 10_000)
    make_run(tmp_path, count=5)
    assert not (tmp_path / COLUMNS_FILE).exists()


@given(st.lists(st.text(max_size=5), max_size=30), st.integers(0, 40))
def test_laid_texts_are_the_texts(texts: list[str], place: int) -> None:
    content = [text.encode("utf-8", "surrogatepass") for text in texts]
    laid = LaidTexts(np.frombuffer(b"".join(content), np.uint8), np.cumsum([len(one) for one in content], dtype=int))
    assert list(laid) == texts == laid[:]
    if place < len(texts):
        assert laid[place] == texts[place]
    else:
        with pytest.raises(IndexError):
            laid[place]


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(EnvironmentProblem, match="No space left"):
        ArrayWriter(full, tmp_path / COLUMNS_FILE)


def test_a_trial_is_found_by_its_key(both: tuple[RunReader, TrialColumns, TrialColumns]) -> None:
    reader, kept, _ = both
    for row, trial in enumerate(reader.trials("shapes")):
        assert kept.key(row) == trial.prediction.key
        assert int(kept.row[row]) == trial.row
    assert kept.rows_with("sample", "nobody").sum() == 0
    assert kept.key(0) == TrialKey("shapes", kept.samples[int(kept.sample[0])], "base", 0)
