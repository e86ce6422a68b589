"""A plug-in is what it loaded: an edited file, module or configuration is another model, and another inferencer."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import snellen
from snellen.api.run import RunResult
from snellen.core.errors import RunMismatch
from snellen.core.loaded_code import Loaded, variables_of

MODEL = """
import json
import shift_of_mine

class Mine:
    def __init__(self, model_config):
        with open(model_config) as config:
            self.shift = json.load(config)["shift"] + shift_of_mine.SHIFT
    def raw_batch_predict(self, image, prompt, candidates, likelihood_reduction="sum"):
        place = self.shift if likelihood_reduction == "sum" else self.shift + 1
        return [place % len(each) for each in candidates]
"""
VOTE = """
from snellen.infer.generate import GENERATE

class Vote:
    needs = GENERATE.needs
    word = "{word}"
    def read_options(self, task):
        return None
    def plan(self, task, items, prompter):
        return GENERATE.plan(task, items, prompter)

def register(registry):
    registry.add("inferencer", "vote3", Vote())
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = ({"id": str(n), "question": f"Which of {n}?", "options": ["x", "y", "z"], "answer": "A"} for n in range(8))
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "iface.py").write_text(MODEL)
    write(tmp_path, shift=0, config=0)
    yield tmp_path
    sys.modules.pop("shift_of_mine", None)


def write(folder: Path, *, shift: int, config: int) -> None:
    sys.modules.pop("shift_of_mine", None)
    (folder / "shift_of_mine.py").write_text(f"SHIFT = {shift}\n# {'x' * shift}\n")
    (folder / "M.json").write_text(json.dumps({"shift": config}))


def run(out: str, **settings: Any) -> RunResult:
    how: dict[str, Any] = {"plugins": (Path("iface.py"),), "model_arguments": {"model_config": "M.json"}}
    how |= {"infer_method": "likelihood", "output_dir": Path(out)}
    return snellen.run("t.jsonl", "plugin/Mine", **how | settings)


def accuracy(result: RunResult) -> float:
    return float(result.results["tasks"]["t"]["metrics"]["accuracy"]["value"])


def test_an_edited_configuration_or_module_is_another_model(folder: Path) -> None:
    assert accuracy(run("k1", limit=4)) == 1.0
    again = run("k1b", limit=4)
    assert (accuracy(again), again.state.cached) == (1.0, 4)
    write(folder, shift=0, config=1)
    with pytest.raises(RunMismatch, match=r"M.json"):
        run("k1")
    assert accuracy(run("k2")) == 0.0
    write(folder, shift=2, config=0)
    with pytest.raises(RunMismatch, match=r"shift_of_mine.py"):
        run("k1")
    assert accuracy(run("k3")) == 0.0


def test_the_reduction_is_part_of_the_key(folder: Path) -> None:
    assert accuracy(run("a")) == 1.0
    other = run("b", likelihood_reduction="mean")
    assert (accuracy(other), other.state.cached) == (0.0, 0)


def test_what_no_hash_covers_is_not_cached_and_said(folder: Path) -> None:
    (folder / "iface.py").write_text(
        "import subprocess, sys\ndef mine(prompt):\n    return subprocess.check_output(['echo', '-n', 'A']).decode()\n"
    )
    how: dict[str, Any] = {"plugins": (Path("iface.py"),)}
    snellen.run("t.jsonl", "plugin/mine", output_dir=Path("a"), **how)
    assert snellen.run("t.jsonl", "plugin/mine", output_dir=Path("b"), **how).state.cached == 0


def test_an_edited_inferencer_refuses_to_continue(folder: Path, mock_server: Any) -> None:
    server = mock_server("--answer", "A")
    plugin = folder / "custom_b.py"

    def ask(**more: Any) -> RunResult:
        how: dict[str, Any] = {"plugins": (plugin,), "infer_method": "vote3", "output_dir": Path("ci")}
        return snellen.run("t.jsonl", "openai/mock", base_url=server.base_url, **how, **more)

    plugin.write_text(VOTE.format(word="a"))
    ask(limit=2)
    plugin.write_text(VOTE.format(word="another"))
    with pytest.raises(RunMismatch, match=r"custom_b.py"):
        ask()
    plugin.write_text(VOTE.format(word="a"))
    assert ask().state.done == 6


def test_an_edit_of_the_same_size_in_the_same_second_is_the_code_that_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(folder / "compiled"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def edit(file: str, content: str) -> None:
        sys.modules.pop("shift_of_mine", None)
        (folder / file).write_text(content)
        os.utime(folder / file, (1_600_000_000, 1_600_000_000))

    model = "import shift_of_mine\ndef mine(prompt):\n    return 'AB'[(shift_of_mine.SHIFT + {}) % 2]\n"
    how: dict[str, Any] = {"plugins": (folder / "iface.py",)}
    found = []
    for number, (own, beside) in enumerate([(0, 0), (1, 0), (0, 1), (1, 1)]):
        edit("iface.py", model.format(own))
        edit("shift_of_mine.py", f"SHIFT = {beside}\n")
        found.append(accuracy(snellen.run("t.jsonl", "plugin/mine", output_dir=Path(f"r{number}"), **how)))
    assert found == [1.0, 0.0, 0.0, 1.0]


def test_a_plug_in_that_was_only_touched_goes_on_wherever_compiled_files_are_kept(
    folder: Path, mock_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(folder / "compiled"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    server = mock_server("--answer", "A")
    plugin, library = folder / "plugins" / "custom_c.py", folder / "library"
    for each in (plugin.parent, library):
        each.mkdir()
    plugin.write_text("import custom_words\n" + VOTE.format(word="a"))
    (library / "custom_words.py").write_text("WORD = 'a'\n")
    monkeypatch.syspath_prepend(str(library))

    def ask(**more: Any) -> RunResult:
        how: dict[str, Any] = {"plugins": (plugin,), "infer_method": "vote3", "output_dir": Path("ci")}
        return snellen.run("t.jsonl", "openai/mock", base_url=server.base_url, **how, **more)

    ask()
    assert list((folder / "compiled").rglob("custom_w*.pyc"))
    sys.modules.pop("custom_words")
    os.utime(plugin, (1_600_000_000, 1_600_000_000))
    assert ask(num_infers=2).state.done == 8


STYLE = """
roles = ["Instruction", "Response"]
system = "{word}"
opening = "{{system}}\\n"
user = "{{role}}:\\n{{text}}"
assistant = "{{role}}:\\n{{text}}"
ends = ["\\n", "\\n"]
last = "{{role}}:\\n{{prefix}}"
last_bare = "{{role}}:\\n"
"""


def test_an_edited_style_file_is_another_prompt(folder: Path) -> None:
    (folder / "obeys.py").write_text("def obeys(prompt):\n    return 'B' if 'say B' in prompt else 'A'\n")

    def ask(out: str, **more: Any) -> RunResult:
        how: dict[str, Any] = {"plugins": (Path("obeys.py"),), "output_dir": Path(out)}
        how["overrides"] = (("prompt.style", "own.toml"),)
        return snellen.run("t.jsonl", "plugin/obeys", **how, **more)

    (folder / "own.toml").write_text(STYLE.format(word="say A"))
    assert accuracy(ask("a")) == 1.0
    assert ask("a", num_infers=2).state.done == 8
    (folder / "own.toml").write_text(STYLE.format(word="say B"))
    assert accuracy(ask("b")) == 0.0
    with pytest.raises(RunMismatch, match=r"own.toml"):
        ask("a", num_infers=3)


SHIFTED = """
import os
from pathlib import Path
def by_variable(prompt):
    return "ABC"[int(os.environ.get("MY_SHIFT", "0"))]
def by_late_file(prompt):
    return "ABC"[int(Path("late.json").read_text())]
class by_package:
    def __init__(self):
        import shift_package
        self.shift = shift_package.SHIFT
    def raw_generate(self, image, prompt):
        return "ABC"[self.shift]
"""


def ask_shifted(name: str, out: str, **settings: Any) -> RunResult:
    return snellen.run("t.jsonl", f"plugin/{name}", plugins=(Path("shifted.py"),), output_dir=Path(out), **settings)


def test_an_environment_variable_that_is_read_is_part_of_a_plug_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "shifted.py").write_text(SHIFTED)
    monkeypatch.delenv("MY_SHIFT", raising=False)
    assert accuracy(ask_shifted("by_variable", "a")) == 1.0
    monkeypatch.setenv("MY_SHIFT", "1")
    assert accuracy(ask_shifted("by_variable", "b")) == 0.0
    with pytest.raises(RunMismatch, match=r"\$MY_SHIFT"):
        ask_shifted("by_variable", "a", num_infers=2)


def test_variables_that_no_source_names_are_not_covered(folder: Path) -> None:
    (folder / "any.py").write_text("import os\ndef one(prompt):\n    return dict(os.environ).get('X', 'A')\n")
    for out in ("a", "b"):
        found = snellen.run("t.jsonl", "plugin/one", plugins=(Path("any.py"),), output_dir=Path(out))
    assert (accuracy(found), found.state.cached) == (1.0, 0)


def test_the_version_of_an_installed_package_is_part_of_a_plug_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "shifted.py").write_text(SHIFTED)
    site = folder / "site-packages"
    monkeypatch.syspath_prepend(str(site))

    def install(number: str, shift: int) -> None:
        sys.modules.pop("shift_package", None)
        for old in site.glob("*.dist-info"):
            (old / "METADATA").unlink()
            old.rmdir()
        facts = site / f"shift_package-{number}.dist-info"
        facts.mkdir(parents=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: shift_package\nVersion: {number}\n")
        (site / "shift_package.py").write_text(f"SHIFT = {shift}\n# {number}\n")
        importlib.invalidate_caches()

    install("1.0", 0)
    assert accuracy(ask_shifted("by_package", "a")) == 1.0
    assert ask_shifted("by_package", "a2").state.cached == 8
    install("1.10", 1)
    assert accuracy(ask_shifted("by_package", "b")) == 0.0
    with pytest.raises(RunMismatch, match=r"shift_package '1.0'; now '1.10'"):
        ask_shifted("by_package", "a", num_infers=2)
    sys.modules.pop("shift_package", None)


def test_an_engine_counts_where_a_package_needs_it_whatever_else_the_process_has_imported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = folder / "site-packages"
    for name, needs in (("shift_outer", ["shift_inner (>=1)"]), ("shift_inner", ["tokenizers", "torch; extra == 'x'"])):
        facts = site / f"{name}-1.0.dist-info"
        facts.mkdir(parents=True)
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0", *(f"Requires-Dist: {one}" for one in needs)]
        (facts / "METADATA").write_text("\n".join(lines) + "\n")
        (site / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(site))
    for name in ("torch", "transformers", "tokenizers"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    (folder / "alone.py").write_text("")
    (folder / "by_another.py").write_text("def answer(prompt):\n    import shift_outer\n")
    packages = {name: Loaded(importlib.import_module(name).__name__, {}).packages for name in ("alone", "by_another")}
    assert packages == {"alone": {}, "by_another": {"shift_outer": "1.0", "tokenizers": version("tokenizers")}}


def test_a_file_that_is_read_while_answering_may_not_change_within_a_run(folder: Path) -> None:
    (folder / "shifted.py").write_text(SHIFTED)
    (folder / "late.json").write_text("0")
    assert accuracy(ask_shifted("by_late_file", "a")) == 1.0
    (folder / "late.json").write_text("1")
    with pytest.raises(RunMismatch, match=r"late.json.*--same-model"):
        ask_shifted("by_late_file", "a", num_infers=2)
    assert accuracy(ask_shifted("by_late_file", "b")) == 0.0
    both = ask_shifted("by_late_file", "a", num_infers=2, same_model=True)
    assert accuracy(both) == 0.5, "who says it is the same model may"


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("import os\nx = os.environ['A'] + os.getenv('B') + os.environ.get('C', '')", {"A", "B", "C"}),
        ("from os import environ, getenv\nx = environ['A'] + getenv('B')\ny = 'C' in environ", {"A", "B", "C"}),
        ("import os\nos.environ['A'] = '1'\nos.environ.update(B='2')\nos.environ.setdefault('C', '3')", {"C"}),
        ("import os\nx = os.environ['OPENAI_API_KEY'] + os.environ['LOCAL_RANK'] + os.environ['SLURM_JOB_ID']", set()),
        ("import os\nname = 'A'\nx = os.environ[name]", {None}),
        ("import os\nx = {**os.environ}", {None}),
        ("environment = {'A': 1}\nx = environment['A']", set()),
    ],
)
def test_which_variables_a_source_reads(tmp_path: Path, source: str, read: set[str | None]) -> None:
    path = tmp_path / "one.py"
    path.write_text(source)
    assert variables_of(str(path)) == read
