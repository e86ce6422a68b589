"""Gates that judge one item by itself: schema, unique right candidate, chain, groundedness, leak, word list."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rapidfuzz import fuzz

from ...scoring.aggregates.blind_learned import content_words, overlap
from .records import CANDIDATES, FEWEST_STEPS, INFERENCE, MOST_STEPS, Draft, Finding
from .replies import alike

SAME_TEXT = 97.0
"""Likeness (0 to 100) above which two candidates are one."""
TOLD = 0.8
"""Share of the inference's words in the last answer above which a chain told gives it away."""

ItemGate = Callable[[Draft], Iterator[Finding]]


def check_schema(draft: Draft) -> Iterator[Finding]:
    """Two to four steps, six candidates each, no empty text, the right one among them."""
    if not FEWEST_STEPS <= len(draft.steps) <= MOST_STEPS:
        yield _fail("schema", f"the chain has {len(draft.steps)} steps; it needs {FEWEST_STEPS} to {MOST_STEPS}")
    for name, question in draft.questions():
        if len(question.candidates) != CANDIDATES or not 0 <= question.right < len(question.candidates):
            count = len(question.candidates)
            yield _fail("schema", f"{name} has {count} candidates, the right one at {question.right}")
        elif not question.question.strip() or not all(text.strip() for text in question.candidates):
            yield _fail("schema", f"{name} has an empty text")


def check_unique(draft: Draft) -> Iterator[Finding]:
    """One candidate is right and no two are the same in other letters."""
    for name, question in draft.questions():
        texts = [alike(text) for text in question.candidates]
        if len(set(texts)) < len(texts):
            yield _fail("unique", f"{name} has the same candidate twice")
            continue
        right = texts.pop(question.right)
        near = [text for text in texts if fuzz.ratio(text, right) >= SAME_TEXT]
        if near:
            yield _fail("unique", f"{name}: {near[0]!r} is the right answer in other letters")


def check_chain(draft: Draft) -> Iterator[Finding]:
    """Questions and answers move on from step to step; a chain without a word of the inference is noted.

    A drafter is asked not to use those words, so that none are shared is for people to look at, not a fault.
    """
    if len({alike(step.question) for step in draft.steps}) < len(draft.steps):
        yield _fail("chain", "two steps ask the same question")
    if len({alike(step.answer) for step in draft.steps}) < len(draft.steps):
        yield _fail("chain", "two steps have the same answer")
    prepared = content_words(" ".join(f"{step.question} {step.answer}" for step in draft.steps))
    if not content_words(draft.inference.answer) & prepared:
        yield Finding("chain", "warn", "no word of the inference is prepared by the chain: does it lead there?")


def check_grounded(draft: Draft) -> Iterator[Finding]:
    """The first step speaks of what the annotator saw."""
    first = draft.steps[0]
    if not content_words(draft.source.clue) & content_words(f"{first.question} {first.answer}"):
        yield _fail("grounded", "the first step says nothing of the clue")


def check_leak(draft: Draft) -> Iterator[Finding]:
    """No question holds its own answer; a last answer that is nearly the inference is noted."""
    for name, question in draft.questions():
        asked = content_words(question.question)
        right = overlap(content_words(question.answer), asked)
        if right > 0.5 and right > max(overlap(content_words(text), asked) for text in question.wrong):
            yield _fail("leak", f"{name} holds its own answer")
    last, wanted = content_words(draft.steps[-1].answer), content_words(draft.inference.answer)
    if overlap(wanted, last) >= TOLD:
        shared = f"the last answer holds {overlap(wanted, last):.0%} of the {INFERENCE}'s words"
        yield Finding("leak", "warn", f"{shared}: not for settings that tell the chain")


def check_words(forbidden: frozenset[str]) -> ItemGate:
    """Return a gate that refuses items with words of a list."""

    def check(draft: Draft) -> Iterator[Finding]:
        texts = " ".join(f"{question.question} {' '.join(question.candidates)}" for _, question in draft.questions())
        found = forbidden & set(texts.casefold().split()) | forbidden & content_words(texts)
        if found:
            yield _fail("toxicity", f"contains {', '.join(sorted(found))}")

    return check


ITEM_GATES: dict[str, ItemGate] = {
    "schema": check_schema, "unique": check_unique, "chain": check_chain, "grounded": check_grounded,
    "leak": check_leak,
}  # fmt: skip


def _fail(gate: str, reason: str) -> Finding:
    return Finding(gate, "fail", reason)
