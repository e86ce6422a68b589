"""Observers that see as the plain one does and speak otherwise: the exam prints the same figures, or why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exam_observer import USUAL, Observer, sit
from snellen.core.types import Sample

TESTS = ("acuity", "orientation", "count")
FIGURES = ("verdict", "value", "ci95", "x95_upper90", "trials", "right", "wrong", "no_answer", "failed")
Says = Callable[[str, str], str]
OTHERS = {"acuity": "C D or O", "orientation": "top, left or right", "count": "2, 3 or 4"}
WAYS: dict[str, Says] = {
    "a sentence": lambda test, said: f"I think that it is {said}.",
    "twice": lambda test, said: f"{said} {said}",
    "markdown": lambda test, said: f"**Answer:** `{said}`",
    "JSON": lambda test, said: f'{{"answer": "{said}"}}',
    "reasons first": lambda test, said: f"Hard to tell: {OTHERS[test]}?\n\n{said}",
    "Chinese": lambda test, said: f"图中是{said}个" if test == "count" else f"图中是 {said}",
}


class Speaker(Observer):
    """Sees as the plain observer does."""

    def __init__(self, says: Says, **traits: Any) -> None:
        super().__init__(USUAL, **traits)
        self.says = says

    def answer(self, sample: Sample) -> str:
        return self.says(str(sample.meta["test"]), super().answer(sample))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    result = sit(tmp_path_factory.mktemp("plain") / "run", Observer(), mode="quick", tests=TESTS)
    return {name: [result.exam["tests"][name][figure] for figure in FIGURES] for name in TESTS}


@pytest.mark.parametrize("way", list(WAYS))
def test_the_same_eyes_get_the_same_figures_however_they_speak(way: str, plain: dict[str, Any], tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Speaker(WAYS[way]), mode="quick", tests=TESTS)
    for name in TESTS:
        assert [result.exam["tests"][name][figure] for figure in FIGURES] == plain[name], name
    assert plain["acuity"][0] == "measured"


GERMAN = {"top": "oben", "bottom": "unten", "left": "links", "right": "rechts"}


def in_german(test: str, said: str) -> str:
    return " ".join(GERMAN.get(word, word) for word in said.split())


@pytest.mark.parametrize("says", [in_german, lambda test, said: "?"], ids=["German", "question marks"])
def test_what_cannot_be_read_is_no_answer_and_never_wrong(says: Says, tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Speaker(says), mode="quick", tests=("orientation",))
    found = result.exam["tests"]["orientation"]
    assert found["verdict"] == "not measurable" and found["wrong"] == 0 and found["no_answer"] == found["trials"]
    assert found["reason"].startswith("none of") and not result.exam["prescription"]


class FromZero(Observer):
    """Reads everything, and counts lines and pictures from 0."""

    def answer(self, sample: Sample) -> str:
        detail = sample.meta["detail"]
        if sample.meta["test"] == "images":
            codes: list[str] = detail["codes"]
            return codes[detail["picture"] % len(codes)]
        return str(detail["beside"][-1]) if sample.meta["test"] == "page" else super().answer(sample)


def test_who_counts_from_0_is_not_measured_and_told_why(tmp_path: Path) -> None:
    found = sit(tmp_path / "run", FromZero(), mode="quick", tests=("images", "page")).exam["tests"]
    for name in ("images", "page"):
        assert found[name]["verdict"] == "not measurable" and found[name]["value"] is None
        assert "right when it is easy" in found[name]["reason"] and "does it count from 0?" in found[name]["reason"]


def test_who_guesses_is_not_told_to_count_otherwise(tmp_path: Path) -> None:
    found = sit(tmp_path / "run", Observer(dict(USUAL, images=0.5)), mode="quick", tests=("images",)).exam["tests"]
    assert found["images"]["verdict"] == "not measurable" and "count from 0" not in found["images"]["reason"]
