"""What a protocol's rule leaves unread, read by a model: the slot of a card, the model's replies, and their scores.

Some benchmarks let a language model find the answer in a reply. `score_options.extractor` of a protocol says whom the
tool asks, what it reads by rule before, and which card (`catalog/judges`) asks so here; `--extractor MODEL` says who is
asked. The model's replies are a run of their own, as those of judges are: `RUN/extractor-CARD--MODEL/run.db`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from ...core.config import convert
from ...core.ids import content_hash
from ...core.tasks import RunHeader, Task
from ...core.types import Prediction, Request, Sample, Score, TrialKey
from ...model.served.prices import Bill
from ...store.reader import RunReader, Trial
from ..protocols.peer_scores import EXTRACTOR, ScoreTrial, reader_called
from ..protocols.readings import read_in
from ..scorers.replies import NO_REFERENCE, answer_text
from ..tables.gathered import describe_bill, stored_prices
from .judge_card import TEXT, Judge, judge_identity, judge_key, read_judge
from .verdicts import extracted_answer, score_votes, votes_on

FOLDER_PREFIX = "extractor-"
NOT_ASKED = "the extractor was not asked yet"
NO_ANSWER = "the extractor found no answer"
NO_REPLY = "the extractor gave no valid reply"
FAILED = "the extractor's call failed"
BY_MODEL = "extractor"
"""How the rule of a score begins whose answer a model found."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


class Slot(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a protocol's own tool asks a model for the answer: `score_options.extractor`."""

    model: str
    """Whom the tool asks, in words."""
    card: str
    """The card of `catalog/judges` that asks a model so here."""
    first: dict[str, Any] | None = None
    """The options of the scorer by which the tool reads before it asks; None: it asks about every reply."""


def slot_of(task: Task) -> Slot | None:
    """Return the slot of a task's protocol, if it has one."""
    told = task.score_options.get(EXTRACTOR)
    return convert(told, Slot, f"task {task.name!r}: score_options.extractor") if told else None


def tasks_by_card(header: RunHeader, protocol: str = "") -> dict[str, list[Task]]:
    """Return the tasks of a run that have a slot, as a protocol reads them, by the card that asks the model."""
    found: dict[str, list[Task]] = {}
    for task in (read_in(one, protocol, header) for one in header.tasks):
        slot = slot_of(task)
        if slot is not None:
            found.setdefault(slot.card, []).append(task)
    return found


def extractor_folder(run: Path, card: str, model: str) -> Path:
    """Return where the replies of an extractor are kept."""
    return run / f"{FOLDER_PREFIX}{card}--{_UNSAFE.sub('-', model)}"


def extractor_folders(run: Path) -> list[Path]:
    """Return where the extractors that were asked about a run keep their replies."""
    return sorted(run.glob(f"{FOLDER_PREFIX}*"))


def left_by_rule(
    score: ScoreTrial, slot: Slot, trial: tuple[Sample, Request, Prediction], options: Mapping[str, Any]
) -> tuple[Sequence[Score], bool]:
    """Return the scores of a reply by the rule that comes before the model, and whether the model is asked about it."""
    scores = score(*trial, {**options, **(slot.first or {})})
    judged = [one for one in scores if one.reason != NO_REFERENCE]
    is_left = slot.first is None or any(one.value is None for one in judged)
    return scores, bool(judged) and is_left and bool(answer_text(trial[2]))


class Extractor:
    """What a model replied about one task of a run, and how that becomes scores."""

    def __init__(self, run: Path, task: Task, slot: Slot, model: str) -> None:
        self._slot, self._model, self._task = slot, model, task
        self._folder = extractor_folder(run, slot.card, model)
        self._judge: Judge | None = None
        self._replies: dict[TrialKey, str | None] = {}
        if (self._folder / "run.db").exists():
            with RunReader(self._folder) as kept:
                self._judge = read_judge(kept.header().config["judge"], slot.card)
                self._replies = {trial.prediction.key: trial.prediction.text for trial in self._trials(kept)}

    def _trials(self, kept: RunReader) -> Iterator[Trial]:
        return kept.trials(f"{self._task.name}@{self._slot.card}")

    def scorer(self, score: ScoreTrial) -> ScoreTrial:
        """Return a scorer that reads by rule first, and by the model's reply what is left."""

        def read(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> list[Score]:
            trial = sample, request, prediction
            scores, is_left = left_by_rule(score, self._slot, trial, options)
            return list(self._by_model(score, trial, options, scores) if is_left else scores)

        return read

    def _by_model(
        self,
        score: ScoreTrial,
        trial: tuple[Sample, Request, Prediction],
        options: Mapping[str, Any],
        scores: Sequence[Score],
    ) -> Iterator[Score]:
        """Yield the scores of a reply by what the model made of it; without that they have no value, and say why."""
        sample, request, prediction = trial
        judge = self._judge
        if judge is None or judge_key(prediction.key, judge, 0) not in self._replies:
            yield from _unread(scores, NOT_ASKED)
            return
        votes = votes_on(judge, prediction.key, self._replies)
        if judge.verdict != TEXT:
            given = score_votes(judge, prediction, votes)
            if given.value is None:
                yield from _unread(scores, _why(votes, None))
            else:
                yield structs.replace(given, metric=scores[0].metric, rule=f"{BY_MODEL}: {given.rule}")
            return
        answer = extracted_answer(judge, prediction, votes)
        if not answer:
            yield from _unread(scores, _why(votes, answer))
            return
        stated = structs.replace(prediction, text=answer, finish=None)
        for one in score(sample, request, stated, options):
            yield structs.replace(one, rule=f"{BY_MODEL}: {one.rule}", detail={**one.detail, "extracted": answer})

    def account(self, headline: str) -> dict[str, Any]:
        """Return what results.json says of the extractor: who it is, in which version, what it was asked and cost."""
        version = content_hash(judge_identity(self._judge), 8) if self._judge else ""
        named = f"{self._slot.card}@{version}" if version else self._slot.card
        called = f"{reader_called(self._task)} with extractor {self._model} ({named})"
        asked, cost = self._spent()
        theirs = f"its tool asks {self._slot.model} in its own words, here {self._model} was asked in Snellen's"
        return {
            "model": self._model,
            "card": self._slot.card,
            "version": version,
            "of_tool": self._slot.model,
            "called": called,
            "asked": asked,
            "cost": cost,
            "why": f"{headline} is by the {called}, which was asked about {asked:,} replies; {theirs}.",
        }

    def _spent(self) -> tuple[int, dict[str, Any] | None]:
        """Return how many replies are kept and their bill; none where nobody knows the prices."""
        if self._judge is None:
            return 0, None
        with RunReader(self._folder) as kept:
            prices = stored_prices(kept)
            if prices is None:
                return len(self._replies), None
            bill = Bill(prices)
            for trial in self._trials(kept):
                bill.add(trial.prediction)
        return len(self._replies), describe_bill(bill, None) | {"paid": bill.paid}


def _unread(scores: Sequence[Score], why: str) -> Iterator[Score]:
    return (structs.replace(one, value=None, answer=None, rule=BY_MODEL, reason=why, detail={}) for one in scores)


def _why(votes: Sequence[str | None], answer: str | None) -> str:
    """Return why the model's replies are no answer."""
    if all(vote is None for vote in votes):
        return FAILED
    return NO_REPLY if answer is None else NO_ANSWER


def add_extractor(result: dict[str, Any], folder: Path, task: Task, model: str) -> dict[str, Any]:
    """Say in a task's results which model found answers; without one that it is missing stands there already."""
    slot = slot_of(task) if model else None
    if slot is None or "protocol" not in result:
        return result
    account = Extractor(folder, task, slot, model).account(result["headline"])
    return result | {"protocol": {**result["protocol"], "extractor": account}}
