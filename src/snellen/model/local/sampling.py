"""Logits to the next token of every row, each row by its own seed: its neighbours in the batch change nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ...core.ids import derive_seed
from ...core.types import Request
from .own_sampling import read_own_sampling


@dataclass(slots=True)
class Row:
    """One request being generated."""

    temperature: float
    top_p: float
    max_tokens: int
    stop: tuple[str, ...]
    generator: random.Random
    tokens: list[int] = field(default_factory=list)
    finish: str | None = None
    first_token: float | None = None


def make_row(request: Request, defaults: Any, room_tokens: int) -> Row:
    """Return the state of one request; what it does not set is the checkpoint's own default."""
    params, key = request.params, request.key
    used = read_own_sampling(vars(defaults)).settle(params)
    seed = derive_seed(params.seed or 0, key.task, key.sample, key.variant, key.repeat, "sampling")
    generator = random.Random(seed)  # noqa: S311 - a draw that can be repeated, not a secret
    return Row(used.temperature, used.top_p, max(1, min(used.max_tokens, room_tokens)), params.stop or (), generator)


class RowSampler:
    """A logits processor for the library's `generate`: it chooses every row's token and leaves it no other choice."""

    def __init__(
        self, rows: Sequence[Row], eos: Sequence[int], decode: Callable[[list[int]], str], now: Callable[[], float]
    ) -> None:
        self._rows = rows
        self._eos = list(eos)
        self._decode = decode
        self._now = now

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores that are 0 at each row's chosen token and minus infinity elsewhere."""
        greedy = scores.argmax(-1).tolist()
        chosen = [self._next(row, scores[place], greedy[place]) for place, row in enumerate(self._rows)]
        forced = torch.full_like(scores, -torch.inf)
        forced[torch.arange(len(chosen), device=scores.device), torch.tensor(chosen, device=scores.device)] = 0.0
        return forced

    def _next(self, row: Row, scores: torch.Tensor, greedy: int) -> int:
        if row.finish:
            return self._eos[0] if self._eos else greedy
        token = greedy
        if row.temperature != 0:
            token = sample_token(scores, row.temperature, row.top_p, row.generator.random())
        if row.first_token is None:
            row.first_token = self._now()
        if token in self._eos:
            row.finish = "stop"
            return token
        row.tokens.append(token)
        if row.stop and any(stop in self._decode(row.tokens) for stop in row.stop):
            row.finish = "stop"
        elif len(row.tokens) >= row.max_tokens:
            row.finish = "length"
        return token


def sample_token(scores: torch.Tensor, temperature: float, top_p: float, uniform: float) -> int:
    """Return the token that `uniform` (in [0, 1)) points at in the distribution, cut to its nucleus."""
    # In double precision: over a vocabulary of 150,000 a float32 running sum is off by more than rare tokens weigh.
    weights = (scores.float() / temperature).softmax(-1).double()
    if top_p < 1:
        ordered, places = weights.sort(descending=True)
        outside = ordered.cumsum(-1) - ordered >= top_p
        weights[places[outside]] = 0.0
    cumulative = weights.cumsum(-1)
    return int(torch.searchsorted(cumulative, uniform * float(cumulative[-1]), right=True).clamp(max=len(weights) - 1))


def cut_at_stop(text: str, stop: Sequence[str]) -> str:
    """Return the text before the first stop string."""
    ends = [text.index(mark) for mark in stop if mark in text]
    return text[: min(ends)] if ends else text
