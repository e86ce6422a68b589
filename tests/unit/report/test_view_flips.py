"""Flips of a comparison: question, picture and every reply side by side, of the same prompt, none left out."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from asgi import call
from made_runs import make_run, make_task

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.report.pages.comparison import flips
from snellen.report.viewer.compare_page import flip_mark, pick_trial
from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.run_library import RunLibrary
from snellen.scoring.compare.run_pairs import compare_runs

COOKIE = {"cookie": f"{cookie_name('key')}=key"}


def compared(folder: Path) -> tuple[Any, str]:
    from snellen.api.view import make_viewer

    keys = [run.key for run in RunLibrary([folder]).runs()]
    return make_viewer([folder], "key"), "/compare?" + "&".join(f"run={key}" for key in keys)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flips")
    for name, skill in (("one", 0.3), ("two", 0.9)):
        make_run(folder / name, model="openai/mock", skill=skill, count=60)
    # Replies are drawn by the name of the model: the second run is that of another under the same name.
    make_run(folder / "three", model="openai/other", skill=0.6, count=60)
    return folder


def pages(app: Any, address: str) -> list[str]:
    found: list[str] = []
    while address:
        answer = call(app, address, headers=COOKIE)
        assert answer.status == 200
        found.append(str(answer.text))
        after = re.search(r'<a href="([^"]*)" rel="next"', found[-1])
        address = html.unescape(after[1]) if after else ""
    return found


def test_every_flip_is_shown_once_with_question_picture_and_replies(folder: Path) -> None:
    app, address = compared(folder)
    expected = flips(compare_runs([run.folder for run in RunLibrary([folder]).runs()])["shapes"])
    every = pages(app, address)
    cards = [card for page in every for card in re.findall(r"<article.*?</article>", page, re.DOTALL)]
    assert len(every) > 1, "the flips take more than a page"
    assert len(cards) == len(expected)
    names = [re.findall(r">(shape-\d+)<", card)[0] for card in cards]
    assert sorted(names) == sorted(expected)
    for name, card in zip(names, cards, strict=True):
        assert f"Which colour has shape number {int(name[6:])}?" in card
        assert card.count("<img") == 1
        assert card.count("<section>") == 3
        assert card.count('class="reply"') == 3
        assert card.count("/trial?") == 3


def test_furthest_apart_stand_first(folder: Path) -> None:
    app, address = compared(folder)
    first = re.findall(r"<article.*?</article>", pages(app, address)[0], re.DOTALL)[0]
    assert "✓ right" in first
    assert "✗ wrong" in first


def test_models_of_one_name_are_told_apart_by_their_runs(folder: Path) -> None:
    app, address = compared(folder)
    title = re.search(r"<h1>(.*?)</h1>", pages(app, address)[0])
    assert title
    assert title[1] == "openai/mock (one) against openai/other (three) against openai/mock (two)"


def test_share_of_many_trials_is_not_taken_for_the_reply_shown(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path / name, model=f"openai/{name}", skill=0.6, count=12, task=make_task(repeats=4))
    app, address = compared(tmp_path)
    card = re.findall(r"<article.*?</article>", pages(app, address)[0], re.DOTALL)[0]
    assert "the share is of all 4 trials" in card
    assert card.count("this trial") == 2


def test_a_page_or_task_that_is_not_there_shows_what_is(folder: Path) -> None:
    app, address = compared(folder)
    for more in ("&page=99999999999", "&page=-1", "&task=none&page=2", "&task=shapes&page=999"):
        answer = call(app, address + more, headers=COOKIE)
        assert answer.status == 200
        assert "<article" in answer.text


def test_the_trial_shown_is_one_that_all_have_and_that_differs() -> None:
    base, other, third = ("base", 0), ("base", 1), ("blur", 0)
    assert pick_trial([{base: 1.0, other: 1.0}, {base: 1.0, other: 0.0}]) == other
    assert pick_trial([{base: 1.0, third: 0.0}, {third: 0.0}]) == third
    assert pick_trial([{base: 1.0}, {other: 0.0}]) is None
    assert pick_trial([{base: None}, {base: 0.0}]) == base


def test_marks_are_signs_and_words() -> None:
    told = [re.sub("<.*?>", "", flip_mark(value, "accuracy")) for value in (1.0, 0.0, 0.25, None)]
    assert told == ["✓ right", "✗ wrong", "25%", "no value"]


def test_the_lowest_error_is_right_and_not_wrong() -> None:
    told = [re.sub("<.*?>", "", flip_mark(value, "wer")) for value in (0.0, 1.0, 1.7, 0.25)]
    assert told == ["✓ right", "✗ wrong", "✗ wrong", "25%"]


def test_a_failed_trial_is_called_failed_and_not_wrong(folder: Path) -> None:
    app, address = compared(folder)
    sections = [part for page in pages(app, address) for part in re.findall(r"<section>.*?</section>", page, re.DOTALL)]
    failed = [part for part in sections if "! failed" in part]
    assert failed
    assert not any("✗ wrong" in part for part in failed)
