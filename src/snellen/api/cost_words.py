"""What a run will cost in words, and the question whether it may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime

from ..core.errors import UsageError
from ..engine.state import RunState
from ..model.served.model_card import FoundCard
from ..model.served.prices import Prices, money
from .plan import Plan
from .run_cost import CostEstimate, Expected
from .settings import RunSettings

OLD_DAYS = 90


def describe_cost(plan: Plan, estimate: CostEstimate) -> Iterator[str]:
    """Say tokens and money of what is left, what they rest on, and what is not known."""
    if not estimate.billed:
        yield f"model {plan.model.name}; run folder {plan.folder}"
        return
    tokens = estimate.tokens()
    most = estimate.found.card.max_images if estimate.found.card else None
    for one in estimate.tasks:
        if one.expected is not None and one.left:
            yield from _describe_task(one.name, one.expected, most)
    if not any(one.left for one in estimate.tasks):
        about = "nothing is left to ask"
    elif tokens is not None:
        about = f"about {tokens.input:,} input and {tokens.output:,} output tokens"
    else:
        about = f"tokens not estimated ({_why_not(estimate)})"
    yield f"model {plan.model.name}; {about}; run folder {plan.folder}"
    yield from _describe_money(estimate)


def short_cost(estimate: CostEstimate) -> Iterator[str]:
    """Say tokens and money of what is left, without what they rest on."""
    if not estimate.billed or not any(one.left for one in estimate.tasks):
        return
    tokens = estimate.tokens()
    known = tokens is not None and f"about {tokens.input:,} input and {tokens.output:,} output tokens"
    yield known or f"tokens not estimated ({_why_not(estimate)})"
    yield from list(_describe_money(estimate))[:1]


def _describe_task(name: str, expected: Expected, most: int | None) -> Iterator[str]:
    yield f"  {name}: {_each(expected.text, expected.pictures)}; {expected.basis}"
    if expected.unreadable:
        yield f"  {name}: {expected.unreadable} pictures could not be measured and are not in it"
    if expected.crowded:
        yield f"  {name}: {expected.crowded} prompts show more than the {most} pictures the model takes"


def _each(text: float, pictures: float) -> str:
    return f"{text:,.0f} tokens of text and {pictures:,.0f} of pictures a trial"


def _why_not(estimate: CostEstimate) -> str:
    silent = [one.name for one in estimate.tasks if one.left and one.expected is None]
    if silent:
        return f"{', '.join(silent)}: not one request a trial"
    return "a model that thinks writes as much as it likes; --max-tokens limits it"


def _describe_money(estimate: CostEstimate) -> Iterator[str]:
    prices, cost, most = estimate.prices, estimate.cost(), estimate.cost(most=True)
    if prices is None:
        if estimate.found.card is not None or " is of " in estimate.found.where:
            yield f"no price is known: {estimate.found.where}; give it by --price IN,OUT"
        return
    if cost is not None:
        ceiling = f", at most {money(most, prices.currency)} if every reply reaches its limit" if most else ""
        batched = f", in batches at {estimate.share:g} of the price" if estimate.share != 1.0 else ""
        yield f"about {money(cost, prices.currency)}{ceiling}{batched} ({describe_prices(prices)})"
    else:
        yield f"cost not estimated ({describe_prices(prices)})"
    yield from note_age(prices, datetime.now(UTC).date())


def note_age(prices: Prices, today: date) -> Iterator[str]:
    """Warn of prices that are old: they change several times a week somewhere."""
    with suppress(ValueError):  # a card of one's own may say its day in any words
        days = (today - date.fromisoformat(prices.as_of)).days
        if days > OLD_DAYS:
            yield f"these prices are {days:,} days old: --price IN,OUT or `snellen models update FILE` gives newer ones"


def describe_prices(prices: Prices) -> str:
    """Say the prices, of which day they are, and whether they were seen."""
    each = f"{prices.input_per_million:g} in, {prices.output_per_million:g} out"
    each += "" if prices.cached_per_million is None else f", {prices.cached_per_million:g} cached"
    upto = f", requests up to {prices.up_to_tokens:,} tokens" if prices.up_to_tokens else ""
    day = f"; prices of {prices.as_of}" if prices.as_of else ""
    mark = f", {prices.mark}" if prices.mark else ""
    return f"a million tokens: {each} {prices.currency}".rstrip() + upto + day + mark


def describe_stop(state: RunState) -> str:
    """Say that the limit was reached, and what this command spent."""
    return f"stopped by --max-cost with {money(state.limits.spent, state.limits.bill.prices.currency)} spent"


def check_limit(settings: RunSettings, estimate: CostEstimate) -> str | None:
    """Return the question to ask where a run looks dearer than it may be; refuse a limit on what has no price."""
    prices = check_priced(settings, estimate.found, estimate.prices)
    cost = estimate.cost()
    if settings.max_cost is None or prices is None or cost is None or cost <= settings.max_cost or settings.yes:
        return None
    return f"the run will cost about {money(cost, prices.currency)}, more than --max-cost {settings.max_cost:g}"


def check_priced(settings: RunSettings, found: FoundCard, prices: Prices | None) -> Prices | None:
    """Return the prices; refuse a limit in money on what has none."""
    if settings.max_cost is not None and prices is None:
        fix = "--price IN,OUT gives it, `snellen models update FILE` takes a table of prices"
        raise UsageError(f"--max-cost {settings.max_cost:g}: no price is known ({found.where}); {fix}")
    return prices
