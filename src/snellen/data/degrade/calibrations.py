"""The number of the table of levels: with it a name such as `jpeg:3` means the same picture for ever."""

from __future__ import annotations

CALIBRATION = 2
"""What new runs and folders use. 1 is the table of releases 0.1 and 0.2, which stated no number."""
UNSTATED = 1


def calibrated_variant(variant: str) -> str:
    """Return a variant as a run's identity holds it: with the number, if it degrades anything."""
    axes = variant.split("&")
    return "&".join(f"{axis}@{CALIBRATION}" if axis.startswith("perturb=") else axis for axis in axes)
