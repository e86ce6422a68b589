"""A task's results to a table of comparison: the model, blind rules on the same items, and published rows from a card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from rich.table import Table

from ..core.config import convert
from ..data.catalog import Catalog
from .terminal import plain

BLIND_SUFFIX = "_blind"


class Published(Struct, frozen=True, forbid_unknown_fields=True):
    """A card of catalog/published: figures in per cent, for orientation."""

    title: str
    metrics: tuple[str, ...]
    rows: list[dict[str, Any]]
    source: str = ""
    convention: str = ""
    note: str = ""


def published_for(catalog: Catalog, task: str) -> Published | None:
    """Return the card of a task or of its family (`cure-cot` belongs to `cure`), or None."""
    known = catalog.names("published")
    name = next((each for each in sorted(known, key=len, reverse=True) if task == each or task.startswith(f"{each}-")), None)
    return convert(catalog.card("published", name), Published, f"published card {name!r}") if name else None


def comparison_rows(metrics: Mapping[str, Any], card: Published, model: str) -> list[tuple[str, dict[str, float | None]]]:
    """Return (name, metric -> per cent): the model first, then blind rules, then the published rows."""
    own = {name: _per_cent(metrics.get(name)) for name in card.metrics}
    rules: dict[str, dict[str, float | None]] = {}
    for key in metrics:
        if key.endswith(BLIND_SUFFIX):
            name, _, rule = key.removesuffix(BLIND_SUFFIX).partition("_")
            rules.setdefault(f"rule {rule}, blind", {})[name] = _per_cent(metrics[key])
    published = [(f"{row['name']} (published)", {name: row.get(name) for name in card.metrics}) for row in card.rows]
    return [(model, own), *rules.items(), *published]


def comparison_table(metrics: Mapping[str, Any], card: Published, model: str) -> Table:
    """Return the rows as a table, with what must be said about them below."""
    table = Table(title=plain(f"beside it, in per cent ({card.convention})"), title_justify="left", title_style="dim")
    table.caption, table.caption_justify = plain(f"{card.note} Published: {card.source}."), "left"
    table.add_column("")
    for name in card.metrics:
        table.add_column(plain(name), justify="right")
    for name, values in comparison_rows(metrics, card, model):
        table.add_row(plain(name), *("–" if (value := values.get(metric)) is None else f"{value:.1f}" for metric in card.metrics))
    return table


def _per_cent(estimate: Mapping[str, Any] | None) -> float | None:
    value = estimate["value"] if estimate else None
    return None if value is None else 100.0 * value
