"""Files as other tools lay them out, made by hand: each is recognised, read whole, and asked as its owner means it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import PIL.Image
import pytest

import snellen
from command_line import run_command
from snellen.api.load import load_run
from snellen.core.errors import DataError, UsageError
from snellen.core.protocols import ImagePolicy
from snellen.data.loaders.row_map import RECOGNISED, presets

Files = Callable[[Path], Path]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def picture(shade: int) -> bytes:
    stream = io.BytesIO()
    PIL.Image.new("RGB", (40, 30), (shade, 255 - shade, 7 * shade % 256)).save(stream, "PNG")
    return stream.getvalue()


def text64(shade: int) -> str:
    return base64.b64encode(picture(shade)).decode()


class Known(NamedTuple):
    """What the server knows of one question, written by hand."""

    question: str
    answer: str
    options: tuple[str, ...] = ()
    shades: tuple[int, ...] = ()

    def entry(self) -> dict[str, Any]:
        images = [hashlib.sha256(picture(shade)).hexdigest() for shade in self.shades]
        return {"question": self.question, "answer": self.answer, "options": list(self.options), "images": images}


def tsv(path: Path, rows: list[dict[str, Any]]) -> Path:
    columns = list(rows[0])
    quoted = [['"' + str(row.get(column, "")).replace('"', '""') + '"' for column in columns] for row in rows]
    path.write_text("\n".join("\t".join(cells) for cells in [columns, *quoted]) + "\n")
    return path


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    arrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writer.write_table(arrow.Table.from_pylist(rows), path)
    return path


def make_vlmevalkit(folder: Path) -> Path:
    empty = {"hint": "", "A": "", "B": "", "C": "", "category": "x"}
    rows = [
        {**empty, "index": 1000001, "image": "1", "question": "Again?", "A": "b", "B": "a", "answer": "A"},
        {
            **empty,
            "index": 1,
            "image": text64(10),
            "question": "Which?",
            "A": "a",
            "B": "b",
            "C": "None",
            "answer": "C",
        },
        {**empty, "index": 2, "image": text64(20), "question": "Is it?", "answer": "Yes", "hint": "Look well."},
        {**empty, "index": 3, "image": str([text64(30), text64(31)]), "question": "Read it", "answer": "['ab', 'a b']"},
    ]
    columns = ("index", "image", "question", "hint", "A", "B", "C", "answer", "category")
    return tsv(folder / "rows.tsv", [{name: row[name] for name in columns} for row in rows])


def make_flageval(folder: Path) -> Path:
    (folder / "img").mkdir()
    for shade in (1, 2, 3):
        (folder / "img" / f"{shade}.png").write_bytes(picture(shade))
    within = "Which is nearer? Select from the choices.\n(A) the cup\n(B) the plate"
    rows = [
        {"question_id": "a_1", "question": within, "answer": "(B)", "img_path": ["img/1.png", "img/2.png"]},
        {
            "question_id": "a_2",
            "question": "Which colour?",
            "question_type": "multiple-choice",
            "options": ["red", "blue"],
            "answer": "A",
            "img_path": "img/3.png",
        },
        {
            "question_id": 3,
            "question": "Is it red?",
            "question_type": "yes-no",
            "answer": "no",
            "img_path": "img/3.png",
        },
        {
            "question_id": 4,
            "question": "Which are round?",
            "question_type": "multiple-response",
            "options": ["a ball", "a box", "the moon"],
            "answer": "A,C",
            "img_path": "img/3.png",
        },
    ]
    path = folder / "data.json"
    path.write_text(json.dumps(rows))
    return path


def make_hub(folder: Path) -> Path:
    struct = {"path": "x.png"}
    rows = [
        {
            "pid": "v_1",
            "question": "Compare <image 1> and <image 2>.",
            "options": "['It\\'s one', \"two\"]",
            "answer": "B",
            "image_1": {**struct, "bytes": picture(40)},
            "image_2": {**struct, "bytes": picture(41)},
        },
        {
            "pid": "v_2",
            "question": "How many in <image 1>?",
            "options": "[]",
            "answer": "7",
            "image_1": {**struct, "bytes": picture(42)},
            "image_2": None,
        },
    ]
    return parquet(folder / "rows.parquet", rows)


def make_lmms_eval(folder: Path) -> Path:
    (folder / "p.png").write_bytes(picture(50))
    rows = [
        {"doc_id": 0, "doc": {"question": "What is written?", "image": "p.png"}, "target": "STOP"},
        {"doc_id": 1, "doc": {"question": "Which?", "A": "x", "B": "y", "C": "nan", "image": "p.png"}, "target": "B"},
    ]
    return lines(folder / "rows.jsonl", rows)


def make_messages(folder: Path) -> Path:
    url = {"url": f"data:image/png;base64,{text64(60)}"}
    content = [{"type": "image_url", "image_url": url}, {"type": "text", "text": "What is it?"}]
    rows = [
        {"id": "m1", "messages": [{"role": "user", "content": content}], "answer": "a cat"},
        {
            "id": "m2",
            "messages": [
                {"role": "system", "content": "You are terse."},
                {"role": "user", "content": "One and one?"},
                {"role": "assistant", "content": "Two."},
                {"role": "user", "content": "And one more?"},
            ],
            "answer": "three",
        },
    ]
    return lines(folder / "rows.jsonl", rows)


def make_longbench(folder: Path) -> Path:
    row = {"_id": "l1", "domain": "law", "question": "Who pays?", "answer": "D", "context": "It was Ann who paid."}
    choices = {"choice_A": "Bob", "choice_B": "Cid", "choice_C": "Dan", "choice_D": "Ann"}
    return lines(folder / "rows.jsonl", [row | choices])


def make_sharegpt(folder: Path) -> Path:
    (folder / "s.png").write_bytes(picture(70))
    said = [("human", "<image>\nWhat is it?"), ("gpt", "a dog"), ("human", "What colour?"), ("gpt", "brown")]
    turns = [{"from": role, "value": text} for role, text in said]
    return lines(folder / "rows.jsonl", [{"id": "s", "image": "s.png", "conversations": turns}])


PRESETS: dict[str, tuple[Files, list[Known]]] = {
    "vlmevalkit": (
        make_vlmevalkit,
        [
            Known("Again?", "b", ("b", "a"), (10,)),
            Known("Which?", "None", ("a", "b", "None"), (10,)),
            Known("Is it?", "yes", shades=(20,)),
            Known("Read it", "a b", shades=(30, 31)),
        ],
    ),
    "flageval": (
        make_flageval,
        [
            Known("Which is nearer? Select from the choices.", "the plate", ("the cup", "the plate"), (1, 2)),
            Known("Which colour?", "red", ("red", "blue"), (3,)),
            Known("Is it red?", "no", shades=(3,)),
            Known("Which are round?", "A, C", shades=(3,)),
        ],
    ),
    "hub": (
        make_hub,
        [
            Known("Compare <image 1> and <image 2>.", "two", ("It's one", "two"), (40, 41)),
            Known("How many in <image 1>?", "7", shades=(42,)),
        ],
    ),
    "lmms-eval": (
        make_lmms_eval,
        [Known("What is written?", "STOP", shades=(50,)), Known("Which?", "y", ("x", "y"), (50,))],
    ),
    "messages": (make_messages, [Known("What is it?", "a cat", shades=(60,)), Known("And one more?", "three")]),
    "longbench": (make_longbench, [Known("Who pays?", "Ann", ("Bob", "Cid", "Dan", "Ann"))]),
    "sharegpt": (
        make_sharegpt,
        [Known("What is it?", "a dog", shades=(70,)), Known("What colour?", "brown", shades=(70,))],
    ),
}


def test_every_preset_has_a_file_made_by_hand() -> None:
    assert set(PRESETS) == set(RECOGNISED) == set(presets()) - {"plain", "video-hub"}


@pytest.mark.parametrize("name", PRESETS)
def test_a_file_made_by_hand_is_right_from_end_to_end(
    name: str, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    make, known = PRESETS[name]
    folder = tmp_path / "data"
    folder.mkdir()
    task = make(folder)
    server = mock_server("--answers", lines(tmp_path / "answers.jsonl", [one.entry() for one in known]))
    result = snellen.run(
        str(task), "openai/mock", base_url=server.base_url, output_dir=tmp_path / "run", cache=False, temperature=0.0
    )
    metrics = result.results["tasks"][task.stem]["metrics"]
    headline = metrics.get("accuracy") or metrics["exact_match"]
    assert (headline["value"], headline["n"], headline["unscored"]) == (1.0, len(known), 0)
    with load_run(result.folder) as run:
        sent = sum(len(trial.prediction.images) for trial in run.trials(task.stem))
    assert sent == sum(len(one.shades) for one in known)


def test_options_in_the_question_are_read_by_the_flageval_profile_too(
    mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    make, known = PRESETS["flageval"]
    task = make(tmp_path)
    server = mock_server("--answers", lines(tmp_path / "answers.jsonl", [one.entry() for one in known]))
    result = snellen.run(
        str(task),
        "openai/mock",
        base_url=server.base_url,
        output_dir=tmp_path / "run",
        profile="flageval",
        cache=False,
        ids=("a_1", "a_2"),
    )
    accuracy = result.results["tasks"]["data"]["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (1.0, 2)


@pytest.mark.parametrize("name", PRESETS)
def test_the_plan_says_how_a_file_was_read(name: str, tmp_path: Path) -> None:
    from snellen.api.plan import make_plan
    from snellen.api.settings import RunSettings

    task = str(PRESETS[name][0](tmp_path))
    settings = RunSettings(tasks=(task,), model="openai/x", output_dir=tmp_path / "run")
    (planned,) = make_plan(settings).tasks
    assert any(note.startswith(f"read as {name} because it has column") for note in planned.survey.notes)


def test_a_preset_can_be_forced_and_a_wrong_name_is_refused(tmp_path: Path) -> None:
    task = lines(tmp_path / "t.jsonl", [{"question": "What?", "answer": "x", "A": "x", "B": "nan", "C": "y"}])
    (sample,) = snellen.load_dataset(str(task), preset="hub")
    assert sample.options == ("x", "y")
    with pytest.raises(UsageError, match="'vlmevalkit'"):
        list(snellen.load_dataset(str(task), preset="vlmevalkid"))


@pytest.mark.parametrize("column", ["img_path", "image_path", "image_1", "images", "decoded_image"])
def test_columns_of_pictures_by_other_names_are_shown(column: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture(1))
    task = lines(tmp_path / "t.jsonl", [{"id": "1", "question": "What?", "answer": "x", column: "a.png"}])
    (sample,) = snellen.load_dataset(str(task))
    assert [image.ref for image in sample.images] == [str(tmp_path / "a.png")]


@pytest.mark.parametrize(
    "extra",
    [
        {"scan": "a.png"},
        {"scan": text64(3)},
        {"scan": f"data:image/png;base64,{text64(3)}"},
        {"scan": ["a.png"]},
        {"picture": "elsewhere.png"},
    ],
)
def test_pictures_that_nothing_reads_are_refused_by_name(extra: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture(1))
    (column,) = extra
    task = lines(tmp_path / "t.jsonl", [{"id": "1", "question": "What?", "answer": "x", **extra}])
    with pytest.raises(DataError, match=rf"record 1: column '{column}' looks like pictures .*--map images={column}"):
        list(snellen.load_dataset(str(task)))
    (sample,) = snellen.load_dataset(str(task), not_pictures=[column])
    assert not sample.images
    (sample,) = snellen.load_dataset(str(task), columns={"images": column})
    assert len(sample.images) == 1


def test_two_columns_of_pictures_are_not_guessed_at(tmp_path: Path) -> None:
    row = {"id": "1", "question": "What?", "answer": "x", "image": "a.png", "img_path": "b.png"}
    task = lines(tmp_path / "t.jsonl", [row])
    with pytest.raises(DataError, match="pictures in columns image and img_path"):
        list(snellen.load_dataset(str(task)))
    (sample,) = snellen.load_dataset(str(task), columns={"images": "image,img_path"})
    assert len(sample.images) == 2


@pytest.mark.parametrize("question", ["Compare <image 1> and <image 2>.", "What is <image>?"])
def test_a_question_about_a_picture_that_is_not_there_is_refused(question: str, tmp_path: Path) -> None:
    pictures = {"image": "a.png"} if "2" in question else {}
    task = lines(tmp_path / "t.jsonl", [{"question": question, "answer": "x", **pictures}])
    with pytest.raises(DataError, match="speaks of picture"):
        list(snellen.load_dataset(str(task)))


def test_a_row_named_by_a_picture_cell_must_be_there(tmp_path: Path) -> None:
    row = {"index": 5, "image": "77", "question": "What?", "answer": "x"}
    with pytest.raises(DataError, match="image '77' is neither a picture nor the index of a row"):
        list(snellen.load_dataset(str(tsv(tmp_path / "t.tsv", [row]))))


def test_one_lettered_option_alone_is_not_lost(tmp_path: Path) -> None:
    task = lines(tmp_path / "t.jsonl", [{"question": "What?", "A": "x", "B": "", "answer": "A"}])
    with pytest.raises(DataError, match="one option alone"):
        list(snellen.load_dataset(str(task)))


def test_the_same_option_twice_is_refused_kept_or_left_out(tmp_path: Path) -> None:
    twice = {"id": "1", "question": "What?", "options": ["cat", "cat", "dog"], "answer": "cat"}
    task = lines(tmp_path / "t.jsonl", [twice, {**twice, "id": "2", "options": ["cat", "dog"]}])
    with pytest.raises(DataError, match=r"options 1 and 2 are the same .*--duplicates keep"):
        list(snellen.load_dataset(str(task)))
    assert [sample.id for sample in snellen.load_dataset(str(task), duplicates="drop")] == ["2"]
    assert [len(sample.options) for sample in snellen.load_dataset(str(task), duplicates="keep")] == [3, 2]
    result = snellen.run(str(task), "blind/first", duplicates="keep", output_dir=tmp_path / "run")
    assert result.results["tasks"]["t"]["metrics"]["accuracy"]["value"] == 1.0


def test_a_folder_of_flageval_tasks_is_run_as_it_lies(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    make, known = PRESETS["flageval"]
    for place in ("cache/blink/val", "cache/mmmu/val", "cache/cv_bench"):
        (tmp_path / place).mkdir(parents=True)
        make(tmp_path / place)
    server = mock_server("--answers", lines(tmp_path / "answers.jsonl", [one.entry() for one in known]))
    settings: dict[str, Any] = {"base_url": server.base_url, "cache": False, "temperature": 0.0}
    result = snellen.run(str(tmp_path / "cache"), "openai/mock", output_dir=tmp_path / "run", **settings)
    found = {name: task["metrics"]["accuracy"] for name, task in result.results["tasks"].items()}
    assert {name: (metric["value"], metric["n"]) for name, metric in found.items()} == {
        name: (1.0, len(known)) for name in ("blink-val", "cv_bench", "mmmu-val")
    }
    one = snellen.run(str(tmp_path / "cache" / "mmmu" / "val"), "openai/mock", output_dir=tmp_path / "one", **settings)
    assert list(one.results["tasks"]) == ["mmmu-val"]
    chosen = snellen.run(
        str(tmp_path / "cache"), "openai/mock", data_config="blink", output_dir=tmp_path / "chosen", **settings
    )
    assert list(chosen.results["tasks"]) == ["cache"], "a table that was chosen is one task"
    (tmp_path / "cache" / "blink" / "test").mkdir()
    make(tmp_path / "cache" / "blink" / "test")
    with pytest.raises(UsageError, match="several splits"):
        snellen.run(str(tmp_path / "cache" / "blink"), "openai/mock", output_dir=tmp_path / "splits", **settings)
    (tmp_path / "cache" / "more.jsonl").write_text('{"question": "?", "answer": "a"}\n')
    with pytest.raises(UsageError, match="several configs"):
        snellen.run(str(tmp_path / "cache"), "openai/mock", output_dir=tmp_path / "mixed", **settings)


def test_a_model_file_of_flageval_is_taken_as_it_is(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    make, known = PRESETS["flageval"]
    task = make(tmp_path)
    server = mock_server("--answers", lines(tmp_path / "answers.jsonl", [one.entry() for one in known]))
    settings = {
        "model_name": "mock",
        "url": f"{server.base_url}/chat/completions",
        "api_key": "sk-secret-in-a-file",
        "num_workers": 2,
        "num_infers": 2,
        "use_cache": False,
        "max_tokens": 64,
        "temperature": 0.0,
        "system_prompt": "Be brief.",
        "min_short_side": 64,
        "backend": "vllm",
    }
    (tmp_path / "model.json").write_text(json.dumps(settings))
    command = ["run", task, "--config", tmp_path / "model.json", "-o", tmp_path / "run", "--quiet"]
    assert run_command([*command, "--post-prompt", "In one word.", "--ids", "a_2"]) == 0
    with load_run(tmp_path / "run") as run:
        trials = list(run.trials("data"))
        stored = json.dumps(run.header().config)
    assert len(trials) == 2
    for trial in trials:
        system, asked = trial.request.messages
        assert (system.text, asked.text.splitlines()[-1]) == ("Be brief.", "In one word.")
        (sent,) = trial.prediction.images
        assert (sent.width, sent.height, sent.original) == (64, 64, (40, 30)), "a white margin, and it is recorded"
    assert b"sk-secret" not in (tmp_path / "run" / "run.db").read_bytes()
    assert "sk-secret" not in stored
    (tmp_path / "model.json").write_text(json.dumps(settings | {"num_inferences": 3}))
    assert run_command(command) == 2


def test_a_margin_changes_no_run_without_one() -> None:
    assert b"min_side" not in msgspec.json.encode(ImagePolicy(max_side=9))
    assert b'"min_side":9' in msgspec.json.encode(ImagePolicy(min_side=9))
