"""The number of the table of levels: with it a name such as `jpeg:3` means the same picture for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CALIBRATION = 3
"""What new runs and folders use. 1: the table of releases 0.1 and 0.2, which stated no number; 2 was not released."""
UNSTATED = 1


def calibrated_variant(variant: str) -> str:
    """Return a variant as a run's identity holds it: with the number, if it degrades anything."""
    axes = variant.split("&")
    return "&".join(f"{axis}@{CALIBRATION}" if axis.startswith("perturb=") else axis for axis in axes)


def stated_calibration(config: Mapping[str, Any]) -> dict[str, int]:
    """Return `{"perturb_calibration": N}` of a run's identity, or nothing if the run degrades no picture."""
    variants = [str(variant) for task in (config.get("tasks") or {}).values() for variant in task.get("variants", ())]
    parts = [part for variant in variants for part in variant.split("&") if part.startswith("perturb=")]
    numbers = [part.partition("@")[2] for part in parts]
    return {"perturb_calibration": int(numbers[0] or UNSTATED)} if numbers else {}
