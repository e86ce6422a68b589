"""The gate on two small checkpoints of this machine: the same weights, and weights with noise added."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from command_line import json_of, run_command
from extras import needs
from snellen.kits.bank.build import sample_values

torch = needs("torch", "transformers")

QUESTIONS = 80


def with_noise(folder: Path, place: Path, size: float) -> Path:
    """Return a copy of a checkpoint whose weights were disturbed."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, place)
    torch.manual_seed(0)
    for file in place.glob("*.safetensors"):
        weights = load_file(file)
        noisy = {name: weight + size * weight.std() * torch.randn_like(weight) for name, weight in weights.items()}
        save_file(noisy, file, {"format": "pt"})
    return place


def test_a_gate_on_checkpoints_says_what_full_runs_say(tmp_path: Path) -> None:
    from tiny_checkpoints import checkpoint

    rows = [
        {"id": f"q{n}", "question": f"What is number {n}?", "options": ["red", "blue", "a dog"], "answer": "blue"}
        for n in range(QUESTIONS)
    ]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    plain = Path(checkpoint("text"))
    noisy = with_noise(plain, tmp_path / "noisy", 0.5)
    how = ["--infer-method", "likelihood", "--no-cache", "--quiet"]
    for name, model in (("base", plain), ("full", noisy)):
        out = tmp_path / name
        assert run_command(["run", tmp_path / "data.jsonl", "--model", f"hf/{model}", *how, "-o", out]) == 0
    base, full = (sample_values(tmp_path / name, "data") for name in ("base", "full"))
    truth = 100 * sum(full[name] - base[name] for name in base) / QUESTIONS
    flags = ["--margin", 8, *how]  # the base was asked in this process: its command line is not known
    (same,) = json_of("gate", tmp_path / "base", "--model", f"hf/{plain}", *flags, "-o", tmp_path / "same")
    assert same["verdict"] == "same" and not same["worse"] and not same["better"]
    model = ["--model", f"hf/{noisy}", *flags, "-o", tmp_path / "gate"]
    (found,) = json_of("gate", tmp_path / "base", *model, codes=(0, 1))
    assert truth > -8 if found["verdict"] in ("same", "better") else truth < 0
