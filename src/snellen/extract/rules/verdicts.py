"""Replies that judge instead of naming: a statement is called true or false, or all of what is offered holds."""

from __future__ import annotations

from ..cue_words import CONTRAST, CORRECTION, UNDECIDED
from ..extraction import Extraction
from ..label_mentions import label_mentions, text_mentions
from ..option_set import OptionSet, Reply
from ..polarity import Mention, agreed
from ..word_lists import END, START, Gated, LazyPattern

_JUDGED = LazyPattern(
    rf"{START}(?:<verdicts.claim>)\s(?:is|are|was|seems|must be)\s(?:<verdicts.surely>)*"
    rf"(?P<not>not\s|n't\s)?(?:<verdicts.surely>)*(?:(?P<good><verdicts.holds>)|(?P<bad><verdicts.fails>)){END}"
)
_NOT_TRUE = LazyPattern(r"\W*(?:(?:it|that|this)(?:'s| is) )?not true\W*")
_ALL_SAID = LazyPattern(rf"{START}(?:<verdicts.all_said>){END}|<verdicts.all_said_glued>")
_OPEN = LazyPattern(rf"{START}(?:whether|if|unless)\s(?:the |this |that )?\Z")
_DENIES = LazyPattern(rf"{START}(?:not|never|n't|if|whether|do not)\s(?:\w{{1,12}}\s)?\Z|n't\s\Z")

_IS_ANSWER = Gated(
    r"[*_\"'”)\]]*\s?(?:<verdicts.is_answer>)(?=(?: here| to (?:this|the) question)?[\s*_]*(?:[.!:;,\n。，！]|\Z"
    r"|(?:<cues.value_ends>)))",
    "verdicts.is_answer_stems",
)
_OPENS_SENTENCE = LazyPattern(
    rf"(?:\A|[.!?]\s|\n|[。！？])[\s*_\"'“>#(-]*(?:(?:<conclusions.closes>|<options.article>){END}[\s,:*_]*)*"
    r"(?:(?:<conclusions.closes_glued>)[，,]?)?[\"'“*_(]*\Z"
)
_SENTENCE = LazyPattern(r"[.!?](?=\s)|\n|[。！？]")


def called_answer(options: OptionSet, reply: Reply) -> Extraction | None:
    """A sentence begins with the text of one option and calls it the answer (`Savanna is the correct answer.`)."""
    called = {match.start(): match.end() for match in _IS_ANSWER.matches(reply.low)}
    if not called:
        return None
    chosen = agreed([mention for mention in text_mentions(options, reply) if mention.end in called])
    if chosen is None or not chosen.alone or chosen.asked or not _opens_sentence(reply.low, chosen):
        return None
    return (
        None if _goes_back(options, reply, chosen, called[chosen.end]) else options.pick(reply, chosen, "called_answer")
    )


def _opens_sentence(low: str, mention: Mention) -> bool:
    return _OPENS_SENTENCE.search(low, max(0, mention.start - 40), mention.start) is not None


def _goes_back(options: OptionSet, reply: Reply, chosen: Mention, end: int) -> bool:
    """Whether the rest of the sentence, a turn after it, or a label elsewhere speaks for another option."""
    stop = _SENTENCE.search(reply.low, end)
    if CONTRAST.search(reply.low, end, stop.start() if stop else len(reply.low)) or CORRECTION.search(reply.low, end):
        return True
    labels = label_mentions(options, reply)
    return UNDECIDED.search(reply.low) is not None or any(
        label.sure and label.index != chosen.index for label in labels
    )


def true_false(options: OptionSet, reply: Reply) -> Extraction | None:
    """Options are true and false, neither is named, and the reply says whether the statement holds."""
    places = options.texts.by_text
    if len(options.marks) > 3 or not {"true", "false"} <= places.keys():
        return None
    if _NOT_TRUE.fullmatch(reply.low):
        return options.pick_at(reply, places["false"], "true_false", 0, len(reply.low))
    last = next(reversed(list(_JUDGED.finditer(reply.low, max(0, len(reply.low) - 2000)))), None)
    if (
        last is None
        or _OPEN.search(reply.low, max(0, last.start() - 24), last.start())
        or any(label.sure for label in label_mentions(options, reply))
    ):
        return None
    holds = (last.group("good") is not None) != (last.group("not") is not None)
    return options.pick_at(reply, places["true" if holds else "false"], "true_false", *last.span())


def all_of_above(options: OptionSet, reply: Reply) -> Extraction | None:
    """One option says that all others hold, and so does the reply."""
    index = options.texts.everything
    found = _ALL_SAID.search(reply.low) if index is not None else None
    if index is None or found is None or _DENIES.search(reply.low, max(0, found.start() - 20), found.start()):
        return None
    denied = any(mention.denied for mention in text_mentions(options, reply)) or CONTRAST.search(reply.low, found.end())
    return None if denied else options.pick_at(reply, index, "all_of_above", *found.span())
