"""Severities calibrated by a measured reader: which levels make five steps from unharmed to lost, and what they cost.

Run: python benchmarks/severities.py measure [--write]     error rates by family and severity (--write: into docs/perturbations.md)
     python benchmarks/severities.py measure [FAMILY …]    only these
     python benchmarks/severities.py search [FAMILY …]     levels that would reach the targets, as lines of degradations.toml
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

from snellen.core.ids import derive_seed, rng
from snellen.data.images.edits import CALIBRATION
from snellen.kits.pages.page_style import PageStyle, degrade_style, style_of
from snellen.kits.pages.perturb import FAMILIES, SEVERITIES, Level, degrade_to, page_seed
from snellen.kits.pages.plant import chronicle
from snellen.kits.pages.quality import character_error_rate
from snellen.kits.pages.render import render_pages
from snellen.model.ocr.reader_model import TesseractEngine

TARGETS = (0.015, 0.08, 0.25, 0.5, 0.8)
"""Share of characters read wrong at severities 1–5."""
STYLE = style_of("seed", {"height_pt": 150.0})
"""11 pt text at 96 dpi, A4 wide: 10 lines."""
OWN = [name for name in FAMILIES if not name.startswith("imagenet_c.")]
RENDERED = ("dpi_render", "dense_text")
GRID, PAGES = 7, 6
FRESH = range(40, 42)
REFITTED = {"bold": range(60, 66), "curl": range(60, 66), "low_ink": range(60, 66), "dpi_render": range(60, 66)}
"""Pages that no level was fitted on. Those of four families were fitted again after 40 and 41 had been seen: they need others."""
DOCS = Path(__file__).parent.parent / "docs" / "perturbations.md"
BEGIN, END = "<!-- severities: benchmarks/severities.py measure --write -->", "<!-- end of severities -->"

PATHS: dict[str, Sequence[Level]] = {
    "dpi_resample": (0.8, 0.2), "nearest": (0.95, 0.3), "pixelate": (0.9, 0.25), "jpeg": ((10, 1.0), (2, 1.0), (1, 0.35)), "jpeg_repeat": (6, 60),
    "webp": ((20, 1.0), (5, 0.5), (0, 0.25)), "bit_depth": ((8, 0.6), (5, 0.6), (4, 0.8), (3, 0.9), (2, 1.2)),
    "binarise": (120, 2), "dither": (1.0, 0.3), "gaussian_noise": (0.05, 1.6), "shot_noise": (50, 0.15),
    "speckle": (0.1, 2.0), "salt_pepper": (0.005, 0.5), "blur": (0.5, 3.5), "defocus": (0.8, 5.0), "motion_blur": (2, 12),
    "glass": ((0.4, 0.6, 1), (0.8, 1.8, 2), (1.0, 2.6, 2)), "contrast": (0.1, 0.006), "brightness": (0.92, 0.99),
    "gamma": (0.05, 0.002), "ink_fade": (1.3, 1.01), "thin": (0.4, 0.9), "bold": (0.2, 3.0), "rotation": (0.5, 45.0),
    "perspective": (0.01, 0.45), "elastic": (0.8, 12.0), "curl": (0.005, 0.3), "shadow": ((0.25, 0.3), (0.6, 0.05), (0.7, 0.9)),
    "bleed_through": (0.05, 1.0), "watermark": (0.1, 1.0), "photocopy": (0.1, 2.2), "low_ink": (0.02, 0.8),
    "moire": (0.1, 1.0), "occlusion": (0.01, 1.6), "margin_crop": (0.005, 0.8),
}  # fmt: skip
"""From a mild level to a ruinous one: the way along which the search looks."""
LOGARITHMIC = {"gaussian_noise", "shot_noise", "contrast", "gamma", "rotation", "salt_pepper", "curl", "perspective",
               "margin_crop", "occlusion", "jpeg_repeat", "low_ink"}  # fmt: skip
TOWARDS_ONE = {"brightness", "ink_fade"}
"""Levels whose distance from 1 is what counts."""
WHOLE = {"jpeg_repeat", "binarise", "motion_blur"}
WHOLE_PARTS = {"jpeg": (0,), "webp": (0,), "bit_depth": (0,), "glass": (2,)}
READER = TesseractEngine()


@cache
def page_of(number: int, style: PageStyle = STYLE) -> tuple[Image.Image, str]:
    text = chronicle(rng(number, "severities"), 4000).replace("\n", " ")
    page = next(iter(render_pages(text, style)))
    return page.image(), text[: page.lines[-1].end]


def error_rate(picture: Image.Image, text: str) -> float:
    read = " ".join(piece.text for piece in READER.read(picture))  # in tesseract's own order of lines
    return min(1.0, character_error_rate(text, read))


def measured(family: str, level: Level, pages: Sequence[int]) -> float:
    """Return the mean error rate of a family at a level; the draws are those of severity runs."""
    rates = []
    for number in pages:
        picture, text = page_of(number)
        generator = np.random.default_rng(derive_seed(page_seed(0, "severities", number), family))
        rates.append(error_rate(degrade_to(picture, FAMILIES[family], level, generator), text))
    return float(np.mean(rates))


def level_at(family: str, place: float) -> Level:
    """Return the level at a place (0–1) of the family's way."""
    anchors = np.array([np.atleast_1d(np.array(anchor, float)) for anchor in PATHS[family]])
    if family in TOWARDS_ONE:
        anchors = np.log(np.abs(anchors - 1.0))
    elif family in LOGARITHMIC:
        anchors = np.log(anchors)
    at = np.linspace(0, 1, len(anchors))
    values = [float(np.interp(place, at, anchors[:, part])) for part in range(anchors.shape[1])]
    if family in TOWARDS_ONE:
        sign = 1.0 if family == "ink_fade" else -1.0
        values = [1.0 + sign * float(np.exp(value)) for value in values]
    elif family in LOGARITHMIC:
        values = [float(np.exp(value)) for value in values]
    rounded = [_rounded(family, part, value) for part, value in enumerate(values)]
    return rounded[0] if len(rounded) == 1 else tuple(rounded)


def _rounded(family: str, part: int, value: float) -> float | int:
    if family in WHOLE or part in WHOLE_PARTS.get(family, ()):
        return round(value)
    return float(f"{value:.4f}") if value < 1.1 else float(f"{value:.4g}")


def search(family: str) -> None:
    """Print the levels whose error rates come nearest the targets: a grid, then two halvings for each target."""
    known: dict[float, float] = {}

    def rate(place: float) -> float:
        if place not in known:
            known[place] = measured(family, level_at(family, place), range(PAGES))
        return known[place]

    for place in np.linspace(0, 1, GRID).tolist():
        rate(place)
    chosen = [_reach(target, known, rate) for target in TARGETS]
    levels = [level_at(family, place) for place in chosen]
    shown = ", ".join(str(list(level)) if isinstance(level, tuple) else str(level) for level in levels)
    told = " ".join(f"{known[place]:.3f}" for place in chosen)
    print(f"{family}: levels = [{shown}]  # {told}", flush=True)


def _reach(target: float, known: dict[float, float], rate: Callable[[float], float]) -> float:
    for _ in range(2):
        places = sorted(known)
        above = next((place for place in places if known[place] >= target), places[-1])
        below = max((place for place in places if place < above), default=places[0])
        rate(round((above + below) / 2, 5))
    return min(known, key=lambda place: (abs(known[place] - target), place))


def fresh_pages(family: str) -> range:
    """Return the pages on which a family is measured: none that its levels were fitted on."""
    return REFITTED.get(family, FRESH)


def rendered(family: str, severity: int) -> float:
    style = degrade_style(STYLE, family, severity)
    return float(np.mean([error_rate(*page_of(number, style)) for number in fresh_pages(family)]))


def table(families: Sequence[str]) -> dict[str, list[float]]:
    """Return the error rate of every family at severities 1–5, on pages that the search never saw."""
    rates: dict[str, list[float]] = {}
    with ThreadPoolExecutor(3) as pool:
        for family in families:
            if family in RENDERED:
                row = pool.map(partial(rendered, family), SEVERITIES)
            else:
                row = pool.map(
                    lambda level, name=family: measured(name, level, fresh_pages(name)), FAMILIES[family].levels
                )
            rates[family] = list(row)
            print(family, *(f"{rate:.3f}" for rate in rates[family]), flush=True)
    return rates


def as_markdown(rows: dict[str, str], clean: float) -> str:
    reader = f"{READER.version()} in its own order of lines"
    lines = [
        f"Calibration {CALIBRATION}, {reader}, 11 pt text at 96 dpi ({len(FRESH)} pages a cell, "
        f"{len(REFITTED['bold'])} for {', '.join(f'`{name}`' for name in REFITTED)}; undegraded: {clean:.1%}).",
        "",
        "| family | 1 | 2 | 3 | 4 | 5 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    return "\n".join([*lines, *(rows[name] for name in (*OWN, *RENDERED) if name in rows)])


def as_row(name: str, rates: Sequence[float]) -> str:
    return f"| `{name}` | " + " | ".join(f"{rate:.0%}" for rate in rates) + " |"


def write(rates: dict[str, list[float]], clean: float) -> None:
    """Put the measured rows into the docs page; rows of families that were not measured now stay."""
    page = DOCS.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    table_text, _, after = rest.partition(END)
    rows = {line.split("`")[1]: line for line in table_text.splitlines() if line.startswith("| `")}
    rows |= {name: as_row(name, row) for name, row in rates.items()}
    DOCS.write_text(f"{before}{BEGIN}\n{as_markdown(rows, clean)}\n{END}{after}", encoding="utf-8")


def passes(name: str, row: Sequence[float]) -> bool:
    good = row[0] <= 0.05 and row[-1] >= 0.6 and all(b >= a - 0.05 for a, b in pairwise(row))
    if not good:
        print(f"FAIL  {name}: {' '.join(f'{rate:.3f}' for rate in row)}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "search"))
    parser.add_argument("families", nargs="*")
    parser.add_argument("--write", action="store_true")
    told = parser.parse_args()
    if told.what == "search":
        for family in told.families or OWN:
            search(family)
        return 0
    rates = table(told.families or [*OWN, *RENDERED])
    if told.write:
        write(rates, float(np.mean([error_rate(*page_of(number)) for number in FRESH])))
    good = [passes(name, row) for name, row in rates.items()]
    print(
        f"{'PASS' if all(good) else 'FAIL'}  {sum(good)} of {len(good)} families go from unharmed (≤ 5 %) to lost (≥ 60 %)"
    )
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
