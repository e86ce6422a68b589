"""How many requests at a time: more while memory allows, fewer when it runs out, never a failed run; and one alone."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

from ...core.errors import ModelError
from ...core.protocols import EncodedImages
from ...core.types import FailureKind, Prediction, Request
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


Item = TypeVar("Item")
Result = TypeVar("Result")

FIRST_SIZE = 4
CPU_LIMIT = 16
"""On a CPU larger batches win nothing and only take memory."""


async def predict_alone(
    predict_batch: Callable[[Sequence[Request], EncodedImages], Awaitable[list[Prediction]]],
    request: Request,
    images: EncodedImages,
) -> Prediction:
    """Answer one request as a batch of its own, or raise ModelError."""
    (prediction,) = await predict_batch([request], images)
    if prediction.failure is not None:
        raise ModelError(prediction.failure.kind, prediction.failure.message)
    return prediction


class BatchSizer:
    """The batch size of one device, fixed or automatic."""

    def __init__(
        self, fixed: int | None, limit: int, free_share: Callable[[], float], on_full: Callable[[], None] = lambda: None
    ) -> None:
        self.size = fixed or min(FIRST_SIZE, limit)
        self._limit = fixed or limit
        self._automatic = fixed is None
        self._free_share = free_share
        self._on_full = on_full

    @property
    def can_grow(self) -> bool:
        """Tell whether there may ever be more than one at a time."""
        return self._limit > 1

    def run(self, items: Sequence[Item], work: Callable[[Sequence[Item]], list[Result]]) -> list[Result]:
        """Work on `items` in order, in batches; a batch that does not fit is cut in two and tried again."""
        results: list[Result] = []
        while len(results) < len(items):
            batch = items[len(results) : len(results) + self.size]
            try:
                results += work(batch)
            except RuntimeError as error:
                self._shrink(len(batch), error)
            else:
                self._grow(len(batch))
        return results

    def _shrink(self, tried: int, error: RuntimeError) -> None:
        if not is_out_of_memory(error):
            raise error
        self._on_full()
        if tried == 1:
            fix = "use fewer or smaller images, or --half"
            raise ModelError(FailureKind.PAYLOAD, f"one request alone does not fit in memory: {fix}") from None
        # The limit sinks too: growing back to a size that failed would only fail again, at the cost of a batch.
        self.size = self._limit = max(1, tried // 2)

    def _grow(self, done: int) -> None:
        """Double after a full batch that left more than half of the memory free."""
        if self._automatic and done == self.size < self._limit and self._free_share() > 0.5:
            self.size = min(2 * self.size, self._limit)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an allocation failed, on a GPU or on the CPU."""
    signs = ("out of memory", "can't allocate memory")
    return type(error).__name__ == "OutOfMemoryError" or any(sign in str(error) for sign in signs)


def free_share(device: str) -> float:
    """Return the share of a device's memory that is free (at the worst moment since the last call, on a GPU)."""
    if device.startswith("cuda"):
        import torch

        total = torch.cuda.mem_get_info(device)[1]
        peak = torch.cuda.max_memory_reserved(device)
        torch.cuda.reset_peak_memory_stats(device)
        return float(1 - peak / total)
    return read_free_share(Path("/proc/meminfo"))


def read_free_share(meminfo: Path) -> float:
    """Return the share of the machine's memory that is available; 0 (never grow) where it cannot be known."""
    try:
        text = meminfo.read_text()
    except OSError:
        return 0.0
    figures = {name: int(value) for name, value in re.findall(r"^(MemTotal|MemAvailable):\s+(\d+)", text, re.MULTILINE)}
    return figures.get("MemAvailable", 0) / figures["MemTotal"] if figures.get("MemTotal") else 0.0
