"""Log-probabilities by an encoder–decoder: the prompt is encoded once, its cross-attention serves all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .candidate_scores import MAX_ROWS, Candidates, TokenLogprobs, fork, pad_right, pick_logprobs, pick_rows


def score_encoder_decoder(model: Any, inputs: dict[str, Any], candidates: Candidates) -> TokenLogprobs:
    """Return the log-probability of each token of each candidate as the decoder's output."""
    start = torch.tensor([[decoder_start(model)]], device=inputs["input_ids"].device)
    with torch.inference_mode():
        outputs = model(**inputs, decoder_input_ids=start, use_cache=True)
    inner = outputs.get("language_model_outputs") or outputs
    reader = model if inner is outputs else model.language_model
    first = outputs.logits[0, -1:].float()
    firsts = pick_logprobs(first, [0] * len(candidates), [candidate[0] for candidate in candidates])
    results: TokenLogprobs = [[value] for value in firsts]
    longer = (index for index, candidate in enumerate(candidates) if len(candidate) > 1)
    order = sorted(longer, key=lambda index: (len(candidates[index]), index))
    for at in range(0, len(order), MAX_ROWS):
        group = order[at : at + MAX_ROWS]
        rows = _score_rows(reader, inner, inputs, [candidates[index] for index in group])
        for index, rest in zip(group, rows, strict=True):
            results[index] += rest
    return results


def score_from_scratch(model: Any, inputs: dict[str, Any], candidate: Sequence[int]) -> list[float]:
    """Return the same from one pass over prompt and candidate: the yardstick."""
    device = inputs["input_ids"].device
    fed = torch.tensor([[decoder_start(model), *candidate[:-1]]], device=device)
    with torch.inference_mode():
        logits = model(**inputs, decoder_input_ids=fed, use_cache=False).logits[0].float()
    return pick_logprobs(logits, range(len(candidate)), candidate)


def decoder_start(model: Any) -> int:
    """Return the token every output begins with."""
    for field in ("decoder_start_token_id", "bos_token_id"):
        for config in (model.config, model.config.get_text_config(decoder=True)):
            if isinstance(getattr(config, field, None), int):
                return int(getattr(config, field))
    return int(model.generation_config.decoder_start_token_id or 0)


def _score_rows(reader: Any, encoded: Any, inputs: dict[str, Any], candidates: Candidates) -> TokenLogprobs:
    count = len(candidates)
    hidden = encoded.encoder_last_hidden_state
    width = max(map(len, candidates)) - 1
    fed, _ = pad_right([candidate[:-1] for candidate in candidates], width, hidden.device)
    mask = inputs.get("attention_mask")
    with torch.inference_mode():
        outputs = reader(
            encoder_outputs=(hidden.expand(count, -1, -1),),
            attention_mask=None if mask is None else mask.expand(count, -1),
            decoder_input_ids=fed,
            past_key_values=_spread(encoded.past_key_values, count),
            use_cache=True,
        )
    return pick_rows(outputs.logits, candidates)


def _spread(cache: Any, count: int) -> Any:
    """Return a view of a one-row cache with `count` rows; the cross-attention keys are not copied."""
    from transformers import EncoderDecoderCache

    halves = [fork(cache.self_attention_cache), fork(cache.cross_attention_cache)]
    for half in halves:
        for layer in half.layers:
            layer.keys = layer.keys.expand(count, -1, -1, -1)
            layer.values = layer.values.expand(count, -1, -1, -1)
    return EncoderDecoderCache(*halves)
