"""Who answers: one record of all that makes a reply one model's, and the words for where two of them differ.

It is part of the cache's key, stands in run.db as a table, and every stored reply names its row there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from .ids import content_hash
from .loaded_code import hashes_of, packages_of
from .secret import Secret, names_a_key, slow_hash

CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key"})
"""Headers that say who pays, not who answers: they change with every renewal, and no trace of them is stored."""


class Answerer(Struct, frozen=True, omit_defaults=True):
    """Everything that is known of who answers. Two that differ in any field are not taken for one."""

    model: str = ""
    """As the user wrote it, `provider/name`."""
    makes: dict[str, Any] = {}
    """What the model itself says changes its replies (`Model.identity`): revision, files, picture policy …"""
    address: str = ""
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    """By name, a hash of the value."""
    body: dict[str, Any] = {}
    """What is written otherwise into every request: by a provider's card, by arguments."""
    listed: dict[str, Any] = {}
    """What the server lists of its model: id, root, created, max_model_len …"""
    packages: dict[str, str] = {}
    """Of a model of this machine, and of a plug-in: the versions that compute its replies."""
    weights: dict[str, str] = {}
    """Of a checkpoint or adapter in a folder: a hash of its files that looks all over the large ones."""
    code: dict[str, str] = {}
    """Of a plug-in: its file, the modules it imports, the files and environment variables it reads, each by a hash."""
    replies: dict[str, str] = {}
    """What replies say of who made them: model, fingerprint."""
    unknown: tuple[str, ...] = ()
    """Fields that the version which wrote this did not note."""

    @property
    def key(self) -> str:
        """Return a hash of all that is known before a reply is there: the model's part of a cache key."""
        return content_hash(msgspec.structs.replace(self, replies={}, unknown=()), 32)


@runtime_checkable
class TellsMore(Protocol):
    """A model that knows more of who answers than its identity says."""

    def surroundings(self) -> Mapping[str, Any]:
        """Return fields of `Answerer`: query, headers, body, listed, packages, code."""
        ...


def answerer_of(model: Any) -> Answerer:
    """Return who answers for a model, as far as it is known now: what a server lists only after `Model.check`."""
    makes = msgspec.json.decode(msgspec.json.encode(dict(model.identity())))  # as it will be read from a file
    address = makes.pop("base_url", None) or ""
    more = (
        model.surroundings() if isinstance(model, TellsMore) else {"listed": dict(getattr(model, "said", None) or {})}
    )
    plain = msgspec.json.decode(msgspec.json.encode({"packages": packages_of(model), **more, "code": hashes_of(model)}))
    return Answerer(getattr(model, "name", ""), makes, re.sub(r"://[^/@\s]+@", "://", address), **plain)


def hashed_headers(headers: Mapping[str, Secret], address: str) -> dict[str, str]:
    """Return what of headers may be stored: a slow hash of each value but of credentials, which are left out."""
    told = {name.lower(): secret.reveal() for name, secret in headers.items()}
    return {
        name: slow_hash(value, f"{address}\0{name}")
        for name, value in sorted(told.items())
        if name not in CREDENTIALS and not names_a_key(name)
    }


def installed(*packages: str) -> dict[str, str]:
    """Return the versions of packages, as far as they are installed."""
    found = {}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


FIELDS = ("address", "query", "headers", "body", "packages", "weights", "listed")
"""What is compared, in this order; `model`, `makes` and `code` are part of a run's name already."""


def whole_difference(before: Answerer, now: Answerer) -> str:
    """Say where two differ, also in what is part of a run's name: the model's own identity, a plug-in's files."""
    for one in differences(before, now):
        return one
    for name in ("makes", "code"):
        old, new = _flat(getattr(before, name)), _flat(getattr(now, name))
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                return f"was asked with another {key}"
    return "was asked otherwise"


def _flat(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= _flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return found


def differences(before: Answerer, now: Answerer, *, listed: bool = True) -> Iterator[str]:
    """Say where two differ, the plainest first; what one of them does not know is no difference.

    Without `listed` the server was not asked yet. One that now lists nothing at all says nothing else than before.
    """
    for name in FIELDS:
        if name in before.unknown or (name == "listed" and not (listed and now.listed)):
            continue
        if name == "address":
            if before.address and place(before.address) != place(now.address):
                yield f"was asked at {before.address}, and this is {now.address}"
            continue
        old, new = getattr(before, name), getattr(now, name)
        if name == "weights" and not old:  # noted since 0.3
            continue
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key) and not (name == "listed" and f"listed.{key}" in before.unknown):
                yield _changed(name, key, old.get(key), new.get(key), now.address)


def _changed(name: str, key: str, old: Any, new: Any, address: str) -> str:
    if name == "listed":
        return f"was asked when {address} said {key} {_word(old)} of its model; now {_word(new)}"
    if name == "headers":
        return f"was asked with {'another' if old and new else 'no' if new else 'a'} header {key}"
    what = {"query": "--query", "body": "body", "packages": "package", "weights": "weights of the"}[name]
    return f"was asked with {what} {key} {_word(old)}; now {_word(new)}"


def _word(value: Any) -> str:
    return "nothing" if value is None else repr(value)


def place(address: str) -> str:
    """Return an address as it is compared: with and without /v1 it is one server."""
    return address.rstrip("/").removesuffix("/v1")
