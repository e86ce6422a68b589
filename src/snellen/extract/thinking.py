"""A reply to its answer part: closed thinking before it and courtesies after it are left out."""

from __future__ import annotations

import re

from .word_lists import END, START, LazyPattern

_TAG = LazyPattern(
    r"[<\[◁]\|?(?P<close>/?)(?:seed:)?(?:<machine.thinking>)\|?[>\]▷]"
    r"|<\|(?P<edge>begin_of_thought|start_thinking|end_of_thought|end_thinking)\|>"
    r"|(?P<done>\.\.\.\s?done thinking\.?)",
    re.IGNORECASE,
)
_FINAL_CHANNEL = LazyPattern(
    r"<\|channel\|>\s?final\s?(?:<\|[^|<>]{1,40}\|>)?(?:<\|message\|>)?|assistantfinal(?=[^a-z])", re.IGNORECASE
)
_OTHER_CHANNEL = LazyPattern(r"<\|channel\|>\s?(?:analysis|commentary)", re.IGNORECASE)
SHORTEST_COURTEOUS, _TAIL = 80, 400
"""A shorter reply is its own point; more than a few sentences at the end are no courtesy."""
_COURTESY = LazyPattern(
    r"(?:[.!?*)](?=[ \t])|(?=\n))"
    rf"([\s*_>(\[-]*(?:<conclusions.courtesy>){END}[^.!?\n]{{0,200}}[.!?]?[\s)*_\]]*)\Z"
)
_SIGN = LazyPattern(r"[.!?\n*)]")
_CLOSERS = " \t\r\n)*_].!?"
_SPOKEN = LazyPattern(rf"{START}(?:answer|option|choice|correct){END}|[=:]")
"""What may still be an answer is left."""


NEXT_QUESTION = "\nQuestion:"
"""How a model goes on that was shown worked examples: with questions of its own, and their answers."""
_NEXT = LazyPattern(r"\n\s*(?:hint:[^\n]{0,400}\s+)?question:", re.IGNORECASE)
_FIRST_WORDS = 12
"""Shorter than the shortest sentence that answers (`Answer is A.`): what is asked again is then the question itself."""


def before_next_question(body: str, finish: str | None) -> tuple[str, str | None]:
    """Return what a reply says before it asks itself something else, which is whole however the reply ends."""
    found = _NEXT.search(body)
    own = body[: found.start()].strip() if found else ""
    return (own, None) if len(own) >= _FIRST_WORDS and not own.endswith(":") else (body, finish)


def answer_start(text: str) -> int | None:
    """Return the index where the answer part begins (0 without thinking), or None if the thinking never ends."""
    # Plain searches first: most replies hold none of these signs and are not thought aloud.
    if "<" not in text and "◁" not in text and "[" not in text and "..." not in text and "assistantfinal" not in text:
        return 0
    start = _after_channels(text)
    if start is None:
        return None
    tags = list(_TAG.finditer(text, start))
    if not tags:
        return start
    return tags[-1].end() if _closes(tags[-1]) else None


def _closes(tag: re.Match[str]) -> bool:
    edge = tag.group("edge")
    return bool(tag.group("close") or tag.group("done") or (edge and edge.lower().startswith("end")))


def _after_channels(text: str) -> int | None:
    """Skip to the last `final` channel of the harmony format; None if only other channels were opened."""
    if "<|channel|>" not in text and "assistantfinal" not in text:
        return 0
    end = max((match.end() for match in _FINAL_CHANNEL.finditer(text)), default=0)
    return None if end == 0 and _OTHER_CHANNEL.search(text) else end


def without_courtesy(body: str) -> str:
    """Return a reply without a last sentence that offers help, thanks, or warns of taking it for advice."""
    end = body.rstrip(_CLOSERS)
    if end[-1:].isupper() and not end[-2:-1].isalnum():
        # A label stands last, as in most replies: that is what the sentence is for.
        return body
    # In one sentence there is none after another.
    return _without(body, end) if _SIGN.search(end, max(0, len(body) - _TAIL)) else body


def _without(body: str, end: str) -> str:
    """Return a reply without a courtesy in its last sentence, which begins after a sign or, in the midst, after `*`."""
    least = max(0, len(body) - _TAIL)
    begin = max(least, *(end.rfind(sign, least) for sign in "\n.!?"))
    low = body[begin:].lower()
    found = _COURTESY.match(low)
    if found is None and ("* " in low or ") " in low):
        found = _COURTESY.search(low)
    if found is None or _SPOKEN.search(found.group(1)):
        return body
    return body[: begin + found.start(1)].rstrip()
