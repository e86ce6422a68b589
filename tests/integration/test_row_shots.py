"""Worked examples from a file of their own: with their pictures, seeded, never a tested row, part of the run's identity."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from command_line import run_command
from snellen.api.load import load_run
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.errors import RunMismatch, UsageError

SHOTS = {"shots": {"retriever": "random", "count": 2}}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def picture(shade: int) -> bytes:
    stream = io.BytesIO()
    PIL.Image.new("RGB", (20, 10), (shade, 0, 0)).save(stream, "PNG")
    return stream.getvalue()


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "question": f"Q{number}?", "options": ["x", "y"], "answer": "AB"[number % 2], **more}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for number in range(10):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    test = write(tmp_path / "t.jsonl", [row(number, image=f"{number}.png") for number in range(3)])
    train = [{**row(number, image=f"{number}.png"), "id": number - 3} for number in range(3, 8)]
    return test, write(tmp_path / "train.jsonl", train)


def planned(test: Path, train: Path | None, folder: Path, **settings: Any) -> Any:
    made = RunSettings(
        tasks=(str(test),), model="openai/x", output_dir=folder, shots_file=train, **({"prompt": SHOTS} | settings)
    )
    return make_plan(made).tasks[0]


def asked(task: Any) -> list[list[str]]:
    return [
        [turn.text for turn in task.prompter.build(sample).messages if turn.role == "user"] for sample in task.dataset
    ]


def test_examples_come_from_their_file_with_pictures_and_answers(files: tuple[Path, Path], tmp_path: Path) -> None:
    task = planned(*files, tmp_path / "run")
    for number, sample in enumerate(task.dataset):
        messages = task.prompter.build(sample).messages
        assert [turn.role for turn in messages] == ["user", "assistant", "user", "assistant", "user"]
        assert messages[-1].text.startswith(f"Q{number}?")
        for question, answer in zip(messages[:-1:2], messages[1::2], strict=True):
            shown = int(question.text[1])
            assert 3 <= shown < 8, "an id that the task has too is no reason to leave an example out"
            assert [Path(image.ref).name for image in question.images] == [f"{shown}.png"]
            assert answer.text == f"{'AB'[shown % 2]}. {'xy'[shown % 2]}"


def test_the_draw_follows_the_seed(files: tuple[Path, Path], tmp_path: Path) -> None:
    first, again, other = (asked(planned(*files, tmp_path / "run", seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_tested_row_is_never_an_example_of_itself(files: tuple[Path, Path], tmp_path: Path) -> None:
    test, _ = files
    rows = [{**row(number, image=f"{number}.png"), "id": f"other{number}"} for number in range(5)]
    both = write(tmp_path / "both.jsonl", rows)
    for texts in asked(planned(test, both, tmp_path / "run")):
        assert {text[:3] for text in texts[:-1]} == {"Q3?", "Q4?"}
    with pytest.raises(UsageError, match="3 examples of form choice are wanted, and 2 answered rows"):
        planned(test, both, tmp_path / "run", prompt={"shots": {"retriever": "random", "count": 3}})


def test_examples_are_of_the_form_of_the_question(files: tuple[Path, Path], tmp_path: Path) -> None:
    test, train = files
    write(test, [row(0), {"id": 9, "question": "Open?", "answer": "z"}])
    with pytest.raises(UsageError, match="2 examples of form open are wanted, and 0 answered rows"):
        planned(test, train, tmp_path / "run")
    more = [{"id": f"o{n}", "question": f"O{n}?", "answer": "w"} for n in range(2)]
    write(train, [row(n) for n in range(3, 8)] + more)
    choice, free = asked(planned(test, train, tmp_path / "run"))
    assert all(text[0] == "Q" for text in choice)
    assert all(text[0] == "O" for text in free)


def test_other_examples_are_another_run_and_appended_rows_are_not(files: tuple[Path, Path], tmp_path: Path) -> None:
    test, train = files

    def run() -> Any:
        return snellen.run(str(test), "blind/first", output_dir=tmp_path / "run", shots_file=train, prompt=SHOTS)

    run()
    write(test, [row(number, image=f"{number}.png") for number in range(3)] + [row(9, image="9.png")])
    assert (grown := run().state).done == 1
    assert grown.resumed == 3
    write(train, [row(number) for number in range(4, 8)])
    with pytest.raises(RunMismatch, match=r"prompt\.shots\.pool was"):
        run()


def test_the_command_takes_a_number_and_a_file(
    files: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    test, train = files
    common = ["run", test, "--model", "blind/first", "-o", tmp_path / "run", "--quiet", "--shots-file", train]
    assert run_command(common) == 2
    assert "--shots-file needs --shots N" in capfd.readouterr().err
    assert run_command([*common, "--shots", "2"]) == 0
    with load_run(tmp_path / "run") as run:
        assert all(len(trial.request.messages) == 5 for trial in run.trials("t"))
        assert run.header().config["tasks"]["t"]["prompt"]["shots"]["pool"]


def test_a_missing_picture_of_an_example_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "4.png").unlink()
    with pytest.raises(UsageError, match=r"--shots-file .*: 1 image missing \(1: .*4.png\)"):
        planned(*files, tmp_path / "run")
