"""A refusal to a typed error: what its body says in whatever shape, and what that means, by rules that are data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from ...core.clock import Clock
from ...core.errors import ModelError, StopRun
from ...core.text import clean_text
from ...core.types import FailureKind
from .waits import wait_of

MESSAGE_LIMIT = 300
WHOLE_LIMIT = 4000
NEGOTIABLE = (400, 404, 422)
"""Refusals of the request itself: their whole words tell which parameter was meant."""
TOLD = ("code", "type", "status", "message", "detail", "msg")
TEXTS = ("message", "detail", "msg", "error", "errors", "raw", "error_description")
NAMES = ("code", "type", "status", "__type", "error_code", "errorCode")
DEPTH = 4


class ServerError(NamedTuple):
    """What a server says of its error, whatever shape it says it in."""

    status: int
    names: frozenset[str]
    """Its codes and types, lower case."""
    text: str
    """Its words in one line of bounded length, for people."""
    raw: str
    """Everything it says."""
    whole: str
    """The same in lower case, to be searched."""
    param: str | None = None


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule of catalog/servers/errors.toml."""

    kind: FailureKind
    stop: bool = False
    again: bool = False
    status: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = msgspec.field(name="not", default=())
    waits: bool = False
    """Fits only where the server says how long to wait."""
    fix: str = ""
    seen: tuple[dict[str, Any], ...] = ()

    def fits(self, error: ServerError, wait_s: float | None) -> bool:
        """Tell whether the rule is about this error."""
        if (self.status and error.status not in self.status) or (self.waits and wait_s is None):
            return False
        if not (self.codes or self.says):
            return True
        named = not error.names.isdisjoint(self.codes)
        return (named or _holds(error.whole, self.says)) and not _holds(error.whole, self.exceptions)


def _holds(text: str, parts: tuple[str, ...]) -> bool:
    return any(part in text for part in parts)


@cache
def error_rules() -> tuple[Rule, ...]:
    """Return the rules, in the order they are tried."""
    import tomllib

    table = tomllib.loads((files("snellen") / "catalog" / "servers" / "errors.toml").read_text("utf-8"))
    return tuple(msgspec.convert(table["rules"], list[Rule]))


def status_error(status: int, headers: Mapping[str, str], body: bytes, clock: Clock) -> ModelError:
    """Turn an HTTP error into a typed one: which are final, which are retried, which stop the run."""
    return classify(read_error(status, body), headers, body, clock)


def classify(error: ServerError, headers: Mapping[str, str], body: bytes, clock: Clock) -> ModelError:
    """Return the typed error: the first rule that fits decides, else the status."""
    wait_s = wait_of(error.status, headers, body, clock)
    rule = next((rule for rule in error_rules() if rule.fits(error, wait_s)), None)
    message = f"HTTP {error.status}: {error.text}"
    if rule is None:
        kind = FailureKind.SERVER if error.status >= 500 else FailureKind.REQUEST
        return _typed(ModelError, kind, message, error, retryable=error.status >= 500, wait_s=wait_s)
    message += f" ({rule.fix})" if rule.fix else ""
    told = headers.get("x-should-retry")
    again = told == "true" or (rule.again and told != "false")
    return _typed(StopRun if rule.stop else ModelError, rule.kind, message, error, retryable=again, wait_s=wait_s)


def without_advice(message: str) -> str:
    """Return what a server said without what the rules add to it: a command of its own kind advises otherwise."""
    added = (f" ({rule.fix})" for rule in error_rules() if rule.fix)
    return next((message.removesuffix(end) for end in added if message.endswith(end)), message)


def _typed(
    of: type[ModelError], kind: FailureKind, message: str, error: ServerError, *, retryable: bool, wait_s: float | None
) -> ModelError:
    detail = {"param": error.param} if error.param else {}
    if error.status in NEGOTIABLE:
        detail["whole"] = error.raw[:WHOLE_LIMIT]
    return of(kind, message, status=error.status, retryable=retryable, retry_after_s=wait_s, detail=detail)


def read_error(status: int, body: bytes) -> ServerError:
    """Read an error body: JSON of any of the known shapes, HTML, text, or nothing."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = _title(body.decode("utf-8", "replace"))
        return ServerError(status, frozenset(), _one_line(text), text, text.lower())
    return error_of(value, status)


def error_of(value: Any, status: int) -> ServerError:
    """Read an error that is decoded already; a numeric code inside outweighs the status it came with."""
    inner = value.get("error", value) if isinstance(value, dict) else value
    inner = value if isinstance(inner, str) else inner  # a text: its code stands beside it
    if isinstance(inner, list) and inner and isinstance(inner[0], dict):
        inner = inner[0].get("error", inner[0])
    parts = list(_parts(value, 0))
    names = {str(part[name]).rpartition("#")[2].lower() for part in parts for name in NAMES if _is_name(part.get(name))}
    param = next((str(part["param"]) for part in parts if isinstance(part.get("param"), str)), None)
    raw = clean_text(msgspec.json.encode(value).decode("utf-8", "replace"))
    return ServerError(status, frozenset(names), describe_error(inner), raw, raw.lower(), param)


def _parts(value: Any, depth: int) -> Iterable[dict[str, Any]]:
    """Yield the objects of an error body that may hold its code and its words, also those packed into a text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return
    if isinstance(value, dict):
        yield value
    if depth < DEPTH:
        for item in _inside(value):
            yield from _parts(item, depth + 1)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value.get(name) for name in (*TEXTS, "metadata", "innererror", "details")]
    return value if isinstance(value, list) else []


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def describe_error(error: Any) -> str:
    """Return what a server says of its error, in one line of bounded length."""
    if isinstance(error, dict):
        said = [error[name] for name in TOLD if error.get(name)]
        said += [error["error"]] if isinstance(error.get("error"), str) else []
        error = " ".join(part if isinstance(part, str) else _packed(part) for part in said) or str(error)
    return _one_line(str(error))


def _packed(part: Any) -> str:
    return str(part) if isinstance(part, int | float) else msgspec.json.encode(part).decode()


def _title(text: str) -> str:
    """Return the title of an HTML page, which is all that a proxy says."""
    found = re.search(r"<title>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    return found.group(1) if found else text


def _one_line(text: str) -> str:
    return " ".join(clean_text(text).split())[:MESSAGE_LIMIT]
