"""One table of settings: every setting is honoured or refused by every command, and everything else is derived."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

import snellen
from command_line import run_command
from snellen.api import plan
from snellen.api.eye_exam import ExamSettings, run_exam
from snellen.api.perf import LoadPlan, PerfSettings, Synthetic, run_perf
from snellen.api.plan import make_plan
from snellen.api.settings import (
    GROUPS,
    NOT_BY,
    AskSettings,
    ModelSettings,
    RunSettings,
    Shorthands,
    TaskSettings,
    refuse_others,
    rows_of,
    table,
)
from snellen.cli.exam import exam as exam_command
from snellen.cli.main import cli
from snellen.cli.options import WHOLE_HELP
from snellen.cli.perf.command import run as perf_command
from snellen.cli.perf.command import sweep
from snellen.cli.run import command_line, make_settings
from snellen.cli.run import run as run_command_object
from snellen.core.errors import UsageError
from snellen.core.protocols import ImagePolicy
from snellen.core.secret import Secret
from snellen.kits.pages.mc_command import mc, niah
from snellen.kits.pages.questions import Files, run_choice

COMMANDS = {
    "run": (["run", "t.jsonl"], run_command_object, "run"),
    "exam": (["exam"], exam_command, "exam"),
    "perf": (["perf", "t.jsonl"], perf_command, "perf"),
    "perf sweep": (["perf", "sweep", "t.jsonl"], sweep, "perf"),
    "mc": (["mc", "--data-json", "d", "--images-dir", "i", "--output", "o"], mc, "mc"),
    "niah": (["niah", "--data", "d", "--images", "i", "--output", "o"], niah, "mc"),
}
TOLD: dict[str, Any] = {
    "api_key": Secret("k"),
    "headers": {"a": Secret("b")},
    "extra_body": {"top_k": 1},
    "image_policy": ImagePolicy(max_side=64),
    "overrides": (("form", "open"),),
    "model": "blind/first",
    "cache": False,
    "max_errors": "5%",
    "price": "1,2",
}


def other_value(name: str) -> Any:
    """Return a value of a setting that is not its default."""
    row = table(RunSettings)[name]
    if name in TOLD:
        return TOLD[name]
    if row.choices:
        return next(choice for choice in row.choices if choice != row.default)
    if row.kind is bool:
        return not row.default
    if row.kind in (int, float):
        return row.kind(7)
    one = Path("x") if row.kind is Path else "x"
    return one if not row.several else {"x": "x"} if isinstance(getattr(BARE, name), dict) else (one,)


BARE = RunSettings(tasks=(), model="blind/first")
SETTINGS = list(table(RunSettings))


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_command_takes_every_setting_or_refuses_it_by_its_flag(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, command, honours = COMMANDS[name]
    options = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
    for setting, row in rows_of("run").items():
        if not row.flags or setting in rows_of(honours):
            assert options >= set(row.flags)
        elif not options.intersection(row.flags):  # `perf --rate` is its own, of the same name
            assert run_command([*arguments, "--model", "blind/first", row.flags[0], "1"]) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert f"{row.flags[0]} is not for `snellen {name}`" in line


def tell_run(folder: Path, settings: RunSettings) -> None:
    refuse_others(settings, "run")


def tell_exam(folder: Path, settings: RunSettings) -> None:
    run_exam(ExamSettings(mode="none such"), settings)


def tell_perf(folder: Path, settings: RunSettings) -> None:
    run_perf(PerfSettings(run=settings, levels=(LoadPlan(concurrency=1),), synthetic=Synthetic()))


def tell_pages(ask: Any, folder: Path, settings: RunSettings) -> None:
    (folder / "v" / "images").mkdir(parents=True, exist_ok=True)
    ask(settings, Files(folder / "none such", folder, folder / "out"))


def tell_judge(folder: Path, settings: RunSettings) -> None:
    told = {name: getattr(settings, name) for name in SETTINGS if getattr(settings, name) != getattr(BARE, name)}
    told |= {"base_url": settings.base_url}
    snellen.score(folder, judge_name="correctness", judge_model="openai/m", judge_settings=told)


CALLS = {
    "judge": tell_judge,
    "run": tell_run,
    "exam": tell_exam,
    "perf": tell_perf,
    "mc": partial(tell_pages, run_choice),
}


@pytest.mark.parametrize("command", list(CALLS))
def test_a_call_honours_every_setting_or_refuses_it_by_name(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        if name in rows_of(command):
            continue
        settings = RunSettings(
            **({"tasks": (), "model": "openai/m", "base_url": "http://127.0.0.1:9"} | {name: other_value(name)})
        )
        with pytest.raises(UsageError, match=rf"^{name} .*`snellen {command}`"):
            CALLS[command](tmp_path, settings)


def test_an_exam_ignores_nothing_that_it_is_told() -> None:
    told = {"deadline_s": 1.0, "max_cost": 1.0, "batch": True, "limit": 1, "log": ("jsonl",)}
    for name, value in told.items():
        if name not in rows_of("exam"):
            with pytest.raises(UsageError, match=name):
                snellen.exam("blind/first", mode="quick", tests=("orientation",), **{name: value})


def test_a_name_that_is_no_setting_is_refused_with_the_near_one() -> None:
    for function in (partial(snellen.run, "t.jsonl"), snellen.exam, snellen.load_model):
        with pytest.raises(UsageError, match=r"base_ulr.*did you mean 'base_url'"):
            function("blind/first", base_ulr="http://x")
    with pytest.raises(UsageError, match="limit"):
        snellen.load_model("blind/first", limit=3)
    with pytest.raises(UsageError, match="seed"):
        snellen.run(BARE, seed=3)


@pytest.mark.parametrize("command", ["exam", "load_model"])
def test_what_is_honoured_is_read(command: str, tmp_path: Path) -> None:
    read: set[str] = set()

    class Watched(RunSettings, frozen=True, kw_only=True):
        def __getattribute__(self, name: str) -> Any:
            if sys._getframe(1).f_code.co_name not in ("__post_init__", "refuse_others"):  # these look at every row
                read.add(name)
            return super().__getattribute__(name)

    settings = Watched(tasks=(), model="blind/first", output_dir=tmp_path / "run", cache=False)
    if command == "exam":
        run_exam(ExamSettings(mode="quick", tests=("orientation",), requests=4), settings)
    else:
        from snellen.api.chosen_model import create_model
        from snellen.core.builtins import default_registry

        create_model(settings, default_registry(settings.plugins))
    assert {name for name in rows_of(command) if name in SETTINGS} <= read


def test_functions_show_their_settings_to_those_who_complete_them() -> None:
    assert set(inspect.signature(snellen.run).parameters) == {"tasks", "model", *table(TaskSettings)}
    assert {"model", "mode", "tests", *table(AskSettings)} <= set(inspect.signature(snellen.exam).parameters)
    assert set(inspect.signature(snellen.load_model).parameters) == {"name", *table(ModelSettings)}
    assert inspect.signature(snellen.run).parameters["max_tokens"].annotation == int | None


def test_every_row_has_a_group_a_help_and_flags_of_its_own() -> None:
    rows = table(RunSettings) | table(Shorthands)
    flags = [flag for row in rows.values() for flag in row.flags]
    keys = [key for row in rows.values() for key in row.file.split()]
    assert len(flags) == len(set(flags)) and len(keys) == len(set(keys))
    for name, row in rows.items():
        assert row.group in GROUPS, name
        assert row.help or not row.flags, name
    assert all(row.to.partition(".")[0] in table(RunSettings) for row in table(Shorthands).values())
    assert all(others <= set(table(RunSettings)) for others in (set(others) for _, others in NOT_BY.values()))


def test_every_option_of_run_stands_in_one_group_of_its_help() -> None:
    context = click.Context(run_command_object, info_name="run")
    context.meta[WHOLE_HELP] = True
    lines = run_command_object.get_help(context).splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == [*(f"{group}:" for group in GROUPS), "Examples:"][: len(headings)]


@pytest.mark.parametrize("name", ["max_tokens", "base_url", "no_cache", "online_multi_round"])
def test_a_flag_is_taken_with_hyphens_and_with_underscores(name: str) -> None:
    row = rows_of("run")[name]
    value = [] if row.kind is bool else ["7"]
    parent = click.Context(cli, **cli.context_settings)
    spelled = [row.flags[0], row.flags[0].replace("-", "_").replace("__", "--", 1)]
    taken = [
        run_command_object.make_context("run", ["t", flag, *value], parent=parent).params[name] for flag in spelled
    ]
    assert taken[0] == taken[1] and taken[0] not in (None, ())


def test_no_spelling_of_a_key_is_kept_with_the_command() -> None:
    for secret in (
        ["--api-key", "sk-1"],
        ["--api_key", "sk-1"],
        ["--api_key=sk-1"],
        ["--header", "x=sk-1"],
        ["--header=x=sk-1"],
    ):
        line = command_line(["snellen", "mc", *secret, "--limit", "3"])
        assert "sk-1" not in line and "--limit 3" in line
    assert "sk-1" not in command_line(["snellen", "run", "--query", "api-key=sk-1"])


def test_numbers_and_words_are_refused_from_python_as_from_the_command_line() -> None:
    for told in ({"limit": 0}, {"rate": 0.0}, {"until_ci": 50.0}, {"executor": "slurm"}, {"max_retries": -1}):
        with pytest.raises(UsageError, match=next(iter(told))):
            RunSettings(tasks=(), model="m", **told)


def test_texts_stand_for_paths_and_keys_and_one_value_for_several() -> None:
    told = RunSettings(
        tasks="my.jsonl",  # type: ignore[arg-type]
        model="m",
        output_dir="runs/x",  # type: ignore[arg-type]
        catalogs=["a", Path("b")],  # type: ignore[arg-type]
        log="jsonl",  # type: ignore[arg-type]
        variants=[],  # type: ignore[arg-type]
        api_key="sk-secret",  # type: ignore[arg-type]
        headers={"x": "sk-secret"},  # type: ignore[dict-item]
    )
    assert told.tasks == ("my.jsonl",) and told.output_dir == Path("runs/x")
    assert (told.catalogs, told.log) == ((Path("a"), Path("b")), ("jsonl",))
    assert told.variants == () and told.task_overrides() == []
    assert "sk-secret" not in repr(told) and told.headers["x"].reveal() == "sk-secret"


def test_flags_make_the_same_settings_as_keywords(tmp_path: Path) -> None:
    arguments = ["t.jsonl", "--model", "blind/first", "--limit", "3", "--no-stream", "--half", "--style", "one"]
    arguments += ["--core-eval", "--image-max-side", "100", "--ids", "a,b", "--map", "question=q", "-p", "form=open"]
    arguments += ["--base-url", "http://a", "--url", "http://b", "--post-prompt", "Answer.", "--yesno-instruct"]
    made = make_settings("run", run_command_object.make_context("run", arguments).params)
    told = {"limit": 3, "stream": False, "model_arguments": {"half": True}, "base_url": "http://a"}
    told |= {
        "prompt": {"style": "one", "instructions": ["Answer."], "yesno": "Answer yes or no."},
        "more_urls": ("http://b",),
    }
    told |= {
        "subset": "core",
        "image_policy": ImagePolicy(max_side=100),
        "ids": ("a", "b"),
        "columns": {"question": "q"},
    }
    assert made == RunSettings(
        tasks=("t.jsonl",), model="blind/first", overrides=(("form", "open"),), command=made.command, **told
    )


OLD_NAMES = {
    "6f4dc336": {},
    "f7b6e36e": {"limit": 3, "seed": 2},
    "d342c118": {"temperature": 0.5, "max_tokens": 9, "stream": True},
    "78e3e1e1": {"strip_metadata": True},
    "7d48ca9d": {"constrain": "json"},
    "aaca90ac": {"prompt_pack": "a.toml", "shots_file": Path("s.jsonl")},
    "8ce60152": {
        "image_policy": ImagePolicy(max_side=100),
        "model_arguments": {"half": True},
        "protocol": "lmms-eval",
        "reasoning": "low",
    },
}
"""Ends of folders' names of 0.2 -> the settings of their runs."""


@pytest.mark.parametrize("end", list(OLD_NAMES))
def test_a_run_of_an_earlier_version_is_found_by_its_name(end: str) -> None:
    settings = RunSettings(tasks=("my.jsonl",), model="openai/m", **OLD_NAMES[end])
    task, model = SimpleNamespace(name="my"), SimpleNamespace(name="openai/m")
    assert plan._folder_name([task], model, settings) == f"my--openai-m--{end}"  # type: ignore[list-item,arg-type]


def test_what_is_no_part_of_the_identity_leaves_name_or_replies_as_they_are(tmp_path: Path) -> None:
    rows = tmp_path / "my.jsonl"
    rows.write_text('{"question": "Which?", "options": ["a", "b"], "answer": "A", "topic": "x"}\n')

    def header(**told: Any) -> tuple[str, str]:
        planned = make_plan(RunSettings(tasks=(str(rows),), model="blind/first", **told))
        return planned.header.id, planned.folder.name

    plain = header()
    assert header(timeout_s=3.0, detailed_keys=("topic",), max_workers=2) == plain
    assert header(stream=True)[0] == plain[0] and header(stream=True)[1] != plain[1]
    assert header(temperature=0.5)[0] != plain[0]
