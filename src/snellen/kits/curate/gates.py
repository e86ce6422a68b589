"""Drafts to items that passed: every gate in turn, each with its count; what fails is set aside with the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import Struct, field, structs
from numpy.typing import NDArray
from rapidfuzz import fuzz

from ...core.errors import UsageError, not_among
from ...stats.intervals import estimate_mean
from ..cure.blind_baselines import RULES, Choice, content_words, credit, learned_credit, overlap
from .records import CANDIDATES, FEWEST_STEPS, INFERENCE, MOST_STEPS, Draft, Finding, Gated, Question, SetAside
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


SURFACE_RULES = ("no-period", "period", "capital", "odd-one-out", "shortest", "longest")
BLIND_RULES = ("no-period", "shortest", "longest", "majority")
"""What a text-only solver would try first; the looks are tested again after they were levelled."""
LEARNED = "learned"
ROLES = (INFERENCE, "step")

Credits = dict[str, list[NDArray[np.float64]]]
"""Per role, for every item the chances of its questions."""


class BlindTest(Struct, frozen=True):
    """One way to answer without the picture, on one kind of question."""

    judge: str
    role: str
    accuracy: float
    chance: float
    low: float
    """Lower end of the 95 % interval, clustered by item."""
    questions: int
    passed: bool


def find_duplicates(drafts: Sequence[Draft]) -> dict[str, list[Finding]]:
    """Name every item that repeats an earlier one: the same region and inference, or the same texts throughout."""
    seen: dict[tuple[str, ...], str] = {}
    findings: dict[str, list[Finding]] = {}
    for draft in drafts:
        region = (draft.source.url or draft.source.image, str(draft.source.box), alike(draft.inference.answer))
        asked = ((question.question, *sorted(question.candidates)) for _, question in draft.questions())
        texts = ("texts", *(alike(text) for group in asked for text in group))
        for key in (region, texts):
            first = seen.setdefault(key, draft.id)
            if first != draft.id:
                findings[draft.id] = [Finding("duplicates", "fail", f"repeats item {first}")]
    return findings


def rule_credits(drafts: Sequence[Draft], rule: str) -> Credits:
    """Return what a rule of the surface would score on every question."""
    preference = RULES[rule]
    asked: dict[str, list[tuple[Question, ...]]] = {"step": [draft.steps for draft in drafts]}
    asked[INFERENCE] = [(draft.inference,) for draft in drafts]
    return {
        role: [np.array([credit(one.candidates, one.right, preference) for one in group]) for group in groups]
        for role, groups in asked.items()
    }


def learned_credits(drafts: Sequence[Draft]) -> Credits:
    """Return what a judge that learns from the other items would score on every question."""
    if len(drafts) < 2:
        return {INFERENCE: [], "step": []}
    places = range(len(drafts))
    inference = learned_credit([Choice(*structs.astuple(draft.inference)) for draft in drafts], places)
    steps = [(Choice(*structs.astuple(step)), place) for place, draft in enumerate(drafts) for step in draft.steps]
    found = learned_credit([step for step, _ in steps], [place for _, place in steps])
    cuts = np.cumsum([len(draft.steps) for draft in drafts])[:-1]
    return {INFERENCE: [inference[i : i + 1] for i in places], "step": np.split(found, cuts)}


def compare_to_chance(judge: str, drafts: Sequence[Draft], chances: Credits, margin: float) -> Iterator[BlindTest]:
    """Yield one test a role: it fails when the judge is surely above chance by more than the margin."""
    for role in ROLES:
        groups = chances.get(role) or []
        if not groups:
            continue
        values = np.concatenate(groups)
        clusters = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        chance = chance_of(drafts, role)
        estimate = estimate_mean(values, clusters)
        low = estimate.ci95[0] if estimate.ci95 else 0.0
        yield BlindTest(judge, role, float(values.mean()), chance, low, len(values), low <= chance + margin)


def chance_of(drafts: Sequence[Draft], role: str) -> float:
    """Return the mean chance of a blind guess."""
    asked = ((draft.inference,) if role == INFERENCE else draft.steps for draft in drafts)
    sizes = [len(question.candidates) for questions in asked for question in questions]
    return float(np.mean([1.0 / size for size in sizes])) if sizes else 0.0


def reply_credits(replies: Mapping[str, Mapping[str, Sequence[float]]], drafts: Sequence[Draft]) -> Credits:
    """Return the replies of a text-only model (item -> role -> right or wrong); an item not asked counts as chance."""
    scored: Credits = {role: [] for role in ROLES}
    for draft in drafts:
        known = replies.get(draft.id, {})
        scored[INFERENCE].append(np.array(known.get(INFERENCE) or [1.0 / len(draft.inference.candidates)]))
        scored["step"].append(np.array(known.get("step") or [1.0 / len(step.candidates) for step in draft.steps]))
    return scored


def trim(drafts: Sequence[Draft], chances: Credits, margin: float, most: float) -> set[str]:
    """Return the items to set aside so that a judge falls to chance plus margin; none if that is a share above `most`.

    Items go by how surely the judge answers them, those it answers best first.
    """
    gone: set[int] = set()
    for role in ROLES:
        groups = chances.get(role) or []
        sums, sizes = np.array([group.sum() for group in groups]), np.array([len(group) for group in groups])
        bar = chance_of(drafts, role) + margin
        excess = sums - bar * sizes
        total = float(excess.sum())
        for place in np.argsort(-excess, kind="stable"):
            if total <= 0.0:
                break
            gone.add(int(place))
            total -= float(excess[place])
    return {drafts[place].id for place in gone} if len(gone) <= most * len(drafts) else set()


STOPS = ".。!！…"
_SPACES = re.compile(r"\s+")


def level_draft(draft: Draft) -> tuple[Draft, bool]:
    """Return the item with all candidates of each question made alike, and whether anything changed."""
    steps = tuple(level_question(step) for step in draft.steps)
    inference = level_question(draft.inference)
    changed = steps != draft.steps or inference != draft.inference
    return (structs.replace(draft, steps=steps, inference=inference), True) if changed else (draft, False)


def level_question(question: Question) -> Question:
    """Make the candidates of one question alike."""
    candidates = tuple(level_texts(question.candidates))
    return question if candidates == question.candidates else structs.replace(question, candidates=candidates)


def level_texts(texts: Sequence[str]) -> list[str]:
    """Strip spaces, quotes and final stops from all texts; where some begin with a capital, all do, as names must."""
    bare = [_SPACES.sub(" ", text).strip(' "“”').rstrip(STOPS + " ") or text for text in texts]
    return [text[:1].upper() + text[1:] for text in bare] if any(text[:1].isupper() for text in bare) else bare


STAGE = "gates"
SWITCHES = ("unique", "chain", "grounded", "duplicates", "surface", "leak", "toxicity", "blind")
"""Gates that can be switched off; with `--checker`, the checker of the same name goes too."""

Maker = Callable[[Sequence[Draft]], Credits]
Replies = Mapping[str, Mapping[str, Sequence[float]]]
"""A text-only model: item -> role -> right (1) or wrong (0) of each question."""


class GateSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What the gates allow."""

    repair: bool = True
    """Make the candidates of a question look alike before they are tested."""
    trim: bool = True
    """Set aside items that blind judges answer, until these fall to chance plus margin."""
    margin: float = 0.05
    """How far above chance a blind judge may surely be, as a fraction."""
    most_trimmed: float = 0.5
    """Share of the set above which nothing is trimmed: the set itself is at fault."""
    forbidden: frozenset[str] = frozenset()
    off: dict[str, str] = {}
    """Gates that are switched off, by name, each with the reason."""

    def __post_init__(self) -> None:
        """Refuse a gate that is none, one without a reason, and the one on which all others stand."""
        for name, reason in self.off.items():
            if name not in SWITCHES:
                raise UsageError(f"no gate {not_among(name, SWITCHES)}; schema is always on: the others need it")
            if not reason.strip():
                raise UsageError(f"gate {name}: say why it is off: --without '{name}=REASON'")


class GateCount(Struct):
    """What one gate did."""

    gate: str
    seen: int = 0
    failed: int = 0
    repaired: int = 0
    warned: int = 0
    passed: bool = True
    """For gates that judge the set as a whole: whether it passes."""
    off: str = ""
    """Why it was switched off."""


class GateReport(Struct):
    """All gates, in order."""

    drafts: int
    kept: int = 0
    gates: list[GateCount] = field(default_factory=list)
    tests: list[BlindTest] = field(default_factory=list)
    """The blind tests of what was kept, by judge and kind of question."""
    settings: GateSettings = field(default_factory=GateSettings)

    @property
    def passed(self) -> bool:
        """Return whether the set as a whole passes."""
        return all(count.passed for count in self.gates)


class GateRun:
    """The state while drafts pass from gate to gate."""

    def __init__(self, drafts: Sequence[Draft], settings: GateSettings) -> None:
        self.settings = settings
        self.drafts = list(drafts)
        self.notes: dict[str, list[Finding]] = {}
        self.set_aside: list[SetAside] = []
        self.report = GateReport(len(drafts), settings=settings)

    def apply(self, gate: str, findings: Mapping[str, Iterable[Finding]], passed: bool = True) -> None:
        """Note what a gate found and set aside what failed."""
        if self.is_off(gate):
            return
        count = GateCount(gate, len(self.drafts), passed=passed)
        kept = []
        for draft in self.drafts:
            found = list(findings.get(draft.id, ()))
            tally = Counter(finding.outcome for finding in found)
            count.repaired += tally["repaired"] > 0
            count.warned += tally["warn"] > 0
            if tally["fail"]:
                count.failed += 1
                reason = next(finding.reason for finding in found if finding.outcome == "fail")
                self.set_aside.append(SetAside(draft.id, f"{STAGE}: {gate}", reason, draft))
            else:
                kept.append(draft)
                self.notes.setdefault(draft.id, []).extend(found)
        self.drafts = kept
        self.report.gates.append(count)

    def is_off(self, gate: str) -> bool:
        """Tell whether a gate is switched off, and keep the reason in the report."""
        reason = self.settings.off.get(gate.removesuffix(" (checker)"), "")
        if reason:
            self.report.gates.append(GateCount(gate, len(self.drafts), off=reason))
        return bool(reason)

    def apply_item_gate(self, name: str, gate: ItemGate) -> None:
        """Run a gate that looks at one item at a time."""
        self.apply(name, {draft.id: list(gate(draft)) for draft in self.drafts})


def run_gates(
    drafts: Sequence[Draft],
    settings: GateSettings | None = None,
    checks: Mapping[str, Mapping[str, Finding]] | None = None,
    judges: Mapping[str, Replies] | None = None,
) -> tuple[list[Gated], list[SetAside], GateReport]:
    """Pass the drafts through all gates; pure.

    `checks` are the verdicts of LLM checkers: gate name -> item -> finding. `judges` are replies of text-only models:
    name -> item -> role -> right or wrong.
    """
    run = GateRun(drafts, settings or GateSettings())
    for name in ("schema", "unique", "chain", "grounded"):
        run.apply_item_gate(name, ITEM_GATES[name])
    for name, verdicts in (checks or {}).items():
        run.apply(name, {item: [finding] for item, finding in verdicts.items()})
    run.apply("duplicates", find_duplicates(run.drafts))
    _surface_gate(run)
    run.apply_item_gate("leak", ITEM_GATES["leak"])
    if run.settings.forbidden:
        run.apply_item_gate("toxicity", check_words(run.settings.forbidden))
    _blind_gate(run, judges or {})
    run.report.kept = len(run.drafts)
    kept = [Gated(draft, tuple(run.notes.get(draft.id, ()))) for draft in run.drafts]
    return kept, run.set_aside, run.report


def _surface_gate(run: GateRun) -> None:
    """Level the looks, then test them: length cannot be repaired by rule, so items may have to go."""
    if run.is_off("surface"):
        return
    findings: dict[str, list[Finding]] = {}
    if run.settings.repair:
        levelled = [level_draft(draft) for draft in run.drafts]
        run.drafts = [draft for draft, _ in levelled]
        note = Finding("surface", "repaired", "endings, capitals or spaces of candidates made alike")
        findings = {draft.id: [note] for draft, changed in levelled if changed}
    makers = {rule: partial(rule_credits, rule=rule) for rule in SURFACE_RULES}
    run.report.tests = _judge(run, "surface", makers, findings)
    run.apply("surface", findings, all(test.passed for test in run.report.tests))


def _blind_gate(run: GateRun, judges: Mapping[str, Replies]) -> None:
    if run.is_off("blind"):
        return
    findings: dict[str, list[Finding]] = {}
    makers: dict[str, Maker] = {rule: partial(rule_credits, rule=rule) for rule in BLIND_RULES}
    makers |= {LEARNED: learned_credits} | {name: partial(reply_credits, replies) for name, replies in judges.items()}
    tests = _judge(run, "blind", makers, findings)
    run.report.tests = [*(test for test in run.report.tests if test.judge not in BLIND_RULES), *tests]
    run.apply("blind", findings, all(test.passed for test in tests))


def _judge(run: GateRun, gate: str, makers: Mapping[str, Maker], findings: dict[str, list[Finding]]) -> list[BlindTest]:
    """Set aside what judges answer, each on what the ones before it left; return the tests of what is left at last."""
    margin = run.settings.margin
    known: dict[str, tuple[int, list[BlindTest]]] = {}
    for judge, make in makers.items():
        left = _left(run, findings)
        chances = make(left)
        known[judge] = len(left), list(compare_to_chance(judge, left, chances, margin))
        if run.settings.trim and not all(test.passed for test in known[judge][1]):
            finding = Finding(gate, "fail", f"answered without the picture by the judge {judge!r}")
            for name in trim(left, chances, margin, run.settings.most_trimmed):
                findings.setdefault(name, []).append(finding)
    left = _left(run, findings)
    again = {judge for judge, (seen, _) in known.items() if seen != len(left)}
    fresh = {judge: list(compare_to_chance(judge, left, makers[judge](left), margin)) for judge in again}
    return [test for judge in makers for test in fresh.get(judge, known[judge][1])]


def _left(run: GateRun, findings: Mapping[str, Sequence[Finding]]) -> list[Draft]:
    failed = {name for name, notes in findings.items() if any(finding.outcome == "fail" for finding in notes)}
    return [draft for draft in run.drafts if draft.id not in failed]
