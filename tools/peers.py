"""A checkout of another harness against what was recorded of it: which verdicts, prompts and limits are others now.

    python tools/peers.py lmms-eval ../lmms-eval
    python tools/peers.py vlmevalkit ../VLMEvalKit

Its own functions are run on the recorded rows (tests/golden/peers), with stand-ins for packages that are not here. A
rule that cannot be run so is told by whether its file changed since the recorded commit. Not shipped: what changed is
recorded again, and the cards, readers and `seen` in catalog/peers follow.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

HOME = Path(__file__).resolve().parents[1] / "tests" / "golden" / "peers"
NUMBERS = ("score", "acc", "accuracy", "exact_match", "correct", "is_correct", "hit", "anls", "relaxed_overall")
PAIRED = (("pred_answer", "answer"), ("pred", "answer"), ("prediction", "ground_truth"), ("parsed_pred", "answer"))
"""Where a result of lmms-eval holds no number: what it read, and what it should have read."""
THINKING = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
Row = dict[str, Any]


class _StandIn(ModuleType):
    """A package that is not here: every name in it is another stand-in that can be called and decorates nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self.__name__}.{name}")

    def __call__(self, *given: Any, **named: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) and not named else _StandIn(self.__name__)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for whatever nothing else finds."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = _StandIn(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        """A stand-in has nothing to run."""


def main() -> int:
    """Print what changed; exit 1 where something did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", choices=("lmms-eval", "vlmevalkit"))
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--recorded", type=Path, default=HOME)
    given = parser.parse_args()
    if not given.checkout.is_dir():
        parser.error(f"there is no folder {given.checkout}")
    sys.path.insert(0, str(given.checkout))
    sys.meta_path.append(_Finder())
    lines = [
        *_verdicts(given.tool, given.checkout, given.recorded),
        *_prompts(given.tool, given.checkout, given.recorded),
    ]
    for line in lines:
        print(line)
    changed = sum(line.startswith("changed") for line in lines)
    print(f"\n{changed} changed, {len(lines) - changed} as recorded or not run")
    return 1 if changed else 0


def _verdicts(tool: str, checkout: Path, recorded: Path) -> Iterator[str]:
    for file in sorted((recorded / "verdicts").glob(f"{tool}__*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        source = told["function"].partition(":")[0]
        try:
            judge = _judge(tool, told["function"], checkout)
        except Exception as error:  # noqa: BLE001 - whatever their module does when it is imported
            judge, why = None, f"{type(error).__name__}: {error}"
        else:
            why = "no way to call it from here"
        if judge is None:
            yield _by_file(f"verdicts {told['benchmark']}", checkout, told["commit"], source, why)
            continue
        rows = [row for row in told["rows"] if row["verdict"] is not None and told["unit"] == "row"]
        unlike = [row for row in rows if not _same(judge, row)]
        state = "changed" if unlike else "same   "
        example = f", first: {unlike[0].get('response')!r:.60}" if unlike else ""
        yield f"{state} verdicts {told['benchmark']}: {len(unlike)} of {len(rows)}{example}"


def _same(judge: Callable[[Row], float | None], row: Row) -> bool:
    try:
        found = judge(dict(row))
    except Exception:  # noqa: BLE001 - a rule that breaks on a reply it once took has changed
        return False
    return found is not None and abs(float(found) - float(row["verdict"])) < 1e-6


def _by_file(what: str, checkout: Path, commit: str, source: str, why: str) -> str:
    """Tell by git whether a file changed since what was recorded."""
    asked = ["git", "-C", str(checkout), "diff", "--quiet", commit, "HEAD", "--", source]
    code = subprocess.run(asked, check=False, capture_output=True).returncode
    said = {0: "same    its file did not change since", 1: "changed its file did since"}.get(
        code, "unknown git knows no"
    )
    return f"{said} {commit}: {what} ({source}; not run: {why:.100})"


def _module(checkout: Path, source: str) -> ModuleType:
    name = source.removesuffix(".py").replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, checkout / source)
    if spec is None or spec.loader is None or not (checkout / source).is_file():
        raise FileNotFoundError(f"there is no {source}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _judge(tool: str, function: str, checkout: Path) -> Callable[[Row], float | None] | None:
    """Return what gives the verdict of a row by the checkout's own function; None where no way is known here."""
    source, _, rest = function.partition(":")
    if tool == "vlmevalkit":
        return _kit_judge(checkout, function)
    names = re.findall(r"\w*process_results?\w*", rest)
    if not names:
        return None
    module = _module(checkout, source)
    process = next((getattr(module, name) for name in names if hasattr(module, name)), None)
    process = process or next((value for name, value in vars(module).items() if name.endswith(names[0])), None)
    return None if process is None else lambda row: _value(process(row, [_stripped(str(row["response"]))]))


def _kit_judge(checkout: Path, function: str) -> Callable[[Row], float | None] | None:
    if "YOrN_Extraction" in function:
        extract = _module(checkout, "vlmeval/dataset/utils/yorn.py").YOrN_Extraction
        return lambda row: float(extract(str(row.get("response", row.get("prediction")))) == row["answer"])
    if "eval_vanilla" not in function or "preproc" in function or "postproc" in function:
        return None
    can_infer = _module(checkout, "vlmeval/utils/matching_util.py").can_infer
    return lambda row: (
        None if _options(row) is None else float(can_infer(str(row["response"]), _options(row)) == _letter(row))
    )


def _options(row: Mapping[str, Any]) -> dict[str, str] | None:
    listed = next((row[name] for name in ("options", "choices") if isinstance(row.get(name), list)), None)
    if listed is None:
        listed = [row[name] for name in "ABCDEFGH" if row.get(name) not in (None, "")]
        listed = listed or [row[f"choice_{name}"] for name in "abcd" if f"choice_{name}" in row]
    return {chr(65 + at): str(text) for at, text in enumerate(listed)} or None


def _letter(row: Mapping[str, Any]) -> str:
    answer = str(row.get("answer", row.get("label"))).strip("()")
    return chr(65 + int(answer)) if answer.isdigit() else answer


def _stripped(text: str) -> str:
    for opening, closing in THINKING:
        while opening in text and closing in text.partition(opening)[2]:
            before, _, rest = text.partition(opening)
            text = before + rest.partition(closing)[2]
    return text.strip()


def _value(found: Any) -> float | None:
    """Return the verdict in what a function gave: a number, or whether what it read is what it wanted."""
    if isinstance(found, bool | int | float):
        return float(found)
    if not isinstance(found, Mapping):
        return None
    for name in NUMBERS:
        if isinstance(found.get(name), bool | int | float):
            return float(found[name])
    for read, wanted in PAIRED:
        if read in found and wanted in found:
            return float(str(found[read]).strip() == str(found[wanted]).strip())
    return next((value for one in found.values() if (value := _value(one)) is not None), None)


def _prompts(tool: str, checkout: Path, recorded: Path) -> Iterator[str]:
    cases = [case for name in ("prompts.json", "prompts-video.json") for case in _read(recorded / name)]
    tasks = _tasks(checkout) if tool == "lmms-eval" else {}
    for case in (case for case in cases if case["protocol"] == tool):
        told = tasks.get(case["task"])
        if tool != "lmms-eval" or told is None:
            continue
        limits = told.get("generation_kwargs") or {}
        for name, key in (("max_tokens", "max_new_tokens"), ("temperature", "temperature")):
            if limits.get(key) != case[name]:
                yield f"changed {name} {case['id']}: {case[name]} was recorded, {limits.get(key)} now"
        yield _prompt_line(case, told, checkout)


def _prompt_line(case: Row, told: Mapping[str, Any], checkout: Path) -> str:
    source, _, name = case["function"].partition(":")
    kwargs = told.get("lmms_eval_specific_kwargs") or {}
    try:
        made = getattr(_module(checkout, source), name)(dict(case["row"]), kwargs.get("default", kwargs))
    except Exception as error:  # noqa: BLE001 - whatever their function does with a made row
        return _by_file(f"prompt {case['id']}", checkout, "75571cf", source, f"{type(error).__name__}: {error}")
    text = made if isinstance(made, str) else "".join(_texts(made))
    same = hashlib.sha256(text.encode()).hexdigest() == case["sha256"]
    return f"{'same   ' if same else 'changed'} prompt {case['id']}" + ("" if same else f": {text!r:.120}")


def _texts(messages: Sequence[Any]) -> Iterator[str]:
    parts = [part for message in messages for part in message.get("content", ())]
    yield from (part["text"] for part in parts if part.get("type") == "text")


def _tasks(checkout: Path) -> dict[str, Row]:
    """Return the tasks of a checkout by name, each with what its file includes."""
    yaml.SafeLoader.add_multi_constructor("!", lambda loader, suffix, node: None)
    found: dict[str, Row] = {}
    for file in sorted((checkout / "lmms_eval" / "tasks").rglob("*.yaml")):
        told = _included(file)
        if isinstance(told.get("task"), str):
            found[told["task"]] = told
    return found


def _included(file: Path) -> Row:
    told = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    if not isinstance(told, dict):
        return {}
    base = _included(file.parent / told["include"]) if isinstance(told.get("include"), str) else {}
    return {**base, **told}


def _read(file: Path) -> list[Row]:
    cases: list[Row] = json.loads(file.read_text(encoding="utf-8"))
    return cases


if __name__ == "__main__":
    raise SystemExit(main())
