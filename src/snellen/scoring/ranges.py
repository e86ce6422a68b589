"""A range of a run's samples to one part of its results, here or in another process: read, scored, coded, nothing kept.

Every part is a function of run.db and of the spec alone, so it does not matter who makes it, or how often.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from msgspec import structs

from ..core.errors import DataError, EnvironmentProblem
from ..core.looks import DETAIL, why_unscored
from ..core.process import rare_collections
from ..core.registry import Registry, foreign_code, resolve_target
from ..core.tasks import Task
from ..core.twins import AXIS, twin_of
from ..core.types import Score, TrialKey
from ..data.files.work import Work, WorkSpec
from ..extract.extraction import REFUSED, UNPARSED, UNSEEN
from ..extract.other_kinds import says_unseen, stated_confidence
from ..model.served.prices import Bill, Prices
from ..store.database import Row
from ..store.reader import Rows, RunReader, Trial, row_of_score
from .aggregates.headline import main_first, quoted_metric
from .aggregates.means import axes_of
from .protocols.peer_scores import ScoreTrial, score_with_peer
from .tables.gathered import GatheredPart, GatheredTask, Scored
from .tables.table import STATED

Recorder = Callable[[Sequence[Scored]], bytes]
"""Makes the lines of records.jsonl of scored trials."""
BATCH = 64
"""Trials that are scored and coded together."""


def _plain(value: object) -> object:
    """Return a number of numpy's as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a score holds {type(value).__name__}, which is neither a number nor a text")


_encode_rows = msgspec.msgpack.Encoder(enc_hook=_plain).encode
read_rows_of_scores: Callable[[bytes], list[Row]] = msgspec.msgpack.Decoder(list[tuple[Any, ...]]).decode
"""Return the rows of scores that a part brought."""


class RangeSpec(NamedTuple):
    """What is to be done with every range of a task; all of it can be sent to another process."""

    folder: str
    task: Task
    """As the reading has it."""
    options: Mapping[str, Any]
    """What scorers are told: the task's own options among them."""
    scorers: tuple[str, ...]
    prices: Prices | None = None
    for_pages: bool = False
    recorder: str = ""
    """`module:function` that makes the lines of records.jsonl of scored trials; without it there are none."""
    registry: tuple[str, Any] = ("snellen.core.builtins:default_registry", None)
    """`module:function` that makes the registry, and what it is told (nothing: None)."""
    extractor: str = ""
    """The model whose replies say what the task's rule leaves unread, where its protocol has a slot for one."""

    def make_registry(self) -> Registry:
        """Return the registry that the spec names, made here."""
        maker, told = self.registry
        registry: Registry = resolve_target(maker)() if told is None else resolve_target(maker)(told)
        return registry

    def dumped(self) -> bytes:
        """Return it as bytes for another process of the same program."""
        return pickle.dumps(tuple(self))

    @classmethod
    def loaded(cls, data: bytes) -> RangeSpec:
        """Return what was dumped; only the driver's own bytes come here."""
        return cls(*pickle.loads(data))  # noqa: S301


class ScoredRange(NamedTuple):
    """One part of a task: what it adds to the tables, to the scores in run.db and to records.jsonl."""

    gathered: GatheredPart
    trials: int
    scores: bytes
    """Rows of the table of scores, packed; see `read_rows_of_scores`."""
    records: bytes


def scorer_of(registry: Registry, spec: RangeSpec) -> ScoreTrial:
    """Return the scorers of a spec as one; what an extractor replied is read once, for all ranges."""
    score = joined_scorer(registry, spec.scorers)
    if not spec.extractor:
        return score
    from .judges.extractor import Extractor, slot_of

    slot = slot_of(spec.task)
    return score if slot is None else Extractor(Path(spec.folder), spec.task, slot, spec.extractor).scorer(score)


def score_range(reader: RunReader, score: ScoreTrial, spec: RangeSpec, rows: Rows) -> ScoredRange:
    """Score the trials of some samples; each passes once, to all that it is for."""
    task = spec.task
    record: Recorder | None = resolve_target(spec.recorder) if spec.recorder else None
    gathered = GatheredTask(task, for_pages=spec.for_pages, bill=Bill(spec.prices) if spec.prices else None)
    stored: list[Row] = []
    lines: list[bytes] = []
    trials, count = reader.trials_of(task.name, rows), 0
    while batch := list(islice(trials, BATCH)):
        scored = [(trial, score_trial(task, score, trial, spec.options)) for trial in batch]
        gathered.add(scored)
        stored += [row_of_score(task.name, one) for _, scores in scored for one in scores]
        if record is not None:
            lines.append(record(scored))
        count += len(scored)
    return ScoredRange(gathered.part(), count, _encode_rows(stored), b"".join(lines))


def pack_scores(task: str, scores: Iterable[Score]) -> bytes:
    """Return scores as packed rows."""
    return _encode_rows([row_of_score(task, score) for score in scores])


def scored_trials(
    reader: RunReader, task: Task, registry: Registry, options: Mapping[str, Any], scorers: Sequence[str]
) -> Iterator[Scored]:
    """Yield every stored trial with its scores, in the order of the plan; scorers are told what the task says."""
    options, score = {**task.score_options, **options}, joined_scorer(registry, scorers)
    for trial in reader.trials(task.name):
        yield trial, score_trial(task, score, trial, options)


def joined_scorer(registry: Registry, names: Sequence[str]) -> ScoreTrial:
    """Return the named scorers as one."""
    functions: list[ScoreTrial] = [registry.get("scorer", name) for name in names]
    if len(functions) == 1:
        return functions[0]
    return lambda *trial: [score for function in functions for score in function(*trial)]


def score_trial(task: Task, score: ScoreTrial, trial: Trial, options: Mapping[str, Any]) -> Sequence[Score]:
    """Return the scores of one trial, that of the headline first, and those that its protocol's own tool would give.

    A failed one has no other.
    """
    sample, request, prediction, _ = trial
    if AXIS in prediction.key.variant:
        sample = twin_of(sample, axes_of(prediction.key.variant))
    found: Sequence[Score] = ()
    if task.fallback:
        found = score_with_peer(task.fallback, score, (sample, request, prediction), options)
    elif prediction.failure is None:
        found = list(score(sample, request, prediction, options))
    for one in found:
        if one.key != prediction.key:
            raise DataError(_of_another(task, one, prediction.key))
    if DETAIL in prediction.detail and (why := why_unscored(prediction)):
        found = [msgspec.structs.replace(one, value=None, answer=None, rule=None, reason=why) for one in found]
    if prediction.text:
        found = [_with_what_is_said(one, prediction.text) for one in found]
    return main_first(found, quoted_metric(task))


def _with_what_is_said(score: Score, reply: str) -> Score:
    """Return a score with what a reply says beside an answer: that it sees no picture, and how sure it is."""
    if score.value is None:
        unseen = score.reason in (REFUSED, UNPARSED) and says_unseen(reply)
        return structs.replace(score, reason=UNSEEN) if unseen else score
    sure = stated_confidence(reply)
    return score if sure is None else structs.replace(score, detail={**score.detail, STATED: sure})


def _of_another(task: Task, score: Score, shown: TrialKey) -> str:
    """Say that a scorer names a trial that it was not shown: such a score would count a trial that nobody asked."""
    what = f"task {task.name!r}: a scorer was shown sample {shown.sample!r} ({shown.variant}, repeat {shown.repeat})"
    other = f"{score.key.sample!r} ({score.key.variant}, repeat {score.key.repeat})"
    return f"{what} and gave {score.metric!r} to {other}: a Score has the key of the prediction it is of"


def score_here(reader: RunReader, registry: Registry, spec: RangeSpec, ranges: Sequence[Rows]) -> Iterator[ScoredRange]:
    """Yield the parts of all ranges, in their order, made in this process."""
    score = scorer_of(registry, spec)
    return (score_range(reader, score, spec, rows) for rows in ranges)


Name = Callable[[int], str]
"""Says which item is meant, counted from 0."""


class Executor(Protocol):
    """Who does the work of a scoring, elsewhere; `registry` is how it makes its scorers, see `RangeSpec`."""

    registry: tuple[str, Any]

    def work_through(self, spec: WorkSpec, items: Iterable[bytes], name: Name) -> Iterator[bytes]:
        """Yield the results of work on these items, in their order."""
        ...


def score_elsewhere(executor: Executor, spec: RangeSpec, ranges: Sequence[Rows]) -> Iterator[ScoredRange]:
    """Yield the parts of all ranges, in their order, made by an executor."""
    folder = str(Path(spec.folder).resolve())  # a node of a cluster works elsewhere
    settings = spec._replace(registry=executor.registry, folder=folder).dumped()
    items = (rows.tobytes() for rows in ranges)
    name = partial(_name_range, len(ranges), spec.task.name)
    return map(_read_part, executor.work_through(WorkSpec(f"{__name__}:RangeWork", settings), items, name))


def _name_range(count: int, task: str, number: int) -> str:
    return f"range {number + 1} of {count} of task {task!r}"


def _read_part(result: bytes) -> ScoredRange:
    part: ScoredRange = pickle.loads(result)  # noqa: S301 - only bytes of our own processes come here
    return part


class RangeWork:
    """Turns the rows of a range into its part of the results."""

    def __init__(self, settings: bytes) -> None:
        self.facts: dict[str, Any] = {}
        self._spec = RangeSpec.loaded(settings)
        self._reader = RunReader(Path(self._spec.folder))
        self._score = scorer_of(self._spec.make_registry(), self._spec)

    def __call__(self, item: bytes) -> bytes:
        """Return the part, packed."""
        try:
            return pickle.dumps(score_range(self._reader, self._score, self._spec, np.frombuffer(item, np.int64)), 5)
        except MemoryError:
            raise EnvironmentProblem("out of memory while scoring: fewer --replicas, or --executor local") from None


class ScoringWork:
    """Does all work of one run's scoring: an item says which; the last stays made, as thousands follow."""

    def __init__(self, settings: bytes) -> None:
        with RunReader(settings.decode()) as reader:  # whoever sees another run at this path must not score it
            self.facts = {"run": reader.header().id, "numpy": np.__version__}
        self._last: tuple[WorkSpec, Work] | None = None

    def __call__(self, item: bytes) -> bytes:
        """Return the result of the item that was packed."""
        maker, settings, content = _unpack(item)
        spec = WorkSpec(maker, settings)
        with foreign_code("a range cannot be scored:"), rare_collections():
            if self._last is None or self._last[0] != spec:
                self._last = spec, spec.make()
            return self._last[1](content)


_unpack = msgspec.msgpack.Decoder(tuple[str, bytes, bytes]).decode


def scoring_spec(folder: Path) -> WorkSpec:
    """Return what scores a run: one spec, so that its processes stay from task to task."""
    return WorkSpec(f"{__name__}:ScoringWork", str(folder.resolve()).encode())


def pack_item(spec: WorkSpec, item: bytes) -> bytes:
    """Return an item of one kind of work as an item of the whole scoring."""
    return msgspec.msgpack.encode((*spec, item))
