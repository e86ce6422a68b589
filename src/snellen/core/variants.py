"""Variants (`axis=value` joined by `&`; `base` is none), and arms: the same question with its picture, without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from .errors import ConfigError, UsageError, not_among
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


PICTURE = "picture"
NONE, BLANK, OTHER, WITHOUT_PAGE, NO_VIDEO = "none", "blank", "other", "without-page", "no-video"
RECALL = "recall"
"""Of the axis `control`: the text is to be continued, without its picture."""
SHUFFLED_OPTIONS, FRAMES_SHUFFLED, ONE_FRAME = "shuffled-options", "frames-shuffled", "one-frame"
ARMS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        PICTURE: {},
        NONE: {"control": NONE},
        BLANK: {"control": BLANK},
        OTHER: {"control": OTHER},
        WITHOUT_PAGE: {"control": WITHOUT_PAGE},
        NO_VIDEO: {"control": NO_VIDEO},
        SHUFFLED_OPTIONS: {"order": "1"},
        FRAMES_SHUFFLED: {"tempo": "shuffle:5"},
        ONE_FRAME: {"frames": "1"},
    }
)
"""Arm -> the axes of its variant."""
NEEDS_PICTURE = "needs_picture"
"""The figure of what the first arm does not keep."""
WITHHOLDING = (NONE, BLANK, OTHER, WITHOUT_PAGE, NO_VIDEO)
"""Arms that take away what the question is about; the first one that was asked stands for a run. The others change
how it is shown."""


class Arm(NamedTuple):
    """One variant that is an arm, and the variant that it is compared with."""

    name: str
    variant: str
    beside: str


def check_named(names: Sequence[str], known: Sequence[str], flag: str) -> None:
    """Refuse an unknown arm and one named twice; also those of looking again (`core/looks.py`)."""
    for name in names:
        if name not in known:
            raise UsageError(f"{flag}: {not_among(name, known, ' is no arm')}")
    if len(set(names)) != len(names):
        raise UsageError(f"{flag} {','.join(names)}: an arm is named twice")


def check_arms(names: Sequence[str]) -> None:
    """Refuse what `check_named` does, and arms without the picture, which all others are compared with."""
    check_named(names, tuple(ARMS), "--arms")
    if PICTURE not in names or len(names) < 2:
        raise UsageError(f"--arms {','.join(names)}: name `{PICTURE}` and at least one more, to compare with it")
    if not set(names) & set(WITHHOLDING) and not set(names) & {FRAMES_SHUFFLED, ONE_FRAME}:
        known = ", ".join(WITHHOLDING)
        raise UsageError(f"--arms {','.join(names)}: nothing takes the picture away; add one of {known}")


def in_arms(
    variants: Sequence[str], names: Sequence[str], arms: Mapping[str, Mapping[str, str]] = ARMS, flag: str = "--arms"
) -> tuple[str, ...]:
    """Return every variant in every arm; one that says already what an arm changes is refused."""
    made = []
    for variant in variants:
        axes = parse_variant(variant)
        for name in names:
            taken = next((axis for axis in arms[name] if axis in axes), None)
            if taken is not None:
                raise UsageError(f"{flag} {name} sets {taken}, which variant {variant!r} sets too: leave one of them")
            made.append(format_variant({**axes, **arms[name]}))
    return tuple(dict.fromkeys(made))


def find_arms(variants: Sequence[str]) -> list[Arm]:
    """Return the arms among variants, each with the one it is compared with; none where nothing was taken away."""
    known, found = set(variants), []
    for variant in variants:
        axes = _axes(variant)
        for name, marks in ARMS.items():
            if marks and marks.items() <= axes.items():
                beside = format_variant({axis: value for axis, value in axes.items() if axis not in marks})
                if beside in known:
                    found.append(Arm(name, variant, beside))
    asked = {arm.name for arm in found}
    return found if asked & {*WITHHOLDING, FRAMES_SHUFFLED, ONE_FRAME} else []


def variants_beside(variants: Sequence[str]) -> set[str]:
    """Return the variants that are no part of a task's figures: arms, and what only asks whether a test was seen.

    Arms of looking again (`look=grey`, core/looks.py) are such too.
    """
    axes = {name: _axes(name) for name in variants}
    probes = {name for name in variants if axes[name].get("control") == RECALL or axes[name].keys() & {"twin", "look"}}
    beside = probes | {arm.variant for arm in find_arms(variants)}
    return beside if beside < set(variants) else set()


def first_arm(arms: Sequence[Arm]) -> str:
    """Return the arm that stands for a run: the one that takes away most."""
    asked = [arm.name for arm in arms]
    return next(name for name in (*WITHHOLDING, ONE_FRAME, FRAMES_SHUFFLED) if name in asked)


def _axes(variant: str) -> dict[str, str]:
    """Read a variant's axes leniently: rows from outside may hold any name."""
    if variant == BASE_VARIANT:
        return {}
    pairs = (part.partition("=") for part in variant.split("&"))
    return {axis: value for axis, equals, value in pairs if equals}
