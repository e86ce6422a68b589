"""Reasoning and consistency over chains."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import DataError, UsageError
from snellen.scoring.aggregates.consistency import aggregate, chains_from_items, chains_from_table, consistency, steps
from snellen.scoring.tables.table_builder import read_tables

TRUTH = [{"inference": 0, "chain": [1, 2]}, {"inference": 3, "chain": [4, 5, 0]}, {"inference": 1, "chain": [1]}]


def values(found: list[dict[str, Any]], convention: str = "conditional") -> dict[str, float | None]:
    return {name: estimate.value for name, estimate in consistency(chains_from_items(TRUTH, found), convention).items()}


def test_by_hand() -> None:
    found = [{"inference": 0, "chain": [1, 2]}, {"inference": 3, "chain": [4, 5, 1]}, {"inference": 2, "chain": [1]}]
    assert values(found) == pytest.approx({"Rh": 2 / 3, "Rcot": 2 / 3, "Ro": 1 / 3, "Cf": 0.5, "Cb": 0.5})
    assert values(found, "over-n") == pytest.approx({"Rh": 2 / 3, "Rcot": 2 / 3, "Ro": 1 / 3, "Cf": 1 / 3, "Cb": 1 / 3})


def test_missing_answers_are_wrong_and_undefined_is_none() -> None:
    found: list[dict[str, Any]] = [{"inference": None, "chain": [1]}, {}, {"inference": 9, "chain": []}]
    assert values(found) == {"Rh": 0.0, "Rcot": 0.0, "Ro": 0.0, "Cf": None, "Cb": None}


def test_where_chains_break() -> None:
    found = [{"inference": 0, "chain": [1, 9]}, {"inference": 3, "chain": [9, 9, 0]}, {"inference": 1, "chain": [1]}]
    estimates = {name: estimate.value for name, estimate in steps(chains_from_items(TRUTH, found)).items()}
    assert estimates == pytest.approx(
        {
            "step_accuracy": 0.5,
            "step_1_accuracy": 2 / 3,
            "step_2_accuracy": 0.0,
            "step_3_accuracy": 1.0,
            "break_at_1": 1 / 3,
            "break_at_2": 1 / 3,
            "break_at_3": 0.0,
            "unbroken": 1 / 3,
        }
    )


@given(st.lists(st.tuples(st.booleans(), st.lists(st.booleans(), min_size=1, max_size=4)), min_size=1, max_size=30))
def test_counts_and_bounds(items: list[tuple[bool, list[bool]]]) -> None:
    truth = [{"inference": 1, "chain": [1] * len(chain)} for _, chain in items]
    found = [{"inference": int(right), "chain": [int(step) for step in chain]} for right, chain in items]
    chains = chains_from_items(truth, found)
    estimates = consistency(chains)
    both = sum(right and all(chain) for right, chain in items)
    whole, inference = sum(all(chain) for _, chain in items), sum(right for right, _ in items)
    assert estimates["Ro"].value == pytest.approx(both / len(items))
    assert estimates["Cf"].value == (pytest.approx(both / whole) if whole else None)
    assert estimates["Cb"].value == (pytest.approx(both / inference) if inference else None)
    broken = [
        estimate.value or 0.0
        for name, estimate in steps(chains).items()
        if name.startswith("break") or name == "unbroken"
    ]
    assert sum(broken) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("truth", "found", "words"),
    [
        ([{"inference": 1, "chain": []}], [{}], "item 0"),
        ([{"chain": [1]}], [{}], "item 0"),
        ([{"inference": 1, "chain": [1]}], [{"chain": "A"}], "list"),
        ([{"inference": 1, "chain": [1]}], [{"chain": [1, 2]}], "2 predicted steps"),
        ([{"inference": 1, "chain": [1]}], [], "1 items but 0"),
    ],
)
def test_bad_items_are_named(truth: list[Any], found: list[Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        chains_from_items(truth, found)


def chain_rows(repeats: int = 1) -> tuple[list[Any], list[Any]]:
    rows, samples = [], []
    for item in range(3):
        for name, tags in (
            ("h", {"role": "inference", "step": 0}),
            ("s10", {"role": "step", "step": 10}),
            ("s9", {"role": "step", "step": 9}),
        ):
            samples.append((f"{item}{name}", f"item{item}", tags))
            rows += [
                (f"{item}{name}", "base", r, "accuracy", float(not (item == 0 and name == "s9")), None, None, None)
                for r in range(repeats)
            ]
    return rows, samples


def test_chains_of_a_table_follow_the_step_numbers() -> None:
    rows, samples = chain_rows()
    rows[-1] = (*rows[-1][:4], None, None, None, "refusal")
    table = read_tables(rows, samples=samples)["accuracy"]
    estimates = aggregate(table)
    read = {name: estimates[f"{name}_read"] for name in ("step_1_accuracy", "Rcot", "Cb", "Cf")}
    assert read["step_1_accuracy"].value == 0.5, "step 9 comes before step 10; an unread step is not among the read"
    assert (read["Rcot"].value, read["Rcot"].n, read["Rcot"].unscored) == (0.5, 2, 1)
    assert (estimates["Rh"].value, estimates["Rh"].n) == (1.0, 3)
    assert (read["Cb"].value, read["Cf"].value, read["Cf"].left_out) == (0.5, 1.0, 1)
    assert aggregate(table, {"convention": "over-n"})["Cf_read"].value == 0.5
    own = {name: estimates[name].value for name in ("step_1_accuracy", "Rcot", "Cb")}
    assert own == pytest.approx(dict.fromkeys(own, 1 / 3)), "it is not right"


def test_repeats_of_a_chain_are_one_cluster() -> None:
    rows, samples = chain_rows(repeats=4)
    chains = chains_from_table(read_tables(rows, samples=samples)["accuracy"])
    assert chains.inference.size == 12
    once_rows, _ = chain_rows()
    once = consistency(chains_from_table(read_tables(once_rows, samples=samples)["accuracy"]))
    often = consistency(chains)
    assert {name: one.value for name, one in often.items()} == pytest.approx(
        {name: one.value for name, one in once.items()}
    )
    assert often["Rcot"].stderr == pytest.approx(once["Rcot"].stderr)


def test_tables_that_are_no_chains() -> None:
    rows, samples = chain_rows()
    with pytest.raises(DataError, match="role"):
        aggregate(read_tables(rows)["accuracy"])
    with pytest.raises(DataError, match="inference"):
        aggregate(read_tables([row for row in rows if row[0] != "1h"], samples=samples)["accuracy"])
    with pytest.raises(UsageError, match="over-n"):
        aggregate(read_tables(rows, samples=samples)["accuracy"], {"convention": "overn"})


def test_indices_may_be_written_as_text_and_labels_are_compared_with_labels() -> None:
    found = [{"inference": "0", "chain": ["1", "(2)"]}, {"inference": 3.0, "chain": [4, 5, 0]}, None]
    assert values(found) == pytest.approx({"Rh": 2 / 3, "Rcot": 2 / 3, "Ro": 2 / 3, "Cf": 1.0, "Cb": 1.0})
    labels = [{"inference": "A", "chain": ["b"]}]
    said = [{"inference": "(a)", "chain": ["B."]}]
    assert consistency(chains_from_items(labels, said))["Ro"].value == 1.0


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"inference": "(a)", "chain": [1]}, r"item 0: '\(a\)' is predicted where the ground truth says 1"),
        ({"inference": 1, "chain": [True]}, "item 0: True is no index"),
        ({"inference": 1.5, "chain": [1]}, "item 0: 1.5 is no index"),
        ("A", "item 0: the prediction must be an object"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(found: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        chains_from_items([{"inference": 1, "chain": [1]}], [found])
