"""Ways around dear patterns: each must read what the long way reads."""

from __future__ import annotations

import re
from collections import UserDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.extract import cue, meant
from snellen.extract.choice import extract_choice
from snellen.extract.option_text import OptionTexts, plain
from snellen.extract.phrases import DOUBT_CLAUSE

OPTIONS = {"A": "a cat", "B": "no", "C": "A and C", "D": "-5 °C"}
SPACES = st.sampled_from(["", " ", "\n", "\n1", "\n12", "(b", "x. ", "! ", "; ", "。", "e.g. ", " if ", "i thought "])
LEADS = [
    *(
        "Answer: {}",
        "The answer is ({}",
        "the answer is {}",
        "I choose {}",
        "答案是{}",
        "So the correct option is **{}",
    ),
    *("Choices:\nA. x\nAnswer: {}", "Answer:\n{}", "Antwort {}", "Is the answer {}", "The wrong answer is {}"),
]


@pytest.mark.parametrize("tail", sorted(cue._ENDED))
@pytest.mark.parametrize("lead", LEADS)
def test_a_label_at_the_end_is_read_as_by_all_that_may_undo_it(
    lead: str, tail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [lead.format(mark) + tail for mark in "ABCDabcd"]
    short = [extract_choice(reply, OPTIONS) for reply in replies]
    monkeypatch.setattr(cue, "_ENDED", frozenset[str]())
    assert [extract_choice(reply, OPTIONS) for reply in replies] == short


@given(st.lists(st.one_of(SPACES, st.text("ab1.!;?(\n ", max_size=6)), max_size=20).map("".join))
def test_sentences_end_where_the_pattern_that_looks_back_first_finds_them(text: str) -> None:
    looks_back = re.compile(r"(?<![\n(]\w)(?<!\n\d\d)[.!?;]\s|\n|。")
    assert [end.span() for end in meant._STOP.finditer(text)] == [end.span() for end in looks_back.finditer(text)]


@given(
    st.lists(st.one_of(SPACES, st.sampled_from(["at first ", "some say ", "the ", "x" * 30])), max_size=9).map("".join)
)
def test_a_clause_without_reported_words_within_reach_has_none_in_its_sentence(text: str) -> None:
    low, end = text + "answer", len(text)
    if DOUBT_CLAUSE.search(low, max(0, end - cue._CLAUSE), end) is None:
        assert DOUBT_CLAUSE.search(low, cue._clause_start(low, end), end) is None


@given(st.text(st.sampled_from("aB ,.\t\n\u00a0\u2003\u001c−'*"), max_size=30))
def test_a_plain_text_has_single_spaces(text: str) -> None:
    assert plain(text) == plain(re.sub(r"\s+", " ", text.strip()))
    assert not re.search(r"\s\s|[^\S ]", plain(text))


def test_an_option_spelt_as_it_is_offered_is_found_without_folding() -> None:
    texts = OptionTexts(["a cat", "two dogs", "①③"])
    assert [texts.index_of(spelt) for spelt in ("cat", "two dogs", "two \n dogs", "①③", "①、③")] == [0, 1, 1, 2, 2]


def test_options_may_come_in_any_mapping() -> None:
    assert extract_choice("It is a cat.", UserDict(OPTIONS)) == extract_choice("It is a cat.", OPTIONS)
