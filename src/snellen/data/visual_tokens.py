"""Picture sizes into visual tokens per model family, and texts into token counts: what a page costs and saves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial

from ..core.errors import MissingExtra, UsageError, not_among

Size = tuple[int, int]
"""Width and height in pixels."""
DEFAULT_TOKENIZER = "chars/4.2"
"""Characters a token: English prose under cl100k_base, measured on 200,000 characters."""


def _merged(size: Size, factor: int, low: int, high: int) -> int:
    """Qwen's smart resize: sides to multiples of `factor`, area within `low`–`high` pixels, one token a square."""
    width, height = size
    columns, rows = max(1, round(width / factor)), max(1, round(height / factor))
    area = columns * rows * factor * factor
    if area > high:
        scale = math.sqrt(width * height / high)
        columns, rows = max(1, math.floor(width / scale / factor)), max(1, math.floor(height / scale / factor))
    elif area < low:
        scale = math.sqrt(low / (width * height))
        columns, rows = math.ceil(width * scale / factor), math.ceil(height * scale / factor)
    return columns * rows


def _internvl(size: Size, most_tiles: int = 12) -> int:
    """InternVL tiles by aspect ratio alone: 256 tokens a tile, one thumbnail more when there are several."""
    width, height = size
    grids = sorted(
        {(i, j) for i in range(1, most_tiles + 1) for j in range(1, most_tiles + 1) if i * j <= most_tiles},
        key=lambda grid: grid[0] * grid[1],
    )
    best, best_gap = (1, 1), math.inf
    for i, j in grids:
        gap = abs(width / height - i / j)
        if gap < best_gap or (gap == best_gap and width * height > 0.5 * 448 * 448 * i * j):
            best, best_gap = (i, j), gap
    tiles = best[0] * best[1]
    return 256 * (tiles + 1 if tiles > 1 else 1)


def _kimi(size: Size, limit: int = 4096) -> int:
    """Kimi-VL: 14 px patches under a limit, padded to multiples of 28."""
    width, height = float(size[0]), float(size[1])
    patches = (width // 14) * (height // 14)
    if patches > limit:
        scale = math.sqrt(limit / patches)
        width, height = float(int(width * scale)), float(int(height * scale))
    return max(1, math.ceil(height / 28)) * max(1, math.ceil(width / 28))


def _deepseek_ocr(size: Size) -> int:
    """DeepSeek-OCR: the smallest of its four square modes that holds the longer side."""
    for side, tokens in ((512, 64), (640, 100), (1024, 256)):
        if max(size) <= side:
            return tokens
    return 400


def _claude(size: Size) -> int:
    """Claude: area / 750 after the longer side is brought to 1,568 px at most."""
    scale = min(1.0, 1568 / max(size))
    return math.ceil(size[0] * scale * size[1] * scale / 750)


def _gpt(size: Size) -> int:
    """GPT-4o high detail: fit 2,048², shorter side to 768, 170 a tile of 512 and 85 for the whole."""
    scale = min(1.0, 2048 / max(size))
    width, height = size[0] * scale, size[1] * scale
    scale = min(1.0, 768 / min(width, height))
    return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


FAMILIES: Mapping[str, Callable[[Size], int]] = {
    "qwen2.5-vl": partial(_merged, factor=28, low=3_136, high=12_845_056),
    "qwen3-vl": partial(_merged, factor=32, low=65_536, high=16_777_216),
    "glm-4.1v": partial(_merged, factor=28, low=12_544, high=4_816_896),
    "internvl3.5": _internvl,
    "kimi-vl": _kimi,
    "deepseek-ocr": _deepseek_ocr,
    "gemma3": lambda size: 256,
    "claude": _claude,
    "gpt-4o": _gpt,
}
"""Family name -> size to tokens, without the 2–4 wrapper tokens an image also costs."""


def visual_tokens(sizes: Iterable[Size], family: str) -> int:
    """Return the estimated tokens of all pictures; an unknown family is a UsageError."""
    if family not in FAMILIES:
        raise UsageError(f"unknown model family {not_among(family, FAMILIES)}")
    return sum(FAMILIES[family](size) for size in sizes)


def count_tokens(text: str, tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """Count text tokens: `chars/N`, `cl100k`, `o200k` (extra `tokens`) or a local Hugging Face tokenizer folder."""
    if tokenizer.startswith("chars/"):
        try:
            return math.ceil(len(text) / float(tokenizer.removeprefix("chars/")))
        except (ValueError, ZeroDivisionError):
            raise UsageError(f"tokenizer {tokenizer!r}: write chars/4.2, cl100k, o200k or a tokenizer folder") from None
    return len(_encoder(tokenizer)(text))


BINS = {
    8: "<8k", 16: "8k-16k", 24: "16k-24k", 32: "24k-32k", 48: "32k-48k", 64: "48k-64k", 96: "64k-96k",
    128: "96k-128k", 256: "128k-256k",
}  # fmt: skip
"""Upper bound in thousands of tokens -> length group: half-open, decimal k.

The page-image scripts end with ≥64k, where half of LongBench-v2 would sit in one group."""
LAST_BIN = "≥256k"
ORDER = (*BINS.values(), LAST_BIN)


def context_bin(tokens: int) -> str:
    """Return the length group of a token count."""
    return next((name for limit, name in BINS.items() if tokens < limit * 1000), LAST_BIN)


@cache
def _encoder(tokenizer: str) -> Callable[[str], list[int]]:
    if tokenizer in ("cl100k", "o200k"):
        try:
            import tiktoken
        except ImportError:
            raise MissingExtra("tokens", f"tokenizer {tokenizer}") from None
        try:
            return partial(tiktoken.get_encoding(f"{tokenizer}_base").encode, disallowed_special=())
        except OSError as error:
            fix = "set TIKTOKEN_CACHE_DIR or use chars/4.2"
            raise UsageError(f"tokenizer {tokenizer} could not be downloaded ({error}); {fix}") from None
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MissingExtra("hf", f"tokenizer {tokenizer}") from None
    try:
        loaded = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    except (OSError, ValueError):
        others = "or use chars/4.2, cl100k, o200k"
        raise UsageError(f"tokenizer {tokenizer!r} is not a local tokenizer folder; {others}") from None
    return partial(loaded.encode, add_special_tokens=False)
