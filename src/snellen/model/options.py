"""What every model provider is created with."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.clock import Clock, SystemClock
from ..core.errors import UsageError, not_among
from ..core.protocols import ImagePolicy
from ..core.secret import Secret


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Where a model is and how it is reached; nothing here is a sampling parameter."""

    base_url: str | None = None
    api_key: Secret | None = None
    timeout_s: float = 600.0
    image_policy: ImagePolicy | None = None
    """Overrides the provider's own policy."""
    strip_metadata: bool = False
    """Whether a provider gets pictures without their metadata."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """`--model-arg key=value`: provider-specific (dtype, device, batch_size, engine)."""
    headers: Mapping[str, Secret] = field(default_factory=dict)
    """`--header NAME=VALUE`: sent with every request, never stored."""
    query: Mapping[str, str] = field(default_factory=dict)
    """`--query NAME=VALUE`: behind the address of every request."""
    reasoning: str | None = None
    """`--reasoning`: off, low, medium, high, on, or a number of tokens; None leaves it to the model."""
    strict_params: bool = False
    """Refuse instead of sending otherwise what a server does not take."""
    key_command: str | None = None
    """`--api-key-command`: prints the key or a token; asked again when the server no longer takes it."""
    renew_key: Callable[[], Secret] | None = None
    """Another source of tokens, asked again in the same way."""
    constrain: str | None = None
    """`--constrain`: options (one of the marks and nothing else) or json; None leaves the reply free."""
    prompt_cache: bool = False
    """Mark what requests share (pages, instructions) to be kept, where a provider keeps only what is marked."""
    infer_method: str = "generation"
    """generation or likelihood: what a loader that prepares for one of them is told."""
    clock: Clock = field(default_factory=SystemClock)

    def allow_arguments(self, provider: str, known: Sequence[str] = ()) -> None:
        """Refuse a `--model-arg` that the provider does not know: it would be stored, and change nothing."""
        for name in self.arguments:
            if not known:
                raise UsageError(f"--model-arg {name}: {provider} takes none")
            if name not in known:
                raise UsageError(f"--model-arg of {provider}: unknown name {not_among(name, known)}")


def first_set(*names: str) -> str:
    """Return what the first of some variables of the environment holds that is set; nothing where none is."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")


def address_variable(provider: str) -> str:
    """Return the variable that says where a provider is: `VLLM_SERVER_BASE_URL`."""
    return f"{provider.upper().replace('-', '_')}_BASE_URL"


class Served:
    """What every model behind an address is, for who only asks whether one is: HTTP is imported with the model."""

    image_policy: ImagePolicy
    batches: str
    """The kind of batches that the provider takes (catalog/servers/batches.toml); empty: none."""
