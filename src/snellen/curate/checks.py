"""Drafts to votes of LLM checkers and back: a checker is a judge with k votes, asked down the same line as any model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from ..core.jobs import Item, ReadyRequests
from ..core.types import Form, Prediction, Request, Sample, TrialKey
from ..scoring.scorers.judge import Judge, judge_key, plan_votes, score_votes
from ..store.reader import RunReader
from .records import Draft, Finding

TASK = "check"
CHECKERS = ("unique", "chain", "grounded")
CARD = "curate_{}"


def plan_checks(judge: Judge, drafts: Iterable[Draft], *, with_picture: bool) -> Iterator[ReadyRequests]:
    """Yield a job an item."""
    for position, draft in enumerate(drafts):
        sample = check_sample(draft)
        votes = plan_votes(judge, [(sample, _told(draft))])
        yield ReadyRequests(
            Item(position, sample), tuple(_with_picture(vote, sample) if with_picture else vote for vote in votes)
        )


def _with_picture(request: Request, sample: Sample) -> Request:
    *before, last = request.messages
    return structs.replace(request, messages=(*before, structs.replace(last, images=sample.images)))


def check_sample(draft: Draft) -> Sample:
    """Return what the checker is told beside the draft."""
    notes = (f"seen: {draft.source.clue}", f"inferred: {draft.source.inference}")
    return Sample(
        draft.id, TASK, Form.OPEN, "A drafted item is to be checked.", images=(draft.source.picture(),), answers=notes
    )


def _told(draft: Draft) -> Prediction:
    return Prediction(TrialKey(TASK, draft.id), text=show_draft(draft))


def show_draft(draft: Draft) -> str:
    """Return an item as plain text, right candidates marked."""
    lines: list[str] = []
    for name, question in draft.questions():
        lines.append(f"{name}: {question.question}")
        lines += [
            f"  {'*' if place == question.right else '-'} {text}" for place, text in enumerate(question.candidates)
        ]
    return "\n".join(lines)


def read_checks(reader: RunReader, judge: Judge, drafts: Iterable[Draft], gate: str) -> dict[str, Finding]:
    """Return what the majority said of each item: fail, or a warning where there was no majority."""
    replies: Mapping[TrialKey, str | None] = {
        prediction.key: prediction.text for _, _, prediction, _ in reader.trials(f"{TASK}@{judge.name}")
    }
    findings: dict[str, Finding] = {}
    for draft in drafts:
        told = _told(draft)
        score = score_votes(judge, told, [replies.get(judge_key(told.key, judge, vote)) for vote in range(judge.votes)])
        if score.value is None:
            findings[draft.id] = Finding(gate, "warn", f"the checker gave no verdict: {score.reason}")
        elif score.value < 0.5:
            findings[draft.id] = Finding(
                gate, "fail", f"the checker says no ({judge.title.lower()}; {judge.votes} votes)"
            )
    return findings
