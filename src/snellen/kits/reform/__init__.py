"""ReForm-Eval: runs as its own result files."""

from __future__ import annotations

from ...core.registry import Registry


def register(registry: Registry) -> None:
    """Add the form of its result files."""
    registry.add("export", "reform", "snellen.kits.reform.run_files:write")
