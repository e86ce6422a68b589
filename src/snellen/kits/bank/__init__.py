"""The bank: fewer questions, a gate for releases, gold answers with a history.

    from snellen.kits.bank import build, check, gate, audit
    bank = build(["runs", "table.csv"], "mmmu.bank")

Names are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "build": "build",
    "check": "check",
    "card_lines": "check",
    "gate": "gate",
    "audit": "audit",
    "read_errata": "errata",
    "diff": "data_diff",
    "plan_questions": "planning",
}

if TYPE_CHECKING:
    from .audit import audit as audit
    from .build import build as build
    from .check import card_lines as card_lines
    from .check import check as check
    from .data_diff import diff as diff
    from .errata import read_errata as read_errata
    from .gate import gate as gate
    from .planning import plan_questions as plan_questions

__all__ = ["audit", "build", "card_lines", "check", "diff", "gate", "plan_questions", "read_errata"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'snellen.kits.bank' has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
