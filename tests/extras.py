"""Optional packages that take seconds to import: looked for when tests are collected, imported by the first that uses one.

Every worker collects every file; `pytest.importorskip` would import torch and trl in each of them.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class Late:
    """A module that is imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # what pytest asks of everything it finds in a file
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


def needs(*names: str) -> Late:
    """Skip the calling file where one of the packages is missing; return the first of them."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed", allow_module_level=True)
    return Late(names[0])
