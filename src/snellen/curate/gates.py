"""Drafts to items that passed: every gate in turn, each with its count; what fails is set aside with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from .gates_item import ITEM_GATES, ItemGate, check_words
from .gates_set import (
    BLIND_RULES,
    LEARNED,
    SURFACE_RULES,
    BlindTest,
    Credits,
    compare_to_chance,
    find_duplicates,
    learned_credits,
    reply_credits,
    rule_credits,
    trim,
)
from .records import Draft, Finding, Gated, SetAside
from .surface import level_draft

STAGE = "gates"

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


class GateCount(Struct):
    """What one gate did."""

    gate: str
    seen: int = 0
    failed: int = 0
    repaired: int = 0
    warned: int = 0
    passed: bool = True
    """For gates that judge the set as a whole: whether it passes."""


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
