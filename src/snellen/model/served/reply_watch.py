"""Replies to warnings about their server: a limit it does not keep, pictures it may not look at, several hosts.

None of these is an error of one reply; each may make a number of the whole run another than it seems.
"""

from __future__ import annotations

import re

from ...core.text import MESSAGE_TOKENS, text_tokens
from ...core.types import Request, Usage
from .replies import Reply

TEXT_OFF_BY = 1.3
"""By so much the tokens of a text may be more than its length says."""
MOST_TEXT_TOKENS = 100
"""With more text than so many tokens a picture, its length says too little of whether pictures are counted."""
SPARE_TOKENS = 1
"""Some servers count the token that ends a reply."""
LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
NO_NAMES_OF_MODELS = frozenset({"", "default", "ep", "unnamed"})
"""What is asked for where a server has one model, or gives its models numbers."""


class ReplyWatch:
    """Looks at each reply once; `said` holds one warning of a kind."""

    def __init__(self, asked_model: str, *, named: bool) -> None:
        self.said: dict[str, str] = {}
        self._asked = asked_model
        self._named = named
        """Whether the name is a model's; at some providers it is a deployment's, which says nothing."""
        self._seen_model: str | None = None
        self._hosts: dict[str, None] = {}
        self._counted_pictures = False

    def look_at(self, request: Request, reply: Reply, usage: Usage | None, limit: int | None, *, shown: int) -> None:
        """Note what a reply tells; `usage` is what is believed of its counts, `limit` the most tokens asked for."""
        if reply.host:
            self._note_host(reply.host)
        if reply.model != self._seen_model:
            self._note_model(reply.model)
        if usage is None:
            return
        if usage is not reply.usage:
            what = "it is stored without them, and --budget does not count them"
            self.said.setdefault("counts", f"a reply came with token counts that no reply has: {what}")
            return
        if limit is not None and (usage.output_tokens or 0) > limit + SPARE_TOKENS:
            self._note_limit(usage, limit)
        if shown and not self._counted_pictures:
            self._note_pictures(request, usage, shown)

    def _note_limit(self, usage: Usage, limit: int) -> None:
        what = f"a reply has {usage.output_tokens:,} tokens though {limit:,} were the most allowed"
        self.said.setdefault("limit", f"the limit of replies is not respected: {what}; is its name another here?")

    def _note_host(self, host: str) -> None:
        self._hosts[host] = None
        if len(self._hosts) > 1:
            names = ", ".join(self._hosts)
            advice = (
                'they may serve it in different precision; -p params.extra_body.provider.only=["HOST"] keeps to one'
            )
            self.said["hosts"] = f"replies came from several hosts ({names}): {advice}"

    def _note_model(self, answered: str | None) -> None:
        self._seen_model = answered
        ours, theirs = family_of(self._asked), family_of(answered or "")
        alike = ours.startswith(theirs) or theirs.startswith(ours) or theirs.endswith(ours) or ours.endswith(theirs)
        if self._named and ours not in NO_NAMES_OF_MODELS and not alike:
            self.said.setdefault("model", f"{self._asked!r} was asked, and {answered!r} says it answered")

    def _note_pictures(self, request: Request, usage: Usage, shown: int) -> None:
        """Compare what was counted with what the text alone has; once pictures were counted they are believed."""
        if usage.input_tokens is None:
            return
        text = sum([text_tokens(turn.text) + MESSAGE_TOKENS for turn in request.messages])
        if usage.visual_tokens or usage.input_tokens > TEXT_OFF_BY * text:
            self._counted_pictures = True
            self.said.pop("pictures", None)
        elif text <= MOST_TEXT_TOKENS * shown:
            counted = f"{usage.input_tokens:,} input tokens for about {text:,.0f} of text and {shown} pictures"
            doubt = "are the pictures looked at? `snellen serve-check ADDRESS` asks with and without one"
            self.said.setdefault("pictures", f"the server counted {counted}: {doubt}")


def family_of(model: str) -> str:
    """Return the first word of a model's name, without whose it is: `gpt` of `openai/gpt-5-2025-08-07`."""
    found = re.search(r"[a-z]+", model.rpartition("/")[2].lower())
    return found.group() if found else ""
