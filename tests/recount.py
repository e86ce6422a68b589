"""Random small runs, and every number of their results counted again in plain Python: no code of the scorer's.

A run is drawn from a seed: questions, dialogues or chains, with variants and repeats, failures, refusals, replies that
cannot be read, an early stop, trials a failure kept from being asked (stored as failed, or not at all as in 0.1). What
is stored goes through the real writer and scorer; `recount` knows only the list of trials that was drawn.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from snellen.core.builtins import default_registry
from snellen.core.tasks import PlannedCounts, RunHeader, Task
from snellen.core.types import Failure, FailureKind, Form, Prediction, Request, Sample, TrialKey
from snellen.report.pages.finish import finish_run
from snellen.report.trial_files import csv_lines
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter

OPTIONS = ("a red one", "a green thing.", "blue", "no colour at all")
MARKS = ("A", "B", "C", "D")
REPLIES = {"refused": "I'm sorry, but I can't help with that.", "unread": "Either A or B.", "empty": ""}
LOST = ("timeout", "refused-by-server", "truncated", "skipped")
KINDS = {
    "timeout": FailureKind.TIMEOUT,
    "refused-by-server": FailureKind.REFUSED,
    "truncated": FailureKind.TRUNCATED,
    "skipped": FailureKind.SKIPPED,
}
COUNTS = ("n", "unscored", "failed", "not_yet_asked", "left_out")
Want = dict[str, Any]


@dataclass
class Trial:
    """One planned trial and what became of it: an option's number, a kind of reply or failure, or None: not stored."""

    sample: str
    variant: str
    repeat: int
    said: int | str | None
    right: int
    tags: dict[str, Any]
    group: str | None

    @property
    def stored(self) -> bool:
        return self.said is not None

    @property
    def failed(self) -> bool:
        return self.said in LOST

    @property
    def read(self) -> bool:
        return isinstance(self.said, int)

    @property
    def unread(self) -> bool:
        return self.said in REPLIES

    @property
    def replied(self) -> bool:
        return self.read or self.unread

    @property
    def value(self) -> int:
        return int(self.said == self.right)

    @property
    def answer(self) -> str | None:
        return OPTIONS[self.said] if isinstance(self.said, int) else None


@dataclass
class Drawn:
    """A whole run as it was drawn."""

    seed: int
    shape: str
    task: Task
    samples: list[Sample]
    trials: list[Trial]
    old: bool
    """Written as 0.1 did: the header does not say what is planned group by group."""
    chains: int = 0
    stored: list[Trial] = field(default_factory=list)


def draw_run(seed: int) -> Drawn:
    """Draw one run."""
    rng = random.Random(seed)
    shape = rng.choice(("questions", "questions", "dialogues", "chains", "told chains"))
    variants = ("base", "order=1", "order=2")[: rng.choice((1, 1, 2, 3))]
    repeats = rng.choice((1, 1, 2, 3, 4))
    samples = list(_draw_samples(rng, shape))
    aggregates = ("cure",) if "chains" in shape else ()
    names = {"dialogues": "every", "told chains": "chain"}
    task = Task("t", {}, Form.CHOICE, infer=names.get(shape, "generate"), repeats=repeats, variants=variants)
    task = Task(**{name: getattr(task, name) for name in task.__struct_fields__ if name not in ("scorers", "aggregates")},
                scorers=("choice",), aggregates=aggregates)  # fmt: skip
    run = Drawn(seed, shape, task, samples, [], rng.random() < 0.2)
    run.chains = len({sample.group or sample.id for sample in samples})
    skill, loss = rng.random(), rng.choice((0.0, 0.05, 0.3, 1.0 if rng.random() < 0.1 else 0.2))
    unread = rng.choice((0.0, 0.1, 0.4))
    for sample in samples:
        for variant in variants:
            for repeat in range(repeats):
                right = OPTIONS.index(sample.answers[0])
                said = _draw_reply(rng, right, skill, loss, unread)
                run.trials.append(Trial(sample.id, variant, repeat, said, right, dict(sample.tags), sample.group))
    if shape in ("dialogues", "told chains"):
        _break_off(run, rng)
    _stop_early(run, rng)
    run.stored = [trial for trial in run.trials if trial.stored]
    return run


def _draw_reply(rng: random.Random, right: int, skill: float, loss: float, unread: float) -> int | str:
    if rng.random() < loss:
        return rng.choice(LOST[:3])
    if rng.random() < unread:
        return rng.choice(list(REPLIES))
    return right if rng.random() < skill else rng.choice([place for place in range(4) if place != right])


def _draw_samples(rng: random.Random, shape: str) -> Iterator[Sample]:
    for number in range(rng.randint(1, 7)):
        topic = {"topic": rng.choice("xyz")} if rng.random() < 0.9 else {}
        if shape == "questions":
            group = rng.choice((None, None, f"g{number // 2}"))
            yield _sample(rng, f"q{number}", group, topic)
        elif shape == "dialogues":
            for turn in range(1, rng.randint(1, 4) + 1):
                yield _sample(rng, f"d{number}_{turn}", f"d{number}", {**topic, "round": turn})
        else:
            steps = rng.randint(1, 3)
            for step in (*range(1, steps + 1), 0):
                role = "step" if step else "inference"
                tags = {**topic, "role": role, "step": step, "steps": steps}
                yield _sample(rng, f"c{number}.{step or 'h'}", f"c{number}", tags)


def _sample(rng: random.Random, name: str, group: str | None, tags: dict[str, Any]) -> Sample:
    return Sample(name, "t", Form.CHOICE, f"What is {name}?", options=OPTIONS, answers=(rng.choice(OPTIONS),),
                  group=group, tags=tags)  # fmt: skip


def _lanes(run: Drawn) -> dict[tuple[Any, ...], list[Trial]]:
    """Return the trials of every dialogue or chain in one variant and repeat, in the order they are asked."""
    lanes: dict[tuple[Any, ...], list[Trial]] = {}
    for trial in run.trials:
        lanes.setdefault((trial.group or trial.sample, trial.variant, trial.repeat), []).append(trial)
    return lanes


def _break_off(run: Drawn, rng: random.Random) -> None:
    """What follows a failure was not asked: stored as failed, or not at all as in 0.1."""
    for lane in _lanes(run).values():
        first = next((place for place, trial in enumerate(lane) if trial.failed), len(lane))
        for trial in lane[first + 1 :]:
            trial.said = None if run.old else "skipped"


def _stop_early(run: Drawn, rng: random.Random) -> None:
    """Leave some lanes unasked, or a lane cut off in its middle."""
    if rng.random() < 0.5:
        return
    for lane in _lanes(run).values():
        if rng.random() < 0.4:
            for trial in lane[rng.randint(0, len(lane)) if rng.random() < 0.3 else 0 :]:
                trial.said = None


def write_run(run: Drawn, folder: Path) -> dict[str, Any]:
    """Store the run through the real writer, score it, and return results.json as it was written."""
    counts = {}
    if not run.old:
        tags: dict[str, dict[str, int]] = {}
        keys = {key for sample in run.samples for key in sample.tags}
        for key in keys:
            tags[key] = dict(Counter(str(sample.tags.get(key, "(none)")) for sample in run.samples))
        counts = {"t": PlannedCounts(len(run.samples), run.chains, tags)}
    header = RunHeader(f"id{run.seed}", {"seed": run.seed}, {}, "2026-01-02T03:04:05+00:00", model="drawn/m",
                       tasks=[run.task], planned={"t": len(run.trials)}, counted=counts)  # fmt: skip
    asyncio.run(_store(run, folder, header))
    finish_run(folder, default_registry(), report=False)
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results


async def _store(run: Drawn, folder: Path, header: RunHeader) -> None:
    writer = RunWriter(folder, header)
    try:
        places = {sample.id: (place, sample) for place, sample in enumerate(run.samples)}
        order = list(run.stored)
        random.Random(run.seed).shuffle(order)
        await asyncio.gather(*(writer.put(*places[trial.sample], *_exchange(trial), "0" * 16) for trial in order))
    finally:
        writer.close()


def _exchange(trial: Trial) -> tuple[Request, Prediction]:
    key = TrialKey("t", trial.sample, trial.variant, trial.repeat)
    request = Request(key, (), marks=MARKS, shown=OPTIONS)
    if trial.failed:
        return request, Prediction(key, failure=Failure(KINDS[str(trial.said)], "lost"))
    text = MARKS[trial.said] if isinstance(trial.said, int) else REPLIES[str(trial.said)]
    return request, Prediction(key, text=text)


# What follows is the recount: lists, dictionaries and fractions, nothing of the scorer's.


def mean(values: Iterable[float | Fraction]) -> float | None:
    """Return the exact mean, None of nothing."""
    exact = [Fraction(value) for value in values]
    return float(sum(exact) / len(exact)) if exact else None


def by(trials: Iterable[Trial], key: Callable[[Trial], Any]) -> dict[Any, list[Trial]]:
    """Return the trials by what a key says of them."""
    found: dict[Any, list[Trial]] = {}
    for trial in trials:
        found.setdefault(key(trial), []).append(trial)
    return found


def counts(trials: Sequence[Trial]) -> Want:
    """Return how many trials have a reply, which all can be judged, failed, and are planned and not stored."""
    return {
        "n": sum(trial.replied for trial in trials),
        "unscored": 0,
        "failed": sum(trial.failed for trial in trials),
        "not_yet_asked": sum(not trial.stored for trial in trials),
        "left_out": 0,
        "unit": "trials",
    }


def mean_of_means(trials: Iterable[Trial], value: Callable[[Trial], int]) -> float | None:
    """Return the mean over questions of the mean over their trials."""
    return mean(Fraction(sum(map(value, found)), len(found)) for found in by(trials, lambda t: t.sample).values())


Figure = Callable[[Iterable[Trial], Callable[[Trial], int]], float | None]
"""Makes a number of trials and of what each is worth."""


def value_of(trial: Trial) -> int:
    """Return what a reply is worth: right or not; one that could not be read is not."""
    return trial.value


def over_replies(trials: Sequence[Trial], figure: Figure) -> Want:
    """Return a figure of all replies, the same of those that were read, and its bounds."""
    stored = [trial for trial in trials if trial.stored]
    read = [trial for trial in stored if trial.read]
    worst, best = figure(stored, value_of), figure(stored, lambda t: t.value if t.read else 1)
    return {
        "value": figure([trial for trial in stored if trial.replied], value_of),
        **counts(trials),
        "read": {"value": figure(read, value_of), "n": len(read)},
        "bounds": None if worst is None else [worst, best],
    }


def only_read(trials: Sequence[Trial], figure: Figure) -> Want:
    """Return a figure of the replies that were read; the others are unscored by it."""
    read = [trial for trial in trials if trial.read]
    unread = sum(trial.unread for trial in trials)
    return {**counts(trials), "value": figure(read, value_of), "n": len(read), "unscored": unread}


def mean_of_trials(trials: Iterable[Trial], value: Callable[[Trial], int]) -> float | None:
    """Return the mean over trials."""
    return mean(map(value, trials))


def pair(trials: Sequence[Trial]) -> Want:
    """Return accuracy and its twins of some trials."""
    stored = [trial for trial in trials if trial.stored]
    strict = {**counts(trials), "n": len(stored), "unscored": 0, "failed": 0}
    return {
        "accuracy": over_replies(trials, mean_of_means),
        "accuracy_read": only_read(trials, mean_of_means),
        "accuracy_strict": {"value": mean_of_means(stored, value_of), **strict},
    }


def recount(run: Drawn) -> Want:
    """Return every metric of the run that results.json must hold, each with its value and counts."""
    trials, stored = run.trials, run.stored
    want = pair(trials)
    repeated = max(Counter((trial.sample, trial.variant) for trial in stored).values(), default=0) > 1
    varied = len({trial.variant for trial in stored}) > 1
    if repeated or varied:
        want["accuracy_micro"] = over_replies(trials, mean_of_trials)
        for part in ("question", "variant", "sampling"):
            want[f"accuracy_variance_{part}"] = counts(trials)
    for name, chosen in _rates(stored).items():
        everything = {**counts(trials), "n": len(stored), "unscored": 0, "failed": 0}
        want[name] = {"value": mean(int(trial in chosen) for trial in stored), **everything}
    for key in group_keys(run):
        if key != "variant":
            label = lambda t, key=key: str(t.tags.get(key, "(none)"))  # noqa: E731
            want[f"accuracy_macro_{key}"] = over_replies(trials, mean_of_groups(stored, label))
    if repeated:
        want |= _repeats(run)
    if repeated or varied:
        want |= _instability(run) | (_range(run) if varied else {})
    if run.shape == "dialogues" and stored:
        want |= _rounds(run)
    if "chains" in run.shape:
        want |= _chains(run)
    return want


def mean_of_groups(stored: Sequence[Trial], label: Callable[[Trial], str]) -> Figure:
    """Return the mean of the means of all stored groups; of some of them it is none."""
    all_groups = len(by(stored, label))

    def figure(trials: Iterable[Trial], value: Callable[[Trial], int]) -> float | None:
        means = [mean_of_means(found, value) for found in by(trials, label).values()]
        return mean(Fraction(one) for one in means if one is not None) if len(means) == all_groups else None

    return figure


def _rates(stored: Sequence[Trial]) -> dict[str, list[Trial]]:
    return {
        "unparsed_rate": [trial for trial in stored if trial.unread],
        "refused_rate": [trial for trial in stored if trial.said in ("refused", "refused-by-server")],
        "truncated_rate": [trial for trial in stored if trial.said == "truncated"],
        "failed_rate": [trial for trial in stored if trial.failed],
    }


def group_keys(run: Drawn) -> list[str]:
    """Return what results are grouped by: tags of at least two values among the stored samples, and variants."""
    seen = {trial.sample: trial.tags for trial in run.stored}
    keys = sorted({key for tags in seen.values() for key in tags})
    found = [key for key in keys if 2 <= len({str(tags.get(key, "(none)")) for tags in seen.values()}) <= 40]
    return [*found, *(["variant"] if len({trial.variant for trial in run.stored}) > 1 else [])]


def groups_of(run: Drawn) -> dict[str, dict[str, Want]]:
    """Return the groups of results.json: every planned value of a tag, or the stored ones where 0.1 did not say."""
    found: dict[str, dict[str, Want]] = {}
    complete = len(run.stored) == len(run.trials)
    for key in group_keys(run):
        value_of = (lambda t: t.variant) if key == "variant" else (lambda t, key=key: str(t.tags.get(key, "(none)")))
        found[key] = {value: pair(trials) for value, trials in by(run.trials, value_of).items()}
        if run.old and key != "variant":
            seen = {value_of(trial) for trial in run.stored}
            found[key] = {value: part for value, part in found[key].items() if value in seen}
            for part in found[key].values():
                for estimate in part.values():
                    estimate["not_yet_asked"] = 0 if complete else None
    return found


def _cells(trials: Iterable[Trial], key: Callable[[Trial], Any]) -> list[list[Trial]]:
    return list(by(trials, key).values())


def _over_cells(run: Drawn, key: Callable[[Trial], Any], unit: str, value: Callable[[list[Trial]], Any]) -> Want:
    """Return a figure of cells: the mean over questions of the mean over their cells that have a value."""
    cells = _cells(run.stored, key)
    values = [(cell[0].sample, value(sorted(cell, key=lambda t: (t.variant, t.repeat))), cell) for cell in cells]
    known: dict[str, list[Any]] = {}
    for sample, one, _ in values:
        if one is not None:
            known.setdefault(sample, []).append(one)
    lost = sum(one is None and all(trial.failed for trial in cell) for _, one, cell in values)
    counted = sum(map(len, known.values()))
    planned = len(_cells(run.trials, key))
    means = [fmean(found) for found in known.values()]
    return {
        "value": fmean(means) if means else None,
        "n": counted,
        "unscored": len(cells) - counted - lost,
        "failed": lost,
        "not_yet_asked": planned - len(cells),
        "left_out": 0,
        "unit": unit,
    }


def prompt(trial: Trial) -> tuple[str, str]:
    """Return the prompt of a trial: its question in its variant."""
    return trial.sample, trial.variant


def entropy(answers: Sequence[Any]) -> float | None:
    """Return the entropy of answers in nats."""
    shares = [count / len(answers) for count in Counter(answers).values()]
    return -sum(share * math.log(share) for share in shares) if answers else None


def disagreement(answers: Sequence[Any]) -> float | None:
    """Return how often two different trials give different answers."""
    pairs = list(combinations(answers, 2))
    return fmean(float(first != second) for first, second in pairs) if pairs else None


def vote(cell: Sequence[Trial]) -> float | None:
    """Return the value of the most frequent answer; a tie goes to the one given first, and no vote is not right."""
    voters = [trial for trial in cell if trial.read]
    if not voters:
        return 0.0 if any(trial.replied for trial in cell) else None
    tally = Counter(trial.answer for trial in voters)
    winner = max(voters, key=lambda t: tally[t.answer])
    return float(winner.value)


def votes_of(cell: Sequence[Trial], k: int) -> float | None:
    """Return the mean over all draws of k votes of the winner's value, ties shared."""
    outcomes = []
    for drawn in combinations([trial for trial in cell if trial.replied], k):
        tally = Counter(trial.answer for trial in drawn if trial.read)
        top = [answer for answer, count in tally.items() if count == max(tally.values())]
        worth = {trial.answer: trial.value for trial in drawn}
        outcomes.append(fmean(worth[answer] for answer in top) if top else 0.0)
    return fmean(outcomes) if outcomes else None


def passing(values: Sequence[int], k: int, enough: Callable[[Iterable[int]], bool]) -> float | None:
    """Return how many draws of k trials have one right, or all."""
    drawn = [enough(some) for some in combinations(values, k)]
    return fmean(map(float, drawn)) if drawn else None


def _passes(run: Drawn, k: int, largest: int, enough: Callable[[Iterable[int]], bool]) -> Want:
    """Return pass@k or pass^k over the prompts that have as many replies as the largest k takes, and its bounds."""

    def of_replies(cell: list[Trial]) -> float | None:
        values = [trial.value for trial in cell if trial.replied]
        return passing(values, k, enough) if len(values) >= largest else None

    def of_all(cell: list[Trial], lost: int, most: int) -> float | None:
        values = [trial.value if trial.read else lost for trial in cell]
        return passing(values, k, enough) if len(values) >= most else None

    ks = sizes(largest)
    longest = max(len(cell) for cell in _cells(run.stored, prompt))
    most = max(size for size in ks if size <= longest)
    ends = [_over_cells(run, prompt, "", lambda cell, lost=lost: of_all(cell, lost, most))["value"] for lost in (0, 1)]
    return {**_over_cells(run, prompt, "prompts", of_replies), "bounds": None if None in ends else ends}


def sizes(largest: int) -> list[int]:
    """Return 2, 4, 8 … and the largest."""
    return sorted({k for k in (2, 4, 8, largest) if 1 < k <= largest})


def _repeats(run: Drawn) -> Want:
    want: Want = {}
    largest = max((sum(t.replied for t in cell) for cell in _cells(run.stored, prompt)), default=0)
    if any(trial.read for trial in run.stored):
        want["accuracy_majority"] = _over_cells(run, prompt, "prompts", vote)
        for k in sizes(largest):
            want[f"cons@{k}"] = _over_cells(run, prompt, "prompts", lambda cell, k=k: votes_of(cell, k))
        for name, measure in (("answer_entropy", entropy), ("flip_rate", disagreement)):
            of_cell = lambda cell, measure=measure: measure([t.answer for t in cell if not t.failed])  # noqa: E731
            want[name] = _over_cells(run, prompt, "prompts", of_cell)
    for k in sizes(largest):
        want[f"pass@{k}"] = _passes(run, k, largest, any)
        want[f"pass^{k}"] = _passes(run, k, largest, all)
    runs = by(run.stored, lambda t: t.repeat)
    means = [fmean(t.value for t in found if t.replied) for found in runs.values() if any(t.replied for t in found)]
    lost = sum(all(trial.failed for trial in found) for found in runs.values())
    want["accuracy_run_std"] = {
        "value": stdev(means) if len(means) > 1 else None,
        "n": len(means),
        "unscored": len(runs) - len(means) - lost,
        "failed": lost,
        "not_yet_asked": run.task.repeats - len(runs),
        "left_out": 0,
        "unit": "runs",
    }
    return want


def _instability(run: Drawn) -> Want:
    if not any(trial.read for trial in run.stored):
        return {}

    def over(measure: Callable[[Sequence[Any]], float | None]) -> Want:
        """Return a figure over all trials of a question, whatever their variant."""
        return _over_cells(
            run, lambda t: t.sample, "questions", lambda cell: measure([t.answer for t in cell if not t.failed])
        )

    return {"instability": over(entropy), "instability_flip_rate": over(disagreement)}


def _range(run: Drawn) -> Want:
    parts = by(run.trials, lambda t: t.variant)
    stored = {name: [t for t in found if t.stored] for name, found in parts.items()}
    seen = {name: found for name, found in stored.items() if found}
    means = {name: pair(parts[name])["accuracy"] for name in seen}
    known = {name: one for name, one in means.items() if one["value"] is not None}
    lost = sum(all(t.failed for t in seen[name]) for name in seen if name not in known)
    spread = {
        "value": None,
        "n": len(known),
        "unscored": len(seen) - len(known) - lost,
        "failed": lost,
        "not_yet_asked": len(run.task.variants) - len(seen),
        "left_out": 0,
        "unit": "variants",
    }
    if not known:
        return {"accuracy_range": spread}
    order = sorted(known)
    worst, best = (choose(order, key=lambda name: known[name]["value"]) for choose in (min, max))
    spread["value"] = known[best]["value"] - known[worst]["value"]
    return {
        "accuracy_worst_variant": {**known[worst], "unit": f"trials of variant={worst}"},
        "accuracy_best_variant": {**known[best], "unit": f"trials of variant={best}"},
        "accuracy_range": spread,
    }


def _rounds(run: Drawn) -> Want:
    want: Want = {}
    points = []
    for number, trials in sorted(by(run.trials, lambda t: t.tags["round"]).items()):
        if not any(trial.stored for trial in trials):
            continue
        of_round = over_replies(trials, mean_of_trials)
        value = of_round["value"]
        want[f"accuracy_round_{number}"] = {**of_round, "unit": f"trials of round={number}"}
        points += [(number, value)] if value is not None else []
    x, y = [one for one, _ in points], [one for _, one in points]
    across = sum((one - fmean(x)) ** 2 for one in x) if x else 0.0
    along = sum((one - fmean(x)) * (two - fmean(y)) for one, two in points) if x else 0.0
    up = sum((one - fmean(y)) ** 2 for one in y) if x else 0.0
    slope = along / across if across else None  # one round has none, not even 0
    flat = not across or up <= 1e-24 * len(y)
    want["round_slope"] = {"value": slope, **counts(run.trials)}
    want["round_correlation"] = {"value": None if flat else along / math.sqrt(across * up), **counts(run.trials)}
    if run.old and len(run.stored) < len(run.trials):
        for name, estimate in want.items():
            if "_round_" in name:
                estimate["not_yet_asked"] = None
    return want


@dataclass
class Chain:
    """The trials of one chain in one variant and repeat."""

    steps: list[Trial]
    inference: Trial

    @property
    def every(self) -> list[Trial]:
        return [*self.steps, self.inference]

    @property
    def failed(self) -> bool:
        return any(trial.failed for trial in self.every)

    @property
    def settled(self) -> bool:
        return self.failed or all(trial.stored for trial in self.every)


def _chains(run: Drawn) -> Want:
    lanes = [Chain(lane[:-1], lane[-1]) for lane in _lanes(run).values()]
    settled = [chain for chain in lanes if chain.settled]
    roles = {trial.tags["role"] for trial in run.stored}
    if len(roles) < 2:
        return _one_role(run, roles, lanes)
    if not settled:
        return {} if not run.stored else _empty_chains(run, lanes)
    return _figures(run, lanes, settled) | _blind(run, lanes, settled)


def _looks_at(name: str) -> Callable[[Chain], list[Trial]]:
    return {
        "Rh": lambda chain: [chain.inference],
        "Rcot": lambda chain: chain.steps,
        "Ro": lambda chain: chain.every,
    }[name]


def _alive(name: str, settled: list[Chain]) -> list[Chain]:
    """Rh looks at inferences alone; a question without a reply fails its chain in the others."""
    return [chain for chain in settled if (chain.inference.replied if name == "Rh" else not chain.failed)]


def _figures(run: Drawn, lanes: list[Chain], settled: list[Chain]) -> Want:
    want: Want = {}
    waiting = _waiting(run, len(lanes) - len(settled))
    for name in ("Rh", "Rcot", "Ro"):
        trials = _looks_at(name)
        alive = _alive(name, settled)
        read = [chain for chain in alive if all(trial.read for trial in trials(chain))]
        rest = {"unscored": 0, "failed": len(settled) - len(alive), "left_out": 0}
        rest |= {"not_yet_asked": waiting, "unit": "chains"}

        def share(chains: list[Chain], lost: int = 0, trials: Any = trials) -> float | None:
            return mean(int(all(t.value if t.read else lost for t in trials(chain))) for chain in chains)

        want[name] = {"value": share(alive), "n": len(alive), **rest}
        want[name] |= {"read": {"value": share(read), "n": len(read)}}
        want[name] |= {"bounds": [share(settled), share(settled, 1)] if settled else None}
        want[f"{name}_read"] = {"value": share(read), "n": len(read), **rest, "unscored": len(alive) - len(read)}
        want[f"{name}_strict"] = {"value": share(settled), "n": len(settled), **rest, "failed": 0}
    alive = [chain for chain in settled if not chain.failed]
    want |= _conditional(want, alive, "", lambda t: t.replied)
    want |= _conditional(want, alive, "_read", lambda t: t.read)
    want |= _conditional(want, settled, "_strict", lambda t: True)
    for name in ("Cf", "Cb"):
        read = want[f"{name}_read"]
        want[name] = {**want[name], "bounds": None, "read": {"value": read["value"], "n": read["n"]}}
    return want | _steps(run, lanes, settled, waiting)


def _conditional(want: Want, chains: list[Chain], twin: str, known: Callable[[Trial], bool]) -> Want:
    def right(trials: Iterable[Trial]) -> bool:
        return all(trial.value for trial in trials)

    chosen = [chain for chain in chains if all(known(trial) for trial in chain.every)]
    found: Want = {}
    for name, given in (("Cf", "Rcot"), ("Cb", "Rh")):
        qualify = [chain for chain in chosen if right(_looks_at(given)(chain))]
        estimate = {**want[f"Ro{twin}"], "n": len(qualify), "left_out": len(chosen) - len(qualify)}
        found[f"{name}{twin}"] = {**estimate, "value": mean(int(right(chain.every)) for chain in qualify)}
    return found


def _waiting(run: Drawn, chains: int) -> int | None:
    return 0 if len(run.stored) == len(run.trials) else None if run.old else chains


def _steps(run: Drawn, lanes: list[Chain], settled: list[Chain], waiting: int | None) -> Want:
    want: Want = {}
    longest = max(len(chain.steps) for chain in lanes if any(trial.stored for trial in chain.every))
    places: list[tuple[str, Callable[[Chain], list[Trial]], str]] = [
        ("step_accuracy", lambda chain: chain.steps, "trials of role=step")
    ]
    for place in range(longest):
        of_place = lambda chain, place=place: chain.steps[place : place + 1]  # noqa: E731
        places.append((f"step_{place + 1}_accuracy", of_place, f"trials of step={place + 1}"))
    for name, of_chain, unit in places:
        every = [trial for chain in lanes for trial in of_chain(chain)]
        inside = [trial for chain in settled for trial in of_chain(chain) if trial.stored]
        outside = sum(trial.stored for trial in every) - len(inside)
        rest = {**counts(inside), "left_out": outside, "unit": unit}
        rest["not_yet_asked"] = _waiting(run, sum(not trial.stored for trial in every))
        want[name] = {**over_replies(inside, mean_of_trials), **rest}
        read = only_read(inside, mean_of_trials)
        want[f"{name}_read"] = {**rest, **{one: read[one] for one in ("value", "n", "unscored")}}
        strict = mean(trial.value for trial in inside)
        want[f"{name}_strict"] = {**rest, "value": strict, "n": len(inside), "unscored": 0, "failed": 0}
    known = [chain for chain in settled if not chain.failed]
    alive = sum(not chain.failed for chain in settled)
    rest = {"n": len(known), "unscored": alive - len(known), "failed": len(settled) - alive, "left_out": 0}
    rest |= {"not_yet_asked": waiting, "unit": "chains"}
    breaks = [next((place for place, t in enumerate(chain.steps) if not t.value), None) for chain in known]
    for place in range(longest):
        want[f"break_at_{place + 1}"] = {**rest, "value": mean(int(at == place) for at in breaks)}
    want["unbroken"] = {**rest, "value": mean(int(at is None) for at in breaks)}
    return want


def _one_role(run: Drawn, roles: set[str], lanes: list[Chain]) -> Want:
    """Only inferences, or only steps, are stored so far."""
    if not roles:
        return {}
    role = next(iter(roles))
    planned = [trial for trial in run.trials if trial.tags["role"] == role]
    name = {"inference": "Rh", "step": "step_accuracy"}[role]
    stored = [trial for trial in planned if trial.stored]
    want = over_replies(planned, mean_of_trials)
    read = only_read(planned, mean_of_trials)
    strict = {**counts(planned), "value": mean(t.value for t in stored), "n": len(stored), "failed": 0}
    return {name: want, f"{name}_read": read, f"{name}_strict": strict, "one role": role}


def _empty_chains(run: Drawn, lanes: list[Chain]) -> Want:
    return _figures(run, lanes, []) | _blind(run, lanes, [])


def _blind(run: Drawn, lanes: list[Chain], settled: list[Chain]) -> Want:
    """Return what two plain rules score on the chains that the model's own figures count."""
    likes: dict[str, Callable[[str], float]] = {
        "no-period": lambda text: float(not text.endswith(".")),
        "period": lambda text: float(text.endswith(".")),
        "shortest": lambda text: -float(len(text)),
        "longest": lambda text: float(len(text)),
    }
    waiting = _waiting(run, len(lanes) - len(settled))
    want: Want = {}
    for name in ("Rh", "Rcot", "Ro"):
        trials = _looks_at(name)
        known = _alive(name, settled)
        rest = {"n": len(known), "unscored": 0, "failed": 0, "left_out": len(settled) - len(known)}
        rest |= {"not_yet_asked": waiting, "unit": "chains"}
        want[f"{name}_majority_blind"] = rest
        for rule, like in likes.items():
            worth = [like(text) for text in OPTIONS]
            best = [place for place, one in enumerate(worth) if one == max(worth)]
            chance = [Fraction(t_right in best, len(best)) for t_right in range(4)]
            credit = [math.prod(chance[trial.right] for trial in trials(chain)) for chain in known]
            want[f"{name}_{rule}_blind"] = {**rest, "value": mean(credit)}
    return want


def differences(run: Drawn, results: dict[str, Any], folder: Path) -> list[str]:
    """Return in words where results.json, records.jsonl and the export differ from the recount."""
    found = list(_in_metrics(run, results["tasks"]["t"]["metrics"], recount(run)))
    groups = results["tasks"]["t"]["groups"]
    wanted = groups_of(run)
    if set(groups) != set(wanted):
        found.append(f"groups {sorted(groups)}, recounted {sorted(wanted)}")
    for key, parts in wanted.items():
        if set(groups.get(key, ())) != set(parts):
            found.append(f"{key}: {sorted(groups.get(key, ()))}, recounted {sorted(parts)}")
            continue
        for value, part in parts.items():
            found += [f"{key}={value}: {line}" for line in _in_metrics(run, groups[key][value], part, whole=False)]
    missing = len(run.trials) - len(run.stored)
    if results["status"]["planned"] != {"t": len(run.trials)} or results["status"]["not_yet_asked"] != {"t": missing}:
        found.append(f"status {results['status']}")
    return [*found, *_in_files(run, folder)]


def _in_metrics(run: Drawn, metrics: dict[str, Any], want: Want, *, whole: bool = True) -> Iterator[str]:
    role = want.pop("one role", None)
    for name in sorted({*metrics, *want}):
        if name not in want:
            if not (role and name.endswith("_blind")):
                yield f"{name} was not recounted"
        elif name not in metrics:
            yield f"{name} is missing"
        else:
            yield from _in_estimate(name, metrics[name], want[name], role)
    if whole:
        for name, estimate in metrics.items():
            counted = [estimate[one] for one in COUNTS]
            if estimate["unit"] == "trials" and None not in counted and sum(counted) != len(run.trials):
                yield f"{name}: {counted} do not add up to {len(run.trials)}"


def _in_estimate(name: str, got: dict[str, Any], want: Want, role: str | None) -> Iterator[str]:
    for field_name, expected in want.items():
        if role and field_name in ("not_yet_asked", "left_out", "unit") and name.startswith(("Rh", "step")):
            continue  # which chains wait is not known from one role alone
        value = got[field_name]
        if field_name in ("value", "bounds", "read"):
            if not _is_close(value, expected):
                yield f"{name}.{field_name}: {value}, recounted {expected}"
        elif value != expected:
            yield f"{name}.{field_name}: {value}, recounted {expected}"
    bounds = got["ci95"]
    if bounds is not None and got["value"] is not None and not bounds[0] - 1e-9 <= got["value"] <= bounds[1] + 1e-9:
        yield f"{name}: {got['value']} outside its interval {bounds}"


def _is_close(value: Any, expected: Any) -> bool:
    """Tell whether numbers, or lists and dictionaries of them, are the same."""
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(_is_close(value[key], one) for key, one in expected.items())
    if isinstance(expected, list):
        return isinstance(value, list) and all(map(_is_close, value, expected))
    if None in (value, expected):
        return value is expected
    return math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-12)


def _in_files(run: Drawn, folder: Path) -> Iterator[str]:
    outcome = {"scored": lambda t: t.read, "unscored": lambda t: t.unread, "failed": lambda t: t.failed}
    want = {name: sum(map(is_so, run.stored)) for name, is_so in outcome.items()}
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    with RunReader(folder) as reader:
        rows = list(csv.DictReader(io.StringIO("".join(csv_lines(reader)))))
    values = {(t.sample, t.variant, t.repeat): t.value if t.read else None for t in run.stored}
    for what, records in (("records.jsonl", lines), ("csv", rows)):
        found = Counter(record["outcome"] for record in records)
        if dict(found) != {name: count for name, count in want.items() if count}:
            yield f"{what}: {dict(found)}, recounted {want}"
        for record in records:
            told = None if record["value"] in ("", None) else float(record["value"])
            if told != values[record["sample"], record["variant"], int(record["repeat"])]:
                yield f"{what}: {record['sample']} has value {record['value']}"


def check_seed(seed: int, folder: Path) -> tuple[Drawn, list[str]]:
    """Draw, write and recount one run."""
    run = draw_run(seed)
    return run, differences(run, write_run(run, folder), folder)


def main(runs: int) -> int:
    """Recount many runs and print the figure."""
    started, shapes, wrong, numbers = time.monotonic(), Counter[str](), 0, 0
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            run, found = check_seed(seed, Path(folder) / "run")
            results = json.loads((Path(folder) / "run" / "results.json").read_text())
        numbers += sum(len(found) for found in _estimates(results))
        shapes[run.shape] += 1
        wrong += bool(found)
        for line in found[:5]:
            print(f"seed {seed} ({run.shape}): {line}")
    took = time.monotonic() - started
    drawn = ", ".join(f"{count} of {shape}" for shape, count in sorted(shapes.items()))
    print(f"{runs} runs ({drawn}), {numbers:,} numbers: {wrong} runs differ from the recount; {took:.0f} s")
    return int(wrong > 0)


def _estimates(results: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part = results["tasks"]["t"]
    yield from part["metrics"].values()
    for groups in part["groups"].values():
        for estimates in groups.values():
            yield from estimates.values()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
