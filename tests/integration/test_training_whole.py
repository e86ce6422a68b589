"""`make train-test`: every trainer on two architectures, killed trainings, two processes, a tuned adapter measured by CURE."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from extras import needs

needs("trl", "peft")

from msgspec.structs import replace

from command_line import COMMAND, run_command
from line_doubles import Scripted
from snellen.kits.train.rationale import train_rationale
from snellen.kits.train.recipe import DataSource, Feedback, Lora, Recipe, Training
from tiny_checkpoints import checkpoint
from train_doubles import assert_same_losses, losses_of, sampled_rationale, small_recipe, write_chains, write_rows
from waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
ARCHITECTURES = ("llava", "idefics3")
QUIET = os.environ | {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows"), 20)


@pytest.mark.parametrize("weights", ["lora", "full"])
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_sft_learns(kind: str, weights: str, rows: Path, tmp_path: Path) -> None:
    recipe = small_recipe(checkpoint(kind), rows, tmp_path, weights=weights, steps=8, learning_rate=5e-3)
    tuned = train_rationale(recipe)
    losses = losses_of(tmp_path)
    assert losses[8] < losses[1] and tuned.adapter is (weights == "lora")
    assert run_command(["models", "check", f"hf/{tuned.model}"]) == 0 if weights == "full" else True


def feedback_recipe(kind: str, trainer: str, folder: Path, **changes: object) -> Recipe:
    data = (DataSource(str(write_chains(folder / "data", 8))),)
    training = Training(
        **{"trainer": trainer, "steps": 4, "batch_size": 4, "save_steps": 2, "learning_rate": 1e-3, **changes}
    )  # type: ignore[arg-type]
    feedback = Feedback(samples=2 if trainer == "grpo" else 3, max_tokens=8)
    return Recipe(
        model=f"hf/{checkpoint(kind)}",
        stage="feedback",
        data=data,
        output=str(folder / "out"),
        training=training,
        feedback=feedback,
        lora=Lora(rank=4),
    )


@pytest.mark.parametrize("trainer", ["dpo", "control", "grpo"])
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_feedback_trainer_runs_to_its_end(
    kind: str, trainer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("snellen.api.plan.create_model", lambda settings, registry: Scripted(sampled_rationale))
    tuned = train_rationale(feedback_recipe(kind, trainer, tmp_path))
    assert tuned.steps == 4 and (Path(tuned.model) / "adapter_model.safetensors").is_file()
    lines = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    named = {"dpo": "rewards/margins", "grpo": "reward", "control": "mean_token_accuracy"}[trainer]
    assert any(named in line for line in lines)


def test_full_weights_by_dpo_resume_with_the_first_weights_as_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("snellen.api.plan.create_model", lambda settings, registry: Scripted(sampled_rationale))
    recipe = feedback_recipe("llava", "dpo", tmp_path, weights="full")
    train_rationale(recipe)
    out = tmp_path / "out"
    wanted = losses_of(out)
    forget_the_end(out, keep=2)
    train_rationale(recipe)
    assert_same_losses(losses_of(out), wanted)


def forget_the_end(out: Path, keep: int) -> None:
    """Take back all that came after a checkpoint, as a kill would have."""
    import shutil

    record = json.loads((out / "training.json").read_text())
    (out / "training.json").write_text(json.dumps(record | {"finished": False, "final": {}}))
    for folder in (out / "checkpoints").glob("checkpoint-*"):
        if int(folder.name.rpartition("-")[2]) > keep:
            shutil.rmtree(folder)
    shutil.rmtree(out / "model")


@pytest.mark.parametrize(("kind", "weights"), [("llava", "full"), ("idefics3", "lora")])
def test_killed_at_three_random_steps_it_resumes_to_the_same_losses(
    kind: str, weights: str, rows: Path, tmp_path: Path
) -> None:
    steps = 15
    words = ["train", "rationale", "--model", f"hf/{checkpoint(kind)}", "--stage", "sft", "--data", str(rows),
             "--weights", weights, "--steps", str(steps), "--batch-size", "4", "--save-steps", "2", "--learning-rate", "1e-3"]  # fmt: skip
    subprocess.run([*COMMAND, *words, "-o", str(tmp_path / "whole")], env=QUIET, check=True, capture_output=True)
    for place in random.Random(f"{kind} {weights}").sample(range(3, steps - 1), 3):
        kill_after([*COMMAND, *words, "-o", str(tmp_path / "cut")], tmp_path / "cut", place)
    subprocess.run([*COMMAND, *words, "-o", str(tmp_path / "cut")], env=QUIET, check=True, capture_output=True)
    assert_same_losses(losses_of(tmp_path / "cut"), losses_of(tmp_path / "whole"))


def kill_after(words: list[str], out: Path, step: int) -> None:
    """Start a training and kill it once it has written a step; one that is over is not started."""
    metrics = out / "metrics.jsonl"
    if metrics.is_file() and max(losses_of(out), default=0) >= step:
        step = max(losses_of(out)) + 1
    process = subprocess.Popen(words, env=QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: metrics.is_file() and f'"step": {step},' in metrics.read_text(), f"step {step}", 300)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_two_processes_train_together(rows: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'model = "hf/{checkpoint("llava")}"\noutput = "out"\n[[data]]\npath = "{rows}"\n'
        "[training]\nsteps = 4\nbatch_size = 2\nsave_steps = 2\nlearning_rate = 1e-2\n"
    )
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1",
              "--mixed_precision", "no", "--dynamo_backend", "no", "-m", "snellen"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, *launch, "train", "run", str(recipe)],
        env=QUIET,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    losses = losses_of(tmp_path / "out")
    assert sorted(losses) == [1, 2, 3, 4] and losses[4] < losses[1]


def test_a_tuned_adapter_is_measured_by_cure_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    taught, held = write_chains(tmp_path / "taught", 4), tmp_path / "held"
    from cure_fixtures import item, write_cure

    tested = write_cure(held, [item(n, 2, right=n % 6) for n in range(20, 24)], pictures=False)
    import PIL.Image

    for n in range(20, 24):
        PIL.Image.new("RGB", (90, 90), (250 - n, 200, 10 * (n - 20))).save(held / "VG_100K" / f"{n}.png")
    base = f"hf/{checkpoint('idefics3')}"
    recipe = replace(small_recipe(checkpoint("idefics3"), taught, tmp_path / "tuned"), seed=2)
    train_rationale(recipe)
    words = ["train", "evaluate", base, tmp_path / "tuned", "--task", "cure-rationale", "-p", f"dataset.path={tested}"]
    assert run_command([*words, "-p", "params.max_tokens=4", "-o", tmp_path / "measured"]) == 0
    printed = capsys.readouterr().out
    assert "nothing shared with cure-rationale" in printed and "Cf" in printed
    gains = json.loads((tmp_path / "measured" / "gains.json").read_text())["gains"]
    assert [gain["figure"] for gain in gains] == ["Rh", "Rcot", "Ro", "Cf", "Cb"] and gains[0]["n"] == 4
    assert "| cure-rationale | Rh |" in (tmp_path / "tuned" / "model" / "README.md").read_text()
    leaked = ["train", "evaluate", base, tmp_path / "tuned", "--task", "cure-rationale", "-p", f"dataset.path={taught}"]
    assert run_command([*leaked, "-o", tmp_path / "leaked"]) == 2
    assert "training data and benchmark overlap" in capsys.readouterr().err
