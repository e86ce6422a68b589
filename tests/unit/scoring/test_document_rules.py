"""Typed answers about documents as the benchmark's script and lmms-eval compare them, cases worked out by hand."""

from __future__ import annotations

import pytest

from snellen.core.types import Form, Sample
from snellen.kits.bridges.open_rules import lmms_document, official_document


def made(answer: str, kind: str) -> Sample:
    return Sample("1", "d", Form.OPEN, "?", answers=(answer,), tags={"answer_format": kind})


@pytest.mark.parametrize(
    ("answer", "kind", "reply", "official", "lmms"),
    [
        ("1200", "Int", "1,200", 0.0, 1.0),
        ("12", "Int", "12.7", 1.0, 1.0),
        ("12", "Int", "12 pages", 0.0, 1.0),
        ("45.5", "Float", "45.6", 1.0, 1.0),  # within a hundredth
        ("0.45", "Float", "45%", 1.0, 1.0),
        ("45.5", "Float", "about 45.5", 0.0, 1.0),
        ("Paris", "Str", "'PARIS'", 1.0, 1.0),
        ("Paris", "Str", "Rome", 0.0, 0.0),
        ("Paris", "Str", "Paris.", 5 / 6, 5 / 6),
        ("page 3", "Str", "page 4", 0.0, 0.0),
        ("2021-03", "Str", "2021-04", 0.0, 0.0),
        ("5 million", "Str", "5", 0.0, 1.0),
        ("['a', 'b']", "List", "['B', 'a']", 1.0, 1.0),
        ("['a', 'b']", "List", "a", 0.0, 0.0),
        ("['1', '2']", "List", "[2, 1]", 1.0, 1.0),
        ("Not answerable", "None", "Not answerable", 1.0, 1.0),
        ("Not answerable", "None", "Not answer", 10 / 14, 0.0),
    ],
)
def test_a_typed_answer(answer: str, kind: str, reply: str, official: float, lmms: float) -> None:
    assert official_document(reply, made(answer, kind)) == pytest.approx(official)
    assert lmms_document(reply, made(answer, kind)) == pytest.approx(lmms)


def test_our_reader_stands_for_the_extractor_only_in_a_sentence() -> None:
    assert official_document("The answer is Paris", made("Paris", "Str")) == 1.0
