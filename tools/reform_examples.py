"""Writes tests/golden/data/reform_examples.md: three questions of each re-formulated dataset, of our own data.

The files are those of tests/reform_fixtures.py, in the true schema of every dataset; texts and pictures are invented.
`python tools/reform_examples.py` writes the page, `--check` says whether it is up to date.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "tests/golden/data/reform_examples.md"
CARDS = ROOT / "src/snellen/catalog/datasets/reform"
EACH = 3
STRIDE = 7
"""How far apart the three stand: the made files repeat their kinds of question every two, three, four or six."""
HEAD = """# Three questions of each of the 61

What the re-formulators make of raw files. The datasets' own questions are not reproduced: these come from small files
of our own in the same schema (`tests/reform_fixtures.py`), so look at the shape of a question and at its wrong options,
not at what is asked. The right answer is **bold**; in small print, where the wrong options came from.
`python tools/reform_examples.py` writes this page; `snellen data check` draws ten questions of the real data to read.
"""


def make_page() -> str:
    """Return the page."""
    with tempfile.TemporaryDirectory() as folder:
        parts = [section for path in sorted(CARDS.glob("*.toml")) for section in describe(path, Path(folder))]
    return "\n".join([HEAD, *parts])


def describe(path: Path, folder: Path) -> Iterator[str]:
    """Yield the lines of one card."""
    import reform_fixtures
    from snellen.core.protocols import LoadContext
    from snellen.data.catalog import Catalog
    from snellen.kits.reform.card_loader import load

    card = tomllib.loads(path.read_text(encoding="utf-8"))
    root = folder / path.stem
    reform_fixtures.raw(path.stem, root)
    told = [("dataset.source", "raw"), ("dataset.path", str(root))]
    samples = list(load(Catalog().task(f"reform/{path.stem}", told), LoadContext(workdir=folder)))
    yield f"## {card['title']}\n\n`reform/{path.stem}`\n"
    for place in range(min(EACH, len(samples))):
        yield from _question(samples[(1 + place * STRIDE) % len(samples)])


def _question(sample: Any) -> Iterator[str]:
    marks = [edit.partition(":")[0] for image in sample.images for edit in image.edits]
    drawn = {"box": "a box is drawn", "crop": "cut out of a larger picture"}
    seen = f" *({drawn[marks[0]]})*" if marks else ""
    before = " / ".join(turn.text for turn in sample.turns[-2:])
    yield f"- {f'… {before} / ' if before else ''}{sample.question}{seen}"
    if sample.options:
        options = [f"**{text}**" if text in sample.answers else text for text in sample.options]
        yield f"  {' · '.join(options)}  "
        origins = {str(origin["source"]) for origin in sample.meta.get("distractors", {}).values()}
        yield f"  <small>{'; '.join(sorted(origins)) or 'options of the dataset itself'}</small>"
    else:
        yield f"  {' · '.join(f'**{text}**' for text in dict.fromkeys(sample.answers))}"
    yield ""


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` compare it."""
    sys.path.insert(0, str(ROOT / "tests"))
    text = make_page().rstrip("\n") + "\n"
    if "--check" in arguments:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
