"""Who answered a run: a table in run.db that every reply names a row of, so that no folder mixes two models unseen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..core.answerer import FIELDS, Answerer, answerer_of, differences
from ..core.errors import RunMismatch
from ..core.protocols import Model
from ..core.types import Prediction
from ..core.version import __version__
from .writer import TrialWriter

KEY = "answerers"
KEY_02 = "servers"
"""What 0.2 kept: addresses, and what they listed."""
SAID = ("model", "fingerprint")
UNNAMED = "unnamed"
"""Whether replies were stored that say nothing of who made them."""
OPENED = "opened"
"""What a plug-in was seen to open while it answered: files by name, with a hash."""
NEW_IN_03 = ("listed.id", "listed.created", "listed.max_model_len")
"""What 0.2 did not note of a listing, or not always."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answerer of a run; replies name it by its place in the table, counted from 1."""

    who: Answerer
    since: str = ""
    snellen: str = ""
    """The version that asked first."""


def read_table(meta: Any) -> list[Row]:
    """Return the table of a run by its `meta` (key to value), also of one that 0.2 wrote."""
    kept = meta(KEY)
    if kept is not None:
        return msgspec.convert(kept, list[Row])
    unknown = (*(name for name in FIELDS if name not in ("address", "listed")), *NEW_IN_03[:2])
    return [Row(Answerer(address=one["base_url"], listed=one["says"], unknown=unknown)) for one in meta(KEY_02) or ()]


class JoinedTable:
    """The tables of the parts of a run as one: each answerer once, in the order of the logs."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def other(self, rows: Iterable[Row]) -> str:
        """Say where a part's answerers differ from every one here; nothing where they are one model."""
        for row in rows:
            found = [
                next(differences(known.who, row.who), "") or _other_name(known.who, row.who) for known in self.rows
            ]
            if found and all(found):
                return found[0]
        return ""

    def take(self, rows: Iterable[Row]) -> list[int]:
        """Take in a part's table; return the place here, counted from 1, of each of its rows."""
        return [self._place(row) for row in rows]

    def _place(self, row: Row) -> int:
        bare = replace(row.who, replies={})
        for place, known in enumerate(self.rows, 1):
            if known.who == row.who or (not row.who.replies and replace(known.who, replies={}) == bare):
                return place
            if known.who == bare:  # entered before a reply was there: now it is known what replies say
                self.rows[place - 1] = replace(known, who=row.who)
                return place
        self.rows.append(row)
        return len(self.rows)


def _other_name(before: Answerer, now: Answerer) -> str:
    """Say that replies name another model than those before; nothing where one of them names none."""
    old, new = before.replies.get("model"), now.replies.get("model")
    return f"was answered by model {old!r}, and now {new!r} says it answers" if old and new and old != new else ""


class Answerers:
    """Who answers now, beside those who answered a run folder before; `allowed` (`--same-model`) takes them for one."""

    def __init__(self, folder: Path, model: Model, writer: TrialWriter, *, allowed: bool) -> None:
        self._folder = folder
        self._model = model
        self._writer = writer
        self._allowed = allowed
        self._rows = read_table(writer.meta)
        self._places: dict[tuple[str | None, str | None], int] = {}
        self._heard_before = [said for row in self._rows if (said := row.who.replies)]
        self._unnamed_before = bool(writer.meta(UNNAMED)) and not self._heard_before
        self._is_first = True
        self._opened: Mapping[str, str] = getattr(model, OPENED, {})
        self._compared = 0

    @property
    def now(self) -> Answerer:
        """Return who answers, as far as it is known now."""
        return answerer_of(self._model)

    def check(self, *, listed: bool) -> Answerer:
        """Return who answers now, or refuse a folder that another answered.

        `listed`: the server was asked what it says of its model.
        """
        now = self.now
        found = [next(differences(row.who, now, listed=listed), "") for row in self._rows]
        if found and all(found) and not self._allowed:
            self._refuse(found[-1])
        return now

    def keep(self) -> Answerer:
        """Return who answers now that the server was asked, entered where he is new; another is refused."""
        now = self.check(listed=True)
        rows = [row for row in self._rows if replace(row.who, replies={}) == now]
        if not rows and not any(_covers(row.who, now) for row in self._rows):
            self._enter(now)
        return now

    def note(self, prediction: Prediction) -> Prediction:
        """Return a reply with the row of who made it; one that says it is another model's stops the run."""
        if prediction.failure is not None:
            return prediction
        if len(self._opened) != self._compared:
            self._compare_opened()
        detail = prediction.detail
        said = (detail.get("model"), detail.get("fingerprint"))
        row = self._places.get(said) or self._place_of(said)
        return replace(prediction, answerer=row)

    def _place_of(self, said: tuple[str | None, str | None]) -> int:
        replies = {name: str(word) for name, word in zip(SAID, said, strict=True) if word}
        if not self._allowed:
            self._compare(replies)
        if self._is_first and not replies:
            self._writer.put_meta(UNNAMED, True)
        self._is_first = False
        who = replace(self.now, replies=replies)
        found = [place for place, row in enumerate(self._rows, 1) if row.who == who]
        self._places[said] = found[0] if found else self._enter(who)
        return self._places[said]

    def _compare(self, replies: Mapping[str, str]) -> None:
        """Refuse another model's name in a reply; another fingerprint only where a run goes on after a break.

        Providers change their fingerprints from reply to reply, so one more of them while a run goes on is noted, as
        a row of its own. A run of one fingerprint that goes on with another had one server and has another.
        """
        heard = [*self._heard_before, *(row.who.replies for row in self._rows if row.who.replies)]
        models = list(dict.fromkeys(one["model"] for one in heard if "model" in one))
        if models and "model" in replies and replies["model"] not in models:
            self._refuse(f"was answered by model {models[-1]!r}, and now {replies['model']!r} says it answers")
        if self._is_first and self._unnamed_before and replies:
            told = " and ".join(f"{name} {word!r}" for name, word in replies.items())
            self._refuse(f"was answered by replies that say nothing of their model, and now they say {told}")
        prints = {one.get("fingerprint") for one in self._heard_before}
        if self._is_first and len(prints) == 1 and replies.get("fingerprint") not in prints:
            (before,) = prints
            self._refuse(f"was answered with fingerprint {before!r}, and now {replies.get('fingerprint')!r}")

    def _compare_opened(self) -> None:
        """Refuse a plug-in that reads another file, while it answers, than it did for the replies before."""
        opened, before = dict(self._opened), self._writer.meta(OPENED) or {}
        other = next((name for name, content in opened.items() if before.get(name, content) != content), None)
        if other is not None and not self._allowed:
            self._refuse(f"was answered with another {other}, which the plug-in reads while it answers")
        self._writer.put_meta(OPENED, before | opened)
        self._compared = len(opened)

    def _enter(self, who: Answerer) -> int:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        bare = replace(who, replies={})
        spare = [place for place, row in enumerate(self._rows, 1) if row.who == bare and not self._unnamed_before]
        row = Row(who, since, __version__)
        if spare and who.replies:  # entered before a reply was there: now it is known what replies say
            self._rows[spare[0] - 1] = row
        else:
            self._rows.append(row)
        self._writer.put_meta(KEY, self._rows)
        return spare[0] if spare and who.replies else len(self._rows)

    @contextmanager
    def keeping_adjusted(self) -> Iterator[None]:
        """Keep, after the block, what was sent otherwise than asked, and what replies showed of the server."""
        try:
            yield
        finally:
            for kind in ("adjusted", "warnings"):
                told = list(getattr(self._model, kind, ()))
                if told:
                    before = self._writer.meta(kind) or []
                    self._writer.put_meta(kind, list(dict.fromkeys([*before, *told])))

    def _refuse(self, what: str) -> None:
        advice = "choose another -o, or --same-model if it is the same model"
        raise RunMismatch(f"{self._folder} {what}: {advice}")


def _covers(known: Answerer, now: Answerer) -> bool:
    """Tell whether a row says all that is known now: a server that was not asked, or lists nothing, adds nothing."""
    return not known.unknown and replace(known, replies={}, listed={}) == replace(now, listed={}) and not now.listed
