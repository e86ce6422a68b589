"""A base run and a candidate, served, local or stored, to a verdict: same, better, worse, or not settled.

The candidate is asked what the base was asked, in an order drawn before the first question; replies are taken in that
order, so that workers, a kill or a fast server change nothing. All that is known is in gate.json beside the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import msgspec
import numpy as np
from msgspec import Struct

from ...api.exams import compare_exams, read_exam
from ...api.eye_exam import ExamSettings, run_exam
from ...api.plan import Plan
from ...api.run import Watcher, run_settings
from ...api.settings import RunSettings
from ...core.counting import lower_is_better
from ...core.errors import UsageError
from ...core.ids import derive_seed
from ...core.jobs import Item
from ...core.markup import Child, tag
from ...core.protocols import Scorer
from ...core.tasks import RunHeader
from ...engine.limits import NO_OPTIONS, PrefixLimit, Seen
from ...report.files import write_atomically
from ...report.pages import draw
from ...report.pages.parts import document
from ...scoring.stored import stored_tables
from ...store.reader import RunReader
from .bank_file import Bank, BankItem, read_bank, relatives
from .betting import (
    BETTER,
    NOISE_A_MARGIN,
    OPEN,
    SAME,
    WORSE,
    Gate,
    Preparation,
    prepare,
    repeats_for,
    sampling_noise,
)
from .build import Answers, read_run

EXIT_CODES = {SAME: 0, BETTER: 0, WORSE: 1, OPEN: 4}
MOST_FLIPS = 200


class GateSettings(Struct, frozen=True, kw_only=True):
    """What one gate decides: on which task, within which margin (points), with how many questions at most."""

    task: str | None = None
    metric: str | None = None
    margin: float = 1.5
    bank: Path | None = None
    budget: int | None = None
    error: float = 0.05
    seed: int = 0
    must_settle: bool = False
    """Whether `not settled` counts as a failure (policy key must_not_fall)."""


class Flip(Struct, frozen=True):
    """A question on which base and candidate differ."""

    sample: str
    base: float
    candidate: float


class GateResult(Struct, frozen=True, kw_only=True):
    """The verdict of one gate, and what it rests on; differences in points."""

    task: str
    metric: str
    verdict: str
    difference: float
    interval: tuple[float, float] | None
    margin: float
    asked: int
    questions: int
    error: float
    base: str
    candidate: str
    bank: str | None
    worse: list[Flip]
    better: list[Flip]
    failed: int = 0
    unread: int = 0
    notes: list[str] = []
    must_settle: bool = False

    @property
    def exit_code(self) -> int:
        """Return 0 for same or better, 1 for worse, 4 where it is not settled (1 where it had to be)."""
        return 1 if self.verdict == OPEN and self.must_settle else EXIT_CODES[self.verdict]

    def line(self) -> str:
        """Say it in one line."""
        asked = f"{self.asked:,} of {self.questions:,} asked"
        if self.interval is None:
            return f"{self.verdict}: difference {self.difference:+.1f} points exactly, all {self.questions:,} asked"
        low, high = self.interval
        return f"{self.verdict}: difference {self.difference:+.1f} ({low:+.1f} … {high:+.1f}), {asked}"


class Base(NamedTuple):
    """What a gate knows of the base before it asks anything."""

    folder: Path
    header: RunHeader
    answers: Answers
    values: dict[str, float]
    """By sample; an error as what is missing from 1, so that more is better."""
    noise: float
    """The mean of p(1-p) over questions, from repeats; 0 where the base was asked once."""
    repeats: int
    temperature: float


def read_base(folder: Path, settings: GateSettings) -> Base:
    """Read what the base answered, by sample."""
    found = read_run(folder, settings.task, settings.metric)
    if found is None:
        raise UsageError(f"{folder} has no task {settings.task!r}")
    with RunReader(folder) as reader:
        header = reader.header()
        card = next(card for card in header.tasks if card.name == found.task)
        table = stored_tables(reader, found.task, tag_keys=())[found.metric]
        use = table.scored
        counts = np.bincount(table.sample[use], minlength=len(table.samples)).astype(float)
        sums = np.bincount(table.sample[use], weights=table.value[use], minlength=len(table.samples))
        squares = np.bincount(table.sample[use], weights=table.value[use] ** 2, minlength=len(table.samples))
    many = counts > 1
    spread = (squares[many] - sums[many] ** 2 / counts[many]) / (counts[many] - 1)
    noise = float(spread.mean()) if many.any() else 0.0
    values = dict(zip((item.id for item in found.items), _as_gain(found.values, found.metric).tolist(), strict=True))
    if min(values.values(), default=0.0) < 0.0 or max(values.values(), default=0.0) > 1.0:
        raise UsageError(f"a gate compares shares, and {found.metric} of {folder} is none: name another --metric")
    return Base(folder, header, found, values, noise, card.repeats, card.params.temperature or 0.0)


def _as_gain(values: Any, metric: str) -> Any:
    return 1.0 - values if lower_is_better(metric) else values


class GateProgress:
    """One gate on its way: the units in their drawn order, and what was seen of them."""

    def __init__(self, base: Base, settings: GateSettings, repeats: int) -> None:
        self.base, self.settings = base, settings
        self.notes: list[str] = []
        items = [item for item in base.answers.items if item.id in base.values]
        names: dict[str, int] = {}
        codes = [names.setdefault(f"g{item.group}" if item.group else f"s{item.id}", len(names)) for item in items]
        self.unit_of = {item.id: code for item, code in zip(items, codes, strict=True)}
        self.samples: list[list[str]] = [[] for _ in names]
        for item, code in zip(items, codes, strict=True):
            self.samples[code].append(item.id)
        values = np.array([base.values[item.id] for item in items])
        groups = None if len(names) == len(items) else np.array(codes)
        prepared = prepare(values, self._bank_rows(items), groups)
        self.order = self._draw(prepared)
        self.gate = Gate(
            prepared, settings.margin / 100.0, noise=self._noise(len(items), repeats), error=settings.error
        )
        self.questions = len(items)
        self.asked = self.failed = self.unread = 0
        self.flips: list[Flip] = []

    def _bank_rows(self, items: Sequence[BankItem]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        if self.settings.bank is None:
            return None
        bank: Bank = read_bank(self.settings.bank)
        columns, changed = bank.columns_of(items)
        outside = int((columns < 0).sum())
        if outside == len(items):
            raise UsageError(f"{self.settings.bank} knows none of the {len(items):,} questions: name the task's bank")
        if outside:
            self.notes.append(f"{outside:,} questions are not in the bank ({changed:,} of them changed since)")
        own = relatives(self.base.header.model, bank)
        if own:
            self.notes.append(f"left out of the bank, as they are the base: {', '.join(own)}")
        rows = bank.results(own)
        known = np.where(columns >= 0, rows[:, np.maximum(columns, 0)], np.nan)
        return np.asarray(_as_gain(known, self.base.answers.metric))

    def _draw(self, prepared: Preparation) -> list[int]:
        seed = derive_seed(self.settings.seed, "gate", self.base.header.id)
        return [int(unit) for unit in prepared.order(np.random.default_rng(seed))]

    def _noise(self, items: int, repeats: int) -> float:
        """Return the standard error by sampling; where it is unknown, say of what the verdict speaks."""
        base, margin = self.base, self.settings.margin / 100.0
        if not base.noise:
            if base.temperature > 0.0:
                self.notes.append(
                    f"sampled at temperature {base.temperature:g} and asked once: the verdict speaks of these replies, "
                    "not of what the models do on average; --num-infers 4 of both would tell"
                )
            return 0.0
        found = sampling_noise(base.noise, base.repeats, base.noise, repeats, items)
        if NOISE_A_MARGIN * found > margin:
            needed = repeats_for(margin, base.noise, base.noise, items)
            raise UsageError(
                f"margin {100 * margin:g} needs {needed} repeats of both (--num-infers {needed}): sampling noise"
            )
        return found

    @property
    def is_over(self) -> bool:
        """Tell whether a word has fallen, or the budget of questions is used up."""
        budget = self.settings.budget
        return self.gate.word != OPEN or (budget is not None and self.asked >= budget)

    def take(self, unit: int, values: Mapping[str, float]) -> None:
        """Take the next unit of the order: what the candidate is worth on each of its questions."""
        changes = []
        for sample in self.samples[unit]:
            base, candidate = self.base.values[sample], values[sample]
            changes.append(candidate - base)
            if candidate != base:
                self.flips.append(Flip(sample, base, candidate))
        self.asked += len(changes)
        self.gate.add(unit, float(np.mean(changes)))

    def result(self, candidate: str) -> GateResult:
        """Return the verdict as it stands."""
        found = self.gate.verdict()
        word = found.word
        interval = None if found.interval is None else (100 * found.interval[0], 100 * found.interval[1])
        return GateResult(
            task=self.base.answers.task,
            metric=self.base.answers.metric,
            verdict=word,
            difference=100 * found.value,
            interval=interval,
            margin=self.settings.margin,
            asked=self.asked,
            questions=self.questions,
            error=self.settings.error,
            base=self.base.header.model,
            candidate=candidate,
            bank=None if self.settings.bank is None else self.settings.bank.name,
            worse=[flip for flip in self.flips if flip.candidate < flip.base][:MOST_FLIPS],
            better=[flip for flip in self.flips if flip.candidate > flip.base][:MOST_FLIPS],
            failed=self.failed,
            unread=self.unread,
            notes=self.notes,
            must_settle=self.settings.must_settle,
        )


class GateLimit(PrefixLimit):
    """Asks the base's questions in the gate's order and ends the run when a word falls.

    A call that failed for good counts as not right: leaving it out would let a candidate pass by failing.
    """

    def __init__(
        self, progress: GateProgress, scorer: Scorer, trials: int, options: Mapping[str, Any] = NO_OPTIONS
    ) -> None:
        super().__init__(scorer, trials, options)
        self.progress = progress
        self._names: dict[int, str] = {}
        self._is_error = lower_is_better(progress.base.answers.metric)

    def arrange(self, groups: list[list[Item]], seed: int) -> list[list[Item]]:
        """Return the groups that the base answered, in the order of the race."""
        self._names = {item.position: item.sample.id for group in groups for item in group}
        units = self.progress.unit_of
        found: dict[int, list[Item]] = {}
        for group in groups:
            known = [item for item in group if item.sample.id in units]
            if known:
                found[units[known[0].sample.id]] = known
        missing = len(self.progress.order) - len(found)
        if missing:
            raise UsageError(f"{missing:,} questions of the base are not in the data any more: gate on the base's data")
        return [found[unit] for unit in self.progress.order]

    def take(self, rank: int, questions: list[tuple[int, list[Seen]]]) -> None:
        """Hand the next unit to the gate."""
        values = {}
        for position, trials in questions:
            worth = [(1.0 if self._is_error else 0.0) if seen.value is None else seen.value for seen in trials]
            values[self._names[position]] = float(_as_gain(sum(worth) / len(worth), self.progress.base.answers.metric))
            self.progress.failed += sum(seen.failed for seen in trials)
            self.progress.unread += sum(seen.unread for seen in trials)
        self.progress.take(self.progress.order[rank], values)
        self.stopped = self.progress.is_over

    def summary(self) -> dict[str, Any]:
        """Return what is recorded with the run."""
        found = self.progress.gate.verdict()
        told = {"gate": found.word, "questions": self.progress.asked, "metric": self.progress.base.answers.metric}
        return {"points": self.progress.settings.margin, "stopped": self.stopped, "interval": found.interval, **told}


def gate_stored(base_folder: Path, candidate: Path, settings: GateSettings) -> GateResult:
    """Decide between two stored runs: the questions are read in the drawn order until a word falls."""
    base = read_base(base_folder, settings)
    task = msgspec.structs.replace(settings, task=base.answers.task, metric=base.answers.metric)
    other = read_base(candidate, task)
    check_alike(base, other)
    progress = GateProgress(base, settings, other.repeats)
    missing = len(base.values.keys() - other.values.keys())
    if missing:
        progress.notes.append(f"{missing:,} questions have no reply of the candidate and count as not right")
    for unit in progress.order:
        names = progress.samples[unit]
        progress.failed += sum(name not in other.values for name in names)
        progress.take(unit, {name: other.values.get(name, 0.0) for name in names})
        if progress.is_over:
            break
    return progress.result(other.header.model)


def check_alike(base: Base, other: Base) -> None:
    """Refuse a candidate that was asked or scored otherwise, or whose questions or golds are others."""
    known = {item.id: item for item in base.answers.items}
    for item in other.answers.items:
        own = known.get(item.id)
        if own is None:
            continue
        if own.content != item.content:
            raise UsageError(f"question {item.id!r} is another one in {other.folder}: gate on the same data")
        if own.gold != item.gold:
            raise UsageError(f"question {item.id!r} has another gold in {other.folder}: score both by one gold")
    if base.answers.how != other.answers.how and base.answers.how and other.answers.how:
        raise UsageError(f"{other.folder} was asked or scored otherwise than {base.folder} (prompt, protocol, scorers)")


def gate_asking(
    base_folder: Path, run: RunSettings, settings: GateSettings, watcher: Watcher | None = None
) -> GateResult:
    """Ask a candidate as the base was asked, until a word falls; the same call again continues."""
    base = read_base(base_folder, settings)
    opened: list[GateProgress] = []

    def stops(plan: Plan) -> PrefixLimit:
        check_identity(base, plan)
        task = next(planned.task for planned in plan.tasks if planned.task.name == base.answers.task)
        progress = GateProgress(base, settings, task.repeats)
        opened.append(progress)
        scorer = plan.registry.get("scorer", task.scorers[0])
        return GateLimit(progress, scorer, len(task.variants) * task.repeats, task.score_options)

    result = run_settings(run, watcher, stops)
    found = opened[0].result(result.results["model"])
    if found.verdict == OPEN and result.interrupted:
        why = result.state.limits.reached or result.state.limits.closed or "interrupted"
        found = msgspec.structs.replace(found, notes=[*found.notes, f"ended early: {why}"])
    write_gate(result.folder, found)
    return found


EXAM_REQUESTS = 240
EXAMINED = ("model", "base_url", "more_urls", "api_key", "headers", "plugins", "max_workers", "cache", "arguments")


def look_first(base_exam: Path, run: RunSettings) -> list[str]:
    """Examine the candidate by the tests of the base's exam, quickly, and say what differs; the questions decide."""
    wanted = ExamSettings(mode="quick", tests=tuple(read_exam(base_exam)["tests"]), requests=EXAM_REQUESTS)
    known = {name: getattr(run, name) for name in EXAMINED if hasattr(run, name)}
    place = (run.output_dir or Path("runs")) / "exam"
    found = run_exam(wanted, RunSettings(tasks=(), output_dir=place, **known))
    compared = compare_exams(base_exam, found.folder)
    return [f"eyes: {compared['summary']}", *(f"eyes: {note}" for note in compared["notes"])]


def check_identity(base: Base, plan: Plan) -> None:
    """Refuse to ask otherwise than the base was asked; names what differs."""
    name = base.answers.task
    ours = plan.header.config.get("tasks", {}).get(name)
    theirs = base.header.config.get("tasks", {}).get(name)
    if ours is None:
        raise UsageError(f"the candidate would not be asked task {name!r}")
    if theirs is None or ours == theirs:
        return
    keys = sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
    raise UsageError(f"the candidate would be asked otherwise than the base ({', '.join(keys)}): use the base's flags")


def write_gate(folder: Path, found: GateResult) -> None:
    """Write gate.json and its page beside the run."""

    body = msgspec.json.format(msgspec.json.encode(found), indent=2)
    write_atomically(folder / "gate.json", lambda file: file.write(body))
    page = gate_page(found).encode("utf-8", "replace")
    write_atomically(folder / "gate.html", lambda file: file.write(page))


def gate(base: str | Path, candidate: str | Path | RunSettings, **settings: Any) -> GateResult:
    """Decide whether a candidate is still as good as a base run: a stored run, or settings by which it is asked.

    Settings are those of `GateSettings`: `gate("runs/base", "runs/fp8", margin=1.5, bank=Path("ai2d.bank"))`.
    """
    wanted = GateSettings(**settings)
    if isinstance(candidate, RunSettings):
        return gate_asking(Path(base), candidate, wanted)
    return gate_stored(Path(base), Path(candidate), wanted)


MARKS = {SAME: "✅", BETTER: "✅", WORSE: "❌", OPEN: "❔"}
SHOWN_FLIPS = 20
MEANINGS = {
    SAME: "not worse by the margin or more",
    BETTER: "not worse by the margin, and better",
    WORSE: "worse than the base",
    OPEN: "the questions asked do not settle it",
}


def joint_exit_code(found: Sequence[GateResult]) -> int:
    """Return 1 if anything is worse, else 4 if anything is not settled, else 0."""
    codes = {one.exit_code for one in found}
    return next((code for code in (1, 4) if code in codes), 0)


def render(found: Sequence[GateResult], form: str) -> str:
    """Return the verdicts in one of the forms: text, github, junit."""
    return {"text": _text, "github": _github, "junit": _junit}[form](found)


def _text(found: Sequence[GateResult]) -> str:
    lines = []
    for one in found:
        name = f"{one.task}: " if len(found) > 1 else ""
        lines.append(f"{name}{one.line()}")
        lines += [f"  {line}" for line in detail_lines(one)]
    return "\n".join(lines)


def detail_lines(one: GateResult) -> list[str]:
    """Say what the line means and what it rests on."""
    lines = [
        f"{MEANINGS[one.verdict]}; margin {one.margin:g} points, false verdicts at most {100 * one.error:g} %",
        f"{len(one.worse)} answers got worse and {len(one.better)} better among {one.asked:,} asked ({one.metric})",
    ]
    if one.failed or one.unread:
        lines.append(f"{one.failed:,} calls failed and {one.unread:,} replies were not read: they count as not right")
    return [*lines, *one.notes]


def _github(found: Sequence[GateResult]) -> str:
    """Return Markdown for $GITHUB_STEP_SUMMARY or a comment."""
    rows = ["| | task | verdict | difference (points) | margin | asked |", "|---|---|---|---|---|---|"]
    for one in found:
        interval = "exact" if one.interval is None else f"{one.interval[0]:+.1f} … {one.interval[1]:+.1f}"
        asked = f"{one.asked:,} of {one.questions:,}"
        head = f"| {MARKS[one.verdict]} | {_cell(one.task)} | **{one.verdict}** "
        rows.append(f"{head}| {one.difference:+.1f} ({interval}) | {one.margin:g} | {asked} |")
    parts = [f"### Gate: {_cell(found[0].candidate)} against {_cell(found[0].base)}", "", *rows]
    for one in found:
        parts += ["", *(f"- {_cell(line)}" for line in detail_lines(one))]
        for word, flips in (("worse", one.worse), ("better", one.better)):
            if flips:
                shown = ", ".join(f"`{_cell(flip.sample)}`" for flip in flips[:SHOWN_FLIPS])
                more = f" and {len(flips) - SHOWN_FLIPS} more" if len(flips) > SHOWN_FLIPS else ""
                head = f"<details><summary>{len(flips)} {word} on {_cell(one.task)}</summary>"
                parts += ["", head, "", shown + more, "", "</details>"]
    return "\n".join(parts)


def _cell(text: str) -> str:
    return escape(text).replace("|", "\\|").replace("`", "'").replace("\n", " ")


def _junit(found: Sequence[GateResult]) -> str:
    failures = sum(one.exit_code == 1 for one in found)
    skipped = sum(one.exit_code == 4 for one in found)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="snellen gate" tests="{len(found)}" failures="{failures}" skipped="{skipped}">',
    ]
    for one in found:
        lines.append(f"  <testcase classname={quoteattr(one.candidate)} name={quoteattr(one.task)}>")
        words = quoteattr(one.line())
        if one.exit_code == 1:
            body = escape("\n".join([*detail_lines(one), *(f"worse: {flip.sample}" for flip in one.worse)]))
            lines.append(f"    <failure message={words}>{body}</failure>")
        elif one.exit_code == 4:
            lines.append(f"    <skipped message={words}/>")
        lines.append(f"    <system-out>{escape(one.line())}</system-out>")
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>"])


def gate_parts(one: GateResult) -> list[Child]:
    """Return the verdict as parts of a page."""
    chips = (f"margin {one.margin:g} points", f"{one.asked:,} of {one.questions:,} asked", one.metric)
    title = tag(
        "div",
        tag("p", f"Gate on {one.task}", class_="kicker"),
        tag("h1", f"{one.candidate}: {one.verdict}"),
        tag("ul", *(tag("li", chip, class_="chip") for chip in chips), class_="chips"),
    )
    parts: list[Child] = [tag("header", draw.logo(), title, class_="masthead")]
    parts += [tag("p", f"Against {one.base}. {one.line()}.", class_="notice", role="note")]
    parts += [tag("ul", *(tag("li", line) for line in detail_lines(one)))]
    for word, flips in (("worse", one.worse), ("better", one.better)):
        rows = [
            tag("tr", tag("td", flip.sample), tag("td", f"{flip.base:g}"), tag("td", f"{flip.candidate:g}"))
            for flip in flips
        ]
        if rows:
            head = tag("tr", *(tag("th", text, scope="col") for text in ("question", "base", "candidate")))
            parts += [tag("h2", f"Answers that got {word}"), tag("table", tag("thead", head), tag("tbody", *rows))]
    return parts


def gate_page(one: GateResult) -> str:
    """Return the page that lies beside the run."""
    return document(f"Gate: {one.candidate} – Snellen", gate_parts(one))
