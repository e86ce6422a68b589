"""The one place where a model is called: whatever it raises comes back as an error the engine knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from ..core.errors import ConfigError, ModelError, SnellenError
from ..core.protocols import BatchModel, Capability, Model
from ..core.text import clean_text
from ..core.types import Failure, FailureKind, Prediction, Request

P = ParamSpec("P")
T = TypeVar("T")


def check_members(model: Model) -> None:
    """Refuse a model that lacks something its Protocol asks for, by name: before the first request, not in each."""
    protocols = (Model, BatchModel) if Capability.BATCH in model.capabilities else (Model,)
    members = {name for protocol in protocols for name in (*protocol.__annotations__, *vars(protocol))}
    missing = sorted(name for name in members if not name.startswith("_") and not hasattr(model, name))
    if missing:
        raise ConfigError(f"model {model.name} lacks {', '.join(missing)}: see docs/add-your-own-model.md")


async def call_model(call: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> T:
    """Return what the model returns; raise ModelError for anything it raises but our own errors and TimeoutError."""
    try:
        return await call(*args, **options)
    except (SnellenError, TimeoutError):
        raise
    except Exception as error:  # a model may raise anything; it costs this trial, not the run
        raise ModelError(FailureKind.SERVER, f"the model raised {type(error).__name__}: {error}") from error


def failed(request: Request, error: ModelError, attempts: int) -> Prediction:
    """Return the Prediction that records why a trial has no reply."""
    return Prediction(
        request.key, failure=Failure(error.kind, clean_text(str(error)), error.status, attempts), detail=error.detail
    )
