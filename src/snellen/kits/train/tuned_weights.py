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


CONFIG = "adapter_config.json"
MOST_APART = 1e-3
"""Logits of adapter and merged weights in float32; rounding leaves a tenth of it."""


def find_adapter(folder: Path) -> Path:
    """Return the folder of an adapter: itself, or the model of a training."""
    for place in (folder, folder / "model"):
        if (place / CONFIG).is_file():
            return place
    raise UsageError(f"{folder} holds no adapter ({CONFIG}): give the folder of a training or of an adapter")


def base_of(adapter: Path) -> str:
    """Return the name of the base that an adapter was trained on, as it says itself."""
    import json

    try:
        config = json.loads((adapter / CONFIG).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"{adapter / CONFIG} cannot be read: {first_line(error)}") from None
    name = config.get("base_model_name_or_path") if isinstance(config, dict) else None
    if not name:
        raise UsageError(f"{adapter} does not say what it is an adapter of: name it (--base hf/FOLDER)")
    return str(name)


def merge_adapter(folder: Path, output: Path, base: str | None = None) -> Path:
    """Write base and adapter as whole weights, compared with the adapter first; whole or not at all."""
    adapter = find_adapter(folder)
    if output.exists() and any(output.iterdir()):
        raise UsageError(f"{output} is not empty: choose another -o")
    checkpoint = open_base(base or base_of(adapter))
    model = load_with_adapter(load_trainable(checkpoint), adapter)
    before = _probe(model)
    merged = model.merge_and_unload()
    apart = float((_probe(merged) - before).abs().max())
    if apart > MOST_APART:
        raise EnvironmentProblem(f"merged weights answer otherwise than the adapter (logits differ by {apart:.2g})")
    part = output.with_name(f".{output.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    merged.save_pretrained(part)
    open_processor(checkpoint).save_pretrained(part)
    if output.exists():
        output.rmdir()
    part.replace(output)
    return output


def load_with_adapter(model: Any, adapter: Path) -> Any:
    """Return a model with an adapter on it; one of another model is refused."""
    import peft

    try:
        return peft.PeftModel.from_pretrained(model, str(adapter)).eval()
    except (ValueError, RuntimeError, OSError) as error:
        raise UsageError(f"adapter {adapter} does not fit the model: {first_line(error)}") from None


def _probe(model: Any) -> Any:
    """Return the logits of a few tokens."""
    import torch

    ids = torch.arange(5, 13)[None]
    with torch.inference_mode():
        return model.eval()(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
