"""Caption metrics: worked examples, edges, and the Java programs where they are installed."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.builtins import default_registry
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.scoring.aggregates import caption_scores as caption_module
from snellen.scoring.aggregates import caption_scores as meteor_module
from snellen.scoring.aggregates.caption_scores import (
    Caption,
    bleu,
    bleu_counts,
    caption,
    cider,
    corpus_estimates,
    rouge_l,
    tokenise,
)

needs_java = pytest.mark.skipif(meteor_module.missing_reason() is not None, reason="needs the extra `caption` and Java")
KEY = TrialKey("t", "s")
DOGS = Caption("two dogs play with a ball", ("two dogs are playing with a ball", "dogs play ball"))


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave METEOR out."""
    monkeypatch.setattr(caption_module, "missing_reason", lambda: "needs Java")


def test_bleu_by_hand() -> None:
    counts = bleu_counts(DOGS)
    assert counts.matched == (6, 4, 1, 0)
    assert counts.guessed == (6, 5, 4, 3)
    assert (counts.length, counts.reference_length) == (6, 7)
    penalty = math.exp(1 - 7 / 6)
    assert bleu(counts)[:2] == pytest.approx((penalty, penalty * math.sqrt(4 / 5)), rel=1e-6)


def test_counts_are_clipped_by_the_best_reference() -> None:
    assert bleu_counts(Caption("the the the", ("the cat", "the the"))).matched[0] == 2


def test_corpus_bleu_is_of_summed_counts_not_the_mean() -> None:
    captions = [Caption("a b c d", ("a b c d",)), Caption("x", ("y z",))]
    total = bleu_counts(captions[0]) + bleu_counts(captions[1])
    assert bleu(total)[0] != pytest.approx(np.mean([bleu(bleu_counts(item))[0] for item in captions]))


def test_rouge_by_hand() -> None:
    precision, recall, beta = 2 / 3, 2 / 4, 1.2**2
    expected = (1 + beta) * precision * recall / (recall + beta * precision)
    assert rouge_l(Caption("a b c", ("a x b y",))) == pytest.approx(expected)
    assert rouge_l(Caption("", ("a",))) == 0.0


def test_cider_by_hand_and_alone() -> None:
    captions = [Caption("red car", ("red car",)), Caption("blue sky", ("blue sky",))]
    assert cider(captions) == pytest.approx([5.0, 5.0]), "two of four orders agree fully"
    assert cider(captions[:1]) == [0.0], "one document: every word is in all of them"
    assert cider([]) == []


def test_cider_clips_and_penalises_length_and_the_plain_form_does_not() -> None:
    captions = [Caption("red red red red car", ("red car",)), Caption("sky", ("sky",))]
    assert cider(captions)[0] < cider(captions, plain=True)[0]


texts = st.lists(st.sampled_from(["a", "b", "c", "d", "\n", ""]), max_size=8).map(" ".join)


@settings(max_examples=60)
@given(st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=5))
def test_any_text_gives_finite_values_in_range(records: list[tuple[str, list[str]]]) -> None:
    captions = [caption(*record) for record in records]
    for item, value in zip(captions, cider(captions), strict=True):
        assert 0 <= value <= 10 + 1e-9
        assert 0 <= rouge_l(item) <= 1 + 1e-9
        assert all(0 <= order <= 1 + 1e-6 for order in bleu(bleu_counts(item)))


def test_line_breaks_become_one_space_and_other_white_space_stays() -> None:
    assert caption("a \r\n b\n", ["x  y\t"]) == Caption("a b", ("x  y\t",))


@pytest.mark.usefixtures("without_java")
def test_without_java_meteor_has_no_value_and_says_why() -> None:
    metrics, reasons = corpus_estimates([DOGS, DOGS])
    assert metrics["meteor"].value is None
    assert metrics["meteor"].unscored == 2
    assert reasons == {"meteor": "needs Java"}
    assert metrics["bleu_1"].value is not None


@pytest.mark.usefixtures("without_java")
def test_intervals_hold_the_value_and_are_the_same_every_time() -> None:
    captions = [
        Caption(" ".join("abcdefgh"[i % 5 : i % 5 + 4]), (" ".join("abcdefgh"[: 4 + i % 3]),)) for i in range(40)
    ]
    first, second = corpus_estimates(captions)[0], corpus_estimates(captions)[0]
    assert first == second
    for name in ("bleu_1", "bleu_4", "rouge_l", "cider"):
        low, high = first[name].ci95
        assert low <= first[name].value <= high
        assert low < high


def test_an_unknown_tokeniser_is_named() -> None:
    with pytest.raises(UsageError, match="'moses'"):
        tokenise([DOGS], "moses")


@needs_java
@pytest.mark.nightly  # its program takes eight seconds to start; the recorded figures start it in `make test`
def test_meteor_survives_any_text() -> None:
    odd = [
        DOGS,
        Caption("", ("a b",)),
        Caption("a|||b\nc", ("x ||| y", "\r")),
        Caption("日本 ☕", ("日本 ☕",)),
        Caption("\ud800", ("a",)),
    ]
    corpus, single = meteor_module.meteor(odd)
    assert len(single) == len(odd)
    assert single[0] > 0.3 and single[3] > 0.9 and single[1] == 0.0
    assert 0 < corpus < 1
    assert meteor_module.meteor([]) == (0.0, [])


@needs_java
@pytest.mark.usefixtures("without_java")
def test_ptb_tokens_and_names() -> None:
    captions = [Caption("Two dogs, playing!", ("two dogs playing",)), Caption("", ("a\nb \u2028 c",))]
    assert tokenise(captions, "ptb")[0] == Caption("two dogs playing", ("two dogs playing",))
    metrics, _ = corpus_estimates(captions, tokeniser="ptb")
    assert set(metrics) >= {"bleu_1_ptb", "meteor_ptb", "rouge_l_ptb", "cider_ptb"}
    assert "bleu_1" not in metrics


@needs_java
def test_a_dead_program_is_an_error_not_a_hang(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(meteor_module, "_jar", lambda relative: tmp_path_factory.mktemp("j") / "none.jar")
    with pytest.raises(EnvironmentProblem, match="METEOR ended"):
        meteor_module.meteor([DOGS])
    with pytest.raises(EnvironmentProblem, match="PTB tokeniser"):
        meteor_module.tokenise_ptb(["a", "b"])


def test_the_scorer_gives_single_values_under_their_own_names() -> None:
    score = default_registry().get("scorer", "caption")
    sample = Sample(id="s", dataset="d", form=Form.CAPTION, question="?", answers=("a red car",))
    values = {
        item.metric: item.value for item in score(sample, Request(KEY, ()), Prediction(key=KEY, text="a red\ncar"), {})
    }
    assert values["rouge_l"] == pytest.approx(1.0)
    assert values["bleu_3_sentence"] == pytest.approx(1.0)
    assert "bleu_3" not in values, "the corpus value is another thing"
    bare = Sample(id="s", dataset="d", form=Form.CAPTION, question="?")
    assert {item.value for item in score(bare, Request(KEY, ()), Prediction(key=KEY, text="x"), {})} == {None}


@pytest.mark.usefixtures("without_java")
def test_the_aggregate_gives_corpus_metrics_of_scored_trials() -> None:
    score = default_registry().get("scorer", "caption")
    pairs = []
    for number, text in enumerate(["two dogs play", "a red car", "a cat"]):
        sample = Sample(
            id=f"s{number}", dataset="d", form=Form.CAPTION, question="?", answers=("two dogs play", "a red car")
        )
        key = TrialKey("t", sample.id)
        pairs += [(sample, item) for item in score(sample, Request(key, ()), Prediction(key=key, text=text), {})]
    aggregate = default_registry().get("aggregate", "caption")
    found = aggregate(SimpleNamespace(scores=lambda: iter(pairs)), {})
    expected, _ = corpus_estimates(
        [caption(text, ["two dogs play", "a red car"]) for text in ("two dogs play", "a red car", "a cat")]
    )
    assert found == {name: value for name, value in expected.items() if name != "rouge_l"}
    assert aggregate(SimpleNamespace(scores=lambda: iter(())), {}) == {}
