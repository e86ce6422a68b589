"""`snellen run cure`: all settings on a small file of our own, missing pictures counted, figures beside the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import json_of, run_command
from cure_fixtures import item, write_cure


def run(path: Path, out: Path, *flags: object, task: str = "cure", codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    told = ("run", task, "-p", f"dataset.path={path}", "-o", out, "--quiet", "--no-cache", *flags)
    return json_of(*told, codes=codes)["tasks"][task]["metrics"]


@pytest.mark.parametrize("region", ["box", "crop", "coordinates", "none"])
def test_every_region_reaches_the_model(mock_server: Callable[..., Any], tmp_path: Path, region: str) -> None:
    path = write_cure(tmp_path)
    server = mock_server("--answer", "A")
    found = run(
        path,
        tmp_path / "run",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "-p",
        f"dataset.region={region}",
    )
    assert found["Rh"]["n"] == 3 and found["accuracy"]["n"] == 10 and found["Rh"]["failed"] == 0


def test_a_file_that_is_given_itself_is_run_by_the_card(tmp_path: Path) -> None:
    path = write_cure(tmp_path)
    by_card = run(path, tmp_path / "card", "--model", "blind/no-period")
    told = ("run", path, "-o", tmp_path / "file", "--quiet", "--no-cache", "--model", "blind/no-period")
    found = json_of(*told)["tasks"][path.stem]["metrics"]
    assert found["Rh"] == by_card["Rh"] and found["Rcot"] == by_card["Rcot"] and found.keys() == by_card.keys()


def test_settings(tmp_path: Path) -> None:
    path = write_cure(tmp_path)
    for task in ("cure", "cure-plain", "cure-cot", "cure-gold"):
        found = run(path, tmp_path / task, "--model", "blind/no-period", task=task)
        assert {"Rh", "Rcot", "Ro", "Cf", "Cb", "step_1_accuracy", "break_at_2", "Rh_no-period_blind"} <= set(found)
        assert (found["Rh_no-period_blind"]["value"] == 1.0) == (task != "cure-plain")
    direct = run(path, tmp_path / "direct", "--model", "blind/no-period", task="cure-direct")
    assert direct["Rh"]["value"] == 1.0 and "Rcot" not in direct


def test_several_inferences_and_likelihood(tmp_path: Path) -> None:
    path = write_cure(tmp_path)
    several = run(path, tmp_path / "three", "--model", "blind/random", "--num-infers", 3)
    assert several["Rh"]["n"] == 9  # each inference of an item is a chain of its own, in the item's cluster
    likely = run(path, tmp_path / "likely", "--model", "blind/no-period", "--infer-method", "likelihood")
    assert likely["Ro"]["value"] == 1.0


def test_either_convention_is_that_of_the_run_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_cure(tmp_path, [item(number, 2) for number in range(12)])
    same = ("--model", "blind/random", "--seed", 4)
    given = run(path, tmp_path / "given", *same)
    over = run(path, tmp_path / "over", *same, "--convention", "over-n")
    assert over["Cf"]["value"] == over["Cb"]["value"] == over["Ro"]["value"] == given["Ro"]["value"]
    assert (over["Cf"]["n"], over["Rh"]) == (12, given["Rh"]) and given["Cf"]["n"] < 12
    told = json.loads((tmp_path / "over" / "results.json").read_text())["run"]["reading"]
    assert (told["name"], told["convention"]) == ("over-n", "over-n")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "Which?", "options": ["a", "b"], "answer": "A"}\n')
    capfd.readouterr()
    for flag, file in (("over-n", rows), ("over-all", path)):
        task = ["cure", "-p", f"dataset.path={file}"] if file is path else [file]
        assert run_command(["run", *task, "--convention", flag, *same, "-o", tmp_path / "none"]) == 2
        assert not (tmp_path / "none").exists()
    refusals = capfd.readouterr().err
    assert "these tasks have none: rows" in refusals and "unknown convention 'over-all'" in refusals


def test_options_are_shuffled_by_the_seed(tmp_path: Path) -> None:
    path = write_cure(tmp_path, [item(number, 2, right=0) for number in range(30)])
    chosen = [
        run(path, tmp_path / str(seed), "--model", "blind/first", "--seed", seed)["Rh"]["value"] for seed in (1, 2)
    ]
    assert all(value < 0.5 for value in chosen)  # unshuffled, the first would always be right
    assert run(path, tmp_path / "plain", "--model", "blind/first", "--no-shuffle-options")["Rh"]["value"] == 1.0


def test_missing_pictures_are_refused_or_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_cure(tmp_path, [item(number, 2) for number in range(20)])
    for number in range(12):
        (tmp_path / "VG_100K" / f"{number}.png").unlink()
    assert (
        run_command(["run", "cure", "-p", f"dataset.path={path}", "--model", "blind/first", "-o", str(tmp_path / "no")])
        == 2
    )
    assert "36 images missing" in capfd.readouterr().err
    found = run(path, tmp_path / "some", "--model", "blind/no-period", "--allow-missing-images", codes=(1,))
    assert (found["Rh"]["n"], found["Rh"]["failed"], found["Rh"]["value"]) == (8, 12, 1.0)
    assert found["Rh_strict"]["value"] == pytest.approx(0.4) and found["accuracy"]["failed"] == 36


def test_the_table_says_what_must_be_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_cure(tmp_path)
    assert (
        run_command(
            [
                "run",
                "cure",
                "-p",
                f"dataset.path={path}",
                "--model",
                "blind/first",
                "-o",
                str(tmp_path / "out"),
                "--no-cache",
            ]
        )
        == 0
    )
    shown = " ".join(capfd.readouterr().out.split())
    assert "70.7 %" in shown and "BLIP-2-T5xl (published)" in shown and "rule no-period, blind" in shown
