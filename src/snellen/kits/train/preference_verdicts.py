"""Sampled rationales to requests of an LLM judge, by points or pairwise, and its stored verdicts back to points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from msgspec import structs

from ...core.errors import DataError
from ...core.jobs import Item, ReadyRequests
from ...core.types import Prediction, Request, Sample, TrialKey
from ...scoring.asking import judge_key, plan_votes
from ...scoring.judge_card import Judge
from ...scoring.verdicts import score_votes
from .preference import JudgedReply, JudgedSample, rank_pairs

CRITERIA = ("rationale_sophisticated", "rationale_consistent", "rationale_grounded")
PAIRWISE = "rationale_pair"
NO_REPLY, NO_VERDICT = "the model gave no reply", "the judge gave no verdict"
Votes = Mapping[TrialKey, str | None]


class SampledQuestion(NamedTuple):
    """One question as it was asked, and what the model said each time."""

    position: int
    sample: Sample
    request: Request
    predictions: tuple[Prediction, ...]

    @property
    def said(self) -> list[Prediction]:
        """Return the predictions that have a text."""
        return [one for one in self.predictions if one.text]


def gather_questions(trials: Iterable[tuple[Sample, Request, Prediction, int]]) -> Iterator[SampledQuestion]:
    """Yield the trials of each question together; they come in the order of samples."""
    current: list[tuple[Sample, Request, Prediction, int]] = []
    position = 0
    for trial in trials:
        if current and trial[0].id != current[0][0].id:
            yield _question(position, current)
            position, current = position + 1, []
        current.append(trial)
    if current:
        yield _question(position, current)


def _question(position: int, trials: Sequence[tuple[Sample, Request, Prediction, int]]) -> SampledQuestion:
    if any(trial[1].messages != trials[0][1].messages for trial in trials):
        raise DataError(f"{trials[0][0].id}: its replies answer different prompts, so none can be preferred")
    return SampledQuestion(position, trials[0][0], trials[0][1], tuple(trial[2] for trial in trials))


def plan_points(judge: Judge, questions: Iterable[SampledQuestion]) -> Iterator[ReadyRequests]:
    """Yield a job a reply: the votes of one criterion."""
    for question in questions:
        for prediction in question.said:
            votes = plan_votes(judge, [(question.sample, prediction)])
            yield ReadyRequests(_item(question), tuple(_seen(vote, question.sample) for vote in votes))


def plan_pairs(judge: Judge, questions: Iterable[SampledQuestion]) -> Iterator[ReadyRequests]:
    """Yield a job a pair of replies, asked in both orders: a judge that prefers a place contradicts itself."""
    for question in questions:
        for first, second in combinations(range(len(question.said)), 2):
            cases = [_case(question, first, second), _case(question, second, first)]
            votes = [vote for case in cases for vote in plan_votes(judge, [(question.sample, case)])]
            yield ReadyRequests(_item(question), tuple(_seen(vote, question.sample) for vote in votes))


def _item(question: SampledQuestion) -> Item:
    return Item(question.position, question.sample)


def _seen(request: Request, sample: Sample) -> Request:
    """Return the request with the pictures: nobody can judge groundedness without them."""
    *before, last = request.messages
    return structs.replace(request, messages=(*before, structs.replace(last, images=sample.images)))


def _case(question: SampledQuestion, first: int, second: int) -> Prediction:
    said = question.said
    text = f"FIRST:\n{said[first].text}\n\nSECOND:\n{said[second].text}"
    key = TrialKey(said[0].key.task, question.sample.id, f"pair={first}-{second}", 0)
    return Prediction(key, text=text)


def read_points(judges: Sequence[Judge], question: SampledQuestion, votes: Votes) -> JudgedSample:
    """Return each reply with the sum over all criteria; one without a verdict on some criterion has no points."""
    replies = []
    for prediction in question.predictions:
        if not prediction.text:
            replies.append(JudgedReply("", None, NO_REPLY))
            continue
        scores = [score_votes(judge, prediction, _replies(judge, prediction, votes)) for judge in judges]
        lacking = next((score.reason for score in scores if score.value is None), None)
        points = None if lacking else sum(score.value or 0.0 for score in scores)
        replies.append(JudgedReply(prediction.text, points, f"{NO_VERDICT}: {lacking}" if lacking else ""))
    return JudgedSample(question.sample, question.request, tuple(replies))


def read_pairs(judge: Judge, question: SampledQuestion, votes: Votes) -> JudgedSample:
    """Return each reply with its net wins; a pair on which both orders do not agree counts for nobody."""
    said = question.said
    verdicts = []
    contradicted = False
    for first, second in combinations(range(len(said)), 2):
        one = _winner(judge, _case(question, first, second), votes, first, second)
        two = _winner(judge, _case(question, second, first), votes, second, first)
        contradicted |= one is not None and two is not None and one != two
        verdicts.append((first, second, one if one == two else None))
    wins, reason = rank_pairs(len(said), verdicts)
    if contradicted and reason:
        reason = "contradictory"
    replies = [JudgedReply(one.text or "", points) for one, points in zip(said, wins, strict=True)]
    silent = [JudgedReply("", None, NO_REPLY) for one in question.predictions if not one.text]
    return JudgedSample(question.sample, question.request, (*replies, *silent), reason)


def _winner(judge: Judge, case: Prediction, votes: Votes, first: int, second: int) -> int | None:
    value = score_votes(judge, case, _replies(judge, case, votes)).value
    return None if value is None or value == 0.5 else first if value > 0.5 else second


def _replies(judge: Judge, prediction: Prediction, votes: Votes) -> list[str | None]:
    return [votes.get(judge_key(prediction.key, judge, vote)) for vote in range(judge.votes)]
