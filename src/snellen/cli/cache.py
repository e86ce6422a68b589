"""`snellen cache`: how large the response cache is, and making it smaller."""

from __future__ import annotations

import click

from ..core.text import plural
from .options import FROM_ZERO, MACHINE, defaulted, print_either, print_json

DAY_S = 86_400.0


@click.group(epilog="\b\nExamples:\n  snellen cache info\n  snellen cache prune --older-than-days 30")
def cache() -> None:
    """Look at or prune the response cache."""


@cache.command()
@MACHINE
def info(as_json: bool) -> None:
    """Say where the cache is, how large, and what it holds."""
    from ..api.machine import cache_info

    content = cache_info()
    if as_json:
        print_json(content)
        return
    click.echo(f"{content['path']}: {plural(content['replies'], 'reply')}, {content['bytes'] / 2**20:.1f} MB")
    for model, count in content["models"].items():
        click.echo(f"  {count:8} {model}")


@cache.command()
@defaulted("--older-than-days", type=FROM_ZERO, default=0.0, help="Forget replies older than this.")
@MACHINE
def prune(older_than_days: float, as_json: bool) -> None:
    """Forget cached replies; runs keep theirs."""
    from ..api.machine import prune_cache

    removed = prune_cache(older_than_days * DAY_S)
    print_either({"removed": removed}, f"{plural(removed, 'reply')} forgotten", as_json)
