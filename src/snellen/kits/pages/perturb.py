"""A clean page and a named degradation into the degraded page: 30 families at five severities, pure and seeded.

Levels are calibrated by a measured reader on 11 pt text at 96 dpi; ImageNet-C's own, made for 224 px photographs, are
the families `imagenet_c.NAME`. Lengths are pixels of the picture as it is: a larger rendering suffers less.
A calibration has a number; those of old runs stay, so that an old name never means a new picture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np
from msgspec import Struct
from PIL import Image

from ...core.config import convert, read_config_file
from ...core.errors import UsageError, not_among
from ...core.ids import derive_seed
from ...data.images.edits import CALIBRATION
from . import degradations

SEVERITIES = (1, 2, 3, 4, 5)
Level = int | float | tuple[int | float, ...]


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """One degradation: a pure function of (image, level, generator), and its level at severities 1–5."""

    step: str
    """`module.function` of this folder."""
    levels: tuple[Level, Level, Level, Level, Level]
    resizes: bool = False
    grain: float = 0.0
    """Standard deviation in grey levels of what a sensor adds: without it a faint page is read to its last level."""


@cache
def calibration(number: int) -> Mapping[str, Family]:
    """Return the families with the levels of one calibration."""
    if not 1 <= number <= CALIBRATION:
        raise UsageError(f"calibration {number} of the degradations is unknown; known: 1 to {CALIBRATION}")
    name = "degradations.toml" if number == CALIBRATION else f"degradations_{number}.toml"
    table = read_config_file(str(files("snellen") / "catalog" / "documents" / name))
    return convert(table, dict[str, Family], name)


FAMILIES: Mapping[str, Family] = calibration(CALIBRATION)
_STEP = re.compile(r"([a-z_.]+):(\d)")
_RANGE = re.compile(r"([a-z_.]+)(?::(\d)(?:-(\d))?)?")


def apply(image: Image.Image, family: str, severity: int, seed: int, calibrated: int = CALIBRATION) -> Image.Image:
    """Return the degraded picture in the same mode (grey or RGB); severity 0 returns it as it is.

    `calibrated` is the number of the table of levels; what an old run saw is drawn with its own.
    """
    known = _family(family, calibrated)
    if not 0 <= severity <= len(SEVERITIES):
        raise UsageError(f"perturbation {family}: severity {severity} is not in 0-5")
    if image.mode not in ("L", "RGB"):
        image = _flat(image)
    if severity == 0:
        return image
    generator = np.random.default_rng(derive_seed(seed, family))  # one draw for all severities: only the level grows
    return degrade_to(image, known, known.levels[severity - 1], generator)


def degrade_to(image: Image.Image, family: Family, level: Level, generator: np.random.Generator) -> Image.Image:
    """Return the picture degraded to a level, with the sensor's grain over it."""
    degraded: Image.Image = getattr(degradations, family.step)(image, level, generator)
    return degradations.gaussian_noise(degraded, family.grain / 255, generator) if family.grain else degraded


def parse_variants(spec: str) -> list[str]:
    """Turn `jpeg:1-5,blur:3,rotation:1+jpeg:2` into variants (`perturb=jpeg:1`, …); no severity means 1-5."""
    variants = [variant for part in spec.split(",") if part.strip() for variant in _variants(part.strip())]
    if not variants:
        raise UsageError(f"perturbation {spec!r} is empty: write family:severity, for instance jpeg:1-5,blur:3")
    return list(dict.fromkeys(variants))


def edits_of(value: str, seed: int) -> tuple[str, ...]:
    """Turn a variant's value (`jpeg:3`, `rotation:1+jpeg:2`) into edits of one page.

    An edit is `perturb:family:severity:seed:calibration`.
    """
    edits = []
    for part in value.split("+"):
        match = _STEP.fullmatch(part)
        if not match:
            raise UsageError(f"perturbation {value!r}: write family:severity, chained with +")
        _family(match[1])
        edits.append(f"perturb:{match[1]}:{match[2]}:{seed}:{CALIBRATION}")
    return tuple(edits)


def page_seed(seed: int, document: str, page: int) -> int:
    """Return the seed of one page: the same in every order, and for every chain of families."""
    return derive_seed(seed, document, page, "perturb")


def _family(name: str, calibrated: int = CALIBRATION) -> Family:
    known = calibration(calibrated)
    if name not in known:
        raise UsageError(f"unknown perturbation {not_among(name, known)}")
    return known[name]


def _variants(part: str) -> list[str]:
    if "+" in part:
        edits_of(part, 0)
        return [f"perturb={part}"]
    match = _RANGE.fullmatch(part)
    if not match:
        raise UsageError(f"perturbation {part!r}: write family:severity, for instance jpeg:1-5")
    name, low, high = match.groups()
    _family(name)
    first, last = int(low or 1), int(high or low or 5)
    if not 1 <= first <= last <= 5:
        raise UsageError(f"perturbation {part!r}: severities run from 1 to 5")
    return [f"perturb={name}:{severity}" for severity in range(first, last + 1)]


def _flat(image: Image.Image) -> Image.Image:
    """Bring any mode to grey or RGB; transparency is laid on white, as viewers show it."""
    if image.mode in ("1", "L;16", "I", "I;16", "F"):
        return image.convert("L")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        solid = Image.new("RGBA", image.size, "white")
        solid.alpha_composite(image.convert("RGBA"))
        return solid.convert("RGB")
    return image.convert("RGB")
