"""Phrases that several rules share: cues, what is said on each side of an option, corrections, conclusions, refusals.

Every pattern is linear: alternatives begin differently, repeats are possessive, and contexts are searched in bounded
windows. All are matched against lower-cased text; the words stand in catalog/words.
"""

from __future__ import annotations

import re
from functools import cache

from .word_lists import END, START, After, Before, Gated, LazyPattern, Stems, one_of, words

_CLAUSE = 56
"""How far before an option what is said of it is looked for: about a clause."""
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
DENIED_BEFORE = Before(
    "(?:"
    + one_of(
        rf"{START}(?:<polarity.denies>)",  # anything but
        # at first I took it for
        r"(?<!\w)(?:first (?:thought|guess|read)|initially|at first|originally)(?:(?!but )[^,.;:\n]){0,30}",
        r"n't",
        r"≠|!=",
        r"☐|\[ \]|(?:\A|\n)[\s*>•-]*[❌✗✘]",  # a box that is not ticked, a line that is crossed
        r"<polarity.denies_glued>",  # 不是
    )
    + rf")[\s*_(\[\"']*{_DETERMINERS}{_OPENING}",
    reach=_CLAUSE,
    finds="it can be anything but ",
    passes="it is ",
)
SPARED_BEFORE = Before(
    r"(?:everything|nothing|(?:all|every|none|no)(?: of)?(?: the)?(?: other)?(?: options?| choices?| answers?| ones?)?)"
    rf" (?:but|except|other than|besides|apart from)(?: for)?\s{_DETERMINERS}{_OPENING}",
    reach=_CLAUSE,
    finds="all other options except ",
    passes="it is ",
)
"""`All but B`: the denial of the others spares this one. Tried first, since `but` and `except` would deny it."""
AFFIRMED_BEFORE = Before(
    "(?:"
    + one_of(
        rf"{START}(?:<polarity.affirms>)",  # hence
        r"=>|→|⇒|->",
        r"(?<!\b[a-z]\s)=",  # but not in `x = `
        r"☑|☒|\[x\]|(?:\A|\n)[\s*>•-]*[✅✔✓]",
        r"<polarity.affirms_glued>",
    )
    + r")[,:]?\s*"
    rf"(?:(?:<polarity.affirms_filler>) |<polarity.affirms_filler_glued>)*+{_OPENING}",
    reach=_CLAUSE,
    finds="hence it is most likely the option ",
    passes="either ",
)
TENTATIVE_BEFORE = Before(
    one_of(
        rf"(?:<polarity.weighs_glued>)是?{_OPENING}",  # 可能是
        r"(?:\A|[.;!?\n]\s?)if [^.;!?\n]{1,48}",  # if the light is on, it would be
        rf"{START}(?:<polarity.weighs>)(?: also| well| still| equally)?"  # could also be
        rf"(?: be| it's| it is| it| were| was)?\s*{_DETERMINERS}{_OPENING}",
    ),
    reach=_CLAUSE,
    finds="it could be ",
    passes="it is ",
)
DENIED_AFTER = After(
    one_of(
        rf"[)\]\"'*_`]*\s{ONLY_IF}",  # can only be right if
        r"[)\]\"'*_`]*,?\s(?:but|however,?) (?:the|this) question",
        r"[)\]\"'*_`]*\s(?:[a-z]{4,14}\s)?(?:<polarity.supposes>)(?!\w)",  # would follow
        r"\s?\((?:no|wrong|incorrect|✗|❌)[),]",
        rf"{_CLOSING}{_ASIDE}(?:"
        + one_of(
            rf"[,:–—-]?[ \t]*{_SAYS}(?:(?:<polarity.bad>|<polarity.weak>){END}"  # is clearly ruled out; isn't
            rf"|(?:<polarity.denied_verb>)n't(?! (?:<polarity.bad>){END})|can't|❌|✗|✘|×|🚫)",
            r"[:–—?-]\s?(?:no|nope)(?=[\s]*(?:[.,;:\n–—-]|\Z))",
            r"\?\s?也?不",
            # is not, is never; but neither `is not wrong`, nor what stands after a comma
            rf"(?<!\.\s){_SAYS}(?:(?<=\s)(?:not(?! (?:been )?(?:<polarity.bad>){END})|<polarity.never>){END})"
            r"(?<!, not)",
            r"(?:选项|項|项|は|が|이|가|은|는|是)?\s?(?:都|均|全|也|明显|显然|肯定)*+是?(?:<polarity.bad_glued>)",
            r"\s?(?:<polarity.bad_spaced>)",
        )
        + ")",
    ),
    reach=120,
    finds=") is clearly ruled out",
    passes=") is right",
)
AFFIRMED_AFTER = After(
    rf"{_CLOSING}{_ASIDE}[,:–—-]?\s*{_SAYS}(?:"
    + one_of(
        rf"(?:<polarity.good>|not (?:been )?(?:<polarity.bad>)){END}",  # fits best, is not wrong
        r"✓|✔|✅|☑",
        r"(?<=[:–—-] )yes",
        r"(?<=\bit )is(?=\s*(?:[.!,;\n]|\Z))",  # B it is.
        r"(?:选项|項|项|は|が|이|가|은|는|是|를|을|才是|才)?\s?(?:的)?(?:<polarity.good_glued>)",
    )
    + ")",
    reach=120,
    finds=" is not wrong",
    passes=" is wrong",
)
REFUTED = After(
    one_of(
        rf"[)\]}}\"'”*_`$\\ ]*\s{ONLY_IF}",
        r"[)\]}\"'*_`$\\ ]*[:,–—-]?\s?(?:(?:is|are|was|would be|can be|seems|looks)\s)?"
        r"(?:clearly |also |therefore |thus )?"
        rf"(?:(?:<polarity.bad>){END}|isn't|is not|are not|doesn't|does not|cannot be|can't be|❌|✗|✘|×)",
    ),
    reach=80,
    finds=" – incorrect",
    passes=". It is not",
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


LINK = After(
    "(?>"
    + one_of(
        r"[\s*_`\"'(\[{$)\]:=<>\\~|#「『【《“”（：〈—–→⇒-]++",
        rf"(?:<cues.link>){END}",
        rf"a(?=\s(?:letra|op[cç][aã]o|alternativa|[b-z]{END}))",  # é a letra B, but not the label A
        r"(?:<cues.link_glued>)",
    )
    + ")*+",
    finds=" to this question is clearly: b",
)
"""All that may stand between a cue and its value. Atomic: whatever is skipped stays skipped, so time is linear."""
BINDER = LazyPattern(
    rf"[:=→⇒]|->|{START}(?:<cues.copula>){END}|<cues.copula_glued>|—|–| - ", finds=" is ", passes=" (b) "
)
"""What ties a cue to its value; without it `option B` only names one."""
NOT_AFTER = After(rf"(?:<cues.denies_value>){END}|<cues.denies_value_glued>", finds="not b", passes="b, not c")
NEGATION = LazyPattern(rf"{START}(?:<cues.negation>){END}", finds="it is not red", passes="it is red")
_PRAISE = "correct |right |best |final "
DOUBT = Gated(
    rf"{START}(?:"
    + one_of(
        r"(?:<doubt.wrong>)[\s的]*(?:answer |final )?",
        rf"(?:<doubt.condition>) (?:that )?(?:the |my |your |it |its )?(?:{_PRAISE}|real |true )*",  # if the correct
        rf"(?:don't|do not) (?:think|believe) (?:that )?(?:the |my )?(?:{_PRAISE})*",
        rf"(?:<doubt.denied>) (?:the |a |my |an )?(?:{_PRAISE}|real |true )*",  # not the best
        r"(?:<doubt.earlier>) (?:answer |choice |guess |thought )?",  # my first guess
    )
    + r")\Z",
    "doubt.stems",
    finds="i don't think the correct ",
    passes="i think the correct ",
)
"""What stands directly before a cue and takes its force."""
DOUBT_CLAUSE = Gated(
    rf"{START}(?:<doubt.reported>)", "doubt.reported_stems", finds="many would say that the ", passes="i say that the "
)
"""Anywhere in the clause before a cue: the speaker reports a thought that is not the answer."""
CONTRAST = LazyPattern(
    rf"{START}(?:<doubt.contrast>){END}|<doubt.contrast_glued>", finds="at first, but now", passes="at first"
)
"""After it the speaker has left what was reported (`at first A, but …`)."""
VERB_SUBJECT = Before(
    rf"(?:{START}(?:<doubt.speaker>)|[.!?,:;\n—–-]|\A)\s*"
    r"(?:therefore |thus |then |to |now |finally |definitely |rather )*",
    reach=24,
    finds="i'll ",
    passes="some readers ",
)
"""Who may be the subject of `choose B` for it to be an answer: the speaker, or nobody."""
VERB_DENIED = Before(
    rf"(?:{START}(?:<doubt.verb_denied>)|n't)(?:\s+\w{{1,12}}){{0,2}}\s*",
    reach=40,
    finds="i would never ",
    passes="i would ",
)
CORRECTION = Gated(
    rf"{START}(?:<corrections.turn>)|<corrections.turn_glued>",
    "corrections.stems",
    finds="a. wait, it is b",
    passes="a. it is a",
)
WITHDRAWN = LazyPattern(
    rf"{START}(?:<corrections.withdrawn>){END}|<corrections.withdrawn_glued>",
    finds="that is not right",
    passes="that is right",
)
UNDECIDED = Gated(
    r"(?<!\w)(?:<conclusions.undecided>)(?!\w)",
    "conclusions.undecided_stems",
    finds="it is between these two",
    passes="it is this one",
)
"""Said of the options just named: none of them is chosen."""
GOES_THROUGH = Before(
    r"(?:<labels.introduces>)[^.!?\n:]{0,80}[.:][\s*_(]*(?:[a-z][.:)]\s?)?",
    reach=100,
    finds="let me go through the options: ",
    passes="the answer is ",
)
"""Before the first of the options that a reply goes through."""
ANNOUNCES = LazyPattern(
    r"(?:<conclusions.open_cue>)\s?(?:(?:<conclusions.open_copula>)(?![a-z'])|:|=|：)\s{0,3}[:*\s]*",
    re.IGNORECASE,
    finds="The answer is 5",
    passes="It is 5",
)
"""Before a number or a short text that a reply answers with."""
REFUSAL = Gated(
    one_of(
        rf"{START}(?:<refusals.unable>)\s(?:\w{{1,12}}\s){{0,3}}?(?:<refusals.telling>)\w{{0,4}}",  # cannot safely tell
        rf"{START}(?:<refusals.sorry>)",
        rf"{START}(?:<refusals.lack>|no) (?:\w{{1,12}} )?(?:<refusals.facts>|detail)",  # not enough information
        rf"{START}(?:<refusals.no_image>)",
        r"<refusals.declines>",
    ),
    "refusals.stems",
    finds="i cannot determine it",
    passes="i see a dog",
)
NEEDS_MORE = LazyPattern(
    rf"{START}(?:<refusals.needs_more>)", finds="please provide the picture", passes="the picture shows it"
)
"""Said instead of an answer to an open question."""
UNDECIDABLE = LazyPattern(
    r"(?:<refusals.cannot>)[\w\s]{1,20}(?:<refusals.knowing>)"
    r"|(?:<refusals.lack>) (?:\w{1,12} )?(?:<refusals.facts>)|<refusals.undecidable>",
    finds="it cannot be determined",
    passes="it is red",
)
"""Refusals that say the question has no answer: they choose an option such as `Cannot be determined` if offered."""

TAKES_BACK = LazyPattern(
    rf"{START}(?:<options.takes_back>|while|whereas|other|others){END}|n't|\?",
    finds="it would be red",
    passes="it is red",
)
CLOSING_WORDS = LazyPattern(
    rf"{START}(?:<conclusions.closes>){END}|<conclusions.closes_glued>|[∴⇒]",
    finds="therefore it is marble",
    passes="it is marble",
)
OR_BEFORE = Before(
    r"(?<!\w)(?:<conclusions.or>)\s(?:option |choice )?[(\[\"'*]*", reach=12, finds="red or ", passes="it is "
)
PREFERRED = After(
    rf"[)\"'*_]*,?(?:\s\w{{1,12}}){{0,8}}\s(?:<conclusions.chosen>){END}",
    reach=60,
    finds=" shows the better match",
    passes=": 20. wind",
)
"""After an option that its sentence prefers."""
