"""A command line of another system to arguments of `snellen run`, by its card in catalog/movers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct

from ...core.config import convert, read_config_file
from ...core.errors import UsageError, did_you_mean
from ...data.catalog import Catalog
from ..reform.items import DIALOGUE, check_task, find_card
from .task_files import read_assignments, read_task_file, write_task_file

REFUSED = "!"
COUNTS: Mapping[str, dict[str, Any]] = {
    "none": {"action": "store_true"},
    "one": {},
    "many": {"nargs": "+"},
    "maybe": {"nargs": "?", "const": True},
}
PROVIDERS = {"http": "openai", "gpt": "openai", "claude": "anthropic", "gemini": "gemini"}
"""FlagEvalMM's `--model-type` -> ours."""


class Card(Struct, forbid_unknown_fields=True):
    """The flags of a command: each a row of its names, what follows it, what it is here, and why it is not used."""

    title: str
    always: list[str]
    flags: list[list[str]]


class Translated(Struct):
    """What `snellen run` is told, what was not used and why, and whether it is only to be shown."""

    arguments: list[str]
    notes: list[str] = []
    dry: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}")


def translate(system: str, line: Sequence[str], out: Path = Path("migrated")) -> Translated:
    """Return the command that does here what a command line does there; a flag it does not have is refused by name.

    What stands after `--` is ours and goes along. Task files are read as syntax and written below `out`.
    """
    source = files("snellen") / f"catalog/movers/{system}.toml"
    card = convert(read_config_file(str(source)), Card, f"catalog/movers/{system}")
    theirs, own = (line[: line.index("--")], line[line.index("--") + 1 :]) if "--" in line else (line, ())
    told = _parse(system, card, theirs)
    found = Translated([])
    for names, _, to, *why in card.flags:
        flag = names.split()[0]
        if flag not in told:
            continue
        if to == REFUSED:
            raise UsageError(f"{system} {flag}: {why[0]}")
        if why:
            found.notes.append(f"{flag} is not used: {why[0]}")
        elif to:
            found.arguments += to.split() if told[flag] is True else [to, str(told[flag])]
    SPECIAL[system](told, found, out)
    found.arguments += [*card.always, *own]
    return found


def _parse(system: str, card: Card, line: Sequence[str]) -> dict[str, Any]:
    parser = _Parser(prog=system, add_help=False, argument_default=argparse.SUPPRESS)
    for names, count, *_ in card.flags:
        parser.add_argument(*names.split(), dest=names.split()[0], **COUNTS[count])
    told, unknown = parser.parse_known_args(list(line))
    if unknown:
        known = [name for row in card.flags for name in row[0].split()]
        reason = f"{card.title} has no {unknown[0]}{did_you_mean(unknown[0], known)}"
        raise UsageError(f"{reason}; flags of snellen run stand after --")
    return vars(told)


def _reform(told: Mapping[str, Any], found: Translated, out: Path) -> None:
    if "--dataset_name" not in told:
        raise UsageError("reform-eval: name the dataset: --dataset_name VQA --dataset_config VQA_vqa_v2_val.yaml")
    card = Catalog().task(find_card(told["--dataset_name"], told.get("--dataset_config")))
    check_task(card, told.get("--formulation"), told.get("--infer_method", "generation"), 1)
    if card.prompt == DIALOGUE:  # what only these read there; without the flag it is off
        found.arguments += ["--capitalize"] if "--capitalize" in told else []
        shown = "--options-in-history" if "--options_in_history" in told else "--no-options-in-history"
        found.arguments.append(shown)
    elif "--capitalize" in told:
        found.notes.append("--capitalize is not used: ReForm-Eval reads it in dialogues only")
    model = told.get("--model", "")
    if model and "/" not in model:
        model = f"plugin/{model}"
        pairs = ((name, told.get(f"--{name}")) for name in ("model_name", "model_type"))
        found.arguments += [part for name, value in pairs if value for part in ("--model-arg", f"{name}={value}")]
    elif "--model_name" in told or "--model_type" in told:
        found.notes.append(f"--model_name and --model_type are not used: --model {model} names the model")
    found.arguments = [card.name, *(["--model", model] if model else []), *found.arguments]


def _flageval(told: Mapping[str, Any], found: Translated, out: Path) -> None:
    adapter = told.get("--exec", "api_model")
    if "api_model" not in adapter:
        reason = "its adapter is a class of its own: give it as -- --plugin FILE.py --model plugin/NAME"
        if not any(flag in told for flag in ("--cfg", "--model")):
            raise UsageError(f"flagevalmm --exec {adapter}: {reason}")
        found.notes.append(f"--exec {adapter} is not used, the model is asked over HTTP; {reason}")
    kind = told.get("--model-type", "http")
    if kind not in PROVIDERS:
        raise UsageError(f"flagevalmm --model-type {kind}: known are {', '.join(PROVIDERS)}")
    if "--model" in told:
        found.arguments += ["--model", f"{PROVIDERS[kind]}/{told['--model']}"]
    root = Path(told["--data-root"]) if "--data-root" in told else None
    found.arguments = [*_tasks(told.get("--tasks", ()), root, found, out), *found.arguments]


def _tasks(named: Sequence[str], root: Path | None, found: Translated, out: Path) -> list[str]:
    """Return what stands for task files: a card, or the task file that was written of each."""
    if not named:
        raise UsageError("name the task: --tasks FILE.py")
    tasks = []
    for name in named:
        if not name.endswith((".py", ".yaml")):
            tasks.append(name)  # a task, or data, of ours
            continue
        for moved in read_task_file(Path(name), root):
            found.notes += [f"{name}: {what} is not taken" for what in moved.left]
            if not moved.card:
                write_task_file(moved, out / f"{moved.name}.toml")
            tasks.append(moved.card or str(out / f"{moved.name}.toml"))
    return tasks


def _aisbench(told: Mapping[str, Any], found: Translated, out: Path) -> None:
    mode = told.get("--mode", "all")
    if mode not in ("all", "infer"):
        fix = (
            "snellen perf FILE --concurrency N" if mode.startswith("perf") else "snellen score RUN, snellen report RUN"
        )
        raise UsageError(f"aisbench --mode {mode}: that is {fix}")
    folder = Path(told["--config-dir"]) if "--config-dir" in told else None
    for name in told.get("--models", ())[:1]:
        found.arguments += _model_of(_config(folder, "models", name), name, found)
    if len(told.get("--models", ())) > 1:
        raise UsageError("aisbench --models: one model a command here; run it once for each")
    if custom := told.get("--custom-dataset-path"):
        form = {"mcq": "choice", "qa": "open"}.get(told.get("--custom-dataset-data-type", ""), "auto")
        tasks = [custom]
        found.arguments += ["--form", form]
    else:
        given = [str(_config(folder, "datasets", name) or name) for name in told.get("--datasets", ())]
        tasks = _tasks(given, None, found, out)
    found.arguments, found.dry = [*tasks, *found.arguments], "--dry-run" in told


def _config(folder: Path | None, kind: str, name: str) -> Path | None:
    """Return the configuration file of that name, where --config-dir or the name itself tells its place."""
    if name.endswith(".py"):
        return Path(name)
    return next((folder / kind).rglob(f"{name}.py"), None) if folder else None


def _model_of(path: Path | None, name: str, found: Translated) -> list[str]:
    """Return the model's settings from its configuration file, read as syntax."""
    if path is None:
        found.notes.append(f"--models {name}: give --config-dir, or after -- its --model openai/NAME --base-url URL")
        return []
    models = read_assignments(path).get("models")
    if not isinstance(models, list) or len(models) != 1 or not isinstance(models[0], dict):
        raise UsageError(f"{path}: `models` is not a list of one dict(...)")
    given: dict[str, Any] = models[0]
    sampling = {name: value for name, value in (given.get("generation_kwargs") or {}).items() if value is not None}
    url = given.get("url") or f"http://{given.get('host_ip', 'localhost')}:{given.get('host_port', 8080)}/v1"
    rows = {"--model": f"openai/{given['model']}" if given.get("model") else None, "--base-url": url}
    rows |= {"--max-tokens": given.get("max_out_len"), "--max-workers": given.get("batch_size")}
    rows |= {"--temperature": sampling.pop("temperature", None), "--top-p": sampling.pop("top_p", None)}
    rows |= {"--sampling-seed": sampling.pop("seed", None)}
    found.notes += [f"{path}: generation_kwargs.{name} is not taken" for name in sampling]
    return [part for flag, value in rows.items() if value is not None for part in (flag, str(value))]


SPECIAL: Mapping[str, Callable[[Mapping[str, Any], Translated, Path], None]] = {
    "reform-eval": _reform,
    "flagevalmm": _flageval,
    "aisbench": _aisbench,
}
"""What is more than another name of a flag."""
