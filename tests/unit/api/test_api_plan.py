"""Plans: what cannot work is refused before the first request, what names a run is what changes its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import snellen
from snellen.api.outputs import read_sample
from snellen.api.perf import PerfSettings, SweepSettings, run_perf, run_sweep
from snellen.api.plan import make_plan
from snellen.api.session import make_limits, make_policy
from snellen.api.settings import RunSettings
from snellen.core.errors import ConfigError, RunMismatch, UsageError
from snellen.perf.measure import LoadPlan
from snellen.store.reader import RunReader


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def write(path: Path, count: int = 6, **more: Any) -> Path:
    rows = [
        {"id": n, "question": f"Q{n}?", "options": ["one", "two"], "answer": "A", "topic": n % 2} | more
        for n in range(count)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def plan(*tasks: Path | str, model: str = "blind/first", **settings: Any) -> Any:
    return make_plan(RunSettings(tasks=tuple(map(str, tasks)), model=model, **settings))


def test_trials_are_samples_times_variants_times_repeats(tmp_path: Path) -> None:
    made = plan(write(tmp_path / "d.jsonl"), variants=("base", "order=1", "order=2"), num_infers=2, limit=4)
    assert made.trials == 4 * 3 * 2 == len(list(made.jobs()))
    keys = {key for job in made.jobs() for key in job.keys}
    assert len(keys) == made.trials
    assert made.header.planned == {"d": 24}


def test_two_files_of_one_name_are_refused_and_one_file_twice_is_one_task(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a" / "data.jsonl"), write(tmp_path / "b" / "data.jsonl", answer="B")
    with pytest.raises(UsageError, match=r"a/data\.jsonl.*b/data\.jsonl.*'data'"):
        plan(first, second)
    assert plan(first, first).trials == 6


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"overrides": (("repeats", 0),)}, "at least one"),
        ({"overrides": (("variants", []),)}, "at least one"),
        ({"overrides": (("variants", ["base", "base"]),)}, "twice"),
        ({"overrides": (("aggregates", ["meen"]),)}, "did you mean 'mean'"),
        ({"overrides": (("scorers", ["exakt"]),)}, "did you mean 'exact'"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"profile": "refrom"}, "did you mean 'reform'"),
        ({"detailed_keys": ("topc",)}, "did you mean 'topic'"),
        ({"infer_method": "likelyhood"}, "did you mean 'likelihood'"),
        ({"variants": ("wording=99",)}, "wordings 0 to"),
        ({"model": "blnd/first"}, "did you mean 'blind/first'"),
        ({"model": "mymodel", "base_url": "http://x"}, "did you mean 'openai/mymodel'"),
        ({"overrides": (("dataset.pth", "x"),)}, "did you mean 'path'"),
    ],
)
def test_mistakes_are_refused_before_anything_is_written(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    path = write(tmp_path / "d.jsonl")
    with pytest.raises(UsageError, match=words):
        plan(path, output_dir=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_grouping_by_tags_variants_and_axes_is_allowed(tmp_path: Path) -> None:
    keys = ("topic", "variant", "repeat", "order")
    made = plan(write(tmp_path / "d.jsonl"), variants=("base", "order=1"), detailed_keys=keys)
    (task,) = made.header.tasks
    assert tuple(task.group_by) == keys, "what was asked for is what the run will group by"
    assert {key.variant for job in made.jobs() for key in job.keys} == {"base", "order=1"}


def test_a_model_that_cannot_is_named(tmp_path: Path) -> None:
    class Mute:
        name, capabilities = "mute/x", frozenset()

    from snellen.api.plan import check_capabilities
    from snellen.core.builtins import default_registry
    from snellen.core.tasks import Task

    with pytest.raises(UsageError, match=r"'mute/x'.*generate.*'t'"):
        check_capabilities(Mute(), Task("t", {"loader": "table"}), default_registry())


SAME = [
    {"max_workers": 3},
    {"max_retries": 0},
    {"timeout_s": 9.0},
    {"cache": False},
    {"profile": "reform"},
    {"stream": True},
]
OTHER = [
    {"seed": 1},
    {"limit": 3},
    {"temperature": 0.0},
    {"num_infers": 2},
    {"variants": ("order=1",)},
    {"model": "blind/longest"},
]


@pytest.mark.parametrize("change", SAME)
def test_how_it_is_asked_does_not_name_a_run(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write(tmp_path / "d.jsonl")
    assert plan(path).header.id == plan(path, **change).header.id


@pytest.mark.parametrize(
    "change",
    [*OTHER, {"shuffle_options": True}, {"option_mark": "number"}, {"prompt_template": "{question} {options}"}],
)
def test_what_changes_results_names_a_run(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write(tmp_path / "d.jsonl")
    assert plan(path).header.id != plan(path, **change).header.id


def test_the_folder_is_named_by_what_was_told(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl")
    assert plan(path).folder == plan(path, max_workers=9).folder
    assert plan(path).folder != plan(path, seed=3).folder
    assert plan(path).folder.parts[0] == "runs"
    assert "/" not in plan(path).folder.name


def test_the_data_counts_by_its_content_not_by_its_place(tmp_path: Path) -> None:
    first, moved = write(tmp_path / "a" / "d.jsonl"), write(tmp_path / "b" / "d.jsonl")
    assert plan(first).header.id == plan(moved).header.id
    assert plan(first).header.id != plan(write(tmp_path / "c" / "d.jsonl", answer="B")).header.id


def test_changed_data_is_refused_and_changed_scorers_are_used(tmp_path: Path) -> None:
    path, folder = write(tmp_path / "d.jsonl"), tmp_path / "run"
    first = snellen.run(str(path), "blind/first", output_dir=folder)
    assert "exact_match" not in first.results["tasks"]["d"]["metrics"]
    other = snellen.run(
        str(path),
        "blind/first",
        output_dir=folder,
        overrides=(("scorers", ["choice", "exact"]),),
        detailed_keys=("topic",),
    )
    assert (other.state.done, other.state.resumed) == (0, 6)
    assert "exact_match" in other.results["tasks"]["d"]["metrics"]
    assert set(other.results["tasks"]["d"]["groups"]) == {"topic"}
    write(path, answer="B")
    with pytest.raises(RunMismatch, match=r"tasks\.d\.data"):
        snellen.run(str(path), "blind/first", output_dir=folder)
    assert len(list(RunReader(folder).trials("d"))) == 6


def test_several_tasks_in_one_run_keep_their_own_counts(tmp_path: Path) -> None:
    result = snellen.run(
        (str(write(tmp_path / "a.jsonl", 3)), str(write(tmp_path / "b.jsonl", 5, answer="B"))),
        "blind/first",
        output_dir=tmp_path / "r",
    )
    found = {
        name: (task["metrics"]["accuracy"]["n"], task["metrics"]["accuracy"]["value"])
        for name, task in result.results["tasks"].items()
    }
    assert found == {"a": (3, 1.0), "b": (5, 0.0)}
    assert result.results["status"] == {
        "complete": True,
        "planned": {"a": 3, "b": 5},
        "not_yet_asked": {"a": 0, "b": 0},
        "failed": {"a": 0, "b": 0},
        "until_ci": None,
    }


def test_policies_follow_the_settings() -> None:
    policy = make_policy(RunSettings(tasks=(), model="m", max_workers=3, max_retries=1, timeout_s=2.0))
    assert (policy.max_workers, policy.max_retries, policy.timeout_s) == (3, 1, 2.0)
    assert make_policy(RunSettings(tasks=(), model="m")).max_workers == 32
    limits = make_limits(RunSettings(tasks=(), model="m", max_errors="5%", max_cost=2.0, deadline_s=5.0), None, 10.0)
    assert (limits.money, limits.ends, limits.has_too_many_errors(6, 100)) == (2.0, 15.0, True)


def test_a_plug_in_that_cannot_be_loaded_is_one_line(tmp_path: Path) -> None:
    for name, text, words in (
        ("a", "def (", "SyntaxError"),
        ("b", "1/0", "ZeroDivisionError"),
        ("c", "import nothing_like_it", "ModuleNotFoundError"),
        ("d", "x = 1", "no model"),
    ):
        (tmp_path / f"{name}.py").write_text(text)
        with pytest.raises(UsageError, match=words):
            plan("eyechart", plugins=(tmp_path / f"{name}.py",))


def test_a_suite_without_tasks_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cards" / "suites"
    folder.mkdir(parents=True)
    for text in ("", "tasks = 5", "tasks = [1]"):
        (folder / "mine.toml").write_text(text)
        with pytest.raises(ConfigError, match="'mine'"):
            plan("mine", catalogs=(tmp_path / "cards",))


ROWS: list[tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]] = [
    ({"options": {"B": "dog", "A": "cat"}, "answer": "A"}, ("cat", "dog"), ("cat",)),
    ({"options": {"1": "dog", "2": "cat"}, "answer": "2"}, ("dog", "cat"), ("cat",)),
    ({"options": {"1": "dog", "2": "cat"}, "answer": 1}, ("dog", "cat"), ("dog",)),
    ({"options": {"B": "dog", "A": "cat"}, "answer": ["A", "B"]}, ("cat", "dog"), ("cat", "dog")),
    ({"A": "cat", "B": "dog", "answer": "B"}, ("cat", "dog"), ("dog",)),
    ({"option_a": "cat", "option_b": "dog", "answer": "B"}, ("cat", "dog"), ("dog",)),
    ({"x": 1, "y": 2, "answer": "blue"}, (), ("blue",)),
    ({"A": "amperes", "E": "energy", "answer": "blue"}, (), ("blue",)),
]


@pytest.mark.parametrize(("row", "options", "answers"), ROWS)
def test_options_by_key_and_by_column_keep_their_labels(
    tmp_path: Path, row: dict[str, Any], options: tuple[str, ...], answers: tuple[str, ...]
) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"id": 1, "question": "?"} | row))
    (sample,) = snellen.load_dataset(str(path))
    assert (sample.options, sample.answers) == (options, answers)
    assert (sample.form == "choice") == bool(options)


@pytest.mark.parametrize(
    ("model", "url", "meant"),
    [
        ("opnai/gpt", "http://127.0.0.1:9/v1", "'openai/gpt'"),
        ("opnai/gpt", None, "'openai/gpt'"),
        ("served-name", "http://127.0.0.1:9/v1", "'openai/served-name'"),
        ("mistralai/pixtral", "http://127.0.0.1:9/v1", "'openai/mistralai/pixtral'"),
        ("Qwen/Qwen2-VL", "http://127.0.0.1:9/v1", "'openai/Qwen/Qwen2-VL'"),
    ],
)
def test_a_provider_spelt_wrong_is_set_right(model: str, url: str | None, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"unknown provider .*\(did you mean {meant}\?\)"):
        snellen.load_model(model, base_url=url)


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "localhost:8000", "ftp://host/v1", "htp://host"])
def test_an_address_without_http_is_refused_before_anything_is_planned(url: str) -> None:
    with pytest.raises(UsageError, match="--base-url"):
        snellen.load_model("openai/gpt", base_url=url)


def test_a_load_that_cannot_begin_leaves_no_folder(tmp_path: Path) -> None:
    run = RunSettings(tasks=(str(write(tmp_path / "d.jsonl")),), model="openai/gpt", base_url="localhost:8000")
    run = msgspec.structs.replace(run, output_dir=tmp_path / "load")
    with pytest.raises(UsageError, match="--base-url"):
        run_perf(PerfSettings(run=run, levels=(LoadPlan(concurrency=1),)))
    assert not (tmp_path / "load").exists()


def test_a_sweep_that_cannot_be_kept_is_not_begun(tmp_path: Path) -> None:
    """The folder was made after the search: what had been measured for minutes was lost."""
    (tmp_path / "file").touch()
    run = RunSettings(tasks=(str(write(tmp_path / "d.jsonl")),), model="openai/gpt", base_url="http://127.0.0.1:9/v1")
    run = msgspec.structs.replace(run, output_dir=tmp_path / "file" / "sweep")
    with pytest.raises(NotADirectoryError):
        run_sweep(PerfSettings(run=run, levels=(LoadPlan(concurrency=1),), objectives={"ttft": 0.5}), SweepSettings())


def test_who_asks_for_a_trial_that_is_not_there_is_told_what_is(tmp_path: Path) -> None:
    folder = snellen.run(str(write(tmp_path / "d.jsonl")), "blind/first").folder
    with pytest.raises(UsageError, match=r"'1'.*\bd\b.*base.*inference 1$"):
        read_sample(folder, "1", task="nope")
    with pytest.raises(UsageError, match=r"'1'.*\bd\b.*base.*inference 1$"):
        read_sample(folder, "1", repeat=2)
    with pytest.raises(UsageError, match=r"no such trial of sample 'x'$"):
        read_sample(folder, "x")
