"""An adapter and its base to one folder of whole weights that answers as both together do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ...core.errors import EnvironmentProblem, UsageError
from ...model.local.checkpoint import first_line
from . import tuned_weights as weights

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
    checkpoint = weights.open_base(base or base_of(adapter))
    model = load_with_adapter(weights.load_trainable(checkpoint), adapter)
    before = _probe(model)
    merged = model.merge_and_unload()
    apart = float((_probe(merged) - before).abs().max())
    if apart > MOST_APART:
        raise EnvironmentProblem(f"merged weights answer otherwise than the adapter (logits differ by {apart:.2g})")
    part = output.with_name(f".{output.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    merged.save_pretrained(part)
    weights.open_processor(checkpoint).save_pretrained(part)
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
