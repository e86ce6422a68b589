"""Bars of parsed pages: 1,000 pages scored by our rule in 60 s and 400 MB, a table of 60 x 10 in 0.6 s.

python benchmarks/parsing.py [--pages 1000]
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time

from snellen.kits.parsing import omnidoc
from snellen.kits.parsing.blocks import read_gold, read_page
from snellen.kits.parsing.drawn import page_blocks
from snellen.kits.parsing.omnidoc_match import Gold
from snellen.kits.parsing.page_score import score_page
from snellen.kits.parsing.teds import teds

PAGES_S, MEMORY_MB, TABLE_S = 60.0, 400.0, 0.6


def misread(text: str, draw: random.Random) -> str:
    """Return a page as a middling parser gives it: letters wrong, lines lost, a line invented, a table as pipes."""
    letters = list(text)
    for _ in range(len(letters) // 60):
        letters[draw.randrange(len(letters))] = draw.choice("aeinrst ")
    blocks = "".join(letters).split("\n\n")
    if len(blocks) > 3:
        del blocks[draw.randrange(len(blocks))]
    blocks.insert(draw.randrange(len(blocks)), "Words that stand nowhere on this page at all.")
    return "\n\n".join(blocks)


def table(rows: int, draw: random.Random) -> str:
    cells = ("".join(f"<td>{draw.randrange(10**6)}</td>" for _ in range(10)) for _ in range(rows))
    return "<html><body><table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table></body></html>"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=1000)
    count = parser.parse_args().pages
    draw = random.Random(0)
    pages = []
    for _ in range(count):
        blocks = page_blocks(draw, 14)  # some 2,500 characters, as a page of a paper
        text = "\n\n".join(str(block["text"]) for block in blocks)
        pages.append((blocks, misread(text, draw)))
    start = time.process_time()
    values = [score_page(read_gold(blocks), read_page(reply)).page for blocks, reply in pages]
    ours = time.process_time() - start
    again = [score_page(read_gold(blocks), read_page(reply)).page for blocks, reply in pages[:50]]
    start = time.process_time()
    for blocks, reply in pages:
        omnidoc.score_page(
            [Gold(str(b["category"]), str(b["text"]), float(str(b["order"]))) for b in blocks], reply
        ).parts()
    theirs = time.process_time() - start
    tables = table(60, draw), table(60, draw)
    start = time.process_time()
    teds(*tables)
    tree = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    characters = sum(len(reply) for _, reply in pages) / count
    print(f"{count} pages of {characters:,.0f} characters, CPU: ours {ours:.1f} s (mean {sum(values) / count:.1f}), ")
    print(f"OmniDocBench's rule {theirs:.1f} s; table 60 x 10 {tree:.2f} s; memory {memory:.0f} MB")
    met = ours <= PAGES_S * count / 1000 and memory <= MEMORY_MB and tree <= TABLE_S and again == values[:50]
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
