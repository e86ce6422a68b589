"""Where Snellen keeps what can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return SNELLEN_CACHE_DIR, or `snellen` in the user's cache folder."""
    own = os.environ.get("SNELLEN_CACHE_DIR")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "snellen"
