"""Whose predictions a path holds: by what the file shows, or by the name told; folders are searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ...core.errors import DataError, UsageError, did_you_mean
from .damage_counts import Damage
from .evalscope_files import is_evalscope, open_evalscope
from .flageval_results import is_flageval, open_flageval
from .foreign_rows import ForeignFile
from .foreign_source import PICKLES, ForeignSource
from .inspect_logs import is_inspect, open_inspect
from .lmms_files import is_lmms, open_lmms
from .malformed import refuse_malformed
from .opencompass_files import is_aisbench, is_opencompass, open_aisbench, open_opencompass
from .plain_predictions import is_plain, open_plain
from .vlmevalkit_files import RESULTS, is_vlmevalkit, open_vlmevalkit

MOST_NAMED = 8
OWN_ROWS = "rows"
_SKIPPED = (*RESULTS, "_evaluated", "_failed", "_result", "_checkpoint", "_PREV", "_structs", "task_info", "status")
_ENDINGS = (".eval", ".xlsx", ".tsv", ".jsonl", ".json")


class PredictionFormat(NamedTuple):
    """How the files of one harness are told from others, and opened."""

    recognises: Callable[[ForeignSource], bool]
    open: Callable[[ForeignSource, Damage], ForeignFile]


FORMATS: Final[Mapping[str, PredictionFormat]] = {
    "inspect": PredictionFormat(is_inspect, open_inspect),
    "lmms-eval": PredictionFormat(is_lmms, open_lmms),
    "evalscope": PredictionFormat(is_evalscope, open_evalscope),
    "aisbench": PredictionFormat(is_aisbench, open_aisbench),
    "opencompass": PredictionFormat(is_opencompass, open_opencompass),
    "vlmevalkit": PredictionFormat(is_vlmevalkit, open_vlmevalkit),
    "flageval": PredictionFormat(is_flageval, open_flageval),
    "rows": PredictionFormat(is_plain, open_plain),
}
"""Harness -> its format, the most particular first: rows of one's own are told by least."""


def open_predictions(
    path: str | Path, damage: Damage, harness: str | None = None, columns: Mapping[str, str] | None = None
) -> ForeignFile:
    """Open a file of predictions, or the only one in a folder, and count in `damage` what it has lost.

    `columns` (field -> path) says where the fields of one's own rows stand; it makes them rows, whoever wrote them.
    """
    if columns and harness not in (None, OWN_ROWS):
        raise UsageError(f"--map says nothing of files of {harness}: their columns are known; leave one of both out")
    harness = OWN_ROWS if columns else harness
    if harness is not None and harness not in FORMATS:
        known = ", ".join(FORMATS)
        raise UsageError(f"--from {harness!r} is no format{did_you_mean(harness, FORMATS)}; known: {known}")
    source = ForeignSource(_one_file(Path(path)), columns)
    with refuse_malformed(str(source.path)):
        return _recognised(source, harness).open(source, damage)


def _recognised(source: ForeignSource, harness: str | None) -> PredictionFormat:
    if harness is not None:
        return FORMATS[harness]
    found = next((made for made in FORMATS.values() if made.recognises(source)), None)
    if found is None:
        shown = ", ".join(source.shown_columns(MOST_NAMED)) or f"ending {source.ending or '(none)'}"
        fix = f"name the column of replies by --map response=COLUMN, or whose it is by --from {'|'.join(FORMATS)}"
        raise DataError(f"{source.path} is of no known format ({shown}): {fix}")
    return found


def _one_file(path: Path) -> Path:
    """Return the one file of predictions in a folder; several, or only pickles, are refused with their names."""
    if not path.is_dir():
        return path
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.stem.endswith(_SKIPPED)]
    found = _predictions_in(files)
    if len(found) == 1:
        return found[0]
    if not found:
        pickles = [file.name for file in files if file.suffix in PICKLES]
        why = f"only pickles ({', '.join(pickles[:3])}), which are never read" if pickles else "no predictions"
        raise DataError(f"{path} holds {why}: name a file")
    named = ", ".join(str(file.relative_to(path)) for file in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    raise UsageError(f"{path} holds {len(found)} files ({named}{more}): name one of them")


def _predictions_in(files: list[Path]) -> list[Path]:
    """Return what of these may be predictions: samples of lmms-eval where there are any, its results never."""
    samples = [file for file in files if "samples_" in file.name and file.suffix == ".jsonl"]
    return samples or [file for file in files if file.suffix.lower() in _ENDINGS and "_results" not in file.stem]
