"""How a video is shown, from the prompt and the variant's axes `frames`, `fps`, `tempo`, `subtitles`; checked."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from ...core.errors import ConfigError, not_among
from ...core.types import Showing
from .frame_rules import BY_COUNT, BY_RATE, read_rule
from .tempo import read_tempo

VIDEO_AXES = ("frames", "fps", "tempo", "subtitles")
SUBTITLES = ("none", "all", "sampled", "interleaved")
ROUTES = ("frames", "native")
ENCODING = re.compile(r"png|jpeg:(?:100|[1-9]\d?)")


def vary_showing(showing: Showing, axes: Mapping[str, str]) -> Showing:
    """Return how a video is shown in a variant.

    `frames=32` keeps the formula of a policy that counts frames, `fps=2` that of one with a rate; `frames` may also be
    a whole policy (`frames=keyframes`).
    """
    if "frames" in axes and "fps" in axes:
        raise ConfigError("a variant has frames= or fps=, not both")
    if "frames" in axes:
        value = axes["frames"]
        showing = replace(showing, frames=_renumbered(showing.frames, value, BY_COUNT) if value.isdigit() else value)
    if "fps" in axes:
        showing = replace(showing, frames=_renumbered(showing.frames, axes["fps"], BY_RATE))
    if "tempo" in axes:
        showing = replace(showing, tempo=axes["tempo"])
    if "subtitles" in axes:
        showing = replace(showing, subtitles=axes["subtitles"])
    check_showing(showing)
    return showing


def _renumbered(policy: str, number: str, family: tuple[str, ...]) -> str:
    head, comma, options = policy.partition(",")
    name = head.partition(":")[0]
    return f"{name}:{number}{comma}{options}" if name in family else f"{family[0]}:{number}"


def check_showing(showing: Showing) -> None:
    """Refuse what cannot be shown, before the first request."""
    read_rule(showing.frames)
    if showing.tempo:
        read_tempo(showing.tempo)
    if showing.subtitles not in SUBTITLES:
        raise ConfigError(f"subtitles {not_among(showing.subtitles, SUBTITLES, ' is unknown')}")
    if showing.route not in ROUTES:
        raise ConfigError(f"video route {not_among(showing.route, ROUTES, ' is unknown')}")
    if showing.route == "native" and (showing.stamp or showing.subtitles == "interleaved"):
        raise ConfigError(
            "a video that goes out as one has no room between its frames: leave out stamp, and subtitles=all"
        )
    if not ENCODING.fullmatch(showing.encoding):
        raise ConfigError(f"video encoding {showing.encoding!r} is neither png nor jpeg:QUALITY (1 to 100)")
    if showing.side < 0:
        raise ConfigError(f"video side {showing.side} is below 0")
