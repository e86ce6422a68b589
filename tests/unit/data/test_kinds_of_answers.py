"""What kind of answer a question wants, numbers written alike, and the two that a question names itself."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.data.answer_kinds import answer_kind, answer_kinds, normalise, number_words, read_written
from snellen.kits.reform.distractors import ClassNegatives, opposite_of, same_answer
from snellen.kits.reform.family_count import near_numbers
from snellen.kits.reform.family_dialog import reply_kind
from snellen.kits.reform.family_vqa import other_alternative
from snellen.kits.reform.formulate import plain_end


@pytest.mark.parametrize(
    ("question", "answer", "kind"),
    [
        ("Who is this?", "Ada Lovelace", "person"),
        ("This man was married to which actress?", "Mia Farrow", "person"),
        ("In which film did this actor play a taxi driver?", "Collateral", "title"),
        ("In which famous 1990s television series did she star?", "Friends", "title"),
        ("What is the title of his first novel?", "Dubliners", "title"),
        ("Which country does this flag belong to?", "Peru", "place"),
        ("Of which country's army was this man a general?", "France", "place"),
        ("Where was she born?", "Ulm", "place"),
        ("In what year was this bridge built?", "1815", "year"),
        ("When was it taken?", "1999", "year"),
        ("How many birds are there?", "1999", "number"),
        ("How many birds are there?", "three", "number"),
        ("What color is the bus?", "red", "colour"),
        ("What is this?", "dark blue and white", "colour"),
        ("What is the man holding?", "a kite", "thing"),
        ("What is the dog doing?", "sleeping", "thing"),
        ("What kind of animal is this?", "cow", "animal"),
        ("What sport is being played?", "tennis", "sport"),
        ("Is it raining?", "no", "yes/no"),
        ("What time does the clock show?", "10:25", "time"),
        ("What does it say?", "Main Street", "name"),
    ],
)
def test_kinds(question: str, answer: str, kind: str) -> None:
    assert answer_kind(question, answer) == kind


def test_kinds_run_from_narrow_to_wide() -> None:
    kinds = answer_kinds("In which film did he play?", "Collateral", ("who", "other"))
    assert kinds == ("who: title", "other: title", "title (film)", "title", "name")


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("Is the cup red or blue?", "red", "blue"),
        ("Is the cup red or blue?", "blue", "red"),
        ("Is it a cat or a dog?", "dog", "cat"),
        ("Is the man to the left or to the right of the car?", "left", "right"),
        ("Is the man to the left or to the right of the car?", "right", "left"),
        ("Which is healthier, the pizza or the salad?", "salad", "pizza"),
        ("Who is wearing a shirt, the man or the woman?", "man", "woman"),
        ("Does the fence look wooden or metal?", "metal", "wooden"),
        ("Is the bag in the top or the bottom part of the picture?", "bottom", "top"),
        ("What is this?", "cat", None),
        ("Is it a cat, a dog or a cow?", "horse", None),
    ],
)
def test_questions_that_name_their_two(question: str, answer: str, other: str | None) -> None:
    assert other_alternative(question, answer) == other


def test_opposites_know_each_other() -> None:
    assert (opposite_of("left"), opposite_of("Female"), opposite_of("cat")) == ("right", "male", None)


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("3", "How many?"),
        ("three", "How many?"),
        ("$15", "What is the price?"),
        ("1,500", "How many?"),
        ("3.5", "What is it?"),
        ("40%", "How much?"),
        ("12 feet", "How long is it?"),
    ],
)
def test_numbers_are_written_alike(answer: str, question: str) -> None:
    written = read_written(answer, question)
    for seed in range(30):
        wrong = near_numbers(question, answer, (), 3, generator=random.Random(seed))
        assert wrong is not None and len({item.text for item in wrong}) == 3
        for item in wrong:
            other = read_written(item.text, question)
            assert (other.before, other.unit, other.decimals, other.in_words) == (
                written.before, written.unit, written.decimals, written.in_words
            )  # fmt: skip
            assert other.value % written.step == 0


@given(
    st.integers(0, 60),
    st.lists(st.integers(0, 70), max_size=10),
    st.booleans(),
    st.integers(2, 5),
    st.integers(0, 2**32),
)
def test_accepted_numbers_are_passed_over_and_never_missed(
    answer: int, accepted: list[int], in_words: bool, count: int, seed: int
) -> None:
    """Near integers that annotators accepted were dropped: questions ended with one option, and the run with them."""
    words = number_words()
    texts = [words[value] if in_words else str(value) for value in (answer, *accepted)]
    wrong = near_numbers("How many?", texts[0], texts[1:], count, generator=random.Random(seed))
    assert wrong is not None
    forms = {normalise(item.text) for item in wrong}
    assert len(forms) == count
    assert not forms & {normalise(text) for text in texts}


def test_years_could_have_been_meant() -> None:
    for seed in range(200):
        wrong = near_numbers("In what year?", "2011", (), 3, generator=random.Random(seed), latest=2014)
        years = [int(item.text) for item in wrong or ()]
        assert all(2000 <= year <= 2014 for year in years), years
        old = near_numbers("In what year?", "1815", (), 3, generator=random.Random(seed), latest=2014)
        assert all(1780 <= int(item.text) <= 1850 for item in old or ())


def test_the_rank_of_a_number_stays_uniform() -> None:
    ranks: Counter[int] = Counter()
    for seed in range(800):
        wrong = near_numbers("How many?", "nine", ["ten"], 3, generator=random.Random(seed)) or []
        ranks[sum(number_words().index(item.text) < 9 for item in wrong)] += 1
    assert all(150 < ranks[rank] < 250 for rank in range(4))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("gray", "grey"),
        ("sofa", "couch"),
        ("sunglass", "sunglasses"),
        ("laptop", "notebook"),
        ("dogs", "dog"),
        ("USA", "United States"),
    ],
)
def test_words_of_one_meaning_are_one_answer(left: str, right: str) -> None:
    assert same_answer(left, right)


def test_classes_of_one_meaning_are_never_offered_together() -> None:
    names = {
        "a": ("sunglass",),
        "b": ("sunglasses", "dark glasses"),
        "c": ("laptop",),
        "d": ("notebook",),
        "e": ("bus",),
        "f": ("tram",),
    }
    for seed in range(40):
        wrong = {item.text for item in ClassNegatives(names, "uniform").draw("a", 3, random.Random(seed))}
        assert "sunglasses" not in wrong
        assert not {"laptop", "notebook"} <= wrong


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("yes", "yes"), ("yep", "yes"), ("yes, 2 of them", "yes"), ("no", "no"), ("nope", "no"), ("0", "no"), ("i do not see any", "no"),
        ("there are no people", "no"), ("not sure", "unsure"), ("i can't tell", "unsure"), ("not that i can see", "unsure"), ("2", "number"),
        ("three", "number"), ("red", "colour"), ("on the table", "words"), ("it is red", "words"), ("noodles", "words"), ("yesterday", "words"),
    ],
)  # fmt: skip
def test_spoken_replies_that_mean_the_same(reply: str, kind: str) -> None:
    assert reply_kind(reply) == kind


def test_a_sentence_loses_its_full_stop_and_nothing_else_does() -> None:
    assert plain_end("The cat is on the mat.") == "The cat is on the mat"
    for text in ("U.S.", "Washington D.C.", "wait...", "cat", "He met J. R.", "cat."):
        assert plain_end(text) == text
