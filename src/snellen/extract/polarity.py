"""Mentions of options in a reply to what the reply says of each: affirmed, denied, asked, one of several."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .cue_words import _W

_DECOR_IN = r"[(\[{\"'*_`「『【《“<\\$\s]*+"
_DET = (
    r"(?:be |is |are |a |an |the |option |options |choice |choices |answer |answers |letter |letters |either |both |"
    r"just |simply |really |actually |necessarily |likely |any |being |for |of |el |la |le |der |die |das |un |una |une |ein |eine |um |"
    r"uma |in |as |"
    r"clear |obvious |visible |evident |opción |选项|选|是)*+"
)
_SPACE = r"[\s*_(\[\"']*"

DENIED_BEFORE = re.compile(
    rf"(?:(?<![{_W}])(?:not|never|neither|nor|no|except|excepting|excluding|without|unlike|versus|vs\.?|cannot be|"
    rf"(?<!not )(?:wrong|incorrect|false)|"
    r"rules? out|ruled out|ruling out|eliminat(?:e|es|ed|ing)|exclud(?:e|es|ed)|reject(?:s|ed|ing)?|discard(?:s|"
    r"ed|ing)?|dismiss(?:es|ed|ing)?|"
    r"anything but|plut[oô]t que|en lugar de|en vez de|em vez de|anstatt|statt|invece di|least \w{1,14}(?: is| are)?|d(?:id|oes|"
    r"o) not [a-z]{2,10}|d(?:id|oes|o)n't [a-z]{2,10}|rather than|instead of|other than|different from|opposed to|mistaken (?:it )?for|"
    r"confused with|"
    r"first guess was|first thought(?: was)?|i thought(?: it was)?(?: of)?|(?:(?:don't|do not|wouldn't|can't) (?:think|believe|say)|"
    r"doubt)(?: that)?(?: it's| it is| it was| it would be| the answer is)?|"
    r"initially|originally|tempting|distractor|"
    r"no es|ni|n'est pas|pas|nicht|noch|kein|keine|non [eè]|né|n[aã]o [eé]|nem|не|ни|nie|ani|ليس|ليست)"
    rf"|(?<!\w)(?:first (?:thought|guess|read)|initially|at first|originally)(?:(?!but )[^,.;:\n]){{0,30}}|n't|≠|!=|☐|\[ \]|(?:\A|"
    r"\n)[\s*>•-]*[❌✗✘]|不是|不选|"
    rf"不會是|并非|排除|而非|不为|不可能是|除了){_SPACE}{_DET}{_DECOR_IN}\Z"
)
SPARED_BEFORE = re.compile(
    rf"(?:everything|nothing|(?:all|every|none|no)(?: of)?(?: the)?(?: other)?(?: options?| choices?| answers?| ones?)?) "
    rf"(?:but|except|other than|besides|apart from)(?: for)?\s{_DET}{_DECOR_IN}\Z"
)
AFFIRMED_BEFORE = re.compile(
    rf"(?:(?<![{_W}])(?:hence|therefore|thus|so|leaving|leaves|left with|yes|it'?s|it is|that'?s|this is|that is|"
    rf"must be|should be|would be|has to be|"
    r"i'?d say|i say|i think|i believe|i guess|say|guess|going with|go with|choose|choosing|pick|select|opt for|"
    r"settle on|actually|rather|conclude|conclusion|"
    r"namely|mark|tick|circle|vote for|lean towards?|leaning towards?|best is|correct is|clear that|shows that|means that|"
    r"confirms(?: that)?|consistent with|points to|matches|corresponds to|agrees with|is|only|i'm confident|c'est|"
    r"es|est|ist|das ist|also|donc|así que|quindi|logo|значит|это)"
    r"|=>|→|⇒|->|(?<!\b[a-z]\s)=|☑|☒|\[x\]|(?:\A|\n)[\s*>•-]*[✅✔✓]|因此|所以|故|应该是|就是|是|よって|따라서)[,:]?\s*(?:it's |it is |"
    r"the answer |option |"
    r"choice |letter |answer |"
    r"actually |clearly |definitely |probably |most likely |likely |only |a |an |the |un |una |une |ein |eine |la |le |el |die |das |"
    rf"選項|选项|选)*+{_DECOR_IN}\Z"
)
TENTATIVE_BEFORE = re.compile(
    rf"(?:可能|也许|或许|大概)是?{_DECOR_IN}\Z|(?:\A|[.;!?\n]\s?)if [^.;!?\n]{{1,48}}\Z|(?<![{_W}])(?:could|might|may|maybe|perhaps|"
    r"possibly|either|between|whether|if|consider|considering|suppose|"
    rf"were|check|checking|try|like|such as|e\.g\.|compare|comparing)"
    rf"(?: be| it's| it is| it| were| was)?\s*{_DET}{_DECOR_IN}\Z"
)
_TAIL = r"[)\]}\"'*_`.」』】》”> \t]*+"
_SAYS = (
    r"(?:(?:is|are|was|were|seems?|looks?|appears?|does|do|did|has|have|can|could|would|will|should|must|may|might|"
    r"be|been|being|then|also|clearly|all|both|definitely|obviously|simply|therefore|just|a|an|the|to|option|choice|"
    r"which|that|it|on|est|ist|es|sind|sont)\s+)*+"
)
_BAD = (
    r"wrong|incorrect(?:ly)?|false|absurd|ruled|eliminated|excluded|inconsistent|impossible|unlikely|invalid|implausible|irrelevant|"
    r"rejected|discarded|dismissed|refuted|disproved|unsupported|unrelated|inaccurate|incompatible|contradict(?:s|ed)?|"
    r"falsch|fausse|faux|incorrecta|errada|sbagliata|неверн\w+|неправ\w+"
)
_WEAK = (
    r"out|too|distractors?|common distractor|tempting|fails?|decoys?|makes? no|makes? little|lacks?|conflicts?|violates?|misreads?|"
    r"would (?:have|need|require|show|mean|imply)|off|misstates?|ignores?|overstates?|reverses|confuses|goes against|fall short|falls short"
)
DENIED_AFTER = re.compile(
    rf"{_TAIL}(?:\([^()\n]{{0,60}}\)\s*)?(?:[,:–—-]?[ \t]*{_SAYS}(?:(?:{_BAD}|{_WEAK})(?![{_W}])|(?:is|are|was|does|do|did|has|"
    rf"can|could|would|should|wo)n't(?! (?:{_BAD})(?![{_W}]))|can't|❌|✗|✘|×|🚫)|[:–—?-]\s?(?:no|nope)(?=[\s]*(?:[.,;:\n–—-]|\Z))|"
    r"\?\s?也?不"
    rf"|(?<!\.\s){_SAYS}(?:(?<=\s)(?:not(?! (?:been )?(?:{_BAD})(?![{_W}]))|never|no|cannot|nicht|pas)(?![{_W}]))(?<!, not)"
    r"|(?:选项|項|项|は|이|은|는|是)?(?:都|均|全|也|明显|显然|肯定)*+是?(?:错误|不正确|不对|不符|错|誤り|間違|不正解|틀|오답|아니|ではな|じゃな)|\s?(?:خطأ|خاطئ|गलत))"
)
AFFIRMED_AFTER = re.compile(
    rf"{_TAIL}(?:\([^()\n]{{0,60}}\)\s*)?[,:–—-]?\s*{_SAYS}(?:(?:correct|right|best|true|accurate|answer|one(?! of)|(?:well |"
    r"clearly )?supported|fits?|matches|"
    rf"works|wins|winner|better|remains|left|only|most|it is|not (?:been )?(?:{_BAD})|because|since|correcta?|correcte|richtig|stimmt|"
    r"juste|"
    rf"corretta?|верн\w+|правильн\w+)(?![{_W}])|"
    rf"✓|✔|✅|☑|(?<=[:–—-] )yes|"
    r"(?:选项|項|项|は|が|이|은|는|是|를|을|才是|才)?(?:的)?(?:正确|對|对|符合|正解|正しい|정답|맞|です|입니다|선택|صحيح|सही))"
)
_QUESTION = re.compile(r"[)\]}\"'*_`\s]*+\?")
_JOIN = re.compile(
    r"[)\]}\"'*_`\s]*+(?:\.?\s*(?:,\s*)?(?:and/or|and|or|nor|neither|ni|né|nem|noch|ani|y|et|und|oder|ou|o|e|и|или|ни|및|와|과|또는|und/oder|"
    r"[,/&|、+>→⇒]|->|=>|和|或者|或|与|及|跟|または|と|か))?\s*(?:even |maybe |possibly |perhaps |also )?(?:option |choice |a |an |"
    r"the )*+[(\[{\"'*_`\s]*"
)
_PUT = re.compile(r"\s?\?\s*(?:(?P<yes>yes|yep|indeed)|(?P<no>no|nope|not))?(?!\w)")
"""A question put and answered by the speaker: `Is B right? No.`"""
_ARROW = re.compile("[>→⇒]")
_OPPOSED = re.compile(
    r"[)\]}\"'*_`\s]*+,?\s?(?:but|rather|sondern|sino|bensì|mas sim|mais|maar|utan|а|но|而是|بل)(?: rather| it's| it is)?\s?"
    r"(?:option |an? |the |el |la |le |il |der |die |das |ein |eine |una? |une )*+[(\[{\"'*_`\s]*"
)
"""What stands between the denied and the meant one: `not A but B`."""
_LIKEWISE = re.compile(
    r"(?<!\w)(?:so|as|neither|nor) (?:is|are|does|do|can|was)\s(?:option |choice |the |an? )?[(\[\"'*]*\Z"
)
_EXCEPT = re.compile(
    r"(?<!\w)(?:except(?: for)?|apart from|other than|besides|aside from)\s(?:option |choice )?[(\[\"'*]*\Z"
)
_ALL_OTHERS = re.compile(r"[)\]\"'*]*,?\s(?:all|every|the (?:other|rest)|none|no )")
_PLURAL = re.compile(
    r"[)\]}\"'*_`.\s]*+(?:are|were|all|both|do|have|can|cannot|don't|aren't|sind|sont|son|sono|都|均|はどれも)"
)
_WINDOW = 56


class Mention:
    """One place where an option is named: which one, where, and what is said of it."""

    __slots__ = ("affirmed", "asked", "denied", "end", "index", "joined", "listed", "start", "tentative")

    def __init__(self, index: int, start: int, end: int, *, listed: bool = False) -> None:
        self.index, self.start, self.end, self.listed = index, start, end, listed
        self.affirmed = self.denied = self.asked = self.joined = self.tentative = False

    @property
    def stands(self) -> bool:
        """Whether it may count as an answer at all."""
        return not self.denied and not self.listed

    @property
    def alone(self) -> bool:
        """Whether it stands and is not one of several joined ones."""
        return self.stands and not self.joined

    @property
    def sure(self) -> bool:
        """Whether it stands alone and is affirmed, not asked and not weighed."""
        return self.affirmed and self.alone and not self.asked and not self.tentative


def agreed(mentions: Sequence[Mention]) -> Mention | None:
    """Return the last mention if all name the same option, else None."""
    return mentions[-1] if mentions and all(mention.index == mentions[-1].index for mention in mentions) else None


def judge(low: str, mentions: Sequence[Mention]) -> None:
    """Fill in what `low` (lower-cased text) says of each mention, reading a list such as `A, B or C` as one."""
    run: list[Mention] = []
    previous: Mention | None = None
    for mention in mentions:
        if run and not _linked(low, run[-1], mention):
            _close(low, run)
            run = []
        _judge_one(
            low, mention, inherited=bool(run) and run[-1].denied and not _ARROW.search(low, run[-1].end, mention.start)
        )
        if previous and not mention.denied:
            _compare(low, previous, mention)
        run.append(mention)
        previous = mention
    _close(low, run)


def _compare(low: str, previous: Mention, mention: Mention) -> None:
    """Read what is said of a mention by way of the one before: `not A but B`, `A is wrong, so is B`."""
    if previous.denied and _OPPOSED.fullmatch(low, previous.end, mention.start):
        mention.affirmed = True
    elif _LIKEWISE.search(low, max(previous.end, mention.start - 24), mention.start):
        mention.denied, mention.affirmed = previous.denied, previous.affirmed


def _linked(low: str, first: Mention, second: Mention) -> bool:
    """Whether two mentions stand in one list, with nothing but a conjunction between them."""
    return second.start - first.end <= 24 and _JOIN.fullmatch(low, first.end, second.start) is not None


def _judge_one(low: str, mention: Mention, *, inherited: bool) -> None:
    begin, start, end = max(0, mention.start - _WINDOW), mention.start, mention.end
    mention.asked = _QUESTION.match(low, end) is not None
    mention.tentative = TENTATIVE_BEFORE.search(low, begin, start) is not None
    if SPARED_BEFORE.search(low, begin, start) or _excepted(low, begin, mention):
        mention.affirmed = True
        return
    denied = DENIED_AFTER.match(low, end, end + 120) is not None
    praised = None if denied else AFFIRMED_AFTER.match(low, end, end + 120)
    mention.denied = denied or DENIED_BEFORE.search(low, begin, start) is not None or (inherited and praised is None)
    mention.affirmed = not mention.denied and (
        praised is not None or AFFIRMED_BEFORE.search(low, begin, start) is not None
    )
    if praised is not None:
        _answer_question(low, mention, praised.end())


def _answer_question(low: str, mention: Mention, end: int) -> None:
    """Where the praise was a question (`Is B right? No.`), let the speaker's own answer count."""
    question = _PUT.match(low, end)
    if question:
        mention.affirmed, mention.denied = question.group("yes") is not None, question.group("no") is not None


def _excepted(low: str, begin: int, mention: Mention) -> bool:
    """Whether it reads `except for C, all others …`: what is excepted is what remains."""
    after = _ALL_OTHERS.match(low, mention.end)
    return after is not None and _EXCEPT.search(low, begin, mention.start) is not None


def _close(low: str, run: list[Mention]) -> None:
    """Settle one list of mentions: `A, B and D are wrong` denies all; several undenied ones are joined."""
    if len(run) < 2:
        return
    shared = run[-1].denied and _PLURAL.match(low, run[-1].end) is not None
    for mention in run:
        mention.denied |= shared and not (mention.affirmed and low.startswith(",", mention.end))
    joined = len({mention.index for mention in run if not mention.denied}) > 1
    for mention in run:
        mention.joined = joined
