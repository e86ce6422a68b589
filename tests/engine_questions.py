"""Questions with pictures and candidates that several engines are asked, and the checkpoint they are asked of."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

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


def without_pictures(requests: Sequence[Request]) -> list[Request]:
    """The same questions for a model that reads only."""
    return [
        structs.replace(request, messages=tuple(structs.replace(turn, images=()) for turn in request.messages))
        for request in requests
    ]


def greedily(requests: Sequence[Request], **changes: Any) -> list[Request]:
    """The same questions, answered with eight tokens and no chance."""
    params = structs.replace(Params(max_tokens=8, temperature=0.0), **changes)
    return [structs.replace(request, params=params) for request in requests]


def whole_texts(replies: Sequence[Prediction]) -> list[str]:
    """What was said: random weights speak broken UTF-8, and engines keep back an unfinished last character."""
    return [(reply.text or "").rstrip("\ufffd") for reply in replies]


def several_pictures() -> list[Request]:
    """Four questions with two and three pictures before the words."""
    seen = [Image(ref=str(COLOURS / f"{name}.png")) for name in ("red", "blue", "green", "orange")]
    sets = [tuple(seen[place : place + 2 + place % 2]) for place in range(3)] + [(seen[0], seen[0])]
    return [
        Request(TrialKey("t", f"several-{place}"), (Turn("user", ASKED[1], shown),), Params(max_tokens=8))
        for place, shown in enumerate(sets)
    ]


def write_rows(folder: Path, count: int) -> Path:
    """A data file of so many questions with a picture and three options each."""
    options = ("red", "blue", "green", "orange")
    for name in options:  # a picture must lie beside the data to be sent
        shutil.copy(COLOURS / f"{name}.png", folder)
    rows = [
        {
            "id": f"q{number:03}",
            "question": f"{ASKED[number % len(ASKED)]} ({number})",
            "image": f"{options[number % 4]}.png",
            "options": [options[(number + step) % 4] for step in range(3)],
            "answer": options[number % 4],
        }
        for number in range(count)
    ]
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def records_of(run: Path) -> list[dict[str, Any]]:
    """The records of a run on disk."""
    return [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]


def to_generate(tokens: int = 8) -> list[Request]:
    """The same questions, to be answered in words; nothing is said of the temperature."""
    return [
        Request(request.key, request.messages, Params(max_tokens=tokens), prefix=request.prefix)
        for request in questions()
    ]


def write_wide_checkpoint(folder: Path, kind: str = "idefics3") -> Path:
    """A small checkpoint that vLLM loads."""
    import torch

    narrow, tiny_checkpoints.HIDDEN = tiny_checkpoints.HIDDEN, WIDTH
    try:
        torch.manual_seed(SEED)
        tiny_checkpoints.WRITERS[kind](folder)
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
