"""Picture sizes into visual tokens per model family, and texts into token counts: what a page costs and saves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial

from ..core.errors import MissingExtra, UsageError, not_among
from ..core.frames import Size, on_grid

DEFAULT_TOKENIZER = "chars/4.2"
"""Characters a token: English prose under cl100k_base, measured on 200,000 characters."""


def _merged(size: Size, factor: int, low: int, high: int) -> int:
    """Qwen's smart resize: sides to multiples of `factor`, area within `low`–`high` pixels, one token a square."""
    width, height = on_grid(size, factor, low, high)
    return width * height // (factor * factor)


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


def tile_tokens(size: Size, *, base: int, tile: int) -> int:
    """Into 2048 by 2048, the shorter side to 768 at most, so much for each square of 512, and `base` for the whole."""
    scale = min(1.0, 2048 / max(size))
    scale *= min(1.0, 768 / (min(size) * scale))
    across, down = (math.ceil(round(side * scale, 6) / 512) for side in size)
    return base + tile * across * down


def patch_tokens(size: Size, *, cap: int, multiplier: float) -> int:
    """One a square of 32, shrunk until at most `cap` whole ones fit."""
    width, height = size
    patches = math.ceil(width / 32) * math.ceil(height / 32)
    if patches > cap:
        ratio = math.sqrt(cap * 32 * 32 / (width * height))
        across, down = width * ratio / 32, height * ratio / 32
        ratio *= min(max(1, math.floor(across)) / across, max(1, math.floor(down)) / down)
        across, down = (math.ceil(round(side * ratio / 32, 6)) for side in size)
        patches = int(across * down)
    return math.ceil(round(patches * multiplier, 6))


def area_tokens(size: Size, *, area: float, max_side: int | None, max_pixels: int | None) -> int:
    """So many pixels a token, after the picture was brought under a side and an area."""
    width, height = size
    scale = min(1.0, max_side / max(size)) if max_side else 1.0
    if max_pixels:
        scale = min(scale, math.sqrt(max_pixels / (width * height)))
    return max(1, math.ceil(width * scale * height * scale / area))


def crop_tokens(size: Size, *, tile: int) -> int:
    """One for a small picture, else one a crop whose side hangs on the shorter side."""
    if max(size) <= 384:
        return tile
    unit = min(768, max(256, math.floor(min(size) / 1.5)))
    return tile * math.ceil(size[0] / unit) * math.ceil(size[1] / unit)


def _smolvlm(size: Size, longest: int, tile: int, each: int) -> int:
    """SmolVLM: the longer side to `longest`, as many squares of `tile` as cover it, and one for the whole."""
    longer, shorter = max(size), min(size)
    other = int(longest / (longer / shorter)) if size[0] >= size[1] else int(longest * (shorter / longer))
    return each * (math.ceil(longest / tile) * math.ceil((other + other % 2) / tile) + 1)


_NEXT_GRIDS = ((1, 2), (2, 1), (2, 2), (1, 3), (3, 1))
"""Rows and columns of tiles of 336 px, in the order in which the first of equals is taken."""


def _llava_next(size: Size) -> int:
    """LLaVA-1.6: the whole, the grid of 336 px tiles that keeps most of it without its margins, and one a row."""
    width, height = size

    def kept(grid: tuple[int, int]) -> tuple[int, int]:
        tall, wide = 336 * grid[0], 336 * grid[1]
        scale = min(wide / width, tall / height)
        used = min(int(width * scale) * int(height * scale), width * height)
        return used, used - wide * tall

    rows, columns = max(_NEXT_GRIDS, key=kept)
    down, across = 24 * rows, 24 * columns
    if width / height > across / down:
        down -= 2 * ((down - int(round(height * (across / width), 7))) // 2)
    else:
        across -= 2 * ((across - int(round(width * (down / height), 7))) // 2)
    return down * across + down + 576


FAMILIES: Mapping[str, Callable[[Size], int]] = {
    "qwen2.5-vl": partial(_merged, factor=28, low=3_136, high=12_845_056),
    "qwen3-vl": partial(_merged, factor=32, low=65_536, high=16_777_216),
    "glm-4.1v": partial(_merged, factor=28, low=12_544, high=4_816_896),
    "internvl3.5": _internvl,
    "kimi-vl": _kimi,
    "deepseek-ocr": _deepseek_ocr,
    "gemma3": lambda size: 256,
    "llava-1.5": lambda size: 576,
    "llava-next": _llava_next,
    "smolvlm": partial(_smolvlm, longest=1_536, tile=384, each=81),
    "smolvlm-256m": partial(_smolvlm, longest=2_048, tile=512, each=64),
    "claude": partial(area_tokens, area=750.0, max_side=1_568, max_pixels=1_150_000),
    "claude-5": partial(area_tokens, area=750.0, max_side=2_576, max_pixels=3_750_000),
    "gpt-4o": partial(tile_tokens, base=85, tile=170),
    "gpt-5": partial(tile_tokens, base=70, tile=140),
    "gpt-4.1-mini": partial(patch_tokens, cap=1_536, multiplier=1.62),
    "gemini-2.5": partial(crop_tokens, tile=258),
    "gemini-3": lambda size: 1_120,
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
