"""Frame policies: pure functions from what is known of a video to the frames that are shown.

Written `NAME[:NUMBER][,option=value]`. N is the number of frames, F the file's frames a second, n or f the number.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import ConfigError, DataError, not_among
from ...core.types import Showing
from .reel import Reel

SEVERITIES = range(1, 6)
KBPS = {1: 1000, 2: 500, 3: 250, 4: 125, 5: 60}
"""What the severities of `bitrate` mean: kilobits a second, whatever the size of the picture."""


def drop(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Lose each frame with this probability; the first that is left is always there."""
    kept = [index for index in chosen if draw.random() >= share]
    return kept or [chosen[draw.randrange(len(chosen))]]


def freeze(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Show, with this probability, the frame before instead of a frame."""
    seen = chosen[:1]
    for index in chosen[1:]:
        seen.append(seen[-1] if draw.random() < share else index)
    return seen


def jitter(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Move each frame by up to this share of the distance to its neighbours; the order stays."""
    reach = max(1.0, frames / len(chosen)) * share
    return sorted(min(frames - 1, max(0, round(index + draw.uniform(-reach, reach)))) for index in chosen)


def shuffle(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Let twice this share of the frames change places; at severity 5 all of them, and never none."""
    moving = [place for place in range(len(chosen)) if draw.random() < 2 * share]
    mixed = [chosen[place] for place in moving]
    draw.shuffle(mixed)
    if mixed == [chosen[place] for place in moving]:
        mixed = mixed[1:] + mixed[:1]
    seen = list(chosen)
    for place, index in zip(moving, mixed, strict=True):
        seen[place] = index
    return seen


def same(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Show the frames that were chosen: compression changes how they look."""
    return chosen


FAMILIES: dict[str, Callable[[list[int], int, float, random.Random], list[int]]] = {
    "drop": drop,
    "freeze": freeze,
    "jitter": jitter,
    "bitrate": same,
    "shuffle": shuffle,
}


def disturb(tempo: str, chosen: list[int], frames: int, seed: int) -> list[int]:
    """Return the frames that are seen under `family:severity`, a tenth to a half for severities 1 to 5."""
    family, severity = read_tempo(tempo)
    return FAMILIES[family](chosen, frames, severity / 10, random.Random(seed))  # noqa: S311 - reproducible, not secret


def kbps_of(tempo: str) -> int:
    """Return the bitrate a video is compressed to; 0 where it is not."""
    family, severity = read_tempo(tempo) if tempo else ("", 0)
    return KBPS[severity] if family == "bitrate" else 0


def read_tempo(tempo: str) -> tuple[str, int]:
    """Return the family and its severity."""
    family, _, severity = tempo.partition(":")
    if family not in FAMILIES:
        raise ConfigError(f"disturbance of time {not_among(family, FAMILIES, ' is unknown')}")
    if not severity.isdigit() or int(severity) not in SEVERITIES:
        raise ConfigError(f"tempo={tempo} is not family:severity with a severity from 1 to 5")
    return family, int(severity)


MOST_FRAMES = 4096
"""A policy that shows more in one question is refused: no model takes them, and memory is finite."""
SCENE_CHANGE = 0.25
"""How much a frame differs from the one before where a scene begins, unless the policy says otherwise."""


class FrameRule(Struct, frozen=True):
    """A frame policy as it was written."""

    name: str
    number: float | None = None
    times: tuple[float, ...] = ()
    least: int | None = None
    most: int | None = None
    per: float | None = None
    """Tokens or bytes of a frame."""
    patch: int | None = None
    """The side of the square that is one token."""


def uniform(reel: Reel, rule: FrameRule) -> list[int]:
    """The middles of n equal parts, floor((2i+1)·N/2n); all frames where there are no more than n."""
    return spread(len(reel.pts), whole(rule))


def spread(frames: int, count: int) -> list[int]:
    """Return the middles of `count` equal parts of so many frames; never one twice."""
    return list(range(frames)) if count >= frames else [(2 * i + 1) * frames // (2 * count) for i in range(count)]


def linspace(reel: Reel, rule: FrameRule) -> list[int]:
    """From the first frame to the last, floor(i·(N−1)/(n−1)), as LLaVA, lmms-eval and others; repeats where n > N."""
    return [int(place) for place in np.linspace(0, len(reel.pts) - 1, whole(rule), dtype=int)]


def vlmevalkit(reel: Reel, rule: FrameRule) -> list[int]:
    """VLMEvalKit with a number of frames: int(i·N/(n+1)), i from 1; repeats where n > N."""
    step = len(reel.pts) / (whole(rule) + 1)
    return [int(i * step) for i in range(1, whole(rule) + 1)]


def vlmevalkit_fps(reel: Reel, rule: FrameRule) -> list[int]:
    """VLMEvalKit with frames a second: int(i·F/f) for int(N/F·f) frames; no cap."""
    rate = positive(rule)
    wanted, step = int(len(reel.pts) / reel.fps * rate), reel.fps / rate
    return [int(i * step) for i in range(wanted)]


def mvbench(reel: Reel, rule: FrameRule) -> list[int]:
    """MVBench's and MLVU's own: int(s/2 + round(s·i)) with s = (N−1)/n, halves rounded to even; repeats where n > N."""
    part = (len(reel.pts) - 1) / whole(rule)
    return [int(part / 2 + round(part * i)) for i in range(whole(rule))]


def qwen(reel: Reel, rule: FrameRule) -> list[int]:
    """Qwen-VL's own: N/F·f frames within min (4) and max (768), made even, from first to last, rounded."""
    frames = len(reel.pts)
    least, most = _up_to_even(rule.least or 4), min(rule.most or 768, frames) // 2 * 2
    wanted = min(max(frames / reel.fps * positive(rule), least), most, frames)
    count = math.floor(wanted / 2) * 2
    if count < 2:
        raise DataError(f"policy qwen needs two frames, the video has {frames}")
    return [int(place) for place in np.linspace(0, frames - 1, count).round()]


def llava(reel: Reel, rule: FrameRule) -> list[int]:
    """LLaVA-Video's: every round(F/f)-th frame; more than max (64) become linspace:max."""
    step = max(1, round(reel.fps / positive(rule)))
    every, most = list(range(0, len(reel.pts), step)), rule.most or 64
    return every if len(every) <= most else linspace(reel, FrameRule("linspace", most))


def per_second(reel: Reel, rule: FrameRule) -> list[int]:
    """The frames shown at 0, 1/f, 2/f … seconds; beyond max (or below min) that many, uniformly."""
    rate = positive(rule)
    count = max(1, math.ceil(reel.duration * rate - 1e-9))
    if rule.most is None and count > MOST_FRAMES:
        raise DataError(_too_many(count))
    chosen = list(dict.fromkeys(reel.shown_at(min(i / rate, reel.duration)) for i in range(count)))
    if rule.most is not None and len(chosen) > rule.most:
        return spread(len(reel.pts), rule.most)
    return spread(len(reel.pts), rule.least) if rule.least is not None and len(chosen) < rule.least else chosen


def budget(reel: Reel, rule: FrameRule) -> list[int]:
    """As many uniform frames as the tokens (or bytes) pay for, at `per` each, or one a square of `patch` pixels."""
    each = rule.per
    if each is None and rule.patch:
        each = math.ceil(reel.width / rule.patch) * math.ceil(reel.height / rule.patch)
    if not each:
        raise ConfigError(f"policy {rule.name} needs what a frame costs: {rule.name}:16000,per=256 (or ,patch=28)")
    count = int(positive(rule) // each)
    if not count:
        raise DataError(f"policy {rule.name}:{rule.number:g} does not pay for one frame of {each:g}")
    return _capped(spread(len(reel.pts), count), rule.most)


def keyframes(reel: Reel, rule: FrameRule) -> list[int]:
    """The key frames of the file; beyond max, that many of them, uniformly."""
    return _capped(list(reel.keys), rule.most)


def scenes(reel: Reel, rule: FrameRule) -> list[int]:
    """The first frame, and each that differs from the one before by the number (0.25) or more; at most max of them."""
    least = SCENE_CHANGE if rule.number is None else rule.number
    changed = [place for place, difference in enumerate(reel.scenes) if place and difference >= least]
    return _capped([0, *changed], rule.most)


def at_times(reel: Reel, rule: FrameRule) -> list[int]:
    """The frames shown at these seconds."""
    return [reel.shown_at(second) for second in rule.times]


def every_frame(reel: Reel, rule: FrameRule) -> list[int]:
    """All frames."""
    return list(range(len(reel.pts)))


RULES: dict[str, Callable[[Reel, FrameRule], list[int]]] = {
    "uniform": uniform,
    "linspace": linspace,
    "vlmevalkit": vlmevalkit,
    "vlmevalkit-fps": vlmevalkit_fps,
    "mvbench": mvbench,
    "qwen": qwen,
    "llava": llava,
    "fps": per_second,
    "tokens": budget,
    "bytes": budget,
    "keyframes": keyframes,
    "scenes": scenes,
    "times": at_times,
    "all": every_frame,
}
BY_COUNT = ("uniform", "linspace", "vlmevalkit", "mvbench")
BY_RATE = ("fps", "qwen", "llava", "vlmevalkit-fps")
UNNUMBERED = ("keyframes", "scenes", "all")
OPTIONS = {"min": "least", "max": "most", "per": "per", "patch": "patch"}


def choose_frames(policy: str, reel: Reel) -> list[int]:
    """Return the indices of the frames that a policy shows, in order."""
    rule = read_rule(policy)
    chosen = RULES[rule.name](reel, rule)
    if not chosen:
        raise DataError(f"policy {policy!r} shows no frame: the video is {reel.duration:.3f} s long")
    if len(chosen) > MOST_FRAMES:
        raise DataError(_too_many(len(chosen)))
    return chosen


@lru_cache(maxsize=256)
def read_rule(policy: str) -> FrameRule:
    """Read a policy as it is written; what cannot be meant is refused."""
    head, *options = policy.split(",")
    name, colon, number = head.partition(":")
    if name not in RULES:
        raise ConfigError(f"frame policy {not_among(name, RULES, ' is unknown')}")
    if not number and (colon or name not in UNNUMBERED):
        raise ConfigError(f"frame policy {policy!r} lacks its number, for example {name}:8")
    rule = FrameRule(name, times=_seconds(number, policy)) if name == "times" else FrameRule(name, _number(number))
    for option in options:
        rule = _with_option(rule, option, policy)
    _check_number(rule, policy)
    return rule


def _with_option(rule: FrameRule, option: str, policy: str) -> FrameRule:
    key, _, value = option.partition("=")
    if key not in OPTIONS:
        raise ConfigError(f"frame policy {policy!r}: option {not_among(key, OPTIONS, ' is unknown')}")
    amount = _number(value)
    if not amount or amount < 0 or (key != "per" and amount % 1):
        raise ConfigError(f"frame policy {policy!r}: {key}={value} is not a number above 0")
    return replace(rule, **{OPTIONS[key]: amount if key == "per" else int(amount)})


def _check_number(rule: FrameRule, policy: str) -> None:
    if rule.name in BY_COUNT:
        whole(rule)
    elif rule.name != "times" and rule.number is not None:
        positive(rule)
    if rule.least is not None and rule.most is not None and rule.least > rule.most:
        raise ConfigError(f"frame policy {policy!r}: min is above max")


def whole(rule: FrameRule) -> int:
    """Return the number of a rule that counts frames."""
    if rule.number is None or rule.number < 1 or rule.number % 1:
        raise ConfigError(f"frame policy {rule.name}: the number of frames must be a whole number from 1")
    if rule.number > MOST_FRAMES:
        raise ConfigError(f"frame policy {rule.name}: {_too_many(int(rule.number))}")
    return int(rule.number)


def positive(rule: FrameRule) -> float:
    """Return the number of a rule that is a rate, a share or a budget."""
    if rule.number is None or rule.number <= 0:
        raise ConfigError(f"frame policy {rule.name}: its number must be above 0")
    return rule.number


def _capped(chosen: Sequence[int], most: int | None) -> list[int]:
    if most is None or len(chosen) <= most:
        return list(chosen)
    return [chosen[place] for place in spread(len(chosen), most)]


def _up_to_even(number: int) -> int:
    return number + number % 2


def _number(text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        raise ConfigError(f"frame policy: {text!r} is not a number") from None
    if not math.isfinite(number):
        raise ConfigError(f"frame policy: {text!r} is not a finite number")
    return number


def _seconds(text: str, policy: str) -> tuple[float, ...]:
    times = [_number(part) for part in text.split(";")]
    if None in times or any(time < 0 for time in times if time is not None):
        raise ConfigError(f"frame policy {policy!r}: times are seconds joined by ; (times:1.5;3)")
    return tuple(time for time in times if time is not None)


def _too_many(count: int) -> str:
    return f"{count} frames in one question; the limit is {MOST_FRAMES}: set max="


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
