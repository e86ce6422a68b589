"""Trials with tools, in arms, to what looking again was worth: effects, what was repaired and spoilt, aim and price.

Figures of a task are over its trials with true crops (`base`); the arms stand beside them, each paired with another one
question by question (docs/looking-again.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.looks import BASE, ELSEWHERE, GOLD, GREY, LOOK_ARMS, NOTHING, PLAIN, UNSCORED_ENDS, WHOLE, Look, arm_of
from ...core.tasks import Task
from ...core.text import plural
from ...core.types import Estimate, Sample
from ...scoring.aggregates.counted import arms_table, means_of_questions, rows_in
from ...scoring.aggregates.means import mean_by_question
from ...scoring.tables.table import ScoredTask, ScoreTable
from ...scoring.tables.table_builder import codes_in
from ...stats.average_precision import Boxes, overlaps
from ...stats.intervals import Floats, estimate_mean
from ...stats.paired import paired_difference
from ...store.reader import RunReader
from .second_look import (
    HALF,
    Part,
    Replies,
    chance_flips,
    held,
    price_of_one,
    reliance,
    split_worth,
    union_area,
)
from .trials import Box, Key, LookTrial, gold_boxes, look_trials, size_of, source_of

WORTH, PICTURE_EFFECT, MISLED, ZOOM_EFFECT = "worth", "picture_effect", "misled", "zoom_effect"
EFFECTS = {
    WORTH: (PLAIN, BASE),
    PICTURE_EFFECT: (GREY, BASE),
    MISLED: (ELSEWHERE, NOTHING),
    ZOOM_EFFECT: (WHOLE, BASE),
}
"""Effect -> the arm that is taken off, and the one that it is taken off from."""
CALLED, UNCALLED = "called", "not-called"
REPAIRED, REPAIRED_UNCALLED, SPOILT, SPOILT_UNCALLED = "repaired", "repaired-uncalled", "spoilt", "spoilt-uncalled"
KEPT_RIGHT, STAYED_WRONG = "right-anyway", "wrong-anyway"
LOOK_KINDS = (REPAIRED, REPAIRED_UNCALLED, SPOILT, SPOILT_UNCALLED, KEPT_RIGHT, STAYED_WRONG)
"""What became of a question, plainly asked and asked with tools."""
Masks = NDArray[np.bool_]
PART = "looks"
"""The name of this part in results.json and among the filters of trials."""


class _Cells(NamedTuple):
    """What each question did in one arm, NaN where nothing can be judged; and the replies one by one."""

    replies: Replies
    value: Floats
    question: NDArray[Any]

    @property
    def mean(self) -> Floats:
        return self.replies.value


class LookArms:
    """The arms of one table, with what each trial did with its tools."""

    def __init__(self, table: ScoreTable, trials: Mapping[Key, LookTrial]) -> None:
        self.table, self.trials = table, trials
        self.arm_of_variant = [arm_of(name) for name in table.variants]
        known = {arm for arm, _ in self.arm_of_variant}
        self.names = [arm for arm in LOOK_ARMS if arm in known]
        self.facts_by_row = [trials.get(self._key(row)) for row in range(len(table))]
        self._called = np.array([fact is not None and fact.called for fact in self.facts_by_row], bool)

    def _key(self, row: int) -> Key:
        table = self.table
        return table.samples[table.sample[row]], table.variants[table.variant[row]], int(table.repeat[row])

    def rows_of(self, arm: str, beside: str | None = None) -> Masks:
        """Return the trials of an arm; `beside`: only of variants that were asked in that arm too."""
        also = {own for name, own in self.arm_of_variant if beside is None or name == beside}
        own = zip(self.table.variants, self.arm_of_variant, strict=True)
        return rows_in(self.table, [variant for variant, (name, beside) in own if name == arm and beside in also])

    def cells(self, arm: str, beside: str | None = None) -> _Cells:
        """Return what each question did in an arm, over the variants that the other one has too."""
        rows = self.rows_of(arm, beside) & self.table.scored
        called = self._called[rows].astype(np.float64)
        return _cells(self.table.sample[rows], self.table.value[rows], called, len(self.table.samples))

    def cells_of(self, plain: ScoreTable) -> _Cells:
        """Return what each of these questions did in another run, which had no tools."""
        places = codes_in({name: place for place, name in enumerate(self.table.samples)}, plain.samples)
        own = places[plain.sample]
        rows = plain.scored & (own >= 0)
        return _cells(own[rows], plain.value[rows], np.zeros(int(rows.sum())), len(self.table.samples))

    def clusters(self, chosen: Masks) -> NDArray[Any]:
        """Return the clusters of chosen questions."""
        return self.table.cluster_of_sample[: chosen.size][chosen]

    def effect(self, name: str) -> Estimate | None:
        """Return a paired difference of two arms; None where one was not asked."""
        one, other = EFFECTS[name]
        if one not in self.names or other not in self.names:
            return None
        return self.difference(self.cells(one, other), self.cells(other, one))

    def difference(self, one: _Cells, other: _Cells) -> Estimate:
        """Return other - one, question by question; those that only one of them has are left out, and counted."""
        first, second = one.mean, other.mean
        both = np.isfinite(first) & np.isfinite(second)
        found = paired_difference(first[both], second[both], self.clusters(both), "looks")
        return msgspec.structs.replace(found, left_out=int((np.isfinite(first) ^ np.isfinite(second)).sum()))

    def reliance(self) -> Estimate | None:
        """Return which part of what the right region could add was got by looking; None without the arms."""
        if not {GREY, GOLD} <= set(self.names):
            return None
        arms = [self.cells(arm, GOLD).mean for arm in (BASE, GREY, GOLD)]
        all_three = np.logical_and.reduce([np.isfinite(mean) for mean in arms])
        base, grey, gold = (mean[all_three] for mean in arms)
        return reliance(base, grey, gold, self.clusters(all_three))

    def kinds(self) -> list[str]:
        """Return what became of each sample, in the order of the table's; empty where an arm has no reply to judge."""
        if PLAIN not in self.names:
            return [""] * len(self.table.samples)
        plain, base = self.cells(PLAIN, BASE).mean, self.cells(BASE, PLAIN).replies
        return [_kind(*one) for one in zip(plain.tolist(), base.value.tolist(), base.called.tolist(), strict=True)]

    def split(self, plain: _Cells, base: _Cells) -> tuple[dict[str, Part], Floats, Masks]:
        """Return repaired and spoilt, called or not; what calls repaired beyond chance in each question; and which."""
        both = np.isfinite(plain.mean) & np.isfinite(base.mean)
        flips = chance_flips(plain.value, plain.question, both.size)
        repeated = both & np.isfinite(flips)
        chosen = repeated if repeated.any() else both  # with repeats, questions that lost theirs are left out
        kept = Replies(*(values[chosen] for values in base.replies))
        own = flips[chosen] if repeated.any() else None
        found = split_worth(plain.mean[chosen], kept, own, self.clusters(chosen))
        named = {name: getattr(found, name.replace("-", "_")) for name in LOOK_KINDS[:4]}
        repaired = (1.0 - plain.mean[chosen]) * kept.right_called
        return named, repaired - (0.0 if own is None else own * kept.called), chosen

    def spent(self, arm: str, of: Callable[[LookTrial], float]) -> Floats:
        """Return what a trial of each question took in an arm; NaN where it is not known of all its trials."""
        size, rows = len(self.table.samples), np.flatnonzero(self.rows_of(arm, BASE if arm != BASE else None))
        facts = [self.facts_by_row[row] for row in rows.tolist()]
        took = np.array([math.nan if fact is None else of(fact) for fact in facts], np.float64)
        return means_of_questions(self.table.sample[rows], took, size)

    def facts(self, arm: str = BASE) -> list[tuple[int, LookTrial]]:
        """Return the trials of an arm that have a reply, each with its row."""
        rows = np.flatnonzero(self.rows_of(arm) & ~self.table.failed).tolist()
        return [(row, fact) for row in rows if (fact := self.facts_by_row[row]) is not None]

    def mean_of(self, of: Callable[[LookTrial], float], *, is_share: bool = False) -> Estimate:
        """Return the mean of something over the trials with tools, with its interval."""
        facts = [(row, of(fact)) for row, fact in self.facts() if fact.end is not None]
        known = [(row, value) for row, value in facts if not math.isnan(value)]
        values = np.array([value for _, value in known], np.float64)
        clusters = self.table.cluster[[row for row, _ in known]] if known else np.zeros(0, np.int32)
        found = estimate_mean(values, clusters, is_share=is_share)
        return msgspec.structs.replace(found, unit="trials", left_out=len(facts) - len(known))


def _cells(question: NDArray[Any], value: Floats, called: Floats, size: int) -> _Cells:
    means = [means_of_questions(question, values, size) for values in (value, value * called, called)]
    return _Cells(Replies(*means), value, question)


def _kind(plain: float, base: float, called: float) -> str:
    if math.isnan(plain) or math.isnan(base):
        return ""
    before, after = plain > 0.5, base > 0.5
    if before == after:
        return KEPT_RIGHT if after else STAYED_WRONG
    if after:
        return REPAIRED if called > 0.5 else REPAIRED_UNCALLED
    return SPOILT if called > 0.5 else SPOILT_UNCALLED


def classes_of(fact: LookTrial) -> set[str]:
    """Return what a trial with tools can be found by: whether it called one, how it ended, what its calls were."""
    if fact.end is None:
        return set()
    return {CALLED if fact.called else UNCALLED, fact.end.end, *fact.end.classes}


class LookFilter(NamedTuple):
    """Chooses trials with tools: by what became of their question, how they ended, classes of their calls."""

    trials: Mapping[Key, LookTrial]

    def values(self, table: ScoreTable) -> set[str]:
        """Return every class that some trial has, and every kind that some question is of."""
        return classes_in(table, self.trials)

    def rows(self, table: ScoreTable, value: str) -> Masks:
        """Return the trials of a class, or all trials of the questions of one kind."""
        return rows_of_class(table, self.trials, value)


def look_filters(reader: RunReader, task: Task) -> dict[str, LookFilter]:
    """Return the filter of a task; none of one that was asked without tools."""
    trials = look_trials(reader, task.name)
    return {PART: LookFilter(trials)} if trials else {}


def rows_of_class(table: ScoreTable, trials: Mapping[Key, LookTrial], name: str) -> Masks:
    """Return the trials of a class, or all trials of the questions of one kind."""
    arms = LookArms(table, trials)
    if name in LOOK_KINDS:
        return np.asarray(np.array([kind == name for kind in arms.kinds()], bool)[table.sample], np.bool_)
    return np.array([fact is not None and name in classes_of(fact) for fact in arms.facts_by_row], np.bool_)


def classes_in(table: ScoreTable, trials: Mapping[Key, LookTrial]) -> set[str]:
    """Return every class that some trial has, and every kind that some question is of."""
    arms = LookArms(table, trials)
    return set(filter(None, arms.kinds())).union(*map(classes_of, trials.values()))


SPENT: Mapping[str, Callable[[LookTrial], float]] = {
    "tokens": lambda one: float(one.tokens) if one.tokens else math.nan,
    "seconds": lambda one: one.seconds,
    "money": lambda one: one.money,
}


def prices(arms: LookArms) -> dict[str, dict[str, Estimate]]:
    """Return what one question that calls repaired (beyond chance, where repeats tell it) costs more, and what one
    more right answer does; by tokens, seconds and money, whichever is known of all trials."""
    if PLAIN not in arms.names:
        return {}
    plain, base = arms.cells(PLAIN, BASE), arms.cells(BASE, PLAIN)
    _, repaired, chosen = arms.split(plain, base)
    worth = (base.mean - plain.mean)[chosen]
    found: dict[str, dict[str, Estimate]] = {REPAIRED: {}, "gained": {}}
    for name, of in SPENT.items():
        extra = (arms.spent(BASE, of) - arms.spent(PLAIN, of))[chosen]
        known = np.isfinite(extra)
        if known.all() and known.size:
            found[REPAIRED][name] = price_of_one(extra, repaired, arms.clusters(chosen))
            found["gained"][name] = price_of_one(extra, worth, arms.clusters(chosen))
    return found


class _Scene(NamedTuple):
    """One trial's looks on the pictures of its question: where, and what the data names there."""

    looked: list[tuple[int, Look]]
    """Each look with the picture of the question it was about."""
    sizes: list[tuple[int, int] | None]
    golds: list[list[Box]]

    def regions(self, picture: int) -> Boxes:
        """Return what was looked at on a picture."""
        found = [look.region for place, look in self.looked if place == picture and look.region is not None]
        return np.array(found, np.float64).reshape(-1, 4)

    def crop(self, place: int, look: Look) -> tuple[float, float]:
        """Return which share of a gold box a crop holds, and their overlap, of the best box; NaN without any."""
        if place >= len(self.golds) or not self.golds[place]:
            return math.nan, math.nan
        crop, boxes = np.array([look.region], np.float64), np.array(self.golds[place], np.float64)
        return float(held(crop, boxes).max()), float(overlaps(crop, boxes).max())

    def share_seen(self) -> float:
        """Return the share of the pictures looked at that crops cover together; NaN where a size is not known."""
        pictures = sorted({place for place, _ in self.looked})
        sizes = [self.sizes[place] if place < len(self.sizes) else None for place in pictures]
        area = sum(math.nan if size is None else float(size[0] * size[1]) for size in sizes)
        return sum(union_area(self.regions(place)) for place in pictures) / area if area else math.nan

    def least_found(self) -> float:
        """Return how much of the gold box that was looked at least lies in all looks together; NaN without any."""
        shares = []
        for picture, golds in enumerate(self.golds):
            for left, top, right, bottom in golds:
                inside = np.clip(self.regions(picture), (left, top, left, top), (right, bottom, right, bottom))
                shares.append(union_area(inside) / ((right - left) * (bottom - top)))
        return min(shares, default=math.nan)


def _scene(sample: Sample, fact: LookTrial, options: Mapping[str, Any]) -> _Scene:
    done = [look for look in fact.looks if look.region is not None and not look.problem and look.shown]
    pictures = range(len(sample.images))
    sizes = [size_of(sample, picture, fact) for picture in pictures]
    golds = [gold_boxes(sample, picture, sizes[picture], options) for picture in pictures]
    return _Scene([(source_of(look, sample, fact.looks), look) for look in done], sizes, golds)


def aim(arms: LookArms, samples: Iterable[Sample], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return how well crops were aimed: which hold at least half of a gold box, their overlap, how much they enlarge.

    Also what was looked at altogether: the share of the picture, and in which trials that holds half of every box.
    """
    known = {sample.id: sample for sample in samples}
    found: dict[str, list[tuple[int, float]]] = {
        name: [] for name in ("enlargement", "holds_half", "overlap", "looked_at", "found")
    }
    for row, fact in arms.facts():
        sample = known.get(arms.table.samples[arms.table.sample[row]])
        scene = None if sample is None else _scene(sample, fact, options)
        if scene is None or not scene.looked:
            continue
        cluster = int(arms.table.cluster[row])
        for place, look in scene.looked:
            holds, overlap = scene.crop(place, look)
            found["enlargement"].append((cluster, look.enlargement))
            found["holds_half"].append((cluster, _at_least_half(holds)))
            found["overlap"].append((cluster, overlap))
        found["looked_at"].append((cluster, scene.share_seen()))
        found["found"].append((cluster, _at_least_half(scene.least_found())))
    shares = {name: _mean_of(pairs, share=name in SHARES) for name, pairs in found.items()}
    return {"crops": len(found["overlap"]), **shares}


SHARES = ("holds_half", "overlap", "found")
"""What has the bounds of a share; others have none that matter."""


def _at_least_half(share: float) -> float:
    return math.nan if math.isnan(share) else float(share >= HALF)


def _mean_of(pairs: Sequence[tuple[int, float]], *, share: bool = True) -> Estimate:
    known = [(cluster, value) for cluster, value in pairs if not math.isnan(value)]
    values = np.array([value for _, value in known], np.float64)
    return estimate_mean(values, np.array([cluster for cluster, _ in known], np.int32), is_share=share)


def used(arms: LookArms) -> dict[str, Any]:
    """Return how tools were used in the trials with true crops: calls, looks, turns, classes and ends."""
    ends = [fact.end for _, fact in arms.facts() if fact.end is not None]
    classes: Counter[str] = Counter()
    for end in ends:
        classes.update(end.classes)
    calls, looks = sum(end.calls for end in ends), sum(end.looks for end in ends)
    return {
        "trials": len(ends),
        "call_rate": arms.mean_of(lambda one: float(one.called), is_share=True),
        "looks": arms.mean_of(lambda one: float(one.end.looks) if one.end else math.nan),
        "turns": arms.mean_of(lambda one: float(one.end.turns) if one.end else math.nan),
        "calls": calls,
        "valid": looks / calls if calls else None,
        "classes": dict(classes.most_common()),
        "ends": dict(Counter(end.end for end in ends).most_common()),
        "foreign": sum(end.foreign for end in ends),
        **{name: arms.mean_of(of) for name, of in SPENT.items()},
    }


def describe(scored: ScoredTask, _keys: Sequence[str]) -> tuple[dict[str, Any], dict[str, Estimate]]:
    """Return what results.json says of a stored task's looks; nothing of one that was asked without tools."""
    trials = look_trials(scored.reader, scored.task.name, scored.prices) if scored.reader else {}
    return describe_looks(scored, trials), {}


def describe_looks(scored: ScoredTask, trials: Mapping[Key, LookTrial]) -> dict[str, Any]:
    """Return what is said of a task's looks: arms, effects, what was repaired and spoilt, use, aim and price."""
    table = arms_table(scored.task, scored.tables) if trials else None
    if table is None or not trials:
        return {}
    arms = LookArms(table, trials)
    split = arms.split(arms.cells(PLAIN, BASE), arms.cells(BASE, PLAIN)) if PLAIN in arms.names else None
    found: dict[str, Any] = {
        "metric": table.metric,
        "arms": {name: {"score": mean_by_question(table.take(arms.rows_of(name)))} for name in arms.names},
        "effects": {name: one for name in EFFECTS if (one := arms.effect(name)) is not None},
        "split": split[0] if split else None,
        "questions": {kind: count for kind, count in Counter(arms.kinds()).items() if kind},
        "reliance": arms.reliance(),
        "used": used(arms),
        "aim": aim(arms, scored.samples(), scored.task.score_options),
        "price": prices(arms),
        "currency": scored.prices.currency if scored.prices else "",
    }
    found["notes"] = [*look_notes(found), *([DROPPED_NOTE] if crops_weigh_nothing(arms) else [])]
    described: dict[str, Any] = msgspec.to_builtins(found)
    return described


DROPPED_NOTE = (
    "a crop takes fewer input tokens than the words that say that there is none: the server may drop the pictures of "
    "results; `snellen serve-check URL` tells whether the model reads them"
)


def crops_weigh_nothing(arms: LookArms) -> bool:
    """Tell whether prompts with true crops are all shorter than those of the arm that says that there are none.

    Over trials of one look. A crop that reaches the model takes more tokens than these few words.
    """
    given: dict[tuple[int, str, int], dict[str, int]] = {}
    for arm in (BASE, NOTHING):
        for row, fact in arms.facts(arm):
            end = fact.end
            if end is not None and end.turns == 2 and end.tokens[0] and any(look.shown for look in fact.looks):
                own = arms.arm_of_variant[arms.table.variant[row]][1]
                given.setdefault((int(arms.table.sample[row]), own, int(arms.table.repeat[row])), {})[arm] = end.tokens[
                    0
                ]
    pairs = [one for one in given.values() if len(one) == 2]
    return bool(pairs) and all(one[BASE] < one[NOTHING] for one in pairs)


def look_notes(found: Mapping[str, Any]) -> Iterable[str]:
    """Say in words what must not be overlooked."""
    arms, use = found["arms"], found["used"]
    if PLAIN not in arms:
        yield "what looking was worth is not known without the same questions plainly asked: --tool-arms base,plain"
    elif found["split"] and found["split"][REPAIRED].chance is None:
        fix = "--num-infers 2 or more takes them off"
        yield f"repaired and spoilt contain what flips by chance from one reply to the next ({fix})"
    own = found["reliance"]
    if own is not None and own.value is None:
        yield "the right region adds nothing that is clearly above a grey one: reliance cannot be told"
    lost = {end: use["ends"][end] for end in UNSCORED_ENDS if use["ends"].get(end)}
    if lost:
        said = ", ".join(f"{count:,} {end}" for end, count in lost.items())
        yield f"{plural(sum(lost.values()), 'trial')} with tools have no answer to score: {said}"
    if use["calls"] and use["valid"] is not None and use["valid"] < 1.0:
        said = ", ".join(f"{count:,} {name}" for name, count in use["classes"].items())
        yield f"{(1.0 - use['valid']) * 100:.1f} % of {use['calls']:,} calls were not done: {said}"
    if not use["calls"]:
        yield "no trial called a tool: all arms with tools are the same replies"
    if use["foreign"]:
        yield f"the server looked by itself {use['foreign']:,} times: these are no looks of ours, and have no arms"
