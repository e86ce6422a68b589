"""A judge that sees options only: it finds an artefact of wording, and nothing where there is none."""

from __future__ import annotations

import random

import numpy as np
import pytest

from snellen.kits.cure.blind_baselines import FOLDS, Choice, learned_credit

WORDS = [
    "kettle",
    "bicycle",
    "umbrella",
    "harvest",
    "boat",
    "parcel",
    "lantern",
    "kite",
    "anchor",
    "basket",
    "candle",
    "drum",
    "engine",
    "feather",
    "glove",
    "hammer",
]


def choices(count: int, mark: str = "", options: int = 4) -> list[Choice]:
    """Questions whose right option differs from the wrong ones by `mark` only, at places drawn at random."""
    draw = random.Random(11)
    made = []
    for _ in range(count):
        texts, right = draw.sample(WORDS, options), draw.randrange(options)
        made.append(Choice("What is it?", [text + mark * (at == right) for at, text in enumerate(texts)], right))
    return made


@pytest.mark.parametrize("mark", [".", ", of a kind", " 12"])
def test_an_artefact_is_learned_from_the_other_items(mark: str) -> None:
    questions = choices(120, mark)
    assert learned_credit(questions, range(120)).mean() > 0.95


def test_without_an_artefact_it_stays_near_chance() -> None:
    questions = choices(400)
    assert learned_credit(questions, range(400)).mean() == pytest.approx(0.25, abs=0.08)


def test_options_that_look_alike_share_the_credit() -> None:
    questions = [Choice("?", ["same", "same", "same", "same"], number % 4) for number in range(40)]
    assert learned_credit(questions, range(40)) == pytest.approx(np.full(40, 0.25))


def test_one_item_in_one_fold_learns_nothing_of_itself() -> None:
    """All questions of one item: nothing is left to learn from, so every option is as good as any."""
    questions = choices(30, ".")
    assert learned_credit(questions, [7] * 30) == pytest.approx(np.full(30, 0.25))
    assert FOLDS > 1


def test_the_number_of_options_may_differ() -> None:
    questions = [*choices(60, ".", options=3), *choices(60, ".", options=5)]
    credit = learned_credit(questions, range(120))
    assert credit.shape == (120,) and credit.mean() > 0.95
    assert ((credit >= 0.0) & (credit <= 1.0)).all()
