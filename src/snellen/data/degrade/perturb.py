"""A clean page and a named degradation into the degraded page: 30 families at five severities, pure and seeded.

Levels are tuned for text of 9–16 px; ImageNet-C's own, made for 224 px photographs, are the families
`imagenet_c.NAME`. Lengths are pixels of the picture as it is: a larger rendering suffers less from the same severity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ...core.errors import UsageError, not_among
from ...core.ids import derive_seed
from . import blurs, codecs, geometry, noise, overlaid, tones

SEVERITIES = (1, 2, 3, 4, 5)
Step = Callable[[Image.Image, Any, np.random.Generator], Image.Image]


class Family(NamedTuple):
    """One degradation: a pure function of (image, level, generator), and its level at severities 1–5."""

    step: Step
    levels: tuple[Any, Any, Any, Any, Any]
    resizes: bool = False


FAMILIES: Mapping[str, Family] = {
    "dpi_resample": Family(codecs.resample, (0.75, 0.6, 0.5, 0.42, 0.34)),  # share of each side kept on the way
    "nearest": Family(codecs.shrink_nearest, (0.9, 0.8, 0.7, 0.6, 0.5), resizes=True),  # share of a side left
    "pixelate": Family(codecs.pixelate, (0.8, 0.7, 0.6, 0.5, 0.4)),  # 1 / side of a block in px
    "jpeg": Family(codecs.jpeg, (50, 25, 10, 5, 1)),  # quality, of 95
    "jpeg_repeat": Family(codecs.jpeg_repeat, (2, 4, 8, 14, 20)),  # how often it is saved
    "webp": Family(codecs.webp, (50, 25, 10, 4, 0)),  # quality, of 100
    "bit_depth": Family(tones.bit_depth, (16, 8, 4, 3, 2)),  # grey levels left
    "binarise": Family(tones.binarise, (160, 128, 96, 64, 40)),  # grey level where white begins
    "dither": Family(codecs.dither, (1.0, 0.85, 0.7, 0.6, 0.5)),  # share of each side kept on the way
    "gaussian_noise": Family(noise.gaussian, (0.08, 0.16, 0.26, 0.38, 0.55)),  # standard deviation, in full white
    "shot_noise": Family(noise.shot, (40, 15, 6, 3, 1.2)),  # photons that make white
    "speckle": Family(noise.speckle, (0.15, 0.25, 0.4, 0.6, 0.9)),  # standard deviation, in the pixel's own value
    "salt_pepper": Family(noise.salt_pepper, (0.01, 0.03, 0.07, 0.13, 0.22)),  # share of pixels hit
    "blur": Family(blurs.gaussian, (0.6, 1.0, 1.5, 2.0, 2.8)),  # sigma in px
    "defocus": Family(blurs.defocus, (1.0, 1.6, 2.2, 3.0, 4.0)),  # radius in px
    "motion_blur": Family(blurs.motion, (2, 3, 4, 6, 9)),  # length in px
    # sigma in px, reach in px, rounds
    "glass": Family(blurs.glass, ((0.4, 0.7, 1), (0.5, 0.9, 1), (0.5, 1.2, 1), (0.6, 1.2, 2), (0.8, 1.8, 2))),
    "contrast": Family(tones.contrast, (0.5, 0.25, 0.1, 0.04, 0.02)),  # share of the contrast left
    "brightness": Family(tones.brightness, (0.3, 0.6, 0.8, 0.92, 0.97)),  # share of the light lost
    "gamma": Family(tones.gamma, (0.6, 0.4, 0.25, 0.15, 0.08)),  # exponent
    "ink_fade": Family(tones.ink_fade, (7.0, 4.5, 3.0, 1.8, 1.2)),  # contrast ratio of ink to paper
    "thin": Family(tones.thin, (0.4, 0.6, 0.8, 0.92, 1.0)),  # px taken off strokes
    "bold": Family(tones.bold, (0.4, 0.7, 1.0, 1.4, 2.0)),  # px added to strokes
    "rotation": Family(geometry.rotate, (0.5, 1.0, 2.5, 5.0, 10.0)),  # degrees
    "perspective": Family(geometry.perspective, (0.01, 0.03, 0.06, 0.1, 0.15)),  # share of a side a corner moves in
    "elastic": Family(geometry.elastic, (0.8, 1.6, 2.6, 4.0, 6.0)),  # px of pull
    "curl": Family(geometry.curl, (0.01, 0.02, 0.04, 0.07, 0.11)),  # height of the arch, in page widths
    "shadow": Family(overlaid.shadow, (0.15, 0.3, 0.45, 0.65, 0.9)),  # share of the light lost
    "bleed_through": Family(overlaid.bleed_through, (0.1, 0.2, 0.35, 0.5, 0.7)),  # opacity of the other side
    "watermark": Family(overlaid.watermark, (0.15, 0.3, 0.5, 0.7, 0.9)),  # opacity
    "photocopy": Family(overlaid.photocopy, (0.2, 0.4, 0.6, 0.8, 1.0)),  # wear, 0 to 1
    "low_ink": Family(overlaid.low_ink, (0.02, 0.05, 0.09, 0.14, 0.22)),  # share of rows lost
    "moire": Family(overlaid.moire, (0.15, 0.3, 0.45, 0.6, 0.8)),  # depth of the gratings
    "occlusion": Family(overlaid.occlude, (0.02, 0.05, 0.1, 0.2, 0.35)),  # share of the area covered
    "margin_crop": Family(geometry.crop, (0.01, 0.025, 0.05, 0.08, 0.12)),  # share of the width cut off
    # ImageNet-C's levels, in the units of the families above.
    "imagenet_c.gaussian_noise": Family(noise.gaussian, (0.08, 0.12, 0.18, 0.26, 0.38)),
    "imagenet_c.shot_noise": Family(noise.shot, (60, 25, 12, 5, 3)),
    "imagenet_c.impulse_noise": Family(noise.salt_pepper, (0.03, 0.06, 0.09, 0.17, 0.27)),
    "imagenet_c.speckle_noise": Family(noise.speckle, (0.15, 0.2, 0.35, 0.45, 0.6)),
    "imagenet_c.gaussian_blur": Family(blurs.gaussian, (1, 2, 3, 4, 6)),
    "imagenet_c.defocus_blur": Family(blurs.defocus, (3, 4, 6, 8, 10)),
    "imagenet_c.glass_blur": Family(blurs.glass, ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))),
    "imagenet_c.motion_blur": Family(blurs.motion, (10, 15, 15, 20, 25)),
    "imagenet_c.zoom_blur": Family(blurs.zoom, (1.11, 1.16, 1.21, 1.26, 1.31)),  # largest enlargement
    "imagenet_c.fog": Family(tones.fog, (1.5, 2.0, 2.5, 2.5, 3.0)),  # thickness of the clouds
    "imagenet_c.brightness": Family(tones.add_brightness, (0.1, 0.2, 0.3, 0.4, 0.5)),  # light added, in full white
    "imagenet_c.contrast": Family(tones.mean_contrast, (0.4, 0.3, 0.2, 0.1, 0.05)),  # share of the contrast left
    "imagenet_c.elastic_transform": Family(geometry.elastic, (2.0, 4.0, 6.0, 9.0, 12.0)),
    "imagenet_c.pixelate": Family(codecs.pixelate, (0.6, 0.5, 0.4, 0.3, 0.25)),
    "imagenet_c.jpeg_compression": Family(codecs.jpeg, (25, 18, 15, 10, 7)),
}

_STEP = re.compile(r"([a-z_.]+):(\d)")
_RANGE = re.compile(r"([a-z_.]+)(?::(\d)(?:-(\d))?)?")


def apply(image: Image.Image, family: str, severity: int, seed: int) -> Image.Image:
    """Return the degraded picture in the same mode (grey or RGB); severity 0 returns it as it is."""
    known = _family(family)
    if not 0 <= severity <= len(SEVERITIES):
        raise UsageError(f"perturbation {family}: severity {severity} is not in 0-5")
    if image.mode not in ("L", "RGB"):
        image = _flat(image)
    if severity == 0:
        return image
    generator = np.random.default_rng(derive_seed(seed, family))  # one draw for all severities: only the level grows
    return known.step(image, known.levels[severity - 1], generator)


def parse_variants(spec: str) -> list[str]:
    """Turn `jpeg:1-5,blur:3,rotation:1+jpeg:2` into variants (`perturb=jpeg:1`, …); no severity means 1-5."""
    variants = [variant for part in spec.split(",") if part.strip() for variant in _variants(part.strip())]
    if not variants:
        raise UsageError(f"perturbation {spec!r} is empty: write family:severity, for instance jpeg:1-5,blur:3")
    return list(dict.fromkeys(variants))


def edits_of(value: str, seed: int) -> tuple[str, ...]:
    """Turn a variant's value (`jpeg:3`, `rotation:1+jpeg:2`) into edits of one page, `perturb:family:severity:seed`."""
    edits = []
    for part in value.split("+"):
        match = _STEP.fullmatch(part)
        if not match:
            raise UsageError(f"perturbation {value!r}: write family:severity, chained with +")
        _family(match[1])
        edits.append(f"perturb:{match[1]}:{match[2]}:{seed}")
    return tuple(edits)


def page_seed(seed: int, document: str, page: int) -> int:
    """Return the seed of one page: the same in every order, and for every chain of families."""
    return derive_seed(seed, document, page, "perturb")


def _family(name: str) -> Family:
    if name not in FAMILIES:
        raise UsageError(f"unknown perturbation {not_among(name, FAMILIES)}")
    return FAMILIES[name]


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
