"""Sources to drafted items by an LLM: a chain of sub-questions, then wrong candidates; reading its replies is pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from ...core.jobs import Ask, Item
from ...core.types import Form, Params, Prediction, Request, Sample, TrialKey, Turn
from ...prompt.template import render
from ...store.reader import RunReader
from .records import INFERENCE, Draft, SetAside, Source, shuffled
from .replies import CandidatesReply, ChainReply, UnusableReplyError, read_candidates, read_chain

TASK = "draft"
STAGE = "draft"
CHAIN, WRONG = "stage=chain", "stage=candidates"
INFERENCE_QUESTION = "What can be inferred about the marked region?"

T = TypeVar("T")
Replies = Mapping[tuple[str, int], Prediction]


class DraftPrompt(Struct, frozen=True, forbid_unknown_fields=True):
    """The words of drafting: catalog/curate/*.toml."""

    chain: str
    candidates: str
    repair: str
    """Added when a reply could not be used; knows {problem}."""
    system: str = ""
    title: str = ""
    with_picture: bool = False
    attempts: int = 3
    params: Params = Params()


@dataclass(frozen=True, slots=True)
class Drafting:
    """How one source is asked for; the same for sending and for reading the stored replies again."""

    prompt: DraftPrompt
    seed: int

    def request(self, sample: Sample, stage: str, attempt: int, chain: ChainReply | None, problem: str) -> Request:
        """Return the request of one attempt at one stage."""
        source = source_of(sample)
        lines = (f"{step.question} {step.answer}" for step in (chain.steps if chain else ()))
        steps = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
        fields = {"clue": source.clue, INFERENCE: source.inference, "steps": steps, "problem": problem}
        text = render(self.prompt.chain if stage == CHAIN else self.prompt.candidates, fields)
        if problem:
            text = f"{text}\n{render(self.prompt.repair, fields)}"
        system = (Turn("system", self.prompt.system),) if self.prompt.system else ()
        images = sample.images if self.prompt.with_picture else ()
        params = self.prompt.params
        if params.seed is not None:
            params = structs.replace(params, seed=params.seed + attempt)
        return Request(TrialKey(TASK, sample.id, stage, attempt), (*system, Turn("user", text, images)), params)

    def keys(self, sample: str) -> list[TrialKey]:
        """Return every trial a source may need."""
        attempts = range(self.prompt.attempts)
        return [TrialKey(TASK, sample, stage, attempt) for stage in (CHAIN, WRONG) for attempt in attempts]


@dataclass(frozen=True, slots=True)
class DraftJob:
    """One source: the chain first, then its candidates, each asked again with the reason when it cannot be used."""

    item: Item
    drafting: Drafting

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return all attempts: while one is open the job is looked at again, and what is stored costs nothing."""
        return self.drafting.keys(self.item.sample.id)

    async def run(self, ask: Ask) -> None:
        """Ask until both stages have a usable reply, or the attempts are spent."""
        source = source_of(self.item.sample)
        chain = await self._ask_stage(ask, CHAIN, None, read_chain)
        if chain is not None:
            await self._ask_stage(ask, WRONG, chain, _candidates_reader(chain, source))

    async def _ask_stage(self, ask: Ask, stage: str, chain: ChainReply | None, read: Callable[[str], T]) -> T | None:
        problem = ""
        for attempt in range(self.drafting.prompt.attempts):
            prediction = await ask(self.item, self.drafting.request(self.item.sample, stage, attempt, chain, problem))
            if prediction.failure is not None:
                return None
            try:
                return read(prediction.text or "")
            except UnusableReplyError as error:
                problem = str(error)
        return None


def _candidates_reader(chain: ChainReply, source: Source) -> Callable[[str], CandidatesReply]:
    answers = [step.answer for step in chain.steps]
    return lambda text: read_candidates(text, answers, source.inference)


def plan_drafts(sources: Iterable[Source], drafting: Drafting) -> Iterator[DraftJob]:
    """Yield a job a source."""
    for position, source in enumerate(sources):
        yield DraftJob(Item(position, sample_of(source)), drafting)


def sample_of(source: Source) -> Sample:
    """Return the source as what the store keeps."""
    meta, images = {"source": msgspec.to_builtins(source)}, (source.picture(),)
    return Sample(source.id, TASK, Form.OPEN, source.inference, images, answers=(source.inference,), meta=meta)


def source_of(sample: Sample) -> Source:
    """Return the source a stored sample came from."""
    return msgspec.convert(sample.meta["source"], Source)


def collect_drafts(reader: RunReader, drafting: Drafting) -> Iterator[Draft | SetAside]:
    """Yield what became of every source that was asked for, from the store alone."""
    model = reader.header().model
    current: Sample | None = None
    replies: dict[tuple[str, int], Prediction] = {}
    for sample, _, prediction, _ in reader.trials(TASK):
        if current is not None and sample.id != current.id:
            yield read_draft(current, replies, drafting, model)
            replies = {}
        current = sample
        replies[prediction.key.variant, prediction.key.repeat] = prediction
    if current is not None:
        yield read_draft(current, replies, drafting, model)


def read_draft(sample: Sample, replies: Replies, drafting: Drafting, model: str) -> Draft | SetAside:
    """Return the item that the stored replies make, or why they make none."""
    source = source_of(sample)
    chain, first, problem = _last_usable(replies, CHAIN, drafting, read_chain)
    if chain is None:
        return SetAside(sample.id, STAGE, problem, msgspec.to_builtins(source))
    wrong, second, problem = _last_usable(replies, WRONG, drafting, _candidates_reader(chain, source))
    if wrong is None:
        return SetAside(sample.id, STAGE, problem, msgspec.to_builtins(source))
    provenance: dict[str, str | int] = {"model": model, "chain_attempts": first, "candidate_attempts": second}
    return _assemble(source, chain, wrong, drafting.seed, provenance)


def _last_usable(
    replies: Replies, stage: str, drafting: Drafting, read: Callable[[str], T]
) -> tuple[T | None, int, str]:
    """Return the first usable reply of a stage, at which attempt (from 1), and else the last reason."""
    problem = "not asked yet: run the same command again"
    for attempt in range(drafting.prompt.attempts):
        prediction = replies.get((stage, attempt))
        if prediction is None:
            break
        if prediction.failure is not None:
            return None, attempt + 1, f"no reply: {prediction.failure.message}"
        try:
            return read(prediction.text or ""), attempt + 1, ""
        except UnusableReplyError as error:
            problem = f"{error} (after {attempt + 1} attempts)"
    return None, drafting.prompt.attempts, problem


def _assemble(
    source: Source, chain: ChainReply, wrong: CandidatesReply, seed: int, provenance: dict[str, str | int]
) -> Draft:
    steps = tuple(
        shuffled(step.question, step.answer, others, seed, source.id, number)
        for number, (step, others) in enumerate(zip(chain.steps, wrong.steps, strict=True), 1)
    )
    inference = shuffled(INFERENCE_QUESTION, source.inference, wrong.inference, seed, source.id, INFERENCE)
    return Draft(source.id, source, steps, inference, provenance)
