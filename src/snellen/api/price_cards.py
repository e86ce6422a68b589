"""Cards of models to be looked at, and a table of prices into the user's own folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..model.served.model_card import ASSUMED, ModelCard, PictureTokens, read_litellm_table, show_model_card, table_path
from ..report.files import write_atomically
from .run_cost import describe_prices

SHOWN_SIZE = (1024, 1024)
THINKS = {None: "not known", True: "yes", False: "no"}


def look_up_model(name: str, catalogs: Sequence[Path] = ()) -> tuple[str, ModelCard]:
    """Return where a model is described, and its card."""
    return show_model_card(name, catalogs)


def describe_card(where: str, card: ModelCard) -> Iterator[str]:
    """Say what a card says, line by line; what it does not say is said to be unknown."""
    yield f"{card.model}: {where}" + (f", holds at {card.base_url}" if card.base_url else "")
    yield f"  prices: {describe_prices(card.prices) if card.prices else 'not known: give them by --price IN,OUT'}"
    yield f"  pictures: {_describe_pictures(card.pictures or ASSUMED)}"
    yield f"  limits: {_describe_limits(card) or 'not known'}"
    yield f"  thinks: {THINKS[card.thinks]}"
    if card.coordinates is not None:
        yield f"  coordinates: {card.coordinates}"
    more = (card.prices.source if card.prices else "", ", ".join(card.from_memory), card.note)
    for name, text in zip(("prices from: ", "from memory, not seen: ", ""), more, strict=True):
        if text:
            yield f"  {name}{text}"


def _describe_pictures(formula: PictureTokens) -> str:
    across, down = SHOWN_SIZE
    told = f"{formula.count(SHOWN_SIZE):,} tokens for {across} x {down} px"
    return f"{told}, by {formula.kind} ({formula.mark or 'on the card'})"


def _describe_limits(card: ModelCard) -> str:
    known = {"context": card.context, "longest reply": card.max_output}
    known |= {"pictures": card.max_images, "longest side": card.max_side}
    return ", ".join(f"{name} {value:,}" for name, value in known.items() if value is not None)


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
