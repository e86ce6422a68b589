"""Cards of models to be looked at, and a table of prices into the user's own folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...model.providers.model_card import ModelCard, show_model_card, table_path
from ...model.providers.picture_tokens import ASSUMED
from ...model.providers.price_table import read_litellm_table
from ...report.files import write_atomically
from .cost_words import describe_prices

SHOWN_SIZE = (1024, 1024)


def look_up_model(name: str, catalogs: Sequence[Path] = ()) -> tuple[str, ModelCard]:
    """Return where a model is described, and its card."""
    return show_model_card(name, catalogs)


def describe_card(where: str, card: ModelCard) -> Iterator[str]:
    """Say what a card says, line by line; what it does not say is said to be unknown."""
    yield f"{card.model}: {where}" + (f", holds at {card.base_url}" if card.base_url else "")
    yield f"  prices: {describe_prices(card.prices) if card.prices else 'not known: give them by --price IN,OUT'}"
    if card.prices and card.prices.source:
        yield f"  prices from: {card.prices.source}"
    formula = card.pictures or ASSUMED
    across, down = SHOWN_SIZE
    told = f"{formula.count(SHOWN_SIZE):,} tokens for {across} x {down} px"
    yield f"  pictures: {told}, by {formula.kind} ({formula.mark or 'on the card'})"
    limits = (("context", card.context), ("longest reply", card.max_output), ("pictures", card.max_images))
    known = [f"{name} {value:,}" for name, value in (*limits, ("longest side", card.max_side)) if value is not None]
    yield f"  limits: {', '.join(known) or 'not known'}"
    yield f"  thinks: {'not known' if card.thinks is None else 'yes' if card.thinks else 'no'}"
    if card.from_memory:
        yield f"  from memory, not seen: {', '.join(card.from_memory)}"
    if card.note:
        yield f"  {card.note}"


def update_prices(file: Path, as_of: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """Write the user's own table of prices; return what was taken and what not, as data and in words."""
    table, left_out = read_litellm_table(file, as_of)
    path = table_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    body = msgspec.json.encode(table)
    write_atomically(path, lambda out: out.write(body))
    summary = {"models": len(table.models), "as_of": table.as_of, "left_out": dict(left_out), "file": str(path)}
    lines = [f"{len(table.models):,} models with prices of {table.as_of} in {path}"]
    lines += [f"left out: {count:,} {reason}" for reason, count in left_out.most_common()]
    return summary, lines
