"""Runs and a bank to gold answers worst first, for people to look at; and what people found to a ledger of errata.

Ranking finds only what models can find: rows that strong models miss without agreeing cannot be judged by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.errors import UsageError
from ...core.types import Sample
from ...data.errata import Erratum, question_hash, write_errata
from ...report.files import write_atomically
from ...report.run_briefs import run_folders
from ...stats.intervals import wilson
from ...store.reader import RunReader
from ..curate.decisions import Status
from ..curate.desk import ReviewSettings
from ..curate.records import Draft, Finding, Gated, Question, Source
from ..curate.workshop import Workshop
from .bank_file import FEWEST_MODELS, BankItem
from .build import DEPTH, Answers, read_run, read_source
from .gold_review import NOBODY, model_weights, option_votes, rasch_abilities, wrong_gold_ratios

RIGHT_FROM = 0.5
CLEAR_RISE, CLEAR_FALL, SUPPORT = 0.2, -0.1, 0.3
SAMPLE_OF_LIST = 30
"""Rows of the list that two people look at: their confirmed share says how much of the list is true."""
ROWS, SUMMARY, PAGE = "audit.jsonl", "audit.json", "audit.html"
BOTH, UNSEEN = "more than one right answer", "not to be seen in the picture"
"""Reasons of the review desk that say what becomes of a row."""


class Doubt(Struct, frozen=True, omit_defaults=True):
    """One row: how doubtful its gold is, why, and what strong models say instead."""

    rank: int
    sample: str
    doubt: float
    reasons: list[str]
    question: str = ""
    official: tuple[str, ...] = ()
    proposed: str = ""
    answers: dict[str, int] = {}
    """What was answered, by how many models."""
    options: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()


class Audit(Struct, frozen=True):
    """The ranking, and what it could and could not see."""

    task: str
    models: int
    rows: int
    method: str
    listed: int
    cannot_judge: int
    """Rows that most strong models get wrong without agreeing on another answer."""
    doubts: list[Doubt]

    def lines(self, most: int = 20) -> list[str]:
        """Say it in lines, worst first."""
        head = f"{self.rows:,} rows of {self.task}, {self.models} models, by {self.method}; {self.listed} listed"
        found = [f"{one.rank:4} {one.sample}  {one.doubt:+.2f}  {'; '.join(one.reasons)}" for one in self.doubts[:most]]
        limits = (
            f"{self.cannot_judge:,} rows cannot be judged by models: strong ones miss them without agreeing; the list "
            f"is no count of wrong golds: review {SAMPLE_OF_LIST} of it, two people each, to know its true share"
        )
        return [head, *found, limits]


def audit(
    sources: Sequence[str | Path],
    bank: str | Path | None = None,
    output: str | Path | None = None,
    *,
    task: str | None = None,
    share: float = 0.05,
) -> Audit:
    """Rank the gold answers that runs (and a bank) were scored by, worst first; `share` of the rows is listed.

    With `output` the list, a page and the review desk's items are written there.
    """
    paths = [Path(source) for source in sources]
    found = [one for path in paths for one in read_source(path, task, None)]
    if bank is not None:
        found += [one for one in read_source(Path(bank), task, None) if one.model.name not in _names(found)]
    if len(found) < FEWEST_MODELS:
        raise UsageError(
            f"an audit needs the answers of at least {FEWEST_MODELS} models, not {len(found)}: add a --bank"
        )
    samples = _samples(paths, found)
    items, values, chosen, texts = _matrices(found)
    doubts = _rank(items, values, chosen, texts, samples)
    listed = max(1, round(share * len(items)))
    result = Audit(
        next((one.task for one in found if one.task), "a table"),
        len(found),
        len(items),
        "answers" if _has_answers(chosen) else "right and wrong alone",
        listed,
        _cannot_judge(values, chosen),
        doubts,
    )
    if output is not None:
        write_audit(Path(output), result, samples)
    return result


def _names(found: Sequence[Answers]) -> set[str]:
    return {one.model.name for one in found}


def _samples(paths: Sequence[Path], found: Sequence[Answers]) -> dict[str, Sample]:
    """Return the questions themselves, as the runs keep them; a bank has none."""
    task = next((one.task for one in found if one.task), "")
    samples: dict[str, Sample] = {}
    for path in filter(Path.is_dir, paths):
        for folder in [path] if (path / "run.db").exists() else run_folders(path, DEPTH):
            with RunReader(folder) as reader:
                samples |= {sample.id: sample for sample in reader.samples(task) if sample.id not in samples}
    return samples


Codes = NDArray[np.int64]


def _matrices(
    found: Sequence[Answers],
) -> tuple[list[BankItem], NDArray[np.float64], Codes, list[list[str]]]:
    """Return items, values, and what was chosen: 0 is right, others number the wrong answers of an item."""
    items: dict[str, BankItem] = {}
    for one in found:
        items |= {item.id: item for item in one.items if item.id not in items}
    place = {name: at for at, name in enumerate(items)}
    values = np.full((len(found), len(items)), np.nan)
    chosen = np.full(values.shape, NOBODY, dtype=np.int64)
    texts: list[list[str]] = [[] for _ in items]
    for row, one in enumerate(found):
        for at, item in enumerate(one.items):
            column, value = place[item.id], float(one.values[at])
            values[row, column] = value
            said = one.answers[at] if one.answers else None
            if said is None:
                continue
            if value >= RIGHT_FROM:
                chosen[row, column] = 0
                continue
            known = texts[column]
            text = " ".join(said.split()).casefold()
            if text not in known:
                known.append(text)
            chosen[row, column] = known.index(text) + 1
    return list(items.values()), values, chosen, texts


def _has_answers(chosen: Codes) -> bool:
    return int((chosen != NOBODY).any(axis=1).sum()) >= FEWEST_MODELS


def _rank(
    items: Sequence[BankItem],
    values: NDArray[np.float64],
    chosen: Codes,
    texts: list[list[str]],
    samples: Mapping[str, Sample],
) -> list[Doubt]:
    """Return every row, worst first, with its reasons."""
    falls = _rest_correlations(values)
    if _has_answers(chosen):
        told = chosen[(chosen != NOBODY).any(axis=1)]
        votes = option_votes(told, np.zeros(len(items), dtype=np.int64), int(told.max()) + 1)
        score = votes.doubt
        rivals = [texts[at][rival - 1] if rival > 0 else "" for at, rival in enumerate(votes.rival.tolist())]
        reasons = [_vote_reasons(votes.vote[at], votes.rise[at], rivals[at], falls[at]) for at in range(len(items))]
    else:
        score = wrong_gold_ratios(values)
        rivals = [""] * len(items)
        reasons = [_ratio_reasons(score[at], falls[at]) for at in range(len(items))]
    order = np.argsort(-score, kind="stable")
    shown = np.clip(score, -1e6, 1e6)
    found = (
        Doubt(
            rank,
            items[at].id,
            float(shown[at]),
            reasons[at],
            proposed=rivals[at],
            answers=_counted(chosen[:, at], texts[at]),
        )
        for rank, at in enumerate(order.tolist(), 1)
    )
    return [_doubt(one, samples) for one in found]


def _counted(chosen: Codes, texts: list[str]) -> dict[str, int]:
    names = ["the gold", *texts]
    return {names[code]: count for code, count in Counter(chosen[chosen != NOBODY].tolist()).most_common()}


def _doubt(told: Doubt, samples: Mapping[str, Sample]) -> Doubt:
    """Return a row with its question, where a run keeps it; the proposed answer as its option is written."""
    sample = samples.get(told.sample)
    if sample is None:
        return told
    written = (option for option in sample.options if " ".join(option.split()).casefold() == told.proposed)
    return msgspec.structs.replace(
        told,
        question=sample.question,
        official=sample.answers,
        proposed=next(written, told.proposed),
        options=sample.options,
        pictures=tuple(image.ref for image in sample.images),
    )


def _vote_reasons(vote: float, rise: float, rival: str, fall: float) -> list[str]:
    found = []
    if rival and vote > 0.0:
        found.append(f"strong models agree on {rival!r} rather than on gold (by {100 * vote:.0f} % of the weight)")
    elif rival and vote > -SUPPORT:
        found.append(f"gold and {rival!r} are chosen about as often: perhaps both are right")
    if rival and rise > CLEAR_RISE:
        found.append(f"the stronger a model, the likelier it says {rival!r} ({rise:+.2f})")
    return [*found, *_fall_reason(fall)] or ["nothing speaks against it"]


def _ratio_reasons(ratio: float, fall: float) -> list[str]:
    found = [f"who is right and who is wrong fits a wrong gold better (log ratio {ratio:+.1f})"] if ratio > 0.0 else []
    return [*found, *_fall_reason(fall)] or ["nothing speaks against it"]


def _fall_reason(fall: float) -> list[str]:
    return [f"stronger models are right less often (rest-score correlation {fall:+.2f})"] if fall < CLEAR_FALL else []


def _rest_correlations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the correlation of being right on an item with ability."""
    ability = rasch_abilities(values)
    seen = ~np.isnan(values)
    means = np.where(seen, values, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    centred = np.where(seen, values - means, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) * max(float((ability**2).sum()), 1e-12))
    return np.asarray(np.divide(ability @ centred, spread, out=np.zeros(values.shape[1]), where=spread > 1e-12))


def _cannot_judge(values: NDArray[np.float64], chosen: Codes) -> int:
    """Count the rows that strong models mostly miss, without one other answer that many of them give."""
    weight = model_weights(np.where(np.isnan(values), 0.0, values))[:, None]
    total = max(float(weight.sum()), 1e-12)
    right = (np.where(np.isnan(values), 0.0, values) * weight).sum(axis=0) / total
    rival = np.zeros(values.shape[1])
    for code in range(1, int(chosen.max(initial=0)) + 1):
        rival = np.maximum(rival, ((chosen == code) * weight).sum(axis=0) / total)
    return int(((right < RIGHT_FROM) & (rival < SUPPORT)).sum())


def write_audit(folder: Path, result: Audit, samples: Mapping[str, Sample]) -> None:
    """Write the list, the summary, the page, and the items of the review desk."""
    from .pages import audit_page  # pictures and pages

    folder.mkdir(parents=True, exist_ok=True)
    lines = b"".join(msgspec.json.encode(doubt) + b"\n" for doubt in result.doubts)
    write_atomically(folder / ROWS, lambda file: file.write(lines))
    head = msgspec.structs.replace(result, doubts=result.doubts[: result.listed])
    write_atomically(folder / SUMMARY, lambda file: file.write(msgspec.json.encode(head)))
    page = audit_page(head).encode("utf-8", "replace")
    write_atomically(folder / PAGE, lambda file: file.write(page))
    gated = b"".join(msgspec.json.encode(one) + b"\n" for one in _desk_items(head, samples))
    write_atomically(Workshop(folder).gated, lambda file: file.write(gated))


def _desk_items(result: Audit, samples: Mapping[str, Sample]) -> Iterator[Gated]:
    """Yield the listed rows as items of the review desk: the proposed answer is marked as right, to be judged."""
    for doubt in result.doubts:
        if not doubt.proposed or doubt.sample not in samples:
            continue
        candidates = doubt.options or (*doubt.official, doubt.proposed)
        right = candidates.index(doubt.proposed) if doubt.proposed in candidates else len(candidates)
        shown = candidates if right < len(candidates) else (*candidates, doubt.proposed)
        told = f"official: {' | '.join(doubt.official)}. Accept: the marked answer is right instead. Reject: it is not"
        source = Source(doubt.sample, next(iter(doubt.pictures), ""), clue=told, inference=" | ".join(doubt.official))
        question = Question(doubt.question, tuple(shown), right)
        findings = tuple(Finding("audit", "warn", reason) for reason in doubt.reasons)
        yield Gated(Draft(doubt.sample, source, (), question, {"rank": doubt.rank}), findings)


def review(folder: Path, reviewers: tuple[str, ...], port: int, ready: Any) -> None:
    """Serve the review desk on an audit: every row goes to two people."""
    from ..curate.library import review as serve_review

    if not (folder / SUMMARY).exists():
        raise UsageError(f"{folder} holds no audit: run `snellen audit RUNS -o {folder}` first")
    serve_review(folder, ReviewSettings(reviewers, overlap=1.0) if reviewers else None, port, ready)


class Reviewed(Struct, frozen=True):
    """What people found so far, and how much of the list is true."""

    counts: dict[str, int]
    confirmed: tuple[float, float] | None
    """The Wilson interval of the share of reviewed rows whose gold was wrong; None before anything is settled."""
    added: int

    def line(self) -> str:
        """Say it in one line."""
        told = ", ".join(f"{count} {status}" for status, count in self.counts.items())
        share = "nothing settled yet"
        if self.confirmed is not None:
            share = f"of the list {100 * self.confirmed[0]:.0f}–{100 * self.confirmed[1]:.0f} % are wrong golds (95 %)"
        return f"{told}; {share}; {self.added} lines added to the ledger"


def errata_of(folder: Path, ledger: Path, source: Path) -> Reviewed:
    """Write what the reviewers of an audit settled to a ledger; `source` is a run with the questions."""
    desk = Workshop(folder).open_desk()
    summary = msgspec.json.decode((folder / SUMMARY).read_bytes(), type=Audit)
    with closing(desk.ledger), RunReader(source) as reader:
        samples = {sample.id: sample for sample in reader.samples(summary.task)}
        entries = [_erratum(summary.task, samples[name], desk.outcome(name)) for name in desk.items if name in samples]
    counts = Counter(entry.status for entry in entries)
    settled = sum(counts.values()) - counts["undecided"]
    wrong = settled - counts["official"]
    interval = wilson(wrong / settled, settled) if settled else None
    return Reviewed(dict(counts), interval, write_errata(ledger, entries))


def _erratum(task: str, sample: Sample, outcome: Any) -> Erratum:
    proposed = outcome.draft.inference.answer
    reasons = {decision.reason for decision in outcome.decisions if decision.action == "reject"}
    gold: tuple[str, ...]
    if outcome.status is Status.ACCEPTED:
        status, gold = "corrected", (proposed,)
    elif outcome.status is not Status.REJECTED:
        status, gold = "undecided", (proposed,)
    elif BOTH in reasons:
        status, gold = "both", (*sample.answers, proposed)
    elif UNSEEN in reasons:
        status, gold = "drop", ()
    else:
        status, gold = "official", sample.answers
    people = tuple(sorted({decision.reviewer for decision in outcome.decisions}))
    note = "; ".join(sorted(reason for reason in reasons if reason))
    today = datetime.now(UTC).date().isoformat()
    return Erratum(task, sample.id, question_hash(sample), sample.answers, status, gold, today, people, note)


__all__ = ["Audit", "Doubt", "audit", "errata_of", "read_run", "review"]
