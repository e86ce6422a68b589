"""Readings of one run live beside each other: each under its name, none in another's place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import snellen
from command_line import run_command
from cure_fixtures import write_cure
from snellen.api.outputs import compare_runs, leaderboard
from snellen.api.stored_results import results_of
from snellen.core.errors import UsageError
from snellen.scoring.protocols.readings import (
    OWN,
    Reading,
    check_reading,
    kept_reading,
    stored_readings,
)
from snellen.store.reader import RunReader

SAID = ("B", "The answer is (A).", "it is a cat, I would say", "b", "A")


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def make_run(folder: Path, **settings: Any) -> Path:
    rows = [{"id": n, "question": f"Q{n}?", "options": ["a dog", "a cat"], "answer": "B"} for n, _ in enumerate(SAID)]
    Path("d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("said.jsonl").write_text("\n".join(json.dumps({"id": n, "text": text}) for n, text in enumerate(SAID)))
    snellen.run("d.jsonl", "replay/said.jsonl", output_dir=folder, **settings)
    return folder


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("results.json", "records.jsonl", "report.html")}


def accuracy(results: dict[str, Any]) -> Any:
    return results["tasks"]["d"]["metrics"]["accuracy"]["value"]


def test_another_profile_leaves_the_run_as_it_is_and_says_who_made_what(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    before = bytes_of(folder)
    theirs = snellen.score(folder, profile="reform")
    assert bytes_of(folder) == before
    own = json.loads(before["results.json"])
    assert own["run"]["reading"]["name"] == "snellen" and isinstance(own["run"]["reading"]["rules"], int)
    assert (theirs["run"]["reading"]["name"], theirs["run"]["reading"]["rules"]) == ("reform", "reform")
    assert accuracy(own) == pytest.approx(3 / 5) and accuracy(theirs) != accuracy(own)
    assert list(stored_readings(folder)) == ["reform"]
    reading, results = kept_reading(folder, "reform")
    assert reading == Reading("reform") and accuracy(results) == accuracy(theirs)
    with RunReader(folder) as reader:
        values = [score.value for score in reader.scores("d")]
    assert sum(value or 0 for value in values) == 3, "the scores in run.db are those of the run's own reading"


def test_identical_replies_read_twice_are_not_different_runs(tmp_path: Path) -> None:
    first, second = make_run(tmp_path / "a"), make_run(tmp_path / "b")
    snellen.score(second, profile="reform")
    (one,) = compare_runs([first, second])["d"]
    assert (one.difference, one.p) == (0.0, 1.0)


def test_runs_of_different_readings_are_refused_or_aligned(tmp_path: Path) -> None:
    ours, theirs = make_run(tmp_path / "ours"), make_run(tmp_path / "theirs", profile="reform")
    with pytest.raises(UsageError, match=r"ours as snellen, theirs as reform.*--reading snellen"):
        compare_runs([ours, theirs])
    for reading in ("snellen", "reform"):
        (one,) = compare_runs([ours, theirs], reading=reading)["d"]
        assert one.difference == 0.0
    with pytest.raises(UsageError, match="unknown profile"):
        compare_runs([ours, theirs], reading="nobody")


def test_the_first_command_sets_the_own_reading(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", profile="reform")
    before = bytes_of(folder)
    assert snellen.score(folder)["run"]["reading"]["name"] == "reform"
    assert json.loads((folder / "results.json").read_text()) == json.loads(before["results.json"])
    make_run(folder)  # the same command without the profile: a reading of its own
    assert (folder / "results.json").read_bytes() == before["results.json"]
    assert list(stored_readings(folder)) == ["snellen"]
    board, _ = leaderboard([folder], "snellen")
    assert board.lines[0].tasks["d"].value == pytest.approx(3 / 5)


def test_names_say_what_differs() -> None:
    assert OWN.name == "snellen" and OWN.options() == {}
    both = Reading("reform", ("exact",), "mean", "over-n")
    assert both.name == "reform+exact+mean+over-n"
    assert both.options() == {"profile": "reform", "reduction": "mean", "convention": "over-n"}
    assert Reading(scorers=("../x y",)).name == "..-x-y"
    for wrong in (Reading("nobody"), Reading(reduction="median"), Reading(convention="over")):
        with pytest.raises(UsageError, match="unknown"):
            check_reading(wrong)


def test_what_is_not_kept_or_broken_is_refused_by_name(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    with pytest.raises(UsageError, match="no reading 'reform'; none is kept"):
        results_of(folder, "reform")
    (folder / "results-reform.json").write_text("{}")
    with pytest.raises(UsageError, match=r"results-reform\.json cannot be read"):
        results_of(folder, "reform")


def test_the_commands_name_the_reading(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run")
    assert run_command(["score", str(folder), "--profile", "reform"]) == 0
    assert "read as reform: " in (told := capfd.readouterr().err) and "own reading is unchanged" in told
    for flags, words in (((), "read as snellen"), (("--reading", "reform"), "read as reform")):
        assert run_command(["show", str(folder), *flags]) == 0
        assert words in " ".join(capfd.readouterr().out.split())
    assert "read as snellen" in (folder / "report.html").read_text()
    assert run_command(["score", str(folder), "--eval-stability"]) == 2
    assert "--eval-stability says nothing here" in capfd.readouterr().err
    assert run_command(["score", str(folder), "--convention", "over-n"]) == 2
    assert "--convention is about chains (Cf, Cb)" in capfd.readouterr().err


def test_the_convention_of_chains_is_a_reading_of_its_own(tmp_path: Path) -> None:
    path = write_cure(tmp_path)
    folder = tmp_path / "run"
    snellen.run("cure", "blind/first", overrides=(("dataset.path", str(path)),), output_dir=folder)
    before = (folder / "results.json").read_bytes()
    metrics = snellen.score(folder, convention="over-n")["tasks"]["cure"]["metrics"]
    assert metrics["Cf"] == metrics["Cb"] == metrics["Ro"]
    assert (folder / "results.json").read_bytes() == before and (folder / "results-over-n.json").is_file()
    assert (
        msgspec.json.decode((folder / "results-over-n.json").read_bytes())["run"]["reading"]["convention"] == "over-n"
    )
    with pytest.raises(UsageError, match="unknown convention 'over'"):
        snellen.score(folder, convention="over")
