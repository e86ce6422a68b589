"""Models behind the doors of clouds and gateways: addresses by region and project, signatures, tokens."""

from __future__ import annotations

from ...core.registry import Registry


def register(registry: Registry) -> None:
    """Add the providers `bedrock`, `vertex` and `litellm`."""
    for name in ("bedrock", "vertex", "litellm"):
        registry.add("model", name, f"snellen.kits.clouds.{name}_model:create")
