"""Two prompts of different length, alone and together, to whether an architecture may answer several at a time.

Some processors pad between the pictures and the text (the BLIP family), and then a reply depends on who else is in the
batch, not by rounding but by whole units of log-probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...core.errors import ModelError
from .inputs import Prepared

LIKELY = 8
"""How many of the likeliest first words are compared."""
TOLERANCE = {torch.float32: 0.02}
HALF_TOLERANCE = 0.5
REFUSALS = (ModelError, TypeError, ValueError, AttributeError, IndexError, KeyError, RuntimeError, NotImplementedError)


def rows_agree(
    model: Any, encode: Callable[[Sequence[Prepared]], dict[str, Any]], prompts: Sequence[Prepared], pad: int | None
) -> bool:
    """Tell whether the first word of each prompt is as likely in the batch as alone; no, if the batch is refused."""
    try:
        together = _first_words(model, encode(prompts), pad)
        alone = torch.cat([_first_words(model, encode([prompt]), pad) for prompt in prompts])
    except REFUSALS:
        return False
    likely = alone.topk(min(LIKELY, alone.shape[-1])).indices
    difference = (together.gather(-1, likely) - alone.gather(-1, likely)).abs().max()
    return float(difference) <= TOLERANCE.get(model.dtype, HALF_TOLERANCE)


def _first_words(model: Any, inputs: dict[str, Any], pad: int | None) -> torch.Tensor:
    """Return the log-probabilities of the first generated token of each row."""
    wish = {"max_new_tokens": 1, "do_sample": False, "num_beams": 1, "pad_token_id": pad}
    with torch.inference_mode():
        made = model.generate(**inputs, **wish, output_logits=True, return_dict_in_generate=True)
    return torch.as_tensor(made.logits[0]).float().log_softmax(-1)
