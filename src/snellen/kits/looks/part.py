"""What looking again was worth to tables: for the terminal, the page of a run, and runs side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...core.looks import BASE, ELSEWHERE, GOLD, GREY, LOOK_ARMS, NOTHING, PLAIN, WHOLE
from ...core.markup import Child, tag
from ...core.tasks import Task
from ...core.types import BASE_VARIANT
from ...model.served.prices import money
from ...report.pages.report_page import Address
from ...report.pages.sheet import Sheet, sheet_grid, sheet_table
from ...report.terminal import said_points, said_share
from .figures import (
    KEPT_RIGHT,
    LOOK_KINDS,
    MISLED,
    PART,
    PICTURE_EFFECT,
    REPAIRED,
    REPAIRED_UNCALLED,
    SPENT,
    SPOILT,
    SPOILT_UNCALLED,
    STAYED_WRONG,
    WORTH,
    ZOOM_EFFECT,
)

if TYPE_CHECKING:
    from rich.table import Table

    from ...store.reader import RunReader
    from .pairs import ComparedLooks

TITLE = "What looking again was worth"
ARM_WORDS = {
    BASE: "what it asked to see",
    PLAIN: "no tools offered",
    NOTHING: "told that there is no picture",
    GREY: "a grey picture of the crop's size",
    ELSEWHERE: "another place, of the crop's size",
    WHOLE: "the whole picture at the crop's number of pixels",
    GOLD: "the region that the data names",
}
EFFECT_WORDS = {
    WORTH: ("worth", "with tools − plainly asked"),
    PICTURE_EFFECT: ("picture effect", "true crops − grey ones"),
    ZOOM_EFFECT: ("zoom effect", "crops − the whole picture again"),
    MISLED: ("misled", "told of none − shown another place"),
}
KIND_WORDS = {
    REPAIRED: "plainly wrong, right after a call",
    REPAIRED_UNCALLED: "plainly wrong, right with tools though none was called",
    SPOILT: "plainly right, wrong after a call",
    SPOILT_UNCALLED: "plainly right, wrong with tools though none was called",
    KEPT_RIGHT: "right both ways",
    STAYED_WRONG: "wrong both ways",
}


def figure(estimate: Mapping[str, Any] | None, digits: int = 2, unit: str = "") -> str:
    """Return a number with its interval; a dash where there is none."""
    if estimate is None or estimate["value"] is None:
        return "–"
    ends = estimate["ci95"]
    interval = f" [{ends[0]:,.{digits}f} – {ends[1]:,.{digits}f}]" if ends else ""
    return f"{estimate['value']:,.{digits}f}{unit}{interval}"


def look_sheets(found: Mapping[str, Any]) -> Iterator[Sheet]:
    """Yield the tables of one task's looks: effects, what was repaired and spoilt, how tools were used."""
    yield _arms_sheet(found)
    if found["effects"]:
        yield _effects_sheet(found)
    if found["split"]:
        yield _split_sheet(found["split"])
    yield Sheet("how tools were used", ("of trials with tools", "figure"), tuple(_use_rows(found)))


def _in_order(found: Mapping[str, Any], names: Iterable[str]) -> list[tuple[str, Any]]:
    """Return what there is in an order of ours: a stored file has the alphabet's."""
    return [(name, found[name]) for name in names if name in found]


def _arms_sheet(found: Mapping[str, Any]) -> Sheet:
    rows = [
        (name, ARM_WORDS[name], said_share(arm["score"]), f"{arm['score']['n']:,}")
        for name, arm in _in_order(found["arms"], LOOK_ARMS)
    ]
    return Sheet(f"{TITLE.lower()}: {found['metric']} by arm", ("arm", "shown for a crop", "score", "trials"), (*rows,))


def _effects_sheet(found: Mapping[str, Any]) -> Sheet:
    rows = []
    for name, one in _in_order(found["effects"], EFFECT_WORDS):
        left_out = f"; {one['left_out']:,} only in one arm" if one["left_out"] else ""
        rows.append((EFFECT_WORDS[name][0], EFFECT_WORDS[name][1], said_points(one), f"{one['n']:,}{left_out}"))
    if found["reliance"] is not None:
        own = found["reliance"]
        rows.append(("reliance", "(true − grey) / (gold − grey)", said_share(own), f"{own['n']:,}"))
    note = "Points of a hundred, paired question by question, with 95 % intervals."
    return Sheet("effects of looking", ("effect", "is", "points", "questions"), tuple(rows), note)


def _split_sheet(split: Mapping[str, Any]) -> Sheet:
    rows = []
    for name in LOOK_KINDS[:4]:
        part = split[name]
        chance = "not known" if part["chance"] is None else f"{part['chance'] * 100:.1f} %"
        beyond = said_points(part["beyond"])
        rows.append((name.replace("-", ", "), KIND_WORDS[name], said_share(part["rate"]), chance, beyond))
    columns = ("question", "is", "share", "by chance alone", "beyond chance, points")
    note = (
        "By chance alone: what flips between two plain replies to the same question. Repaired less spoilt is the worth."
    )
    return Sheet("repaired and spoilt", columns, tuple(rows), note)


def _use_rows(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    use, aimed = found["used"], found["aim"]
    yield "trials that called a tool", said_share(use["call_rate"])
    yield "looks a trial", figure(use["looks"])
    valid = "–" if use["valid"] is None else f"{use['valid'] * 100:.1f} % of {use['calls']:,}"
    yield "calls that were done", valid
    yield "classes of calls that were not", _counted(use["classes"])
    yield "how trials ended", _counted(use["ends"])
    yield "turns a trial", figure(use["turns"])
    yield "tokens a trial", figure(use["tokens"], 0)
    yield "seconds a trial", figure(use["seconds"])
    yield "enlargement of a crop", figure(aimed["enlargement"], 1, " ×")
    yield "of a picture looked at", said_share(aimed["looked_at"])
    if aimed["holds_half"]["value"] is not None:
        yield "crops that hold half of the gold box", said_share(aimed["holds_half"])
        yield "overlap of a crop with the gold box (IoU)", figure(aimed["overlap"], 3)
        yield "trials whose looks together hold half of every gold box", said_share(aimed["found"])
    yield from _price_rows(found)


def _price_rows(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    names = {REPAIRED: "one repaired question costs more", "gained": "one more right answer costs more"}
    for kind, by in _in_order(found["price"], names):
        known = [(name, one) for name, one in _in_order(by, SPENT) if one["value"] is not None]
        told = [_price(name, one, found["currency"]) for name, one in known]
        if told:
            yield names[kind], " · ".join(told)
        elif by:
            yield names[kind], "– (it is not clear that there is any)"


def _price(name: str, one: Mapping[str, Any], currency: str) -> str:
    if name != "money":
        return figure(one, 0 if name == "tokens" else 1, f" {name}")
    ends = f" [{money(one['ci95'][0])} – {money(one['ci95'][1])}]" if one["ci95"] else ""
    return f"{money(one['value'], currency)}{ends}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "–"


def look_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the same for the terminal."""
    return map(sheet_grid, look_sheets(found))


def looks_section(
    _reader: RunReader, _task: Task, found: Mapping[str, Any], address: Address | None = None
) -> Iterator[Child]:
    """Yield what looking again was worth: arms, effects, repaired and spoilt, use; with ways to the trials."""
    yield tag("h2", TITLE)
    yield tag("p", in_words(found))
    yield from (tag("div", sheet_table(sheet), class_="card") for sheet in look_sheets(found))
    if address is None:
        return

    def to(kind: str) -> str:
        """Return the address of the trials of questions of one kind, or of one class, with true crops."""
        return address(PART, kind, BASE_VARIANT)

    ways = [(name, f" {KIND_WORDS[name]}") for name in LOOK_KINDS if found["questions"].get(name)]
    counts = [tag("li", tag("a", f"{found['questions'][name]:,}", href=to(name)), words) for name, words in ways]
    other = {**found["used"]["classes"], **found["used"]["ends"]}
    classes = [tag("li", tag("a", name, href=to(name)), f" ({count:,})") for name, count in other.items()]
    if counts:
        yield from (tag("h3", "Question by question"), tag("ul", *counts))
    if classes:
        yield from (tag("h3", "By class"), tag("ul", *classes, class_="inline"))


def in_words(found: Mapping[str, Any]) -> str:
    """Return in a sentence or two whether looking again mattered."""
    use, effects = found["used"], found["effects"]
    said = [f"A tool was called in {said_share(use['call_rate'])} of {use['trials']:,} trials."]
    if (worth := effects.get(WORTH)) and worth["value"] is not None:
        said.append(f"Tools are worth {said_points(worth)} points beside the plain question{_clear(worth)}.")
    if (picture := effects.get(PICTURE_EFFECT)) and picture["value"] is not None:
        said.append(f"What the crops show is worth {said_points(picture)} beside grey ones{_clear(picture)}.")
    return " ".join(said)


def _clear(estimate: Mapping[str, Any]) -> str:
    ends = estimate["ci95"]
    return ", which may be nothing" if ends is None or ends[0] <= 0.0 <= ends[1] else ""


def compared_sheet(task: str, looks: ComparedLooks) -> Sheet:
    """Return runs with tools side by side, what tools were worth beside runs without, and how effects differ."""
    rows: list[tuple[str, ...]] = []
    for name, found in looks.runs.items():
        told = [
            f"{EFFECT_WORDS[effect][0]} {said_points(one)}" for effect, one in _in_order(found["effects"], EFFECT_WORDS)
        ]
        called = f"tools called in {said_share(found['used']['call_rate'])} of trials"
        rows.append((name, "; ".join([*told, called])))
    for pair in looks.beside_plain:
        split = "; ".join(f"{name.replace('-', ', ')} {_part(part)}" for name, part in pair.split.items())
        worth = f"worth {said_points(pair.worth)} on {pair.worth['n']:,} questions"
        rows.append((f"{pair.plain} → {pair.tools}", f"{worth}; {split}"))
    for change in looks.changes:
        effect = EFFECT_WORDS[change.effect][0]
        rows.append((f"{change.first} → {change.second}", f"{effect} {said_points(change.difference)}"))
    note = "Points of a hundred, paired by question, with 95 % intervals. An arrow: the second less the first."
    return Sheet(f"{task}: {TITLE.lower()}", ("run", "points"), tuple(rows), note)


def _part(part: Mapping[str, Any]) -> str:
    share = said_share(part["rate"])
    return share if part["chance"] is None else f"{share}, {part['chance'] * 100:.1f} % by chance alone"


def way(task: Task) -> str:
    """Return how a task was asked: with tools, whether or not there are arms beside."""
    return f"with {', '.join(task.infer_options.get('tools', ('zoom',)))}"
