"""Pages of a run with tools: what was looked at, call → crop → reply, arms side by side, and filters by class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asgi import call
from look_agents import ask
from look_runs import HEIGHT, WIDTH, make_look_run, make_questions

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.core.looks import Look
from snellen.core.types import Form, Image, Prediction, Request, Sample, TrialKey
from snellen.kits.looks.trial_page import numbered, regions_of, source_size
from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.run_library import RunLibrary
from snellen.store.turns import StoredTurn

COOKIE = {"cookie": f"{cookie_name('key')}=key"}
COUNT = 16


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str, Path]:
    """Return the viewer over two runs with tools, the address of one, and their folder."""
    pytest.importorskip("latex2mathml", reason="the extra `view` is not whole")
    from snellen.api.view import make_viewer

    folder = tmp_path_factory.mktemp("looks")
    make_look_run(folder / "run", count=COUNT)
    make_look_run(folder / "other", count=COUNT, use=0.0, seed=3, arms=("base", "grey"))
    keys = {run.folder.name: run.key for run in RunLibrary([folder]).runs()}
    return make_viewer([folder], "key"), f"/run/{keys['run']}", folder


def page(app: Any, address: str) -> str:
    answer = call(app, address, headers=COOKIE)
    assert answer.status == 200, answer.text[:500]
    return str(answer.text)


def called() -> list[int]:
    return np.flatnonzero(ask(np.random.default_rng(1), 1.0, COUNT).called).tolist()


def test_the_region_is_drawn_on_the_original_with_its_number(viewer: tuple[Any, str, Path], tmp_path: Path) -> None:
    app, run, _ = viewer
    place = called()[0]
    text = page(app, f"{run}/trial?task=squares&sample=square-{place:04d}&variant=base&repeat=0")
    found = np.random.default_rng(2).random(COUNT) < 0.8
    left, top, right, bottom = make_questions(tmp_path, COUNT, found.tolist())[place].region
    (rect,) = re.findall(r'<rect ([^>]*class="looked")', text)
    drawn = {name: float(value) for name, value in re.findall(r'(x|y|width|height)="([\d.]+)"', rect)}
    expected = {
        "x": left / WIDTH,
        "y": top / HEIGHT,
        "width": (right - left) / WIDTH,
        "height": (bottom - top) / HEIGHT,
    }
    assert drawn == pytest.approx(expected)
    assert re.search(r'<text [^>]*class="looked"[^>]*>1', text)


def test_the_strip_has_the_call_the_crop_and_the_reply_and_every_arm_a_card(viewer: tuple[Any, str, Path]) -> None:
    app, run, _ = viewer
    place = called()[0]
    text = page(app, f"{run}/trial?task=squares&sample=square-{place:04d}&variant=base&repeat=0")
    strip, arms = re.findall(r'<div class="columns look-cards".*?</div>', text, re.DOTALL)[:2]
    assert len(re.findall("<article", strip)) == 2 and "zoom" in strip and "I look closer" in strip and "n=1" in strip
    assert re.findall(r">(base|plain|none|grey|elsewhere|whole|gold)</a>", arms) == [
        *("base", "plain", "none", "grey", "elsewhere", "whole", "gold")
    ]


def test_a_refused_call_says_its_class(viewer: tuple[Any, str, Path]) -> None:
    app, run, _ = viewer
    place = next(number for number in called() if number % 5 == 0)
    text = page(app, f"{run}/trial?task=squares&sample=square-{place:04d}&variant=base&repeat=0")
    assert "<b>frame</b>" in text and "Not done: 1 frame" in text


def test_trials_are_filtered_by_class_and_kind(viewer: tuple[Any, str, Path]) -> None:
    app, run, _ = viewer
    bad = [number for number in called() if number % 5 == 0]
    text = page(app, f"{run}/trials?task=squares&group=looks%3Dframe&group=variant%3Dbase")
    assert set(re.findall(r"square-(\d{4})", text)) == {f"{number:04d}" for number in bad}
    assert "looks" in page(app, f"{run}/trials?task=squares")


def test_the_page_of_a_run_and_a_comparison_say_what_it_was_worth(viewer: tuple[Any, str, Path]) -> None:
    app, run, folder = viewer
    text = page(app, run)
    assert "What looking again was worth" in text and "picture effect" in text and "looks%3D" in text
    keys = "&".join(f"run={one.key}" for one in RunLibrary([folder]).runs())
    assert "what looking again was worth" in page(app, f"/compare?{keys}")
    assert "What looking again was worth" in (folder / "run" / "report.html").read_text(encoding="utf-8")


def turn(*looks: Look) -> StoredTurn:
    key = TrialKey("t", "1")
    return StoredTurn(1, "", Request(key, ()), Prediction(key, text=""), looks)


def test_several_looks_of_one_turn_have_letters_and_refused_ones_no_region() -> None:
    sample = Sample("1", "t", Form.OPEN, "What?", (Image("/a.png", width=100, height=50),))
    looks = (
        Look(0, "zoom", "a", 1, region=(0, 0, 50, 50), shown=2),
        Look(0, "zoom", "b", 1, problem="empty"),
        Look(1, "zoom", "c", 2, region=(10, 10, 20, 20), shown=3),
    )
    assert [name for name, _ in numbered([turn(*looks)])] == ["1a", "1b", "2"]
    found = regions_of(sample, [turn(*looks)])
    assert [(one.name, one.picture, one.box) for one in found] == [
        ("1a", 0, (0, 0, 0.5, 1)),
        ("2", 0, (0.1, 0.2, 0.2, 0.4)),
    ]


def test_a_picture_that_shows_a_part_of_its_file_is_not_drawn_on() -> None:
    assert source_size(Image("/a.png", width=9, height=9, edits=("crop:0,0,1,1",))) is None
    assert source_size(Image("/a.png", width=9, height=8, edits=("fit:4",))) == (9, 8)
    assert source_size(Image("/nowhere.png")) is None
