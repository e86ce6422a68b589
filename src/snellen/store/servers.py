"""Which server answered a run: kept in run.db, so that no folder takes one server's numbers for another's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.errors import RunMismatch
from ..core.protocols import Model
from .writer import TrialWriter

KEY = "servers"


class AskedServer:
    """The server of a model, beside those that a run folder was asked at; a model of this machine has none.

    `allowed` (`--same-model`) takes another server for the same model.
    """

    def __init__(self, folder: Path, model: Model, *, allowed: bool) -> None:
        self._folder = folder
        self._model = model
        self._allowed = allowed

    def check_address(self, writer: TrialWriter) -> None:
        """Refuse a folder that was asked at another address, before anything is asked or reported."""
        known = writer.meta(KEY) or []
        here = self._address()
        if here is None or not known or self._allowed:
            return
        if not any(place_of(one["base_url"]) == place_of(here) for one in known):
            self._refuse(f"was asked at {known[0]['base_url']}, and this is {here}")

    def keep(self, writer: TrialWriter) -> None:
        """Refuse a server that now says something else of its model; else keep what it is."""
        here = self._address()
        if here is None:
            return
        known: list[dict[str, Any]] = writer.meta(KEY) or []
        said = dict(getattr(self._model, "said", None) or {})
        before = [one["says"] for one in known if place_of(one["base_url"]) == place_of(here)]
        changes = [{key for key in said if says.get(key, said[key]) != said[key]} for says in before]
        if set() in changes:
            return
        if changes and not self._allowed:
            key = min(changes[0])
            self._refuse(f"was asked when {here} said {key} {before[0][key]!r} of its model; now {said[key]!r}")
        writer.put_meta(KEY, [*known, {"base_url": here, "says": said}])

    @contextmanager
    def keeping_adjusted(self, writer: TrialWriter) -> Iterator[None]:
        """Keep, after the block, what was sent otherwise than asked, and what replies showed of the server."""
        try:
            yield
        finally:
            for kind in ("adjusted", "warnings"):
                told = list(getattr(self._model, kind, ()))
                if told:
                    writer.put_meta(kind, list(dict.fromkeys([*(writer.meta(kind) or []), *told])))

    def _address(self) -> str | None:
        """Return where the model is served, without a password; None for a model that is not."""
        address = self._model.identity().get("base_url")
        return re.sub(r"://[^/@\s]+@", "://", address) if isinstance(address, str) else None

    def _refuse(self, what: str) -> None:
        advice = "choose another -o, or --same-model if it is the same model"
        raise RunMismatch(f"{self._folder} {what}: {advice}")


def place_of(address: str) -> str:
    """Return an address as it is compared: with and without /v1 it is one server."""
    return address.rstrip("/").removesuffix("/v1")
