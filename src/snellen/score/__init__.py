"""Pure: stored trials to scores, scores to estimates.

`snellen.score` is this room and also the public function of that name: the room can be called.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """Importing any module of the room binds `snellen.score` to it, so the function must live on the room itself."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return importlib.import_module("snellen.api.score").score(*arguments, **options)


sys.modules[__name__].__class__ = _Room
