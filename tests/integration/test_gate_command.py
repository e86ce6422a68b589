"""The gate as it is typed: stored, served and killed; exit codes, forms, policies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snellen
from asgi import call
from command_line import COMMAND, json_of, run_command
from drawn_banks import drawn_bank, make_runs, write_questions, write_replies
from snellen.api.view import make_viewer
from snellen.kits.bank.build import build
from snellen.kits.mock.ask import write_answers
from snellen.kits.mock.process import mock_process
from snellen.report.viewer.guard import cookie_name
from waiting import stored_trials, wait_until

RESULTS = drawn_bank(7, 300)
BASE = RESULTS[5]


def changed(lost: int, gained: int, seed: int = 1) -> np.ndarray:
    """The base with so many answers lost and gained."""
    draw, found = np.random.default_rng(seed), BASE.copy()
    found[draw.permutation(np.flatnonzero(BASE == 1))[:lost]] = 0
    found[draw.permutation(np.flatnonzero(BASE == 0))[:gained]] = 1
    return found


CASES = {"same": (changed(2, 2), 0), "worse": (changed(60, 0), 1), "better": (np.ones(300), 0)}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    make_runs(folder, RESULTS)
    build([folder / "runs"], folder / "task.bank")
    for name, (right, _) in CASES.items():
        write_replies(folder / f"{name}.jsonl", right)
        snellen.run(str(folder / "task.jsonl"), f"replay/{folder}/{name}.jsonl", output_dir=folder / name, cache=False)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_stored_runs_are_settled_with_their_exit_code(shop: Path, name: str) -> None:
    code = CASES[name][1]
    base, flags = shop / "runs" / "model-5", ["--margin", 4, "--bank", shop / "task.bank"]
    (found,) = json_of("gate", base, shop / name, *flags, codes=(code,))
    assert found["verdict"] in ((name, "same") if name == "better" else (name,))
    assert found["asked"] < 300
    low, high = found["interval"]
    assert low <= 100 * (CASES[name][0] - BASE).mean() <= high
    lost = {f"q{n}" for n in np.flatnonzero(CASES[name][0] < BASE)}
    assert {flip["sample"] for flip in found["worse"]} <= lost


def test_asking_decides_as_reading_does_whatever_the_workers(shop: Path, tmp_path: Path) -> None:
    base, told = shop / "runs" / "model-5", ["--margin", 4, "--bank", shop / "task.bank", "--quiet"]
    (stored,) = json_of("gate", base, shop / "same", *told)
    for workers in (1, 32):
        out = tmp_path / str(workers)
        model = ["--model", f"replay/{shop}/same.jsonl", "--max-workers", workers, "-o", out]
        (asked,) = json_of("gate", base, *model, *told)
        same = ("verdict", "asked", "difference", "interval", "worse", "better")
        assert [asked[key] for key in same] == [stored[key] for key in same]
        assert json.loads((out / "gate.json").read_text())["verdict"] == "same"
        assert "no score" in " ".join(json.loads((out / "results.json").read_text())["tasks"]["task"]["notes"])
    app = make_viewer([tmp_path], "key")
    headers = {"cookie": f"{cookie_name('key')}=key"}
    home = call(app, "/", headers=headers).text
    key = home.split('href="/run/')[1].split('"')[0].split("?")[0]
    assert "Gate on task" in call(app, f"/run/{key}/gate", headers=headers).text
    assert call(app, "/banks", headers=headers).status == 200


def test_a_budget_ends_it_unsettled_and_forms_are_written(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = ["gate", shop / "runs" / "model-5", shop / "same", "--margin", 0.5, "--budget", 40]
    assert run_command([*pair, "--format", "junit"]) == 4
    suite = ElementTree.fromstring(capsys.readouterr().out)
    assert suite.attrib["skipped"] == "1" and suite.find("testcase/skipped") is not None
    worse = ["gate", shop / "runs" / "model-5", shop / "worse", "--margin", 4]
    assert run_command([*worse, "--format", "junit"]) == 1
    assert ElementTree.fromstring(capsys.readouterr().out).find("testcase/failure") is not None
    assert run_command([*worse, "--format", "github"]) == 1
    said = capsys.readouterr().out
    assert "| **worse** |" in said and "<details>" in said


def test_a_policy_names_tasks_margins_and_what_must_settle(shop: Path, tmp_path: Path) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text(f'[tasks.task]\nmargin = 0.5\nbudget = 40\nbank = "{shop}/task.bank"\n')
    pair = ["gate", shop / "runs" / "model-5", shop / "same", "--policy", policy]
    json_of(*pair, codes=(4,))
    policy.write_text(policy.read_text() + "must_not_fall = true\n")
    json_of(*pair, codes=(1,))
    policy.write_text("[tasks.task]\nmargn = 2\n")
    assert run_command(pair) == 2


def test_what_is_not_alike_is_refused(shop: Path, tmp_path: Path) -> None:
    base = shop / "runs" / "model-5"
    rows = [json.loads(line) for line in (shop / "task.jsonl").read_text().splitlines()]
    rows[7]["question"] += " Truly?"
    (tmp_path / "task.jsonl").write_text("\n".join(map(json.dumps, rows)))
    snellen.run(str(tmp_path / "task.jsonl"), f"replay/{shop}/same.jsonl", output_dir=tmp_path / "r", cache=False)
    assert run_command(["gate", base, tmp_path / "r"]) == 2
    assert run_command(["gate", base]) == 2
    assert run_command(["gate", base, shop / "same", "--model", "blind/first"]) == 2
    assert run_command(["gate", base, shop / "same", "--margin", 200]) == 2
    assert run_command(["gate", base, shop / "same", "--task", "other"]) == 2
    assert run_command(["gate", base, shop / "same", "--exam", tmp_path]) == 2
    (tmp_path / "gate.toml").write_text("error = 0.05\n")
    assert run_command(["gate", base, shop / "same", "--policy", tmp_path / "gate.toml"]) == 2
    assert run_command(["gate", base, shop / "same", "--policy", tmp_path / "gate.toml", "--margin", 2]) == 2
    (tmp_path / "gate.toml").write_text("error = \n")
    assert run_command(["gate", base, shop / "same", "--policy", tmp_path / "gate.toml"]) == 2
    assert run_command(["gate", base, "--model", "blind/first", "-o", tmp_path / "x", "--num-infers", 3]) == 2


def test_what_a_candidate_or_a_bank_lacks_is_said(shop: Path, tmp_path: Path) -> None:
    base = shop / "runs" / "model-5"
    some = ["--model", f"replay/{shop}/same.jsonl", "--limit", 200, "--no-cache", "--quiet", "-o", tmp_path / "some"]
    assert run_command(["run", shop / "task.jsonl", *some]) == 0
    (found,) = json_of("gate", base, tmp_path / "some", "--margin", 4, codes=(1,))
    assert any(note.startswith("100 questions have no reply of the candidate") for note in found["notes"])
    write_questions(tmp_path / "other.jsonl", 40)
    rows = (tmp_path / "other.jsonl").read_text().replace("Question", "Problem")
    (tmp_path / "other.jsonl").write_text(rows)
    for name in ("first", "longest"):
        asked = ["--model", f"blind/{name}", "--no-cache", "--quiet", "-o", tmp_path / name]
        assert run_command(["run", tmp_path / "other.jsonl", *asked]) == 0
    flags = ["--margin", 4, "--bank", shop / "task.bank"]
    assert run_command(["gate", tmp_path / "first", tmp_path / "longest", *flags]) == 2


def test_a_bank_is_built_of_what_is_there_and_alike(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = shop / "runs" / "model-5", ["-o", tmp_path / "made.bank"]
    (tmp_path / "empty").mkdir()
    for wrong in (
        [tmp_path / "empty"],
        [tmp_path / "nowhere"],
        [run, "--metric", "bleu"],
        [run, "--arm", "nothing"],
        [run, "--arm", "none"],
        [run, "--task", "another"],
    ):
        capsys.readouterr()
        assert run_command(["bank", "build", *wrong, *out]) == 2, wrong
        assert capsys.readouterr().err.count("\n") <= 3
    assert not (tmp_path / "made.bank").exists()


def served(shop: Path, url: str, out: Path, *flags: object) -> list[object]:
    model = ["--model", "openai/mock", "--base-url", url, "--no-cache", "--quiet", "-o", out]
    return ["run", shop / "known.jsonl", *model, *flags]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions that the mock server can answer, well or badly."""
    folder = tmp_path_factory.mktemp("known")
    write_questions(folder / "known.jsonl", 300)
    write_answers(snellen.load_dataset(str(folder / "known.jsonl")), folder / "answers.jsonl")
    return folder


@pytest.mark.parametrize(("accuracy", "code"), [(0.8, 0), (0.55, 1)])
def test_a_server_of_known_degradation(
    known: Path, tmp_path: Path, mock_server: Callable[..., Any], accuracy: float, code: int
) -> None:
    def serve(share: float) -> str:
        reader = f"noisy:accuracy={share}"
        return str(mock_server("--answers", known / "answers.jsonl", "--reader", reader, "--seed", 3).base_url)

    assert run_command(served(known, serve(0.8), tmp_path / "base")) == 0
    flags = ["--model", "openai/mock", "--base-url", serve(accuracy), "--margin", 5, "--no-cache", "--quiet"]
    (found,) = json_of("gate", tmp_path / "base", *flags, "-o", tmp_path / "gate", codes=(code,))
    assert found["verdict"] == ("worse" if code else "same")


def test_a_killed_gate_gives_the_same_verdict(known: Path, tmp_path: Path) -> None:
    arguments = ["--answers", known / "answers.jsonl", "--reader", "noisy:accuracy=0.75", "--seed", 3]
    with mock_process([*map(str, arguments), "--ttft-ms", "15"]) as server:
        assert run_command(served(known, server.base_url, tmp_path / "base", "--max-workers", 64)) == 0
        model = ["--model", "openai/mock", "--base-url", server.base_url, "--margin", 3, "--no-cache", "--quiet"]

        def command(out: str) -> list[str]:
            return [*map(str, ["gate", tmp_path / "base", *model, "--max-workers", 4, "-o", tmp_path / out])]

        assert run_command(command("whole")) == 0
        for stored in (10, 60):
            process = subprocess.Popen([*COMMAND, *command("killed")], start_new_session=True)
            wait_until(lambda: stored_trials(tmp_path / "killed") >= stored, "trials stored")  # noqa: B023
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        assert not (tmp_path / "killed" / "gate.json").exists()
        assert run_command(command("killed")) == 0
    whole, killed = (json.loads((tmp_path / name / "gate.json").read_text()) for name in ("whole", "killed"))
    assert killed == whole
