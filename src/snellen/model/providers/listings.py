"""A server's answer about its models to what it says of each of them."""

from __future__ import annotations

from typing import Any

TELLING = ("root", "parent", "owned_by", "max_model_len", "version")
"""What an entry of /models says of a checkpoint; its date and its permissions are new each time."""


def read_listing(value: Any) -> dict[str, dict[str, Any]]:
    """Return what a server says of each of its models and does not change from one question to the next."""
    rows = value.get("data") or value.get("models") if isinstance(value, dict) else None
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    named = {str(row.get("id") or row.get("name") or "").removeprefix("models/"): row for row in rows}
    return {name: {key: row[key] for key in TELLING if row.get(key) is not None} for name, row in named.items() if name}
