"""Words that carry meaning, and the share two texts have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.kits.cure.blind_baselines import FUNCTION_WORDS, content_words, overlap

WORDS = st.frozensets(st.sampled_from("abcdefgh"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cats ARE on the roof.", {"cat", "roof"}),
        ("glass bus gas", {"glass", "bus", "gas"}),
        ("dogs", {"dog"}),
        ("What is it?", set()),
        ("Straße 12", {"strasse", "12"}),
        ("", set()),
    ],
)
def test_function_words_go_and_plain_plurals_fold(text: str, words: set[str]) -> None:
    assert content_words(text) == words


@given(st.text())
def test_no_function_word_stays_and_case_and_order_do_not_matter(text: str) -> None:
    assert content_words(f"{text} {' '.join(FUNCTION_WORDS)}") == content_words(text)
    assert content_words(text.upper().casefold()) == content_words(text.upper())
    assert content_words(" ".join(reversed(text.split()))) == content_words(" ".join(text.split()))


@given(WORDS, WORDS)
def test_overlap_is_the_share_of_the_first(words: frozenset[str], others: frozenset[str]) -> None:
    share = overlap(words, others)
    assert share == (sum(word in others for word in words) / len(words) if words else 0.0)
    assert overlap(words, words) == (1.0 if words else 0.0)
