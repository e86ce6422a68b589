"""A run to its results: results.json where it belongs to what is stored, else computed now; and its exam.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..core.builtins import default_registry
from ..core.errors import DataError
from ..core.registry import Registry
from ..core.tasks import RunHeader
from ..core.types import Estimate
from ..scoring.protocols.readings import COUNTED, own_reading
from ..store.reader import RunReader

Results = dict[str, Any]
Figures = dict[str, Estimate]


class _OfTask(msgspec.Struct):
    metrics: Figures
    groups: dict[str, dict[str, Figures]]


class _Shape(msgspec.Struct):
    """What is read of results.json without another look; a file of another shape is not ours."""

    tasks: dict[str, _OfTask]
    usage: dict[str, int | None]


def read_results(
    reader: RunReader, header: RunHeader, *, most: int | None = None, registry: Registry | None = None
) -> Results:
    """Return results.json where it belongs to what is stored, else the same computed now (nothing is written).

    A run of more than `most` trials is not computed on the way: it is shown without metrics until it has been scored.
    """
    stored = next(reader.rows("SELECT COUNT(*) FROM predictions"))[0]
    written = written_results(reader.folder, header, stored)
    if written is not None:
        return written
    # What scores is imported where there is nothing written: most who look at a run look at a finished one.
    from ..scoring.run import score_run

    if most is not None and stored > most:
        from ..scoring.results import frame_results

        nothing: dict[str, Any] = {task.name: {"metrics": {}, "groups": {}} for task in header.tasks}
        return frame_results(reader, header, nothing, {}, own_reading(reader))
    return score_run(reader, registry or default_registry(), reading=own_reading(reader), keep=False)


def written_results(folder: Path, header: RunHeader, stored: int) -> Results | None:
    """Return results.json if it belongs to a run of so many stored trials: the database need not be open for that.

    One of 0.2 does not: its figures leave out what was not read.
    """
    try:
        results: Results = msgspec.json.decode((folder / "results.json").read_bytes())
        planned, waiting = results["status"]["planned"], results["status"]["not_yet_asked"]
        is_of_run = results["run"]["id"] == header.id and results["run"].get("counted") == COUNTED
        if is_of_run and sum(planned.values()) - sum(waiting.values()) == stored:
            msgspec.msgpack.encode(msgspec.convert(results, _Shape))  # which holds no count beyond 64 bits
            return results
    except (OSError, msgspec.DecodeError, LookupError, TypeError, AttributeError, OverflowError):
        pass  # missing, foreign or half-written: the database is the truth
    return None


def stored_exam(folder: Path) -> dict[str, Any] | None:
    """Return what an exam found; None where there is no exam.json (none was sat, or it is not over)."""
    path = folder / "exam.json"
    try:
        content = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} is not an exam: {error}; run the same `snellen exam` again") from None
    if not isinstance(content, dict) or not isinstance(content.get("tests"), dict):
        raise DataError(f"{path} is not an exam: it holds no tests; run the same `snellen exam` again")
    return content
