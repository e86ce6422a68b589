"""The embedded reader: an OCR engine and a small answerer as a Model. It sees the request and nothing else."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...core.errors import DataError, EnvironmentProblem, ModelError, UsageError, did_you_mean
from ...core.ids import content_hash, sha256_hex
from ...core.protocols import Capability, EncodedImages, ImagePolicy
from ...core.types import FailureKind, Image, Prediction, Request, Timing, Usage
from ...data.images.decode import decode, read_bytes
from ...data.images.edits import apply_edits
from ..options import ModelOptions
from .answerer import answer
from .engines import ENGINES, Engine
from .reading_order import lines_of

ANSWERER_VERSION = 1
"""Raised when `reading` answers differently from the same text: old replies in the cache are then no longer used."""
PAGES_KEPT = 512
"""Pages whose text is remembered, so that many questions on one page read it once."""


def create(name: str, options: ModelOptions) -> Reader:
    """Return `reader` (rapidocr) or `reader/tesseract`."""
    chosen = name or "rapidocr"
    if chosen not in ENGINES:
        raise UsageError(f"no reader named {chosen!r}{did_you_mean(chosen, ENGINES)}; known: {', '.join(ENGINES)}")
    return Reader(f"reader/{name}" if name else "reader", ENGINES[chosen](), options)


class Reader:
    """Reads pictures in worker threads (both engines leave Python while they work) and answers from the text."""

    capabilities = frozenset({Capability.GENERATE, Capability.IMAGES})
    cacheable = True

    def __init__(self, name: str, engine: Engine, options: ModelOptions) -> None:
        options.allow_arguments(name, ("workers",))
        self.name = name
        self.image_policy = options.image_policy or ImagePolicy()
        self._engine = engine
        self._clock = options.clock
        workers = int(options.arguments.get("workers", 0)) or min(4, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="reader")
        self._pages: OrderedDict[str, asyncio.Future[list[str]]] = OrderedDict()

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request from what stands on its pictures."""
        if request.choices:
            raise ModelError(
                FailureKind.CAPABILITY, f"{self.name} cannot score candidates: use --infer-method generation"
            )
        sent = self._clock.monotonic()
        try:
            # Read from the file, not from `images`: what is sent may be shrunk to the policy, and small print with it.
            pages = [await self._read(image) for turn in request.messages for image in turn.images]
        except DataError as error:
            raise ModelError(FailureKind.DECODE, str(error)) from None
        lines = [line for page in pages for line in page]
        text = answer(request.messages[-1].text, lines, request.shown)
        if text in request.shown:
            text = request.marks[request.shown.index(text)]
        usage = Usage(output_tokens=len(text.split()))
        return Prediction(
            request.key, text=text, usage=usage, timing=Timing(sent, self._clock.monotonic()), finish="stop"
        )

    async def _read(self, image: Image) -> list[str]:
        loop = asyncio.get_running_loop()
        data = await loop.run_in_executor(self._pool, read_bytes, image)
        key = content_hash([sha256_hex(data), image.edits])
        if key not in self._pages:
            self._pages[key] = loop.run_in_executor(self._pool, self._read_page, data, image)
            if len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
        return await asyncio.shield(self._pages[key])

    def _read_page(self, data: bytes, image: Image) -> list[str]:
        picture = apply_edits(decode(data, image.ref), image.edits)
        try:
            return lines_of(self._engine.read(picture))
        except EnvironmentProblem as error:
            raise ModelError(FailureKind.SERVER, str(error)) from None

    async def check(self) -> None:
        """Raise if the engine is not installed."""
        self._engine.prepare()

    def identity(self) -> Mapping[str, Any]:
        """Return the engine, its version and that of the answerer."""
        engine = {"engine": self._engine.name, "version": self._engine.version()}
        return {"model": self.name, **engine, "answerer": ANSWERER_VERSION}

    async def close(self) -> None:
        """End the worker threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
