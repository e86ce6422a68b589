"""Tries a pattern on many texts, in a process of its own: a pattern may take for ever, and nothing in Python stops it.

Run as a script. Input: the size of the pattern, the number of texts, the pattern, where each text starts (counted in
characters, one of which stands between two texts), the texts. Output: `+` and a byte a text, 1 where it matches; or `-`
and why the pattern is none. Case is not heeded, `^` and `$` are at lines.
"""

from __future__ import annotations

import contextlib
import re
import sys
from array import array
from itertools import pairwise

WORD = 8


def limit_processor(seconds: int) -> None:
    """End this process when it has used so much, even if nobody is left to end it; where the system can do that."""
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def try_pattern(told: bytes) -> bytes:
    """Return the answer to what was told."""
    sizes = array("Q", told[: 2 * WORD])
    rest = told[2 * WORD :]
    pattern, rest = rest[: sizes[0]].decode("utf-8", "surrogatepass"), rest[sizes[0] :]
    starts, body = array("Q", rest[: sizes[1] * WORD]), rest[sizes[1] * WORD :].decode("utf-8", "surrogatepass")
    try:
        search = re.compile(pattern, re.IGNORECASE | re.MULTILINE).search
    except (re.error, OverflowError, RecursionError) as error:
        return b"-" + str(error).encode("utf-8", "replace")
    places = pairwise((*starts, len(body) + 1))
    return b"+" + bytes(search(body[start : after - 1]) is not None for start, after in places)


if __name__ == "__main__":
    limit_processor(int(sys.argv[1]))
    sys.stdout.buffer.write(try_pattern(sys.stdin.buffer.read()))
