"""A prompt's tensors to its encoded prefix: keys and values, the logits after it, and a memory of earlier prompts.

A dialogue is always encoded round by round, found in memory or not: a sum over other segments rounds otherwise, so this
way a hit saves time and changes no bit of the result.
"""

from __future__ import annotations

import copy
import inspect
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from ...core.errors import ModelError
from ...core.types import FailureKind
from .checkpoint import first_position

BY_TOKEN = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")
"""Inputs that have a place for each token of the prompt."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """An encoded prompt: `cache` is never written to (see `fork`), `logits` are those after its last token."""

    cache: Any
    logits: torch.Tensor
    length: int
    next_position: int
    """Differs from `length` where images take fewer positions than tokens (multimodal rotary embeddings)."""
    reader: Any
    """The module that continues it: the model, or its language half (BLIP)."""
    prompt_logprobs: tuple[float, ...] = ()


class PrefixMemory:
    """Keeps the last few prefixes by their content."""

    def __init__(self, capacity: int) -> None:
        self._kept: OrderedDict[Any, Prefix] = OrderedDict()
        self._capacity = capacity
        self.hits = 0

    def get(self, key: Any) -> Prefix | None:
        """Return the prefix of exactly this content."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            self.hits += 1
        return found

    def put(self, key: Any, prefix: Prefix) -> None:
        """Keep one more, forgetting the least recently used."""
        self._kept[key] = prefix
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Forget all (memory is short)."""
        self._kept.clear()


def encode_prefix(
    model: Any, inputs: dict[str, Any], cuts: tuple[int, ...], memory: PrefixMemory, *, key: str, with_prompt: bool
) -> Prefix:
    """Encode a prompt of one row in segments that end at `cuts` (token counts, rising) and at its end.

    `key` names its images.
    """
    ids = inputs["input_ids"]
    prefix: Prefix | None = None
    for end in (*cuts, ids.shape[1]):
        name = (key, with_prompt, tuple(ids[0, :end].tolist()))
        found = memory.get(name)
        if found is None:
            found = _encode_segment(model, inputs, prefix, end, with_prompt)
            memory.put(name, found)
        prefix = found
    if prefix is None:
        raise ModelError(FailureKind.REQUEST, "the prompt is empty")
    return prefix


def _encode_segment(model: Any, inputs: dict[str, Any], before: Prefix | None, end: int, with_prompt: bool) -> Prefix:
    """Encode the tokens from the end of `before` to `end`."""
    reader = before.reader if before else model
    segment = _first_segment(inputs, end) if before is None else _next_segment(model, inputs, before, end)
    if not with_prompt and accepts(reader, "logits_to_keep"):
        segment["logits_to_keep"] = 1
    with torch.inference_mode():
        outputs = reader(**segment, use_cache=True)
    inner = outputs.get("language_model_outputs") or outputs
    if inner is not outputs:
        reader = model.language_model
    position = before.next_position + end - before.length if before else next_position(model, end)
    logprobs = _prompt_logprobs(outputs.logits[0], segment["input_ids"][0], before) if with_prompt else ()
    return Prefix(inner.past_key_values, outputs.logits[0, -1].float(), end, position, reader, logprobs)


def _first_segment(inputs: dict[str, Any], end: int) -> dict[str, Any]:
    """Return the model's inputs up to `end`, with all images."""
    return {name: value[:, :end] if name in BY_TOKEN else value for name, value in inputs.items()}


def _next_segment(model: Any, inputs: dict[str, Any], before: Prefix, end: int) -> dict[str, Any]:
    return {
        "input_ids": inputs["input_ids"][:, before.length : end],
        "attention_mask": torch.ones(1, end, dtype=torch.long, device=inputs["input_ids"].device),
        "past_key_values": fork(before.cache),
        "position_ids": positions(model, before.next_position, range(end - before.length)),
    }


def _prompt_logprobs(logits: torch.Tensor, ids: torch.Tensor, before: Prefix | None) -> tuple[float, ...]:
    """Return the log-probability of each prompt token given those before it (the first has none)."""
    logits = logits[-len(ids) :].float()  # GIT's picture stands in front of the tokens, without placeholders
    after = logits[:-1] if before is None else torch.cat([before.logits[None], logits[:-1]])
    targets = ids[1:] if before is None else ids
    values = after.log_softmax(-1).gather(-1, targets[:, None].to(after.device))[:, 0]
    return (*(before.prompt_logprobs if before else ()), *values.tolist())


def next_position(model: Any, length: int) -> int:
    """Return the position of the token after a prompt of `length` tokens."""
    deltas = getattr(getattr(model, "model", model), "rope_deltas", None)
    shift = int(deltas.flatten()[0]) if isinstance(deltas, torch.Tensor) else 0
    return length + shift + first_position(model)


def positions(model: Any, first: int, offsets: Iterable[int]) -> torch.Tensor:
    """Return position ids `first + offset`, three-fold where the model rotates in three dimensions."""
    row = torch.tensor([[first + offset for offset in offsets]], device=model.device)
    return row.expand(3, 1, -1) if hasattr(getattr(model, "model", model), "rope_deltas") else row


def fork(cache: Any) -> Any:
    """Return a cache that may be extended while the original stays as it is; tensors are shared, not copied."""
    # A dynamic layer grows by making new tensors, so a copy may share the old ones; other kinds write in place.
    if not all(type(layer).__name__.startswith("Dynamic") for layer in cache.layers):
        return copy.deepcopy(cache)
    twin = copy.copy(cache)
    twin.layers = [copy.copy(layer) for layer in cache.layers]
    return twin


def accepts(module: Any, argument: str) -> bool:
    """Tell whether a module's forward names an argument."""
    return argument in inspect.signature(module.forward).parameters
