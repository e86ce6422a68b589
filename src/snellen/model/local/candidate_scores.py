"""An encoded prompt and candidate tokens to log-probabilities of every candidate token, three ways of falling speed.

`tree`: all candidates in one row, each token seeing the prompt and its own ancestors only; nothing is copied or padded.
`rows`: one row a candidate on copies of the prompt's keys and values. `scratch`: the whole sequence, one by one.
Which way a checkpoint allows is tested once, against `scratch`, and recorded with every prediction.
"""

from __future__ import annotations

import copy
import inspect
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ...core.errors import ModelError
from ...core.types import FailureKind
from .checkpoint import first_position, reads_both_ways

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


ROOT = -1
"""The last token of the prompt; its logits come with the prompt."""


@dataclass(frozen=True, slots=True)
class Trie:
    """Nodes to feed, parents before children, and the steps (node, next token) of each candidate."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    """1 for a node right after the prompt."""
    steps: list[list[tuple[int, int]]] = field(default_factory=list)


def build_trie(candidates: Sequence[Sequence[int]]) -> Trie:
    """Merge candidates (token ids, none empty) by their longest common prefixes."""
    trie = Trie()
    children: dict[tuple[int, int], int] = {}
    for candidate in candidates:
        node, steps = ROOT, []
        for place, token in enumerate(candidate):
            steps.append((node, token))
            if place == len(candidate) - 1:
                break
            node = _child(trie, children, node, token)
        trie.steps.append(steps)
    return trie


def _child(trie: Trie, children: dict[tuple[int, int], int], parent: int, token: int) -> int:
    """Return the node of `token` after `parent`, adding it if it is new."""
    if (parent, token) not in children:
        children[parent, token] = len(trie.tokens)
        trie.tokens.append(token)
        trie.parents.append(parent)
        trie.depths.append(1 if parent == ROOT else trie.depths[parent] + 1)
    return children[parent, token]


def split_candidates(candidates: Sequence[Sequence[int]], max_nodes: int) -> list[list[int]]:
    """Cut the candidates (their indices, like beside like) into groups of at most `max_nodes` fed tokens each."""
    order = sorted(range(len(candidates)), key=lambda index: (tuple(candidates[index]), index))
    groups: list[list[int]] = []
    room = 0
    for index in order:
        cost = len(candidates[index]) - 1
        if not groups or cost > room:
            groups.append([])
            room = max_nodes
        groups[-1].append(index)
        room -= cost
    return groups


TREE, ROWS, SCRATCH = "tree", "rows", "scratch"
MAX_NODES = 256
"""Fed tokens of one pass: bounds the logits in memory (256 × vocabulary), so that candidates need not be bounded."""
MAX_ROWS = 16

Candidates = Sequence[Sequence[int]]
TokenLogprobs = list[list[float]]


def score_candidates(model: Any, route: str, prefix: Prefix, candidates: Candidates) -> TokenLogprobs:
    """Return the log-probability of each token of each candidate, by the given route (tree or rows)."""
    pass_of = _score_tree if route == TREE else _score_rows
    groups = split_candidates(candidates, MAX_NODES) if route == TREE else _row_groups(candidates)
    results: TokenLogprobs = [[] for _ in candidates]
    for group in groups:
        for index, values in zip(group, pass_of(model, prefix, [candidates[index] for index in group]), strict=True):
            results[index] = values
    return results


def score_from_scratch(model: Any, inputs: dict[str, Any], candidate: Sequence[int]) -> list[float]:
    """Return the same from one pass over prompt and candidate together: the yardstick of the other two."""
    ids = inputs["input_ids"]
    suffix = torch.tensor([list(candidate)], device=ids.device)
    whole = dict(inputs) | {"input_ids": torch.cat([ids, suffix], 1)}
    for name, fill in (
        ("attention_mask", 1),
        ("token_type_ids", int(reads_both_ways(model))),
        ("mm_token_type_ids", 0),
    ):
        if name in inputs:
            whole[name] = torch.cat([inputs[name], torch.full_like(suffix, fill)], 1)
    with torch.inference_mode():
        # Counted from the end: some architectures (GIT) put the picture's positions in front of the tokens.
        logits = model(**whole, use_cache=False).logits[0, -1 - len(candidate) : -1].float()
    return [float(value) for value in logits.log_softmax(-1).gather(-1, suffix[0][:, None])[:, 0]]


def _score_tree(model: Any, prefix: Prefix, candidates: Candidates) -> TokenLogprobs:
    trie = build_trie(candidates)
    steps = [step for path in trie.steps for step in path]
    logits = prefix.logits[None]
    if trie.tokens:
        device = prefix.logits.device
        with torch.inference_mode():
            outputs = prefix.reader(
                input_ids=torch.tensor([trie.tokens], device=device),
                past_key_values=fork(prefix.cache),
                attention_mask=_tree_mask(trie.parents, prefix.length, model.dtype, device),
                position_ids=positions(model, prefix.next_position, (depth - 1 for depth in trie.depths)),
                use_cache=True,
            )
        logits = torch.cat([logits, outputs.logits[0].float()])
    rows = [node + 1 if node != ROOT else 0 for node, _ in steps]  # row 0 is the prompt's last token
    values = iter(pick_logprobs(logits, rows, [token for _, token in steps]))
    return [[next(values) for _ in path] for path in trie.steps]


def _tree_mask(parents: Sequence[int], length: int, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """Return the additive mask: every node sees the whole prompt, its ancestors and itself."""
    count = len(parents)
    seen = torch.zeros(count, count, dtype=torch.bool)
    for node, parent in enumerate(parents):
        if parent != ROOT:
            seen[node] = seen[parent]
        seen[node, node] = True
    mask = torch.zeros(1, 1, count, length + count, dtype=dtype)
    # The lowest finite number, as in the library's own masks: minus infinity can turn a softmax into NaN.
    mask[0, 0, :, length:].masked_fill_(~seen, torch.finfo(dtype).min)
    return mask.to(device)


def _row_groups(candidates: Candidates) -> list[list[int]]:
    # Like lengths stand together, so that little is padded.
    order = sorted(range(len(candidates)), key=lambda index: (len(candidates[index]), index))
    return [order[start : start + MAX_ROWS] for start in range(0, len(order), MAX_ROWS)]


def _score_rows(model: Any, prefix: Prefix, candidates: Candidates) -> TokenLogprobs:
    firsts = pick_logprobs(prefix.logits[None], [0] * len(candidates), [candidate[0] for candidate in candidates])
    longest = max(len(candidate) for candidate in candidates) - 1
    if longest == 0:
        return [[value] for value in firsts]
    count, device = len(candidates), prefix.logits.device
    fed, mask = pad_right([candidate[:-1] for candidate in candidates], longest, device)
    cache = fork(prefix.cache)
    cache.batch_repeat_interleave(count)
    arguments: dict[str, Any] = {}
    if accepts(prefix.reader, "position_ids"):
        row = positions(model, prefix.next_position, range(longest))
        arguments["position_ids"] = row.expand(*row.shape[:-2], count, longest)
    with torch.inference_mode():
        outputs = prefix.reader(
            input_ids=fed,
            past_key_values=cache,
            attention_mask=torch.cat([torch.ones(count, prefix.length, dtype=torch.long, device=device), mask], 1),
            use_cache=True,
            **arguments,
        )
    return [[first, *rest] for first, rest in zip(firsts, pick_rows(outputs.logits, candidates), strict=True)]


def pad_right(rows: Candidates, width: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids padded with 0 on the right, and their mask."""
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
    return ids, mask


def pick_rows(logits: torch.Tensor, candidates: Candidates) -> TokenLogprobs:
    """Return the log-probabilities of each candidate's tokens after its first; logits: [rows, places, vocabulary]."""
    return [
        pick_logprobs(logits[row, : len(candidate) - 1].float(), range(len(candidate) - 1), candidate[1:])
        for row, candidate in enumerate(candidates)
    ]


def pick_logprobs(logits: torch.Tensor, rows: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """Return log-softmax(logits)[row, token] for each pair, without building the whole log-softmax.

    Logits come in float32: in half precision logsumexp over a vocabulary loses the digits that candidates differ in.
    """
    if not tokens:
        return []
    at = torch.tensor(list(rows), device=logits.device)
    chosen = logits[at, torch.tensor(list(tokens), device=logits.device)]
    values: list[float] = (chosen - logits.logsumexp(-1)[at]).tolist()
    return values
