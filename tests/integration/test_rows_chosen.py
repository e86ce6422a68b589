"""Which rows are asked, what the plan says of them, and what is refused by name."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import snellen
from command_line import run_command
from cure_fixtures import write_cure
from snellen.api.load import load_run
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.errors import DataError, UsageError
from snellen.core.protocols import LoadContext
from snellen.core.types import Sample
from snellen.data.catalog import Catalog
from snellen.data.dataset import Dataset
from snellen.data.files.rows import read_rows
from snellen.data.loaders.table import load
from snellen.data.selection import choose, draw
from snellen.kits.reform.corpus import Corpus


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "t.jsonl"
    rows = [
        {"id": n, "question": f"Q{n}?", "options": ["x", "y"], "answer": "A", "kind": "ab"[n < 8]} for n in range(40)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def dataset(path: Path) -> Dataset:
    return Dataset(Catalog().task(str(path)), load, LoadContext())


def asked(result: Any) -> list[str]:
    with load_run(result.folder) as run:
        return [trial.sample.id for trial in run.trials("t")]


def test_named_samples_are_asked_and_no_others(task: Path, tmp_path: Path) -> None:
    result = snellen.run(str(task), "blind/first", ids=("7", "3"), output_dir=tmp_path / "r")
    assert asked(result) == ["3", "7"]
    with pytest.raises(UsageError, match=r"'99'.*--ids"):
        snellen.run(str(task), "blind/first", ids=("3", "99"), output_dir=tmp_path / "s")


def test_a_draw_is_the_same_for_a_seed_and_another_for_another(task: Path) -> None:
    drawn = [draw(dataset(task), 10, seed) for seed in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 10
    with pytest.raises(UsageError, match=r"\b40\b"):
        draw(dataset(task), 41, 0)


def test_every_value_of_a_tag_gets_its_share(task: Path) -> None:
    samples: list[Sample] = list(choose(dataset(task), sample=10, seed=1, stratify="kind"))
    assert Counter(sample.tags["kind"] for sample in samples) == {"a": 8, "b": 2}
    with pytest.raises(UsageError, match="has no such tag"):
        draw(dataset(task), 10, 0, "knd")
    with pytest.raises(UsageError, match="needs --sample"):
        choose(dataset(task), stratify="kind")


def test_the_command_takes_ids_from_a_file_and_shows_prompts(
    task: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ids.txt").write_text("5\n\n6\n")
    flags = ["--ids-file", tmp_path / "ids.txt", "--ids", "1", "--show-prompt", 2, "-o", tmp_path / "r"]
    assert run_command(["run", task, "--model", "blind/first", *flags]) == 0
    plan = capfd.readouterr().err
    assert "choice: 3 rows, 0 pictures, 6 options, 3 answers; the first asks 'Q1?'" in " ".join(plan.split())
    assert plan.count("Answer with the letter") == 2
    assert "A. x\nB. y" in plan


def test_a_sheet_with_semicolons_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes("\ufeffquestion;options;answer\nWas, bitte?;ja|nein;A\n".encode())
    (sample,) = snellen.load_dataset(str(path))
    assert (sample.question, sample.options, sample.answers) == ("Was, bitte?", ("ja", "nein"), ("ja",))
    assert dict(read_rows(path))[1]["question"] == "Was, bitte?"


def test_a_mistyped_field_names_the_right_one(task: Path) -> None:
    with pytest.raises(UsageError, match=r"no field 'quesion'.*'question'"):
        list(snellen.load_dataset(str(task), columns={"quesion": "question"}))
    with pytest.raises(DataError, match=r"'qestion'.*'question'"):
        list(snellen.load_dataset(str(task), columns={"question": "qestion"}))


def test_a_folder_stands_for_its_one_table(task: Path, tmp_path: Path) -> None:
    folder = tmp_path / "of_one"
    folder.mkdir()
    with pytest.raises(UsageError, match="no data file"):
        snellen.load_dataset(str(folder))
    (folder / "t.jsonl").write_bytes(task.read_bytes())
    assert len(list(snellen.load_dataset(str(folder)))) == 40
    (folder / "u.csv").write_text("question,answer\na,b\n")
    with pytest.raises(UsageError, match=r"t\.jsonl, u\.csv"):
        snellen.load_dataset(str(folder))


def test_files_of_others_are_not_written_over(task: Path, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("mine")
    with pytest.raises(UsageError, match=r"results\.json"):
        snellen.run(str(task), "blind/first", output_dir=tmp_path)
    assert (tmp_path / "results.json").read_text() == "mine"


def test_a_relative_root_is_as_good_as_an_absolute_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl").write_text('{"x": 1}\n')
    monkeypatch.chdir(tmp_path)
    ((_, rows),) = Corpus(Path("data"), {"tables": "*.jsonl"}).tables("tables")
    assert list(rows) == [{"x": 1}]


@pytest.mark.parametrize(("name", "makes"), [("niah", "snellen docs needle"), ("longbench-v2", "snellen docs render")])
def test_a_built_in_task_without_its_file_says_where_it_comes_from(
    name: str, makes: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=f"{makes}.*-p dataset.path=FILE"):
        snellen.run(name, "openai/x", output_dir=tmp_path / "r")


def test_data_check_reads_what_run_cure_reads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_cure(tmp_path)
    code = run_command(["data", "check", path, "--json"])
    report = json.loads(capfd.readouterr().out)
    assert code in (0, 1)
    assert report["samples"] > 0


def test_the_limit_of_a_row_wins_over_the_setting_and_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    limits = [{"max_out_len": 7}, {"max_tokens": "9"}, {"max_out_len": 0}, {"max_out_len": 12.0}, {}]
    rows = [{"id": str(n), "question": f"Q{n}?", "answer": "a"} | limit for n, limit in enumerate(limits)]
    path.write_text("\n".join(map(json.dumps, rows)))
    result = snellen.run(str(path), "blind/first", output_dir=tmp_path / "run", max_tokens=50, num_infers=2)
    with load_run(result.folder) as run:
        sent = {trial.request.key.sample: trial.request.params.max_tokens for trial in run.trials("t")}
    assert sent == {"0": 7, "1": 9, "2": 50, "3": 12, "4": 50}
    (planned,) = make_plan(RunSettings(tasks=(str(path),), model="blind/first", output_dir=tmp_path / "other")).tasks
    assert "3 rows with a max_tokens of their own: it is sent instead of the run's" in planned.survey.notes


@pytest.mark.parametrize("limit", [-1, "many", True, 1.5, [3]])
def test_a_limit_that_is_no_number_is_refused_by_row(limit: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"question": "Q?", "answer": "a", "max_tokens": limit}))
    with pytest.raises(DataError, match=r"t\.jsonl record 1.*max_tokens"):
        list(snellen.load_dataset(str(path)))


def test_a_subset_is_a_card_or_the_value_of_a_column(task: Path, tmp_path: Path) -> None:
    def ids(**settings: Any) -> list[str]:
        (planned,) = make_plan(
            RunSettings(tasks=(str(task),), model="blind/first", output_dir=tmp_path / "p", **settings)
        ).tasks
        return [sample.id for sample in planned.dataset]

    assert ids(subset="debug") == [str(n) for n in range(20)]
    assert ids(subset="core") == [str(n) for n in range(40)], "a task with fewer is asked whole"
    assert ids(subset="kind=b") == [str(n) for n in range(8)]
    own = tmp_path / "cards" / "subsets" / "few.toml"
    own.parent.mkdir(parents=True)
    own.write_text('title = "a few"\nsample = 10\nseed = 2\nstratify = "kind"\n')
    few = ids(subset="few", catalogs=(tmp_path / "cards",))
    assert few == ids(subset="few", catalogs=(tmp_path / "cards",))
    assert (len(few), sum(int(name) < 8 for name in few)) == (10, 2)
    own.write_text("sample = 10\nfirst = 2\n")
    for wrong, said in {
        "kind=c": r"no sample of task 't' has kind 'c'.*; there are: a, b",
        "kin=b": r"no column 'kin' \(did you mean 'kind'\?\)",
        "croe": r"no subset named 'croe' \(did you mean 'core'\?\)",
        "few": "names `first` and `sample`",
    }.items():
        with pytest.raises(UsageError, match=said):
            ids(subset=wrong, catalogs=(tmp_path / "cards",))


def test_the_flags_of_a_seed_stand_for_subsets(task: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    common = ["run", task, "--model", "blind/first", "--quiet"]
    assert run_command([*common, "--dataset_debug", "-o", tmp_path / "debug"]) == 0
    assert run_command([*common, "--core_eval", "-o", tmp_path / "core"]) == 0
    assert run_command([*common, "--dataset-subsample", "5", "-o", tmp_path / "five"]) == 0
    for name, count in {"debug": 20, "core": 40, "five": 5}.items():
        with load_run(tmp_path / name) as run:
            assert sum(1 for _ in run.trials("t")) == count
    assert run_command([*common, "--core-eval", "--subset", "kind=a"]) == 2
    assert "--subset kind=a and core: choose one" in capfd.readouterr().err
