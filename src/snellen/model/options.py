"""What every model provider is created with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.clock import Clock, SystemClock
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
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """`--model-arg key=value`: provider-specific (dtype, device, batch_size, engine)."""
    clock: Clock = field(default_factory=SystemClock)
