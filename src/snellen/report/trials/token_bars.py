"""Log-probabilities to what one sees at a glance: options as bars, tokens as colours; the numbers stand beside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.markup import Html, join, tag
from ...core.types import Prediction
from ..pages.gallery import Shown
from ..pages.tables import DRAWN, head, numbers, row

STEPS = 5
MOST_TOKENS = 2000


def likelihood_bars(shown: Shown) -> Html:
    """Return the options with their log-likelihoods; a bar is the share beside the likeliest."""
    values = shown.prediction.loglikelihoods or ()
    choices = shown.request.choices or shown.request.shown
    tokens = shown.prediction.detail.get("token_logprobs") or []
    known = [value for value in values if math.isfinite(value)]
    top, rows = max(known, default=0.0), []
    for place, (text, value) in enumerate(zip(choices, values, strict=False)):
        share = math.exp(value - top) if math.isfinite(value) else 0.0
        bar = tag("rect", x=0, y=2, width=round(200 * share, 2), height=12, rx=2, class_="f1")
        drawn = tag("svg", bar, viewBox="0 0 200 16", class_="range", aria_hidden="true")
        parts = _cells(tokens[place]) if place < len(tokens) else None
        name = tag("span", text, parts, class_="option")
        rows.append(row(name, tag("td", drawn, class_="bar"), *numbers([f"{value:.4f}"])))
    names = head("choice", DRAWN, ("log-likelihood", "n"))
    caption = "Bars: how likely beside the likeliest option. Squares: its tokens, the darker the less likely."
    return tag(
        "table", tag("caption", caption if tokens else caption.partition(" Squares")[0]), names, tag("tbody", *rows)
    )


def _cells(values: Any) -> Html | None:
    if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
        return None
    cells = [tag("i", class_=_step(value), title=f"{value:.3f}") for value in values[:MOST_TOKENS]]
    return tag("span", *cells, class_="tokens", aria_hidden="true")


def _step(value: float) -> str:
    """Return a class by probability: p0 is sure, p4 is hardly expected."""
    chance = math.exp(min(0.0, value)) if math.isfinite(value) else 0.0
    return f"p{min(STEPS - 1, int((1.0 - chance) * STEPS))}"


def token_colours(prediction: Prediction) -> Html | None:
    """Return the reply token by token, each by its probability, where the model gave them (`detail["logprobs"]`)."""
    told = _told(prediction.detail.get("logprobs"))
    if not told:
        return None
    spans = [
        tag("span", text, class_=f"token {_step(value)}", title=f"{math.exp(min(0.0, value)):.1%} ({value:.3f})")
        for text, value in told[:MOST_TOKENS]
    ]
    more = f", the first {MOST_TOKENS:,}" if len(told) > MOST_TOKENS else ""
    words = f"{len(told):,} tokens{more}: the darker, the less likely"
    parts = (tag("summary", f"Probability of each token ({words})"), tag("pre", *spans, class_="reply", tabindex=0))
    return join((tag("details", *parts),))


def _told(value: Any) -> list[tuple[str, float]]:
    """Return tokens with their log-probabilities; what has another shape is not shown as if it had this one."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    pairs = [(one.get("token"), one.get("logprob")) for one in value if isinstance(one, dict)]
    whole = len(pairs) == len(value) and all(isinstance(a, str) and isinstance(b, int | float) for a, b in pairs)
    return [(str(text), float(number or 0.0)) for text, number in pairs] if whole else []
