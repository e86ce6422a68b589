"""What an exam says of its own making: method, command, wordings with intervals, halves of the field."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snellen
from exam_observer import Observer, sit
from snellen.cli.exam import exam as exam_command_line
from snellen.sight.advice import exam_command
from snellen.sight.fits import field_groups, fit_field


class Worded(Observer):
    """Sees as usual, but in one wording only letters that are so much larger."""

    def seen(self, test: str, sample: Any) -> float:
        usual = self.truth[test]
        self.truth[test] = usual * (self.traits["worse"] if sample.tags["wording"] == 0 else 1.0)
        share = super().seen(test, sample)
        self.truth[test] = usual
        return share


@pytest.fixture(scope="module")
def sat(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return sit(tmp_path_factory.mktemp("exam") / "run", Observer(), mode="quick", tests=("orientation",), seed=4)


def test_the_page_and_the_file_say_how_they_were_made(sat: Any) -> None:
    method, page = sat.exam["method"], (sat.folder / "prescription.html").read_text("utf-8")
    assert method["version"] == snellen.__version__ and method["settings"]["seed"] == 4
    assert method["settings"]["temperature"] == 0.0 and "{" not in method["text"]
    assert "0.25 ln units" in method["text"] and method["bibtex"].startswith("@software{snellen,")
    assert method["bibtex"].count("{") == method["bibtex"].count("}")
    for part in ("Method", "psi-marginal", "@software", f"Snellen {snellen.__version__}"):
        assert part in page
    assert ">slope<" in page and ">lapse<" in page


def test_the_command_of_the_page_is_one_that_can_be_typed(sat: Any) -> None:
    words = shlex.split(sat.exam["method"]["command"])
    assert words[:2] == ["snellen", "exam"] and "--quick" in words and "4" in words
    words = shlex.split(exam_command("a/b c", "fine", 1, ("acuity",), {"temperature": 0.5, "until": None}))
    assert words[-2:] == ["--temperature", "0.5"] and "a/b c" in words
    assert all(word in known_flags() for word in words if word.startswith("--"))


def test_every_setting_that_changes_replies_is_told(tmp_path: Path) -> None:
    asked = {"reasoning": "high", "top_p": 0.5, "extra_body": {"presence_penalty": 0.2, "thinking": {"budget": 9}}}
    method = sit(tmp_path / "run", Observer(random=True), mode="quick", tests=("size",), **asked).exam["method"]
    told = {name.replace("-", "_"): value for name, value in method["settings"].items()}
    assert {name: told[name] for name in asked} == asked
    words = shlex.split(method["command"])
    for flag, value in (("--reasoning", "high"), ("--top-p", "0.5"), ("--presence-penalty", "0.2")):
        assert words[words.index(flag) + 1] == value
    assert all(word in known_flags() for word in words if word.startswith("--"))


def known_flags() -> set[str]:
    return {spelling for option in exam_command_line.params for spelling in option.opts}


def test_wordings_come_with_intervals_and_are_told_where_they_differ(sat: Any, tmp_path: Path) -> None:
    same = sat.exam["tests"]["orientation"]["wordings"]
    assert same is None or (not same["differ"] and all(len(one["ci95"]) == 2 for one in same["each"]))
    odd = sit(tmp_path / "run", Worded(worse=2.5), tests=("acuity",)).exam["tests"]["acuity"]["wordings"]
    assert odd["differ"] and odd["each"][0]["ci95"][0] > odd["each"][1]["ci95"][1]


@pytest.mark.parametrize(
    ("name", "worse"),
    [
        ("left half", np.arange(25) % 5 < 2),
        ("left half", np.arange(25) % 5 < 3),
        ("bottom half", np.arange(25) // 5 > 2),
        ("top right quarter", field_groups()["top right quarter"]),
    ],
)
def test_a_worse_half_or_quarter_is_named(name: str, worse: Any) -> None:
    draw, named = np.random.default_rng(5), 0
    for _ in range(4):
        cell = np.tile(np.arange(25), 6)
        x = np.log(8) + draw.choice((0.07, 0.29), 150)
        share = 0.1 + 0.88 / (1 + np.exp(-6 * (x - np.log(8) - np.where(worse[cell], np.log(1.6), 0.0))))
        found = fit_field(x, cell.astype(float), draw.binomial(4, share).astype(float), 4, (np.log(8), 6.0, 0.02))
        named += found.evenness.line == name and found.evenness.line_probability > 0.8
        assert found.evenness.line != name or found.evenness.line_factor > 1.2
    assert named >= 3
