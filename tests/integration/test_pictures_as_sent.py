"""A run holds to the pictures it sent: a changed file is told, never shown, and what was sent is kept."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from snellen.api.run import RunResult
from snellen.core.errors import DataError, RunMismatch
from snellen.core.types import TrialKey
from snellen.data.images.decode import open_image
from snellen.report.pages.gallery import read_trial
from snellen.report.viewer.stage import stored_pictures
from snellen.store.reader import RunReader
from snellen.store.sent_pictures import FILE

ROWS = 8


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    draw("red")
    rows = (
        {"id": str(n), "image": f"{n}.png", "question": "Q?", "options": ["x", "y"], "answer": "A"} for n in range(ROWS)
    )
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return "t.jsonl"


def draw(colour: str, *numbers: int) -> None:
    for number in numbers or range(ROWS):
        picture = PIL.Image.new("RGB", (64, 48), colour)
        picture.putpixel((number, 0), (0, 0, 0))
        picture.save(f"{number}.png")


def run(task: str, server: Any, **more: Any) -> RunResult:
    return snellen.run(task, "openai/mock", base_url=server.base_url, output_dir=Path("r"), **more)


def colour_shown(number: int = 0) -> tuple[int, ...]:
    """Return the colour that pages show for a trial: the viewer's picture, and that of the report."""
    with RunReader(Path("r")) as reader:
        (viewed,) = stored_pictures(reader, TrialKey("t", str(number))) or []
        shown = read_trial(reader, TrialKey("t", str(number)))
    assert shown is not None
    (reported,) = shown.seen.messages[-1].images
    colours = [open_image(one).getpixel((9, 9)) for one in (viewed, reported)]
    assert colours[0] == colours[1]
    return colours[0]  # type: ignore[return-value]


def test_a_finished_run_whose_pictures_changed_refuses_and_fresh_asks_again(
    task: str, mock_server: Callable[..., Any]
) -> None:
    server = mock_server("--answer", "A")
    run(task, server)
    assert run(task, server).state.resumed == ROWS
    draw("blue")
    with pytest.raises(RunMismatch, match=r"0.png.*--fresh"):
        run(task, server)
    again = run(task, server, fresh=True)
    assert (again.state.done, again.state.resumed, again.state.cached) == (ROWS, 0, 0)
    assert len(list(Path("r").glob("before-*/run.db"))) == 1, "what was paid for is set aside"
    with RunReader(next(Path("r").glob("before-*"))) as old:
        assert len(list(old.trials("t"))) == ROWS


def test_one_changed_picture_of_many_is_found(
    task: str, mock_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from snellen.store import picture_ledger

    monkeypatch.setattr(picture_ledger, "SAMPLED", 2)
    server = mock_server("--answer", "A")
    run(task, server)
    draw("blue", ROWS - 1)
    with pytest.raises(RunMismatch, match=rf"{ROWS - 1}.png"):
        run(task, server)


@pytest.mark.parametrize("side", [None, 32])
def test_pages_show_what_was_sent_and_never_what_the_file_became(
    task: str, mock_server: Callable[..., Any], side: int | None
) -> None:
    policy = snellen.RunSettings(tasks=(task,), model="openai/mock").image_policy
    if side:
        from snellen.core.protocols import ImagePolicy

        policy = ImagePolicy(max_side=side)
    run(task, mock_server("--answer", "B"), image_policy=policy)
    assert colour_shown() == (255, 0, 0)
    draw("blue")
    assert colour_shown() == (255, 0, 0), "the bytes that were sent are kept with the run"
    for name in Path("r").glob("pictures.db*"):
        name.unlink()
    with pytest.raises(DataError, match=r"0.png.*not what the model saw"):
        colour_shown()
    snellen.score(Path("r"))
    report = Path("r/report.html").read_text()
    assert "not what the model saw" in report
    for url in report.split("data:image/webp;base64,")[1:]:
        shown = PIL.Image.open(io.BytesIO(base64.b64decode(url.partition('"')[0]))).convert("RGB")
        assert shown.getpixel((9, 9))[2] < 128, "a picture the model did not see"  # type: ignore[index]


def test_what_is_kept_can_be_chosen(task: str, mock_server: Callable[..., Any]) -> None:
    run(task, mock_server("--answer", "A"), keep_pictures="off")
    assert not (Path("r") / FILE).exists()


def test_a_run_of_texts_keeps_no_pictures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text(json.dumps({"id": "1", "question": "Q?", "options": ["x", "y"], "answer": "A"}))
    snellen.run("t.jsonl", "blind/first", output_dir=Path("r"), cache=False)
    assert not (Path("r") / FILE).exists()
