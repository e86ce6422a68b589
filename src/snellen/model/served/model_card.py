"""What is known of one model as data: limits, how it counts pictures, what its tokens cost and since when."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...core.config import convert
from ...core.errors import ConfigError, DataError, UsageError, did_you_mean
from ...core.folders import config_folder
from ...core.frames import Size, read_frame
from ...data.catalog import Catalog
from ...data.visual_tokens import area_tokens, crop_tokens, patch_tokens, tile_tokens, visual_tokens
from .prices import Prices, parse_price


class PictureTokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One formula of a card (`[pictures]`): its kind, and the figures that this kind needs."""

    kind: str
    base: int = 0
    """tiles: for the whole picture; flat: for every picture; family: what is added to each."""
    tile: int = 0
    multiplier: float = 1.0
    cap: int = 1536
    """patches: how many at most."""
    area: float = 750.0
    """area: pixels a token."""
    max_side: int | None = None
    max_pixels: int | None = None
    family: str = ""
    """family: one of `snellen.data.visual_tokens.FAMILIES`."""
    mark: str = ""
    """`seen` in a source, or `from memory`."""

    def count(self, size: Size) -> int:
        """Return the tokens of one picture of this width and height."""
        return KINDS[self.kind](size, self)

    def __post_init__(self) -> None:
        """Refuse a kind that no formula has."""
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r} is none of {', '.join(KINDS)}")


KINDS: Mapping[str, Callable[[Size, PictureTokens], int]] = {
    "flat": lambda size, card: card.base,
    "tiles": lambda size, card: tile_tokens(size, base=card.base, tile=card.tile),
    "patches": lambda size, card: patch_tokens(size, cap=card.cap, multiplier=card.multiplier),
    "area": lambda size, card: area_tokens(size, area=card.area, max_side=card.max_side, max_pixels=card.max_pixels),
    "crops": lambda size, card: crop_tokens(size, tile=card.tile),
    "family": lambda size, card: visual_tokens([size], card.family) + card.base,
}
"""The formulas are those of `docs` (`snellen.data.visual_tokens`): a page costs the same in both."""
ASSUMED = PictureTokens("area", mark="assumed")
"""Where no card has a formula: 750 pixels a token; whoever uses it says so."""


DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
"""How providers name one day's version of a model: it has the price of the model."""
TABLE = "prices.json"


class ModelCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of catalog/models, or one entry of the user's own table; what nobody said is None."""

    model: str
    """As it is named on the command line: `provider/name`."""
    base_url: str = ""
    """Where this model is what the card says; elsewhere something else may have its name. Empty: anywhere."""
    prices: Prices | None = None
    pictures: PictureTokens | None = None
    characters_per_token: float | None = None
    """Of plain text; None: 3.5 of an alphabet, one of Chinese, Japanese or Korean."""
    context: int | None = None
    max_output: int | None = None
    max_images: int | None = None
    max_side: int | None = None
    max_bytes: int | None = None
    """Of one picture as it is sent; larger ones are made smaller."""
    thinks: bool | None = None
    coordinates: str | None = None
    """The frame in which it gives points and boxes where nobody tells it one, as `core/frames.py` spells it."""
    from_memory: tuple[str, ...] = ()
    """Fields that are remembered, not seen; they are never a reason to refuse."""
    note: str = ""
    source: str = ""


class PriceTable(msgspec.Struct, frozen=True):
    """The user's own table, as `snellen models update` wrote it."""

    as_of: str
    source: str
    models: dict[str, ModelCard]


class FoundCard(NamedTuple):
    """What is known of a model here, and why it is no more."""

    card: ModelCard | None
    where: str
    """The card or table it stands in; or why there is none."""

    def prices(self, told: str | None) -> Prices | None:
        """Return what tokens cost: as `--price` tells it, else as the card says; None where nobody does."""
        return parse_price(told) or (self.card.prices if self.card else None)


def table_path() -> Path:
    """Return where the user's own table of prices lies: never in the package."""
    return config_folder() / TABLE


def read_price_table() -> PriceTable | None:
    """Return the user's own table, if there is one."""
    path = table_path()
    try:
        return msgspec.json.decode(path.read_bytes(), type=PriceTable)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error}): write it anew with `snellen models update FILE`") from None


def find_model_card(model: str, address: str | None, catalogs: Sequence[Path] = ()) -> FoundCard:
    """Return what is known of `provider/name` served at an address; a card of --catalog, the own table, ours.

    A name with a date behind it is looked for without it too; nothing else is taken for the same model.
    """
    card, where = _described(model, catalogs)
    if card is not None and card.base_url and not same_place(card.base_url, address):
        return FoundCard(None, f"{where} is of {card.base_url}, and this is {address or 'not served'}")
    return FoundCard(card, where)


def show_model_card(model: str, catalogs: Sequence[Path] = ()) -> tuple[str, ModelCard]:
    """Return where a model is described and its card, wherever it is served; a name nobody knows is a UsageError."""
    card, where = _described(model, catalogs)
    if card is not None:
        return where, card
    table = read_price_table()
    known = [card.model for _, card in _cards(catalogs)] + list(table.models if table else ())
    raise UsageError(f"no card of a model named {model!r}{did_you_mean(model, known)}; see docs/models.md")


def _known_as(name: str, catalogs: Sequence[Path]) -> Iterator[tuple[str, ModelCard]]:
    cards = [(key, card) for key, card in _cards(catalogs, name) if card.model == name]
    shipped = set(Catalog().names("models")) if cards else set()
    yield from ((f"card {key}", card) for key, card in cards if key not in shipped)
    table = read_price_table()
    if table is not None and name in table.models:
        theirs = table.models[name]
        ours = next((card for key, card in cards if key in shipped), None)
        yield f"table {table_path()}", _filled(theirs, ours)
    yield from ((f"card {key}", card) for key, card in cards if key in shipped)


def _described(model: str, catalogs: Sequence[Path]) -> FoundCard:
    """Return the first card of a model, wherever that is served."""
    for name in dict.fromkeys((model, DATED.sub("", model))):
        for where, card in _known_as(name, catalogs):
            return FoundCard(card, where)
    return FoundCard(None, f"no card and no table names {model}")


def _filled(card: ModelCard, other: ModelCard | None) -> ModelCard:
    """Return a card with what it does not say taken from another: a table of prices has no picture formulas."""
    if other is None:
        return card
    fields = (
        "pictures",
        "characters_per_token",
        "context",
        "max_output",
        "max_images",
        "max_side",
        "max_bytes",
        "thinks",
        "coordinates",
    )
    missing = {name: getattr(other, name) for name in fields if getattr(card, name) is None}
    return msgspec.structs.replace(card, **missing)


def _cards(catalogs: Sequence[Path], name: str = "") -> Iterator[tuple[str, ModelCard]]:
    for key, table in Catalog(catalogs).cards("models", mentioning=name):
        if "model" in table:
            yield key, read_model_card(key, table)


def read_model_card(key: str, table: dict[str, Any]) -> ModelCard:
    """Return a card; one that prices one side only is refused: the other would count as free."""
    card = convert(table, ModelCard, f"model card {key!r}")
    if card.coordinates is not None:
        try:
            read_frame(card.coordinates)
        except ConfigError as error:
            raise ConfigError(f"model card {key!r}, coordinates: {error}") from None
    given = table.get("prices")
    if given is not None and not {"input_per_million", "output_per_million"} <= given.keys():
        raise ConfigError(f"model card {key!r}: [prices] needs input_per_million and output_per_million")
    return card


def same_place(ours: str, address: str | None) -> bool:
    """Tell whether two addresses are of one host."""
    here, there = (re.sub(r"^https?://", "", text or "").split("/")[0].lower() for text in (ours, address))
    return here == there


OUR_NAMES = {"together_ai": "together", "fireworks_ai": "fireworks", "nvidia_nim": "nvidia"}
"""Providers that the table knows by another name than our cards."""
MODES = ("chat", "responses", "completion")
ABOVE = re.compile(r"(?:input|output)_cost_per_token_above_(\d+)k_tokens")


def provider_addresses() -> dict[str, str]:
    """Return provider -> where it is; those without a known address are left out."""
    from .provider_card import DIALECTS  # speaks HTTP: most who ask for a card do not

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
