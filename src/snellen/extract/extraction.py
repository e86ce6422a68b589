"""What reading a reply yields: a letter with the rule that found it, or None with a reason."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

RULE_SET: Final = 8
"""Which rules read: 1 are those of 0.1 and 0.2. Raised whenever a reply may be read differently than before."""

UNPARSED: Final = "unparsed"
REFUSED: Final = "refused"
TRUNCATED: Final = "truncated"
AMBIGUOUS: Final = "ambiguous"
DEGENERATE: Final = "degenerate"
HARNESS_ERROR: Final = "harness_error"
EMPTY: Final = "empty"
NOT_OFFERED: Final = "not_offered"
UNSEEN: Final = "refused: sees no picture"
"""The reply says that it has or sees no picture, and does not answer: an abstention of its own kind."""

REASONS: Final = (UNPARSED, REFUSED, TRUNCATED, AMBIGUOUS, DEGENERATE, HARNESS_ERROR, EMPTY, NOT_OFFERED, UNSEEN)


class Extraction(Struct, frozen=True, gc=False, omit_defaults=True):
    """The answer read from one reply.

    `letter` is one of the offered marks, or None for `reason`. `span` are the start and end of the deciding part in
    the original reply (thinking, markup and all), in characters, so that a viewer can highlight it; None where nothing
    in particular decided. `rule` names the rule that decided, also when it decided to abstain.

    Example:
        >>> extraction = snellen.extract_choice("A or B, I cannot tell.", ["a cat", "a dog"])
        >>> extraction.letter is None, extraction.reason
        (True, 'refused')
    """

    letter: str | None
    rule: str
    reason: str | None = None
    span: tuple[int, int] | None = None
