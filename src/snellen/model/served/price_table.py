"""A table of prices as LiteLLM publishes it to the user's own: what is sure is taken, the rest is counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError, UsageError
from ...data.catalog import Catalog
from .model_card import ModelCard, PriceTable
from .prices import Prices
from .provider_card import DIALECTS

OUR_NAMES = {"together_ai": "together", "fireworks_ai": "fireworks", "nvidia_nim": "nvidia"}
"""Providers that the table knows by another name than our cards."""
MODES = ("chat", "responses", "completion")
ABOVE = re.compile(r"(?:input|output)_cost_per_token_above_(\d+)k_tokens")


def provider_addresses() -> dict[str, str]:
    """Return provider -> where it is; those without a known address are left out."""
    catalog = Catalog()
    cards = {name: str(catalog.card("providers", name).get("base_url", "")) for name in catalog.names("providers")}
    return {name: dialect.default_url for name, dialect in DIALECTS.items()} | {
        name: address for name, address in cards.items() if address
    }


def read_litellm_table(file: Path, as_of: str | None = None) -> tuple[PriceTable, Counter[str]]:
    """Return the models with both prices, and how many entries were left out for which reason.

    The table has no date: that of the file is taken where none is given.
    """
    try:
        entries = msgspec.json.decode(file.read_bytes())
        dated = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{file} is not a JSON table of prices: {error}") from None
    if not isinstance(entries, dict):
        raise DataError(f"{file} is not a table of prices: it holds no names of models")
    day, addresses = _read_day(as_of) if as_of else dated, provider_addresses()
    models: dict[str, ModelCard] = {}
    left_out: Counter[str] = Counter()
    for name, entry in entries.items():
        card = _read_entry(name, entry, day, addresses)
        if isinstance(card, str):
            left_out[card] += 1
        else:
            models[card.model] = card
    if not models:
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.most_common())
        raise DataError(f"{file} has no model with prices that we know ({reasons or 'it is empty'})")
    return PriceTable(day, file.name, models), left_out


def _read_day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"--as-of {text!r} is not a day: write it as 2026-08-08") from None


def _read_entry(name: str, entry: Any, day: str, addresses: Mapping[str, str]) -> ModelCard | str:
    """Return an entry as a card, or why it is left out."""
    if not isinstance(entry, dict) or entry.get("mode", "chat") not in MODES:
        return "not a chat model"
    theirs = str(entry.get("litellm_provider", ""))
    provider = OUR_NAMES.get(theirs, theirs)
    if provider not in addresses:
        return "of a provider without a card"
    prices = _read_prices(entry, day)
    if prices is None:
        return "without both prices"
    bare = name.removeprefix(f"{theirs}/")
    context, longest = (
        value if isinstance(value := entry.get(f"max_{kind}_tokens"), int) else None for kind in ("input", "output")
    )
    thinks = entry.get("supports_reasoning")
    return ModelCard(
        f"{provider}/{bare}",
        base_url=addresses[provider],
        prices=prices,
        context=context,
        max_output=longest,
        thinks=thinks if isinstance(thinks, bool) else None,
        source=str(entry.get("source", "")),
    )


def _read_prices(entry: Mapping[str, Any], day: str) -> Prices | None:
    tiers = entry.get("tiered_pricing")
    first = tiers[0] if isinstance(tiers, list) and tiers and isinstance(tiers[0], dict) else None
    flat: Mapping[str, Any] = entry if first is None else first
    given, out, cached = (
        _per_million(flat.get(key))
        for key in ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    )
    if given is None or out is None:
        return None
    written, upto = _per_million(flat.get("cache_creation_input_token_cost")), _up_to(entry, first)
    prices = Prices(given, out, "USD", cached, upto, cache_write_per_million=written)
    return msgspec.structs.replace(prices, as_of=day, mark="seen", source="LiteLLM's table")


def _per_million(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    return round(value * 1e6, 9)


def _up_to(entry: Mapping[str, Any], tier: Mapping[str, Any] | None) -> int | None:
    """Return up to how many input tokens a request has this price; None: whatever its length."""
    limits = [int(found[1]) * 1000 for key in entry if (found := ABOVE.fullmatch(key))]
    bounds = tier.get("range") if tier is not None else None
    if isinstance(bounds, list) and len(bounds) == 2 and isinstance(bounds[1], int | float):
        limits.append(int(bounds[1]))
    return min(limits, default=None)
