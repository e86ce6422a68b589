"""`snellen docs` as users type it: what it writes, what it prints, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import run_command as snellen


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text("Call me Ishmael. Some years ago, never mind how long precisely. " * 60)
    return path


def told(capsys: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_render_perturb_and_recipe(text: Path, tmp_path: Path, capsys: Any) -> None:
    style = ["--font", "built-in", "--page-size", "300x200", "--dpi", "72", "--json"]
    assert snellen(["docs", "render", str(text), "-o", str(tmp_path / "clean"), *style]) == 0
    (summary,) = told(capsys)
    assert summary["pages"] == len(list((tmp_path / "clean" / "images").iterdir())) > 1
    assert summary["compression_ratio"]["gemma3"] > 0
    assert snellen(["docs", "render", str(text), "-o", str(tmp_path / "low"), "--variant", "dpi_render:4", *style]) == 0
    assert told(capsys)[0]["visual_tokens"]["qwen2.5-vl"] < summary["visual_tokens"]["qwen2.5-vl"]
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[[variant]]\nname = "scan"\nsteps = ["rotation:1", "jpeg:3"]\n[[variant]]\nsteps = ["blur:2"]\n')
    assert (
        snellen(
            ["docs", "perturb", str(tmp_path / "clean"), "-o", str(tmp_path / "vqa"), "--recipe", str(recipe), "--json"]
        )
        == 0
    )
    assert [Path(each["folder"]).name for each in told(capsys)] == ["scan", "blur_2"]
    assert (
        snellen(["docs", "perturb", str(tmp_path / "clean"), "-o", str(tmp_path / "chain"), "--chain", "blur:1+jpeg:2"])
        == 0
    )


def test_needles_with_another_rendering(tmp_path: Path, capsys: Any) -> None:
    arguments = [
        "--lengths",
        "600",
        "--depths",
        "0,100",
        "--kinds",
        "word,absent,stamp",
        "--variant",
        "small:dpi=56",
        "--font",
        "built-in",
    ]
    assert snellen(["docs", "needle", "-o", str(tmp_path / "n"), *arguments, "--json"]) == 0
    (summary,) = told(capsys)
    assert summary["questions"] == 6 and set(summary["pages"]) == {"clean", "small"}
    assert len(json.loads((tmp_path / "n" / "data.json").read_text())) == summary["documents"]


def test_families_are_listed(capsys: Any) -> None:
    assert snellen(["docs", "families", "--json"]) == 0
    (listed,) = told(capsys)
    assert len(listed["perturb"]) >= 39 and len(listed["needles"]) == 19 and "qwen3-vl" in listed["models"]
    assert snellen(["docs", "families"]) == 0
    assert "jpeg" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["render", "BOOK", "-o", "OUT", "--preset", "sead"], "did you mean 'seed'"),
        (["render", "BOOK", "-o", "OUT", "--align", "middle"], "align"),
        (["render", "BOOK", "-o", "OUT", "--font", "No Such"], "not installed"),
        (["render", "BOOK", "-o", "OUT", "--ink", "reddish"], "not a colour"),
        (["render", "BOOK", "-o", "OUT", "--tokenizer", "nope"], "tokenizer"),
        (["perturb", "OUT", "-o", "X", "--family", "jpg"], "did you mean 'jpeg'"),
        (["perturb", "OUT", "-o", "X"], "--family, --chain or --recipe"),
        (["perturb", "OUT", "-o", "X", "--family", "blur"], "no pages"),
        (["needle", "-o", "OUT", "--kinds", "kv"], "unknown needle kind"),
        (["needle", "-o", "OUT", "--lengths", "8q"], "not a number of tokens"),
        (["needle", "-o", "OUT", "--haystack", "BOOK", "--lengths", "90k"], "shorter --lengths"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(
    text: Path, tmp_path: Path, capsys: Any, arguments: list[str], message: str
) -> None:
    (tmp_path / "out" / "images").mkdir(parents=True)
    places = {"BOOK": str(text), "OUT": str(tmp_path / "out"), "X": str(tmp_path / "x")}
    assert snellen(["docs", *(places.get(argument, argument) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_mc_and_niah_refuse_what_cannot_work(tmp_path: Path, capsys: Any) -> None:
    config = tmp_path / "model.json"
    (tmp_path / "data.json").write_text("[]")
    base = [
        "--data-json",
        str(tmp_path / "data.json"),
        "--images-dir",
        str(tmp_path),
        "--output",
        str(tmp_path / "out"),
        "--config",
        str(config),
    ]
    for content, message in (
        ('{"model_name": "x"}', "'max_tokens' is missing"),
        ('{"model_name": "x", "max_token": 5, "max_tokens": 1}', "unknown key"),
    ):
        config.write_text(content)
        assert snellen(["mc", *base]) == 2
        assert message in capsys.readouterr().err
    config.write_text('{"model_name": "x", "max_tokens": 5}')
    assert snellen(["mc", *base]) == 2
    assert "no subfolder" in capsys.readouterr().err
    assert (
        snellen(
            [
                "niah",
                "--data",
                "nowhere.json",
                "--images",
                str(tmp_path),
                "--output",
                str(tmp_path / "o.json"),
                "--config",
                str(config),
            ]
        )
        == 2
    )
    assert "does not exist" in capsys.readouterr().err
