"""A second opinion: another harness's number reproduced, ours beside it, and every reply where the two part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ...core.builtins import default_registry
from ...core.errors import UsageError
from ...core.markup import Child, Html, shorten, tag
from ...core.process import rare_collections
from ...core.tasks import Task
from ...core.text import plural
from ...core.types import Estimate
from ...data.atlas.peer_cards import PeerCard, PeerRules, peer_card
from ...report.files import atomic_file, write_atomically
from ...report.pages import draw
from ...report.pages.parts import document, facts, head, numbers, reply_text, row, scrolled
from ...report.stored_results import read_results
from ...report.written import written, written_interval, written_share
from ...scoring.aggregates.headline import headline
from ...scoring.ranges import scored_trials
from ...stats.intervals import estimate_mean
from ...store.reader import RunReader
from .damage import damage_lines
from .disagreement import (
    AGAINST,
    DRAWN,
    FAILURE,
    FOR,
    KINDS,
    LEFT_OUT,
    MISREAD,
    NEITHER,
    NOT_COMPARED,
    OTHERWISE,
    READ_INTO,
    SAME,
    UNREAD,
    Opinion,
    opinion_on,
)
from .foreign_runs import IMPORTED, import_predictions
from .peer_readers import PeerProtocol, peer_protocol, peer_reader

HOW = {
    "recorded": "by the verdicts in its own file",
    "reproduced": "by its rule, applied again",
    "unknown": "no number: the file holds no verdicts, and no rule is known",
}
SHOWN_KINDS = (
    "misread",
    "read_into",
    "drawn",
    "failure_counted",
    "scored_otherwise",
    "unread_counted",
    "left_out",
    "not_compared",
)
FAVOURS = ("for the model", "against the model")


def opinion_sentence(summary: Mapping[str, Any]) -> str:
    """Return the difference in one sentence."""
    peer, ours = summary["peer"]["value"], summary["ours"]["value"]
    if peer is None or ours is None:
        return (
            f"{summary['title']}: {HOW['unknown']}. Name the rule with --as." if peer is None else "Nothing was read."
        )
    causes = [
        f"{step['what']} ({plural(step['trials'], 'row')}) {step['change'] * 100:+.1f}"
        for step in summary["steps"]
        if step["trials"]
    ]
    between = "; ".join(causes) or _without_steps(summary)
    return f"{summary['title']} counts {written_share(peer)}, we {written_share(ours)}: {between}."


def _without_steps(summary: Mapping[str, Any]) -> str:
    """Return what lies between two numbers that were not taken apart: those of groups are not sums of rows."""
    if any(summary["kinds"][kind]["count"] for kind in SHOWN_KINDS):
        return "by the rows that the lines above count; what each is worth to a group is not known"
    return "the same replies, read the same way"


def opinion_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield a second opinion for the terminal."""
    yield f"{summary['title']} · {summary['peer_task']} · {summary['model']} · {plural(summary['trials'], 'row')}"
    yield f"  {'as ' + summary['title'] + ' counts':34s} {_peer(summary)}"
    yield from (
        f"  {'as reported in ' + name:34s} {written_share(value)}" for name, value in summary["reported"].items()
    )
    ours = summary["ours"]
    rest = f"n {ours['n']:,}, of these {summary['unscored']:,} without a readable answer; {summary['failed']:,} failed"
    value = f"{written('accuracy', ours)} [{written_interval('accuracy', ours)}]"
    yield f"  {'as we read the same replies':34s} {value} ({rest})"
    for name, split in summary["splits"].items():
        yield f"  {'split ' + (name or '(none)'):34s} theirs {_share(split['peer'])}, ours {_share(split['ours'])}"
    yield from (_kind_line(summary["kinds"][kind]) for kind in SHOWN_KINDS if summary["kinds"][kind]["count"])
    yield from _flattered(summary["failures_counted_as_right"])
    yield from (f"  damage, {line}" for line in damage_lines(summary["damage"]))
    yield from (f"  note: {note}" for note in summary["notes"])
    yield f"  {summary['in_words']}"


def _flattered(count: int) -> Iterator[str]:
    if count:
        yield f"  {count:>7,} of the failed calls {'was' if count == 1 else 'were'} counted as right"


def _kind_line(entry: Mapping[str, Any]) -> str:
    favours = ", ".join(f"{entry[favour]:,} {favour}" for favour in FAVOURS if entry[favour])
    return f"  {entry['count']:>7,} × {entry['what']}{f': {favours}' if favours else ''}"


def _share(value: float | None) -> str:
    return "–" if value is None else written_share(value)


def _peer(summary: Mapping[str, Any]) -> str:
    peer = summary["peer"]
    if peer["value"] is None:
        return HOW["unknown"]
    unit = "groups of rotated copies" if peer["aggregate"] != "mean" else "rows"
    again = ""
    if peer["how"] == "recorded" and peer["reproduced_n"] and peer["aggregate"] == "mean":
        again = f"; its rule again: {written_share(peer['reproduced'])}"
        unlike = peer["verdicts_unlike_the_rule"]
        again += f", {plural(unlike, 'verdict')} unlike it (a judge, or another version)" if unlike else ""
    return f"{written_share(peer['value'])} (n = {peer['n']:,} {unit}, {HOW[peer['how']]}{again})"


LONGEST_REPLY = 1_200
SHOWN_QUESTION = 160


class Shown:
    """The first few disagreements of each kind."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[tuple[str, bool], list[Opinion]] = {}

    def add(self, opinion: Opinion) -> None:
        """Keep an opinion if there is room among its kind."""
        kept = self._kept.setdefault((opinion.kind, opinion.favour != NEITHER), [])
        if len(kept) < self._most:
            kept.append(opinion)

    def of_kind(self, kind: str) -> list[Opinion]:
        """Return what is shown of a kind: those that move the number first."""
        return [*self._kept.get((kind, True), []), *self._kept.get((kind, False), [])][: self._most]


def render_opinion(summary: Mapping[str, Any], shown: Shown) -> str:
    """Return the whole page as text."""
    parts: list[Child] = [_masthead(summary), tag("p", summary["in_words"], class_="notice", role="note")]
    parts += [tag("h2", "Two numbers"), _numbers(summary), tag("h2", "What lies between"), _between(summary)]
    for kind in SHOWN_KINDS:
        parts += _replies(kind, summary, shown.of_kind(kind))
    parts += _about(summary)
    return document(f"Second opinion: {summary['model']} on {summary['peer_task']} – Snellen", parts)


def _masthead(summary: Mapping[str, Any]) -> Html:
    about = (summary["title"], summary["peer_task"], plural(summary["trials"], "row"), f"rules of {summary['seen']}")
    chips = tag("ul", *(tag("li", fact, class_="chip") for fact in about), class_="chips")
    title = tag("div", tag("p", "Second opinion", class_="kicker"), tag("h1", summary["model"]), chips)
    return tag("header", draw.logo(), title, class_="masthead")


def _numbers(summary: Mapping[str, Any]) -> Html:
    peer, ours = summary["peer"], summary["ours"]
    rows = [
        _number(f"{summary['title']}, {HOW[peer['how']]}", peer["value"], "–", peer["n"]),
        *(
            _number(f"{summary['title']}, reported in {name}", value, "–", None)
            for name, value in summary["reported"].items()
        ),
        _number(
            "Snellen, of every reply: one without a readable answer is not right",
            ours["value"],
            written_interval("accuracy", ours),
            ours["n"],
        ),
    ]
    if summary["strict"]:
        strict = summary["strict"]
        words = "Snellen, failed calls counted as wrong too"
        rows.append(_number(words, strict["value"], written_interval("accuracy", strict), strict["n"]))
    for name, split in summary["splits"].items():
        rows.append(_number(f"{summary['title']}, split {name or '(none)'}", split["peer"], "–", split["peer_n"]))
        rows.append(_number(f"Snellen, split {name or '(none)'}", split["ours"], "–", split["ours_n"]))
    columns = head("whose", ("value", "n"), ("95 % interval", "n"), ("n", "n"))
    return tag("div", scrolled("Two numbers", columns, tag("tbody", *rows)), class_="card")


def _number(name: str, value: float | None, interval: str, count: int | None) -> Html:
    shown = "–" if value is None else written_share(value)
    return row(name, *numbers([shown, interval, "–" if count is None else f"{count:,}"]))


def _between(summary: Mapping[str, Any]) -> Html:
    kinds = [
        row(summary["kinds"][kind]["what"], *numbers(_counts(summary["kinds"][kind])))
        for kind in SHOWN_KINDS
        if summary["kinds"][kind]["count"]
    ]
    steps = [
        row(
            step["what"],
            *numbers([f"{step['trials']:,}", f"{step['change'] * 100:+.2f}", written_share(step["after"])]),
        )
        for step in summary["steps"]
        if step["trials"]
    ]
    parts: list[Child] = []
    if kinds:
        columns = head("what", *((name, "n") for name in ("replies", *FAVOURS)))
        parts.append(scrolled("Disagreements by kind", columns, tag("tbody", *kinds)))
    if steps:
        columns = head("one cause after the other", *((name, "n") for name in ("replies", "points", "then")))
        parts.append(scrolled("From their number to ours", columns, tag("tbody", *steps)))
    return tag("div", *(parts or [tag("p", "Nothing: every reply is read and counted alike.")]), class_="card")


def _counts(entry: Mapping[str, Any]) -> list[str]:
    return [f"{entry[name]:,}" for name in ("count", *FAVOURS)]


def _replies(kind: str, summary: Mapping[str, Any], opinions: list[Opinion]) -> Iterator[Child]:
    entry = summary["kinds"][kind]
    if not opinions:
        return
    yield tag("h2", entry["what"][:1].upper() + entry["what"][1:])
    more = "" if len(opinions) == entry["count"] else f", the first {len(opinions):,} of {entry['count']:,}"
    where = f"all are in {summary['files']['list']}, and `snellen view` shows each with its picture"
    yield tag("p", f"{plural(len(opinions), 'row')}{more}; {where}.", class_="muted")
    columns = head("row", "question", "right answer", "they read", "we read", "favours", "reply")
    body = tag("tbody", *(_reply(opinion) for opinion in opinions))
    yield tag(
        "details", tag("summary", plural(len(opinions), "row")), scrolled(entry["what"], columns, body), open=True
    )


def _reply(opinion: Opinion) -> Html:
    name = opinion.sample + (f" · {opinion.repeat + 1}" if opinion.repeat else "")
    ours = opinion.our_read or (opinion.our_reason or "–") if opinion.our_value is None else opinion.our_read
    theirs = f"{opinion.peer_read or '–'} ({_value(opinion.peer_value)})"
    cells = [
        shorten(opinion.question, SHOWN_QUESTION) or "–",
        opinion.gold or "–",
        theirs,
        f"{ours or '–'} ({_value(opinion.our_value)})",
        opinion.favour,
    ]
    reply = tag("td", reply_text(opinion.reply, most=LONGEST_REPLY), class_="text")
    return row(name, *(tag("td", cell) for cell in cells), reply, name_class="mono")


def _value(value: float | None) -> str:
    if value is None:
        return "not scored"
    return {1.0: "right", 0.0: "wrong"}.get(value) or written("accuracy", {"value": value})


def _about(summary: Mapping[str, Any]) -> Iterator[Child]:
    lines = [*damage_lines(summary["damage"]), *summary["notes"]]
    yield tag("h2", "The file")
    told = (("file", summary["file"]), ("rows", summary["rows"]), ("failed calls", summary["failed"]))
    rules = ", ".join(f"{form}: {name}" for form, name in summary["rules"].items() if name)
    yield tag(
        "div", facts((*told, ("rules applied", rules))), tag("ul", *(tag("li", line) for line in lines)), class_="card"
    )


GROUPED = "all-of-group"
RECORDED, REPRODUCED, UNKNOWN = "recorded", "reproduced", "unknown"
STEPS = (
    ("replies read as they are written", (MISREAD, OTHERWISE)),
    ("no letters drawn", (DRAWN,)),
    ("failed calls left out", (FAILURE,)),
    ("replies without a readable answer counted as not right", (READ_INTO, UNREAD)),
    ("open answers that we do not score left out", (NOT_COMPARED,)),
    ("replies counted that the harness left out", (LEFT_OUT,)),
)
"""From the harness's number to ours, one cause after the other."""


class _Mean:
    """A sum and how many went in."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self.count += 1

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


class OpinionTally:
    """Adds up opinions, one trial at a time."""

    def __init__(self, aggregate: str = "mean", *, by_file: bool = False) -> None:
        self.aggregate, self._by_file = aggregate, by_file
        self.trials = self.failed = self.unscored = 0
        self.metric = ""
        """What our value is called."""
        self.kinds: Counter[tuple[str, str]] = Counter()
        self._recorded, self._reproduced, self._peer = _Mean(), _Mean(), _Mean()
        self._steps = [_Mean() for _ in STEPS]
        self._differ = self._unjudged = self._failed_right = 0
        self._splits: dict[str, tuple[_Mean, _Mean]] = {}
        self._groups: dict[str, list[tuple[float | None, float | None, bool]]] = {}

    def add(self, opinion: Opinion, *, failed: bool) -> None:
        """Count one trial."""
        self.trials += 1
        self.metric = self.metric or opinion.metric
        self.failed += failed
        self.unscored += opinion.our_value is None and not failed
        self.kinds[opinion.kind, opinion.favour] += 1
        self._recorded.add(opinion.recorded)
        self._reproduced.add(opinion.reproduced)
        self._peer.add(opinion.peer_value)
        self._unjudged += opinion.peer_value is None and not failed
        self._failed_right += opinion.kind == FAILURE and bool(opinion.peer_value)
        self._differ += _unlike(opinion)
        self._step(opinion)
        for mean, value in zip(self._split(opinion.split), (opinion.peer_value, opinion.our_worth), strict=True):
            mean.add(value)
        if self.aggregate == GROUPED:
            members = self._groups.setdefault(opinion.group or opinion.sample, [])
            members.append((opinion.reproduced, opinion.our_worth, failed))

    def _split(self, name: str) -> tuple[_Mean, _Mean]:
        if name not in self._splits:
            self._splits[name] = (_Mean(), _Mean())
        return self._splits[name]

    def _step(self, opinion: Opinion) -> None:
        """Add what the trial is worth after each cause is mended; the last step is our number."""
        value = opinion.peer_value
        for mean, (_, kinds) in zip(self._steps, STEPS, strict=True):
            if opinion.kind in kinds:
                value = opinion.our_worth
            mean.add(value)

    def described(self) -> dict[str, Any]:
        """Return everything counted, as plain data."""
        return {
            "trials": self.trials,
            "failed": self.failed,
            "unscored": self.unscored,
            "peer": self._peer_number(),
            "ours_of_groups": to_builtins(self._our_groups()) if self.aggregate == GROUPED else None,
            "steps": self._described_steps(),
            "kinds": {kind: self._described_kind(kind) for kind in KINDS},
            "failures_counted_as_right": self._failed_right,
            "splits": self._described_splits(),
        }

    def _described_splits(self) -> dict[str, Any]:
        """Return both numbers of each split, where a file holds several: a harness quotes them apart."""
        if len(self._splits) < 2 or self.aggregate == GROUPED or self._how() == UNKNOWN:
            return {}
        return {
            name: {"peer": peer.value, "peer_n": peer.count, "ours": ours.value, "ours_n": ours.count}
            for name, (peer, ours) in sorted(self._splits.items())
        }

    def _described_kind(self, kind: str) -> dict[str, Any]:
        found = {favour: self.kinds[kind, favour] for favour in (FOR, AGAINST, NEITHER)}
        return {"what": KINDS[kind], "count": sum(found.values()), **found}

    def _described_steps(self) -> list[dict[str, Any]]:
        """Return how far each cause moves the number; nothing where trials are not averaged one by one."""
        if self.aggregate == GROUPED or self._peer.value is None or self._how() == UNKNOWN:
            return []
        steps, before = [], self._peer.value
        for mean, (what, kinds) in zip(self._steps, STEPS, strict=True):
            after = mean.value if mean.value is not None else before
            count = sum(count for (kind, _), count in self.kinds.items() if kind in kinds)
            steps.append({"what": what, "trials": count, "change": after - before, "after": after})
            before = after
        return steps

    def _peer_number(self) -> dict[str, Any]:
        """Return the harness's number: from its own verdicts where the file has them, else by its rule."""
        how = self._how()
        mean = {RECORDED: self._recorded, REPRODUCED: self._reproduced}.get(how, _Mean())
        value, count = mean.value, mean.count
        if how == REPRODUCED and self.aggregate == GROUPED:
            rights = [all(bool(peer) for peer, _, _ in members) for members in self._groups.values()]
            value, count = (sum(rights) / len(rights) if rights else None), len(rights)
        return {
            "value": value,
            "n": count,
            "how": how,
            "aggregate": self.aggregate,
            "recorded": self._recorded.value,
            "recorded_n": self._recorded.count,
            "reproduced": self._reproduced.value,
            "reproduced_n": self._reproduced.count,
            "verdicts_unlike_the_rule": self._differ,
        }

    def _how(self) -> str:
        """Return where the number comes from; one of a part of the rows is no number."""
        if self._by_file or (self.aggregate == GROUPED and 0 < self._recorded.count == len(self._groups)):
            return RECORDED
        return REPRODUCED if self._reproduced.count and not self._unjudged else UNKNOWN

    def _our_groups(self) -> Estimate:
        """Return our share of groups all of whose members are right; with one outside and none wrong it is unscored."""
        values, unscored, failed = [], 0, 0
        for members in self._groups.values():
            ours = [value for _, value, _ in members]
            if any(value is not None and value < 1 for value in ours):
                values.append(0.0)
            elif None in ours:
                failed += any(lost for _, _, lost in members)
                unscored += not any(lost for _, _, lost in members)
            else:
                values.append(1.0)
        made = estimate_mean(np.array(values)) if values else Estimate(None)
        return replace(made, unscored=unscored, failed=failed, unit="groups")


def _unlike(opinion: Opinion) -> bool:
    """Tell whether the file's verdict is not what the rule gives; a drawn letter is nobody's rule."""
    if opinion.recorded is None or opinion.reproduced is None or opinion.kind == DRAWN:
        return False
    return abs(opinion.recorded - opinion.reproduced) > SAME


LISTED = 200
"""So many disagreements of a kind are shown on the page; all are in the list beside it."""
LIST, SUMMARY, PAGE = "second-opinion.jsonl", "second-opinion.json", "second-opinion.html"


class SecondOpinion(Struct, frozen=True):
    """What a second opinion found, and where it is written."""

    folder: Path
    summary: dict[str, Any]

    @property
    def page(self) -> Path:
        """Return the page to look at."""
        return self.folder / PAGE


@rare_collections()
def second_opinion(path: str | Path, *, read_as: str | None = None, **importing: Any) -> SecondOpinion:
    """Read predictions a second time: those of a foreign file (imported first), or of a run that was imported.

    `read_as` names the harness's rule for choices, where its card does not know the benchmark or the file names no
    harness. Other settings are those of `import_predictions`.
    """
    folder = Path(path)
    if not (folder / "run.db").exists():
        folder = import_predictions(path, **importing).folder
    elif any(value is not None for value in importing.values()):
        raise UsageError(f"{path} is a run already: options for importing say nothing of it; leave them out")
    with RunReader(folder) as reader:
        about = reader.meta(IMPORTED)
        if not about:
            raise UsageError(f"{folder} holds replies that were asked for here: `snellen score` reads them otherwise")
        return SecondOpinion(folder, _form_opinion(reader, about, read_as))


def _form_opinion(reader: RunReader, about: Mapping[str, Any], read_as: str | None) -> dict[str, Any]:
    card, task = peer_card(about["harness"]), reader.header().tasks[0]
    rules = card.rules(about["peer_task"])
    if read_as is not None:
        rules = msgspec.structs.replace(rules, choice=peer_reader(read_as).name)
    protocol = peer_protocol(rules.choice, rules.yesno, rules.open)
    by_file = read_as is None and rules.aggregate != GROUPED and _has_verdicts(card, about)
    tally, shown = OpinionTally(rules.aggregate, by_file=by_file), Shown(LISTED)
    with atomic_file(Path(reader.folder) / LIST) as file:
        encode = msgspec.json.Encoder().encode
        for opinion, failed in _opinions(reader, task, protocol, by_file=by_file):
            tally.add(opinion, failed=failed)
            if opinion.kind:
                shown.add(opinion)
                file.write(encode(opinion) + b"\n")
    summary = _summary(reader, about, (card, rules), tally)
    _write(Path(reader.folder), summary, shown)
    return summary


def _has_verdicts(card: PeerCard, about: Mapping[str, Any]) -> bool:
    """Tell whether the file says what the harness counted: of every reply, or of all that it counted."""
    replies = about["rows"] - about["failed"]
    return about["judged"] > 0 and (card.leaves_out or about["judged"] >= replies)


def _opinions(
    reader: RunReader, task: Task, protocol: PeerProtocol, *, by_file: bool
) -> Iterator[tuple[Opinion, bool]]:
    for (sample, request, prediction, _), scores in scored_trials(reader, task, default_registry(), {}, task.scorers):
        score = scores[0] if scores else None
        opinion = opinion_on(protocol, sample, request, prediction, score, by_file=by_file)
        yield opinion, prediction.failure is not None


def _summary(
    reader: RunReader, about: Mapping[str, Any], known: tuple[PeerCard, PeerRules], tally: OpinionTally
) -> dict[str, Any]:
    card, rules = known
    result = read_results(reader, reader.header())["tasks"][about["task"]]
    metrics = result["metrics"]
    name, ours = (tally.metric, metrics[tally.metric]) if tally.metric in metrics else headline(result)
    counted = tally.described()
    grouped = counted.pop("ours_of_groups")
    summary: dict[str, Any] = {
        **about,
        "title": card.title,
        "seen": card.seen,
        "rules": {"choice": rules.choice, "yesno": rules.yesno, "open": rules.open},
        **counted,
        "metric": name,
        "ours": grouped or dict(ours),
        "strict": None if grouped else metrics.get(f"{name}_strict"),
        "notes": [*about["notes"], *([rules.note] if rules.note else [])],
        "files": {"list": LIST, "summary": SUMMARY, "page": PAGE},
    }
    return {**summary, "in_words": opinion_sentence(summary)}


def _write(folder: Path, summary: Mapping[str, Any], shown: Shown) -> None:
    body = msgspec.json.format(msgspec.json.encode(summary, order="sorted"), indent=2)
    write_atomically(folder / SUMMARY, lambda file: file.writelines((body, b"\n")))
    page = render_opinion(summary, shown).encode("utf-8")
    write_atomically(folder / PAGE, lambda file: file.write(page))
