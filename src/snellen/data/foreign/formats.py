"""Whose predictions a path holds: by what the file shows, or by the name told; folders are searched.

Formats are registered as `predictions`: rows of one's own here, those of other harnesses by a kit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ...core.builtins import default_registry
from ...core.errors import DataError, UsageError, did_you_mean
from ...core.registry import Registry
from .damage_counts import Damage
from .foreign_rows import ForeignFile
from .foreign_source import PICKLES, ForeignSource
from .malformed import refuse_malformed
from .plain_predictions import is_plain, open_plain

MOST_NAMED = 8
OWN_ROWS = "rows"
_SKIPPED = ("_evaluated", "_failed", "_result", "_checkpoint", "_PREV", "_structs", "task_info", "status")
_ENDINGS = (".eval", ".xlsx", ".tsv", ".jsonl", ".json")


class PredictionFormat(NamedTuple):
    """How the files of one harness are told from others, and opened: what is registered as `predictions`."""

    recognises: Callable[[ForeignSource], bool]
    open: Callable[[ForeignSource, Damage], ForeignFile]
    is_named: Callable[[Path], bool] | None = None
    """Tells its files of predictions in a folder by their names, where these are particular."""
    beside: tuple[str, ...] = ()
    """How names end of what it writes beside its predictions."""


ROWS_FORMAT = PredictionFormat(is_plain, open_plain)


def formats(registry: Registry | None = None) -> dict[str, PredictionFormat]:
    """Return harness -> its format, in the order they are tried; rows of one's own are told by least, and come last."""
    registry = registry or default_registry()
    names = [name for name in registry.entries("predictions") if name != OWN_ROWS]
    return {name: registry.get("predictions", name) for name in (*names, OWN_ROWS)}


def open_predictions(
    path: str | Path, damage: Damage, harness: str | None = None, columns: Mapping[str, str] | None = None
) -> ForeignFile:
    """Open a file of predictions, or the only one in a folder, and count in `damage` what it has lost.

    `columns` (field -> path) says where the fields of one's own rows stand; it makes them rows, whoever wrote them.
    """
    if columns and harness not in (None, OWN_ROWS):
        raise UsageError(f"--map says nothing of files of {harness}: their columns are known; leave one of both out")
    known = formats()
    harness = OWN_ROWS if columns else harness
    if harness is not None and harness not in known:
        raise UsageError(f"--from {harness!r} is no format{did_you_mean(harness, known)}; known: {', '.join(known)}")
    source = ForeignSource(_one_file(Path(path), known), columns)
    with refuse_malformed(str(source.path)):
        return _recognised(source, harness, known).open(source, damage)


def _recognised(source: ForeignSource, harness: str | None, known: Mapping[str, PredictionFormat]) -> PredictionFormat:
    if harness is not None:
        return known[harness]
    found = next((made for made in known.values() if made.recognises(source)), None)
    if found is None:
        shown = ", ".join(source.shown_columns(MOST_NAMED)) or f"ending {source.ending or '(none)'}"
        fix = f"name the column of replies by --map response=COLUMN, or whose it is by --from {'|'.join(known)}"
        raise DataError(f"{source.path} is of no known format ({shown}): {fix}")
    return found


def _one_file(path: Path, known: Mapping[str, PredictionFormat]) -> Path:
    """Return the one file of predictions in a folder; several, or only pickles, are refused with their names."""
    if not path.is_dir():
        return path
    skipped = (*_SKIPPED, *(ending for made in known.values() for ending in made.beside))
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.stem.endswith(skipped)]
    found = _predictions_in(files, known)
    if len(found) == 1:
        return found[0]
    if not found:
        pickles = [file.name for file in files if file.suffix in PICKLES]
        why = f"only pickles ({', '.join(pickles[:3])}), which are never read" if pickles else "no predictions"
        raise DataError(f"{path} holds {why}: name a file")
    named = ", ".join(str(file.relative_to(path)) for file in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    raise UsageError(f"{path} holds {len(found)} files ({named}{more}): name one of them")


def _predictions_in(files: list[Path], known: Mapping[str, PredictionFormat]) -> list[Path]:
    """Return what of these may be predictions, by the first shape of a run's folder that fits; reports never."""
    shapes = [made.is_named for made in known.values() if made.is_named is not None]
    found = next(filter(None, ([file for file in files if is_named(file)] for is_named in shapes)), None)
    return found or [file for file in files if file.suffix.lower() in _ENDINGS and "_results" not in file.stem]
