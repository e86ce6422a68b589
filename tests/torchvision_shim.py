"""Makes torchvision importable beside a torch it was not compiled for: its image transforms are plain torch.

The published wheel is linked against CUDA; beside a CPU torch its operators cannot be registered, and its import stops
where it describes them. Import this first: the names are then there, and nothing here ever calls them.
"""

from __future__ import annotations

import importlib.util
from typing import Any

SCHEMAS = {"nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"}
SCHEMAS |= {"qnms": SCHEMAS["nms"]}
_kept: list[Any] = []


def has_torchvision() -> bool:
    """Tell whether torchvision is installed."""
    return importlib.util.find_spec("torchvision") is not None


def define_operators() -> None:
    """Define the names of the operators that the import of torchvision describes."""
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for name, schema in SCHEMAS.items():
        library.define(name + schema)
    _kept.append(library)  # names last as long as the library object
