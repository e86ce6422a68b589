"""Servers that do not take every picture: what they refuse is named with what helps in an exam, the rest is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import run_command
from exam_observer import USUAL, Observer, sit
from exam_server import Ledger, serving
from snellen.cli import exam as command
from snellen.core.errors import FailureKind, ModelError
from snellen.core.types import Prediction, Sample
from snellen.report.pages.exam_terminal import summary_lines

REFUSALS = {
    "a proxy": "<html><head><title>413 Request Entity Too Large</title></head></html>",
    "a context": '{"error": {"message": "prompt is too long: 9000 tokens", "code": "context_length_exceeded"}}',
}


@pytest.mark.parametrize("who", list(REFUSALS))
def test_a_request_that_is_too_large_is_answered_with_what_an_exam_can_do(who: str, tmp_path: Path) -> None:
    import snellen

    ledger = Ledger()
    with serving(Observer(), ledger, most_bytes=100_000, refusal=REFUSALS[who]) as url:
        settings = {"base_url": url, "output_dir": tmp_path / "run", "told": ledger.tell, "cache": False}
        result = snellen.exam("openai/known", mode="quick", tests=("orientation", "resolution-1792"), **settings)
    found = result.exam["tests"]
    assert found["orientation"]["verdict"] == "measured"
    refused = found["resolution-1792"]
    assert refused["verdict"] == "not settled" and refused["failed"] == refused["trials"] == 4
    said = [*summary_lines(result.exam, result.state, 1.0), (result.folder / "prescription.html").read_text("utf-8")]
    said.append(json.dumps(result.exam))
    assert not any("--image-max-side" in one or "fewer pages" in one for one in said)
    assert all(any("--tests" in part for part in one.splitlines()) for one in said[-2:])
    assert any("resolution-1792" in line and "HTTP 413" in line and "--tests" in line for line in said[:-2])
    assert "--image-max-side" not in {option for param in command.exam.params for option in param.opts}


class Slow(Observer):
    """Never answers in time where a side is longer than so many px."""

    async def predict(self, request: Any, images: Any) -> Prediction:
        sample = self.told[request.key.task, request.key.sample]
        if str(sample.meta["test"]) in ("resolution-1792", "resolution-3584"):
            self.asked += 1
            raise ModelError(FailureKind.TIMEOUT, "no reply within 600 s", retryable=True)
        return await super().predict(request, images)


def test_a_server_that_is_too_slow_for_large_pictures_leaves_the_rest_measured(tmp_path: Path) -> None:
    tests = ("acuity", "resolution")
    result = sit(tmp_path / "run", Slow(), mode="quick", tests=tests, max_retries=0)
    found = result.exam["tests"]
    for name in ("resolution-1792", "resolution-3584"):
        assert found[name]["verdict"] == "not settled" and found[name]["value"] is None
        assert "no reply within 600 s" in found[name]["reason"] and found[name]["failed"] == 4
    low, high = found["acuity"]["ci95"]
    assert low <= USUAL["acuity"] <= high
    assert result.exam["resolution"] is None, "two canvases tell no rule"


def test_a_server_that_shrinks_and_refuses_many_pictures(tmp_path: Path) -> None:
    """Truth: 768 px by the long side, and 14 of 64 pictures held, of which the server takes 8 at most."""
    observer = Observer(most_pictures=8, shrink=("long side", 768.0))
    result = sit(tmp_path / "run", observer, mode="quick", tests=("resolution", "images"), max_retries=0)
    found, images = result.exam, result.exam["tests"]["images"]
    assert (
        found["resolution"]["rule"] != "none"
        and found["resolution"]["ci95"][0] <= 768 <= found["resolution"]["ci95"][1]
    )
    assert images["refused"]["from"] > 8 and images["failed"] == images["refused"]["trials"]
    assert images["value"] is None or images["value"] <= 8, "nothing was answered beyond eight pictures"
    assert images["bound"] is None or images["bound"] <= 8
    assert images["x95_upper90"] is None or images["x95_upper90"] <= 8


class Perfect(Observer):
    """Reads and tells everything, however hard."""

    def seen(self, test: str, sample: Sample) -> float:
        return 1.0


@pytest.mark.parametrize("most", [3, 8, 20, pytest.param(50, marks=pytest.mark.nightly)])
def test_who_holds_all_pictures_apart_is_told_how_many_the_server_takes(most: int, tmp_path: Path) -> None:
    observer = Perfect(most_pictures=most, lapse=0.0)
    result = sit(tmp_path / "run", observer, mode="quick", tests=("images",), max_retries=0)
    images = result.exam["tests"]["images"]
    assert images["verdict"] == "at ceiling" and images["bound"] == most
    assert f"better than {most} pictures; what was harder failed: payload" in images["reason"]
    assert images["failed"] <= 16 and images["right"] == images["trials"] - images["failed"]


def test_a_server_that_dies_in_the_middle_ends_the_test(tmp_path: Path) -> None:
    class Dying(Perfect):
        def refuses(self, sample: Sample) -> bool:
            return self.asked > 28

    result = sit(tmp_path / "run", Dying(lapse=0.0), mode="quick", tests=("images",), max_retries=0)
    images = result.exam["tests"]["images"]
    assert images["failed"] <= 24 and "all 8 trials of a round failed" in images["reason"]


class BlindTo(Observer):
    """Sees everything to the end of every axis, and one test not at all."""

    def __init__(self, test: str) -> None:
        super().__init__(lapse=0.0)
        self.blind_to = test

    def seen(self, test: str, sample: Sample) -> float:
        return 0.0 if test == self.blind_to else 1.0


@pytest.mark.parametrize("blind", ["size", "orientation"])
def test_right_in_all_but_one(blind: str, tmp_path: Path) -> None:
    names = ("size", "orientation", "vernier")
    result = sit(tmp_path / "run", BlindTo(blind), mode="quick", tests=names)
    verdicts = {name: result.exam["tests"][name]["verdict"] for name in names}
    assert verdicts == {name: "not measurable" if name == blind else "at ceiling" for name in names}


def test_one_test_alone_of_the_command_line_is_that_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    flags = ["--quick", "--no-cache", "--quiet", "-o", folder]
    assert run_command(["exam", "--model", "blind/first", "--tests", "size", *flags]) == 0
    assert list(json.loads((folder / "exam.json").read_text("utf-8"))["tests"]) == ["size"]
    for others in (
        ["--tests", "orientation"],
        ["--tests", "size", "--seed", "1"],
        ["--tests", "size", "--until", "0.2"],
    ):
        before = (folder / "exam.json").read_bytes()
        assert run_command(["exam", "--model", "blind/first", *others, *flags]) == 2
        told = capsys.readouterr().err
        assert str(folder) in told and told.count("\n") == 1, told
        assert (folder / "exam.json").read_bytes() == before


TALK = "Hmm, I would rather talk about the weather."


def test_a_model_that_answers_nothing_is_quoted_and_not_asked_for_more(tmp_path: Path) -> None:
    observer = Observer(always=TALK)
    result = sit(tmp_path / "run", observer, mode="quick")
    assert 32 <= observer.asked <= 4 * len(result.exam["tests"]) < 100
    assert not result.exam["complete"] and TALK in result.exam["ended"]
    assert any(TALK in line for line in summary_lines(result.exam, result.state, 1.0))
    assert TALK in (result.folder / "prescription.html").read_text("utf-8")
    assert result.exam["tests"]["acuity"]["verdict"] == "not settled"


def test_one_answer_among_the_first_replies_lets_the_exam_go_on(tmp_path: Path) -> None:
    class OnlyColours(Observer):
        def answer(self, sample: Sample) -> str:
            return super().answer(sample) if sample.meta["test"] == "colour" else TALK

    tests = ("acuity", "contrast", "colour", "vernier", "orientation", "junction", "size")
    result = sit(tmp_path / "run", OnlyColours(), mode="quick", tests=tests)
    found = result.exam["tests"]
    assert result.exam["complete"] and found["colour"]["verdict"] == "measured"
    assert found["size"]["reason"].endswith(f"one reply is “{TALK}”")


def test_a_few_tests_are_asked_as_ever_and_quote_a_reply(tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Observer(always=TALK), mode="quick", tests=("acuity",))
    found = result.exam["tests"]["acuity"]
    assert result.exam["complete"] and found["no_answer"] == found["trials"] == 8
    assert TALK in found["reason"]
