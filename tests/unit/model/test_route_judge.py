"""The self-test of log-probabilities on toy servers with known truth: special tokens, merges, confidence, off by one."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.model.served.candidate_scorer import (
    TAIL,
    UNHEARD,
    Continued,
    Pair,
    compare,
    judge_scores,
    plain_rivals,
    tells_apart,
)
from snellen.model.served.logprob_routes import CHAT, Token, continuation_tokens

WORDS = ("a", "b", "ab", "c", "d", "cd", "e", " f", "<end>", "�", "g", "\x18", TAIL)
SPECIAL = "<end>"
PROMPT = ("g", "a", "c")


class Toy:
    """A language model over a dozen tokens, behind the calls of a server; `shift` 1, -1: values of the token before, or after."""

    def __init__(self, seed: int, sharpness: float, *, shift: int = 0, numbers: bool = True, tops: int = 12) -> None:
        self._seed, self._sharpness, self._shift, self._numbers, self._tops = seed, sharpness, shift, numbers, tops

    def values(self, before: tuple[str, ...]) -> dict[str, float]:
        draw = random.Random(f"{self._seed} {before}")
        logits = {word: draw.gauss(0, self._sharpness) for word in WORDS}
        total = math.log(sum(map(math.exp, logits.values())))
        return {word: logit - total for word, logit in logits.items()}

    def token(self, word: str, value: float, *, scored: bool) -> Token:
        return Token(word, value, str(WORDS.index(word)) if scored or self._numbers else None)

    async def say(self, request, route, tokens):
        before, made, tops = PROMPT, [], []
        for _ in range(tokens):
            values = self.values(before)
            likeliest = sorted(values, key=values.__getitem__, reverse=True)
            made.append(self.token(likeliest[0], values[likeliest[0]], scored=False))
            tops.append([Token(word, values[word]) for word in likeliest[: self._tops]])
            before = (*before, likeliest[0])
        return "".join(token.name for token in made if token.name != SPECIAL), made, tops

    async def prompt(self, request, images, route):
        return self._scored(PROMPT)

    async def continued(self, request, images, route, prompt, continuation):
        whole = self._scored((*PROMPT, *tokenize(continuation)))
        return Continued(*continuation_tokens(whole, prompt), prompt)

    def _scored(self, words: tuple[str, ...]) -> list[Token]:
        values = [self.values(words[:place])[word] for place, word in enumerate(words)]
        moved = [values[min(max(0, place - self._shift), len(words) - 1)] for place in range(len(words))]
        return [self.token(word, value, scored=True) for word, value in zip(words, moved, strict=True)]


def tokenize(text: str) -> list[str]:
    """The longest token first, as byte pairs merge; a special one is never made of text."""
    found = []
    while text:
        word = max((word for word in WORDS if text.startswith(word) and word != SPECIAL), key=len)
        found.append(word)
        text = text[len(word) :]
    return found


def judge(toy):
    return asyncio.run(judge_scores(toy, CHAT))


servers = {
    "seed": st.integers(0, 10**6),
    "sharpness": st.sampled_from([0.05, 0.5, 2.0, 8.0, 30.0]),
    "numbers": st.booleans(),
    "tops": st.sampled_from([0, 1, 5, 12]),
}


@settings(max_examples=300)
@given(**servers)
def test_a_right_server_is_never_called_misaligned(seed, sharpness, numbers, tops):
    verdict = judge(Toy(seed, sharpness, numbers=numbers, tops=tops))
    assert not verdict.problem or verdict.is_open


@settings(max_examples=300)
@given(**servers)
def test_a_server_that_is_off_by_one_never_passes(seed, sharpness, numbers, tops):
    assert judge(Toy(seed, sharpness, shift=1, numbers=numbers, tops=tops)).problem


def test_a_server_that_gives_the_next_tokens_values_hardly_ever_passes():
    """Its values are drawn anew for each rival, so that some may agree by chance: 3 of them in 1 of 100 servers."""
    verdicts = [judge(Toy(seed, 2.0, shift=-1)) for seed in range(400)]
    assert sum(not verdict.problem for verdict in verdicts) <= 4


def test_most_right_servers_pass_whatever_their_words_become():
    verdicts = [judge(Toy(seed, 2.0)) for seed in range(200)]
    assert sum(not verdict.problem for verdict in verdicts) >= 195


def test_words_that_are_all_certain_prove_nothing():
    pairs = [Pair("a", -0.01, -0.01), Pair("b", -0.02, -0.02), Pair("c", -0.2, -0.1)]
    assert not tells_apart(pairs, pairs[:1])
    assert tells_apart(pairs, [pairs[0], Pair("d", -5.0, -5.0)])
    assert tells_apart([*pairs, Pair("d", -2.0, -2.0)], [])


def test_only_tokens_known_to_be_the_same_are_compared():
    one, two = Token("a", -1.0, "5"), Token("a", -2.0, "6")
    assert compare([one], [two]) == [], "two tokens of one text"
    assert compare([Token("a", -1.0)], [two]) == [Pair("a", -1.0, -2.0)], "by text where a number is not told"
    assert compare([two, one], [two, two]) == [Pair("a", -2.0, -2.0)], (
        "what follows a difference stands after other words"
    )


def test_rivals_are_plain_and_from_both_ends():
    top = [Token(name, -float(place)) for place, name in enumerate(["<end>", "a", " b", "�", "c", "c", "d", "e"])]
    assert [token.name for token in plain_rivals(top, CHAT)] == ["e", "a", "d", " b"]


def test_a_server_that_gives_no_values_of_its_words_is_named():
    class Silent(Toy):
        async def say(self, request, route, tokens):
            return "a", [], []

    assert judge(Silent(1, 1.0)).problem == UNHEARD


@pytest.mark.parametrize("numbers", [True, False])
def test_a_first_word_that_the_text_does_not_show_is_no_refusal(numbers):
    hidden = [
        seed for seed in range(400) if max(values := Toy(seed, 2.0).values(PROMPT), key=values.__getitem__) == SPECIAL
    ]
    assert len(hidden) > 10
    assert all(not judge(Toy(seed, 2.0, numbers=numbers)).problem for seed in hidden)
