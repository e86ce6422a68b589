"""Log-likelihoods of a tiny checkpoint twice: through the model room, and by the library alone on texts of its own.

`python tests/direct_likelihood.py KIND` prints both as JSON, in a process that can load torchvision (see
torchvision_shim): the processors of the Qwen-VL family need it.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import sys
from typing import Any

import numpy as np
import PIL.Image

QUESTION = "What colour is the truck in the picture?"
CHOICES = ("orange", "blue and orange", "yes", "blue and orange and a dog")


def picture() -> PIL.Image.Image:
    """A picture of noise, wider than high."""
    return PIL.Image.fromarray(np.random.default_rng(3).integers(0, 255, (48, 64, 3), dtype=np.uint8))


def by_the_room(folder: str) -> tuple[list[float], dict[str, Any]]:
    """Ask as a run does, from a chat message to a prediction."""
    from snellen.core.types import Image, Request, TrialKey, Turn
    from snellen.model.local.transformers import create
    from snellen.model.options import ModelOptions

    out = io.BytesIO()
    picture().save(out, "PNG")
    image = Image("data:image/png;base64," + base64.b64encode(out.getvalue()).decode())
    request = Request(TrialKey("t", "s"), (Turn("user", QUESTION, (image,)),), choices=CHOICES)
    (reply,) = asyncio.run(create(folder, ModelOptions()).predict_batch([request], {}))
    assert reply.failure is None, reply.failure
    return list(reply.loglikelihoods or ()), reply.detail


def by_the_library(folder: str) -> list[float]:
    """Compute the loss of prompt and answer as one text, as the library's own training would."""
    import torch
    import transformers

    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype="float32").eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    values = []
    for choice in CHOICES:
        inputs = LAYOUTS.get(model.config.model_type, _chat)(processor, choice)
        count = int((inputs["labels"] != -100).sum())
        with torch.inference_mode():
            values.append(-float(model(**inputs).loss) * count)
    return values


def _chat(processor: Any, choice: str) -> dict[str, Any]:
    """The checkpoint's chat template, and the answer right after it."""
    content = [{"type": "image"}, {"type": "text", "text": QUESTION}]
    prompt = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    before, whole = (
        dict(processor(text=[text], images=[[picture()]], return_tensors="pt")) for text in (prompt, prompt + choice)
    )
    return _labelled(whole, before["input_ids"].shape[1])


def _git(processor: Any, choice: str) -> dict[str, Any]:
    """A question closed by nothing, its answer after a space; the picture comes as pixels alone."""
    pixels = processor(images=picture(), return_tensors="pt")
    before, whole = (
        processor.tokenizer(text, return_tensors="pt")["input_ids"][:, :-1]
        for text in (QUESTION, f"{QUESTION} {choice}")
    )
    return _labelled({"input_ids": whole, "pixel_values": pixels["pixel_values"]}, before.shape[1])


def _paligemma(processor: Any, choice: str) -> dict[str, Any]:
    """A prefix and a suffix, as its processor makes them for training; the end token it adds is no part of the answer."""
    inputs = dict(processor(text="<image>" + QUESTION, images=picture(), suffix=choice, return_tensors="pt"))
    by_token = ("input_ids", "attention_mask", "token_type_ids", "labels")
    return {name: value[:, :-1] if name in by_token else value for name, value in inputs.items()}


def _labelled(inputs: dict[str, Any], prompt: int) -> dict[str, Any]:
    labels = inputs["input_ids"].clone()
    labels[:, :prompt] = -100
    return inputs | {"labels": labels}


LAYOUTS = {"git": _git, "paligemma": _paligemma}


if __name__ == "__main__":
    from torchvision_shim import define_operators

    define_operators()
    from tiny_checkpoints import checkpoint

    tiny = str(checkpoint(sys.argv[1]))
    ours, how = by_the_room(tiny)
    sys.stdout.write(json.dumps({"room": ours, "library": by_the_library(tiny), "route": how["route"]}) + "\n")
