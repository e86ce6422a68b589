"""How sure answers are: votes of repeats by hand, what replies state, and replies that see no picture."""

from __future__ import annotations

import pytest

from snellen.core.tasks import Task
from snellen.core.types import Form, Prediction, Request, Sample, Score, TrialKey
from snellen.extract.extraction import REFUSED, UNPARSED, UNSEEN
from snellen.extract.other_kinds import says_unseen, stated_confidence
from snellen.scoring.aggregates.calibration import by_repeats, describe_sureness
from snellen.scoring.ranges import score_trial
from snellen.scoring.tables.table import ScoredTask
from snellen.scoring.tables.table_builder import read_tables
from snellen.store.reader import Trial

SEES_NONE = [
    "I'm sorry, but no image was provided.",
    "I can't see the picture you mention.",
    "It seems the image didn't come through; could you upload it again?",
    "As a text-based AI I cannot view images directly.",
    "The image appears to be completely blank.",
    "我看不到图片，请提供图片。",
    "抱歉，您没有上传图片。",
    "画像が添付されていません。",
    "이미지가 제공되지 않았습니다.",
    "No puedo ver ninguna imagen.",
    "Je ne vois aucune image.",
    "Ich kann das Bild nicht sehen.",
    "Não consigo ver a imagem.",
    "Non riesco a vedere l'immagine.",
    "Я не вижу изображения.",
    "لا أستطيع رؤية الصورة",
    "मुझे कोई तस्वीर दिखाई नहीं दे रही है",
    "Tôi không thể xem hình ảnh.",
    "Herhangi bir resim göremiyorum.",
]
SEES_SOMETHING = [
    "There is no dog in the picture.",
    "It is impossible to tell the colour from this picture.",
    "I cannot determine the age of the person in the image.",
    "The image shows a cat on a sofa.",
    "Das Bild zeigt eine Katze.",
    "图中没有狗。",
    "La imagen muestra un gato.",
    "The chart does not give the value for 2019.",
    "I don't know.",
    "",
]


@pytest.mark.parametrize("reply", SEES_NONE)
def test_a_reply_that_sees_no_picture_is_known_in_its_language(reply: str) -> None:
    assert says_unseen(reply)


@pytest.mark.parametrize("reply", SEES_SOMETHING)
def test_a_reply_that_sees_one_is_not(reply: str) -> None:
    assert not says_unseen(reply)


@pytest.mark.parametrize(
    ("reply", "sure"),
    [
        ("Answer: B. Confidence: 85%", 0.85),
        ("I'm 90% sure it is C", 0.9),
        ("B\nconfidence = 0.7", 0.7),
        ("置信度：80%", 0.8),
        ("Confidence: 8/10", 0.8),
        ("Sicherheit: 75 %", 0.75),
        ("Confidence: 20%. No: confidence: 60%", 0.6),
        ("I am sure it is 3 cats", None),
        ("Confidence: high", None),
        ("Certainty: 120%", None),
        ("85 % of them", None),
    ],
)
def test_what_a_reply_states_is_read(reply: str, sure: float | None) -> None:
    assert stated_confidence(reply) == sure


def scored(text: str, score: Score) -> Score:
    sample = Sample("1", "d", Form.OPEN, "What?", answers=("x",))
    trial = Trial(sample, Request(score.key, ()), Prediction(score.key, text=text), 0)
    (found,) = score_trial(Task("t", {"loader": "table"}), lambda *_: [score], trial, {})
    return found


def test_what_is_said_beside_an_answer_goes_with_its_score() -> None:
    key = TrialKey("t", "1")
    for reason in (REFUSED, UNPARSED):
        assert scored(SEES_NONE[0], Score(key, "accuracy", None, reason=reason)).reason == UNSEEN
    assert scored(SEES_NONE[0], Score(key, "accuracy", None, reason="truncated")).reason == "truncated"
    assert scored("I see no cat", Score(key, "accuracy", None, reason=REFUSED)).reason == REFUSED
    assert scored("x. Confidence: 40%", Score(key, "accuracy", 1.0)).detail == {"stated": 0.4}
    answered = Score(key, "accuracy", 1.0, "x")
    assert scored("x", answered) is answered


def test_repeats_vote_and_their_share_is_the_confidence() -> None:
    votes = {"a": ["cat"] * 4, "b": ["cat", "cat", "dog", "cow"], "c": ["dog", "dog", "dog", None]}
    rows = [
        (f"{name}{copy}", "base", repeat, "accuracy", None if said is None else float(said == "cat"), said, "cue",
         UNPARSED if said is None else None)
        for copy in range(10) for name, answers in votes.items() for repeat, said in enumerate(answers)
    ]  # fmt: skip
    found = by_repeats(read_tables(rows)["accuracy"])
    assert found is not None
    assert found.n == 30
    assert found.confidence == pytest.approx((1 + 0.5 + 0.75) / 3)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.ece.value == pytest.approx((0 + 0.5 + 0.75) / 3)
    assert dict(found.risk)[0.3] == 0.0 and dict(found.risk)[1.0] == pytest.approx(1 / 3)


def test_nothing_is_said_where_nobody_tells_how_sure() -> None:
    rows = [(f"q{n}", "base", 0, "accuracy", 1.0, "cat", "cue", None) for n in range(30)]
    task = Task("t", {"loader": "table"})
    assert describe_sureness(ScoredTask(task, read_tables(rows), lambda: iter(()))) == {}
