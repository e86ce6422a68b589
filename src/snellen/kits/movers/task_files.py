"""A task file of FlagEvalMM, AISBench or ReForm-Eval to one of ours, with what could not be taken."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...core.errors import DataError, UsageError
from ..reform.items import find_card_of_config

UNKNOWN = object()
"""A value that only running the file would give."""


def read_assignments(path: Path) -> dict[str, Any]:
    """Return what a file assigns at its top level: literals, `dict(...)`, names of what it assigned before.

    A class or function is its name; what only running would tell is left out.
    """
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as Python: {error}") from None
    known: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            value = _value(node.value, known)
            known |= {target.id: value for target in node.targets if isinstance(target, ast.Name)}
    return {name: value for name, value in known.items() if value is not UNKNOWN}


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id, node.id)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [value for one in node.elts if (value := _value(one, known)) is not UNKNOWN]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _sum(_value(node.left, known), _value(node.right, known))
    pairs = _pairs(node)
    if pairs is None:
        return UNKNOWN
    made: dict[str, Any] = {}
    for key, value in pairs:
        found = _value(value, known)
        if key is None:
            made |= found if isinstance(found, dict) else {}
        elif found is not UNKNOWN:
            made[key] = found
    return made


def _pairs(node: ast.expr) -> list[tuple[str | None, ast.expr]] | None:
    """Return the pairs of `{...}` and of `dict(...)`; None of anything else. A key None stands for `**`."""
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        return [(None if key is None else str(key), value) for key, value in zip(keys, node.values, strict=True)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [(word.arg, word.value) for word in node.keywords]
    return None


def _sum(left: Any, right: Any) -> Any:
    return left + right if type(left) is type(right) and isinstance(left, str | list) else UNKNOWN


RETRIEVERS = {"ZeroRetriever": None, "RandomRetriever": "random", "BM25Retriever": "bm25", "TopkRetriever": "similar"}
INFERENCERS = {"GenInferencer": "", "MultiTurnGenInferencer": "every", "PPLInferencer": "perplexity"}
PLACES = re.compile(r"\{(\w+)\}")

BASE, REPEATED = "BaseEvaluator", "MultiInferenceEvaluator"
"""FlagEvalMM's evaluators of one reply and of several, whose mean every run here takes."""


class Moved(Struct):
    """A task as a table, a card it is instead, and what was left behind."""

    name: str
    table: dict[str, Any] = {}
    card: str = ""
    left: list[str] = []


def read_task_file(path: Path, data_root: Path | None = None) -> list[Moved]:
    """Return the tasks of a file, told apart by what it assigns."""
    if path.suffix in (".yaml", ".yml"):
        return [Moved(path.stem, card=find_card_of_config(path.name))]
    if not path.is_file():
        raise UsageError(f"{path} is not a file")
    values = read_assignments(path)
    if isinstance(values.get("dataset"), dict) and "config" in values["dataset"]:
        return [_from_flageval(path, values, data_root)]
    lists = [value for name, value in values.items() if name.endswith("datasets") and isinstance(value, list)]
    found = [_from_aisbench(path, one, data_root) for rows in lists for one in rows if isinstance(one, dict)]
    if not found:
        shapes = "`dataset = dict(config=…)` (FlagEvalMM) or `…_datasets = [dict(infer_cfg=…)]` (AISBench)"
        raise DataError(f"{path} has neither {shapes}; nothing was run")
    return found


def _from_flageval(path: Path, values: Mapping[str, Any], root: Path | None) -> Moved:
    dataset, evaluator = values["dataset"], values.get("evaluator") or {}
    config = dataset["config"]
    name = str(dataset.get("name") or path.stem)
    if "processed_dataset_path" not in config:
        raise DataError(f"{path}: config names no processed_dataset_path: give the folder that process.py wrote")
    folder = (root or Path(str(dataset.get("data_root") or "."))) / str(config["processed_dataset_path"])
    split = str(config.get("split") or "")
    if (folder / split / "data.json").is_file() and split:
        folder /= split
    table: dict[str, Any] = {"name": name, "form": "auto", "dataset": {"loader": "table", "path": str(folder)}}
    table["dataset"]["preset"] = "flageval"
    if keys := evaluator.get("detailed_keys"):
        table["group_by"] = list(keys)
    template = dataset.get("prompt_template") or {}
    if post := template.get("post_prompt"):
        table["prompt"] = {"instructions": [str(post)]}
    left = [f"prompt_template.{key}" for key in template if key not in ("type", "post_prompt")]
    left += [f"evaluator {evaluator['type']}"] if evaluator.get("type", BASE) not in (BASE, REPEATED) else []
    left += [f"evaluator.{key}" for key in evaluator if key not in ("type", "detailed_keys")]
    return Moved(name, table, left=left)


def _from_aisbench(path: Path, dataset: Mapping[str, Any], root: Path | None) -> Moved:
    name = str(dataset.get("abbr") or path.stem)
    if not isinstance(dataset.get("path"), str):
        raise DataError(f"{path}: dataset {name!r} names no path: give its file as the task instead")
    place = Path(dataset["path"]) if root is None else root / dataset["path"]
    table: dict[str, Any] = {"name": name, "form": "auto", "dataset": {"loader": "table", "path": str(place)}}
    reader, infer = (dataset.get(key) or {} for key in ("reader_cfg", "infer_cfg"))
    columns = _columns(reader)
    if columns:
        table["dataset"]["columns"] = columns
    left = [f"{key}.{inner}" for key in ("eval_cfg",) for inner in dataset.get(key) or {}]
    left += [f"type {dataset['type']}: rows are read by their columns"] if dataset.get("type") else []
    template, inside = _template(infer.get("prompt_template") or {}, columns)
    if template:
        table["prompt"] = {"template": template, "instructions": []}
    left += [*inside, *_method(infer, table)]
    return Moved(name, table, left=left)


def _columns(reader: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    asked = reader.get("input_columns") or []
    asked = [asked] if isinstance(asked, str) else asked
    if asked and "question" not in asked:
        found["question"] = str(asked[0])
    if isinstance(answer := reader.get("output_column"), str) and answer != "answer":
        found["answer"] = answer
    return found


def _template(given: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the one thing a user says, our names in its places; what else the template has is left behind."""
    template = given.get("template")
    if isinstance(template, str):
        rounds: list[Any] = [{"role": "HUMAN", "prompt": template}]
    else:
        rounds = (template or {}).get("round") or [] if isinstance(template, dict) else []
    asked = [one for one in rounds if isinstance(one, dict) and one.get("role") == "HUMAN"]
    left = [f"round of {one.get('role')}" for one in rounds if one not in asked and one.get("prompt")]
    left += [f"prompt_template.{key}" for key in given if key not in ("type", "template")]
    if len(asked) != 1:
        return "", [*left, "prompt_template: not one HUMAN round"] if rounds else left
    ours = {column: field for field, column in columns.items()}
    return PLACES.sub(lambda place: f"{{{ours.get(place[1], place[1])}}}", str(asked[0].get("prompt", ""))), left


def _method(infer: Mapping[str, Any], table: dict[str, Any]) -> Iterator[str]:
    """Put the inferencer and the retriever into the table; yield those that have no name here."""
    inferencer = str((infer.get("inferencer") or {}).get("type", "GenInferencer"))
    if INFERENCERS.get(inferencer):
        table["infer"] = INFERENCERS[inferencer]
    elif inferencer not in INFERENCERS:
        yield f"inferencer {inferencer}: give it as --plugin FILE.py --infer-method NAME"
    retriever = infer.get("retriever") or {}
    kind = str(retriever.get("type", "ZeroRetriever"))
    if kind not in RETRIEVERS:
        yield f"retriever {kind}: give --shots"
    elif RETRIEVERS[kind]:
        shots = {"retriever": RETRIEVERS[kind], "count": int(retriever.get("ice_num", 1))}
        table.setdefault("prompt", {})["shots"] = shots


def write_task_file(moved: Moved, out: Path) -> None:
    """Write a task file; its data is found from where it lies."""
    dataset = dict(moved.table["dataset"])
    dataset["path"] = os.path.relpath(dataset["path"], out.parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(_toml({**moved.table, "dataset": dataset})) + "\n", encoding="utf-8")


def _toml(table: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield a table as TOML: a text of JSON is one of TOML."""
    for key, value in table.items():
        if not isinstance(value, dict):
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield f"\n[{above}{key}]"
            yield from _toml(value, f"{above}{key}.")
