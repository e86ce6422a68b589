"""One sample as the trainer sees it: its tokens, and which of them are learnt; and whether a model is asked alike."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ...core.errors import ConfigError
from ...core.types import Request, TrialKey
from ...model.local.checkpoint import IMAGE_TEXT
from ...model.local.inputs import LocalPrompter
from .chains import Chain, open_pictures
from .trl_door import learnt_tokens

LONGEST_RUN = 4
"""Equal tokens in a row beyond which they are counted instead (those of a picture)."""


def show_mask(processor: Any, chain: Chain) -> str:
    """Return the tokens of a chain, what is learnt between ⟦ and ⟧; a mask that is not one reply is refused."""
    tokens = learnt_tokens(processor, chain)
    if not any(learnt for _, learnt in tokens):
        raise ConfigError(f"{chain.id}: no token of the reply would be learnt; the chat template drops it")
    places = [place for place, (_, learnt) in enumerate(tokens) if learnt]
    if places != list(range(places[0], places[-1] + 1)):
        raise ConfigError(f"{chain.id}: what would be learnt is not one reply; the chat template cuts it")
    shown = []
    for learnt, part in groupby(tokens, key=lambda pair: pair[1]):
        text = " ".join(_runs([token for token, _ in part]))
        shown.append(f"⟦ {text} ⟧" if learnt else text)
    return " ".join(shown)


def _runs(tokens: list[str]) -> list[str]:
    shown: list[str] = []
    for token, run in groupby(tokens):
        count = sum(1 for _ in run)
        shown += [f"{token}×{count}"] if count > LONGEST_RUN else [token] * count
    return shown


def asked_otherwise(processor: Any, chain: Chain) -> str | None:
    """Say in what the prompt of training differs from the one the model is measured with, or None."""
    taught = [token for token, learnt in learnt_tokens(processor, chain) if not learnt]
    prompter = LocalPrompter(processor, IMAGE_TEXT)
    text = prompter.render(Request(TrialKey("mask", chain.id), chain.turns).messages, answer=True)
    ids = prompter.encode([text], [open_pictures(chain)])["input_ids"][0].tolist()
    asked = processor.tokenizer.convert_ids_to_tokens(ids)
    if asked == taught:
        return None
    if asked[1:] == taught:
        return f"measuring puts {asked[0]!r} before a prompt, training does not: put it into the chat template"
    place = next((n for n, pair in enumerate(zip(asked, taught, strict=False)) if pair[0] != pair[1]), 0)
    return f"prompts of training and measuring differ from token {place} on"
