"""A stored exam in the viewer: the curve of each test as its page draws it, its stimuli, and each trial on its curve."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from asgi import call
from exam_observer import Observer, sit
from snellen.report.pages.exam_page import curve
from snellen.report.stored_results import stored_exam

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.run_library import RunLibrary

TESTS = ("acuity", "quarter-turns", "count")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exams")
    sit(folder / "run", Observer(), mode="quick", tests=TESTS)
    return folder


def read(folder: Path, path: str) -> str:
    from snellen.api.view import make_viewer

    answer = call(make_viewer([folder], "key"), path, headers={"cookie": f"{cookie_name('key')}=key"})
    assert answer.status == 200, path
    return str(answer.text)


def page_of(folder: Path, test: str) -> str:
    return read(folder, f"/run/{RunLibrary([folder]).runs()[0].key}?task=exam-{test}")


def result(folder: Path, test: str) -> Any:
    exam = stored_exam(folder / "run")
    assert exam
    return exam["tests"][test]


def test_a_test_opens_with_the_curve_of_its_prescription(folder: Path) -> None:
    for test in ("acuity", "count"):
        drawn = str(curve(test, result(folder, test)))
        assert drawn in page_of(folder, test)
        assert drawn in (folder / "run/prescription.html").read_text("utf-8"), "the same drawing, not a second one"
    turns = page_of(folder, "quarter-turns")
    assert "Share of letters read at every quarter turn" in turns and "share right by level" not in turns
    assert "Prescription" in turns and "All thresholds with their intervals" in turns


def test_its_stimuli_stand_from_the_easiest_to_the_hardest_and_lead_to_their_trials(folder: Path) -> None:
    page = page_of(folder, "acuity")
    shown = page.partition("<h2>Stimuli</h2>")[2].partition("</ul>")[0]
    ways = [html.unescape(one) for one in re.findall(r'<a href="(/run/[^"]*/trial\?[^"]*)"', shown)]
    assert len(ways) == shown.count("<img") == 12
    levels = [float(re.findall(r"this trial: ([\d.]+)", read(folder, one))[0]) for one in ways]
    assert levels == sorted(levels, reverse=True) and 39.0 <= levels[0] < 53.0


def test_an_exam_that_is_not_over_or_broken_says_so_and_still_shows_its_stimuli(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "run", tmp_path / "run")
    (tmp_path / "run/exam.json").unlink()
    assert "This exam is not over" in page_of(tmp_path, "acuity") and "<h2>Stimuli</h2>" in page_of(tmp_path, "acuity")
    for broken in ("{", "[]", json.dumps({"tests": 3})):
        (tmp_path / "run/exam.json").write_text(broken, "utf-8")
        page = page_of(tmp_path, "acuity")
        assert "is not an exam" in page and "<h2>Stimuli</h2>" in page
