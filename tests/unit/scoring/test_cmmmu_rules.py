"""CMMMU's rules by kind of question: what is meant, and what the benchmark's script makes of it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.types import Form, Sample
from snellen.kits.bridges.open_rules import judge_cmmmu, judge_cmmmu_as_run

OPTIONS = {"option1": "红色", "option2": "蓝色", "option3": "绿色", "option4": "黄色"}


def sample(kind: str, answer: str) -> Sample:
    tags = {"type": kind, **(OPTIONS if kind == "选择" else {})}
    return Sample("1", "cmmmu", Form.OPEN, "问", answers=(answer,), tags=tags)


@pytest.mark.parametrize(
    ("reply", "answer", "meant", "run"),
    [
        ("B", "B", 1.0, 1.0),
        ("答案是(B)，不是(B)而已。(C)", "B", 1.0, 1.0),  # the most frequent
        ("选A和C", "AC", 1.0, 1.0),
        ("选A和C", "A", 0.0, 0.0),
        ("蓝色", "B", 1.0, 1.0),
        ("Answer: B", "B", 1.0, 0.0),  # the A of Answer
        ("The best is D", "D", 1.0, 1.0),
        ("不知道", "B", None, None),
    ],
)
def test_choices(reply: str, answer: str, meant: float | None, run: float | None) -> None:
    assert judge_cmmmu(reply, sample("选择", answer)) == meant
    assert judge_cmmmu_as_run(reply, sample("选择", answer)) == run


@pytest.mark.parametrize(
    ("reply", "answer", "meant", "run"),
    [
        ("对", "对", 1.0, 1.0),
        ("错", "错", 1.0, 1.0),
        ("不对", "错", 1.0, 0.0),  # 对 is found in 不对 first
        ("不正确", "错", 1.0, 0.0),
        ("该说法不准确。", "错", 1.0, 0.0),
        ("没有错误", "对", None, 0.0),  # not wrong: more than words decide
        ("对错难说", "对", None, None),
        ("是否正确不清楚", "对", None, None),
        ("所以判断为正确", "对", 1.0, 1.0),
        ("不知道", "对", None, None),
    ],
)
def test_judgements(reply: str, answer: str, meant: float | None, run: float | None) -> None:
    assert judge_cmmmu(reply, sample("判断", answer)) == meant
    assert judge_cmmmu_as_run(reply, sample("判断", answer)) == run


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("12.5", "12.50", 1.0),
        ("答案是12.5", "12.5", 1.0),
        ("x = 7", "7", 1.0),
        ("等于1,200", "1200", 1.0),
        ("这条河是长江。", "长江", 1.0),
        ("这条河是黄河。", "长江", 0.0),
        ("因为" + "很长" * 20 + "长江", "长江", 0.0),  # much longer than the answer
        ("-3", "3", 0.0),
    ],
)
def test_blanks(reply: str, answer: str, right: float) -> None:
    assert judge_cmmmu(reply, sample("填空", answer)) == right
    assert judge_cmmmu_as_run(reply, sample("填空", answer)) == right


@given(
    st.text("ABCD对错不正确是为答案。\n=.,()1290-+eE，红色 没", max_size=60),
    st.sampled_from(["选择", "判断", "填空"]),
    st.sampled_from(["A", "BD", "对", "错", "12", "长江"]),
)
def test_any_reply_is_right_wrong_or_unread(reply: str, kind: str, answer: str) -> None:
    for judge in (judge_cmmmu, judge_cmmmu_as_run):
        value = judge(reply, sample(kind, answer))
        assert value in ((0.0, 1.0) if kind == "填空" else (0.0, 1.0, None))
        assert judge(reply, sample(kind, answer)) == value


def test_a_very_long_reply_takes_no_longer_than_its_length() -> None:
    started = time.process_time()
    for reply in ("1" * 200_000, "是" * 100_000, "1，" * 100_000, "-" * 200_000):
        judge_cmmmu(reply, sample("填空", "12"))
        judge_cmmmu(reply, sample("判断", "对"))
    assert time.process_time() - started < 10
