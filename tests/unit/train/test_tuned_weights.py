"""Which checkpoint a training goes on from: the newest that was written to its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snellen.kits.train.tuned_weights import clear_half, last_checkpoint

STATE = json.dumps({"global_step": 4, "log_history": [{"loss": float("nan"), "step": 4}]})


def write_checkpoint(folder: Path, step: int, state: str | None) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    (path / "model.safetensors").write_bytes(b"weights")
    if state is not None:
        (path / "trainer_state.json").write_text(state)
    return path


@pytest.mark.parametrize("length", [None, 0, 1, len(STATE) // 2, len(STATE) - 1])
def test_a_state_cut_anywhere_is_half(length: int | None, tmp_path: Path) -> None:
    whole = write_checkpoint(tmp_path, 2, STATE)
    half = write_checkpoint(tmp_path, 4, None if length is None else STATE[:length])
    assert last_checkpoint(tmp_path) == (whole, [half])
    assert clear_half(tmp_path) == ["checkpoint-4"] and whole.is_dir() and not half.exists()


def test_a_loss_that_is_no_number_makes_no_checkpoint_half(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 2, STATE)
    newest = write_checkpoint(tmp_path, 10, STATE)
    assert last_checkpoint(tmp_path) == (newest, [])
