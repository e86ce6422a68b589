"""The scorers of pages: `parse`, our own rule, and `parse_official`, the rule of the benchmark that the card names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from ...core.errors import ConfigError, EnvironmentProblem, not_among
from ...core.types import Estimate, Prediction, Request, Sample, Score, TrialKey
from ...extract.extraction import EMPTY, REFUSED, TRUNCATED
from ...scoring.scorers.replies import NO_REFERENCE
from ...scoring.tables.table import ScoredTask
from . import ccocr, cdm, ocrbench, olmocr, omnidoc
from .blocks import MOST_CHARACTERS, Block, Cell, Kind, read_gold, read_page
from .omnidoc_match import Gold
from .page_score import PageScore, score_page
from .states import State, state_of, without_thinking
from .teds import TableTooLarge

METRICS = ("page", "text", "tables", "formulas", "order", "headings")
"""What `parse` gives of every page, from 0 to 1; one that a page has nothing for is not scored."""
BESIDE = ("precision", "recall", "words_precision", "words_recall", "letters", "table_structure", "cells")
RATES = ("loop_rate", "truncated_rate", "invented_rate")
UNSCORABLE = "not scored: "
DETAIL_BLOCKS = 60


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Scorer `parse`: how much of a page was read right, what was missed, what was invented, in which order.

    A reply without any page in it (empty, refused, cut within its thinking) has no value but a reason; one that was cut
    or ran into a loop has the value of what it read, and is counted in `truncated_rate` or `loop_rate`.
    """
    gold = gold_of(sample)
    if not sum(block.mass for block in gold):
        return [Score(request.key, name, None, reason=NO_REFERENCE) for name in METRICS]
    text = without_thinking(prediction.text or "")
    state = State.TRUNCATED if text is None else state_of(text, prediction.finish)
    if text is None or not text.strip():
        return [*_unread(request.key, gold, EMPTY if state is State.EMPTY else TRUNCATED), *_rates(request.key, state)]
    found = score_page(gold, read_page(text))
    if state is State.REFUSED and not found.content:
        return [*_unread(request.key, gold, REFUSED), *_rates(request.key, state)]
    return [*_scores(request.key, found, state, text), *_rates(request.key, state, found)]


def gold_of(sample: Sample) -> tuple[Block, ...]:
    """Return the blocks of a sample's page: its `blocks`, or its answer read as a page."""
    blocks = sample.meta.get("blocks")
    return _gold(msgspec.json.encode(blocks).decode() if blocks else "", "\n\n".join(sample.answers))


@lru_cache(maxsize=64)
def _gold(blocks: str, text: str) -> tuple[Block, ...]:
    return read_gold(msgspec.json.decode(blocks) if blocks else text)


def _unread(key: TrialKey, gold: tuple[Block, ...], reason: str) -> Iterator[Score]:
    kinds = {block.kind for block in gold}
    asked = {"page", *(name for kind, name in _NAMES.items() if kind in kinds)}
    asked |= {"order"} if len(gold) > 1 else set()
    asked |= {"headings"} if any(block.level or block.category == "title" for block in gold) else set()
    for name in METRICS:
        yield Score(key, name, None, reason=reason if name in asked else NO_REFERENCE, detail={"state": reason})


_NAMES = {Kind.TEXT: "text", Kind.TABLE: "tables", Kind.FORMULA: "formulas"}


def _rates(key: TrialKey, state: State, found: PageScore | None = None) -> Iterator[Score]:
    yield Score(key, "loop_rate", float(state is State.LOOP))
    yield Score(key, "truncated_rate", float(state is State.TRUNCATED))
    if found is not None:
        precision = found.characters()[0]
        yield Score(key, "invented_rate", 1.0 - precision if precision is not None else 0.0)


def _scores(key: TrialKey, found: PageScore, state: State, text: str) -> Iterator[Score]:
    values: dict[str, float | None] = {"page": found.page / 100}
    values |= {name: found.part(kind) for kind, name in _NAMES.items()}
    values |= {"order": found.order, "headings": found.headings, "letters": found.letters()}
    values |= dict(zip(("precision", "recall"), found.characters(), strict=True))
    values |= dict(zip(("words_precision", "words_recall"), found.words(), strict=True))
    for name, field in (("table_structure", "structure"), ("cells", "cells")):
        wanted = sum(block.kind is Kind.TABLE for block in found.gold)
        values[name] = sum(getattr(one, field) for one in found.tables) / wanted if wanted else None
    for name in (*METRICS, *BESIDE):
        value = values[name]
        detail = describe(found, state) if name == "page" else {}
        answer = text if name == "page" else None
        yield Score(key, name, value, answer, "snellen", None if value is not None else NO_REFERENCE, detail)


def describe(found: PageScore, state: State) -> dict[str, Any]:
    """Return the pairing of a page as plain data: what stands for what, what was missed and invented, by name."""
    pairs = [[list(match.gold), list(match.reply), round(match.alike, 4)] for match in found.matches]
    tables = [[one.gold, one.reply, round(one.teds, 4), one.exact] for one in found.tables]
    return {
        "state": state.value,
        "pairs": pairs[:DETAIL_BLOCKS],
        "tables": tables[:DETAIL_BLOCKS],
        "missed": [_named(found.gold[n], n) for n in found.missed[:DETAIL_BLOCKS]],
        "invented": [_named(found.reply.blocks[n], n) for n in found.invented[:DETAIL_BLOCKS]],
        "missed_blocks": len(found.missed),
        "invented_blocks": len(found.invented),
        "removed": list(found.reply.removed),
        "notes": list(found.reply.notes),
    }


def _named(block: Block, place: int) -> str:
    return f"{place}: {block.category or block.kind.value} {block.text[:60]}"


Measured = Mapping[str, float | str]
"""A rule's values of one page by metric; a text is the reason why there is none."""


def omnidoc_gold(sample: Sample) -> list[Gold]:
    """Return a sample's page as OmniDocBench has it; one that is a text is cut into blocks by our reader."""
    blocks = sample.meta.get("blocks")
    if blocks:
        return omnidoc.gold_blocks(blocks)
    return [_as_gold(block, place) for place, block in enumerate(gold_of(sample), start=1)]


def _as_gold(block: Block, order: int) -> Gold:
    if block.kind is Kind.FORMULA:
        return Gold("equation_isolated", f"$${block.source}$$", order)
    if block.kind is Kind.TABLE:
        return Gold("table", table_html(block.rows), order)
    return Gold("title" if block.level else "text_block", block.text, order)


def table_html(rows: Sequence[Sequence[Cell]]) -> str:
    """Return rows of cells as an HTML table."""

    def cell(one: Cell) -> str:
        spans = "".join(f' {name}="{n}"' for name, n in (("rowspan", one.rows), ("colspan", one.columns)) if n > 1)
        text = one.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"<td{spans}>{text}</td>"

    return "<table>" + "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows) + "</table>"


def measure_omnidoc(sample: Sample, reply: str) -> Measured:
    """OmniDocBench 1.6: edit distances and TEDS of a page; `text` is 1 - the edit distance, as its Overall wants it."""
    parts = omnidoc.score_page(omnidoc_gold(sample), reply).parts()
    names = {"text_edit": "edit_distance_text", "formula_edit": "edit_distance_formula"}
    names |= {"table_edit": "edit_distance_table", "order_edit": "edit_distance_order"}
    found: dict[str, float | str] = {names.get(name, name): value for name, value in parts.items()}
    if "text_edit" in parts:
        found["text"] = 1 - parts["text_edit"]
    missing = {
        "text",
        "edit_distance_text",
        "edit_distance_formula",
        "edit_distance_table",
        "table_teds",
        "table_teds_s",
    }
    return found | dict.fromkeys(missing - set(found), NO_REFERENCE)


def measure_cdm(sample: Sample, reply: str) -> float | str:
    """Return the mean CDM of a page's formulas, or why there is none; asked for by `score_options.cdm`."""
    pairs = omnidoc.score_page(omnidoc_gold(sample), reply).formulas
    if not pairs:
        return NO_REFERENCE
    try:
        values = [cdm.cdm(pair.reply_text, pair.gold_text).f1 for pair in pairs]
    except EnvironmentProblem as problem:
        return f"{UNSCORABLE}{str(problem).removeprefix(UNSCORABLE)}"
    return sum(values) / len(values)


def measure_olmocr(sample: Sample, reply: str) -> Measured:
    """olmOCR-bench: the share of a page's unit tests that pass. Its figure over files is the aggregate `olmocr`."""
    tests = sample.meta.get("tests") or []
    if not tests:
        return {"tests": NO_REFERENCE}
    return {"tests": sum(passed for _, passed in _verdicts(sample, reply)) / len(tests)}


@lru_cache(maxsize=4)
def _verdicts_of(tests: bytes, reply: str) -> list[bool]:
    return [olmocr.run_test(test, reply).passed for test in msgspec.json.decode(tests)]


def _verdicts(sample: Sample, reply: str) -> list[tuple[Mapping[str, Any], bool]]:
    tests = sample.meta["tests"]
    return list(zip(tests, _verdicts_of(msgspec.json.encode(tests), reply), strict=True))


def measure_ocrbench(sample: Sample, reply: str) -> Measured:
    """OCRBench v2: by the type of the question, its rule for pages, tables, formulas or full-page text."""
    kind, gold = str(sample.tags.get("type", "document parsing en")), "\n".join(sample.answers[:1])
    if kind.startswith("table"):
        as_html = kind.endswith("cn") or "html" in sample.question.lower()
        return {"accuracy": (ocrbench.score_html_table if as_html else ocrbench.score_markdown_table)(reply, gold)}
    if kind.startswith("formula"):
        return {"accuracy": ocrbench.score_formula(reply, gold, chinese=kind.endswith("cn"))}
    if kind.startswith("full-page"):
        return {"accuracy": ocrbench.score_page(reply, gold).value if reply else 0.0}
    return {"accuracy": ocrbench.score_document(reply, gold)}


def measure_ccocr(sample: Sample, reply: str) -> Measured:
    """CC-OCR: by the subset, its rule for pages, tables, formulas or molecules."""
    subset, gold = str(sample.tags.get("subset", "doc")), "\n".join(sample.answers[:1])
    rules = {"table": ccocr.score_table, "formula": ccocr.score_formula, "molecul": ccocr.score_molecule}
    rule = next((rule for name, rule in rules.items() if name in subset), ccocr.score_document)
    return {"accuracy": rule(reply, gold)}


RULES: Mapping[str, Callable[[Sample, str], Measured]] = {
    "omnidocbench-1.6": measure_omnidoc,
    "olmocr-bench": measure_olmocr,
    "ocrbench-v2": measure_ocrbench,
    "cc-ocr": measure_ccocr,
}
"""Rules of others, by the name that cards use (`score_options.rule`)."""


def score_official(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Scorer `parse_official`: the benchmark's own rule, faults included, on the reply as it was written."""
    name = str(options.get("rule", ""))
    if name not in RULES:
        raise ConfigError(f"score_options.rule {not_among(name, RULES, ' is unknown')}")
    reply = prediction.text or ""
    try:
        refuse_endless(reply)
        found = RULES[name](sample, reply)
    except EnvironmentProblem as problem:
        found = {"accuracy": f"{UNSCORABLE}{problem}"}
    except (TableTooLarge, ValueError, RecursionError) as problem:
        found = {"accuracy": f"{UNSCORABLE}the rule fails on this reply: {str(problem)[:120]}"}
    if options.get("cdm") and name == "omnidocbench-1.6":
        found = {**found, "formula_cdm": measure_cdm(sample, reply)}
    detail: dict[str, Any] = {"state": state_of(reply, prediction.finish).value, "rule": name}
    if name == "olmocr-bench" and isinstance(found.get("tests"), float):
        detail["tests"] = [[_file(test), test.get("id", ""), passed] for test, passed in _verdicts(sample, reply)]
    return [_official_score(request.key, metric, value, name, detail) for metric, value in found.items()]


MOST_UNCLOSED = 400


def refuse_endless(reply: str) -> None:
    """Raise ValueError for a reply on which the patterns of the originals would run for minutes."""
    if len(reply) > MOST_CHARACTERS:
        raise ValueError(f"{len(reply):,} characters, more than {MOST_CHARACTERS:,}")
    pairs = (("\\[", "\\]"), ("\\(", "\\)"), ("<table", "</table"), ("\\begin{", "\\end{"), ("![", "]("))
    unclosed = max(reply.count(opening) - reply.count(closing) for opening, closing in pairs)
    if unclosed > MOST_UNCLOSED:
        raise ValueError(f"{unclosed:,} formulas or tables that are never closed")


def _official_score(key: TrialKey, metric: str, value: float | str, rule: str, detail: dict[str, Any]) -> Score:
    if isinstance(value, str):
        return Score(key, metric, None, None, rule, value, detail)
    return Score(key, metric, value, None, rule, None, detail)


def _file(test: Mapping[str, Any]) -> str:
    return "baseline" if test.get("type") == "baseline" else str(test.get("file", "tests"))


DRAWS = 1000


def olmocr_figures(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Aggregate `olmocr`: the mean of the pass rates of the files of tests, drawn 1,000 times within files.

    A test that is asked several times passes where it does in more than half.
    """
    votes: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for sample, one in scored.scores():
        for file, name, passed in one.detail.get("tests", ()):
            votes[file, sample.id, str(name)].append(bool(passed))
    files: dict[str, list[bool]] = defaultdict(list)
    for (file, _, _), passed in sorted(votes.items()):
        files[file].append(sum(passed) / len(passed) > 0.5)
    if not files:
        return {}
    done = {f"tests_{file}": Estimate(float(np.mean(passed)), n=len(passed)) for file, passed in files.items()}
    random = np.random.default_rng(0)
    drawn = np.mean([random.binomial(len(p), np.mean(p), DRAWS) / len(p) for p in files.values()], axis=0)
    low, high = (float(value) for value in np.percentile(drawn, (2.5, 97.5)))
    mean = float(np.mean([np.mean(passed) for passed in files.values()]))
    whole = Estimate(mean, float(drawn.std()), (low, high), n=sum(map(len, files.values())))
    return {"tests_by_file": whole, **done}
