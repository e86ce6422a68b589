"""The grammar of variants: `axis=value` joined by `&`; `base` is none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from .errors import ConfigError
from .types import BASE_VARIANT


@lru_cache(maxsize=4096)
def parse_variant(variant: str) -> Mapping[str, str]:
    """Return the axes of a variant name; `base` gives none."""
    if variant == BASE_VARIANT:
        return MappingProxyType({})
    axes: dict[str, str] = {}
    for part in variant.split("&"):
        axis, equals, value = part.partition("=")
        if not equals or not axis or not value or axis in axes:
            raise ConfigError(f"variant {variant!r} is not axis=value joined by & (for example wording=2&order=1)")
        axes[axis] = value
    return MappingProxyType(axes)


def format_variant(axes: Mapping[str, str]) -> str:
    """Return the name of a variant; the order of axes does not matter."""
    return "&".join(f"{axis}={axes[axis]}" for axis in sorted(axes)) or BASE_VARIANT
