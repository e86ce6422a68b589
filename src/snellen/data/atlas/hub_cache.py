"""The hub's own cache to the folder of a benchmark that another tool fetched; nothing is asked of any server.

The layout is the one the hub documents: datasets--OWNER--NAME/refs/main names the newest revision, whose files stand
in snapshots/REVISION. It is read without the hub's library, which need not be installed where data only lies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ...core.errors import DataError
from .card_sources import CardSource
from .fetch import wanted_files


def hub_cache() -> Path:
    """Return the hub's cache, as its library finds it."""
    if told := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(told).expanduser()
    home = os.environ.get("HF_HOME")
    base = Path(home).expanduser() if home else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return base.expanduser() / "hub"


def cached_data(sources: Mapping[str, CardSource]) -> Path | None:
    """Return the newest snapshot that holds a table of a source's config and split; None where there is none."""
    for source in sources.values():
        for spelling in source.ids:
            for snapshot in _snapshots(hub_cache() / f"datasets--{spelling.replace('/', '--')}"):
                files = [path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()]
                with suppress(DataError):  # a snapshot without its tables: only a README was looked at
                    next(wanted_files(files, source, spelling))
                    return snapshot
    return None


def _snapshots(folder: Path) -> Iterator[Path]:
    """Yield the revision that `main` was last, then the others, newest first."""
    held = [path for path in folder.glob("snapshots/*") if path.is_dir()]
    with suppress(OSError):
        main = (folder / "refs" / "main").read_text("utf-8").strip()
        held.sort(key=lambda path: (path.name == main, path.stat().st_mtime), reverse=True)
    yield from held
