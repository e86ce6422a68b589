"""Every reader of yes and no that a card can name (`score_options.yesno`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .lmms_rules import lmms_yes_no, lmms_yes_no_equal, lmms_yes_no_of_mme
from .vlmevalkit_rules import vlmevalkit_yes_no


def read_pope(reply: str) -> str | None:
    """POPE's own: No where No, no or not is a word before the first full stop, and Yes for everything else."""
    words = reply.partition(".")[0].replace(",", "").split(" ")
    return "No" if {"No", "no", "not"} & set(words) else "Yes"


YESNO_READERS: Mapping[str, Callable[[str], str | None]] = {
    "vlmevalkit": vlmevalkit_yes_no,
    "lmms-whole": lmms_yes_no,
    "lmms-equal": lmms_yes_no_equal,
    "lmms-first-four": lmms_yes_no_of_mme,
    "pope": read_pope,
}
