"""Exams that end early or get nothing: budgets are kept, verdicts keep their reasons, what was measured stays measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from command_line import run_command
from exam_observer import Observer, sit
from snellen.api.exams import compare_exams
from snellen.core import builtins
from snellen.core.errors import EnvironmentProblem, FailureKind, ModelError
from snellen.core.types import Prediction

PAIR = ("orientation", "size")


def written(folder: Path) -> Any:
    return json.loads((folder / "exam.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("budget", "price", "each"),
    [({"requests": 21}, None, 1.0), ({"tokens": 2000}, None, 110.0), ({"max_cost": 2.0}, "1000,1000", 0.11)],
)
def test_a_budget_is_not_passed_by_rounds_that_leave_together(
    tmp_path: Path, budget: dict[str, float], price: str | None, each: float
) -> None:
    observer = Observer(delay_s=0.01)
    result = sit(tmp_path / "run", observer, mode="quick", tests=(*PAIR, "vernier"), price=price, **budget)
    (most,) = budget.values()
    assert 0 < observer.asked * each <= most
    assert result.interrupted and "budget" in result.exam["ended"] and str(observer.asked) in result.exam["ended"]


@pytest.mark.parametrize(("budget", "price"), [({"tokens": 1}, None), ({"max_cost": 0.1}, "1000,1000")])
def test_a_budget_that_the_first_round_passes_says_so(
    tmp_path: Path, budget: dict[str, float], price: str | None
) -> None:
    result = sit(tmp_path / "run", Observer(), mode="quick", tests=("orientation",), price=price, **budget)
    assert "was passed" in result.exam["ended"] and "for 8 requests" in result.exam["ended"]


class Uncounted(Observer):
    """Its server tells no tokens."""

    async def predict(self, request: Any, images: Any) -> Prediction:
        return msgspec.structs.replace(await super().predict(request, images), usage=None)


def test_a_budget_in_tokens_ends_where_nobody_counts_them(tmp_path: Path) -> None:
    observer = Uncounted()
    with pytest.raises(EnvironmentProblem, match="counts no tokens"):
        sit(tmp_path / "run", observer, mode="quick", tests=PAIR, tokens=10**9)
    assert observer.asked == 8 and "counts no tokens" in written(tmp_path / "run")["ended"]


def test_a_verdict_that_needs_no_further_round_is_not_hidden_by_the_budget(tmp_path: Path) -> None:
    whole = sit(tmp_path / "whole", Observer(random=True), mode="quick", tests=("orientation",))
    exact = sit(
        tmp_path / "exact", Observer(random=True), mode="quick", tests=("orientation",), requests=whole.state.done
    )
    assert exact.exam == whole.exam and not exact.interrupted


def test_a_second_command_with_a_small_budget_keeps_all_that_was_measured(tmp_path: Path) -> None:
    first = sit(tmp_path / "run", Observer(), mode="quick", tests=PAIR, requests=48)
    again = Observer()
    second = sit(tmp_path / "run", again, mode="quick", tests=PAIR, requests=8)
    assert again.asked <= 8
    for name in PAIR:
        assert second.exam["tests"][name]["trials"] >= first.exam["tests"][name]["trials"] > 0


def test_silence_is_not_counted_as_right_and_gives_no_advice(tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Observer(always="I cannot see any image."), mode="quick", tests=PAIR)
    for name in PAIR:
        assert (
            "none of" in result.exam["tests"][name]["reason"]
            and "got an answer" in result.exam["tests"][name]["reason"]
        )
    assert not result.exam["prescription"]
    assert "does the server hand pictures to this model?" in (result.folder / "prescription.html").read_text("utf-8")


HELD = 30


class Revoked(Observer):
    """Its key holds for so many requests, then for none."""

    async def predict(self, request: Any, images: Any) -> Prediction:
        if self.asked >= HELD:
            raise EnvironmentProblem("HTTP 401: the key is not valid")
        return await super().predict(request, images)


def test_what_stops_an_exam_leaves_a_page_and_the_next_command_goes_on_to_the_same_end(tmp_path: Path) -> None:
    whole = sit(tmp_path / "whole", Observer(), mode="quick", tests=PAIR)
    with pytest.raises(EnvironmentProblem, match="HTTP 401"):
        sit(tmp_path / "run", Revoked(), mode="quick", tests=PAIR, max_retries=0)
    left = written(tmp_path / "run")
    assert not left["complete"] and "HTTP 401" in left["ended"]
    assert sum(found["trials"] - found["failed"] for found in left["tests"].values()) >= 16
    assert "HTTP 401" in (tmp_path / "run/prescription.html").read_text("utf-8")
    sit(tmp_path / "run", Observer(), mode="quick", tests=PAIR)
    assert written(tmp_path / "run") == written(whole.folder)


class Refusing(Observer):
    """Takes no picture at all."""

    async def predict(self, request: Any, images: Any) -> Prediction:
        raise ModelError(FailureKind.PAYLOAD, "this model does not support image input", status=400)


def test_an_exam_whose_every_trial_failed_says_so_and_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(builtins.MODELS, "observer", lambda name, options: Refusing())
    folder = tmp_path / "run"
    flags = ["--quick", "--tests", "orientation,size", "-o", folder, "--no-cache", "--max-retries", "0", "--plain"]
    assert run_command(["exam", "--model", "observer/known", *flags]) == 1
    assert "nothing was measured: every trial failed" in capsys.readouterr().out
    assert "Nothing was measured: every trial failed" in (folder / "prescription.html").read_text("utf-8")


def test_a_comparison_says_what_it_leaves_out(tmp_path: Path) -> None:
    sit(tmp_path / "a", Observer(), mode="quick", tests=PAIR, requests=40)
    sit(tmp_path / "b", Observer(), mode="quick", tests=("orientation",))
    notes = compare_exams(tmp_path / "a", tmp_path / "b")["notes"]
    assert any(note.startswith("A is not finished: the budget of 40 requests") for note in notes)
    assert "only in A, not compared: size" in notes


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--budget", "inf"], "--budget 'inf' is not a number"),
        (["--budget", "nan tokens"], "--budget 'nan tokens' is not"),
        (["--budget", "0.5"], "--budget '0.5' is not"),
        (["--tests", ","], "names no test"),
        (["--tests", ""], "names no test"),
        (["--price", "cheap"], "is not IN,OUT"),
        (["--budget", "2 euro"], "no price is known"),
    ],
)
def test_flags_that_mean_nothing_are_refused_in_one_line(
    flags: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["exam", "--model", "blind/first", "-o", tmp_path / "run", *flags]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1
    assert not (tmp_path / "run").exists()
