"""Thirty replies read by other tools' default rules, by Snellen and by hand: the table in the README."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from string import ascii_uppercase

from snellen.extract.choice import extract_choice
from snellen.kits.bridges.toolkit_rules import can_infer, read_mcq

REPLIES = Path(__file__).resolve().parents[1] / "examples" / "thirty_replies.jsonl"
Reader = Callable[[str, Mapping[str, str]], str | None]


def inspect_default(reply: str, options: Mapping[str, str]) -> str | None:
    """Read what inspect_ai's `multiple_choice()` asks for: a line `ANSWER: X`."""
    found = re.search(r"(?im)^ANSWER\s*:\s*([A-Za-z])\s*(?:$|\n|\.)", reply)
    return found[1].upper() if found and found[1].upper() in options else None


def ours(reply: str, options: Mapping[str, str]) -> str | None:
    """Read by the rules of this version."""
    return extract_choice(reply, dict(options)).letter


READERS: dict[str, Reader] = {
    "inspect_ai, `multiple_choice()`": inspect_default,
    "lmms-eval, its reader of MMStar": read_mcq,
    "VLMEvalKit, `can_infer`": can_infer,
    "Snellen": ours,
}


def counted(reader: Reader) -> tuple[int, int, int]:
    """Return how many replies are read as by hand, otherwise, and not at all though an answer is there."""
    same = other = missed = 0
    for line in REPLIES.read_text("utf-8").splitlines():
        row = json.loads(line)
        letter = reader(row["reply"], dict(zip(ascii_uppercase, row["options"], strict=False)))
        same += letter == row["by_hand"]
        other += letter is not None and letter != row["by_hand"]
        missed += letter is None and row["by_hand"] is not None
    return same, other, missed


def table() -> str:
    """Return the table in Markdown."""
    lines = ["| read by | as by hand | another option | not read |", "|---|---:|---:|---:|"]
    for name, reader in READERS.items():
        lines.append("| {} | {} of 30 | {} | {} |".format(name, *counted(reader)))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
