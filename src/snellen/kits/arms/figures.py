"""Trials in arms to what the picture is worth: what each arm keeps of the score, question by question, and in groups.

Figures of a task are over the questions as they are (`counted`); the arms stand beside them, each paired with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.tasks import Task
from ...core.text import plural
from ...core.types import OFFERED, Estimate, Form, Sample
from ...core.variants import NEEDS_PICTURE, PICTURE, Arm, find_arms, first_arm
from ...extract.extraction import UNSEEN
from ...scoring.aggregates.counted import arms_table, means_of_questions, rows_in
from ...scoring.aggregates.means import mean_by_question
from ...scoring.tables.table import ScoredTask, ScoreTable
from ...stats.intervals import Floats
from ...stats.paired import discoveries, fewer_by_chance, guessed_by_chance, kept_share, paired_difference
from ...store.reader import RunReader

NEEDS, KEEPS, HARMED, NEITHER, UNKNOWN = "needs", "keeps", "harmed", "neither", ""
CLASSES = (NEEDS, KEEPS, HARMED, NEITHER)
"""A question that is right with the picture alone, with and without it, without it alone, and never."""
NEEDED, ANSWERED = "needs the picture", "answered without it"
"""Verdicts on a question that hold at a rate of false discoveries of 5 %; they need several replies an arm."""
FEWEST_REPLIES = 3
"""Replies an arm below which no question can get a verdict."""
OPEN_GUESS = 0.1
"""What a guess at an open question is supposed to earn at most, where a verdict asks whether it was one."""
FEWEST_IN_GROUP = 20
"""Questions below which a group has no share."""
Masks = NDArray[np.bool_]


class Question(NamedTuple):
    """What one question did with and without its picture."""

    sample: str
    kind: str
    """One of CLASSES, or nothing where an arm has no reply that can be judged."""
    with_it: tuple[int, int]
    """Right replies, and replies, with the picture."""
    without: tuple[int, int]
    """The same in the arm that stands for the run."""
    verdict: str = ""


def chances(samples: Iterable[Sample]) -> dict[str, float]:
    """Return what guessing earns, question by question."""
    return {sample.id: chance_of(sample) for sample in samples}


def chance_of(sample: Sample) -> float:
    """Return what a guess earns: one in the number of options, a half of yes and no, nothing where it is open."""
    if sample.form is Form.YESNO:
        return 0.5
    return 1.0 / len(sample.options) if sample.form in OFFERED and len(sample.options) > 1 else 0.0


class Arms:
    """The arms of one table: means of questions by arm, with what is made of them."""

    def __init__(self, table: ScoreTable, chance: Mapping[str, float], arms: Sequence[Arm] | None = None) -> None:
        self.table = table
        self.arms = list(find_arms(table.variants) if arms is None else arms)
        self.names = list(dict.fromkeys(arm.name for arm in self.arms))
        self.first = first_arm(self.arms) if self.arms else ""
        self.chance = np.array([chance.get(name, 0.0) for name in table.samples] or [0.0])
        self._by_arm = {name: self._means(name) for name in self.names}
        self._answered = {name: self._shares_read(name) for name in self.names}

    def rows_of(self, name: str) -> Masks:
        """Return the trials of an arm."""
        if name == PICTURE:
            return rows_in(self.table, (arm.beside for arm in self.arms))
        return rows_in(self.table, (arm.variant for arm in self.arms if arm.name == name))

    def _means(self, name: str) -> tuple[Floats, Floats]:
        """Return every question's mean with the picture and in an arm; NaN where nothing can be judged."""
        beside = rows_in(self.table, (arm.beside for arm in self.arms if arm.name == name))
        return self._of_questions(beside), self._of_questions(self.rows_of(name))

    def _shares_read(self, name: str) -> tuple[Floats, Floats]:
        """Return which share of a question's replies were read, with the picture and in an arm: only those guess."""
        beside = rows_in(self.table, (arm.beside for arm in self.arms if arm.name == name))
        table, size = self.table, len(self.table.samples)
        shares = []
        for rows in (beside & table.scored, self.rows_of(name) & table.scored):
            count = np.bincount(table.sample[rows], minlength=size)
            read = np.bincount(table.sample[rows & table.read], minlength=size)
            shares.append(read / np.maximum(count, 1))
        return shares[0], shares[1]

    def _of_questions(self, rows: Masks) -> Floats:
        table, rows = self.table, rows & self.table.scored
        return means_of_questions(table.sample[rows], table.value[rows], len(table.samples))

    def describe(self, name: str, chosen: Masks | None = None) -> dict[str, Any]:
        """Return the score with the picture and in an arm, the paired difference, and what is kept.

        `chosen`: over these questions alone.
        """
        with_it, without = self._by_arm[name]
        both = np.isfinite(with_it) & np.isfinite(without)
        if chosen is not None:
            both = both & chosen
        first, second, chance = with_it[both], without[both], self.chance[both]
        clusters = self.table.cluster_of_sample[: with_it.size][both]
        found: dict[str, Any] = {"questions": int(both.sum())}
        found["with"] = float(first.mean()) if first.size else None
        found["without"] = float(second.mean()) if second.size else None
        found["gain"] = paired_difference(second, first, clusters, "arms")
        found["kept"] = kept_share(first, second, 0.0, clusters)
        guessed = [chance * shares[both] for shares in self._answered[name]]
        found["kept_above_chance"] = (
            kept_share(first, second, guessed[0], clusters, chance_without=guessed[1])
            if chance.any()
            else found["kept"]
        )
        found["chance"] = float(chance.mean()) if chance.size else None
        return found

    def needs_picture(self) -> Estimate:
        """Return the share of the score above guessing that needs the picture: what the first arm does not keep."""
        return _rest(self.describe(self.first)["kept_above_chance"])

    def by_group(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what the first arm keeps, by each value of each tag."""
        grouped: dict[str, dict[str, Any]] = {}
        for key in keys:
            if key not in self.table.tags:
                continue
            codes, values = self.table.tags[key]
            parts = {value: self.describe(self.first, codes == place) for place, value in enumerate(values)}
            grouped[key] = {value: _enough(part) for value, part in parts.items() if part["questions"]}
        return grouped

    def questions(self) -> list[Question]:
        """Return every question with its class, and a verdict where there are replies enough."""
        right, asked = self._replies(PICTURE)
        right_without, asked_without = self._replies(self.first)
        counts = [
            ((int(a), int(b)), (int(c), int(d)))
            for a, b, c, d in zip(right, asked, right_without, asked_without, strict=True)
        ]
        verdicts = _verdicts(counts, self.chance)
        return [
            Question(sample, kind, *pair, verdict)
            for sample, kind, pair, verdict in zip(self.table.samples, self.kinds(), counts, verdicts, strict=True)
        ]

    def kinds(self) -> list[str]:
        """Return the class of every sample, in the order of the table's."""
        pairs = zip(*(means.tolist() for means in self._by_arm[self.first]), strict=True)
        return [_kind(with_it, without) for with_it, without in pairs]

    def _replies(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        table, rows = self.table, self.rows_of(name) & self.table.scored
        size = len(table.samples)
        right = np.bincount(table.sample[rows], weights=(table.value[rows] > 0.5).astype(float), minlength=size)
        return right.astype(np.int64), np.bincount(table.sample[rows], minlength=size).astype(np.int64)

    def unseen(self, name: str) -> int:
        """Return how many replies of an arm say that they see no picture, and do not answer."""
        table = self.table
        codes = {place for place, reason in enumerate(table.reasons) if reason == UNSEEN}
        return int(np.isin(table.reason[self.rows_of(name)], list(codes)).sum()) if codes else 0


def _rest(kept: Estimate) -> Estimate:
    """Return 1 - a share."""
    if kept.value is None:
        return kept
    interval = None if kept.ci95 is None else (1.0 - kept.ci95[1], 1.0 - kept.ci95[0])
    return msgspec.structs.replace(kept, value=1.0 - kept.value, ci95=interval)


def _enough(part: dict[str, Any]) -> dict[str, Any]:
    """Return a group's figures, without shares where it has too few questions to tell one."""
    if part["questions"] >= FEWEST_IN_GROUP:
        return part
    nothing = Estimate(None, n=part["questions"], unit="questions")
    return part | {"kept": nothing, "kept_above_chance": nothing}


def _kind(with_it: float, without: float) -> str:
    if np.isnan(with_it) or np.isnan(without):
        return UNKNOWN
    seen, blind = with_it > 0.5, without > 0.5
    return (KEEPS if blind else NEEDS) if seen else (HARMED if blind else NEITHER)


def _verdicts(counts: Sequence[tuple[tuple[int, int], tuple[int, int]]], chance: Floats) -> list[str]:
    """Return the verdict on every question: at most 5 % of each kind are false on average (Benjamini & Hochberg)."""
    said = [""] * len(counts)
    tested = [place for place, (one, other) in enumerate(counts) if min(one[1], other[1]) >= FEWEST_REPLIES]
    answered = [guessed_by_chance(*counts[place][1], max(OPEN_GUESS, float(chance[place]))) for place in tested]
    needed = [fewer_by_chance(*counts[place][0], *counts[place][1]) for place in tested]
    for words, p_values in ((ANSWERED, answered), (NEEDED, needed)):
        for place, found in zip(tested, discoveries(p_values), strict=True):
            if found:
                said[place] = words
    return said


def left_out(questions: Sequence[Question], *, judged: bool) -> list[str]:
    """Return the questions that a subset of those that need the picture leaves out.

    With verdicts: those answered without it beyond guessing. Else all whose replies without it are mostly right.
    """
    if judged:
        return [one.sample for one in questions if one.verdict == ANSWERED]
    return [one.sample for one in questions if one.kind in (KEEPS, HARMED)]


def is_judged(questions: Sequence[Question]) -> bool:
    """Tell whether there are replies enough for verdicts on single questions."""
    return any(min(one.with_it[1], one.without[1]) >= FEWEST_REPLIES for one in questions)


def describe_arms(scored: ScoredTask, keys: Sequence[str]) -> tuple[dict[str, Any], dict[str, Estimate]]:
    """Return what results.json says of a task's arms, and the figures that stand among its metrics; else nothing."""
    table = arms_table(scored.task, scored.tables) if find_arms(scored.task.variants) else None
    if table is None or not find_arms(table.variants):
        return {}, {}
    arms = Arms(table, chances(scored.samples()))
    questions = arms.questions()
    kinds = {kind: sum(1 for one in questions if one.kind == kind) for kind in CLASSES}
    judged = is_judged(questions)
    found: dict[str, Any] = {
        "metric": table.metric,
        "first": arms.first,
        "picture": {"score": mean_by_question(table.take(arms.rows_of(PICTURE))), "unseen": arms.unseen(PICTURE)},
        "arms": {
            name: {
                **arms.describe(name),
                "score": mean_by_question(table.take(arms.rows_of(name))),
                "unseen": arms.unseen(name),
            }
            for name in arms.names
        },
        "groups": arms.by_group(keys),
        "questions": kinds,
        "by_luck": float(sum(arms.chance[: len(questions)])),
        "verdicts": {words: sum(1 for one in questions if one.verdict == words) for words in (NEEDED, ANSWERED)}
        if judged
        else None,
        "left_out": len(left_out(questions, judged=judged)),
    }
    found["notes"] = _notes(found, arms)
    return msgspec.to_builtins(found), {NEEDS_PICTURE: arms.needs_picture()}


def _notes(found: Mapping[str, Any], arms: Arms) -> list[str]:
    """Say in words what must not be overlooked."""
    notes = []
    first = found["arms"][arms.first]
    if first["kept_above_chance"].value is None:
        notes.append("the score with the picture is not clearly above guessing: which share needs it cannot be told")
    if found["verdicts"] is None:
        fix = f"--num-infers {FEWEST_REPLIES + 2} --temperature 0.7 gives verdicts"
        notes.append(f"one or two replies an arm: questions have a class, and no verdict ({fix})")
    blind = found["questions"][KEEPS] + found["questions"][HARMED]
    if found["by_luck"] >= 1.0:
        luck, asked = f"guessing alone gets about {found['by_luck']:.0f}", sum(found["questions"].values())
        notes.append(f"{blind} of {plural(asked, 'question')} are answered without the picture; {luck}")
    seen = found["picture"]["unseen"]
    if seen:
        notes.append(f"{seen} replies WITH the picture say that they see none: look whether it arrives")
    return notes


PICTURE_KEY = "picture"
"""What questions of a run with arms can be filtered by: whether they need the picture."""


class PictureFilter:
    """Chooses trials by whether their question needs the picture, keeps its answer without it …; none without arms."""

    def values(self, table: ScoreTable) -> set[str]:
        """Return every class of questions."""
        return set(CLASSES) if find_arms(table.variants) else set()

    def rows(self, table: ScoreTable, value: str) -> Masks:
        """Return the trials of questions of one class."""
        if not find_arms(table.variants):
            return np.zeros(len(table), np.bool_)
        kinds = np.array([found == value for found in Arms(table, {}).kinds()], np.bool_)
        return np.asarray(kinds[table.sample], np.bool_)


def picture_filters(_reader: RunReader, _task: Task) -> dict[str, PictureFilter]:
    """Return the filter of a task with arms."""
    return {PICTURE_KEY: PictureFilter()}
