"""Whole exams of observers whose thresholds are known: what is found, what is refused, and what is stored."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

import snellen
from exam_observer import USUAL, Observer, sit
from snellen.api.exams import compare_exams
from snellen.api.load import load_run
from snellen.core.errors import UsageError
from snellen.core.frames import read_frame
from snellen.core.types import Prediction

SMALL = ("acuity", "orientation", "contrast", "count")


def found_in(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = result.exam["tests"]
    return found


@pytest.fixture(scope="module")
def sat(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return sit(tmp_path_factory.mktemp("exam") / "run", Observer(), mode="quick", tests=SMALL)


def test_known_thresholds_lie_in_their_intervals(sat: Any) -> None:
    for name in SMALL:
        result = found_in(sat)[name]
        assert result["verdict"] == "measured", name
        low, high = result["ci95"]
        assert low * 0.9 <= USUAL[name] <= high * 1.1, (name, result["ci95"])
        for own in (result | {"asked": result["trials"]}, *([result["glyphs"]] if "glyphs" in result else [])):
            parts = [own[part] for part in ("right", "wrong", "no_answer", "failed")]
            assert sum(parts) == own["asked"] and all(isinstance(part, int) for part in parts), name


def test_the_prescription_names_its_evidence(sat: Any) -> None:
    lines = {line["id"]: line for line in sat.exam["prescription"]}
    assert "capitals at least" in lines["text-height"]["sentence"]
    assert "half at" in lines["text-height"]["evidence"] and "trials" in lines["text-height"]["evidence"]
    page = (sat.folder / "prescription.html").read_text("utf-8")
    assert "<script" not in page and "Prescription" in page and "capitals at least" in page
    assert page.count("<svg") >= len(SMALL)


def test_every_trial_is_an_ordinary_trial(sat: Any) -> None:
    with load_run(sat.folder) as run:
        names = [task.name for task in run.header().tasks]
        trials = [trial for name in names for trial in run.trials(name)]
    assert names == [f"exam-{name}" for name in ("acuity", "orientation", "contrast", "count")]
    assert len(trials) == sat.state.done
    assert all(Path(image.ref).is_file() for trial in trials for image in trial.sample.images)
    results = json.loads((sat.folder / "results.json").read_text("utf-8"))
    for name in ("acuity", "orientation", "contrast", "count"):
        stored, found = results["tasks"][f"exam-{name}"]["metrics"]["threshold"], found_in(sat)[name]
        near = 1e-4 if name in ("acuity", "contrast") else 0.005  # single trials learn lapses from other tests, too
        assert stored["value"] == pytest.approx(found["value"], rel=near)
        assert stored["ci95"] == pytest.approx(found["ci95"], rel=near)
    assert results["status"]["complete"]
    assert len(snellen.frame(sat.folder)) == len(trials)


def test_random_replies_never_get_a_threshold(tmp_path: Path) -> None:
    names = ("acuity", "orientation", "colour", "size", "count", "locate", "words")
    for seed in range(3):
        result = sit(tmp_path / str(seed), Observer(random=True, seed=seed), mode="quick", tests=names, seed=seed)
        for name in names:
            found = found_in(result)[name]
            assert found["value"] is None and found["verdict"] == "not measurable", (name, found["verdict"])
            assert found["reason"]


def test_one_answer_to_everything_is_named_as_a_habit(tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Observer(always="left"), tests=("orientation", "vernier"))
    for name in ("orientation", "vernier"):
        found = found_in(result)[name]
        assert found["verdict"] == "not measurable" and "right when it is easy" in found["reason"]
        assert found["habit"] == {"answer": "left", "share": 1.0}
    assert "answers “left”" in (result.folder / "prescription.html").read_text("utf-8")


def test_silence_is_not_an_error_and_does_not_move_the_threshold(tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Observer(refuse=1.0, silent=1.0), tests=("orientation", "acuity"))
    for name in ("orientation", "acuity"):
        found = found_in(result)[name]
        assert found["ci95"][0] * 0.93 <= USUAL[name] <= found["ci95"][1] * 1.07, (name, found["ci95"])
    assert found_in(result)["orientation"]["no_answer"] > 5


class Whole(Observer):
    """Reads a row whole or nothing of it."""

    def look(self, test: str, sample: Any, draw: random.Random) -> str:
        seen = draw.random() < self.seen(test, sample)
        return str(sample.answers[0]) if seen else self.guess(test, sample, draw)


def test_rows_that_are_read_whole_or_not_at_all_are_named_as_such(sat: Any, tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Whole(), tests=("acuity",))
    assert found_in(result)["acuity"]["whole_rows"] and not found_in(sat)["acuity"]["whole_rows"]
    assert "whole or not at all" in (result.folder / "prescription.html").read_text("utf-8")


class Fickle(Observer):
    """Reads well, but nothing of the confirming trials of its first sitting (or of all of them)."""

    def seen(self, test: str, sample: Any) -> float:
        planned = sample.meta["planned"]
        if planned["stage"] != "confirm":
            return super().seen(test, sample)
        self.traits.setdefault("failing", planned["round"])
        fails = self.traits["every"] or planned["round"] == self.traits["failing"]
        return 0.0 if fails else super().seen(test, sample)


@pytest.mark.parametrize("every", [False, True])
def test_a_test_whose_retest_disagrees_is_sat_once_more_and_both_are_shown(tmp_path: Path, every: bool) -> None:
    result = sit(tmp_path / "run", Fickle(every=every), tests=("orientation",))
    found = found_in(result)["orientation"]
    before, after = found["sittings"]
    assert not before["retest"]["consistent"] and after["retest"]["consistent"] != every
    assert found["trials"] == before["trials"] + after["trials"]
    assert found["right"] + found["wrong"] + found["no_answer"] + found["failed"] == found["trials"]
    assert found["value"] == after["value"]
    results = json.loads((result.folder / "results.json").read_text("utf-8"))
    stored = results["tasks"]["exam-orientation"]["metrics"]["threshold"]["value"]
    assert (found["value"] is None) if every else stored == pytest.approx(found["value"], rel=0.02)
    assert not (every and any("px" in line["sentence"] for line in result.exam["prescription"]))
    assert "sat twice" in (result.folder / "prescription.html").read_text("utf-8")


def test_a_server_that_refuses_many_pictures_is_named_and_the_rest_is_measured(tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Observer(most_pictures=20), mode="quick", tests=("images",), max_retries=0)
    refused = found_in(result)["images"]["refused"]
    assert refused["trials"] > 0 and refused["from"] > 19 and "too many pictures" in refused["why"]
    assert found_in(result)["images"]["failed"] == refused["trials"]
    assert found_in(result)["acuity"]["verdict"] == "measured"
    assert "too many pictures" in (result.folder / "prescription.html").read_text("utf-8")


def test_a_budget_that_ends_keeps_what_was_measured_and_the_next_call_goes_on(tmp_path: Path) -> None:
    whole = sit(tmp_path / "whole", Observer(), mode="quick", tests=SMALL)
    short = sit(tmp_path / "short", Observer(), mode="quick", tests=SMALL, requests=60)
    assert short.interrupted and "budget of 60 requests" in short.exam["ended"]
    assert any(found["trials"] for found in found_in(short).values())
    second = Observer()
    again = sit(tmp_path / "short", second, mode="quick", tests=SMALL)
    assert not again.interrupted
    assert second.asked < whole.state.done
    assert (tmp_path / "short/exam.json").read_bytes() == (tmp_path / "whole/exam.json").read_bytes()


class Stopped(Observer):
    """Somebody presses Ctrl-C while it is asked."""

    async def predict(self, request: Any, images: Any) -> Prediction:
        if self.asked == 30:
            os.kill(os.getpid(), signal.SIGINT)
        return await super().predict(request, images)


def test_an_exam_that_is_stopped_says_so_and_goes_on(tmp_path: Path, sat: Any) -> None:
    stopped = sit(tmp_path / "run", Stopped(), mode="quick", tests=SMALL)
    assert stopped.interrupted and "interrupted" in stopped.exam["ended"]
    assert "Not finished" in (stopped.folder / "prescription.html").read_text("utf-8")
    again = sit(tmp_path / "run", Observer(), mode="quick", tests=SMALL)
    assert (again.folder / "exam.json").read_bytes() == (sat.folder / "exam.json").read_bytes()


class Unpunctual(Observer):
    """Answers in any order."""

    async def predict(self, request: Any, images: Any) -> Prediction:
        await asyncio.sleep(random.Random(f"late {request.key.sample}").random() / 50)
        return await super().predict(request, images)


def test_the_order_of_arrival_changes_nothing(tmp_path: Path, sat: Any) -> None:
    late = sit(tmp_path / "late", Unpunctual(), mode="quick", tests=SMALL)
    assert (late.folder / "exam.json").read_bytes() == (sat.folder / "exam.json").read_bytes()


def test_another_seed_draws_other_stimuli(tmp_path: Path, sat: Any) -> None:
    other = sit(tmp_path / "other", Observer(), mode="quick", tests=("acuity",), seed=9)
    pictures = {path.name for path in (other.folder / "stimuli").iterdir()}
    assert not pictures & {path.name for path in (sat.folder / "stimuli").iterdir()}


def test_two_exams_are_compared_by_their_posteriors(tmp_path: Path, sat: Any) -> None:
    other = sit(tmp_path / "other", Observer({**USUAL, "acuity": 15.0}), mode="quick", tests=SMALL, seed=3)
    compared = compare_exams(other.folder, sat.folder)
    assert compared["tests"]["acuity"]["differs"] and compared["tests"]["acuity"]["ratio"] == pytest.approx(
        1.9, rel=0.3
    )
    assert not compared["tests"]["count"]["differs"] and not compared["tests"]["contrast"]["differs"]
    assert "B is better in acuity" in compared["summary"]
    with pytest.raises(UsageError, match="holds no exam"):
        compare_exams(tmp_path, sat.folder)


@pytest.mark.parametrize(
    "frame", ["0-1000", "0-1", "sent-pixels", "sent-pixels area=1150000", "0-1000 y-first", "0-1000 padded-middle"]
)
def test_the_frame_of_coordinates_is_found(tmp_path: Path, frame: str) -> None:
    result = sit(tmp_path / "exam", Observer(frame=frame, locate_px=4.0), tests=("coordinates",))
    found = found_in(result)["coordinates"]
    assert found["verdict"] == "measured" and found["frame_probability"] > 0.8
    told = read_frame(found["card"])
    size = (1600, 900)  # no canvas of the exam: the frame must hold there too
    assert told.place(read_frame(frame).write((0.8, 0.3), size), size) == pytest.approx([0.8, 0.3], abs=0.006)
    assert 3 < found["value"] < 9 and found["least_target_px"] == math.ceil(2 * found["q95_px"])
    assert found["parts"]["speaks_of"] == "the whole picture"
    assert any("by itself it answers in" in line["sentence"] for line in result.exam["prescription"])


def test_an_answerer_that_speaks_of_the_part_is_found_out(tmp_path: Path) -> None:
    result = sit(tmp_path / "exam", Observer(speaks_of="part", locate_px=4.0), tests=("coordinates",))
    assert found_in(result)["coordinates"]["parts"]["speaks_of"] == "the part"


def test_who_takes_another_frame_than_was_asked_is_said(tmp_path: Path) -> None:
    found = found_in(sit(tmp_path / "exam", Observer(frame="sent-pixels", locate_px=4.0), tests=("locate",)))["locate"]
    assert found["card"] == "sent-pixels" and found["value"] < 9 < 100 < found["as_asked_px"]


def test_a_weak_axis_of_colour_is_found(tmp_path: Path) -> None:
    found = found_in(sit(tmp_path / "run", Observer(weak_hue=90), tests=("colour",)))["colour"]
    assert found["ellipse"]["axis"] == "yellow–blue" and found["ellipse"]["ratio_low"] > 1.2
    assert found["verdict"] == "measured"


def test_a_bad_part_of_the_field_is_found(tmp_path: Path) -> None:
    found = found_in(sit(tmp_path / "run", Observer(bad_column=4), tests=("field",)))["field"]
    assert found["verdict"] == "uneven"
    assert {column for _, column in found["marked"]} >= {4}
    even = found_in(sit(tmp_path / "even", Observer(), tests=("field",)))["field"]
    assert even["verdict"] == "measured" and len(even["marked"]) <= 2


def test_a_test_that_needs_what_was_not_found_says_so(tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Observer(random=True), mode="quick", tests=("contrast",))
    assert found_in(result)["contrast"]["reason"] == "needs acuity, which is not measurable"


def test_a_model_without_pictures_is_refused(tmp_path: Path) -> None:
    blindfolded = Observer()
    blindfolded.capabilities = frozenset()  # type: ignore[assignment]
    with pytest.raises(UsageError, match="takes no pictures"):
        sit(tmp_path / "run", blindfolded, mode="quick", tests=("acuity",))
    assert not (tmp_path / "run").exists()


def test_wrong_settings_are_refused_by_name(tmp_path: Path) -> None:
    for settings, words in (
        ({"mode": "quik"}, "quick"),
        ({"tests": ("akuity",)}, "acuity"),
        ({"until": 3.0}, "half width"),
        ({"max_cost": 2.0}, "--price"),
    ):
        with pytest.raises(UsageError, match=words):
            sit(tmp_path / "run", Observer(), **settings)


def test_each_quarter_turn_is_judged_by_itself(tmp_path: Path) -> None:
    turned = {"90": 0.05, "180": 0.99, "270": 0.05}
    result = sit(tmp_path / "run", Observer(turned=turned), mode="quick", tests=("quarter-turns",))
    found = found_in(result)["quarter-turns"]
    assert {turn: one["verdict"] for turn, one in found["turns"].items()} == {
        "90": "not read",
        "180": "read",
        "270": "not read",
    }
    assert found["trials"] == 24 and all(one["rows"] == 8 for one in found["turns"].values())
    page = (result.folder / "prescription.html").read_text("utf-8")
    assert "not read at 90° and 270°" in page and "Share of letters read at every quarter turn" in page
