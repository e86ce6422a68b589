"""The sentence under a headline says what was lost on the way, failed calls as well."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.report.pages.report_page import lost_in_words
from snellen.scoring.tables.table import Outcome


@pytest.mark.parametrize(
    ("unread", "failed", "words"),
    [
        (0, 0, "Every reply could be read"),
        (1, 0, "1 reply could not be read"),
        (2, 1, "2 replies could not be read, and 1 call failed"),
        (0, 3, "Every reply could be read, and 3 calls failed"),
    ],
)
def test_failed_calls_are_said_beside_unread_replies(unread: int, failed: int, words: str) -> None:
    """A run of which three quarters failed was said to have every reply read, and no more."""
    outcomes = [Outcome.UNREAD] * unread + [Outcome.FAILED] * failed
    assert lost_in_words(np.array(outcomes, dtype=np.int8)) == words
