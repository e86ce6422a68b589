"""Rows to tables: canonical order, codes, counts that add up, and clear errors."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import DataError
from snellen.core.text import NO_TAG
from snellen.scoring.tables.table import UNKNOWN, Outcome, code_of, grade
from snellen.scoring.tables.table_builder import CodeBook, TableBuilder, read_tables

ROWS: list[Any] = [
    ("b", "base", 1, "accuracy", 1.0, "cat", "letter", None),
    ("a", "base", 0, "accuracy", None, None, None, "refusal"),
    ("b", "base", 0, "accuracy", 0.0, "dog", "letter", None),
    ("b", "base", 0, "hit", 1.0, None, None, None),
]


def test_rows_become_sorted_columns() -> None:
    table = read_tables(ROWS, samples=[("b", "doc", {"topic": "x", "n": 3, "ok": True}), ("a", "doc", {})])["accuracy"]
    assert table.samples == ["a", "b"]
    assert [table.samples[i] for i in table.sample] == ["a", "b", "b"]
    assert table.repeat.tolist() == [0, 0, 1]
    assert table.value.tolist() == [0.0, 0.0, 1.0]
    assert (table.read.tolist(), table.scored.all()) == ([False, True, True], True), "what was not read counts too"
    assert [table.answers[i] if i >= 0 else None for i in table.answer] == [None, "dog", "cat"]
    assert [table.rules[i] if i >= 0 else None for i in table.rule] == [None, "letter", "letter"]
    assert table.reasons[table.reason[0]] == "refusal"
    assert len(set(table.cluster.tolist())) == 1
    assert {key: values for key, (_, values) in table.tags.items()} == {
        "topic": [NO_TAG, "x"],
        "n": [NO_TAG, "3"],
        "ok": [NO_TAG, "true"],
    }
    assert table.counts == (3, 0, 0)


@given(cuts=st.lists(st.integers(0, 60), max_size=4), groups=st.booleans())
def test_rows_may_come_some_at_a_time(cuts: list[int], groups: bool) -> None:
    scores: list[Any] = [
        (f"s{n % 23}", f"v{n % 3}", n // 23, "mn"[n % 2], n / 7, f"a{n % 5}", None, None) for n in range(60)
    ]
    trials: list[Any] = [(f"s{n % 23}", f"v{n % 3}", n // 23, "timeout" if n > 60 else None) for n in range(66)]
    samples: list[Any] = [(f"s{n}", ["", None, "doc"][n % 3] if groups else None, {"topic": n % 4}) for n in range(23)]
    builder = TableBuilder()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 66], strict=True):
        builder.add_scores(scores[start:end])
        builder.add_trials(trials[start:end])
        builder.add_samples(samples[start:end])
    for metric, table in read_tables(scores, trials, samples).items():
        np.testing.assert_equal(vars(builder.tables()[metric]), vars(table))


def test_trials_without_a_score_are_in_every_table() -> None:
    trials = [
        ("a", "base", 0, None),
        ("b", "base", 0, None),
        ("b", "base", 1, None),
        ("b", "base", 2, "timeout"),
        ("c", "base", 0, "server"),
    ]
    tables = read_tables(ROWS, trials)
    assert tables["accuracy"].counts == (3, 0, 2)
    hit = tables["hit"]
    assert hit.counts == (1, 2, 2)
    assert np.count_nonzero(hit.outcome == Outcome.PENDING) == 2, "there is a reply, and no score of this metric"
    assert set(hit.reason[hit.outcome == Outcome.PENDING].tolist()) == {-1}
    assert {hit.reasons[code] for code in hit.reason[hit.outcome == Outcome.FAILED]} == {"timeout", "server"}


def test_tables_of_a_task_share_what_no_metric_changes() -> None:
    tables = read_tables(ROWS, [("a", "base", 0, None, 7), ("b", "base", 0, None, 9), ("b", "base", 1, None, 8)])
    assert all(
        tables["hit"].__dict__[name] is tables["accuracy"].__dict__[name] for name in ("sample", "row", "samples")
    )
    assert tables["hit"].row.tolist() == [7, 9, 8]
    assert tables["hit"].take(np.array([2])).row.tolist() == [8]


def test_all_failed_and_empty_are_defined() -> None:
    table = read_tables([], [("a", "base", 0, "server")], metrics=["accuracy"])["accuracy"]
    assert table.counts == (0, 0, 1)
    assert read_tables([]) == {}
    empty = read_tables([], metrics=["accuracy"])["accuracy"]
    assert (len(empty), empty.counts, empty.is_repeated, empty.is_varied) == (0, (0, 0, 0), False, False)


def test_a_sample_and_a_group_of_one_name_are_two_clusters() -> None:
    rows: list[Any] = [(name, "base", 0, "m", 1.0, None, None, None) for name in ("x", "y", "z")]
    table = read_tables(rows, samples=[("x", None, {}), ("y", "x", {}), ("z", "x", {})])["m"]
    assert table.cluster[1] == table.cluster[2] != table.cluster[0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("a", "base", 0, "accuracy", 1.0, None, None, None), "scored twice"),
        (("z", "base", 0, "accuracy", float("nan"), None, None, None), "'z'"),
        (("z", "base", 0, "accuracy", float("inf"), None, None, None), "not a usable number"),
        (("z", "base", 0, "accuracy", "right", None, None, None), "'z'"),
        (("z", "base", -1, "accuracy", 1.0, None, None, None), "negative"),
        (("z", "base", "first", "accuracy", 1.0, None, None, None), "whole number"),
    ],
)
def test_bad_rows_are_named(row: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_tables([*ROWS, row])


keys = st.tuples(st.sampled_from("abc"), st.sampled_from(["base", "wording=1"]), st.integers(0, 3))
outcomes = st.sampled_from([None, 0.0, 1.0, 0.5])


@given(
    st.dictionaries(keys, outcomes),
    st.dictionaries(keys, st.sampled_from([None, "timeout"])),
    st.randoms(use_true_random=False),
)
def test_counts_add_up_and_order_does_not_matter(
    scores: dict[Any, float | None], trials: dict[Any, str | None], shuffler: random.Random
) -> None:
    rows: list[Any] = [
        (*key, "m", value, str(value), "rule", None if value is not None else "why") for key, value in scores.items()
    ]
    stored: list[Any] = [(*key, kind) for key, kind in trials.items()]
    table = read_tables(rows, stored, metrics=["m"])["m"]
    assert sum(table.counts) == len(scores.keys() | trials.keys())
    assert table.counts[0] == len(scores)
    assert table.read.sum() == sum(value is not None for value in scores.values())
    shuffler.shuffle(rows)
    shuffler.shuffle(stored)
    again = read_tables(rows, stored, metrics=["m"])["m"]
    for name in ("sample", "variant", "repeat", "value", "outcome", "answer", "rule", "reason"):
        assert np.array_equal(getattr(table, name), getattr(again, name))
    assert (table.samples, table.reasons) == (again.samples, again.reasons)


@given(st.lists(st.none() | st.text(max_size=2)))
def test_texts_are_coded_and_decoded(texts: list[str | None]) -> None:
    book = CodeBook()
    codes = book.encode(texts)
    sorted_texts, ranks = book.sort()
    assert [sorted_texts[code] if code >= 0 else None for code in ranks[codes].tolist()] == texts
    assert sorted_texts == sorted(set(texts) - {None})  # type: ignore[type-var]
    assert all(code_of(sorted_texts, text) == sorted_texts.index(text) for text in sorted_texts)
    assert code_of(sorted_texts, "never seen") == UNKNOWN


def test_graded_values_are_partly_right_and_errors_count_down() -> None:
    value = np.array([1.0, 0.4, 0.0, np.nan])
    up, down = grade(value, "read").tolist(), grade(value, "wer").tolist()
    assert up == [Outcome.RIGHT, Outcome.PARTLY, Outcome.WRONG, Outcome.UNREAD]
    assert down == [Outcome.WRONG, Outcome.PARTLY, Outcome.RIGHT, Outcome.UNREAD]


def test_every_outcome_is_scored_unscored_or_failed() -> None:
    rows: list[Any] = [
        (name, "base", 0, "m", value, None, None, None)
        for name, value in zip("abcd", (1.0, 0.5, 0.0, None), strict=True)
    ]
    rows.append(("g", "base", 0, "m", None, None, None, "no_reference"))
    trials: list[Any] = [(name, "base", 0, "server" if name == "e" else None) for name in "abcdefg"]
    table = read_tables(rows, trials)["m"]
    outside = [Outcome.FAILED, Outcome.PENDING, Outcome.UNJUDGED]
    assert table.outcome.tolist() == [0, 1, 2, Outcome.UNREAD, *outside]
    assert (table.scored.sum(), table.unscored.sum(), table.failed.sum()) == table.counts == (4, 2, 1)
    assert (table.read.sum(), table.unread.sum()) == (3, 1)
    assert not (table.scored & table.unscored | table.scored & table.failed | table.unscored & table.failed).any()
