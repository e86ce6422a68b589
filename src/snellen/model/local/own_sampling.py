"""A checkpoint's generation_config to how it samples when nobody says: one rule for `hf/` and `vllm/`.

Greedy, unless the checkpoint itself says `do_sample`; then its own temperature and nucleus.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...core.types import Params

DEFAULT_TOKENS = 512
FILES = ("generation_config.json", "config.json")
"""Where a checkpoint says it; older ones in their configuration."""


class OwnSampling(NamedTuple):
    """What a checkpoint does where a request leaves it open."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = DEFAULT_TOKENS
    repetition_penalty: float = 1.0

    def settle(self, params: Params) -> OwnSampling:
        """Return what is really used for a request: what it says, and for the rest what the checkpoint says."""
        return self._replace(
            temperature=self.temperature if params.temperature is None else params.temperature,
            top_p=self.top_p if params.top_p is None else params.top_p,
            max_tokens=params.max_tokens or self.max_tokens,
        )


def read_own_sampling(table: Mapping[str, Any]) -> OwnSampling:
    """Return the defaults that a generation_config holds."""
    samples = bool(table.get("do_sample"))
    return OwnSampling(
        temperature=float(table.get("temperature") or 1.0) if samples else 0.0,
        top_p=float(table.get("top_p") or 1.0) if samples else 1.0,
        max_tokens=int(table.get("max_new_tokens") or DEFAULT_TOKENS),
        repetition_penalty=float(table.get("repetition_penalty") or 1.0),
    )


def find_own_sampling(checkpoint: str) -> OwnSampling | None:
    """Return the defaults of a checkpoint in a folder before it is loaded; None where that cannot be known yet."""
    folder = Path(checkpoint).expanduser()
    for name in FILES:
        try:
            return read_own_sampling(msgspec.json.decode((folder / name).read_bytes(), type=dict[str, Any]))
        except (OSError, msgspec.DecodeError):
            continue
    return None


def describe_sampling(checkpoint: str, params: Params) -> str:
    """Say how requests with these parameters are sampled, and who said so."""
    own = find_own_sampling(checkpoint)
    if params.temperature is None and own is None:
        return "temperature unset: greedy, unless the checkpoint says otherwise (each record tells)"
    used = (own or OwnSampling()).settle(params)
    how = "greedy" if used.temperature == 0 else f"temperature {used.temperature:g}, top_p {used.top_p:g}"
    return how if params.temperature is not None else f"{how} (temperature unset: the checkpoint's own)"
