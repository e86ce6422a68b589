"""Token counts into named length groups: the page-image scripts' own bins, carried on above 64k."""

from __future__ import annotations

BINS = (
    (8_000, "<8k"),
    (16_000, "8k-16k"),
    (24_000, "16k-24k"),
    (32_000, "24k-32k"),
    (48_000, "32k-48k"),
    (64_000, "48k-64k"),
    (96_000, "64k-96k"),
    (128_000, "96k-128k"),
    (256_000, "128k-256k"),
)
"""Half-open, decimal k. The scripts end with ≥64k, where half of LongBench-v2 would sit in one group."""
LAST = "≥256k"
ORDER = (*(name for _, name in BINS), LAST)


def context_bin(tokens: int) -> str:
    """Return the group of a token count."""
    return next((name for limit, name in BINS if tokens < limit), LAST)
