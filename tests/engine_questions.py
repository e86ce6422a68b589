"""Questions with pictures and candidates that several engines are asked, and the checkpoint they are asked of."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tiny_checkpoints
from line_doubles import ask
from snellen.core.types import Image, Params, Prediction, Request, TrialKey, Turn
from snellen.model.options import ModelOptions

COLOURS = Path(__file__).resolve().parents[1] / "examples" / "colours"
WORDS = ("red", "blue", "an orange bus", "two people on the street", "green", "a dog", "no", "yes")
ASKED = ("What colour is the truck?", "What is in the picture?", "Which one is above the tree?")
NAME = "tiny"
"""What the server knows the checkpoint by."""
SEED, WIDTH = 31, 256
"""Random weights whose first word after the self-test's question is a special token: its text is not what was generated.
Narrower heads than 32 are refused by vLLM."""


def questions() -> list[Request]:
    """Twelve questions, four candidates each: 48 values."""
    pictures = [Image(ref=str(COLOURS / f"{name}.png")) for name in ("red", "blue", "green", "orange")]
    return [
        Request(
            TrialKey("t", f"{place}-{number}"),
            (Turn("user", text, (picture,)),),
            choices=tuple(WORDS[(place + number + step) % len(WORDS)] for step in range(4)),
        )
        for place, text in enumerate(ASKED)
        for number, picture in enumerate(pictures)
    ]


def to_generate(tokens: int = 8) -> list[Request]:
    """The same questions, to be answered in words; nothing is said of the temperature."""
    return [
        Request(request.key, request.messages, Params(max_tokens=tokens), prefix=request.prefix)
        for request in questions()
    ]


def write_wide_checkpoint(folder: Path) -> Path:
    """A small Idefics3 that vLLM loads."""
    import torch

    narrow, tiny_checkpoints.HIDDEN = tiny_checkpoints.HIDDEN, WIDTH
    try:
        torch.manual_seed(SEED)
        tiny_checkpoints.WRITERS["idefics3"](folder)
    finally:
        tiny_checkpoints.HIDDEN = narrow
    return folder


def answers_of(create: Any, name: str, options: ModelOptions, requests: Sequence[Request]) -> list[Prediction]:
    """Ask a model one request after the other, and let it go."""

    async def run() -> list[Prediction]:
        model = create(name, options)
        try:
            return [await ask(model, request) for request in requests]
        finally:
            await model.close()

    return asyncio.run(run())


def values_of(predictions: Sequence[Prediction]) -> list[float]:
    """All log-likelihoods in a row."""
    return [value for prediction in predictions for value in prediction.loglikelihoods or ()]
