"""lmms-eval's files of samples (JSON Lines, or the older JSON with `logs`), with the numbers reported beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ...data.files.jsonstream import iterate_with_header
from .damage import Damage, each_readable, failure_in
from .foreign_rows import (
    NO_REPLY,
    ForeignFile,
    ForeignRow,
    as_list,
    is_nothing,
    lettered,
    likelihoods_in,
    plain_id,
    settle_gold,
    share,
    short_tags,
    shown_options,
    token_pair,
)
from .formats import ForeignSource, PredictionFormat, Record

HARNESS = "lmms-eval"
SAMPLES = re.compile(r"(?P<time>.*?)_?samples_(?P<task>.+?)(?P<later>_\d{4}-\d\d-\d\dT.*)?$")
_FIELDS = frozenset(
    (
        "doc_id",
        "doc_hash",
        "prompt_hash",
        "target_hash",
        "target",
        "input",
        "filtered_resps",
        "resps",
        "token_counts",
        "input_media",
        "arguments",
        "doc",
        "eval_time",
    )
)
IDS = ("id", "question_id", "questionId", "index", "pid", "idx", "qid")
_SCORES = ("score", "correct", "acc", "exact_match")
_READ = ("parsed_pred", "prediction", "pred", "pred_answer", "extracted_answer")


class _Metric(NamedTuple):
    """What a metric's object says of one row."""

    name: str | None = None
    verdict: float | None = None
    read: str | None = None
    tags: Mapping[str, Any] = {}


def is_lmms(source: ForeignSource) -> bool:
    """Tell lmms-eval's files by `doc_id` beside the replies, or by the older form's `logs`."""
    first = source.first
    return ("doc_id" in first and ("filtered_resps" in first or "resps" in first)) or (
        source.is_object and _older_form(source.path)
    )


def open_lmms(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open a file of samples; the results file of the same run tells model, number of rows and the numbers reported."""
    named = SAMPLES.match(source.path.stem)
    task = named["task"] if named else source.path.stem
    results = results_beside(source.path, named)
    model = str(results.get("model_name") or results.get("config", {}).get("model") or source.path.parent.name)
    expected = results.get("n-samples", {}).get(task, {}).get("effective")
    records = _logs(source.path) if source.is_object else source.records()
    rows = each_readable(records, partial(_rows, damage=damage), damage)
    expected = expected if type(expected) is int else None
    return ForeignFile(HARNESS, source.path, rows, task, model, _reported(results, task), expected)


def _reported(results: Mapping[str, Any], task: str) -> dict[str, float]:
    told = results.get("results", {}).get(task, {})
    numbers = {name: value for name, value in told.items() if type(value) in (int, float) and name != "sample_len"}
    return {name: float(value) for name, value in numbers.items() if "_stderr" not in name}


def _older_form(path: Path) -> bool:
    return next((True for key, _ in iterate_with_header(path, ("logs",), nan=True) if key == "element"), False)


def _logs(path: Path) -> Iterator[tuple[int, Record]]:
    elements = (value for key, value in iterate_with_header(path, ("logs",), nan=True) if key == "element")
    return enumerate(elements, 1)


def results_beside(samples: Path, named: re.Match[str] | None) -> dict[str, Any]:
    """Return the results file that was written with a file of samples; nothing where there is none, or several."""
    time, later = (named["time"], named["later"] or "") if named else ("", "")
    names = [f"{time}_results.json", f"results{later}.json"] if time or later else ["*_results.json", "results*.json"]
    files = [file for name in names for file in sorted(samples.parent.glob(name))]
    if len(files) != 1:
        return {}
    header = dict(iterate_with_header(files[0], ("\0",), nan=True))
    return {name: value for name, value in header.items() if isinstance(value, dict | str)}


def _rows(number: int, record: Record, damage: Damage) -> Iterator[ForeignRow]:
    place = record.get("doc_id")
    metric = read_metrics(record)
    doc = doc_of(record)
    own = first_of(doc, IDS) or metric.name
    # A place in the data is no id: it must not be paired with another harness's number by accident.
    name = plain_id(own) if own is not None else f"doc-{number - 1 if place is None else plain_id(place)}"
    prompt = _prompt(record.get("input", record.get("arguments")))
    options = _options(doc) or shown_options(prompt)
    likelihoods = likelihoods_in(record.get("resps", record.get("filtered_resps")))
    likelihoods = likelihoods if likelihoods and len(likelihoods[0]) == len(options) > 1 else []
    gold = settle_gold(options, record.get("target"), name, damage)
    filtered = _filtered(record) if not likelihoods else None
    for repeat, value in enumerate(likelihoods or replies_of(record)):
        reply, failure, read = _reply(value, name, damage) if not likelihoods else (None, None, None)
        yield ForeignRow(
            name,
            gold.form,
            reply,
            failure,
            repeat,
            question=str(doc.get("question") or ""),
            prompt=prompt,
            options=options,
            answers=gold.answers,
            tags=short_tags({**metric.tags, **doc}, _FIELDS | frozenset(IDS)),
            tokens=_tokens(record.get("token_counts"), repeat),
            read_reply=read or (filtered if filtered != reply else None),
            read_answer=metric.read,
            verdict=metric.verdict,
            loglikelihoods=value if likelihoods else (),
            place=place if type(place) is int else None,
        )


def doc_of(record: Record) -> dict[str, Any]:
    """Return the row of the benchmark that a record holds, if any."""
    doc = record.get("doc")
    return doc if isinstance(doc, dict) else {}


def _filtered(record: Record) -> str | None:
    """Return what a filter made of the reply, where it changed it: the harness read that."""
    value = record.get("filtered_resps") if "resps" in record else None
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return value if isinstance(value, str) else None


def replies_of(record: Record) -> list[Any]:
    """Return the replies of a row: one, or one a repeat; lists in lists are opened.

    A row has `resps` exactly where a filter changed them: then `filtered_resps` is a reading, and no reply.
    """
    value = record.get("resps", record.get("filtered_resps"))
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, list) and value else [value if value != [] else None]


def _reply(value: Any, name: str, damage: Damage) -> tuple[str | None, str | None, str | None]:
    while isinstance(value, list) and value:
        value = value[0]
    if value is None or not isinstance(value, str):
        damage.add("lost" if is_nothing(value) else "typed", name)
        return (None, NO_REPLY, None) if is_nothing(value) else (str(value), None, None)
    if not value:
        damage.add("empty", name)
    failure = failure_in(HARNESS, value)
    return (None, failure, value) if failure else (value, None, None)


def read_metrics(record: Record) -> _Metric:
    """Return what the metrics of a row say: the first that gives a number from 0 to 1 is the verdict."""
    found = _Metric()
    for name, value in record.items():
        if name in _FIELDS:
            continue
        metric = _object(value) if isinstance(value, dict) else _Metric(verdict=share(value))
        if metric.verdict is not None or found.name is None:
            found = _Metric(
                metric.name or found.name, metric.verdict, metric.read or found.read, {**found.tags, **metric.tags}
            )
        if found.verdict is not None:
            break
    return found


def _object(value: Mapping[str, Any]) -> _Metric:
    name = first_of(value, IDS)
    read = as_list(first_of(value, _READ))
    read = read[0] if isinstance(read, list) and len(read) == 1 else read
    verdict = next((share(value[key]) for key in _SCORES if key in value), None)
    if verdict is None:
        verdict = _compared(read, value.get("answer"))
    tags = {key: cell for key, cell in value.items() if key not in (*IDS, *_READ, *_SCORES, "answer", "ground_truth")}
    return _Metric(None if name is None else plain_id(name), verdict, read if isinstance(read, str) else None, tags)


def first_of(value: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first of these that holds something, or None."""
    return next((value[name] for name in names if not is_nothing(value.get(name))), None)


def _compared(read: Any, answer: Any) -> float | None:
    """Return the verdict that a letter read beside the right letter means; of texts nobody knows the rule."""
    letters = isinstance(read, str) and isinstance(answer, str) and len(answer) == 1
    return float(read == answer) if letters else None


def _prompt(value: Any) -> str:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, dict):  # arguments as lm-eval writes them
        value = next(iter(value.values()), "")
        return _prompt(value)
    return value if isinstance(value, str) else ""


def _options(doc: Mapping[str, Any]) -> dict[str, str]:
    texts = as_list(doc.get("options", doc.get("choices")))
    if isinstance(texts, list):
        return lettered(texts)
    letters = {key: str(value) for key, value in doc.items() if re.fullmatch("[A-Z]", key) and not is_nothing(value)}
    return {letter: text for letter, text in sorted(letters.items()) if text != "nan"}


def _tokens(counts: Any, repeat: int) -> tuple[int, int] | None:
    entry = counts[repeat] if isinstance(counts, list) and repeat < len(counts) else None
    return token_pair(entry, ("input_tokens", "output_tokens"))


def is_sample_file(file: Path) -> bool:
    """Tell a file of samples by its name, as both harnesses write it."""
    return file.suffix == ".jsonl" and ("samples_" in file.name or file.name.endswith("_samples.jsonl"))


FORMAT = PredictionFormat(is_lmms, open_lmms, is_sample_file)
