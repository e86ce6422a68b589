"""Distractors: never an accepted answer, unique, seeded, with provenance; the answer's place and rank are uniform."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import DataError
from snellen.data.answer_kinds import normalise
from snellen.kits.reform.distractors import (
    AnswerPool,
    ClassNegatives,
    Distractor,
    first_unique,
    place,
    require,
    same_answer,
)
from snellen.kits.reform.family_count import near_integers
from snellen.kits.reform.formulate import Recipe


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The Cat", "cat"),
        ("two", "2"),
        ("None", "0"),
        ("  a  dog. ", "dog"),
        ("Ｃａｔ", "cat"),
        ("3.5", "3.5"),
        ("-2", "-2"),
        ("50%", "50%"),
    ],
)
def test_normal_forms_that_are_one(left: str, right: str) -> None:
    assert normalise(left) == normalise(right)


@pytest.mark.parametrize(
    ("left", "right"), [("cat", "cats eye"), ("1", "10"), ("3.5", "35"), ("-2", "2"), ("50%", "50"), ("the", "a")]
)
def test_normal_forms_that_differ(left: str, right: str) -> None:
    assert normalise(left) != normalise(right)


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once or "".join(once.split()) == ""


def test_same_answer_sees_parts_and_spellings() -> None:
    assert same_answer("red", "dark red")
    assert same_answer("colour of the sky", "color of the sky")
    assert not same_answer("2", "12")
    assert not same_answer("left", "right")


def test_first_unique_keeps_the_first_spelling() -> None:
    assert first_unique(["A cat", "cat", "Dog", "two", "2"], ["dog"]) == ["A cat", "two"]


def test_place_is_uniform_and_keeps_provenance() -> None:
    wrong = [Distractor("b", "here", 12.34, 5), Distractor("c", "there")]
    spots = Counter(place("a", wrong, random.Random(seed))[0].index("a") for seed in range(900))
    assert all(240 < spots[spot] < 360 for spot in range(3))
    options, origins = place("a", wrong, random.Random(1))
    assert set(options) == {"a", "b", "c"}
    assert origins == {"b": {"source": "here", "similarity": 12.3, "count": 5}, "c": {"source": "there"}}


@given(st.integers(0, 500), st.integers(2, 6), st.integers(0, 2**32))
def test_near_integers(answer: int, count: int, seed: int) -> None:
    wrong = [int(item.text) for item in near_integers(answer, count, random.Random(seed))]
    assert len(set(wrong)) == count
    assert answer not in wrong
    assert min(wrong) >= 0
    assert all(abs(value - answer) <= max(count, 3, answer // 10) for value in wrong)


def test_rank_of_a_number_is_uniform() -> None:
    ranks = Counter()
    for seed in range(800):
        wrong = [int(item.text) for item in near_integers(9, 3, random.Random(seed))]
        ranks[sum(value < 9 for value in wrong)] += 1
    assert all(150 < ranks[rank] < 250 for rank in range(4))


def pool() -> AnswerPool:
    colours = [("what color", word) for word in ("red", "green", "blue", "yellow", "white", "black") for _ in range(10)]
    animals = [("what animal", word) for word in ("cat", "dog", "horse", "cow")]
    return AnswerPool([*colours, *animals, *(("", word) for word in ("red", "cat", "tall tower"))])


def test_pool_draws_from_the_same_kind_and_never_an_accepted_answer() -> None:
    for seed in range(60):
        wrong = pool().negatives(("what color", ""), "red", ["dark red", "green"], 3, random.Random(seed))
        texts = [item.text for item in wrong]
        assert set(texts) <= {"blue", "yellow", "white", "black"}
        assert len(set(texts)) == 3
        assert all(item.source == "answers of kind 'what color'" and item.count == 10 for item in wrong)


def test_pool_widens_only_when_it_must() -> None:
    texts = [item.text for item in pool().negatives(("what animal", ""), "cat", ["dog", "horse"], 3, random.Random(1))]
    assert texts[0] == "cow"
    assert set(texts[1:]) == {"red", "tall tower"}


def test_draws_depend_on_the_key_alone() -> None:
    first = Recipe("set", seed=0).rng("7", "distractors").random()
    assert first == Recipe("set", seed=0, options=6).rng("7", "distractors").random()
    others = {
        Recipe("set", seed=0).rng("7", "place").random(),
        Recipe("set", seed=0).rng("8", "distractors").random(),
        Recipe("set", seed=1).rng("7", "distractors").random(),
        Recipe("other", seed=0).rng("7", "distractors").random(),
    }
    assert first not in others
    assert len(others) == 4


def test_the_answer_is_not_the_most_common_option() -> None:
    """Frequency matching: an answer's wrong options are about as frequent as it, so frequency alone tells nothing."""
    pairs = [("k", f"word{rank}") for rank in range(300) for _ in range(300 // (rank + 1))]
    counted = AnswerPool(pairs)
    top = 0
    for rank in range(20, 280, 10):
        wrong = counted.negatives(("k",), f"word{rank}", [], 3, random.Random(rank))
        top += all(counted.count("k", item.text) < counted.count("k", f"word{rank}") for item in wrong)
    assert top <= 12


def test_near_classes_share_a_parent_and_synonyms_never_meet() -> None:
    names = {
        "n1": ("tench", "Tinca"),
        "n2": ("goldfish",),
        "n3": ("Tinca", "tench fish"),
        "n4": ("hen",),
        "n5": ("bus",),
        "n6": ("shark",),
    }
    parents = {"n1": "fish", "n2": "fish", "n3": "fish", "n6": "fish", "n4": "bird", "fish": "animal", "bird": "animal"}
    near = ClassNegatives(names, "near", parents)
    near.NEAREST = 2  # type: ignore[misc]
    for seed in range(30):
        texts = {item.text for item in near.draw("n1", 2, random.Random(seed))}
        assert texts == {"goldfish", "shark"}


def test_confusable_classes_follow_the_table() -> None:
    names = {name: (name,) for name in ("a", "b", "c", "d", "e")}
    drawer = ClassNegatives(names, "confusable", confusion={"a": {"d": 9, "b": 5, "c": 1}})
    drawer.NEAREST = 2  # type: ignore[misc]
    assert {item.text for item in drawer.draw("a", 2, random.Random(0))} == {"d", "b"}


def test_uniform_classes_reach_all() -> None:
    names = {str(number): (f"class {number}",) for number in range(30)}
    drawer = ClassNegatives(names, "uniform")
    seen = {item.text for seed in range(200) for item in drawer.draw("0", 3, random.Random(seed))}
    assert len(seen) == 29


def test_fewer_classes_than_options_is_an_error() -> None:
    with pytest.raises(DataError, match="record 7: only 1 different wrong options for 3"):
        require([Distractor("a", "x")], 3, "record 7")
