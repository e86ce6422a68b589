"""A model and what changes its replies to the header of run.db: the one place where a header is made."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from ..core.ids import content_hash
from ..core.protocols import Model
from ..core.tasks import PlannedCounts, RunHeader, Task

VERSIONED = ("snellen", "numpy", "pillow", "msgspec", "aiohttp")


def make_header(
    model: Model,
    config: Mapping[str, Any],
    *,
    versions: Mapping[str, str],
    command: str = "",
    tasks: Sequence[Task] = (),
    planned: Mapping[str, int] | None = None,
    counted: Mapping[str, PlannedCounts] | None = None,
) -> RunHeader:
    """Return the header of a run; its id is the hash of `config` and of the model, wherever that is served."""
    identity = {key: value for key, value in model.identity().items() if key != "base_url"}
    whole = msgspec.json.encode({"model": identity, **config})
    read_back = msgspec.json.decode(whole)  # as it will be read from the file, so that equal is equal
    return RunHeader(
        id=content_hash(read_back),
        config=read_back,
        versions=dict(versions),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        model=model.name,
        tasks=list(tasks),
        planned=dict(planned or {}),
        counted=dict(counted or {}),
    )


@cache
def installed_versions() -> Mapping[str, str]:
    """Return what a run is made with; packages do not change while a process runs."""
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for package in VERSIONED:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions
