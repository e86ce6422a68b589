"""A LoRA adapter's folder to what vLLM is told of it; what vLLM would leave out or scale otherwise is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ...core.errors import ConfigError, EnvironmentProblem, UsageError
from .adapter import CONFIG

WEIGHTS = "adapter_model.safetensors"
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The largest rank vLLM can be made ready for is one of these."""
NOT_LANGUAGE = re.compile(r"vision|visual|qformer|projector|connector|merger|image|audio|video")
"""Parts of a model's layers to which vLLM applies no adapter: it warns in its log and answers without them."""
UNLIKE = {"modules_to_save": "whole layers (modules_to_save)", "use_dora": "DoRA"}
UNLIKE |= {"rank_pattern": "ranks by layer (rank_pattern)", "alpha_pattern": "scales by layer (alpha_pattern)"}
"""What an adapter may have that vLLM refuses, or reads as if it were not there."""
LARGEST_HEAD = 100_000_000
"""Bytes of a safetensors head; its own library takes no more."""


def lora_arguments(adapter: str, engine: dict[str, Any]) -> dict[str, Any]:
    """Return the engine's arguments for an adapter, whose files are checked; `engine` is what the user gives it."""
    if engine.get("enable_lora", True) is not True:
        raise ConfigError("--model-arg engine.enable_lora=false with an adapter: it would not be applied; leave it out")
    config = _read_config(Path(adapter))
    for name, words in UNLIKE.items():
        if config.get(name):
            raise _unfit(adapter, f"it has {words}, which vLLM does not apply")
    if config.get("bias", "none") != "none":
        raise _unfit(adapter, "it has biases, which vLLM does not apply")
    layer = next((name for name in _weight_names(Path(adapter) / WEIGHTS) if NOT_LANGUAGE.search(name)), None)
    if layer is not None:
        raise _unfit(adapter, f"{layer} is not of the language half, and vLLM applies no others")
    return {"enable_lora": True, "max_lora_rank": _room_for(adapter, config.get("r"))}


def lora_request(adapter: str) -> Any:
    """Return the adapter as vLLM's chat takes it."""
    from vllm.lora.request import LoRARequest

    return LoRARequest("adapter", 1, str(Path(adapter).resolve()))


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"{folder / CONFIG} cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise EnvironmentProblem(f"{folder / CONFIG} is no adapter's configuration")
    return config


def _room_for(adapter: str, rank: object) -> int:
    fitting = [room for room in RANKS if isinstance(rank, int) and 0 < rank <= room]
    if not fitting:
        raise _unfit(adapter, f"its rank is {rank!r}, and vLLM takes 1 to {RANKS[-1]}")
    return fitting[0]


def _weight_names(path: Path) -> list[str]:
    """Return the names of an adapter's weights: the head of a safetensors file is its length and JSON."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            names = json.loads(stream.read(length)) if 0 < length < LARGEST_HEAD else None
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"{path} cannot be read: {error}") from None
    if not isinstance(names, dict):
        raise EnvironmentProblem(f"{path} is no file of weights")
    return [name for name in names if name != "__metadata__"]


def _unfit(adapter: str, why: str) -> UsageError:
    fix = "measure it through hf/, or merge it first (snellen train merge)"
    return UsageError(f"--model-arg adapter={adapter}: {why}; {fix}")
