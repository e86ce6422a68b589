"""Run folders to whether their test was seen before: `snellen contaminated`, `snellen.contaminated`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import UsageError
from ..scoring.aggregates.seen_before import SeenTest, seen_tests
from ..store.reader import RunReader

HOW = "--variant base --variant order=1 --variant order=2 --variant order=3 --variant control=recall"


def contaminated(run: str | Path, references: Sequence[str | Path] = ()) -> dict[str, list[SeenTest]]:
    """Return, task by task, the tests of whether a model has seen its test before, each with its power.

    The run must have asked changed forms of its questions; `references` are runs of models that cannot have seen it.

    Example:
        >>> from snellen.api.seen_before import contaminated
        >>> contaminated("runs/x")["my"][0].verdict  # doctest: +SKIP
        'no drop found'
    """
    with ExitStack() as stack:
        reader = stack.enter_context(RunReader(Path(run)))
        others = [stack.enter_context(RunReader(Path(folder))) for folder in references]
        header = reader.header()
        for folder, other in zip(references, others, strict=True):
            if other.header().id == header.id:
                raise UsageError(f"--reference {folder} is the run itself: name a run of another model")
        names = [{task.name for task in other.header().tasks} for other in others]
        found = {}
        for task in header.tasks:
            beside = [other for other, own in zip(others, names, strict=True) if task.name in own]
            found[task.name] = seen_tests(reader, task, beside)
    if not any(found.values()):
        more = "and --variant twin=1 where the card has rules for twins"
        raise UsageError(f"{run} asked no changed form of its questions: ask it again with {HOW}, {more}")
    return {name: tests for name, tests in found.items() if tests}


def described(found: dict[str, list[SeenTest]]) -> dict[str, Any]:
    """Return the tests as plain data, each with its sentence."""
    return {task: [{**msgspec.to_builtins(one), "says": one.says} for one in tests] for task, tests in found.items()}
