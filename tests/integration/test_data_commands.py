"""`snellen data` and the prompt flags of `snellen run`, as a user types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reform_fixtures
from command_line import run_command
from snellen.store.reader import RunReader

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    for slug in ("vqa-v2", "coco-goi", "visdial"):
        reform_fixtures.raw(slug, tmp_path / "data" / slug)
    return tmp_path / "data"


def call(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = run_command([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_build_check_and_run(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(
        capsys, "data", "build", "reform/vqa-v2", "--raw", raw / "vqa-v2", "-o", tmp_path / "b", "--json"
    )
    assert "note: the whole set is known to give 214354 samples" in err
    report = json.loads(out)
    assert (code, report["samples"], report["bundle"]["images"]) == (0, 36, 12)
    code, out, _ = call(capsys, "data", "check", tmp_path / "b")
    assert code == 0
    assert "no defect and no bias was found" in out
    assert out.count("\n[") == 10, "ten questions to read"
    assert "* yes" in out
    run = (
        "run",
        "reform/vqa-v2",
        "-p",
        f"dataset.path={tmp_path / 'b'}",
        "--model",
        "blind/first",
        "-o",
        tmp_path / "r",
        "--json",
        "--no-cache",
    )
    code, out, _ = call(capsys, *run)
    assert code == 0
    assert json.loads(out)["tasks"]["reform/vqa-v2"]["metrics"]["accuracy"]["n"] == 36


def test_check_finds_what_was_changed(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "data", "build", "reform/vqa-v2", "--raw", raw / "vqa-v2", "-o", tmp_path / "b", "--no-check")
    items = tmp_path / "b" / "items.jsonl"
    rows = [json.loads(line) for line in items.read_text().splitlines()]
    rows[3]["answers"] = ["elsewhere"]
    rows[4]["options"] = [*rows[4]["options"], rows[4]["options"][0].upper()]
    rows[5]["id"] = rows[6]["id"]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    next((tmp_path / "b" / "images").iterdir()).write_bytes(b"\x89PNG")
    code, out, _ = call(capsys, "data", "check", tmp_path / "b" / "bundle.json", "--json")
    found = {finding["check"] for finding in json.loads(out)["findings"]}
    assert code == 1
    assert {"checksum", "count", "label", "unique", "ids", "images"} <= found
    assert call(capsys, "data", "check", items)[0] == 1


def test_check_own_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        "".join(
            json.dumps({"id": number, "question": f"q{number}", "options": ["a1", "b1"], "answer": "a1"}) + "\n"
            for number in range(40)
        )
    )
    code, out, _ = call(capsys, "data", "check", path)
    assert code == 0
    assert "warning balance: of 40 questions with options a1/b1, 100% are 'a1'" in out


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_export_for_models_outside(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    out = tmp_path / f"goi.{ending}"
    code, text, _ = call(
        capsys,
        "data",
        "export",
        "reform/coco-goi",
        "--data-root",
        raw,
        "-o",
        out,
        "--dataset-duplication",
        2,
        "--shuffle-options",
        "--json",
    )
    assert (code, json.loads(text)["items"]) == (0, 24)
    rows = (
        json.loads(out.read_text()) if ending == "json" else [json.loads(line) for line in out.read_text().splitlines()]
    )
    assert len(rows) == 24
    assert Path(rows[0]["image"]).is_file()
    assert Path(rows[0]["image"]).parent.name == "goi_images"
    assert rows[0]["sample_id"] == rows[1]["sample_id"]
    predictions = [{**row, "prediction": f"({'ABCD'[row['answer']]})"} for row in rows]
    (tmp_path / "predictions.json").write_text(json.dumps(predictions))
    code, text, _ = call(
        capsys, "score", tmp_path / "predictions.json", "--formulation", "SingleChoice", "--eval-stability", "--json"
    )
    assert code == 0
    assert '"value":1.0' in text.replace(" ", "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("data", "build", "eyechart", "-o", "x"), 2, "only cards of loader 'reform'"),
        (("data", "build", "reform/vqa-v3", "--raw", ".", "-o", "x"), 2, "did you mean 'reform/vqa-v2'"),
        (("data", "check", "."), 2, "neither a bundle folder nor a data file"),
        (("data", "export", "reform/vqa-v2", "-o", "x.csv", "--data-root", "{raw}"), 2, ".json (a list) or .jsonl"),
        (
            ("run", "reform/gqa", "--model", "blind/first", "--data-root", "{raw}"),
            2,
            "get the raw files from https://cs.stanford.edu",
        ),
        (
            ("run", "reform/vqa-v2", "--model", "blind/first", "--data-root", "{raw}", "--shots", "bm25"),
            2,
            "RETRIEVER:N",
        ),
        (
            (
                "run",
                "reform/vqa-v2",
                "--model",
                "blind/first",
                "--data-root",
                "{raw}",
                "--random-instruct",
                "--dataset-duplication",
                "7",
            ),
            2,
            "multiple of 5",
        ),
    ],
)
def test_errors_are_one_line(
    raw: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    got, _, err = call(capsys, *(argument.replace("{raw}", str(raw)) for argument in arguments))
    assert got == code
    assert message in err
    assert "Traceback" not in err


def requests_of(folder: Path, task: str) -> list[Any]:
    reader = RunReader(folder)
    found = [request for _, request, _, _ in reader.trials(task)]
    reader.close()
    return found


def test_prompt_flags_reach_the_prompt(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack = tmp_path / "pack.toml"
    pack.write_text('["reform/vqa"]\ninstructions = ["PACKED"]\n')
    code, _, err = call(
        capsys, "run", "reform/vqa-v2", "--data-root", raw, "--model", "blind/first", "-o", tmp_path / "r", "--limit", 8, "--quiet", "--no-cache",
        "--in-context-sample", "--response-prefix", "So:", "--yesno-instruct", "--capitalize", "--prompt-pack", pack, "--shots", "random:1",
        "--option-mark", "number", "--style", "two",
    )  # fmt: skip
    assert code == 0, err
    texts = [request.messages[0].text for request in requests_of(tmp_path / "r", "reform/vqa-v2")]
    assert all(
        text.startswith("USER: PACKED Is there a picture? Options: (1) yes") or "Answer yes or no." in text
        for text in texts
    )
    assert all(text.endswith("ASSISTANT: So:") for text in texts)
    assert any("PACKED Answer yes or no." in text for text in texts)
    assert all(text.count("ASSISTANT:") == 3 for text in texts)


def test_last_round_and_history_flags(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--data-root", raw, "--model", "blind/first", "--quiet", "--no-cache")
    assert (
        call(
            capsys,
            "run",
            "reform/visdial",
            *flags,
            "--infer-method",
            "last",
            "-o",
            tmp_path / "last",
            "--no-options-in-history",
        )[0]
        == 0
    )
    last = requests_of(tmp_path / "last", "reform/visdial")
    assert len(last) == 4
    assert len(last[0].messages) == 23
    assert "Options" not in last[0].messages[2].text
    assert (
        call(capsys, "run", "reform/visdial", *flags, "--online-multi-round", "--limit", 12, "-o", tmp_path / "online")[
            0
        ]
        == 0
    )
    online = requests_of(tmp_path / "online", "reform/visdial")
    assert len(online) == 12


def test_tasks_says_what_is_there(raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "tasks", "--dimension", "dialogue", "--data-root", raw, "--json")
    rows = {row["name"]: row["data"] for row in json.loads(out)["tasks"]}
    assert code == 0
    assert rows == {"reform/visdial": ["raw"], "reform/vqa-mt": []}


def test_what_a_terminal_obeys_is_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "\x1b]0;title\x07\x1b[2Jq"
    rows = [{"id": name, "question": "Is it?", "options": ["yes", "no"], "answer": "yes", "image": "gone.png"}] * 2
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, out, err = call(capsys, "data", "check", tmp_path / "my.jsonl")
    assert "title" in out + err
    assert not set("\x1b\x07") & set(out + err)
