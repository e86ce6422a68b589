"""The page jobs against simulated readers whose curves are known: what is measured must be what was simulated."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import COMMAND
from command_line import run_command as snellen
from draws import drawn
from snellen.api.load import load_dataset
from snellen.kits.mock.ask import write_answers
from snellen.kits.pages.grid_folder import write_needles
from snellen.kits.pages.page_style import PageStyle
from snellen.kits.pages.plant import BUILT_IN, Grid, read_haystack
from waiting import requests_seen, stored_trials, wait_until

STYLE = PageStyle(width_pt=400, height_pt=260, dpi=72, font="built-in", size_pt=14, leading_pt=17)
MC_FIELDS = {
    "subdirectory",
    "model",
    "total_questions",
    "correct",
    "accuracy",
    "context_length_analysis",
    "detailed_analysis",
    "results",
}
NIAH_FIELDS = {"model", "config", "total_questions", "correct", "accuracy", "errors", "instance_accuracies", "results"}
"""The fields of the example outputs in the scripts' own documentation."""


def needles(folder: Path, repeats: int, **fields: Any) -> Path:
    grid = Grid((250,), (0.0, 0.25, 0.5, 0.75, 1.0), ("kv-number",), repeats=repeats, **fields)
    write_needles(read_haystack(BUILT_IN, 3_000, 4), grid, folder, {"clean": STYLE})
    dataset = load_dataset("niah", path=str(folder / "data.json"), image_root=str(folder / "clean"))
    write_answers(dataset, folder / "answers.jsonl")
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def results(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text())["tasks"]["niah"]["metrics"]


HALF_PX, SLOPE, HEIGHT_PX = 9.8, 12.0, 14.0


def chance(severity: float) -> float:
    """What the simulated reader reads at a severity: known, so that the fit can be held against it."""
    return 1 / (1 + math.exp(-SLOPE * math.log(HEIGHT_PX * (1 - 0.1 * severity) / HALF_PX)))


@drawn(6)
def test_the_critical_severity_of_a_known_reader_lies_in_its_interval(
    home: Path, mock_server: Callable[..., Any], draws: int
) -> None:
    """Six servers, none of them picked: a 95 % interval may miss once in six, hardly twice."""
    folder = needles(home / "n", repeats=30)
    truth = min((step / 100 for step in range(500)), key=lambda severity: abs(chance(severity) - chance(0) / 2))
    inside, covered = [], []
    for seed in range(draws):
        server = mock_server(
            "--answers", folder / "answers.jsonl", "--reader", f"noisy:px50={HALF_PX},slope={SLOPE}", "--seed", seed
        )
        code = snellen(
            ["run", "niah", "-p", f"dataset.path={folder}/data.json", "-p", f"dataset.image_root={folder}/clean", "--perturb", "nearest:1-5",
             "--model", "openai/mock", "--base-url", server.base_url, "-o", f"run{seed}", "--no-cache", "--quiet"]
        )  # fmt: skip
        assert code == 0
        found = results(home / f"run{seed}")
        low, high = found["critical_severity_nearest"]["ci95"]
        assert high - low < 1.0
        inside.append(low <= truth <= high)
        for severity in range(6):
            low, high = found[f"accuracy_nearest_{severity}"]["ci95"]
            covered.append(low <= chance(severity) <= high)
        assert found["retention_nearest_5"]["value"] < 0.1 < found["retention_nearest_1"]["value"]
        assert found["lost_nearest"]["value"] > found["gained_nearest"]["value"]
    assert sum(inside) >= draws - 1, inside
    assert sum(covered) >= 0.88 * len(covered), covered  # of 36 intervals at 95 %, 32: 34 on average


def test_lost_in_the_middle_shows_in_the_heat_map(home: Path, mock_server: Callable[..., Any]) -> None:
    pytest.importorskip("vl_convert")
    folder = needles(home / "n", repeats=16)
    server = mock_server("--answers", folder / "answers.jsonl", "--reader", "lost-middle:edge=1,middle=0.1")
    config = home / "model.json"
    config.write_text(
        json.dumps(
            {"model_name": "mock", "max_tokens": 32, "temperature": 0.0, "prompt_template": "{question}", "timeout": 60}
        )
    )
    code = snellen(
        ["niah", "--data", str(folder / "data.json"), "--images", str(folder / "clean" / "images"), "--output", "out/mock.json",
         "--config", str(config), "--base_url", server.base_url, "--max_workers", "16", "--quiet"]
    )  # fmt: skip
    assert code == 0
    found = json.loads((home / "out" / "mock.json").read_text())
    assert set(found) >= NIAH_FIELDS and found["model"] == "mock" and found["total_questions"] == 80
    assert sum(each["total"] for each in found["instance_accuracies"].values()) == 80
    assert found["accuracy"] == round(100 * found["correct"] / 80, 2)
    depth = {name: each["accuracy"] for name, each in found["by_needle_depth"].items()}
    assert depth["40-60%"] < 40 < 80 < depth["0-20%"]
    assert snellen(["docs", "plot", "out/mock.run", "-o", "plots"]) == 0
    cells = (home / "plots" / "niah-depth-length.csv").read_text().splitlines()
    assert cells[0] == "length,depth,value,n" and len(cells) == 6 and cells[1].endswith(",16")
    assert (home / "plots" / "niah-depth-length.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (home / "plots" / "niah-row-column.svg").read_text()


def choice_data(folder: Path, documents: int = 8) -> Path:
    records = []
    for number in range(documents):
        words = [f"value{number}{letter}" for letter in "abcd"]
        records.append(
            {"_id": f"doc{number:02d}", "domain": "D", "sub_domain": "S", "difficulty": ("easy", "hard", "strange")[number % 3],
             "length": "short", "question": f"Which {{one}} is number {number}?", "answer": "ABCD"[number % 4],
             "context": f"Document {number}. The value is {words[number % 4]}. " * 5,
             **{f"choice_{letter}": word for letter, word in zip("ABCD", words, strict=True)}}
        )  # fmt: skip
    (folder / "data.json").write_text(json.dumps(records))
    return folder / "data.json"


def test_mc_writes_one_valid_file_a_variant_and_counts_what_is_missing(
    home: Path, mock_server: Callable[..., Any], capsys: Any
) -> None:
    data = choice_data(home)
    assert snellen(["docs", "render", str(data), "-o", "vqa/clean", "--page-size", "300x200", "--json"]) == 0
    assert (
        snellen(["docs", "perturb", "vqa/clean", "-o", "vqa/adv_jpeg_10", "--family", "jpeg", "--severity", "3"]) == 0
    )
    (home / "vqa/adv_jpeg_10/images/doc03_page_001.png").write_text("not a picture")
    (home / "vqa/adv_jpeg_10/images/doc05_page_001.png").unlink()
    for variant in ("clean", "adv_jpeg_10"):
        (home / f"{variant}.jsonl").write_text("")
        write_answers(_answerable(data, home / "vqa" / variant), home / f"{variant}.jsonl")
    (home / "answers.jsonl").write_text((home / "clean.jsonl").read_text() + (home / "adv_jpeg_10.jsonl").read_text())
    server = mock_server("--answers", home / "answers.jsonl", "--reader", "perfect+verbose")
    config = home / "model.json"
    config.write_text(
        json.dumps({"model_name": "mock", "max_tokens": 64, "prompt_template": "{question}\n\n{choices}\n\nAnswer:"})
    )
    arguments = [
        "mc",
        "--data-json",
        str(data),
        "--images-dir",
        "vqa",
        "--output",
        "out",
        "--config",
        str(config),
        "--base_url",
        server.base_url,
    ]
    assert snellen([*arguments, "--quiet"]) == 1  # some trials failed, and it says so
    clean, jpeg = (json.loads((home / "out" / f"{name}_mc_eval.json").read_text()) for name in ("clean", "adv_jpeg_10"))
    for found in (clean, jpeg):
        assert set(found) >= MC_FIELDS and found["total_questions"] == 8 and len(found["results"]) == 8
        both = found["detailed_analysis"].pop("by_difficulty_and_length")
        inner = {(outer, name): group for outer, groups in both.items() for name, group in groups.items()}
        by_length = found["context_length_analysis"]["by_context_length"]
        for groups in (*found["detailed_analysis"].values(), inner, by_length):
            assert sum(group["total"] for group in groups.values()) == 8  # nothing leaves the denominator
    assert set(clean["detailed_analysis"]["by_difficulty"]) == {"easy", "hard", "strange"}
    assert clean["accuracy"] == 100.0 and clean["skipped"] == []
    assert jpeg["accuracy"] == 75.0 and jpeg["errors"] == 0
    assert {each["instance_id"]: each["reason"].split(" ")[0] for each in jpeg["skipped"]} == {
        "doc03": "doc03_page_001.png",
        "doc05": "no",
    }
    assert "{one}" in clean["results"][0]["prompt"] and clean["results"][0]["choices"]["A"] == "value0a"
    (pair,) = json.loads((home / "out" / "comparison.json").read_text())
    assert pair["paired"] == 6 and pair["left_out"] == 2 and pair["difference"] == 0.0
    before = requests_seen(server.base_url)
    assert snellen([*arguments, "--quiet"]) == 1
    assert requests_seen(server.base_url) == before  # a finished run asks nothing again


def _answerable(data: Path, images: Path) -> list[Any]:
    dataset = load_dataset("longbench-v2", path=str(data), image_root=str(images))
    return [sample for sample in dataset if sample.images]


@pytest.mark.crash
def test_a_killed_run_goes_on_where_it_was(home: Path, mock_server: Callable[..., Any]) -> None:
    folder = needles(home / "n", repeats=12)
    reader = ("--answers", folder / "answers.jsonl", "--reader", "perfect")
    silent = mock_server(*reader, "--fault", f"hang@60-{10**6}")  # so that the run cannot end before it is killed
    command = [
        *COMMAND, "run", "niah", "-p", f"dataset.path={folder}/data.json", "-p", f"dataset.image_root={folder}/clean",
        "--perturb", "jpeg:1-2", "--model", "openai/mock", "-o", "run", "--no-cache", "--quiet", "--max-workers", "4",
    ]  # fmt: skip
    with subprocess.Popen([*command, "--base-url", silent.base_url]) as process:
        wait_until(lambda: stored_trials(home / "run") >= 20, "20 stored trials")
        process.kill()
    stored = stored_trials(home / "run")
    assert 20 <= stored < 60
    server = mock_server(*reader)
    again = [*command, "--base-url", server.base_url, "--same-model"]  # the same reader at another address
    assert subprocess.run(again, check=False).returncode == 0
    assert requests_seen(server.base_url) == 180 - stored, "what was stored is not asked again"
    found = results(home / "run")
    assert found["accuracy"]["n"] == 180 and found["accuracy"]["value"] == 1.0
