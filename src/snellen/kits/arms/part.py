"""The arms of a run to tables, to a section of its page, and to files: what does not need its picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.table import Table

from ...core.markup import Child, Html, shorten, tag
from ...core.tasks import Task
from ...core.text import plural
from ...core.types import TrialKey
from ...core.variants import ARMS, PICTURE, find_arms
from ...report.files import atomic_file
from ...report.pages import draw
from ...report.pages.gallery import read_trial
from ...report.pages.parts import DRAWN, head, numbers, reply_text, row, scrolled
from ...report.pages.report_page import Address
from ...report.terminal import count_text, said_points, said_share, with_interval
from ...report.written import written, written_interval
from ...scoring.aggregates.counted import arms_table
from ...scoring.stored import stored_tables
from ...store.reader import RunReader
from .figures import (
    CLASSES,
    HARMED,
    KEEPS,
    NEEDS,
    NEITHER,
    PICTURE_KEY,
    Arms,
    Question,
    chances,
    is_judged,
    left_out,
)

FILE, SUBSET = "arms.jsonl", "needs-picture"
LISTED = 40
"""Questions that the page lists; the file has all."""
WORDS = {
    NEEDS: "right with the picture, wrong without it",
    KEEPS: "right with and without it",
    HARMED: "right without it alone",
    NEITHER: "wrong both ways",
}


def arms_tables(arms: Mapping[str, Any]) -> Iterator[Table]:
    """Yield what each arm keeps of the score with the picture."""
    table = Table(title="what the picture is worth", title_justify="left", title_style="bold")
    table.add_column("arm")
    for column in ("score", "picture adds, points", "kept", "kept above guessing", "says it sees none", "questions"):
        table.add_column(column, justify="right")
    metric = arms["metric"]
    score = arms["picture"]["score"]
    table.add_row("picture", with_interval(metric, score), "", "", "", count_text(arms["picture"]["unseen"]), "")
    for name, arm in in_order(arms["arms"]):
        shares = [said_points(arm["gain"]), *(said_share(arm[kind]) for kind in ("kept", "kept_above_chance"))]
        counts = count_text(arm["unseen"]), count_text(arm["questions"])
        table.add_row(name, with_interval(metric, arm["score"]), *shares, *counts)
    yield table


def in_order(arms: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return arms as people think of them: what takes most away first."""
    return sorted(arms.items(), key=lambda pair: list(ARMS).index(pair[0]))


def write_arms(folder: Path) -> None:
    """Write what each question did in arms (arms.jsonl), and the subset of those that need the picture.

    A pure function of run.db; nothing is written before its first reply.
    """
    lines: list[bytes] = []
    kept: list[str] = []
    told: list[str] = []
    with RunReader(folder) as reader:
        for task in reader.header().tasks:
            arms = stored_arms(reader, task)
            if arms is None:
                continue
            questions = arms.questions()
            judged = is_judged(questions)
            out = set(left_out(questions, judged=judged))
            kept += [one.sample for one in questions if one.kind and one.sample not in out]
            rule = "right without it beyond guessing, 5 % false" if judged else "mostly right without it"
            told.append(f"{task.name}: {len(out)} of {len(questions)} left out ({rule}, arm {arms.first})")
            lines += [_line(reader, task, arms, one) for one in questions]
        run = reader.header().id
    with atomic_file(folder / FILE) as file:
        file.writelines(lines)
    if kept:
        _write_subset(folder, kept, f"By run {run}. {'; '.join(told)}.")


def _write_subset(folder: Path, kept: Sequence[str], notes: str) -> None:
    (folder / "subsets").mkdir(exist_ok=True)
    card = {"title": "Questions that need their picture", "notes": notes, "ids": list(dict.fromkeys(kept))}
    with atomic_file(folder / "subsets" / f"{SUBSET}.toml") as file:
        file.writelines(b"%s = %s\n" % (name.encode(), msgspec.json.encode(value)) for name, value in card.items())


def stored_arms(reader: RunReader, task: Task) -> Arms | None:
    """Return the arms of a stored task; None where it has none."""
    if not find_arms(task.variants):
        return None
    table = arms_table(task, stored_tables(reader, task.name))
    if table is None or not find_arms(table.variants):
        return None
    return Arms(table, chances(reader.samples(task.name)))


def _line(reader: RunReader, task: Task, arms: Arms, one: Question) -> bytes:
    """Return one question as a line: its class, verdict and counts, and its first reply in every arm."""
    replies = {}
    for arm in arms.arms:
        shown = read_trial(reader, TrialKey(task.name, one.sample, arm.variant))
        replies[arm.name] = None if shown is None else shown.text
    line = {
        "task": task.name,
        "sample": one.sample,
        "class": one.kind or None,
        "verdict": one.verdict or None,
        "with_picture": {"right": one.with_it[0], "replies": one.with_it[1]},
        "without": {"arm": arms.first, "right": one.without[0], "replies": one.without[1]},
        "replies": replies,
    }
    return msgspec.json.encode(line) + b"\n"


def arms_section(reader: RunReader, task: Task, found: Mapping[str, Any], to: Address | None = None) -> Iterator[Child]:
    """Yield what the picture is worth: the arms, groups, and the questions answered without it with their replies."""
    yield tag("h2", "What the picture is worth")
    yield tag("p", in_words(found))
    yield tag("div", _arms_table(found), *_group_tables(found), class_="card")
    yield from _questions(reader, task, found, to)


def in_words(found: Mapping[str, Any]) -> str:
    """Return the worth of the picture as a sentence or two."""
    first, metric = found["arms"][found["first"]], found["metric"].replace("_", " ")
    if first["with"] is None:
        return "Nothing can be said yet: no question has a reply with and without the picture."
    scores = f"{first['without'] * 100:.1f} of {first['with'] * 100:.1f} % {metric} are left in arm {found['first']}"
    if first["kept"]["value"] is None:
        return f"{scores}."
    said = f"{scores}: {said_share(first['kept'])} of the score is kept"
    above = first["kept_above_chance"]
    if above["value"] is None:
        return f"{said}. The score is not clearly above guessing, so which share needs the picture cannot be told."
    needs = f"{(1 - above['value']) * 100:.1f} %"
    if above["ci95"]:
        needs += f" [{(1 - above['ci95'][1]) * 100:.1f} – {(1 - above['ci95'][0]) * 100:.1f}]"
    beyond = f" above guessing ({first['chance'] * 100:.0f} %)" if first["chance"] else ""
    return f"{said}. {needs} of the score{beyond} needs the picture."


def _arms_table(found: Mapping[str, Any]) -> Html:
    metric, score = found["metric"], found["picture"]["score"]
    rows = [_arm_row(PICTURE, metric, score, ("", "", ""), found["picture"]["unseen"])]
    for name, arm in in_order(found["arms"]):
        shares = (said_points(arm["gain"]), said_share(arm["kept"]), said_share(arm["kept_above_chance"]))
        rows.append(_arm_row(name, metric, arm["score"], shares, arm["unseen"]))
    columns = ("value", "95 % interval", "picture adds, points", "kept", "kept above guessing", "says it sees none")
    names = head("arm", *((name, "n") for name in columns), DRAWN)
    caption = f"{metric} by arm; differences are paired, question by question"
    return scrolled(caption, tag("caption", caption), names, tag("tbody", *rows))


def _arm_row(name: str, metric: str, score: Mapping[str, Any], shares: Sequence[str], unseen: int) -> Html:
    cells = numbers((written(metric, score), written_interval(metric, score), *shares, f"{unseen:,}"))
    drawn = draw.interval(score["value"], score.get("ci95"), 0.0, 1.0) if score["value"] is not None else ""
    return row(name, *cells, tag("td", drawn, class_="bar"))


def _group_tables(found: Mapping[str, Any]) -> Iterator[Html]:
    for key, groups in found["groups"].items():
        rows = [
            row(
                value,
                *numbers(
                    (
                        _percent(part["with"]),
                        _percent(part["without"]),
                        said_points(part["gain"]),
                        said_share(part["kept"]),
                        said_share(part["kept_above_chance"]),
                        f"{part['questions']:,}",
                    )
                ),
            )
            for value, part in groups.items()
        ]
        columns = ("with", f"arm {found['first']}", "picture adds, points", "kept", "kept above guessing", "questions")
        caption = f"The same by {key}"
        table = scrolled(caption, tag("caption", caption), head(key, *((name, "n") for name in columns)), *rows)
        yield tag("details", tag("summary", caption), table)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.1f} %"


def _questions(reader: RunReader, task: Task, found: Mapping[str, Any], to: Address | None) -> Iterator[Child]:
    """Yield how many questions are of which class, and those answered without the picture, with their replies."""
    arms = stored_arms(reader, task)
    if arms is None:
        return
    variant = next(arm.variant for arm in arms.arms if arm.name == found["first"])
    counts = [
        tag(
            "li", tag("a", f"{count:,}", href=to(PICTURE_KEY, kind, variant)) if to else f"{count:,}", f" {WORDS[kind]}"
        )
        for kind, count in ((kind, found["questions"][kind]) for kind in CLASSES)
    ]
    yield tag("h3", "Question by question")
    yield tag("ul", *counts)
    if found["verdicts"]:
        said = ", ".join(f"{count:,} {words}" for words, count in found["verdicts"].items())
        yield tag("p", f"Verdicts that hold at 5 % false discoveries: {said}.")
    blind = [one for one in arms.questions() if one.kind in (KEEPS, HARMED)]
    cards = [card for one in blind[:LISTED] if (card := _blind_row(reader, task, variant, one)) is not None]
    if cards:
        words = f"{plural(len(blind), 'question')} answered without the picture"
        shown = f" (the first {len(cards)}; all in {FILE})" if len(blind) > len(cards) else ""
        names = head("sample", "question", "expected", "reply without the picture", "with it")
        table = scrolled(words, tag("caption", words), names, tag("tbody", *cards))
        fix = f"--subset {Path(reader.folder).name}/{SUBSET} asks without them"
        yield tag("details", tag("summary", f"{words}{shown}; {fix}"), table, open=len(cards) <= LISTED)


def _blind_row(reader: RunReader, task: Task, variant: str, one: Question) -> Html | None:
    shown = read_trial(reader, TrialKey(task.name, one.sample, variant))
    if shown is None:
        return None
    right = f"{one.with_it[0]} of {one.with_it[1]} right; without {one.without[0]} of {one.without[1]}"
    cells = (
        tag("td", shorten(shown.sample.question, 160)),
        tag("td", shorten("\n".join(shown.sample.answers), 80)),
        tag("td", reply_text(shown.text, shown.span, most=300)),
        tag("td", right + (f"; {one.verdict}" if one.verdict else ""), class_="small"),
    )
    return row(one.sample, *cells)
