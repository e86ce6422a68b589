"""Every test of the eye exam at five levels on one sheet, from the easiest (left) to the hardest (right).

    python benchmarks/exam_sheet.py -o docs/screenshots/exam-stimuli.png

Under each stimulus: its level as drawn, and the right answer. Pictures larger than a cell are made smaller, so that the
hardest levels of large canvases cannot be made out here.
"""

from __future__ import annotations

import argparse
import io
import random
from itertools import chain
from pathlib import Path

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from snellen.core.errors import EnvironmentProblem
from snellen.data.loaders.eyechart import FONT_FOLDERS, find_cjk_font, has_glyphs
from snellen.sight.cards import exam_cards, eye_test
from snellen.sight.plate import Bench, Stimulus

CELL, GAP, TEXT, NAME, LEVELS, ACROSS = 132, 8, 13, 104, 5, 2
SIZE, GREEK = 11, 0x370
PIL.Image.MAX_IMAGE_PIXELS = 64 * 2**20


def label_font(words: str) -> PIL.ImageFont.FreeTypeFont | PIL.ImageFont.ImageFont:
    """Return a font that has every letter of a label: the built-in one draws boxes for Greek and Chinese letters."""
    if all(ord(letter) < GREEK for letter in words):
        return PIL.ImageFont.load_default(SIZE)
    # Fonts of Chinese characters may lack Greek: any that is installed will do.
    installed = (str(path) for folder in FONT_FOLDERS for path in sorted(Path(folder).expanduser().rglob("*.tt[fc]")))
    found = next((file for file in chain([find_cjk_font()], installed) if has_glyphs(file, words)), find_cjk_font())
    return PIL.ImageFont.truetype(found, SIZE)


def stimuli_of(name: str) -> list[Stimulus]:
    """Return a stimulus for each of five levels of a test; tests without levels show five of their places."""
    test = eye_test(name)
    axis = test.card.axis
    start, end = axis.x(axis.easiest), axis.x(axis.hardest)
    drawn = []
    for number in range(LEVELS):
        level = axis.level(start + (end - start) * number / (LEVELS - 1))
        answers = test.card.answers or [str(place) for place in range(0, 35, 7)]
        answer = answers[number % len(answers)]
        drawn.append(test.draw(level, answer, random.Random(f"sheet {name} {number}"), Bench()))
    return drawn


def cell(stimulus: Stimulus) -> PIL.Image.Image:
    """Return one stimulus with a frame, its level and its answer below."""
    tile = PIL.Image.new("RGB", (CELL, CELL + TEXT), "white")
    with PIL.Image.open(io.BytesIO(stimulus.pictures[0])) as picture:
        small = picture.convert("RGB")
        small.thumbnail((CELL - 2, CELL - 2), PIL.Image.Resampling.BOX)
    pen = PIL.ImageDraw.Draw(tile)
    left, top = (CELL - small.width) // 2, (CELL - small.height) // 2
    tile.paste(small, (left, top))
    pen.rectangle((left - 1, top - 1, left + small.width, top + small.height), outline="#bbbbbb")
    words = f"{stimulus.level:.3g}  {stimulus.truth[:16]}"
    pen.text((2, CELL), words, fill="#aa2222", font=label_font(words))
    return tile


def row(name: str) -> PIL.Image.Image:
    """Return one test: its name, its unit, and its stimuli; or why it cannot be drawn here."""
    card = exam_cards()[name]
    strip = PIL.Image.new("RGB", (NAME + LEVELS * (CELL + GAP), CELL + TEXT), "white")
    pen = PIL.ImageDraw.Draw(strip)
    pen.text((2, CELL // 2 - 14), name, fill="black", font=label_font(name))
    pen.text((2, CELL // 2 + 2), card.unit[:18], fill="#666666", font=label_font(card.unit))
    try:
        drawn = stimuli_of(name)
    except EnvironmentProblem as error:
        pen.text((NAME, CELL // 2), f"not drawn: {error}", fill="#aa2222", font=label_font(""))
        return strip
    for number, stimulus in enumerate(drawn):
        strip.paste(cell(stimulus), (NAME + number * (CELL + GAP), 0))
    return strip


def main() -> None:
    """Draw the sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", type=Path, required=True)
    out = parser.parse_args().o
    rows = [row(name) for name in exam_cards()]
    down = -(-len(rows) // ACROSS)
    width, height = rows[0].width + GAP, rows[0].height + GAP
    sheet = PIL.Image.new("RGB", (width * ACROSS, height * down), "white")
    for number, strip in enumerate(rows):
        sheet.paste(strip, (number // down * width, number % down * height))
    sheet.quantize(128, dither=PIL.Image.Dither.NONE).save(out, optimize=True)


if __name__ == "__main__":
    main()
