"""`snellen cache`: how large the response cache is, and making it smaller."""

from __future__ import annotations

import time

import click
import msgspec

DAY_S = 86_400.0


@click.group(epilog="\b\nExamples:\n  snellen cache info\n  snellen cache prune --older-than-days 30")
def cache() -> None:
    """Look at or prune the response cache."""


@cache.command()
@click.option("--json", "as_json", is_flag=True, help="Machine output.")
def info(as_json: bool) -> None:
    """Say where the cache is, how large, and what it holds."""
    from ..core.folders import cache_folder
    from ..store.cache import ResponseCache

    store = ResponseCache(cache_folder() / "responses.db")
    found = store.info()
    store.close()
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    click.echo(f"{found['path']}: {found['replies']} replies, {found['bytes'] / 2**20:.1f} MB")
    for model, count in found["models"].items():
        click.echo(f"  {count:8} {model}")


@cache.command()
@click.option(
    "--older-than-days",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Forget replies older than this.",
)
@click.option("--json", "as_json", is_flag=True, help="Machine output.")
def prune(older_than_days: float, as_json: bool) -> None:
    """Forget cached replies; runs keep theirs."""
    from ..core.folders import cache_folder
    from ..store.cache import ResponseCache

    store = ResponseCache(cache_folder() / "responses.db")
    removed = store.prune(older_than_days * DAY_S, time.time())
    store.close()
    click.echo(msgspec.json.encode({"removed": removed}).decode() if as_json else f"{removed} replies forgotten")
