"""Examples from the data: never the sample itself, seeded, and BM25 as published."""

from __future__ import annotations

import math
import random

import pytest

from snellen.core.errors import ConfigError
from snellen.core.tasks import Prompt, Shots, Task
from snellen.core.types import Form, Image, Sample
from snellen.prompt.build import Prompter
from snellen.prompt.shots import Bm25, make_retriever

QUESTIONS = (
    "what colour is the cat",
    "what colour is the dog",
    "how many boats are there",
    "is the cat black",
    "where is the harbour",
)
POOL = [
    Sample(
        str(number),
        "d",
        Form.CHOICE,
        text,
        (Image(f"/{number}.png"),),
        ("a", "b"),
        ("b",),
        group="x" if number < 2 else None,
    )
    for number, text in enumerate(QUESTIONS)
]


def find(retriever: str, place: int, count: int = 2, ids: tuple[str, ...] = (), seed: int = 0) -> list[str]:
    finder = make_retriever(Shots(retriever, count, ids), POOL)
    assert finder is not None
    return [sample.id for sample in finder(POOL[place], random.Random(seed))]


def test_zero_is_none() -> None:
    assert make_retriever(Shots(), POOL) is None
    assert make_retriever(Shots("random", 0), POOL) is None


def test_fixed_shots() -> None:
    assert find("fixed", 4, ids=("2", "0")) == ["2", "0"]
    assert find("fixed", 2, ids=("2", "0")) == ["0"]
    with pytest.raises(ConfigError, match="fixed shot '9'"):
        find("fixed", 0, ids=("9",))


def test_random_shots_are_seeded_and_never_the_sample_or_its_group() -> None:
    assert find("random", 0, seed=5) == find("random", 0, seed=5)
    for seed in range(40):
        drawn = find("random", 0, 3, seed=seed)
        assert set(drawn) == {"2", "3", "4"}
    assert len({tuple(find("random", 4, seed=seed)) for seed in range(20)}) > 3


def test_the_nearest_stands_last() -> None:
    assert find("similar", 3)[-1] in ("0", "1")
    assert find("bm25", 3)[-1] == "0"


def test_bm25_by_hand() -> None:
    index = Bm25(["cat cat dog", "dog", "bird"])
    scores = index.scores("cat")
    weight = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    norm = 1.5 * (1 - 0.75 + 0.75 * 3 / (5 / 3))
    assert scores == {0: pytest.approx(weight * 2 * 2.5 / (2 + norm))}
    assert index.rank("dog")[:2] == [1, 0]
    assert index.rank("nothing") == [0, 1, 2]


def test_unknown_and_too_many() -> None:
    with pytest.raises(ConfigError, match="did you mean 'random'"):
        find("randon", 0)
    with pytest.raises(ConfigError, match="5 shots need more than the 5 samples"):
        find("random", 0, 5)


@pytest.mark.parametrize("images", [True, False])
def test_examples_become_turns(images: bool) -> None:
    prompt = Prompt(
        template="{question} {options}", option_separator="; ", shots=Shots("fixed", ids=("2",), images=images)
    )
    request = Prompter(Task("t", {}), prompt, 0, make_retriever(prompt.shots, POOL)).build(POOL[0])
    assert [(turn.role, turn.text) for turn in request.messages] == [
        ("user", "how many boats are there A. a; B. b"),
        ("assistant", "B. b"),
        ("user", "what colour is the cat A. a; B. b"),
    ]
    assert [len(turn.images) for turn in request.messages] == [int(images), 0, 1], "each picture with its question"
