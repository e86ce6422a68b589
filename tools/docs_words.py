"""Prints the words of the documentation, and with --since how long it took; more than 60,500 written ones are an error.

A word stands between blanks and holds a letter or a digit; code and tables count. Written are the files docs/**/*.md,
decisions included; generated those made from cards, commands and providers (tools/docs_pages.py), and the rows of
figures that `make crash`, `make fault` and `make slurm` write into a page with their date and commit.
"""

from __future__ import annotations

import re
import sys
import time

from docs_pages import ROOT, generated

MOST = 60_500
WORD = re.compile(r"\S*[^\W_]\S*")
MEASURED = re.compile(r"^\|.*\| \d{4}-\d\d-\d\d \| [0-9a-f]{7,}\+? \|$", re.MULTILINE)


def count(text: str) -> int:
    """Return the number of words of a text."""
    return len(WORD.findall(text))


if __name__ == "__main__":
    pages = sorted((ROOT / "docs").rglob("*.md"))
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    words = {page: count(MEASURED.sub("", text)) for page, text in texts.items()}
    measured = sum(count(row) for text in texts.values() for row in MEASURED.findall(text))
    decisions = sum(n for page, n in words.items() if page.parent.name == "adr")
    made = generated()
    if "--pages" in sys.argv:
        for page, n in sorted(words.items(), key=lambda item: -item[1]):
            print(f"{n:6,} {page.relative_to(ROOT)}")
    taken = f" in {time.time() - float(sys.argv[sys.argv.index('--since') + 1]):.0f} s" if "--since" in sys.argv else ""
    print(
        f"docs{taken}: {sum(words.values()):,} words in {len(pages)} pages ({decisions:,} of them decisions; "
        f"at most {MOST:,}); "
        f"{sum(map(count, made.values())) + measured:,} more in {len(made)} generated pages and rows of figures"
    )
    sys.exit(sum(words.values()) > MOST)
