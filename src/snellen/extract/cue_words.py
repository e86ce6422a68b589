"""Phrases that several rules share: cues that announce an answer, links to it, doubt, corrections and refusals.

Every pattern is linear: alternatives begin differently, repeats are possessive, and contexts are searched in bounded
windows. All are matched against lower-cased text; the words stand in catalog/words.
"""

from __future__ import annotations

import re
from functools import cache

from .word_lists import END, START, Gated, LazyPattern, Stems, words


@cache
def cue_kinds() -> dict[str, str]:
    """Return the words after which an answer stands, and of which kind they are: answer, option or verb."""
    return {word: kind for kind in ("answer", "option", "verb") for word in words(f"cues.{kind}")}


@cache
def ascii_vocabularies() -> tuple[Stems, ...]:
    """Return the cues of a plain ASCII reply, to be looked for in turn: the common English ones, then all others."""
    english = words("cues.english_first")
    return Stems(english), Stems(word for word in cue_kinds() if word.isascii() and word not in english)


@cache
def whole_vocabulary() -> tuple[Stems]:
    """Return the cues of any other reply: those of all languages, looked for at once."""
    return (Stems(cue_kinds()),)


LINK = LazyPattern(
    rf"(?>[\s*_`\"'(\[{{$)\]:=<>\\~|#「『【《“”（：〈—–→⇒-]++|(?:<cues.link>){END}"
    rf"|a(?=\s(?:letra|op[cç][aã]o|alternativa|[b-z]{END}))|(?:<cues.link_glued>))*+"
)
"""All that may stand between a cue and its value. Atomic: whatever is skipped stays skipped, so time is linear."""
BINDER = LazyPattern(rf"[:=→⇒]|->|{START}(?:<cues.copula>){END}|<cues.copula_glued>|—|–| - ")
"""What ties a cue to its value; without it `option B` only names one."""
NOT_AFTER = LazyPattern(rf"(?:<cues.denies_value>){END}|<cues.denies_value_glued>")
NEGATION = LazyPattern(rf"{START}(?:<cues.negation>){END}")

_PRAISE = "correct |right |best |final "
DOUBT = Gated(
    rf"{START}(?:(?:<doubt.wrong>)[\s的]*(?:answer |final )?"
    rf"|(?:<doubt.condition>) (?:that )?(?:the |my |your |it |its )?(?:{_PRAISE}|real |true )*"
    rf"|(?:don't|do not) (?:think|believe) (?:that )?(?:the |my )?(?:{_PRAISE})*"
    rf"|(?:<doubt.denied>) (?:the |a |my |an )?(?:{_PRAISE}|real |true )*"
    r"|(?:<doubt.earlier>) (?:answer |choice |guess |thought )?)\Z",
    "doubt.stems",
)
"""What stands directly before a cue and takes its force."""
DOUBT_CLAUSE = Gated(rf"{START}(?:<doubt.reported>)", "doubt.reported_stems")
"""Anywhere in the clause before a cue: the speaker reports a thought that is not the answer."""
CONTRAST = LazyPattern(rf"{START}(?:<doubt.contrast>){END}|<doubt.contrast_glued>")
"""After it the speaker has left what was reported (`at first A, but …`)."""
VERB_SUBJECT = LazyPattern(
    rf"(?:{START}(?:<doubt.speaker>)|[.!?,:;\n—–-]|\A)\s*"
    r"(?:therefore |thus |then |to |now |finally |definitely |rather )*\Z"
)
"""Who may be the subject of `choose B` for it to be an answer: the speaker, or nobody."""
VERB_DENIED = LazyPattern(rf"(?:{START}(?:<doubt.verb_denied>)|n't)(?:\s+\w{{1,12}}){{0,2}}\s*\Z")

CORRECTION = Gated(rf"{START}(?:<corrections.turn>)|<corrections.turn_glued>", "corrections.stems")
WITHDRAWN = LazyPattern(rf"{START}(?:<corrections.withdrawn>){END}|<corrections.withdrawn_glued>")

UNDECIDED = Gated(r"(?<!\w)(?:<conclusions.undecided>)(?!\w)", "conclusions.undecided_stems")
"""Said of the options just named: none of them is chosen."""
GOES_THROUGH = LazyPattern(r"(?:<labels.introduces>)[^.!?\n:]{0,80}[.:][\s*_(]*(?:[a-z][.:)]\s?)?\Z")
"""Before the first of the options that a reply goes through."""

ANNOUNCES = LazyPattern(
    r"(?:<conclusions.open_cue>)\s?(?:(?:<conclusions.open_copula>)(?![a-z'])|:|=|：)\s{0,3}[:*\s]*", re.IGNORECASE
)
"""Before a number or a short text that a reply answers with."""

REFUSAL = Gated(
    rf"{START}(?:<refusals.unable>)\s(?:\w{{1,12}}\s){{0,3}}?(?:<refusals.telling>)\w{{0,4}}"
    rf"|{START}(?:<refusals.sorry>)"
    rf"|{START}(?:<refusals.lack>|no) (?:\w{{1,12}} )?(?:<refusals.facts>|detail)"
    rf"|{START}(?:<refusals.no_image>)"
    r"|<refusals.declines>",
    "refusals.stems",
)
NEEDS_MORE = LazyPattern(rf"{START}(?:<refusals.needs_more>)")
"""Said instead of an answer to an open question."""
UNDECIDABLE = LazyPattern(
    r"(?:<refusals.cannot>)[\w\s]{1,20}(?:<refusals.knowing>)"
    r"|(?:<refusals.lack>) (?:\w{1,12} )?(?:<refusals.facts>)|<refusals.undecidable>"
)
"""Refusals that say the question has no answer: they choose an option such as `Cannot be determined` if offered."""
