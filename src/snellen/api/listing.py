"""The catalog to what can be listed: tasks with their data, suites, model providers, published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.builtins import default_registry
from ..core.errors import UsageError, not_among
from ..core.tasks import Task
from ..data.catalog import Catalog
from ..report.terminal import Published, published_for

DRAWN = ("eyechart", "film")
"""Loaders that bring their data with them."""
KEPT = ("card", "table")
"""Loaders whose data has a place of its own under the data root; another may know its own (`data_here`)."""


def read_task(name: str, catalogs: Sequence[Path] = ()) -> Task:
    """Return one task of the catalog as it would be run."""
    return Catalog(catalogs).task(name)


def read_card_table(name: str, catalogs: Sequence[Path] = ()) -> dict[str, Any]:
    """Return a task's card whole, with all its protocols and sources."""
    return Catalog(catalogs).task_table(name)


def list_tasks(catalogs: Sequence[Path] = (), data_root: Path | None = None) -> list[dict[str, Any]]:
    """Return a row a task: name, form, dimension, title, version, licence, and the data found for it."""
    catalog = Catalog(catalogs)
    return [_row(catalog.task(name), name, data_root) for name in catalog.names("datasets")]


def list_suites(catalogs: Sequence[Path] = ()) -> dict[str, list[str]]:
    """Return suite -> the names of its tasks."""
    catalog = Catalog(catalogs)
    return {name: catalog.expand(name) for name in catalog.names("suites")}


def list_providers() -> list[str]:
    """Return the model providers that are installed, plug-in packages included."""
    return default_registry().names("model")


def list_provider_cards(catalogs: Sequence[Path] = ()) -> dict[str, str]:
    """Return the providers that are cards, each with who it is."""
    catalog = Catalog(catalogs)
    return {name: catalog.card("providers", name)["title"] for name in catalog.names("providers")}


def ready_config(name: str, catalogs: Sequence[Path] = ()) -> dict[str, Any]:
    """Return a model file of the catalog (`configs/NAME.toml`) as a plain table."""
    catalog = Catalog(catalogs)
    known = catalog.names("configs")
    if name not in known:
        raise UsageError(f"--config: no file and no ready configuration is called {not_among(name, known)}")
    return catalog.card("configs", name)


def published_card(task: str, metrics: Mapping[str, Any]) -> Published | None:
    """Return the published figures to set beside a task's metrics, or None where there is nothing to compare with."""
    return published_for(Catalog(), task, metrics)


def _row(task: Task, name: str, data_root: Path | None) -> dict[str, Any]:
    return {
        "name": name,
        "form": task.form.value,
        "dimension": task.dimension,
        "title": task.title,
        "version": task.version,
        "licence": task.licence,
        "data": _data_here(task, data_root),
    }


def _data_here(task: Task, data_root: Path | None) -> list[str]:
    """Return where a task's data lies, or that it is drawn; nothing where somebody must bring it first."""
    from ..data.atlas.card_rows import has_card_data  # only the listing needs the machinery behind cards

    loader = task.dataset["loader"]
    if loader in DRAWN:
        return ["built in"]
    if loader in KEPT:
        return has_card_data(task, data_root)
    looked_for = getattr(default_registry().get("loader", loader), "data_here", None)
    found: list[str] = looked_for(task, data_root) if looked_for else []
    return found
