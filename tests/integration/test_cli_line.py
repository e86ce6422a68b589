"""The commands of the line as typed: exit codes, one JSON document on stdout whatever happens, one line on stderr for mistakes."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from command_line import run_command
from snellen.cli.main import main
from snellen.cli.run import command_line, make_settings, read_key, read_model_file
from snellen.core.builtins import default_registry
from snellen.core.errors import ConfigError, UsageError


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def snellen(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = run_command([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return call


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "koi8-r"])
def test_a_letter_that_the_output_cannot_hold_ends_no_command(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("snellen.cli.main._run", lambda arguments: print("70 – 80 % … 视力") or 0)
    with pytest.raises(SystemExit) as end:
        main([])
    out.flush()
    assert end.value.code == 0
    assert "70 " in out.buffer.getvalue().decode(encoding)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    rows = [
        {"id": n, "question": f"Q{n}?", "options": ["one", "two", "three"], "answer": "A", "topic": n % 2}
        for n in range(10)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


FLAGS: list[list[str]] = [
    ["--limit", "3"],
    ["--try-run"],
    ["--num-infers", "2", "--temperature", "0.5", "--top-p", "0.9", "--max-tokens", "5", "--sampling-seed", "3"],
    ["--seed", "7", "--shuffle-options", "--option-mark", "random"],
    ["--stream", "--max-workers", "2", "--max-retries", "0", "--timeout", "3", "--max-errors", "50%"],
    [
        "--infer-method",
        "likelihood",
        "--likelihood-reduction",
        "sum",
        "--candidates",
        "letters",
        "--calibration",
        "content-free",
    ],
    ["--dataset-duplication", "2", "--random-instruct", "--in-context-sample"],
    ["--shots", "random:2", "--response-prefix", "The answer is"],
    ["--answer-space-instruct", "--yesno-instruct", "--style", "llama_2"],
    ["--variant", "base", "--variant", "order=1", "--detailed-keys", "topic"],
    ["--map", "question=question", "-p", 'scorers=["choice", "exact"]'],
    ["--image-max-side", "64", "--no-cache", "--allow-missing-images", "--profile", "reform"],
    ["--until-ci", "20"],
    ["--data-root", ".", "--base-url", "http://user:secret@localhost/v1", "--api-key", "sk-canary-99"],
]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_every_flag_gives_one_json_document_and_nothing_else(
    snellen: Callable[..., Any], data: Path, tmp_path: Path, flags: list[str]
) -> None:
    code, out, _ = snellen("run", data, "--model", "blind/first", "-o", tmp_path / "run", "--json", *flags)
    assert code == 0
    results = json.loads(out)
    assert results == json.loads((tmp_path / "run" / "results.json").read_text())
    metric = results["tasks"]["data"]["metrics"]["accuracy"]
    planned = results["status"]["planned"]["data"]
    left = results["status"]["not_yet_asked"]["data"]
    assert metric["n"] + metric["unscored"] + metric["failed"] + left == planned
    everything = out + "".join(
        path.read_bytes().decode("latin-1") for path in (tmp_path / "run").rglob("*") if path.is_file()
    )
    assert "canary" not in everything and "user:secret" not in everything


MISTAKES: list[tuple[list[str], int, str]] = [
    (["run", "--json"], 2, "name the model"),
    (["run", "data.jsonl", "--json"], 2, "name the model"),
    (["run", "eyechrt", "--model", "blind/first", "--json"], 2, "did you mean 'eyechart'"),
    (["run", "nothing.jsonl", "--model", "blind/first", "--json"], 2, "does not exist"),
    (["run", "data.jsonl", "--model", "blind/frist", "--json"], 2, "did you mean 'first'"),
    (["run", "data.jsonl", "--model", "blind/first", "--limit", "0", "--json"], 2, "--limit"),
    (["run", "data.jsonl", "--model", "blind/first", "--max-errors", "x", "--json"], 2, "--max-errors"),
    (["run", "data.jsonl", "--model", "openai/x", "--base-url", "http://127.0.0.1:9/v1", "--json"], 3, "is it running"),
    (["run", "data.jsonl", "--model", "blind/first", "-o", "data.jsonl", "--json"], 3, "cannot write"),
    (["run", "data.jsonl", "--model", "blind/first", "--api-key-env", "NOT_SET_AT_ALL", "--json"], 2, "not set"),
    (["run", "data.jsonl", "--model", "replay/none.jsonl", "--json"], 2, "cannot be read"),
    (["run", "eyechart", "--model", "blind/first", "--limit", "1", "-o", "/proc/nowhere", "--json"], 3, "cannot write"),
    (["run", "--half_evaluation", "--json"], 2, "ReForm-Eval's; --half here; snellen reform-eval"),
    (["run", "--cfg", "x", "--json"], 2, "FlagEvalMM's; --config here; snellen flagevalmm"),
    (["run", "--do_eval", "--json"], 2, "every run is scored"),
    (["rnu", "--json"], 2, "did you mean 'run'"),
    (["tasks", "eyechrt", "--json"], 2, "did you mean 'eyechart'"),
    (["models", "openai/x", "--base-url", "http://127.0.0.1:9/v1", "--json"], 3, "is it running"),
    (["score", "nowhere", "--json"], 2, "nowhere"),
    (["cache", "prune", "--older-than-days", "-1", "--json"], 2, "older-than-days"),
]


@pytest.mark.parametrize(("arguments", "expected", "words"), MISTAKES, ids=[" ".join(each[0]) for each in MISTAKES])
def test_mistakes_are_one_line_an_exit_code_and_one_json_document(
    snellen: Callable[..., Any], data: Path, arguments: list[str], expected: int, words: str
) -> None:
    code, out, err = snellen(*arguments)
    assert code == expected
    error = json.loads(out)["error"]
    assert (error["exit_code"], words in error["message"]) == (expected, True)
    assert words in err
    assert "Traceback" not in err
    without, out, _ = snellen(*arguments[:-1])
    assert (without, out) == (expected, "")


def test_failed_trials_are_exit_code_1(snellen: Callable[..., Any], data: Path, tmp_path: Path) -> None:
    (tmp_path / "said.jsonl").write_text("\n".join(json.dumps({"id": n, "text": "A"}) for n in range(7)))
    code, out, err = snellen("run", data, "--model", "replay/said.jsonl", "-o", tmp_path / "run", "--json")
    assert code == 1
    assert json.loads(out)["tasks"]["data"]["metrics"]["accuracy"]["failed"] == 3
    assert "3 trials failed: skipped" in err


def test_answers_of_one_sample_never_stand_for_another(snellen: Callable[..., Any], tmp_path: Path) -> None:
    """Same words, other ids: a predictions file knows them apart, and so must the line, cache or not."""
    rows = [{"id": n, "question": "Same?", "options": ["one", "two"], "answer": "A"} for n in range(80)]
    (tmp_path / "same.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "said.jsonl").write_text("\n".join(json.dumps({"id": n, "text": "AB"[n % 2]}) for n in range(80)))
    for name in ("first", "second"):
        code, out, _ = snellen("run", "same.jsonl", "--model", "replay/said.jsonl", "-o", name, "--json", "--quiet")
        assert (code, json.loads(out)["tasks"]["same"]["metrics"]["accuracy"]["value"]) == (0, 0.5)
        records = [json.loads(line) for line in (tmp_path / name / "records.jsonl").read_text().splitlines()]
        assert all(record["text"] == "AB"[int(record["sample"]) % 2] for record in records)


def test_tables_go_to_stdout_and_progress_to_stderr(snellen: Callable[..., Any], data: Path, tmp_path: Path) -> None:
    code, out, err = snellen("run", data, "--model", "blind/first", "-o", tmp_path / "run")
    assert code == 0
    assert "accuracy" in out and "by topic" in out and "results.json" in out
    assert "10 trials (10 samples × 1 variant × 1 inference), 0 images" in err
    assert snellen("run", data, "--model", "blind/first", "-o", tmp_path / "run", "--quiet")[1:] == ("", "")


def test_a_complete_folder_says_that_nothing_was_asked(snellen: Callable[..., Any], data: Path, tmp_path: Path) -> None:
    command = ("run", data, "--model", "blind/first", "-o", tmp_path / "run", "--no-cache")
    first = snellen(*command)[1]
    assert "nothing was asked" not in first
    assert "stored before" not in first
    assert "nothing was asked: the replies of all 10 trials were stored before" in snellen(*command)[1]
    more = snellen(*command, "--num-infers", "2")[1]
    assert "10 asked now, 10 stored before" in more and "from the cache" not in more


def test_where_everything_failed_only_the_reason_is_shown(
    snellen: Callable[..., Any], data: Path, tmp_path: Path
) -> None:
    (tmp_path / "said.jsonl").write_text(json.dumps({"id": "another", "text": "A"}))
    code, out, _ = snellen("run", data, "--model", "replay/said.jsonl", "-o", tmp_path / "run")
    assert code == 1
    assert out.splitlines()[0] == "10 trials failed: skipped"
    assert "last error: " in out
    assert "accuracy" not in out


def test_a_dead_server_leaves_no_folder_and_touches_none_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["run", "eyechart", "--model", "openai/x", "--base-url", "http://127.0.0.1:9/v1", "--limit", "2"]
    assert run_command(command) == 3
    assert not list(tmp_path.glob("runs/*"))
    mine = tmp_path / "mine" / "images" / "a.png"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    assert run_command([*command, "-o", tmp_path / "mine"]) == 3
    assert mine.read_bytes() == b"mine"


def test_an_early_stop_is_told_and_a_whole_run_forgets_it(snellen: Callable[..., Any], tmp_path: Path) -> None:
    rows = [{"id": n, "question": "Which?", "options": ["one", "two"], "answer": "A"} for n in range(4000)]
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ("run", "many.jsonl", "--model", "blind/first", "-o", tmp_path / "run")
    code, out, err = snellen(*command, "--until-ci", "5")
    assert code == 0
    assert "stopped by --until-ci 5 after " in out
    assert " of 4,000 trials" in out
    assert "at worst" not in err
    assert json.loads((tmp_path / "run" / "results.json").read_text())["status"]["until_ci"]["stopped"]
    code, out, _ = snellen(*command)
    assert "stopped by" not in out
    assert json.loads((tmp_path / "run" / "results.json").read_text())["status"]["until_ci"] is None


def test_an_interrupted_run_says_so_and_goes_on(
    snellen: Callable[..., Any], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from snellen.engine.loop import Engine
    from snellen.model.blind import Blind

    real, engines = Blind.predict, []
    init = Engine.__init__

    def remember(self: Engine, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        engines.append(self)

    async def stop_after_three(self: Blind, request: Any, images: Any) -> Any:
        if engines[-1].state.done == 3:
            engines[-1].stop()
        return await real(self, request, images)

    monkeypatch.setattr(Engine, "__init__", remember)
    with monkeypatch.context() as patch:
        patch.setattr(Blind, "predict", stop_after_three)
        code, out, err = snellen(
            "run", data, "--model", "blind/first", "-o", tmp_path / "run", "--json", "--max-workers", "1"
        )
    assert code == 130
    status = json.loads(out)["status"]
    assert (status["complete"], status["not_yet_asked"]) == (False, {"data": 6})
    assert "interrupted after 4 of 10 trials" in err
    code, out, _ = snellen("run", data, "--model", "blind/first", "-o", tmp_path / "run", "--json")
    assert (code, json.loads(out)["tasks"]["data"]["metrics"]["accuracy"]["n"]) == (0, 10)


def test_control_sequences_in_errors_are_neutral(snellen: Callable[..., Any], tmp_path: Path) -> None:
    _, out, err = snellen("run", "no\x1b[2Jsuch\x07.jsonl", "--model", "blind/first", "--json")
    assert "\x1b" not in err + out and "\x07" not in err + out


def test_help_of_every_command_has_an_example(snellen: Callable[..., Any]) -> None:
    for name in ("run", "tasks", "models", "doctor", "cache", "score"):
        code, out, _ = snellen(name, "--help")
        assert code == 0
        assert f"snellen {name}" in out
    code, out, _ = snellen("--help")
    at_top = [name for name in default_registry().names("command") if " " not in name]
    assert code == 0 and all(name in out for name in at_top)
    assert snellen("--version")[0] == 0


def test_tasks_models_and_doctor(snellen: Callable[..., Any], tmp_path: Path) -> None:
    listed = json.loads(snellen("tasks", "--json")[1])
    assert "eyechart" in {row["name"] for row in listed["tasks"]}
    few = json.loads(snellen("tasks", "--dimension", "no such dimension", "--json")[1])
    assert few == {"tasks": [], "suites": {}}
    assert json.loads(snellen("tasks", "eyechart", "--json")[1])["name"] == "eyechart"
    assert "eyechart" in snellen("tasks")[1]
    assert {"openai", "blind", "replay"} <= set(json.loads(snellen("models", "--json")[1]))
    assert json.loads(snellen("models", "blind/first", "--json")[1])["identity"] == {
        "model": "blind/first",
        "version": 1,
    }
    assert "blind/first is ready: generate" in snellen("models", "blind/first")[1]
    assert "openai" in snellen("models")[1]
    code, out, _ = snellen("doctor", "--json")
    assert (code, {"free disk", "cache folder", "snellen"} <= {finding["what"] for finding in json.loads(out)}) == (
        0,
        True,
    )
    assert "ok  snellen" in snellen("doctor")[1]


def test_doctor_shows_no_key_and_exits_3_when_something_needed_is_missing(
    snellen: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1")
    monkeypatch.setattr("snellen.api.machine.LEAST_FREE_BYTES", 2**70)
    code, out, err = snellen("doctor")
    assert (code, "canary" in out + err) == (3, False)
    assert "BAD free disk" in out


def test_cache_info_and_prune(snellen: Callable[..., Any], tmp_path: Path) -> None:
    from snellen.core.answerer import Answerer
    from snellen.core.types import Prediction, TrialKey
    from snellen.store.cache import ResponseCache

    cache = ResponseCache(tmp_path / "cache" / "responses.db")
    who = Answerer("some/model")
    cache.enter(who)
    cache.put("d", who.key, Prediction(TrialKey("t", "s"), text="x"))
    cache.close()
    assert json.loads(snellen("cache", "info", "--json")[1])["models"] == {"some/model": 1}
    assert "1 some/model" in snellen("cache", "info")[1]
    assert json.loads(snellen("cache", "prune", "--older-than-days", "1", "--json")[1]) == {"removed": 0}
    assert snellen("cache", "prune")[1] == "1 reply forgotten\n"
    (tmp_path / "cache" / "responses.db").write_bytes(b"damaged beyond repair" * 200)
    code, _, err = snellen("cache", "info")
    assert (code, "SNELLEN_CACHE_DIR" in err) == (3, True)


def test_score_again_and_a_damaged_run(snellen: Callable[..., Any], data: Path, tmp_path: Path) -> None:
    snellen("run", data, "--model", "blind/first", "-o", tmp_path / "run", "--quiet")
    before = (tmp_path / "run" / "results.json").read_bytes()
    code, out, _ = snellen("score", tmp_path / "run", "--json")
    assert (code, json.loads(out)["tasks"]) == (0, json.loads(before)["tasks"])
    assert (tmp_path / "run" / "results.json").read_bytes() == before
    with sqlite3.connect(tmp_path / "run" / "run.db") as database:
        database.execute("PRAGMA user_version=99")
    code, out, _ = snellen("score", tmp_path / "run", "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (3, "EnvironmentProblem")


def test_a_closed_pipe_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    import click

    def closed(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(click, "echo", closed)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    assert run_command(["models"]) == 0
    sys.stdout.close()


def test_the_command_is_kept_without_keys() -> None:
    assert command_line(["x", "run", "a b", "--api-key", "sk-1"]) == "snellen run 'a b' --api-key '****'"
    assert (
        command_line(["x", "--api-key=sk-1", "--base-url", "http://me:pw@host/v1"])
        == "snellen '--api-key=****' --base-url http://****@host/v1"
    )
    assert command_line(["x", "--api-key"]) == "snellen --api-key"


def test_keys_come_from_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("K", "from the environment")
    (tmp_path / "key").write_text("from the file\n")
    assert [
        key and key.reveal()
        for key in (read_key("flag", None, None), read_key(None, "K", None), read_key(None, None, tmp_path / "key"))
    ] == [
        "flag",
        "from the environment",
        "from the file",
    ]
    assert "process lists" in capsys.readouterr().err
    assert read_key(None, None, None) is None
    for content, words in ((b"\xff\xfe", "cannot be read as text"), (b" \n", "is empty")):
        (tmp_path / "key").write_bytes(content)
        with pytest.raises(UsageError, match=words):
            read_key(None, None, tmp_path / "key")


def test_model_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.json"
    file.write_text(
        json.dumps(
            {
                "model_name": "m",
                "temperature": 0,
                "presence_penalty": 0.5,
                "extra_body": {"top_k": 3},
                "timeout": 9,
                "seed": 4,
            }
        )
    )
    settings = make_settings("run", {"config_file": file, "temperature": 1.0})
    assert (settings.model, settings.temperature) == ("openai/m", 1.0), "a flag has the last word"
    assert (settings.sampling_seed, settings.timeout_s) == (4, 9)
    assert settings.extra_body == {"top_k": 3, "presence_penalty": 0.5}
    assert read_model_file(None, "run") == {}
    with pytest.raises(UsageError, match="sampling_seed"):
        read_model_file(file, "exam")
    file.write_text(json.dumps({"model_name": "Q", "max_num_frames": 8, "extra_args": "--tp 4", "launch_model": True}))
    assert read_model_file(file, "run") == {"model": "openai/Q"}
    assert "extra_args, launch_model, max_num_frames" in capsys.readouterr().err
    file.write_text('{"model_nam": "m"}')
    with pytest.raises(ConfigError, match="did you mean 'model_name'"):
        read_model_file(file, "run")
    file.write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="not valid JSON"):
        read_model_file(file, "run")


def test_windows_is_told_to_use_wsl_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("snellen.cli.main.os", SimpleNamespace(name="nt"))
    assert run_command(["tasks"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "WSL" in line
