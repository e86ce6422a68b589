"""The flags of commands that may be worked by others, to who works; what became of workers is said on stderr."""

from __future__ import annotations

from typing import Any

import click


def take_workers(flags: dict[str, Any]) -> Any:
    """Take `--executor`, `--replicas` and `--ray-address` out of a command's flags and return who works."""
    from ..api.executors import Workers, mapper_for

    executor, replicas, address = (flags.pop(name) for name in ("executor", "replicas", "ray_address"))
    return mapper_for(Workers(executor or "local", replicas, address), lambda note: click.echo(note, err=True))
