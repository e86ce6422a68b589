"""OCR and KIE: our own definitions in every script, ReForm-Eval's with its quirks, and field F1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.builtins import default_registry
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.scoring.scorers import key_values as kie
from snellen.scoring.scorers import word_accuracy as ocr
from snellen.scoring.scorers.vqa import relaxed_accuracy
from snellen.scoring.scorers.word_accuracy import contains_words

KEY = TrialKey("t", "s")


@pytest.mark.parametrize(
    ("prediction", "answer", "ours", "reform"),
    [
        ("The sign says EXIT.", "exit", 1, 1),
        ("open\nnow", "open now", 1, 0),
        ("café", "cafe", 0, 0),
        ("CAFÉ au lait", "café", 1, 1),
        ("中文字", "中文", 1, 0),
        ("日本", "中文", 0, 0),
        ("ｅｘｉｔ", "exit", 1, 0),
        ("helloworld", "hello", 0, 0),
        ("12-34", "1234", 0, 1),
        ("12.5", "5", 0, 0),
        ("नमस्ते दुनिया", "दुनिया", 1, 0),
    ],
)
def test_ocr_containment(prediction: str, answer: str, ours: int, reform: int) -> None:
    assert ocr.contains_words(prediction, [answer]) == ours
    assert ocr.contains_reform(prediction, answer) == bool(reform)


def test_ocr_lists_mean_any_of_here_and_joined_there() -> None:
    assert ocr.contains_words("stop", ["go", "stop"]) == 1.0
    assert not ocr.contains_reform("stop", ["go", "stop"])
    assert ocr.contains_reform(["go", "stop"], "go stop")


def test_word_accuracy_is_the_share_read() -> None:
    assert ocr.word_accuracy("one two two", ["one two three four"]) == 0.5
    assert ocr.word_accuracy("two", ["two two"]) == 0.5
    assert ocr.word_accuracy("x", ["", "x y"]) == 0.5
    assert ocr.word_accuracy("x", []) == 0.0


@given(st.text(max_size=40), st.lists(st.text(max_size=12), max_size=3))
def test_containment_implies_all_words_read(prediction: str, answers: list[str]) -> None:
    if ocr.contains_words(prediction, answers):
        assert ocr.word_accuracy(prediction, answers) == 1.0


@pytest.mark.parametrize(
    ("prediction", "answer", "ours", "reform"),
    [
        ("The total is $5.", "$5", 1, 0),
        ("100%", "100%", 1, 0),
        ("1,000 EUR", "1000", 1, 1),
        ("two apples", "2", 0, 1),
        ("Acme Corp.", "acme corp", 1, 1),
        ("a@b.com", "a@b.com", 1, 1),
        ("15", "5", 0, 0),
        ("***", "***", 1, 0),
    ],
)
def test_kie_containment(prediction: str, answer: str, ours: int, reform: int) -> None:
    assert kie.contains_field(prediction, [answer]) == ours
    assert kie.contains_reform(prediction, answer) == bool(reform)


def test_field_f1() -> None:
    wanted = {"Company": "ACME Corp.", "total": "12.50", "lines": ["a", "b"]}
    assert kie.field_f1(wanted, wanted) == 1.0
    assert kie.field_f1({"company": "acme corp"}, wanted) == pytest.approx(2 / 5)
    assert kie.field_f1({"company": "other", "total": 12.50, "x": None}, wanted) == 0.0
    assert kie.field_f1({}, {}) == 1.0
    assert kie.field_f1({}, wanted) == 0.0
    assert kie.field_f1({"lines": ["a", "a"]}, {"lines": ["a"]}) == pytest.approx(2 / 3)


def test_fields_are_read_from_a_reply() -> None:
    assert kie.parse_fields('Here:\n```json\n{"total": 5}\n```') == {"total": 5}
    assert kie.parse_fields("none") is None
    assert kie.parse_fields("{broken") is None
    assert kie.parse_fields('{"a":' * 100_000) is None


def test_scorers_by_name() -> None:
    sample = Sample(
        id="s", dataset="d", form=Form.KIE, question="?", answers=("5.00",), meta={"fields": {"total": "5.00"}}
    )
    reply = Prediction(key=KEY, text='{"total": "5.00"}')
    values = {
        item.metric: item.value
        for name in ("ocr", "ocr_reform", "kie", "kie_reform", "kie_f1")
        for item in default_registry().get("scorer", name)(sample, Request(KEY, ()), reply, {})
    }
    assert values == {
        "ocr_accuracy": 1.0,
        "ocr_word_accuracy": 1.0,
        "ocr_accuracy_reform": 1.0,
        "kie_accuracy": 1.0,
        "kie_accuracy_reform": 1.0,
        "kie_f1": 1.0,
    }


def test_f1_without_fields_or_json_is_unscored() -> None:
    score = default_registry().get("scorer", "kie_f1")
    bare = Sample(id="s", dataset="d", form=Form.KIE, question="?")
    (no_fields,) = score(bare, Request(KEY, ()), Prediction(key=KEY, text="{}"), {})
    with_fields = Sample(id="s", dataset="d", form=Form.KIE, question="?", meta={"fields": {"a": "b"}})
    (no_json,) = score(with_fields, Request(KEY, ()), Prediction(key=KEY, text="five"), {})
    assert (no_fields.value, no_json.value) == (None, None)
    assert "JSON" in no_json.reason


@pytest.mark.parametrize(
    ("answer", "reply", "found"),
    [
        ("5", "The value is -5", 0.0),
        ("-5", "The value is -5", 1.0),
        ("-5", "The value is 5", 0.0),
        ("50", "Total 12,50", 0.0),
        ("12.50", "Total 12,50", 1.0),
        ("2", "1,2,3", 1.0),
        ("19", "COVID-19", 1.0),
        ("5", "pages 3-5", 1.0),
    ],
)
def test_signs_and_decimals_belong_to_their_number(answer: str, reply: str, found: float) -> None:
    assert contains_words(reply, [answer]) == found


def test_a_space_before_the_percent_sign_changes_nothing() -> None:
    assert relaxed_accuracy("50 %", ["50%"]) == 1.0 == relaxed_accuracy("0.51", ["50 %"])
