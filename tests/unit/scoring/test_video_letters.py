"""Readers of video benchmarks and of the harnesses that run them: what each makes of a reply, misreadings included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.kits.bridges.protocol_scorer import CHOICE_READERS, score
from snellen.kits.bridges.video_rules import (
    FITTING,
    fits_text,
    mmmu_after_answer,
    mra_of_first_number,
    mra_of_first_word,
    mra_of_last_number,
)
from snellen.scoring.protocols.peer_scores import TOOL_COUNTS
from snellen.scoring.scorers.video_scores import read_span_lmms

OPTIONS = dict(zip("ABCDE", ["a cat", "a dog", "a cow", "a hen", "a pig"], strict=True))
VIDEO_READERS = (
    *("video-mme", "vlmevalkit-video-mme", "longvideobench", "vlmevalkit-longvideobench", "lvbench", "mlvu"),
    *("lmms-mvbench", "lmms-egoschema", "tempcompass", "lmms-motionbench", "video-mmmu", "vlmevalkit-video-mmmu"),
    *("vsi-bench", "vlmevalkit-vsi", "lmms-alone"),
)


def made_sample(answer: str, form: Form = Form.OPEN) -> Sample:
    options = tuple(OPTIONS.values()) if form is Form.CHOICE else ()
    return Sample("1", "d", form, "which?", options=options, answers=(answer,))


@pytest.mark.parametrize(
    ("reader", "reply", "read"),
    [
        ("video-mme", "Best option: C", "B"),
        ("video-mme", "The best answer is C", "C"),
        ("video-mme", "The best option is D", "D"),
        ("video-mme", "Cannot tell", "C"),
        ("video-mme", "it is e", None),
        ("vlmevalkit-video-mme", "Best option: C", "B"),
        ("vlmevalkit-video-mme", "Answer: C", "C"),
        ("video-mme", "Answer: C", "A"),
        ("longvideobench", "Best option: C", "C"),
        ("longvideobench", "Best answer: E", "E"),
        ("longvideobench", "no idea", None),
        ("vlmevalkit-longvideobench", "Best option: C", "B"),
        ("lvbench", "(C) a cow", "C"),
        ("lvbench", "C) a cow", "C"),
        ("lvbench", "The answer is B", "T"),
        ("lvbench", "", None),
        ("mlvu", "(C) a cow", "C"),
        ("mlvu", "C", "C"),
        ("mlvu", "It is C", None),
        ("mlvu", ")", None),
        ("lmms-mvbench", "C. a cow", "C"),
        ("lmms-mvbench", "a cow", "A"),
        ("lmms-mvbench", "(C) cow", "C"),
        ("lmms-mvbench", "cow", None),
        ("lmms-egoschema", "I rule out A. The answer is (B)", "A"),
        ("lmms-egoschema", "(C) or D.", "C"),
        ("lmms-egoschema", "C", "C"),
        ("lmms-egoschema", "a cow", None),
        ("lmms-alone", "So (B), not C", "B"),
        ("tempcompass", "C) a cow", "C"),
        ("tempcompass", "It is C", None),
        ("lmms-motionbench", "It is a dog", "A"),
        ("lmms-motionbench", "The answer is D.", "D"),
        ("lmms-motionbench", "no", None),
        ("video-mmmu", "I rule out A. The answer is (B)", "A"),
        ("video-mmmu", "A: first, B: then", "B"),
        ("video-mmmu", "(A) or (C)", "C"),
        ("video-mmmu", "it must have been a cow there", "C"),
        ("vlmevalkit-video-mmmu", "A. is wrong. Answer: B", "B"),
        ("vsi-bench", "b. table", "B"),
        ("vsi-bench", "(B)", None),
        ("vlmevalkit-vsi", "b. table", "B"),
        ("vlmevalkit-vsi", "B table", "B"),
        ("vlmevalkit-vsi", "<answer> (no) </answer>", None),
        ("vlmevalkit-vsi", "<answer>c. chair</answer>", "C"),
        ("vlmevalkit-vsi", "A or B\n**D**", "D"),
        ("vlmevalkit-vsi", "<think>A</think>", "A"),
        ("vlmevalkit-vsi", "Option A: no\nOption B: no", None),
        ("vlmevalkit-vsi", "我选c", "C"),
    ],
)
def test_a_reader_reads_what_its_tool_reads(reader: str, reply: str, read: str | None) -> None:
    assert CHOICE_READERS[reader](reply, OPTIONS) == read


@given(st.text(max_size=80), st.sampled_from(VIDEO_READERS))
def test_no_reply_breaks_a_reader(reply: str, reader: str) -> None:
    read = CHOICE_READERS[reader](reply, OPTIONS)
    assert read is None or len(read) == 1


@given(st.text(max_size=80), st.sampled_from(sorted(FITTING)))
def test_what_fits_are_options_each_once(reply: str, rule: str) -> None:
    fits = FITTING[rule](reply, OPTIONS)
    assert set(fits) <= set(OPTIONS)
    assert len(set(fits)) == len(fits)


@pytest.mark.parametrize(
    ("rule", "reply", "fits"),
    [
        ("vlmevalkit-mvbench", "", "ABCDE"),
        ("vlmevalkit-mvbench", "(", "ABCDE"),
        ("vlmevalkit-mvbench", "(C) a cow", "C"),
        ("vlmevalkit-mvbench", "The answer is C", "C"),
        ("vlmevalkit-mvbench", "no idea", ""),
        ("vlmevalkit-mlvu", "not (A), the answer is B", "AB"),
        ("vlmevalkit-mlvu", "", ""),
        ("lmms-mmvu", "A, B, C, D or E", "ABCDE"),
        ("lmms-mmvu", "the cow", "C"),
    ],
)
def test_a_rule_lets_pass_what_its_tool_does(rule: str, reply: str, fits: str) -> None:
    assert "".join(FITTING[rule](reply, OPTIONS)) == fits


@pytest.mark.parametrize(("reply", "value", "counted"), [("", None, 1.0), ("(", None, 1.0), ("?!", None, 0.0)])
def test_a_reply_that_fits_several_options_is_unscored_and_what_the_tool_counts_is_told(
    reply: str, value: float | None, counted: float
) -> None:
    key = TrialKey("t", "1")
    request = Request(key, (), marks=tuple(OPTIONS), shown=tuple(OPTIONS.values()))
    options = {"reader": "vlmevalkit-mvbench"}
    (found,) = score(made_sample("a cow", Form.CHOICE), request, Prediction(key, text=reply), options)
    assert found.value is value
    assert found.detail[TOOL_COUNTS] == counted


@pytest.mark.parametrize(
    ("reply", "word", "first", "last"),
    [
        ("7", 0.8, 0.8, 0.8),
        ("7 metres", 0.8, 0.8, 0.8),
        ("about 7", None, 0.8, 0.8),
        ("seven", None, 0.8, 0.8),
        ("7 or 8", 0.8, 0.8, 1.0),
        ("<answer>7 m</answer> of 8", None, 0.8, 0.8),
        ("[7, 8]", None, 0.8, 0.8),
        ("nan", None, None, None),
    ],
)
def test_numbers_are_read_as_three_tools_do(
    reply: str, word: float | None, first: float | None, last: float | None
) -> None:
    gold = made_sample("8")
    assert (mra_of_first_word(reply, gold), mra_of_first_number(reply, gold), mra_of_last_number(reply, gold)) == (
        word, first, last,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "answer", "value"),
    [
        ("It is Depth-First Search.", "depth-first search", 1.0),
        ("depth", "depth-first search", 1.0),  # a part of the answer is enough
        ("O(n²)", "O(n^2)", 1.0),
        ("about 3.001 m", "3 metres", 1.0),
        ("the sort is a merge", "merge sort", 1.0),
        ("overall it takes O(n) time", "complexity: O(n)", 1.0),
        ("bubble", "merge sort", None),
    ],
)
def test_open_answers_of_mmvu_fit_as_they_do_in_its_tool(reply: str, answer: str, value: float | None) -> None:
    assert fits_text(reply, made_sample(answer)) == value


def test_an_empty_open_reply_is_right_in_that_tool_and_unscored_here() -> None:
    key = TrialKey("t", "1")
    (found,) = score(made_sample("merge sort"), Request(key, ()), Prediction(key, text=""), {"open": "lmms-mmvu"})
    assert (found.value, found.reason, found.detail[TOOL_COUNTS]) == (None, "empty", 1.0)


def test_an_open_answer_is_read_after_the_last_announcement() -> None:
    assert mmmu_after_answer("Answer: 3, no. Answer: 4", made_sample("4")) == 1.0
    assert mmmu_after_answer("Answer: 4, no. Answer: 3", made_sample("4")) == 0.0


@pytest.mark.parametrize(
    ("reply", "span"),
    [
        ("The event happens in the 2.5 - 7 seconds", (2.5, 7.0)),
        ("from 7 to 2.5", (2.5, 7.0)),
        ("0 - 5, or 7 - 9", (0.0, 5.0)),
        ("It starts at 3 s\nIt ends at 9.5 s", (3.0, 9.5)),
        ("0:03 – 1:10", (3.0, 70.0)),
        ("at 00:00:05, until 00:01:00", (5.0, 60.0)),
        ("A specific example is : 20.8 - 30.0 seconds", None),
        ("somewhere", None),
    ],
)
def test_times_are_read_as_the_tool_reads_them(reply: str, span: tuple[float, float] | None) -> None:
    assert read_span_lmms(reply) == span
