"""Columns, filters and text search against a plain reading of the same store."""

from __future__ import annotations

import asyncio
import math
import random
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_runs import COLOURS, answer, ask, make_header, make_run, make_task, trials
from snellen.core.builtins import default_registry
from snellen.core.errors import EnvironmentProblem
from snellen.core.types import Form, Sample
from snellen.report.pages.finish import finish_run
from snellen.report.pages.gallery import pick_rows
from snellen.report.query import OUTCOMES, SORTS, Query, TextBlock, TextSearch, group_values, select
from snellen.scoring.stored import read_columns, read_costs
from snellen.scoring.tables.table import Outcome, TrialColumns
from snellen.store import reader as reader_module
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    folder = tmp_path_factory.mktemp("columns")
    return RunReader(make_run(folder, count=40, task=make_task(variants=("base", "wording=1"), repeats=3)))


@pytest.fixture(scope="module")
def columns(reader: RunReader) -> TrialColumns:
    return read_columns(reader, reader.header().tasks[0])


def test_scores_are_read_once_and_checked_on_the_way(tmp_path: Path) -> None:
    folder = make_run(tmp_path, count=40)
    asked: list[str] = []
    with RunReader(folder) as reader:
        task = reader.header().tasks[0]
        reader._database.set_trace_callback(asked.append)
        whole = read_columns(reader, task)
    passes = [statement for statement in asked if "FROM scores" in statement and "LIMIT 1" not in statement]
    assert len([statement for statement in passes if "sample =" not in statement]) == 1
    with RunReader(folder) as reader:
        values = [row[5] for rows in reader.score_rows(task.name) for row in rows if row[5] is not None]
    assert values == whole.by_sample.value[whole.by_sample.read].tolist()
    with sqlite3.connect(folder / "run.db") as database:
        database.execute("UPDATE scores SET value = 0.5 WHERE rowid = 3")
    with RunReader(folder) as reader, pytest.raises(EnvironmentProblem, match="damaged: `snellen score"):
        read_columns(reader, task)


def test_columns_equal_the_store_row_by_row(reader: RunReader, columns: TrialColumns) -> None:
    scores = {score.key: score for score in reader.scores("shapes")}
    stored = list(reader.trials("shapes"))
    assert len(columns) == len(stored) == 240
    for row, trial in enumerate(stored):
        key = trial.prediction.key
        assert columns.key(row) == key, "the order is that of the plan"
        score = scores.get(key)
        if trial.prediction.failure is not None:
            assert columns.outcome[row] == Outcome.FAILED
            assert columns.text("reason", row) == "timeout"
        elif score is not None and score.value is None:
            assert columns.outcome[row] == Outcome.UNREAD
            assert columns.text("reason", row) == score.reason
        elif score is not None:
            assert columns.value[row] == score.value
            assert columns.outcome[row] == (Outcome.RIGHT if score.value == 1 else Outcome.WRONG)
            assert columns.text("answer", row) == score.answer
            assert columns.text("rule", row) == score.rule


def test_costs_are_those_of_the_stored_replies(reader: RunReader, columns: TrialColumns) -> None:
    costs = read_costs(reader, columns)
    for row, trial in enumerate(reader.trials("shapes")):
        timing, usage = trial.prediction.timing, trial.prediction.usage
        assert timing is not None
        assert costs.latency_s[row] == pytest.approx(timing.done - timing.sent)
        assert costs.tokens[row] == (usage.output_tokens if usage else 0)


def test_flipped_means_some_right_and_some_wrong(columns: TrialColumns) -> None:
    for place in range(len(columns.samples)):
        of_sample = columns.sample == place
        kinds = set(columns.outcome[of_sample].tolist())
        assert columns.flipped[of_sample].all() == ({Outcome.RIGHT, Outcome.WRONG} <= kinds)


def test_a_run_never_scored_is_scored_while_it_is_read(tmp_path: Path) -> None:
    scored = RunReader(make_run(tmp_path / "a", count=10))
    bare = RunReader(make_run(tmp_path / "b", count=10, score=False))
    task = scored.header().tasks[0]
    assert read_columns(bare, task).outcome.tolist() == read_columns(scored, task).outcome.tolist()
    assert read_columns(bare, task).metric == "accuracy"


def test_a_run_without_trials_has_empty_columns(tmp_path: Path) -> None:
    reader = RunReader(make_run(tmp_path, count=3, stop_after=0, score=False))
    columns = read_columns(reader, reader.header().tasks[0])
    assert len(columns) == 0
    assert select(columns, Query(outcome="wrong", sort="value", key="shape", group="circle")).size == 0
    assert pick_rows(columns) == []


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(OUTCOMES), st.sampled_from(SORTS), st.booleans(), st.sampled_from(["", "cue", "whole", "timeout", "nonsense"]), st.sampled_from([("", ""), ("shape", "bar"), ("page", "2"), ("variant", "wording=1"), ("group", "doc-3"), ("no", "x")]))  # fmt: skip
def test_select_equals_a_plain_filter(
    reader: RunReader,
    columns: TrialColumns,
    outcome: str,
    sort: str,
    descending: bool,
    rule: str,
    group: tuple[str, str],
) -> None:
    costs = read_costs(reader, columns)
    rows = select(columns, Query(outcome, rule, *group, sort=sort, descending=descending), costs=lambda: costs)

    def kept(row: int) -> bool:
        kind, sample = Outcome(int(columns.outcome[row])), columns.facts[int(columns.sample[row])]
        of_outcome = {
            "all": True, "flipped": bool(columns.flipped[row]), "unread": kind is Outcome.UNREAD, "wrong": kind in (Outcome.WRONG, Outcome.PARTLY),
        }.get(outcome, kind.name.lower() == outcome)  # fmt: skip
        told = {columns.text("rule", row), columns.text("reason", row)}
        facts = {
            **{key: str(value) for key, value in sample.tags.items()},
            "group": sample.group,
            "variant": columns.key(row).variant,
        }
        return of_outcome and (not rule or rule in told) and (not group[0] or facts.get(group[0]) == group[1])

    assert sorted(rows.tolist()) == [row for row in range(len(columns)) if kept(row)]
    keys = {
        "value": np.where(columns.scored, columns.value, np.nan),
        "latency": costs.latency_s,
        "tokens": costs.tokens.astype(float),
    }.get(sort)
    if keys is not None:
        known = [value for value in keys[rows].tolist() if not math.isnan(value)]
        assert known == sorted(known, reverse=descending)
        assert all(math.isnan(value) for value in keys[rows].tolist()[len(known) :]), "what has no number stands last"


def test_text_search_finds_questions_ids_and_replies(reader: RunReader, columns: TrialColumns) -> None:
    search = TextSearch(reader, columns)
    replies = [(trial.prediction.text or "").lower() for trial in reader.trials("shapes")]
    assert search.find("CLEARLY visible").tolist() == ["clearly visible" in reply for reply in replies]
    assert search.find("shape-00007").sum() == 6
    assert search.find("shape number 12?").sum() == 6
    assert not search.find("zebra").any()
    assert not search.find("").any()


@given(st.lists(st.text("ab\n", max_size=6), max_size=12), st.text("ab\n", min_size=1, max_size=3))
def test_a_block_of_texts_equals_in(pieces: list[str], needle: str) -> None:
    assert TextBlock.of(pieces).containing(needle.encode()).tolist() == [needle in piece for piece in pieces]


def test_groups_offer_only_what_splits(columns: TrialColumns) -> None:
    groups = group_values(columns)
    assert groups["shape"] == ["bar", "circle", "square", "triangle"]
    assert groups["variant"] == ["base", "wording=1"]
    assert len(groups["group"]) == 10


def test_gallery_takes_one_trial_a_sample(columns: TrialColumns) -> None:
    rows = pick_rows(columns, 12)
    assert len(rows) == len({int(columns.sample[row]) for row in rows}) == 12
    assert all(columns.outcome[row] == Outcome.WRONG for row in rows)


ODD_TASK = make_task(variants=("wording=1", "base"), repeats=3)
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
    every = list(trials(ODD_TASK, samples))
    random.Random(1).shuffle(every)

    async def put() -> None:
        writer = RunWriter(folder, make_header(ODD_TASK, "openai/small", len(every)))
        for position, sample, key in every:
            await writer.put(position, sample, ask(sample, key), answer(sample, key, 0.6, model), "0" * 16)
        writer.close()

    asyncio.run(put())


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    folder = tmp_path_factory.mktemp("odd")
    write_trials(folder, odd_samples(50))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_module, "RANGE_TRIALS", 40)
        finish_run(folder, default_registry(), report=False)
    return RunReader(folder)


def test_odd_names_and_tags_are_filtered_as_the_samples_say(odd: RunReader) -> None:
    columns = read_columns(odd, odd.header().tasks[0])
    for key, value, holds in (
        ("flag", "true", lambda sample: sample.tags.get("flag") is True),
        ("flag", "(none)", lambda sample: sample.tags.get("flag") is None),
        ("rare", "x", lambda sample: "rare" in sample.tags),
        ("group", "doc-1", lambda sample: sample.group == "doc-1"),
    ):
        rows = select(columns, Query(key=key, group=value))
        wanted = [row for row in range(len(columns)) if holds(columns.facts[int(columns.sample[row])])]
        assert rows.tolist() == wanted, (key, value)


def test_patterns_match_however_texts_are_cut(odd: RunReader, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = read_columns(odd, odd.header().tasks[0])
    monkeypatch.setattr("snellen.report.query.TRIED_AT_ONCE", 500)
    replies = [trial.prediction.text or "" for trial in odd.trials("shapes")]
    for pattern in (r"number 1\d?\?", r"answer is [ab]\.$", r"^ä.*-3"):
        found = TextSearch(odd, columns).match(pattern)
        for row, reply in enumerate(replies):
            facts = columns.facts[int(columns.sample[row])]
            held = [re.search(pattern, text, re.I | re.M) for text in (f"{facts.id}\n{facts.question}", reply)]
            assert found[row] == any(held)


def test_a_trial_is_found_by_its_key(odd: RunReader) -> None:
    columns = read_columns(odd, odd.header().tasks[0])
    for row, trial in enumerate(odd.trials("shapes")):
        assert columns.key(row) == trial.prediction.key
        assert int(columns.row[row]) == trial.row
    assert columns.rows_with("sample", "nobody").sum() == 0
