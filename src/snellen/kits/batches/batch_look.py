"""The batches of a run, looked at or cancelled from anywhere: the run's folder says where they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...api.chosen_model import create_model
from ...api.settings import RunSettings
from ...core.builtins import default_registry
from ...core.errors import EnvironmentProblem, ModelError, UsageError
from ...core.process import run_to_end
from ...core.secret import Secret
from .batch_ledger import BatchLedger, read_ledger
from .batch_services import open_service


def look_at_batches(folder: Path, key: Secret | None = None, *, cancel: bool = False) -> dict[str, Any]:
    """Return the ledger of a run as data, with how its open batches stand now; `cancel` ends those first.

    Nothing is written: the run's own command may be waiting for the same batches, and it collects them.
    """
    ledger = read_ledger(folder)
    if ledger is None:
        raise UsageError(f"{folder} has no batches: `snellen run … --batch` makes them")
    try:
        cancelled = run_to_end(_ask(ledger, key, cancel=cancel))
    except ModelError as error:
        raise EnvironmentProblem(f"batches of {folder}: {error}") from None
    told: dict[str, Any] = msgspec.to_builtins(ledger)
    return {**told, "waiting": ledger.waiting, "cancelled": cancelled}


def describe_batches(told: dict[str, Any]) -> Iterator[str]:
    """Say how each batch stands, line by line."""
    for file in told["files"]:
        known = file["answered"] if file["answered"] is not None else file["done"]
        how = file["words"] or file["state"]
        yield f"{file['batch'] or file['name']}: {how}, {known:,} of {file['lines']:,} requests"
    if told["cancelled"]:
        yield f"{told['cancelled']} cancelled; what they had done is kept"
    yield f"{told['waiting']:,} requests to be collected by the run's own command" if told["waiting"] else "none waits"


async def _ask(ledger: BatchLedger, key: Secret | None, *, cancel: bool) -> int:
    """Bring the open files of a ledger up to date; return how many batches were cancelled."""
    settings = RunSettings(tasks=(), model=ledger.model, base_url=ledger.base_url, api_key=key, query=ledger.query)
    model = create_model(settings, default_registry())
    service = open_service(model)
    opened = [(file, file.batch) for file in ledger.open if file.batch is not None]
    try:
        for file, batch in opened:
            if cancel:
                await service.cancel(batch)
            state = await service.look(batch)
            file.words, file.done = state.words, state.done
    finally:
        await service.close()
        await model.close()
    return len(opened) if cancel else 0
