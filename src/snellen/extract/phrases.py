"""Phrases that several rules share: cues, what is said on each side of an option, corrections, conclusions, refusals.

Every pattern is linear: alternatives begin differently, repeats are possessive, and contexts are searched in bounded
windows. All are matched against lower-cased text; the words stand in catalog/words.
"""

from __future__ import annotations

import re
from functools import cache

from .word_lists import END, START, Gated, LazyPattern, Stems, words

_OPENING = r"[(\[{\"'*_`「『【《“<\\$\s]*+"
_CLOSING = r"[)\]}\"'*_`.」』】》”> \t]*+"
_DETERMINERS = r"(?:(?:<polarity.determiner>) |<polarity.determiner_glued>)*+"
_ASIDE = r"(?:\([^()\n]{0,60}\)[ \t]*)?"
_SAYS = r"(?:(?:<polarity.says>)\s+)*+"
ONLY_IF = (
    r"(?:(?:would|could|can only|may only|might) (?:only )?(?:be|apply|fit|hold|work)[^.;\n]{0,24}"
    r"|(?:(?:is|holds|applies|works) (?:correct |right |true )?)?only) if(?!\w)"
)
"""What is right under a condition is not said to be right."""
# Each phrase below looks at one side of a mention, up to it or from it on: what is said of an option is judged by both
# sides, and the nearer word wins. They are tried for every mention, so all of them are anchored at the mention.
DENIED_BEFORE = LazyPattern(
    rf"(?:{START}(?:<polarity.denies>)"
    r"|(?<!\w)(?:first (?:thought|guess|read)|initially|at first|originally)(?:(?!but )[^,.;:\n]){0,30}"
    r"|n't|≠|!=|☐|\[ \]|(?:\A|\n)[\s*>•-]*[❌✗✘]"
    rf"|<polarity.denies_glued>)[\s*_(\[\"']*{_DETERMINERS}{_OPENING}\Z"
)
SPARED_BEFORE = LazyPattern(
    r"(?:everything|nothing|(?:all|every|none|no)(?: of)?(?: the)?(?: other)?(?: options?| choices?| answers?| ones?)?)"
    rf" (?:but|except|other than|besides|apart from)(?: for)?\s{_DETERMINERS}{_OPENING}\Z"
)
"""`All but B`: the denial of the others spares this one. Tried first, since `but` and `except` would deny it."""
AFFIRMED_BEFORE = LazyPattern(
    rf"(?:{START}(?:<polarity.affirms>)"
    r"|=>|→|⇒|->|(?<!\b[a-z]\s)=|☑|☒|\[x\]|(?:\A|\n)[\s*>•-]*[✅✔✓]|<polarity.affirms_glued>)[,:]?\s*"
    rf"(?:(?:<polarity.affirms_filler>) |<polarity.affirms_filler_glued>)*+{_OPENING}\Z"
)
TENTATIVE_BEFORE = LazyPattern(
    rf"(?:<polarity.weighs_glued>)是?{_OPENING}\Z|(?:\A|[.;!?\n]\s?)if [^.;!?\n]{{1,48}}\Z"
    rf"|{START}(?:<polarity.weighs>)(?: also| well| still| equally)?"
    rf"(?: be| it's| it is| it| were| was)?\s*{_DETERMINERS}{_OPENING}\Z"
)
DENIED_AFTER = LazyPattern(
    rf"[)\]\"'*_`]*\s{ONLY_IF}"
    r"|[)\]\"'*_`]*,?\s(?:but|however,?) (?:the|this) question|"
    r"[)\]\"'*_`]*\s(?:[a-z]{4,14}\s)?(?:<polarity.supposes>)(?!\w)|\s?\((?:no|wrong|incorrect|✗|❌)[),]|"
    rf"{_CLOSING}{_ASIDE}(?:[,:–—-]?[ \t]*{_SAYS}(?:(?:<polarity.bad>|<polarity.weak>){END}"
    rf"|(?:<polarity.denied_verb>)n't(?! (?:<polarity.bad>){END})|can't|❌|✗|✘|×|🚫)"
    r"|[:–—?-]\s?(?:no|nope)(?=[\s]*(?:[.,;:\n–—-]|\Z))|\?\s?也?不"
    rf"|(?<!\.\s){_SAYS}(?:(?<=\s)(?:not(?! (?:been )?(?:<polarity.bad>){END})|<polarity.never>){END})(?<!, not)"
    r"|(?:选项|項|项|は|が|이|가|은|는|是)?\s?(?:都|均|全|也|明显|显然|肯定)*+是?(?:<polarity.bad_glued>)|\s?(?:<polarity.bad_spaced>))"
)
AFFIRMED_AFTER = LazyPattern(
    rf"{_CLOSING}{_ASIDE}[,:–—-]?\s*{_SAYS}(?:(?:<polarity.good>|not (?:been )?(?:<polarity.bad>)){END}"
    r"|✓|✔|✅|☑|(?<=[:–—-] )yes|(?<=\bit )is(?=\s*(?:[.!,;\n]|\Z))"
    r"|(?:选项|項|项|は|が|이|가|은|는|是|를|을|才是|才)?\s?(?:的)?(?:<polarity.good_glued>))"
)
REFUTED = LazyPattern(
    rf"[)\]}}\"'”*_`$\\ ]*\s{ONLY_IF}|[)\]}}\"'*_`$\\ ]*[:,–—-]?\s?(?:(?:is|are|was|would be|can be|seems|looks)\s)?"
    r"(?:clearly |also |therefore |thus )?"
    rf"(?:(?:<polarity.bad>){END}|isn't|is not|are not|doesn't|does not|cannot be|can't be|❌|✗|✘|×)"
)
"""Said after an option's text: only what judges the option, since the text itself may deny (`B. No, it is not`)."""


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

TAKES_BACK = LazyPattern(rf"{START}(?:<options.takes_back>|while|whereas|other|others){END}|n't|\?")
CLOSING_WORDS = LazyPattern(rf"{START}(?:<conclusions.closes>){END}|<conclusions.closes_glued>|[∴⇒]")
OR_BEFORE = LazyPattern(r"(?<!\w)(?:<conclusions.or>)\s(?:option |choice )?[(\[\"'*]*\Z")
PREFERRED = LazyPattern(rf"[)\"'*_]*,?(?:\s\w{{1,12}}){{0,8}}\s(?:<conclusions.chosen>){END}")
"""After an option that its sentence prefers."""
