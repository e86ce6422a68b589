"""Rows whose pictures have places, from the file to the server and back to whoever looks: nothing moves on the way."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from asgi import call
from command_line import run_command
from snellen.api.load import load_run
from snellen.api.view import make_viewer
from snellen.core.errors import DataError, RunMismatch, UsageError
from snellen.data.catalog import Catalog
from snellen.data.dataset import MarkerCount
from snellen.data.loaders.row_options import read_row_options
from snellen.kits.mock.ask import write_answers
from snellen.report.viewer.guard import cookie_name
from snellen.store.database import open_for_writing, seal

BASE_RUNS = json.loads((Path(__file__).parents[1] / "golden" / "data" / "run_0_2_pictures.json").read_text())
"""Two runs as version 0.2.0 stored them, table by table, `@FOLDER@` where their files lay and without their seals."""
ROWS = [
    {
        "id": "mmmu",
        "question": "Is <image 1> or <image 2> the older map?",
        "images": ["a.png", "b.png"],
        "options": ["the first", "the second"],
        "answer": "B",
    },
    {"id": "options", "question": "Which fits?", "image": "a.png", "options": ["b.png", "c.png"], "answer": "c.png"},
    {"id": "bare", "question": "Which fits <image>?", "images": ["c.png", "a.png", "b.png"],
     "options": ["<image>", "<image>"], "answer": "A"},
    {"id": "plain", "question": "Which colour?", "image": "c.png", "options": ["red", "blue"], "answer": "blue"},
]  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def draw(shade: int) -> bytes:
    out = io.BytesIO()
    PIL.Image.new("RGB", (40, 30), (shade, 255 - shade, 7 * shade % 256)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for number, name in enumerate("abc"):
        (tmp_path / f"{name}.png").write_bytes(draw(60 * number + 20))
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


@pytest.fixture
def server(table: Path, tmp_path: Path, mock_server: Callable[..., Any]) -> Any:
    write_answers(snellen.load_dataset(str(table)), tmp_path / "answers.jsonl")
    return mock_server("--model-name", "m", "--answers", tmp_path / "answers.jsonl", "--log", tmp_path / "log.jsonl")


def ask(table: Path, server: Any, folder: Path, **settings: Any) -> Any:
    return snellen.run(str(table), "openai/m", base_url=server.base_url, output_dir=folder, **settings)


def test_a_server_that_knows_the_pictures_by_their_places_is_always_right(
    table: Path, server: Any, tmp_path: Path
) -> None:
    result = ask(table, server, tmp_path / "run", variants=("base", "order=1", "order=2", "order=3"))
    accuracy = result.results["tasks"]["rows"]["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["unscored"]) == (1.0, 0)
    with load_run(result.folder) as run:
        trials = list(run.trials("rows"))
    assert len(trials) == 16
    texts = [turn.text for trial in trials for turn in trial.request.messages]
    assert not any("<image" in text for text in texts)
    assert {len(trial.prediction.images) for trial in trials if trial.prediction.key.sample == "options"} == {3}


def test_likelihood_of_letters_keeps_the_order_and_that_of_pictures_is_refused(
    table: Path, server: Any, tmp_path: Path
) -> None:
    letters = {"infer_method": "likelihood", "candidates": "letters"}
    result = ask(table, server, tmp_path / "run", **letters)
    assert result.results["tasks"]["rows"]["metrics"]["accuracy"]["value"] == 1.0
    with pytest.raises(
        UsageError, match="pictures as options in 2 rows, which have no text to score: add --candidates"
    ):
        ask(table, server, tmp_path / "other", infer_method="likelihood")


def test_the_plan_says_what_stands_where(
    table: Path, server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*ROWS, {**ROWS[0], "id": "more", "images": ["a.png", "b.png", "c.png"]}]
    table.write_text("\n".join(map(json.dumps, rows)))
    command = ["run", table, "--model", "openai/m", "--base-url", server.base_url, "-o", tmp_path / "r"]
    assert run_command([*command, "--show-prompt", "1"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "4 rows with markers (<image 1>) in their text, 2 of them among the options: each picture stands" in said
    assert "1 pictures without a marker in rows that name others (first: more): shown first" in said
    assert "1 row with pictures as options: shown as pictures" in said
    folder = f"{tmp_path}/"
    assert f"Is <{folder}a.png> or <{folder}b.png> the older map? A. the first" in said


def test_all_is_asked_as_before_where_that_is_wished(table: Path, server: Any, tmp_path: Path) -> None:
    result = ask(table, server, tmp_path / "run", overrides=(("prompt.place_pictures", False),), ids=("mmmu",))
    with load_run(result.folder) as run:
        (trial,) = run.trials("rows")
    (turn,) = trial.request.messages
    assert (turn.parts, len(turn.images)) == ((), 2)
    assert turn.text.startswith("Is <image 1> or <image 2> the older map?")


def test_whoever_looks_sees_the_parts_in_order(
    table: Path, server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    table.write_text("\n".join(json.dumps({**row, "answer": "A"}) for row in ROWS[:1]))
    ask(table, server, folder)
    assert run_command(["show", folder, "--sample", "mmmu"]) == 0
    assert "Is <image 1> or <image 2> the older map?" in capsys.readouterr().out
    app, cookie = make_viewer([folder], "key"), {"cookie": f"{cookie_name('key')}=key"}
    (key, *_) = call(app, "/state", headers=cookie).text.split(":")
    page = call(app, f"/run/{key}/trial?task=rows&sample=mmmu", headers=cookie).text.partition("Messages as sent")[2]
    order = [
        page.index(text) for text in ("<pre>Is </pre>", 'alt="Picture 1" loading', "<pre> or </pre>", "the older map?")
    ]
    assert order == sorted(order)
    report = (folder / "report.html").read_text()
    order = [report.index(text) for text in ("<p>Is </p>", 'alt="Picture 1"', "<p> or </p>", 'alt="Picture 2"')]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"images": ["a.png"]}, "speaks of picture 2 and the row has 1"),
        ({"question": "<image 1> or <image>?"}, "stand in one row: which is meant"),
        ({"question": "<image 0>?"}, "pictures are counted from 1"),
        ({"options": ["b.png", "lost.png"]}, "its options look like pictures and 'lost.png' is not there"),
    ],
)
def test_what_cannot_be_placed_is_refused_by_name(row: dict[str, Any], message: str, table: Path) -> None:
    table.write_text(json.dumps({**ROWS[0], **row}))
    with pytest.raises(DataError, match=f"rows.jsonl record 1.*{message}"):
        list(snellen.load_dataset(str(table)))


def test_options_that_only_look_like_pictures_stay_texts_where_told(table: Path) -> None:
    table.write_text(json.dumps({**ROWS[1], "image": None, "answer": "A"}))
    (sample,) = snellen.load_dataset(str(table), not_pictures=["options"])
    assert (sample.options, sample.images) == (("b.png", "c.png"), ())
    assert read_row_options(["b.png", "c.png"], 1, None, "x").images == ()


def test_markers_without_a_partner_are_counted() -> None:
    count = MarkerCount()
    image = snellen.Image("/data/a.png")
    count.add(snellen.Sample("1", "t", snellen.Form.OPEN, "<image 1> or <image 3>?", (image, image)))
    assert (count.rows, count.unnamed, count.unnamed_in, count.missing, count.missing_in) == (1, 1, "1", 1, "1")


def restore(name: str, folder: Path) -> Path:
    """Lay out a run of version 0.2 with its data; return its folder."""
    made = BASE_RUNS[name]
    (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, made["rows"])) + "\n")
    for colour in ("red", "green"):
        source = Path(__file__).parents[2] / "examples" / "colours" / f"{colour}.png"
        (folder / f"{colour}.png").write_bytes(source.read_bytes())
    run = folder / f"run-{name}"
    run.mkdir()
    database = open_for_writing(run / "run.db")
    tables = json.loads(json.dumps(made["tables"]).replace("@FOLDER@", str(folder)))
    for key, value in tables["meta"]:
        database.execute("INSERT INTO meta VALUES (?, ?)", (key, seal(value.encode()).decode()))
    for *columns, body in tables["samples"]:
        cells = (*columns, seal(body.encode(), "\0".join(map(str, columns))))
        database.execute("INSERT INTO samples VALUES (?, ?, ?, ?)", cells)
    for *key, failed, digest, request, body in tables["predictions"]:
        cells = (*key, failed, digest, seal(request.encode()), seal(body.encode(), f"{failed}\0{digest}"))
        database.execute("INSERT INTO predictions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", cells)
    database.close()
    return run


def forget(run: Path, sample: str) -> None:
    database = open_for_writing(run / "run.db")
    database.execute("DELETE FROM predictions WHERE sample = ?", (sample,))
    database.close()


def test_a_stored_run_of_the_version_before_opens_scores_and_goes_on(
    mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    run = restore("plain", tmp_path)
    scored = snellen.score(run)["tasks"]["plain"]["metrics"]["accuracy"]
    assert (scored["value"], scored["n"]) == (0.75, 4)
    assert run_command(["show", run, "--sample", "c"]) == 0
    forget(run, "b")
    server = mock_server("--model-name", "m")
    result = ask(tmp_path / "plain.jsonl", server, run, same_model=True, cache=False)
    assert (result.state.done, result.state.resumed) == (1, 3)
    with load_run(run) as opened:
        before, after = [trial.request for trial in opened.trials("plain") if trial.request.key.sample in ("a", "b")]
    assert before.messages[0].text == after.messages[0].text


def test_a_stored_run_with_markers_goes_on_too(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    run = restore("marked", tmp_path)
    assert snellen.score(run)["tasks"]["marked"]["metrics"]["accuracy"]["n"] == 2
    forget(run, "m1")
    server, table = mock_server("--model-name", "m"), tmp_path / "marked.jsonl"
    with pytest.raises(RunMismatch, match="template"):
        ask(table, server, run, same_model=True, cache=False)
    wordings = Catalog().card("prompts", "choice")["instructions"]
    as_before = (("prompt.template", "{question}\n{options}"), ("prompt.instructions", wordings))
    result = ask(table, server, run, same_model=True, cache=False, overrides=as_before)
    assert (result.state.done, result.state.resumed) == (1, 1)
