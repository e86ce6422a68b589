"""A model's reply to the option it chose, and why: one ordered table of named rules, and never a guess."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from ..core.errors import UsageError
from . import cue, edge_sentences, in_words, structured, valued, whole_reply, without_cue
from .extraction import TRUNCATED, UNPARSED, Extraction
from .option_set import OptionSet, Reply, compile_options, option_set
from .reply_text import (
    NEXT_QUESTION,
    SHORTEST_COURTEOUS,
    answer_start,
    before_next_question,
    normalise,
    without_courtesy,
)

__all__ = ["RULES", "Extraction", "Rule", "chosen_text", "extract_choice", "read"]
Rule = Callable[[OptionSet, Reply], Extraction | None]
RULES: Final[tuple[tuple[str, Rule], ...]] = (
    # What needs no understanding comes first: it is cheap, certain, and settles half of all replies.
    ("empty", whole_reply.empty),
    ("whole", whole_reply.whole),
    # Not before `whole`, since an option may itself be `null`; before all else, since error texts hold stray capitals.
    ("harness_error", whole_reply.harness_error),
    # Where the answer was put on purpose: a field made for it outweighs a last line, a last line a sentence.
    ("structured", structured.structured),
    ("last_line", whole_reply.last_line),
    ("cue", cue.cue),
    ("first_line", whole_reply.first_line),
    # A label with its own text is no stray capital: it outweighs what was only weighed, denied or declined before it.
    ("labelled", without_cue.labelled),
    ("other_box", structured.other_box),
    # What is stated first and then explained is no stray mention either.
    ("opening", edge_sentences.opening),
    ("of_marks", in_words.of_marks),
    # Whoever answered before looping has answered.
    ("degenerate", whole_reply.degenerate),
    # From here on nothing announces an answer. A refusal or a cut end first: what follows would read a stray mention.
    ("refusal", without_cue.refusal),
    ("cut_off", without_cue.cut_off),
    ("yes_no", without_cue.yes_no),
    # From what is said of an option to what merely names one: labels before texts, since texts occur in any prose.
    ("affirmed", without_cue.affirmed),
    ("none_of_above", without_cue.none_of_above),
    # What the last sentence alone names, and settles, outweighs a stray label and what was named on the way.
    ("closing", edge_sentences.closing),
    ("lone_label", without_cue.lone_label),
    # A result with which the working ends outweighs the figures on the way to it.
    ("final_value", valued.final_value),
    ("option_text", without_cue.option_text),
    ("by_measure", valued.by_measure),
    ("ordinal", without_cue.ordinal),
    ("in_words", in_words.in_words),
    # Last, because it names what nobody named.
    ("elimination", without_cue.elimination),
    ("abstain", without_cue.abstain),
)
"""In this order; the first rule that returns a verdict decides. `docs/extraction.md` explains each."""
_FUNCTIONS: Final = tuple(rule for _, rule in RULES)


def extract_choice(
    response: str, options: Mapping[str, str] | Sequence[str], *, profile: str = "snellen", finish: str | None = None
) -> Extraction:
    """Read which option `response` chooses.

    `options` maps letter to text, or lists texts that are then lettered A, B, C, … `finish` is the reason generation
    ended ("length" = cut off). `profile` names whose rules to apply; other harnesses' are in `extract.profiles`.

    Example:
        >>> snellen.extract_choice("It is not a cat, so (B).", ["a cat", "a dog"]).letter
        'B'
    """
    if profile == "snellen":
        return read(option_set(options), response, finish)
    from .profiles import profile_named

    return profile_named(profile).read(response, option_set(options).marks)


def chosen_text(response: str, marks: Sequence[str], texts: Sequence[str], finish: str | None = None) -> str:
    """Return the text of the option that `response` chooses, read as it is scored; a reply that chose none as it is.

    Without `marks` the texts are lettered A, B, C, …
    """
    if not texts:
        return response
    options = compile_options(tuple(marks), tuple(texts))
    letter = read(options, response, finish).letter
    return response if letter is None else texts[options.marks.index(letter)]


def read(options: OptionSet, response: str, finish: str | None = None) -> Extraction:
    """Read one reply with a compiled OptionSet: the fast way for many replies to the same options."""
    if not options.marks:
        return Extraction(None, "abstain", UNPARSED)
    hit = options.whole.get(response)
    if hit is not None:
        return hit
    start = answer_start(response)
    if start is None:
        return Extraction(None, "thinking", TRUNCATED)
    body = response[start:] if start else response
    body = normalise(body, lookalikes=options.lookalikes, circles=options.circles)
    if NEXT_QUESTION in body:
        body, finish = before_next_question(body, finish)
    reply = Reply(without_courtesy(body) if len(body) >= SHORTEST_COURTEOUS else body, start, finish)
    for rule in _FUNCTIONS:
        verdict = rule(options, reply)
        if verdict is not None:
            return verdict
    raise UsageError("the rule table must end with a rule that always decides")


_SEVERAL: Final = {
    "structured": ("boxed", "tag", "json"),
    "other_box": ("boxed",),
    "of_marks": ("in_words",),
    "cue": ("cue", "cue_text", "self_correction", "affirmed"),
    "first_line": ("first_line", "leading", "self_correction"),
    "refusal": ("refusal", "undecidable", "affirmed"),
}
"""Rules of the table that sign with other names than their own."""
RULE_NAMES: Final = ("thinking", *dict.fromkeys(name for rule, _ in RULES for name in _SEVERAL.get(rule, (rule,))))
"""Every name that an Extraction may carry, in the order of the table."""
_LONGEST = 60


@cache
def _sentences() -> dict[str, dict[str, str]]:
    return tomllib.loads((files("snellen") / "catalog" / "reading" / "rules.toml").read_text("utf-8"))


def why(found: Extraction, reply: str) -> str:
    """Return one sentence that says why the rule of `found` decided as it did."""
    verdict = found.reason or "picks"
    sentences = _sentences()
    for group in (found.rule, "reasons") if found.rule in sentences else ("profile",):
        if verdict in sentences[group]:
            return sentences[group][verdict].format(part=_part(found, reply), letter=found.letter)
    return f"The rule {found.rule} read no option: {found.reason}."


def _part(found: Extraction, reply: str) -> str:
    """Return what decided, quoted and on one line."""
    if found.span is None:
        return "nothing in particular"
    part = " ".join(reply[found.span[0] : found.span[1]].split())
    return f"“{part if len(part) <= _LONGEST else part[: _LONGEST - 1] + '…'}”"
