"""What a cheat could learn of the answers without seeing the stimulus: from sums over pixels, file size, or metadata.

    python benchmarks/exam_shortcuts.py --stimuli 320 -o shortcuts.json
    python benchmarks/exam_shortcuts.py --table shortcuts.json

For every test: stimuli at its middle and easiest level, half to learn from, half to be tested on; the answer of the nearest
class mean (statistics scaled by their spread). Rows are guessed glyph by glyph, places in a picture by their quadrant,
counts by their number. Blind replies see nothing: the answer listed first, always the commonest one, a random one.
Nobody may be right more often than chance + 3 standard errors. Chance is that of the best constant answer where answers are
not balanced (words, counts). A file that exists is continued: what it holds is not drawn again.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from snellen.sight.cards import exam_cards, eye_test
from snellen.sight.exam_trials import balanced
from snellen.sight.plate import Bench, EyeTest, Stimulus

UNEVEN_ANSWERS = ("words", "count")
"""Tests whose answers are not equally frequent: a constant answer is the best that blindness can do."""
COLUMNS = ("first listed", "always the same", "random", "pixels", "file size", "metadata")
PIXELS = 64 * 2**20
PIL.Image.MAX_IMAGE_PIXELS = PIXELS


def statistics(picture: bytes) -> list[float]:
    """Return what can be said of a picture without looking where anything is, or which way: sums over all pixels.

    Edges by direction are left out: who has them sees the gap of a ring and the run of stripes.
    """
    with PIL.Image.open(io.BytesIO(picture)) as image:
        counts = np.array(image.convert("RGB").histogram(), np.float64).reshape(3, 256) / (image.width * image.height)
    values = np.arange(256)
    means = counts @ values
    spreads = np.sqrt(np.maximum(0.0, counts @ values**2 - means**2))
    shares = [counts[:, low : low + 32].sum() for low in range(0, 256, 32)]
    return [float(value) for value in (*means, *spreads, *shares)]


def metadata(picture: bytes) -> list[float]:
    """Return what a file says of itself besides its pixels: size, mode, entries, and of how many parts it is made.

    The length of what fills a file up is left out: it is the size of the packed pixels.
    """
    with PIL.Image.open(io.BytesIO(picture)) as image:
        named = [float(len(str(value))) for _, value in sorted(image.info.items())][:8]
        facts = [image.width, image.height, len(image.getbands()), len(image.getexif()), len(image.info), *named]
        kind = image.format
    parts = png_parts(picture) if kind == "PNG" else [picture.count(bytes((255, mark))) for mark in (0xE1, 0xED, 0xFE)]
    return [float(value) for value in (*facts, *[0.0] * (13 - len(facts)), *parts)]


def png_parts(picture: bytes) -> list[int]:
    """Return how many chunks a PNG has of each kind, and how long those are that hold neither pixels nor padding."""
    at, names, other = 8, list[bytes](), 0
    while at < len(picture):
        length, name = int.from_bytes(picture[at : at + 4], "big"), picture[at + 4 : at + 8]
        names.append(name)
        other += length if name not in (b"IDAT", b"snPd") else 0
        at += 12 + length
    return [len(names), names.count(b"IDAT"), other]


def classes(name: str, stimulus: Stimulus) -> Sequence[str]:
    """Return what is to be guessed of a stimulus: one answer, or a glyph for every place."""
    card = exam_cards()[name]
    if card.plate == "locating":
        detail = stimulus.detail
        return [f"{detail['x'] > detail['width'] / 2} {detail['y'] > detail['height'] / 2}"]
    return list(stimulus.truth) if card.glyphs > 1 or card.plate in ("words", "held", "lookup") else [stimulus.truth]


def nearest(learn: Any, answers: Sequence[str], test: Any) -> list[str]:
    """Return the class whose mean is nearest, for every row."""
    spread = learn.std(0) + 1e-9
    words = sorted(set(answers))
    marks = np.array([[answer == word for word in words] for answer in answers], float)
    means = (marks / marks.sum(0)).T @ learn
    away = (((test[:, None, :] - means[None]) / spread) ** 2).sum(2)
    return [words[place] for place in away.argmin(1)]


def shown(name: str, stimulus: Stimulus) -> bytes:
    """Return the picture a cheat looks at: the one that is asked for."""
    return stimulus.pictures[int(stimulus.detail.get("picture", 1)) - 1 if name == "images" else 0]


def first_listed(test: EyeTest, stimulus: Stimulus, draw: random.Random) -> str:
    """Return the answer that the question names first; none for questions without a list."""
    question = test.ask(stimulus, 0, draw)
    places = {word: question.rfind(f": {word}") for word in test.card.answers}
    return max(places, key=lambda word: (places[word], len(word))) if places else ""


def share(said: Sequence[Sequence[str]], true: Sequence[Sequence[str]]) -> float:
    """Return the share of answers (or glyphs) that are right."""
    hits = [a == b for ones, others in zip(said, true, strict=True) for a, b in zip(ones, others, strict=True)]
    return round(float(np.mean(hits)), 4)


def by_place(columns: Any, learn: Sequence[Sequence[str]], half: int) -> list[list[str]]:
    """Return what the learner says of every tested row, place by place."""
    places = range(len(learn[0]))
    said = [nearest(columns[:half], [one[place] for one in learn], columns[half:]) for place in places]
    return [list(ones) for ones in zip(*said, strict=True)]


def chance_of(name: str, test: EyeTest, true: Sequence[Sequence[str]]) -> float:
    """Return how often the best constant answer is right; exact where answers are balanced by construction."""
    card = test.card
    if card.plate == "locating":
        return 0.25
    if card.plate in ("held", "lookup"):
        return 0.1
    if name not in UNEVEN_ANSWERS:
        return test.chance(card.easiest)
    common = [Counter(one[place] for one in true).most_common(1)[0][1] for place in range(len(true[0]))]
    return sum(common) / (len(true) * len(common))


def measure(name: str, level: float, where: str, count: int, seed: int = 1) -> dict[str, Any]:
    """Return the row of one test at one level."""
    test, card = eye_test(name), exam_cards()[name]
    places = [str(place) for place in range(40 if card.plate == "locating" else 25)]
    answers = balanced(card.answers or places, count, seed, name)
    rows: list[tuple[list[float], list[float], float, Sequence[str], str]] = []
    first = 0 if seed == 1 else seed * 1_000_000  # other stimuli, to see whether a finding stays
    for number, answer in enumerate(answers, first):
        drawn = test.draw(level, answer, random.Random(f"{name} {where} {number}"), Bench())
        picture = shown(name, drawn)
        listed = first_listed(test, drawn, random.Random(f"question {number}"))
        rows.append((statistics(picture), metadata(picture), float(len(picture)), classes(name, drawn), listed))
    half = count // 2
    true = [row[3] for row in rows]
    chance = chance_of(name, test, true[half:])
    asked = half * len(true[0])
    figures: dict[str, Any] = {"chance": round(chance, 4), "answers": asked}
    figures["bar"] = round(chance + 3 * math.sqrt(chance * (1 - chance) / asked), 4)
    figures |= blind(true, half, [row[4] for row in rows] if card.answers else [])
    kinds = {"pixels": [row[0] for row in rows], "metadata": [row[1] for row in rows]}
    kinds["file size"] = [[row[2]] for row in rows]
    for kind, columns in kinds.items():
        figures[kind] = share(by_place(np.array(columns), true[:half], half), true[half:])
    figures["date"] = datetime.now(UTC).date().isoformat()
    return figures


def blind(true: Sequence[Sequence[str]], half: int, listed: Sequence[str]) -> dict[str, float]:
    """Return how often replies are right that see nothing at all."""
    tested, places = true[half:], range(len(true[0]))
    usual = [Counter(one[place] for one in true[:half]).most_common(1)[0][0] for place in places]
    known = [sorted({one[place] for one in true[:half]}) for place in places]
    draw = random.Random("blind")
    figures = {
        "always the same": share([usual] * len(tested), tested),
        "random": share([[draw.choice(known[place]) for place in places] for _ in tested], tested),
    }
    return figures | ({"first listed": share([[one] for one in listed[half:]], tested)} if listed else {})


def write_table(table: dict[str, Any]) -> None:
    """Print the table of a file as the documentation has it."""
    out = sys.stdout.write
    out("| test, level | chance | bar | " + " | ".join(COLUMNS) + " |\n|---|---|---|" + "---|" * len(COLUMNS) + "\n")
    for name, row in table.items():
        cells = (f"{row[column]:.3f}" if column in row else "–" for column in COLUMNS)
        out(f"| {name} | {row['chance']:.3f} | {row['bar']:.3f} | {' | '.join(cells)} |\n")
    above = [
        f"{name}: {column}" for name, row in table.items() for column in COLUMNS if row.get(column, 0) > row["bar"]
    ]
    tried = sum(column in row for row in table.values() for column in COLUMNS)
    out(f"\nabove the bar: {len(above)} of {tried}{': ' + '; '.join(above) if above else ''}\n")


def main() -> None:
    """Measure what is missing in the file, or print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stimuli", type=int, default=320)
    parser.add_argument("--seed", type=int, default=1, help="other stimuli: a finding by chance goes away")
    parser.add_argument("--tests", help="only these, separated by commas")
    parser.add_argument("--table", type=Path, help="print this file as a table, measure nothing")
    parser.add_argument("-o", type=Path)
    arguments = parser.parse_args()
    if arguments.table:
        write_table(json.loads(arguments.table.read_text("utf-8")))
        return
    found = json.loads(arguments.o.read_text("utf-8")) if arguments.o and arguments.o.exists() else {}
    cards = exam_cards()
    pictured = [name for name in cards if name != "lookup-text"]  # which shows no picture
    chosen = (
        arguments.tests.split(",") if arguments.tests else sorted(pictured, key=lambda n: math.prod(cards[n].canvas))
    )
    for name in chosen:
        card = cards[name]
        middle = card.axis.level((card.axis.x(card.hardest) + card.axis.x(card.easiest)) / 2)
        for where, level in (("middle", middle), ("easiest", card.easiest)):
            key = f"`{name}`, {where}"
            if key in found:
                continue
            found[key] = measure(name, level, where, arguments.stimuli, arguments.seed)
            sys.stdout.write(f"{name:16s} {where:8s} {found[key]}\n")
            sys.stdout.flush()
            if arguments.o:
                arguments.o.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
