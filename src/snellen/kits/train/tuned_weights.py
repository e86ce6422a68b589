"""A base and a checkpoint to the weights a training begins with, and the proof that they are the right ones.

A trainer loads full weights from a checkpoint by names that some architectures no longer use, finds none, and goes on
with fresh weights and the old optimiser, without an error. So the weights are loaded here and compared afterwards.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ...core.errors import EnvironmentProblem, UsageError
from ...model.local.checkpoint import (
    IMAGE_TEXT,
    Checkpoint,
    first_line,
    import_transformers,
    load_processor,
    read_checkpoint,
)
from ...model.local.local_options import LocalOptions

PREFIX = "checkpoint-"
STATE = "trainer_state.json"
"""What a trainer writes last: a checkpoint without it is half."""
ADAPTER = "adapter_model.safetensors"
LOOKED_AT = 64
"""Values of each tensor that are compared."""


def last_checkpoint(folder: Path) -> tuple[Path | None, list[Path]]:
    """Return the newest whole checkpoint, and the half ones that a kill left (newer ones first)."""
    found = sorted(
        (path for path in folder.glob(f"{PREFIX}*") if path.name[len(PREFIX) :].isdigit()),
        key=lambda path: int(path.name[len(PREFIX) :]),
        reverse=True,
    )
    whole = [path for path in found if _is_whole(path / STATE)]
    return (whole[0] if whole else None), [path for path in found if path not in whole]


def _is_whole(state: Path) -> bool:
    """Tell whether a trainer's state was written to its end."""
    try:
        return isinstance(json.loads(state.read_bytes()), dict)  # of Python's kind: a loss may be NaN
    except (OSError, ValueError):
        return False


def clear_half(folder: Path) -> list[str]:
    """Remove half-written checkpoints; return their names, to be said."""
    half = last_checkpoint(folder)[1]
    for path in half:
        shutil.rmtree(path, ignore_errors=True)
    return [path.name for path in half]


def checkpoint_step(path: Path) -> int:
    """Return the step a checkpoint was written at."""
    return int(path.name[len(PREFIX) :])


def open_base(model: str) -> Checkpoint:
    """Return what is known of the base model; only models of pictures and text are trained."""
    checkpoint = read_checkpoint(model.removeprefix("hf/"), LocalOptions())
    if checkpoint.kind != IMAGE_TEXT:
        raise UsageError(f"model {model} is a {checkpoint.kind} model: rationale tuning needs one that sees pictures")
    return checkpoint


def open_processor(base: Checkpoint) -> Any:
    """Return the base's processor; one without a chat template cannot say where a reply begins."""
    processor = load_processor(base)
    if getattr(processor, "chat_template", None) is None:
        fix = "put a chat_template.jinja into its folder"
        raise UsageError(f"model hf/{base.name} has no chat template, so nobody can tell where a reply begins: {fix}")
    return processor


def load_trainable(base: Checkpoint, source: Path | None = None, *, half: bool = False) -> Any:
    """Return weights in a number format fit for training: the base's, or those of a full checkpoint."""
    import torch

    transformers = import_transformers()
    name = str(source) if source is not None else base.name
    dtype = torch.bfloat16 if half and torch.cuda.is_available() else torch.float32
    try:
        model, said = transformers.AutoModelForImageTextToText.from_pretrained(
            name, dtype=dtype, output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise EnvironmentProblem(f"the weights of {name} cannot be loaded: {first_line(error)}") from None
    lacking = sorted(said.get("missing_keys") or ()) + sorted(map(str, said.get("mismatched_keys") or ()))
    if lacking:
        raise EnvironmentProblem(f"{name} lacks weights the model needs ({len(lacking)}, first {lacking[0]})")
    return model


def sketch_weights(state: dict[str, Any]) -> dict[str, Any]:
    """Return some values of every tensor, to compare weights without holding them twice."""
    sketch = {}
    for name, tensor in state.items():
        flat = tensor.detach().flatten()
        step = max(1, flat.numel() // LOOKED_AT)
        sketch[name] = flat[::step][:LOOKED_AT].float().cpu().clone()
    return sketch


def check_sketch(found: dict[str, Any], wanted: dict[str, Any], where: Path) -> None:
    """Refuse to go on with weights that are not those of the checkpoint."""
    import torch

    other = [name for name, values in wanted.items() if name not in found or not torch.equal(found[name], values)]
    if other:
        what = f"{len(other)} of {len(wanted)} tensors differ, first {other[0]}"
        raise EnvironmentProblem(
            f"resumed from {where.name} with other weights than it holds ({what}): nothing was trained; "
            "this is a fault of the trainer's loading, please report the architecture"
        )


def adapter_file_state(folder: Path) -> dict[str, Any]:
    """Return the adapter's weights as they stand in a checkpoint."""
    from safetensors.torch import load_file

    try:
        state: dict[str, Any] = load_file(folder / ADAPTER)
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"{folder / ADAPTER} cannot be read: {first_line(error)}") from None
    return state
