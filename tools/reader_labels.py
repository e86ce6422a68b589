"""Holds the reader against replies that somebody labelled before it read them: right, wrong and unread, by benchmark.

    python tools/reader_labels.py labels.json [--show]

A row: `file`, `id`, `options` (none: the question has labels alone), `reply`, and `label`: the letter that the reply
chooses, "" where it chooses none, null where nobody can tell. The replies are others' work: label files stay outside.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import snellen
from snellen.extract.other_kinds import extract_labels


def read(row: dict[str, Any]) -> str:
    """Return what the reader takes for the answer; empty where it reads none."""
    if row["options"]:
        return snellen.extract_choice(row["reply"], row["options"]).letter or ""
    return "".join(sorted(extract_labels(row["reply"]).letters))


def main() -> None:
    """Print the shares, and what was misread where told."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--show", action="store_true", help="print every reply that was not read as labelled")
    told = parser.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in json.loads(told.labels.read_text(encoding="utf-8")):
        if row["label"] is None:
            counts["undecidable, left out"]["replies"] += 1
            continue
        found = read(row)
        verdict = "right" if found == row["label"] else "wrong" if found else "unread"
        for name in (row["file"].split("-")[0], "all", "with options" if row["options"] else "labels alone"):
            counts[name][verdict] += 1
            counts[name]["replies"] += 1
        if told.show and verdict != "right":
            print(f"{verdict}: {row['file']} {row['id']}: {found or 'none'} for {row['label'] or 'none'}")
            print(f"  {row['options']}\n  {row['reply']!r:.1500}")
    for name, tally in counts.items():
        shares = (f"{one} {100 * tally[one] / tally['replies']:.1f} %" for one in ("right", "wrong", "unread"))
        print(f"{name:24s} {tally['replies']:4d} replies: {', '.join(shares)}")


if __name__ == "__main__":
    main()
