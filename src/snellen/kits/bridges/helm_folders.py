"""HELM's run folders: `scenario_state.json` with its requests, verdicts from `per_instance_stats.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from ...core.errors import DataError
from ...core.types import BASE_VARIANT, Form
from ...data.files.jsonstream import iterate_array, iterate_with_header
from .chat_parts import pictures_beside
from .damage import Damage, each_readable, stopped_by_filter
from .foreign_rows import ForeignFile, ForeignRow, how_it_ended, lettered, plain_id, share
from .formats import ForeignSource, PredictionFormat, Record

HARNESS = "helm"
STATE, STATS, SPEC = "scenario_state.json", "per_instance_stats.json", "run_spec.json"
_CORRECT = "correct"
_VERDICTS = ("exact_match", "quasi_exact_match", "prefix_exact_match")
"""Which of its statistics of an instance is the verdict: the first that there is."""
_CALIBRATED = "multiple_choice_separate_calibrated"
Key = tuple[str, str, int]
"""Instance, variant, train trial."""


def is_helm(source: ForeignSource) -> bool:
    """Tell a run's state by its name, or by what it opens with."""
    if source.path.name == STATE:
        return True
    return source.is_object and source.first_key == "adapter_spec"


def open_helm(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open the state of a run; requests are read one by one, since the file can be gigabytes."""
    folder = source.path.parent
    spec = _object(folder / SPEC)
    adapter = spec.get("adapter_spec") or {}
    verdicts, reported = _verdicts(folder / STATS), _reported(folder / "stats.json")
    read = partial(_rows, file=source.path, adapter=adapter, verdicts=verdicts, damage=damage)
    rows = each_readable(enumerate(_trials(source.path), 1), read, damage)
    task = str(spec.get("name") or folder.name).partition(":")[0]
    model = str(adapter.get("model") or adapter.get("model_deployment") or "")
    notes = [] if spec else [f"no readable {SPEC} beside it: model and method are not known"]
    return ForeignFile(HARNESS, source.path, rows, task, model, reported, notes=notes)


def _object(path: Path) -> Record:
    try:
        value = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _variant(perturbation: Any) -> str:
    """Return the variant of an instance: HELM's perturbation by its name and, where it has any, its settings."""
    if not isinstance(perturbation, dict) or not perturbation.get("name"):
        return BASE_VARIANT
    rest = {name: value for name, value in sorted(perturbation.items()) if name != "name"}
    mark = f":{crc32(msgspec.json.encode(rest)):08x}" if rest else ""
    return f"helm={perturbation['name']}{mark}"


def _key(entry: Mapping[str, Any], instance: Mapping[str, Any]) -> Key:
    name = instance.get("id", instance.get("instance_id"))
    return plain_id(name), _variant(instance.get("perturbation")), int(entry.get("train_trial_index") or 0)


def _verdicts(path: Path) -> dict[Key, float]:
    found: dict[Key, float] = {}
    if not path.is_file():
        return found
    for entry in iterate_array(path):
        stats = {one["name"]["name"]: one for one in entry.get("stats") or [] if _is_plain(one, entry)}
        verdict = next((share(stats[name].get("mean")) for name in _VERDICTS if name in stats), None)
        if verdict is not None:
            found[_key(entry, entry)] = verdict
    return found


def _is_plain(stat: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Tell whether a statistic is of the instance itself: not the worst case over its perturbed copies."""
    told = stat["name"].get("perturbation")
    return told is None or told == entry.get("perturbation")


def _reported(path: Path) -> dict[str, float]:
    if not path.is_file():
        return {}
    found = {}
    for stat in iterate_array(path):
        name = stat.get("name") or {}
        if name.get("name") in _VERDICTS and not name.get("perturbation") and isinstance(stat.get("mean"), int | float):
            found[f"{name['name']} ({name.get('split') or 'all'})"] = float(stat["mean"])
    return found


def _trials(path: Path) -> Iterator[list[Record]]:
    """Yield the requests of each trial: one, or one a reference where these were asked one by one."""
    states = (value for kind, value in iterate_with_header(path, ("request_states",), nan=True) if kind == "element")

    def asked(state: Record) -> tuple[Any, ...]:
        key = _key(state, state.get("instance") or {})
        return key if state.get("reference_index") is not None else (*key, id(state))

    return (list(group) for _, group in groupby(states, key=asked))


def _rows(
    number: int,
    states: Sequence[Record],
    *,
    file: Path,
    adapter: Mapping[str, Any],
    verdicts: Mapping[Key, float],
    damage: Damage,
) -> Iterator[ForeignRow]:
    first = states[0]
    instance = first["instance"]
    name, variant, trial = key = _key(first, instance)
    references = instance.get("references") or []
    texts = [str(reference["output"]["text"]) for reference in references]
    right = tuple(text for text, one in zip(texts, references, strict=True) if _CORRECT in (one.get("tags") or ()))
    separate = first.get("reference_index") is not None
    options = lettered(texts) if separate else dict(first.get("output_mapping") or {})
    prompt, refs = _asked(first.get("request") or {}, instance)
    right = tuple(text for text in right if text in options.values()) if options else right
    if not right:
        damage.add("odd_gold" if texts and options else "no_gold", name)
    base = ForeignRow(
        name,
        Form.CHOICE if options else Form.OPEN,
        question=str((instance.get("input") or {}).get("text") or ""),
        prompt=prompt,
        options=options,
        answers=right,
        images=pictures_beside(file, refs, name, damage),
        variant=variant,
        verdict=verdicts.get(key),
        tags={"split": instance["split"]} if instance.get("split") else {},
    )
    if separate:
        yield _by_reference(base, states, trial, calibrated=adapter.get("method") == _CALIBRATED)
    else:
        yield from _replies(base, first, trial, damage)


def _asked(request: Mapping[str, Any], instance: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the words that were sent and what names the pictures."""
    shown = (request.get("multimodal_prompt") or {}).get("media_objects")
    media = shown or ((instance.get("input") or {}).get("multimedia_content") or {}).get("media_objects") or []
    texts = [str(part.get("text") or "") for part in media if str(part.get("content_type")).startswith("text")]
    refs = [str(part.get("location") or "") for part in media if str(part.get("content_type")).startswith("image")]
    return str(request.get("prompt") or "\n".join(texts)), refs


def _replies(base: ForeignRow, state: Record, trial: int, damage: Damage) -> Iterator[ForeignRow]:
    result = state.get("result")
    if result is None:
        raise DataError(f"instance {base.id!r} was never asked: the run was stopped, or only planned")
    told = result.get("completions") or []
    count = max(1, int((state.get("request") or {}).get("num_completions") or 1), len(told))
    common: dict[str, Any] = {"latency_s": result.get("request_time")}
    if not result.get("success", True) or not told:
        why = str(result.get("error") or "HELM says that the request did not succeed")
        yield msgspec.structs.replace(base, failure=why, repeat=trial * count)
        return
    for place, one in enumerate(told):
        reply = str(one.get("text") or "").removeprefix(" ")
        finish = how_it_ended((one.get("finish_reason") or {}).get("reason"))
        refused = stopped_by_filter(finish, reply)
        if not reply and not refused:
            damage.add("empty", base.id)
        yield msgspec.structs.replace(
            base,
            reply=None if refused else reply,
            failure=refused,
            repeat=trial * count + place,
            reasoning=(one.get("thinking") or {}).get("text"),
            finish=finish,
            **common,
        )


def _by_reference(base: ForeignRow, states: Sequence[Record], trial: int, *, calibrated: bool) -> ForeignRow:
    """Return the one trial that requests of all references are: the log-likelihood of each after the question."""
    failed = next((state for state in states if not (state.get("result") or {}).get("success")), None)
    if failed is not None:
        why = str((failed.get("result") or {}).get("error") or "one of its requests did not succeed")
        return msgspec.structs.replace(base, failure=why, repeat=trial)
    texts = list(base.options.values())
    values: dict[str, dict[int, tuple[float, int]]] = {}
    for state in states:
        place = int(state["reference_index"])
        mode = values.setdefault(str(state.get("request_mode") or "original"), {})
        mode[place] = _likelihood(state["result"]["completions"][0], f" {texts[place]}")
    asked = values.get("original", {})
    if set(asked) != set(range(len(texts))):
        raise DataError(f"instance {base.id!r} has requests for {len(asked)} of {len(texts)} references")
    detail: dict[str, Any] = {"tokens": [asked[place][1] for place in range(len(texts))]}
    if calibrated:
        detail["priors"] = [values["calibration"][place][0] for place in range(len(texts))]
    likelihoods = tuple(asked[place][0] for place in range(len(texts)))
    reduction = "sum" if calibrated else "mean"
    return msgspec.structs.replace(
        base, loglikelihoods=likelihoods, reduction=reduction, repeat=trial, detail={**base.detail, **detail}
    )


def _likelihood(completion: Mapping[str, Any], reference: str) -> tuple[float, int]:
    """Return the sum over the last tokens, which spell the reference, and how many they are."""
    total, count, left = 0.0, 0, len(reference)
    for token in reversed(completion.get("tokens") or []):
        if left <= 0:
            break
        total, count, left = total + float(token["logprob"]), count + 1, left - len(str(token["text"]))
    if not count:
        raise DataError("a completion without tokens: the log-likelihood of its reference is not known")
    return total, count


FORMAT = PredictionFormat(is_helm, open_helm, lambda file: file.name == STATE)
