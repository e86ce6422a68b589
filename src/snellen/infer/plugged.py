"""The jobs of a plug-in's inferencer to jobs that cannot end the run: what they raise becomes typed failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from ..core.errors import FailureKind, ModelError, StopRun
from ..core.jobs import Ask, Item, Job, Step
from ..core.registry import foreign_code
from ..core.text import clean_text
from ..core.types import Failure, Prediction, Request, Sample, TrialKey

raised = "inferencer {!r} raised".format


@dataclass(frozen=True, slots=True)
class PluggedJob:
    """A plug-in's job; the trials it leaves without a reply because it raised are stored as failed."""

    name: str
    job: Job
    keys: Sequence[TrialKey]
    items: Callable[[], Mapping[str, Item]]
    """Sample id -> item; called only when something went wrong."""

    async def run(self, ask: Ask) -> None:
        """Run the job. What it raises on purpose (`ConfigError`, `StopRun`) ends the run, all else its own trials."""
        answered: set[TrialKey] = set()

        def noted(settle: Callable[[Prediction], Prediction | None]) -> Callable[[Prediction], Prediction | None]:
            def settle_and_note(reply: Prediction) -> Prediction | None:
                final = settle(reply)
                answered.update(() if final is None else (final.key,))
                return final

            return settle_and_note

        async def noting(
            item: Item,
            request: Request,
            settled: Prediction | None = None,
            *,
            keep: bool = True,
            turn: Step | None = None,
        ) -> Prediction:
            """Ask, and remember which trials are settled."""
            if turn is not None:
                turn = turn._replace(settle=noted(turn.settle))
                return await ask(item, request, settled, turn=turn)
            prediction = await ask(item, request, settled, keep=keep)
            answered.update((request.key,) if keep else ())
            return prediction

        try:
            with foreign_code(raised(self.name), partial(ModelError, FailureKind.REQUEST)):
                await self.job.run(noting)
        except StopRun:
            raise
        except ModelError as error:
            for key in [key for key in self.keys if key not in answered]:
                failure = Failure(error.kind, clean_text(str(error)), attempts=0)
                await ask(self.items()[key.sample], Request(key, ()), Prediction(key, failure=failure))


def contain(
    name: str, make_jobs: Callable[[], Iterator[Job]], read_samples: Callable[[], Iterable[tuple[int, Sample]]]
) -> Iterator[Job]:
    """Yield the jobs of plug-in `name`, contained; the samples are read again when a job raised, to store what failed.

    A plan that raises cannot go on: it ends the run with an error that names the plug-in.
    """
    items = cache(lambda: {sample.id: Item(position, sample) for position, sample in read_samples()})
    with foreign_code(raised(name)):
        jobs = iter(make_jobs())
    while True:
        with foreign_code(raised(name)):
            job = next(jobs, None)
            keys = job.keys if job is not None else ()
        if job is None:
            return
        yield PluggedJob(name, job, keys, items)
