"""A LoRA adapter's folder to weights with it merged in: everything after loading sees one plain model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...core.errors import EnvironmentProblem, MissingExtra, UsageError

CONFIG = "adapter_config.json"
BASE = "snellen_base.json"
"""What a training of ours leaves beside its adapter: the fingerprint of the base it was trained on."""


def check_adapter(adapter: str, base: str, files: str | None) -> None:
    """Refuse a folder that is no adapter, and one that was trained on other weights than `base` (provider/name) holds.

    `files` is the fingerprint of the base; nothing is loaded.
    """
    folder = Path(adapter)
    if not (folder / CONFIG).is_file():
        hint = f" (did you mean {folder / 'model'}?)" if (folder / "model" / CONFIG).is_file() else ""
        raise UsageError(f"--model-arg adapter={adapter}: no {CONFIG} in it{hint}")
    try:
        trained_on = json.loads((folder / BASE).read_text("utf-8"))["files"] if (folder / BASE).is_file() else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EnvironmentProblem(f"{folder / BASE} cannot be read: {error}") from None
    if files is not None and trained_on not in (None, files):
        raise UsageError(f"--model-arg adapter={adapter}: trained on other weights than {base} holds")


def apply_adapter(model: Any, adapter: str) -> Any:
    """Return the model with the adapter merged into its weights."""
    try:
        import peft
    except ImportError:
        raise MissingExtra("train", "an adapter (--model-arg adapter=…)") from None
    try:
        return peft.PeftModel.from_pretrained(model, adapter).merge_and_unload()
    except (ValueError, RuntimeError, OSError, KeyError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UsageError(f"--model-arg adapter={adapter} does not fit the model: {reason}") from None
