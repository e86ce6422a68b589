"""Replicas that live and do not answer: noticed by what the others need, told, and their trials given away.

A slow replica loses nothing by it: what it still answers counts, and from then on its pace is the measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .leases import LeaseBook, Waiting
from .replica_state import Patience, Replica


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
