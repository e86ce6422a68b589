"""Tokens to money: what a million of them costs, live or in batches, and a bill that knows what it could not price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import msgspec

from ...core.config import read_shipped
from ...core.errors import UsageError
from ...core.types import Prediction, Usage


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens cost; data of a model card (`[prices]`), of a table of prices or of the command line."""

    input_per_million: float = 0.0
    output_per_million: float = 0.0
    currency: str = "EUR"
    cached_per_million: float | None = None
    """Of input tokens that the server had kept; None: nobody said, so they are priced as the others."""
    up_to_tokens: int | None = None
    """Requests with more input tokens have another price, which is not known here."""
    batch_share: float | None = None
    """The part of these prices that a reply of a batch costs; None: nobody said."""
    cache_write_per_million: float | None = None
    """Of input tokens that the server keeps for later; None: priced as the others."""
    as_of: str = ""
    mark: str = ""
    """`seen` in a source, or `from memory`."""
    source: str = ""

    def cost(self, tokens: Tokens) -> float:
        """Return what these tokens cost."""
        return self._cost(tokens.input, tokens.cached, tokens.written, tokens.output)

    def _cost(self, given: int, cached: int, kept: int, output: int) -> float:
        """Return the price of so many tokens, of which some were cached before and some were kept now."""
        full = self.input_per_million
        old = full if self.cached_per_million is None else self.cached_per_million
        new = full if self.cache_write_per_million is None else self.cache_write_per_million
        return ((given - cached - kept) * full + cached * old + kept * new + output * self.output_per_million) / 1e6

    def add_to(self, tokens: Tokens, usage: Usage) -> float:
        """Count the tokens of one reply, which must be known, and return what they cost: millions pass here."""
        given, output = usage.input_tokens or 0, usage.output_tokens or 0
        cached = min(usage.cached_tokens, given) if usage.cached_tokens else 0
        kept = min(usage.written_tokens, given - cached) if usage.written_tokens else 0
        tokens.input += given
        tokens.cached += cached
        tokens.written += kept
        tokens.output += output
        return self._cost(given, cached, kept, output)

    def covers(self, usage: Usage | None) -> bool:
        """Tell whether the tokens of a reply are known and have these prices."""
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            return False
        return self.up_to_tokens is None or usage.input_tokens <= self.up_to_tokens


ROOM_LEFT = 0.95
"""Files of a batch are filled up to this share of their limit."""


class BatchTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a kind of batch service takes and costs: one table of catalog/servers/batches.toml."""

    title: str
    requests: int
    megabytes: int
    share: float
    """The part of the live price that a reply costs."""
    from_memory: tuple[str, ...] = ()

    @property
    def most_bytes(self) -> int:
        """Return how large a file is made at most."""
        return int(self.megabytes * 1_000_000 * ROOM_LEFT)


@cache
def batch_terms() -> dict[str, BatchTerms]:
    """Return the terms of each kind of batch service."""
    return msgspec.convert(read_shipped("servers/batches.toml"), dict[str, BatchTerms])


@dataclass(slots=True)
class Tokens:
    """Sums of whole tokens: money is made of them once, at the end, so that no rounding adds up."""

    input: int = 0
    cached: int = 0
    """The part of the input that the server had kept."""
    output: int = 0
    written: int = 0
    """The part of the input that the server put into its cache."""


class Bill:
    """Adds up replies at given prices; a reply whose tokens or price nobody knows is counted, never priced as 0."""

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.billed, self.spared = Tokens(), Tokens()
        """Of replies that were asked for, and of replies that came from our own cache and cost nothing again."""
        self.batched, self.spared_batched = Tokens(), Tokens()
        """The same of replies that batches brought."""
        self.unpriced = 0
        self.spared_unpriced = 0
        """Replies from our own cache whose price nobody knows: free now, and not in `worth`."""
        self.replies = 0

    def add(self, prediction: Prediction) -> float | None:
        """Count one trial; return what it cost now, None where that is not known."""
        usage = prediction.usage
        if prediction.failure is not None and usage is None:
            return 0.0  # no reply and no count: what a provider may ask for it is on no bill we see
        self.replies += 1
        # The part of the price that the way of asking leaves; None where nobody knows.
        share = self.prices.batch_share if prediction.detail.get("batch") else 1.0
        if usage is None or share is None or not self.prices.covers(usage):
            self.unpriced += not prediction.cached
            self.spared_unpriced += prediction.cached
            return 0.0 if prediction.cached else None
        billed, spared = (self.billed, self.spared) if share == 1.0 else (self.batched, self.spared_batched)
        if prediction.cached:
            self.prices.add_to(spared, usage)
            return 0.0
        return share * self.prices.add_to(billed, usage)

    def include(self, other: Bill) -> None:
        """Add what another bill at the same prices has added up."""
        self.unpriced += other.unpriced
        self.spared_unpriced += other.spared_unpriced
        self.replies += other.replies
        for name in ("billed", "spared", "batched", "spared_batched"):
            own, more = getattr(self, name), getattr(other, name)
            for part in Tokens.__dataclass_fields__:
                setattr(own, part, getattr(own, part) + getattr(more, part))

    @property
    def paid(self) -> float:
        """Return what was paid for the replies whose price is known."""
        return self._cost(self.billed, self.batched)

    @property
    def worth(self) -> float:
        """Return what all these replies cost when they were made, ours from the cache too."""
        return self.paid + self._cost(self.spared, self.spared_batched)

    def _cost(self, live: Tokens, batched: Tokens) -> float:
        return self.prices.cost(live) + (self.prices.batch_share or 0.0) * self.prices.cost(batched)


def parse_price(text: str | None) -> Prices | None:
    """Read `IN,OUT` or `IN,OUT,CACHED`: the price of a million tokens, in whatever money."""
    if text is None:
        return None
    try:
        given = [float(part) for part in text.split(",")]
    except ValueError:
        given = []
    if len(given) not in (2, 3) or not all(0 <= price < math.inf for price in given):
        what = "two numbers, the price of a million input and output tokens (and of cached input tokens)"
        raise UsageError(f"--price {text!r} is not IN,OUT: {what}")
    cached = given[2] if len(given) == 3 else None
    return Prices(given[0], given[1], "", cached, source="--price")


def money(value: float, currency: str = "") -> str:
    """Return an amount as people read it: cents, or as many digits as a small amount needs."""
    digits = 2 if value >= 1 or value == 0 else min(8, 2 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f} {currency}".rstrip()
