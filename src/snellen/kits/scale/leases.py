"""Who holds which item: what waits, what is leased to whom, and what comes back when a replica is lost.

Nothing here waits or sends; the fleet asks and acts.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import FailureKind, ModelError
from ...core.homes import Home
from .items import Item

ALONE_AFTER = 2
"""Lost with its replica so often, a request is leased alone: if it is what kills, it takes nobody with it."""
GIVE_UP_AFTER = 5
"""Lost so often, the last times alone, it is the request that kills: it fails, typed, and the run goes on."""
REMEMBERED_HOMES = 50_000
"""Documents and dialogues whose replica is remembered; the oldest is forgotten first, which costs a cache's hit."""


class LostTooOften(ModelError):
    """So many replicas were lost with one request that it fails; `ended` of them ended, the others fell silent."""

    def __init__(self, lost: int, ended: int, why: str) -> None:
        message = f"{lost} replicas were lost while they answered it, the last one: {why}"
        super().__init__(FailureKind.SERVER, message)
        self.lost, self.ended, self.why = lost, ended, why


@dataclass(slots=True, eq=False)
class Waiting:
    """An item, who waits for its result, and what it has in common with its neighbours."""

    number: int
    item: Item
    answer: asyncio.Future[Any]
    """The result, of the type that the item reads."""
    home: Home | None = None
    lost_by: tuple[int, ...] = ()
    """The replicas that were lost while they held it, in order."""
    ended: int = 0
    """How many of them ended; the others live, and answer nothing."""

    @property
    def lost(self) -> int:
        """Return how often it was lost."""
        return len(self.lost_by)


@dataclass(slots=True)
class Holding:
    """What one replica holds and what waits for it alone."""

    most: int
    """So many requests it may hold: what it works on, and what it goes on with."""
    leased: dict[int, Waiting] = field(default_factory=dict)
    since: dict[int, float] = field(default_factory=dict)
    """When each was leased, the oldest first."""
    own: deque[Waiting] = field(default_factory=deque)
    silent: bool = False
    """It answers nothing: what it holds and what would wait for it is for others."""

    @property
    def room(self) -> int:
        """Return how many requests it may still be given; one that is held alone leaves no room."""
        if len(self.leased) == 1 and next(iter(self.leased.values())).lost >= ALONE_AFTER:
            return 0
        return self.most - len(self.leased)


class LeaseBook:
    """Every request is in one place: waiting for anyone, waiting for one replica, suspected, or leased."""

    def __init__(self) -> None:
        self._shared: deque[Waiting] = deque()
        self._suspects: deque[Waiting] = deque()
        self._holdings: dict[int, Holding] = {}
        self._homes: OrderedDict[Home, int] = OrderedDict()
        self._late: dict[int, tuple[Waiting, float]] = {}
        """What was taken back from a replica that lives: its answer, should it still come, is as good as another's."""

    @property
    def waiting(self) -> int:
        """Return how many requests no replica has."""
        return len(self._shared) + len(self._suspects) + sum(len(one.own) for one in self._holdings.values())

    def held_by(self, replica: int) -> int:
        """Return how many requests a replica has been given and not answered."""
        holding = self._holdings.get(replica)
        return len(holding.leased) if holding else 0

    def join(self, replica: int, most: int) -> None:
        """Let a replica take leases of at most so many requests altogether."""
        self._holdings[replica] = Holding(most)

    def put(self, waiting: Waiting) -> None:
        """Add a request: for the replica of its document or dialogue, else for whoever is free."""
        if waiting.lost >= ALONE_AFTER:
            self._suspects.append(waiting)
            return
        owner = self._homes.get(waiting.home) if waiting.home is not None else None
        if owner is not None and self._serves(owner):
            self._holdings[owner].own.append(waiting)
        else:
            self._shared.append(waiting)

    def take(self, replica: int, most: int, now: float = 0.0) -> list[Waiting]:
        """Lease at most so many requests to a replica: a suspect alone, its own, free ones, a full one's."""
        holding = self._holdings[replica]
        suspect = None if holding.leased else self._suspect_for(replica)
        if suspect is not None:
            self._suspects.remove(suspect)
            return self._lease(holding, [suspect], now)
        most = min(most, holding.room)
        taken: list[Waiting] = []
        while len(taken) < most and holding.own:
            taken.append(holding.own.popleft())
        self._take_shared(replica, most, taken)
        if not taken and most > 0:
            self._take_over(most, taken)
        return self._lease(holding, taken, now)

    def settle(self, replica: int, number: int) -> tuple[Waiting, float] | None:
        """Return who waits for an answer that came and since when, and free the place; None where nobody does."""
        holding = self._holdings.get(replica)
        if holding is None or number not in holding.leased:
            return self._late.pop(number, None)
        return holding.leased.pop(number), holding.since.pop(number)

    def oldest(self, replica: int) -> float | None:
        """Return since when a replica holds what it holds longest; None where it holds nothing."""
        holding = self._holdings.get(replica)
        return next(iter(holding.since.values()), None) if holding else None

    def silence(self, replica: int, silent: bool) -> None:
        """Let nothing more wait for a replica that answers nothing, or let it take part again."""
        holding = self._holdings[replica]
        holding.silent = silent
        while silent and holding.own:
            self._shared.appendleft(holding.own.pop())

    def take_back(self, replica: int, before: float) -> list[Waiting]:
        """Return what a replica that lives has held since before a moment; it holds it no longer."""
        holding = self._holdings[replica]
        overdue = [number for number, since in holding.since.items() if since <= before]
        taken = [(holding.leased.pop(number), holding.since.pop(number)) for number in overdue]
        self._late.update((waiting.number, (waiting, since)) for waiting, since in taken)
        return [waiting for waiting, _ in taken]

    def give_back(self, replica: int) -> list[Waiting]:
        """Return what a lost replica held; what only waited for it waits for anyone now."""
        holding = self._holdings.pop(replica, None)
        if holding is None:
            return []
        for waiting in reversed(holding.own):
            self._shared.appendleft(waiting)
        return list(holding.leased.values())

    def everything(self) -> Iterable[Waiting]:
        """Yield every request that has no answer, wherever it is."""
        yield from self._shared
        yield from self._suspects
        for holding in self._holdings.values():
            yield from holding.own
            yield from holding.leased.values()

    def _suspect_for(self, replica: int) -> Waiting | None:
        """Return a suspect that this replica has not died of, or that nobody else is left to try.

        It may be innocent, and the replica what kills.
        """
        for suspect in self._suspects:
            if replica not in suspect.lost_by or all(other in suspect.lost_by for other in self._holdings):
                return suspect
        return None

    def _take_shared(self, replica: int, most: int, taken: list[Waiting]) -> None:
        while len(taken) < most and self._shared:
            waiting = self._shared.popleft()
            if waiting.home is not None and not self._claim(waiting.home, replica):
                self._holdings[self._homes[waiting.home]].own.append(waiting)
                continue
            taken.append(waiting)

    def _claim(self, home: Home, replica: int) -> bool:
        """Tell whether a document or dialogue is this replica's; one that is nobody's becomes it."""
        owner = self._homes.get(home)
        if owner is not None and owner != replica and self._serves(owner):
            return False
        self._homes[home] = replica
        if len(self._homes) > REMEMBERED_HOMES:
            self._homes.popitem(last=False)
        return True

    def _serves(self, replica: int) -> bool:
        return replica in self._holdings and not self._holdings[replica].silent

    def _take_over(self, most: int, taken: list[Waiting]) -> None:
        """Take what waits for a replica that has no room: one that stands idle costs more than a cold cache."""
        full = [holding for holding in self._holdings.values() if holding.own and holding.room <= 0]
        longest = max(full, key=lambda holding: len(holding.own), default=None)
        while longest is not None and longest.own and len(taken) < most:
            taken.append(longest.own.popleft())

    @staticmethod
    def _lease(holding: Holding, taken: list[Waiting], now: float) -> list[Waiting]:
        live = [waiting for waiting in taken if not waiting.answer.done()]  # who was cancelled waits no more
        holding.leased.update((waiting.number, waiting) for waiting in live)
        holding.since.update((waiting.number, now) for waiting in live)
        return live
