"""A pattern and many texts to those that match, within a time: `pattern_child` does the work, and can be ended."""

from __future__ import annotations

import re
import subprocess
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core.errors import EnvironmentProblem, UsageError
from ..scoring.tables.table import Mask

MOST_SECONDS = 2
"""Of the processor, for texts of up to PER_SECOND characters; more texts get more."""
PER_SECOND = 50_000_000
WAIT = 5
"""So many times as long by the clock: others may use the processor too."""
LONGEST = 1_000
_HEEDS_CASE = re.compile(r"\(\?[a-zA-Z]*-[a-zA-Z]*i")


class PatternProblem(UsageError):
    """What is no pattern, or one that takes too long."""


def matching_texts(pattern: str, whole: str, starts: Sequence[int]) -> Mask:
    """Return which texts match, of a `whole` in which one character stands between them; case is not heeded.

    Raises PatternProblem for what is no pattern, and for one that takes too long: its process is ended.
    """
    if len(pattern) > LONGEST:
        raise PatternProblem(f"a pattern has at most {LONGEST:,} characters, this one {len(pattern):,}: shorten it")
    if _HEEDS_CASE.search(pattern):
        raise PatternProblem("case is not heeded here, and a part of this pattern asks for it: leave out `(?-i`")
    seconds = MOST_SECONDS + len(whole) // PER_SECOND
    answer = _asked(seconds, _packed(pattern, whole, starts))
    if answer is None:
        raise PatternProblem(
            f"the pattern {pattern!r} was ended after {seconds} s of the processor: it tries too many ways to match; "
            "make it simpler, such as without a repetition inside a repetition"
        )
    if answer[:1] == b"-":
        raise PatternProblem(f"{pattern!r} is no pattern: {answer[1:].decode('utf-8', 'replace')}")
    if answer[:1] != b"+" or len(answer) != len(starts) + 1:
        raise EnvironmentProblem(f"the pattern {pattern!r} could not be tried: its process ended early")
    return np.frombuffer(answer, np.uint8, offset=1).astype(np.bool_)


def _packed(pattern: str, whole: str, starts: Sequence[int]) -> bytes:
    said = pattern.encode("utf-8", "surrogatepass")
    parts = (array("Q", (len(said), len(starts))).tobytes(), said, array("Q", starts).tobytes())
    return b"".join((*parts, whole.encode("utf-8", "surrogatepass")))


def _asked(seconds: int, told: bytes) -> bytes | None:
    """Return what the process says, None where it had to be ended."""
    script = str(Path(__file__).with_name("pattern_child.py"))
    command = [sys.executable, "-I", "-S", script, str(seconds)]  # it needs nothing but Python: it starts at once
    try:
        done = subprocess.run(  # noqa: S603 - our own script
            command, input=told, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=WAIT * seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode >= 0 else None
