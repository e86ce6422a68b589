"""A job: trials that belong together, and how to ask them. The engine runs jobs side by side, a job asks in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol, Self

import msgspec

from .errors import Parked
from .looks import Look
from .tasks import Prompt
from .types import BASE_VARIANT, Failure, FailureKind, Prediction, Request, Sample, TrialKey


class Item(NamedTuple):
    """A sample and its place in the plan."""

    position: int
    sample: Sample


class Step(NamedTuple):
    """One turn of a trial that may have several: which, what it shows, and whether its reply is the trial's."""

    number: int
    looks: Sequence[Look]
    """What its request shows for the first time."""
    settle: Callable[[Prediction], Prediction | None]
    """Called with the reply: returns the trial's prediction where this turn is the last, else None."""


class Ask(Protocol):
    """Sends one request down the line: cache, limits, retries, store. A finished trial answers from the store."""

    def __call__(
        self,
        item: Item,
        request: Request,
        settled: Prediction | None = None,
        *,
        keep: bool = True,
        turn: Step | None = None,
    ) -> Awaitable[Prediction]:
        """Return the trial's prediction; a failure is a Prediction too.

        `settled` is stored as it is and nothing is sent, unless the trial is finished; without `keep` the reply is only
        a part of a trial and not stored. With `turn` it is that turn's reply, stored before it is returned (a failure
        is not); a turn that was answered before is answered from the store.
        """
        ...


class Job(Protocol):
    """Some trials that must be asked one after another; a single trial in the simplest case."""

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return the trials this job will produce, known before anything is asked."""
        ...

    async def run(self, ask: Ask) -> None:
        """Ask them in order."""
        ...


class OneRequest(msgspec.Struct, frozen=True, gc=False):
    """The simplest job: one trial, whose request is built when its turn comes."""

    item: Item
    keys: tuple[TrialKey]
    build: Callable[[Sample, TrialKey], Request]

    async def run(self, ask: Ask) -> None:
        """Build the request and ask it."""
        await ask(self.item, self.build(self.item.sample, self.keys[0]))


class ReadyRequests(NamedTuple):
    """Requests about one item that wait for nothing but their turn."""

    item: Item
    requests: Sequence[Request]

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return a key a request."""
        return [request.key for request in self.requests]

    async def run(self, ask: Ask) -> None:
        """Ask one after another, whether or not one fails."""
        parked: Parked | None = None
        for request in self.requests:
            try:
                await ask(self.item, request)
            except Parked as later:  # the others need not wait for this one's batch
                parked = later
        if parked is not None:
            raise parked


async def skip_after(ask: Ask, asked: Sequence[Prediction], waiting: Iterable[tuple[Item, TrialKey]]) -> None:
    """Store the trials that wait for an answer among `asked` that failed as failed, unsent; a later run asks them."""
    lost = next((prediction.key, prediction.failure) for prediction in asked if prediction.failure is not None)
    reason = f"not asked: {lost[0].sample} before it failed ({lost[1].kind.value})"
    for item, key in waiting:
        await ask(item, Request(key, ()), Prediction(key, failure=Failure(FailureKind.SKIPPED, reason, attempts=0)))


class RequestBuilder(Protocol):
    """What an inferencer builds requests with: a `snellen.prompt.build.Prompter` knows the task's prompt and seed."""

    @property
    def prompt(self) -> Prompt:
        """Return the prompt that requests are built from."""
        ...

    def build(
        self, sample: Sample, variant: str = BASE_VARIANT, repeat: int = 0, replies: Sequence[str] | None = None
    ) -> Request:
        """Return the Request of one trial; `replies` are the model's own answers to earlier rounds of a dialogue."""
        ...

    def with_prompt(self, prompt: Prompt) -> Self:
        """Return a builder of the same task and seed with another prompt."""
        ...


_PAY: ContextVar[Callable[[], None] | None] = ContextVar("pay", default=None)
"""A request that a model sends again by itself is paid for like the first: whoever asked says how."""


@contextmanager
def resends_paid_by(pay: Callable[[], None]) -> Iterator[None]:
    """Let `pay` be called before each request that is sent again in this block; it may refuse by raising."""
    before = _PAY.set(pay)
    try:
        yield
    finally:
        _PAY.reset(before)


def pay_for_resend() -> None:
    """Pay for one more request, if somebody counts them."""
    pay = _PAY.get()
    if pay is not None:
        pay()
