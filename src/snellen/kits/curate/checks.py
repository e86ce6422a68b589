"""Drafts to votes of LLM checkers and back: a checker is a judge with k votes, asked like any model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from ...core.jobs import Item, ReadyRequests
from ...core.types import Form, Prediction, Request, Sample, TrialKey
from ...scoring.asking import judge_key, plan_votes
from ...scoring.judge_card import Judge
from ...scoring.verdicts import score_votes
from ...store.reader import RunReader
from .records import Draft, Finding

TASK = "check"
CHECKERS = ("unique", "chain", "grounded")
CARD = "curate_{}"


def plan_checks(judge: Judge, drafts: Iterable[Draft], *, with_picture: bool) -> Iterator[ReadyRequests]:
    """Yield a job an item."""
    for position, draft in enumerate(drafts):
        sample = check_sample(draft)
        votes = plan_votes(judge, [(sample, _as_reply(draft))])
        requests = tuple(_with_images(vote, sample) if with_picture else vote for vote in votes)
        yield ReadyRequests(Item(position, sample), requests)


def _with_images(request: Request, sample: Sample) -> Request:
    *before, last = request.messages
    return structs.replace(request, messages=(*before, structs.replace(last, images=sample.images)))


def check_sample(draft: Draft) -> Sample:
    """Return what the checker is told beside the draft."""
    notes = (f"seen: {draft.source.clue}", f"inferred: {draft.source.inference}")
    question, images = "A drafted item is to be checked.", (draft.source.picture(),)
    return Sample(draft.id, TASK, Form.OPEN, question, images=images, answers=notes)


def _as_reply(draft: Draft) -> Prediction:
    """Return the draft as what a judge judges: the reply of a model."""
    return Prediction(TrialKey(TASK, draft.id), text=show_draft(draft))


def show_draft(draft: Draft) -> str:
    """Return an item as plain text, right candidates marked."""
    lines: list[str] = []
    for name, question in draft.questions():
        lines.append(f"{name}: {question.question}")
        signs = ("*" if place == question.right else "-" for place in range(len(question.candidates)))
        lines += [f"  {sign} {text}" for sign, text in zip(signs, question.candidates, strict=True)]
    return "\n".join(lines)


def read_checks(reader: RunReader, judge: Judge, drafts: Iterable[Draft], gate: str) -> dict[str, Finding]:
    """Return what the majority said of each item: fail, or a warning where there was no majority."""
    replies: Mapping[TrialKey, str | None] = {
        prediction.key: prediction.text for _, _, prediction, _ in reader.trials(f"{TASK}@{judge.name}")
    }
    findings: dict[str, Finding] = {}
    for draft in drafts:
        reply = _as_reply(draft)
        keys = [judge_key(reply.key, judge, vote) for vote in range(judge.votes)]
        score = score_votes(judge, reply, [replies.get(key) for key in keys])
        if score.value is None:
            findings[draft.id] = Finding(gate, "warn", f"the checker gave no verdict: {score.reason}")
        elif score.value < 0.5:
            reason = f"the checker says no ({judge.title.lower()}; {judge.votes} votes)"
            findings[draft.id] = Finding(gate, "fail", reason)
    return findings
