"""Why a trial was read as it was: the words of `snellen extract`, the deciding place, and values for likelihoods."""

from __future__ import annotations

import pytest

from snellen.api.one_reply import read_reply
from snellen.core.types import Form, Likelihood, Prediction, Request, Sample, Score, TrialKey, Turn
from snellen.report.pages.gallery import Shown
from snellen.report.viewer.rendered_reply import Explained, explain_score
from snellen.scoring.scorers import option_choice, option_likelihood, text_match

KEY = TrialKey("t", "s")
OPTIONS = ("a cat", "a dog", "a cow")
SAMPLE = Sample("s", "d", Form.CHOICE, "Which?", options=OPTIONS, answers=("a dog",))
REQUEST = Request(KEY, (), marks=("A", "B", "C"), shown=OPTIONS)


def shown(text, *, request=REQUEST, sample=SAMPLE, options=None, finish="stop"):
    prediction = Prediction(KEY, text=text, finish=finish)
    return Shown(sample, request, prediction, list(option_choice.score(sample, request, prediction, options or {})))


@pytest.mark.parametrize(
    ("reply", "finish"),
    [
        ("B", "stop"),
        ("It purrs, so it is no dog. The answer is: A. a cat", "stop"),
        ("\\boxed{C}", "stop"),
        ("Either A or B.", "stop"),
        ("I cannot help with that.", "stop"),
        ("Let me think about the", "length"),
        ("", "stop"),
        ("It might be any of these animals.", "stop"),
    ],
)
def test_the_words_and_the_place_are_those_of_the_reader_itself(reply, finish):
    wanted = read_reply(reply, OPTIONS, finish=finish)
    explained = explain_score(shown(reply, finish=finish))
    assert explained.sentence == wanted.why
    assert explained.span == wanted.span


def test_a_reading_by_a_profile_or_by_older_rules_is_told_from_what_was_stored():
    assert "profile" in explain_score(shown("The answer is B", options={"profile": "reform"})).sentence
    old = Score(KEY, "accuracy", 1.0, "a dog", "whole", None, {"span": [0, 1]})
    (told,) = [explain_score(Shown(SAMPLE, REQUEST, Prediction(KEY, text="B"), [old]))]
    assert "option B and nothing else" in told.sentence
    assert tuple(told.span) == (0, 1)


def test_a_score_that_no_reader_of_options_made_has_no_words():
    exact = Score(KEY, "exact_match", 1.0, "blue", "normalised", None, {})
    assert explain_score(Shown(SAMPLE, REQUEST, Prediction(KEY, text="blue"), [exact])) == Explained()
    assert explain_score(Shown(SAMPLE, REQUEST, Prediction(KEY, text="blue"), [])) == Explained()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((-3.0, -1.0, -7.5), "-1.0000 against -3.0000 of the next (by sum)"),
        ((-1.0, -1.0, -7.5), "2 options are equally likely"),
        ((-1e30, -1e30, -1e30), "No option has a likelihood above zero"),
    ],
)
def test_likelihoods_are_told_by_their_values(values, words):
    request = Request(KEY, (), choices=OPTIONS, shown=OPTIONS, likelihood=Likelihood())
    prediction = Prediction(KEY, loglikelihoods=values)
    scores = list(option_likelihood.score(SAMPLE, request, prediction, {}))
    assert words in explain_score(Shown(SAMPLE, request, prediction, scores)).sentence


@pytest.mark.parametrize(
    ("scorer", "reply", "answers", "words", "part"),
    [
        ("exact", "Answer: a red bus", ("a red bus",), "is one of the expected answers", "a red bus"),
        ("exact", "a blue bus", ("a red bus",), "is none of the expected answers", None),
        ("contains", "I see a red bus there.", ("red bus",), "stands in the reply as whole words", "red bus"),
        ("contains", "nothing", ("red bus",), "None of the expected answers stands", None),
        ("word_error", "the cat sat", ("the dog sat",), "1 words must be put in, taken out or changed", None),
        ("word_error", "the dog sat", ("the dog sat",), "Not one word differs", None),
    ],
)
def test_scores_of_texts_are_explained_in_words(
    scorer: str, reply: str, answers: tuple[str, ...], words: str, part: str | None
) -> None:
    key = TrialKey("t", "s")
    sample, request = Sample("s", "t", Form.OPEN, "?", answers=answers), Request(key, (Turn("user", "?"),))
    prediction = Prediction(key, text=reply, finish="stop")
    scores = list(getattr(text_match, scorer)(sample, request, prediction, {}))
    found = explain_score(Shown(sample, request, prediction, scores))
    assert words in found.sentence
    assert (reply[slice(*found.span)] if found.span else None) == part
