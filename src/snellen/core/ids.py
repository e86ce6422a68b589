"""Stable names and seeds: content hashes, and random generators that depend on nothing but their purpose."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import msgspec

_canonical = msgspec.json.Encoder(order="deterministic")


def canonical_json(value: Any) -> bytes:
    """Encode with sorted keys, so equal content has equal bytes."""
    return _canonical.encode(value)


def content_hash(value: Any, length: int = 16) -> str:
    """Hash the canonical JSON of `value`; `length` hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()[:length]


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` in hex."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def derive_seed(*parts: str | int | float) -> int:
    """Return a 64-bit seed from (run seed, sample id, variant, repeat, purpose) or any such parts."""
    joined = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big")


def rng(*parts: str | int | float) -> random.Random:
    """Return a generator seeded by `parts` alone: independent of order, workers and resume."""
    return random.Random(derive_seed(*parts))  # noqa: S311 - reproducibility, not secrecy
