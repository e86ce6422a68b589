"""What commands need of recipes and adapters, without the trainers."""

from __future__ import annotations

from pathlib import Path

from .recipe import Recipe, check_recipe, read_recipe

__all__ = ["Recipe", "check_recipe", "merge_tuned", "read_recipe"]


def merge_tuned(folder: Path, output: Path, base: str | None = None) -> Path:
    """Write base and adapter as whole weights."""
    from .adapters import merge_adapter
    from .rationale import import_trainers

    import_trainers()
    return merge_adapter(folder, output, base)
