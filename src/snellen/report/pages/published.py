"""A task's results to a table of comparison: the model, blind rules on the same items, published rows from a card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from rich.table import Table

from ...core.config import convert
from ...data.catalog import Catalog
from ..terminal import plain

BLIND_SUFFIX = "_blind"


class Published(Struct, frozen=True, forbid_unknown_fields=True):
    """A card of catalog/published: figures in per cent, for orientation; without a card, no rows."""

    title: str = ""
    metrics: tuple[str, ...] = ("Rh", "Rcot", "Ro", "Cf", "Cb")
    rows: list[dict[str, Any]] = []
    source: str = ""
    convention: str = ""
    note: str = ""


def published_for(catalog: Catalog, task: str, metrics: Mapping[str, Any]) -> Published | None:
    """Return the card of a task or of its family (`cure-cot` belongs to `cure`); None where there is nothing."""
    families = sorted(catalog.names("published"), key=len, reverse=True)
    name = next((family for family in families if task == family or task.startswith(f"{family}-")), None)
    if name is None:
        return Published() if any(metric.endswith(BLIND_SUFFIX) for metric in metrics) else None
    return convert(catalog.card("published", name), Published, f"published card {name!r}")


def comparison_rows(
    metrics: Mapping[str, Any], card: Published, model: str
) -> list[tuple[str, dict[str, float | None]]]:
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
    convention = f" ({card.convention})" if card.convention else ""
    table = Table(title=plain(f"beside it, in per cent{convention}"), title_justify="left", title_style="dim")
    if card.rows:
        table.caption, table.caption_justify = plain(f"{card.note} Published: {card.source}."), "left"
    table.add_column("")
    for name in card.metrics:
        table.add_column(plain(name), justify="right")
    for name, values in comparison_rows(metrics, card, model):
        table.add_row(
            plain(name), *("–" if (value := values.get(metric)) is None else f"{value:.1f}" for metric in card.metrics)
        )
    return table


def _per_cent(estimate: Mapping[str, Any] | None) -> float | None:
    value = estimate["value"] if estimate else None
    return None if value is None else 100.0 * value
