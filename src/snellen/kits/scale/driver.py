"""Questions and work to replicas, in leases; what a lost one held goes to the others.

To the engine it is one model. Cache, limits, retries, budgets and the store stay with the driver, so that how many
replicas answer, in which order, and which of them die changes no number.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from ...core.answerer import TellsMore
from ...core.errors import EnvironmentProblem, GroundLost, SnellenError, UsageError
from ...core.homes import Home, home_of_request
from ...core.ids import content_hash
from ...core.protocols import Capability, EncodedImages, Model
from ...core.text import plural
from ...core.types import Prediction, Request
from ...core.version import __version__
from .items import FileCache, Hello, Item, Question, read_outcomes
from .leases import GIVE_UP_AFTER, LeaseBook, LostTooOften, Waiting
from .links import Link, ReplicaLost

PATIENCE_S = 60.0
"""No silence is shorter: a model's first answer, or a long one among short ones, may take so long."""
GIVEN_AFTER, ENDED_AFTER = 10.0, 30.0
"""So many times longer than any answer took: then its trials are given to others too, then it is ended."""
LONGEST_PATIENCE = 10.0
"""So many times the patience pass at least before a replica is ended, or a start without any answer is said."""


@dataclass(slots=True)
class Replica:
    """One replica as the driver sees it."""

    number: int
    link: Link | None = None
    """None while it starts, and once it is given up."""
    place: str = ""
    answered: int = 0
    lost: int = 0
    strikes: int = 0
    given_up: str = ""
    heard: float = 0.0
    """When it answered last."""
    silent_since: float | None = None
    """Since when it holds what it does not answer, once that was noticed."""
    ended: asyncio.Future[bytes] | None = None
    """Takes why the driver ends it."""

    @property
    def can_take(self) -> bool:
        """Tell whether it may be given trials."""
        return self.link is not None and self.silent_since is None

    def __str__(self) -> str:
        return f"replica {self.number} {self.place}".strip()


class Patience:
    """What is too long: a multiple of the longest that any answer of any replica took, and never less than a minute."""

    def __init__(self, least_s: float = PATIENCE_S) -> None:
        self.least_s = least_s
        self.longest_s: float | None = None

    @property
    def look_every_s(self) -> float:
        """Return how often to look."""
        return min(5.0, self.least_s / 4)

    def note(self, taken_s: float) -> None:
        """Learn from an answer, counted from its lease: also of a slow replica that was thought to hang."""
        if self.longest_s is None or taken_s > self.longest_s:
            self.longest_s = taken_s

    def given_after(self) -> float | None:
        """Return after how long trials are given to others too; None while no answer tells how long one takes."""
        return None if self.longest_s is None else max(self.least_s, GIVEN_AFTER * self.longest_s)

    def ended_after(self) -> float:
        """Return after how long a silent replica is ended."""
        return max(LONGEST_PATIENCE * self.least_s, ENDED_AFTER * (self.longest_s or 0.0))


class Silence(NamedTuple):
    """What was noticed of one replica, and what is to be done."""

    replica: Replica
    words: str
    taken: Sequence[Waiting] = ()
    """What it held and others are asked now."""
    ends: bool = False


class SilenceWatch:
    """Looks at the book from time to time; nothing here waits or sends."""

    def __init__(self, replicas: Sequence[Replica], book: LeaseBook, patience: Patience, *, served: bool) -> None:
        self._replicas = replicas
        self._book = book
        self._patience = patience
        self._served = served
        """A server's clients: to ask its server twice costs money, and the engine's own time limit holds for each."""
        self._told_start = False

    def look(self, now: float) -> list[Silence]:
        """Return who has been silent for too long."""
        limit = self._patience.given_after()
        if limit is None:
            return self._look_at_start(now)
        living = [replica for replica in self._replicas if replica.link is not None]
        found = [self._look_at(replica, now, limit) for replica in living]
        return [one for one in found if one is not None]

    def hear(self, replica: Replica, now: float) -> str:
        """Note that a replica answered; return what to say where it had been thought to hang."""
        replica.heard = now
        if replica.silent_since is None:
            return ""
        silent, replica.silent_since = now - replica.silent_since, None
        self._book.silence(replica.number, False)
        return f"{replica} answers again after {silent:.0f} s"

    def _look_at_start(self, now: float) -> list[Silence]:
        """Say once that nobody has answered anything: how long an answer takes is not known, so nobody is ended."""
        for replica in self._replicas:
            since = self._book.oldest(replica.number)
            if since is not None and now - since > self._patience.ended_after() and not self._told_start:
                self._told_start = True
                return [Silence(replica, f"{replica}: no first answer for {now - since:.0f} s; it is waited for")]
        return []

    def _look_at(self, replica: Replica, now: float, limit: float) -> Silence | None:
        oldest = self._book.oldest(replica.number)
        since = replica.silent_since if replica.silent_since is not None else oldest
        if since is None or now - since <= limit:
            return None
        if replica.heard > since and not self._served:
            return self._forgotten(replica, now, limit)
        if now - since > self._patience.ended_after():
            return Silence(replica, f"it answered nothing for {now - since:.0f} s ({self._measure()})", ends=True)
        if replica.silent_since is None:
            return self._fallen_silent(replica, since, now)
        taken = self._take_from(replica, now)
        return Silence(replica, f"{replica}: its {len(taken)} trials are given to others", taken) if taken else None

    def _forgotten(self, replica: Replica, now: float, limit: float) -> Silence:
        """It answers others, and some not: those are asked again, by whoever is free."""
        taken = self._book.take_back(replica.number, now - limit)
        words = f"{replica} left {len(taken)} trials unanswered for {limit:.0f} s while it answered others"
        return Silence(replica, f"{words}; asked again", taken)

    def _fallen_silent(self, replica: Replica, since: float, now: float) -> Silence | None:
        if self._served and not any(one.heard > since for one in self._others(replica)):
            return None  # nobody hears from the server
        replica.silent_since = since
        self._book.silence(replica.number, True)
        taken = self._take_from(replica, now)
        words = f"{replica} has answered nothing for {now - since:.0f} s ({self._measure()})"
        held = f"its {len(taken)} trials are given to others" if taken else "it is given nothing more"
        return Silence(replica, f"{words}: {held}; it is ended after {self._patience.ended_after():.0f} s", taken)

    def _take_from(self, replica: Replica, now: float) -> list[Waiting]:
        """Take what a silent replica holds, if anybody is left who could answer it."""
        return [] if self._served or not self._others(replica) else self._book.take_back(replica.number, now)

    def _others(self, replica: Replica) -> list[Replica]:
        return [one for one in self._replicas if one is not replica and one.can_take]

    def _measure(self) -> str:
        return f"the slowest answer took {self._patience.longest_s or 0.0:.1f} s"


LEASE = 32
"""Requests a lease at most: so many that a message costs little a trial, so few that a death costs little."""
STRIKES = 3
"""Once every replica was lost so often in a row without one answer, none is started again."""
REST_S, LONGEST_REST_S = 0.5, 30.0
"""Before a replica is started again; twice as long each time it was lost without an answer."""
UNBOUNDED = 1_000_000


class Known(Protocol):
    """What a replica must be like: what it is called, and what its results depend on."""

    name: str

    def identity(self) -> Mapping[str, Any]:
        """Return what results depend on."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


class Replicas:
    """Items done by replicas; `make_link` makes the line to the n-th of them, anew after each loss.

    A replica is given `lease` items at once and holds `held` of them at most; one that ended `most_ends` replicas
    fails. `tell` hears of losses and silences as they happen, in sentences that call items by their `unit`.
    """

    def __init__(
        self,
        known: Known,
        replicas: int,
        make_link: Callable[[int], Link],
        *,
        lease: int = LEASE,
        held: int | None = None,
        most_ends: int = GIVE_UP_AFTER,
        tell: Callable[[str], object] = lambda _: None,
        unit: str = "trial",
        patience_s: float = PATIENCE_S,
        let_go: Callable[[], None] | None = None,
        lost: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._known = known
        self.name = known.name
        self.replicas = [Replica(number) for number in range(1, replicas + 1)]
        self.notes: list[str] = []
        """What happened to replicas, in sentences: each loss, and what was asked again."""
        self.asked_again = 0
        self._make_link = make_link
        self._let_go, self._lost = let_go, lost
        self._lease, self._held = lease, held or 2 * lease
        self._most_ends, self._tell = most_ends, tell
        self._unit = unit
        self._is_served = known.identity().get("base_url") is not None
        self._book = LeaseBook()
        self._patience = Patience(patience_s)
        self._silences = SilenceWatch(self.replicas, self._book, self._patience, served=self._is_served)
        self._numbers = itertools.count()
        self._keepers: list[asyncio.Task[None]] = []
        self._closing: set[asyncio.Future[None]] = set()
        self._changed = asyncio.Event()
        self._dealing = False
        self._ended: SnellenError | None = None

    @property
    def holds(self) -> int | None:
        """Return how many requests the replicas hold at most together; None for clients of a server: it decides."""
        return None if self._is_served else self._held * len(self.replicas)

    async def check(self) -> None:
        """Start the replicas and wait until one can answer; the others join when they can."""
        if not self._keepers:
            self._keepers = [asyncio.create_task(self._keep(replica)) for replica in self.replicas]
            self._keepers += [asyncio.create_task(self._watch(self._lost))] if self._lost is not None else []
            self._keepers.append(asyncio.create_task(self._watch_silences()))
        while not any(replica.link for replica in self.replicas):
            if self._ended is not None:
                raise self._ended
            self._changed.clear()
            await self._changed.wait()

    async def do(self, item: Item, home: Home | None = None) -> Any:
        """Return the result of one item, done as part of a lease; raise what the replica met."""
        if not self._keepers:
            await self.check()
        if self._ended is not None:
            raise self._ended
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._book.put(Waiting(next(self._numbers), item, answer, home))
        self._deal_soon()
        return await answer

    async def close(self) -> None:
        """End all replicas."""
        self._end(self._ended or EnvironmentProblem("the replicas are closed"))
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self._known.close()
        if self._let_go is not None:
            await asyncio.to_thread(self._let_go)

    def describe_replicas(self) -> str:
        """Return who answers and how much each did, for whoever waits."""
        answering = [one for one in self.replicas if one.link is not None]
        counts = " + ".join(f"{one.answered:,}" for one in self.replicas)
        words = f"{len(answering)} of {len(self.replicas)} replicas ({counts})"
        silent = sum(one.silent_since is not None for one in self.replicas)
        words += f", {silent} silent" if silent else ""
        lost = sum(one.lost for one in self.replicas)
        return f"{words}, lost {lost}, {self.asked_again} asked again" if lost else words

    def summary(self) -> dict[str, Any]:
        """Return what a run keeps of its replicas."""
        answered = {str(one.number): one.answered for one in self.replicas}
        return {"replicas": answered, "lost": sum(one.lost for one in self.replicas), "asked_again": self.asked_again}

    def note(self, words: str) -> None:
        """Keep what happened to a replica, and tell it."""
        self.notes.append(words)
        self._tell(words)

    async def _watch(self, lost: Callable[[], Awaitable[str]]) -> None:
        """End everything when what all replicas run on is lost."""
        self._end(GroundLost(await lost()))
        self._note_change()

    async def _watch_silences(self) -> None:
        """Give away what silent replicas hold, and end those that stay silent."""
        while True:
            await asyncio.sleep(self._patience.look_every_s)
            for found in self._silences.look(time.monotonic()):
                if not found.ends:
                    self._ask_again(found.replica, found.taken, found.words)
                    self.note(found.words)
                elif found.replica.ended is not None and not found.replica.ended.done():
                    found.replica.ended.set_exception(ReplicaLost(found.words))
                self._note_change()

    async def _keep(self, replica: Replica) -> None:
        """Have one replica: start it, take its answers, and start it again when it is lost."""
        while not replica.given_up:
            link, before, replica.place = self._make_link(replica.number), replica.answered, ""
            replica.silent_since, replica.ended = None, asyncio.get_running_loop().create_future()
            try:
                self._check_hello(replica, await link.open())
                replica.link = link
                self._book.join(replica.number, UNBOUNDED if self._is_served else self._held)
                self._note_change()
                while True:
                    self._settle(replica, await _hear(link, replica.ended))
            except ReplicaLost as loss:
                replica.lost += 1
                replica.strikes = 1 if replica.answered > before else replica.strikes + 1
                self._lose(replica, str(loss))
            except SnellenError as error:
                self._give_up(replica, str(error), UsageError if error.exit_code == 2 else EnvironmentProblem)
            finally:
                replica.link = replica.silent_since = None
                replica.ended.cancel()
                await self._hang_up(link)
            await asyncio.sleep(min(LONGEST_REST_S, REST_S * 2.0**replica.strikes) if replica.strikes > 1 else 0)

    async def _hang_up(self, link: Link) -> None:
        """Close a line, to its end also if the fleet is closed meanwhile: nobody else knows of its process."""
        closing = asyncio.ensure_future(link.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)

    def _check_hello(self, replica: Replica, hello: Hello) -> None:
        """Refuse a replica that would answer otherwise than the model that was planned for."""
        replica.place = f"{hello.host}:{hello.pid}"
        if hello.version != __version__:
            raise EnvironmentProblem(f"it has snellen {hello.version} and the driver {__version__}: install the same")
        if hello.identity != content_hash(self._known.identity(), 32):
            raise EnvironmentProblem(f"its {self.name} is not the driver's: the files or their revision differ")

    def _settle(self, replica: Replica, data: bytes) -> None:
        try:
            outcomes = read_outcomes(data)
        except msgspec.DecodeError as error:
            raise ReplicaLost(f"what it answers cannot be read: {error}") from None
        now = time.monotonic()
        if told := self._silences.hear(replica, now):
            self.note(told)
        for outcome in outcomes:
            settled = self._book.settle(replica.number, outcome.number)
            if settled is None:
                continue
            waiting, since = settled
            replica.answered += 1
            self._patience.note(now - since)
            if waiting.answer.done():
                continue
            result = waiting.item.read(outcome)
            if isinstance(result, SnellenError):
                waiting.answer.set_exception(result)
            else:
                waiting.answer.set_result(result)
        self._deal_soon()

    def _lose(self, replica: Replica, why: str) -> None:
        """Give what a lost replica held to the others; a request that was lost too often fails alone."""
        replica.link = None
        held = self._book.give_back(replica.number)
        for waiting in held:
            waiting.ended += 1
        where = f" at {held[0].item.name}" if len(held) == 1 else ""
        self.note(
            f"{replica} lost{where}: {why}; {plural(self._ask_again(replica, held, why), self._unit)} asked again"
        )
        if all(one.strikes >= STRIKES or one.given_up for one in self.replicas):
            self._give_up(replica, f"lost {replica.strikes} times without an answer, the last time: {why}")
        self._note_change()

    def _ask_again(self, replica: Replica, held: Sequence[Waiting], why: str) -> int:
        """Let others answer what a replica did not; return how many that are."""
        live = [waiting for waiting in held if not waiting.answer.done()]
        for waiting in live:
            waiting.lost_by = (*waiting.lost_by, replica.number)
            if waiting.lost >= GIVE_UP_AFTER or waiting.ended >= self._most_ends:
                waiting.answer.set_exception(LostTooOften(waiting.lost, waiting.ended, why))
            else:
                self.asked_again += 1
                self._book.put(waiting)
        return len(live)

    def _give_up(self, replica: Replica, why: str, kind: Callable[[str], SnellenError] = EnvironmentProblem) -> None:
        replica.given_up = why
        self.note(f"{replica} given up: {why}")
        if all(one.strikes >= STRIKES or one.given_up for one in self.replicas):
            for one in self.replicas:
                one.given_up = one.given_up or why
            self._end(kind(f"no replica can answer; {replica}: {why}"))
        self._note_change()

    def _end(self, problem: SnellenError) -> None:
        self._ended = problem
        for waiting in list(self._book.everything()):
            if not waiting.answer.done():
                waiting.answer.set_exception(problem)
                waiting.answer.exception()  # whoever waits hears of it; without anyone, nobody is left to warn

    def _note_change(self) -> None:
        self._changed.set()
        self._deal_soon()

    def _deal_soon(self) -> None:
        """Deal once everybody who is ready has put its request in: a lease is what waits at the same time."""
        if not self._dealing:
            self._dealing = True
            asyncio.get_running_loop().call_soon(self._deal)

    def _deal(self) -> None:
        self._dealing = False
        if self._ended is not None:
            return
        ready = [replica for replica in self.replicas if replica.can_take]
        ready.sort(key=lambda replica: self._book.held_by(replica.number))
        while self._book.waiting and self._deal_round(ready):
            pass

    def _deal_round(self, ready: list[Replica]) -> bool:
        """Give every replica with room a lease, the idlest first; tell whether anything was given."""
        share = max(1, -(-self._book.waiting // max(1, len(ready))))
        given = False
        for replica in ready:
            if not self._may_take(replica):
                continue
            lease = self._book.take(replica.number, min(self._lease, share), time.monotonic())
            if lease and replica.link is not None:
                given = self._hand_over(replica.link, lease)
        return given

    def _hand_over(self, link: Link, lease: Sequence[Waiting]) -> bool:
        """Send a lease; what cannot leave (no room for its pictures) ends the run, as nobody would hear of it here."""
        try:
            link.send(lease)
        except SnellenError as error:
            self._end(error)
            self._note_change()
        return self._ended is None

    def _may_take(self, replica: Replica) -> bool:
        """Tell whether it is time for a lease: one that has work is not sent crumbs, a message costs more than a trial.

        A server's client holds nothing back: it has no work of its own, and others wait for the reply.
        """
        busy = self._book.held_by(replica.number) > self._lease // 2
        return self._is_served or not busy or self._book.waiting >= self._lease


class Fleet(Replicas):
    """A model that is many: the engine asks it, and its replicas answer."""

    def __init__(
        self,
        model: Model,
        replicas: int,
        make_link: Callable[[int], Link],
        *,
        ships_files: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(model, replicas, make_link, **options)
        self._model = model
        self.image_policy, self.cacheable = model.image_policy, model.cacheable
        self.batches = Capability.BATCH in model.capabilities
        self.capabilities = model.capabilities - {Capability.BATCH}
        self.adjusted: dict[str, None] = {}
        self._files = FileCache() if ships_files and not self._is_served else None

    @property
    def said(self) -> Any:
        """Return what the server says of the model, where there is one."""
        return getattr(self._model, "said", None)

    def identity(self) -> Mapping[str, Any]:
        """Return the model's: how many answer changes no reply."""
        return self._model.identity()

    def surroundings(self) -> Mapping[str, Any]:
        """Return the model's: replicas of another version are refused."""
        return self._model.surroundings() if isinstance(self._model, TellsMore) else {"listed": dict(self.said or {})}

    async def check(self) -> None:
        """Ask the server, where there is one; start the replicas."""
        if self._is_served:
            await self._model.check()
        await super().check()

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request as part of a lease; raise what the replica's model raised."""
        files = await self._files.files_of(images) if self._files is not None and images else None
        prediction: Prediction = await self.do(Question(request, images, files), home_of_request(request))
        for change in prediction.detail.get("adjusted", ()):
            self.adjusted[change] = None
        return prediction


async def _hear(link: Link, ended: asyncio.Future[bytes]) -> bytes:
    """Return what a replica answers; raise ReplicaLost when it is lost, or was ended because it answers nothing."""
    answer = asyncio.ensure_future(link.receive())
    try:
        await asyncio.wait({answer, ended}, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else ended.result()
    finally:
        answer.cancel()
