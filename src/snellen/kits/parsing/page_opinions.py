"""A folder of parsed pages read twice: by the rule of a benchmark and by ours, page by page and block by block."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from ...core.builtins import default_registry
from ...core.errors import DataError, UsageError
from ...core.markup import Child, Html, shorten, tag
from ...core.protocols import LoadContext
from ...core.types import Prediction, Request, Sample, Score, TrialKey
from ...data.catalog import Catalog
from ...report.files import write_atomically
from ...report.pages.parts import head, numbers, row, scrolled
from ...stats.intervals import estimate_mean
from .blocks import read_page
from .page_score import score_page
from .scorers import gold_of, score, score_official

CARDS = {
    "omnidocbench-1.6": "omnidocbench-1.6",
    "omnidocbench-1.5": "omnidocbench-1.5",
    "olmocr-bench": "olmocr-bench",
    "ocrbench-v2": "ocrbench-v2-parsing",
    "cc-ocr": "cc-ocr-parsing",
}
"""Rules that pages can be read as, and the card whose gold pages they are held against."""
RULE_OF = {"omnidocbench-1.5": "omnidocbench-1.6"}
LISTED = 50
LARGEST = 10_000_000
MISSING = "no prediction"
_STATES = ("read", "truncated", "loop", "refused", "empty", MISSING)


class PageOpinion(Struct, frozen=True):
    """What a second opinion on parsed pages found, and where it is written."""

    folder: Path
    summary: dict[str, Any]

    @property
    def page(self) -> Path:
        """Return the page to look at."""
        return self.folder / "second-opinion.html"


def second_page_opinion(
    path: Path, rule: str, *, data: str | None = None, output: Path | None = None, **unused: Any
) -> PageOpinion:
    """Read a folder of predictions (`STEM.md`, `STEM.mmd`, `IMAGE.md`, `PDF_pgN_repeatK.md`) by a rule and by ours.

    `data` is where the benchmark lies. A page without a file is counted as no prediction, never as an empty page.
    """
    if unused:
        raise UsageError(f"--{next(iter(unused)).replace('_', '-')} says nothing of parsed pages; leave it out")
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder of predictions (STEM.md)")
    overrides = [("dataset.path", data)] if data else []
    task = Catalog().task(CARDS[rule], overrides, "official")
    load = default_registry().get("loader", str(task.dataset["loader"]))
    rows = [_judged(sample, path, RULE_OF.get(rule, rule)) for sample in load(task, LoadContext(root=Path()))]
    if not any(one["state"] != MISSING for one in rows):
        raise DataError(f"{path}: none of the {len(rows):,} pages has a prediction; a page a.jpg has its text in a.md")
    folder = output or path.parent / f"{path.name}-second-opinion"
    folder.mkdir(parents=True, exist_ok=True)
    summary = _summary(rule, rows)
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in rows)
    _write(folder / "second-opinion.jsonl", lines)
    _write(folder / "second-opinion.json", json.dumps(summary, indent=1, ensure_ascii=False).encode())
    _write(folder / "second-opinion.html", str(_html(rule, summary, rows)).encode())
    return PageOpinion(folder, summary)


def _write(path: Path, content: bytes) -> None:
    write_atomically(path, lambda file: file.write(content))


def prediction_of(sample: Sample, folder: Path) -> str | None:
    """Return what a folder has for a page, or None."""
    name = sample.id
    stem = name.rsplit(".", 1)[0]
    bare = stem.replace(".pdf", "")
    for candidate in (f"{stem}.md", f"{bare}.mmd", f"{bare}.md", f"{name}.md", f"{bare}_repeat1.md"):
        place = folder / candidate
        if place.is_file():
            if place.stat().st_size > 4 * LARGEST:
                raise DataError(f"{place}: larger than {4 * LARGEST:,} bytes")
            return place.read_text("utf-8", errors="replace")
    return None


def _judged(sample: Sample, folder: Path, rule: str) -> dict[str, Any]:
    text = prediction_of(sample, folder)
    key = TrialKey("pages", sample.id)
    request = Request(key, ())
    reply = Prediction(key, text=text or "")
    theirs = _values(score_official(sample, request, reply, {"rule": rule}))
    ours = score(sample, request, reply, {}) if gold_of(sample) else []
    main = next((one for one in ours if one.metric == "page"), None)
    state = MISSING if text is None else str((main.detail if main else {}).get("state", "read"))
    return {
        "page": sample.id,
        "state": state,
        "theirs": theirs,
        "ours": _values(ours),
        "apart": _apart(theirs, main),
        "blocks": _blocks(sample, text or "") if main is not None and text else [],
    }


def _values(scores: Any) -> dict[str, float | str]:
    known: Mapping[str, Score] = {one.metric: one for one in scores}
    return {
        name: round(one.value, 6) if one.value is not None else str(one.reason)
        for name, one in known.items()
        if one.value is not None or one.reason != "no_reference"
    }


def _apart(theirs: Mapping[str, float | str], ours: Score | None) -> float:
    """Return how far the two are apart, in points: theirs by the mean of the parts that 1 is best of."""
    named = [theirs[name] for name in ("text", "table_teds", "accuracy", "tests") if name in theirs]
    parts = [value for value in named if isinstance(value, float)]
    if not parts or ours is None:
        return 0.0
    return round(100 * (sum(parts) / len(parts) - (ours.value or 0.0)), 2)


def _blocks(sample: Sample, text: str) -> list[str]:
    """Return in words what our rule counts and a rule that only looks at matched blocks does not."""
    found = score_page(gold_of(sample), read_page(text))
    words = [f"invented: {found.reply.blocks[n].text[:80]}" for n in found.invented[:10]]
    words += [f"missed: {found.gold[n].category} {found.gold[n].text[:80]}" for n in found.missed[:10]]
    if found.order is not None and found.order < 1:
        words.append(f"order: {100 * (1 - found.order):.0f} % of pairs of blocks stand the wrong way round")
    return words


def _summary(rule: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    ours = [one["ours"].get("page") for one in rows if one["state"] != MISSING and "page" in one["ours"]]
    mean = estimate_mean(np.array([value if isinstance(value, float) else 0.0 for value in ours]))
    names = sorted({name for one in rows for name, value in one["theirs"].items() if isinstance(value, float)})
    theirs = {}
    for name in names:
        known = [one["theirs"][name] for one in rows if isinstance(one["theirs"].get(name), float)]
        theirs[name] = {"value": round(sum(known) / len(known), 6), "pages": len(known)}
    return {
        "rule": rule,
        "scored_by": RULE_OF.get(rule, rule),
        "pages": len(rows),
        "states": {state: count for state in _STATES if (count := sum(one["state"] == state for one in rows))},
        "theirs": theirs,
        "ours": {"page": mean.value, "ci95": mean.ci95, "pages": len(ours)},
        "most_apart": [one["page"] for one in sorted(rows, key=lambda one: -abs(one["apart"]))[:10]],
    }


def opinion_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a second opinion says, for a terminal."""
    states = ", ".join(f"{count:,} {state}" for state, count in summary["states"].items())
    yield f"{summary['pages']:,} pages: {states}"
    theirs = ", ".join(f"{name} {one['value']:.4f} ({one['pages']:,} pages)" for name, one in summary["theirs"].items())
    yield f"theirs, by the rule {summary['scored_by']}: {theirs}"
    if summary["ours"]["pages"]:
        low, high = summary["ours"]["ci95"]
        value = f"page {100 * summary['ours']['page']:.1f} of 100 (95 % {100 * low:.1f} to {100 * high:.1f}"
        yield f"ours: {value}, {summary['ours']['pages']:,} pages)"
    else:
        yield "ours: the benchmark has no gold text, only tests"
    yield f"most apart: {', '.join(summary['most_apart'][:5])}"


def _html(rule: str, summary: Mapping[str, Any], rows: list[dict[str, Any]]) -> Html:
    worst = sorted(rows, key=lambda one: -abs(one["apart"]))[:LISTED]
    body: list[Child] = [tag("h1", f"Second opinion on parsed pages: {rule}")]
    body += [tag("p", line) for line in opinion_lines(summary)]
    table = [
        row(
            one["page"],
            one["state"],
            *numbers([f"{one['apart']:+.1f}"]),
            tag("td", shorten("; ".join(one["blocks"]), 600)),
        )
        for one in worst
    ]
    names = head("page", "state", ("theirs - ours, points", "n"), "what our rule counts")
    body.append(scrolled("Pages", tag("caption", "Pages that part the two most"), names, tag("tbody", *table)))
    style = tag(
        "style", "body{font-family:sans-serif;margin:2rem}td,th{padding:.3rem;text-align:left;vertical-align:top}"
    )
    top = tag("head", tag("meta", charset="utf-8"), tag("title", "Second opinion on parsed pages"), style)
    return Html(f"<!doctype html>{tag('html', top, tag('body', *body), lang='en')}")
