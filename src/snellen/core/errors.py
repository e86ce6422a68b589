"""Everything Snellen raises on purpose: one root, one line a message (what, where, how to fix).

SnellenError
├── UsageError              exit 2  a flag, argument or name is wrong
│   ├── ConfigError         exit 2  a task, model or prompt file is wrong
│   ├── DataError           exit 2  a dataset record is wrong; names the record
│   │   └── MissingData     exit 2  a benchmark's data is not on this machine
│   └── RunMismatch         exit 2  the run folder belongs to another configuration
├── EnvironmentProblem      exit 3  disk, server, lock
│   ├── ServerLost          exit 3  the server is gone; a part of a run exits 75 (start me again)
│   ├── GroundLost          exit 3  what all replicas ran on is gone
│   └── MissingExtra        exit 3  an optional package is not installed
├── ModelError              a call failed; typed by FailureKind, becomes a Failure row
│   └── StopRun             exit 3  a call failed in a way that dooms every other one (401)
└── Parked                  a request waits in a batch; never seen outside the engine
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from typing import Any

EXIT_AGAIN = 75
"""A command stopped before its end, and started again it goes on: EX_TEMPFAIL of sysexits.h."""


class FailureKind(StrEnum):
    """Why a trial has no reply. Never an answer, never silently out of the denominator."""

    TOO_LONG = "too_long"
    PAYLOAD = "payload"
    RATE = "rate"
    QUOTA = "quota"
    """The account has nothing left, for today or for good: no waiting brings it back."""
    REFUSED = "refused"
    TRUNCATED = "truncated"
    TIMEOUT = "timeout"
    SERVER = "server"
    NETWORK = "network"
    AUTH = "auth"
    REQUEST = "request"
    DECODE = "decode"
    CAPABILITY = "capability"
    SKIPPED = "skipped"
    """Planned but never sent: no pages, a gap in them, more than the model takes, or an answer it waits for failed."""


class SnellenError(Exception):
    """Root of all errors meant for the user; printed as one line without a traceback.

    Example:
        >>> try:
        ...     snellen.run("eyechat", "blind/first")
        ... except snellen.SnellenError as error:
        ...     error.exit_code
        2
    """

    exit_code = 2


class UsageError(SnellenError):
    """A flag, an argument or a name is wrong."""


class ConfigError(UsageError):
    """A task, model or prompt file is wrong."""


class DataError(UsageError):
    """A dataset record is wrong. The message names the file and the record."""


class MissingData(DataError):
    """The data of a benchmark is not on this machine; `card` names what would be fetched."""

    def __init__(self, card: str, message: str) -> None:
        super().__init__(message)
        self.card = card


class RunMismatch(UsageError):
    """The run folder belongs to another configuration; the message shows the difference."""


class EnvironmentProblem(SnellenError):
    """The machine, disk or server is not as needed."""

    exit_code = 3


class ServerLost(EnvironmentProblem):
    """The server answered and no longer does: started again later, the same command goes on."""


class ToldToEnd(KeyboardInterrupt):
    """A scheduler told the process to end (SIGTERM, SIGUSR1, SIGUSR2) while nothing was in flight."""


class GroundLost(EnvironmentProblem):
    """What all replicas ran on is gone: the command line leaves at once.

    Taking apart a library that still looks for it may crash the interpreter, and lose the exit code.
    """


class MissingExtra(EnvironmentProblem):
    """An optional package is needed and not installed."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs an extra that is not installed: pip install 'snellen[{extra}]'")
        self.extra = extra


class ModelError(SnellenError):
    """One call to a model failed. `retryable` and `retry_after_s` steer the engine."""

    exit_code = 3

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.detail = detail or {}


class Parked(SnellenError):
    """A request waits in a batch: its trial is asked again when the batch has ended."""


class StopRun(ModelError):
    """A call failed in a way that dooms every other call: the run stops at once."""


MOST_KNOWN = 2_000
"""So many names are compared with a wrong one: a table may have a hundred thousand columns."""
SHORT, ALIKE_SHORT, ALIKE = 4, 0.6, 0.7
"""How alike a name must be to be guessed: a wrong guess is worse than none, and two letters of four may be swapped."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` for the nearest known name, or for those that begin so; or the empty string."""
    names = list(islice(known, MOST_KNOWN))
    begun = sorted((one for one in names if len(name) >= 3 and one.casefold().startswith(name.casefold())), key=len)
    near = begun[:3] or [one for one in (nearest_name(name, names),) if one]
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return the known name that was probably meant, or the empty string."""
    import difflib  # only a mistake needs it

    folded = {one.casefold(): one for one in islice(known, MOST_KNOWN)}
    wanted = name.casefold()
    near = difflib.get_close_matches(wanted, folded, n=1, cutoff=ALIKE_SHORT if len(name) <= SHORT else ALIKE)
    near = near or [one for one in folded if len(wanted) >= 3 and one.startswith(wanted)][:1]
    return folded[near[0]] if near else ""


def not_among(name: str, known: Iterable[str], verdict: str = "") -> str:
    """Return `'name'verdict, did you mean …; known: …`, the end of a message about a name that is none of `known`."""
    names = list(known)
    return f"{name!r}{verdict}{did_you_mean(name, names)}; known: {', '.join(names)}"
