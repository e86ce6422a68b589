"""Where Snellen keeps what can be made again, and what people gave it."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return SNELLEN_CACHE_DIR, or `snellen` in the user's cache folder."""
    own = os.environ.get("SNELLEN_CACHE_DIR")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "snellen"


def config_folder() -> Path:
    """Return SNELLEN_CONFIG_DIR, or `snellen` in the user's configuration folder: what people gave us to keep."""
    own = os.environ.get("SNELLEN_CONFIG_DIR")
    return Path(own) if own else Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "snellen"
