"""CURE: annotations of chains, the inference asked after its own chain, and what words alone give away of them."""

from __future__ import annotations

from ...core.registry import Registry


def register(registry: Registry) -> None:
    """Add the loader of its files, the order of its calls, and the blind baselines of its figures."""
    here = "snellen.kits.cure"
    registry.add("loader", "cure", f"{here}.loader:LOADER")
    registry.add("inferencer", "chain", f"{here}.chain:CHAIN")
    registry.add("aggregate", "cure", f"{here}.blind_baselines:aggregate")
