"""A training killed at random steps resumes to the same losses and weights; no step is lost or trained twice.

A hundred kills in `make crash`, spread over an adapter and full weights; SNELLEN_KILLS changes how many.
"""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from pathlib import Path
from time import monotonic

import pytest

from extras import needs

needs("trl", "peft")

from figures import note_figure
from forked import Forge, forge
from killing import A_RUN, MANY, Killed, time_of
from snellen.kits.train.tuned_weights import checkpoint_step, last_checkpoint
from tiny_checkpoints import checkpoint
from train_doubles import assert_same_losses, write_rows

STEPS, SAVED = 20, 3
IMPORTS = ("torch", "trl", "peft", "datasets", "snellen.kits.train.commands", "snellen.kits.train.rationale", "snellen.kits.train.tuning",
           "transformers.models.idefics3", "transformers.models.llava")  # fmt: skip
KINDS = (("idefics3", "lora"), ("llava", "full"))


def written_losses(out: Path) -> dict[int, float]:
    """Return the losses of whole lines; every step from the first on stands there once."""
    path = out / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    losses = [(int(line["step"]), float(line["loss"])) for line in lines if "loss" in line]
    twice = [step for step, times in Counter(step for step, _ in losses).items() if times > 1]
    assert not twice, f"steps written twice: {twice}"
    assert [step for step, _ in losses] == list(range(1, len(losses) + 1)), "a step is missing"
    return dict(losses)


def steps_now(out: Path) -> int:
    """How many steps a training in another process has written."""
    path = out / "metrics.jsonl"
    return path.read_text().count('"loss"') if path.exists() else 0


def saved_step(out: Path) -> int:
    last = last_checkpoint(out / "checkpoints")[0]
    return 0 if last is None else checkpoint_step(last)


def weights_of(out: Path) -> dict[str, bytes]:
    files = sorted((out / "model").glob("*.safetensors"))
    assert files
    return {path.name: path.read_bytes() for path in files}


def check_after_kill(out: Path, known: dict[int, float], saved: int) -> dict[int, float]:
    """What a checkpoint held stays as it was, and no more is to be trained again than came after the last one."""
    now = written_losses(out)
    kept = {step: loss for step, loss in known.items() if step <= saved}
    assert_same_losses({step: now[step] for step in kept if step in now}, kept)
    assert saved <= saved_step(out) and len(now) - saved_step(out) <= SAVED
    return now


def train_and_kill(smith: Forge, kind: str, weights: str, home: Path, kills: int, seed: int) -> Killed:
    """Kill trainings at steps drawn over all of them; each ends with the losses and weights of one never killed."""
    home.mkdir()
    told = ["train", "rationale", "--model", f"hf/{checkpoint(kind)}", "--stage", "sft", "--weights", weights,
            "--data", write_rows(home / "rows", 20), "--steps", STEPS, "--batch-size", 4, "--save-steps", SAVED,
            "--learning-rate", "1e-3"]  # fmt: skip
    pace = time_of(smith, [*told, "-o", home / "whole"], lambda: steps_now(home / "whole"), STEPS)
    wanted, tuned = written_losses(home / "whole"), weights_of(home / "whole")
    draw, killed = random.Random(seed), Killed(STEPS)
    while len(killed.places) < kills:
        killed.rounds += 1
        out, known, saved, code = home / f"round{killed.rounds}", dict[int, float](), 0, -signal.SIGKILL
        for place in sorted(draw.randint(0, STEPS) for _ in range(min(A_RUN, kills - len(killed.places)))):
            pid = smith.start([*told, "-o", out])
            delay_s = pace.delay(draw, place, len(known), STEPS)
            code = smith.stop_between(pid, lambda out=out: steps_now(out), place, len(known), delay_s)
            known, saved = check_after_kill(out, known, saved), saved_step(out)
            if code == 0:
                break
            assert code == -signal.SIGKILL, f"exit {code}: {smith.said()[-3000:]}"
            killed.places.append(len(known))
            killed.checked += len(known)
        if code != 0:
            smith.run([*told, "-o", out])
        assert_same_losses(written_losses(out), wanted)
        assert weights_of(out) == tuned, "other weights than those of a training that was never killed"
    return killed


@pytest.mark.crash
@pytest.mark.slow
def test_a_training_killed_a_hundred_times_has_the_losses_and_weights_of_one_never_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    for number, (kind, weights) in enumerate(KINDS):
        started = monotonic()
        with forge(tmp_path / "said.txt", *IMPORTS) as smith:
            killed = train_and_kill(smith, kind, weights, tmp_path / weights, (MANY + 1 - number) // 2, seed=number)
        told = f"{len(killed.places)} kills at {killed.spread}, in {killed.rounds} trainings of {STEPS} steps"
        told += f": 0 of {killed.checked:,} written steps lost or twice against the last checkpoint, "
        told += f"losses equal to 1e-6, weights byte for byte ({monotonic() - started:.0f} s)"
        note_figure("crash", f"SIGKILL, training ({kind}, {weights})", told)
