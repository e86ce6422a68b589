"""Whose predictions a path holds: by what the file shows, or by the name told; folders are searched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...core.errors import DataError, UsageError, did_you_mean
from ..files.jsonstream import iterate_members, iterate_records
from .damage_counts import Damage
from .eee_files import is_eee, open_eee
from .evalscope_files import PREDICTIONS, is_evalscope, open_evalscope
from .flageval_results import is_flageval, open_flageval
from .foreign_rows import ForeignFile, ForeignRow, is_nothing, plain_id
from .foreign_source import PICKLES, ForeignSource, Record
from .gold import settle_gold, shown_options
from .helm_folders import STATE, is_helm, open_helm
from .inspect_logs import is_inspect, open_inspect
from .lm_eval_files import is_lm_eval, open_lm_eval
from .lmms_files import is_lmms, open_lmms
from .malformed import each_readable, refuse_malformed
from .nemo_results import is_nemo, open_nemo
from .openai_events import is_openai_events, open_openai_events
from .plain_predictions import is_plain, open_plain
from .trace_exports import is_traces, open_traces
from .vlmevalkit_files import RESULTS, is_vlmevalkit, open_vlmevalkit

OPENCOMPASS, AISBENCH = "opencompass", "aisbench"
FAILED = "_failed.jsonl"
OWN_FIELDS = frozenset(("origin_prompt", "prediction", "gold", "reference", "res_length", "error_info", "success"))


def is_opencompass(source: ForeignSource) -> bool:
    """Tell OpenCompass by rows numbered as keys, each with a prediction and nothing but what it writes beside it."""
    if not source.is_object or not source.first_key.isdecimal():
        return False
    first = next((value for _, value in iterate_members(source.path, nan=True)), None)
    return isinstance(first, dict) and "prediction" in first and first.keys() <= OWN_FIELDS


def is_aisbench(source: ForeignSource) -> bool:
    """Tell AISBench by `data_abbr` beside the prediction."""
    return {"data_abbr", "id", "prediction"} <= source.first.keys()


def open_opencompass(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a file of OpenCompass; its number is in `results/MODEL` beside `predictions/MODEL`."""
    members = iterate_members(source.path, nan=True)
    records = ((int(key) + 1, {"id": key, **value}) for key, value in members)
    return _opened(OPENCOMPASS, source.path, records, damage)


def open_aisbench(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a file of AISBench; calls that failed stand in `NAME_failed.jsonl` beside it and are rows too."""
    failed = source.path.with_name(f"{source.path.stem}{FAILED}")
    return _opened(AISBENCH, source.path, source.records(), damage, failed)


def _opened(
    harness: str, path: Path, records: Iterator[tuple[int, Record]], damage: Damage, failed: Path | None = None
) -> ForeignFile:
    rows = each_readable(records, partial(_rows, damage=damage), damage)
    if failed is not None and failed.is_file():
        rows = chain(rows, _failures(failed, damage))
    notes = [] if failed is None or not failed.is_file() else [f"failures of {failed.name}"]
    return ForeignFile(harness, path, rows, path.stem, path.parent.name, _reported(path), notes=notes)


def _rows(number: int, record: Record, damage: Damage) -> Iterator[ForeignRow]:
    name, prompt = plain_id(record.get("id")), _prompt(record.get("origin_prompt"))
    options = shown_options(prompt)
    gold = settle_gold(options, record.get("gold"), name, damage)
    for repeat, value in enumerate(_predictions(record)):
        reply, failure = _reply(value, record, name, damage)
        yield ForeignRow(name, gold.form, reply, failure, repeat, prompt=prompt, options=options, answers=gold.answers)


def _predictions(record: Record) -> list[Any]:
    value = record.get("prediction")
    return value if isinstance(value, list) and value else [value]


def _reply(value: Any, record: Record, name: str, damage: Damage) -> tuple[str | None, str | None]:
    if (is_nothing(value) and value != "") or record.get("success") is False:
        damage.add("lost", name)
        return None, str(record.get("error_info") or "the file holds no reply")
    if value == "":
        damage.add("empty", name)
    return str(value), None


def _failures(path: Path, damage: Damage) -> Iterator[ForeignRow]:
    for _, record in iterate_records(path, nan=True):
        name, prompt = plain_id(record.get("id")), _prompt(record.get("input"))
        options = shown_options(prompt)
        gold = settle_gold(options, record.get("gold"), name, damage)
        why = str(record.get("error_info") or "failed")
        yield ForeignRow(name, gold.form, None, why, prompt=prompt, options=options, answers=gold.answers)


def _prompt(value: Any) -> str:
    """Return the words of a prompt: text, messages as OpenCompass writes them, or as a chat API takes them."""
    if isinstance(value, str):
        return value
    parts: list[str] = []
    for message in value if isinstance(value, list) else []:
        if not isinstance(message, Mapping) or message.get("role", "HUMAN") not in ("HUMAN", "user"):
            continue
        content = message.get("prompt", message.get("content"))
        texts = [content] if isinstance(content, str) else [part.get("text") for part in content or []]
        parts += [text for text in texts if isinstance(text, str)]
    return "\n".join(parts)


def _reported(path: Path) -> dict[str, float]:
    try:
        file = path.parent.parent.parent / "results" / path.parent.name / f"{path.stem}.json"
        told = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}
    value = told.get("accuracy") if isinstance(told, dict) else None
    return {f"results/{path.stem}.json accuracy": float(value) / 100} if isinstance(value, int | float) else {}


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
    "lm-eval": PredictionFormat(is_lm_eval, open_lm_eval),
    "lmms-eval": PredictionFormat(is_lmms, open_lmms),
    "evalscope": PredictionFormat(is_evalscope, open_evalscope),
    "every-eval-ever": PredictionFormat(is_eee, open_eee),
    "helm": PredictionFormat(is_helm, open_helm),
    "nemo-evaluator": PredictionFormat(is_nemo, open_nemo),
    "openai-evals": PredictionFormat(is_openai_events, open_openai_events),
    "aisbench": PredictionFormat(is_aisbench, open_aisbench),
    "opencompass": PredictionFormat(is_opencompass, open_opencompass),
    "vlmevalkit": PredictionFormat(is_vlmevalkit, open_vlmevalkit),
    "flageval": PredictionFormat(is_flageval, open_flageval),
    "traces": PredictionFormat(is_traces, open_traces),
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
    """Return what of these may be predictions, by the first shape of a run's folder that fits; reports never."""
    shapes: tuple[Callable[[Path], bool], ...] = (
        lambda file: file.name == STATE,
        lambda file: file.suffix == ".jsonl" and ("samples_" in file.name or file.name.endswith("_samples.jsonl")),
        lambda file: file.suffix == ".jsonl" and file.parent.parent.name == PREDICTIONS,
        lambda file: file.name == "results.jsonl",
    )
    found = next(filter(None, ([file for file in files if shape(file)] for shape in shapes)), None)
    return found or [file for file in files if file.suffix.lower() in _ENDINGS and "_results" not in file.stem]
