"""The messages of a request and its reply to a chat: who said what, pictures where they stand."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.markup import Html, shorten, tag
from ...core.types import Turn
from ..pages.gallery import Shown
from ..web.shelf import OpenRun
from ..web.shell import link, trial_address

SHOWN = 30_000
SIDES = {"assistant": "theirs", "system": "rule"}


def chat(run: OpenRun, shown: Shown) -> Html:
    """Return the whole exchange; the model's own words stand on the other side than ours."""
    return tag("div", *_messages(run, shown), class_="chat")


def _messages(run: OpenRun, shown: Shown) -> Iterator[Html]:
    before = 0
    for turn in shown.request.messages:
        pictures = f" · {len(turn.images)} picture{'s' if len(turn.images) != 1 else ''}" if turn.images else ""
        kind = f"message {SIDES.get(turn.role, 'ours')}"
        yield tag("div", tag("header", turn.role + pictures), *_parts(run, shown, turn, before), class_=kind)
        before += len(turn.images)
    if shown.request.prefix:
        begin = (tag("header", "begin of the answer, given"), tag("pre", shown.request.prefix))
        yield tag("div", *begin, class_="message theirs")
    if len(shown.request.messages) > 2 and shown.prediction.text:
        words = tag("pre", shorten(shown.prediction.text, 600))
        yield tag("div", tag("header", "the reply"), words, class_="message theirs last")


def _parts(run: OpenRun, shown: Shown, turn: Turn, before: int) -> Iterator[Html]:
    """Yield the texts of a message and, where pictures stand between them, each in its place; `before` were shown."""
    for part in turn.arrange(range(before, before + len(turn.images))) if turn.parts else (turn.text,):
        if isinstance(part, str):
            yield tag("pre", shorten(part, SHOWN))
        else:
            source = trial_address(run, shown.prediction.key, "image", n=part, small=1)
            thumb = tag("img", src=source, alt=f"Picture {part + 1}", loading="lazy")
            yield link(thumb, f"#picture-{part}", class_="part")
