"""Each card of a video benchmark on rows of its source's shape: what is asked, about which video, and what is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import snellen
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.types import Form, Sample
from snellen.data.catalog import Catalog
from video_files import write_video

FOUR = ["a cat", "a dog", "a cow", "a hen"]
LETTERED = [f"{letter}. {text}" for letter, text in zip("ABCD", FOUR, strict=True)]
IN_TEXT = "What is it?\n" + "\n".join(f"({letter}) {text}" for letter, text in zip("ABCD", FOUR, strict=True))
ROWS: dict[str, tuple[dict[str, Any], str, str]] = {
    "video-mme": (
        {"video_id": "001", "duration": "short", "domain": "Knowledge", "sub_category": "Biology", "videoID": "xyz",
         "url": "https://example.org/xyz", "question_id": "001-1", "task_type": "Counting Problem",
         "question": "What is it?", "options": LETTERED, "answer": "B"},
        "data/xyz.mp4", "a dog",
    ),
    "mvbench": (
        {"video": "x.mp4", "question": "What is it?", "candidates": FOUR, "answer": "a cow", "start": 1.0, "end": 2.5, "fps": 3},
        "video/x.mp4", "a cow",
    ),
    "mlvu": (
        {"video": "x.mp4", "duration": 300.0, "question": "What is it?", "candidates": FOUR, "answer": "a hen",
         "question_type": "plotQA"},
        "video/x.mp4", "a hen",
    ),
    "longvideobench": (
        {"id": "x_0", "video_id": "x", "video_path": "x.mp4", "question": "What is it?", "candidates": FOUR,
         "correct_choice": 2, "duration": 12.1, "duration_group": 15, "question_category": "S2E", "subtitle_path": "x_en.json"},
        "videos/x.mp4", "a cow",
    ),
    "lvbench": (
        {"uid": "7", "video_path": "x.mp4", "question": IN_TEXT, "answer": "A", "type": "entity recognition",
         "time_reference": "00:15-00:19"},
        "all_videos/x.mp4", "a cat",
    ),
    "video-mmmu": (
        {"id": "dev_Art_1", "question": "What is it?", "options": LETTERED, "answer": "D", "question_type": "multiple-choice"},
        "videos/dev_Art_1.mp4", "a hen",
    ),
    "egoschema": (
        {"question_idx": "12", "question": "What is it?", "video_idx": "aaa", "option": LETTERED, "answer": "1"},
        "videos/aaa.mp4", "a dog",
    ),
    "tempcompass": (
        {"video_id": "1001", "question": IN_TEXT.replace("(", "").replace(")", "."), "answer": "C. a cow", "dim": "action"},
        "videos/1001.mp4", "a cow",
    ),
    "mmvu": (
        {"id": "validation_0", "video": "videos/Art/0.mp4", "question_type": "multiple-choice", "question": "What is it?",
         "choices": dict(zip("ABCD", FOUR, strict=True)), "answer": "B"},
        "videos/Art/0.mp4", "a dog",
    ),
    "perceptiontest": (
        {"video_name": "video_8", "question": "What is it?", "question_id": "3", "options": FOUR[:3], "answer_id": 2, "area": "physics"},
        "videos/video_8.mp4", "a cow",
    ),
    "motionbench": (
        {"qid": "5", "video_path": "x.mp4", "question": IN_TEXT, "answer": "D", "question_type": "Motion Recognition"},
        "videos/x.mp4", "a hen",
    ),
    "vsi-bench": (
        {"id": 0, "dataset": "arkitscenes", "scene_name": "41069025", "question_type": "object_counting",
         "question": "How many tables are there?", "ground_truth": "4", "options": None},
        "arkitscenes/41069025.mp4", "4",
    ),
    "charades-sta": (
        {"video": "AO8RW.mp4", "caption": "a person puts a book down.", "timestamp": [0.0, 6.9]},
        "videos/AO8RW.mp4", "[0.0, 6.9]",
    ),
}  # fmt: skip


def first_sample(card: str, folder: Path) -> Sample:
    row, video, _ = ROWS[card]
    (folder / "table.jsonl").write_text(json.dumps(row))
    film = folder / video
    film.parent.mkdir(parents=True, exist_ok=True)
    film.write_bytes(b"\0" * 8)
    overrides: tuple[tuple[str, Any], ...] = (("dataset.path", str(folder / "table.jsonl")),)
    task = Catalog(()).task(card, {})
    if task.dataset.get("image_root"):
        overrides += (("dataset.image_root", str(folder / task.dataset["image_root"])),)
    plan = make_plan(RunSettings(tasks=(card,), model="blind/longest", overrides=overrides, output_dir=folder / "run"))
    (sample,) = plan.tasks[0].dataset
    return sample


@pytest.mark.parametrize("card", list(ROWS))
def test_a_card_reads_rows_of_its_source(card: str, tmp_path: Path) -> None:
    _, video, answer = ROWS[card]
    sample = first_sample(card, tmp_path)
    assert [one.ref for one in sample.videos] == [str(tmp_path / video)]
    assert sample.group is not None, "questions about one video are one cluster"
    if sample.form is Form.CHOICE:
        assert sample.options == tuple(FOUR[: len(sample.options)]), "without the letters of the source"
    if card == "charades-sta":
        assert "6.9" in " ".join(sample.answers)
    else:
        assert sample.answers == (answer,)


def test_a_part_of_a_video_is_the_part_the_row_names(tmp_path: Path) -> None:
    (video,) = first_sample("mvbench", tmp_path).videos
    assert (video.start, video.end) == (1.0, 2.5)


def test_every_card_of_the_suite_has_a_fixture() -> None:
    assert set(Catalog(()).expand("video-quoted")) == set(ROWS)
    assert snellen.__version__


@pytest.mark.parametrize("path", ["got/table.jsonl", "got", "data/LVBench"])
def test_videos_beside_the_table_are_found_as_the_cards_say(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes of cards say that table and videos lie in one folder; videos were looked for where the command was typed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SNELLEN_DATA", raising=False)
    row, video, _ = ROWS["lvbench"]
    table = Path(path) if path.endswith(".jsonl") else Path(path) / "table.jsonl"
    (table.parent / video).parent.mkdir(parents=True)
    table.write_text(json.dumps(row) + "\n")
    (table.parent / video).write_bytes(b"a video")
    told = () if path == "data/LVBench" else (("dataset.path", path),)
    plan = make_plan(RunSettings(tasks=("lvbench",), model="blind/first", overrides=told, output_dir=Path("run")))
    (sample,) = plan.tasks[0].dataset
    assert [Path(one.ref) for one in sample.videos] == [table.parent / video]


@pytest.mark.parametrize(
    ("card", "reply", "right", "found"),
    [
        ("video-mme", "Best option: C", "C", 1.0),  # the benchmark's own code, and VLMEvalKit's, read B
        ("video-mme", "Best option: C", "B", 0.0),
        ("video-mme", "I have not seen it.", "A", None),  # left out of the denominator there
        ("mvbench", "", "a cow", None),  # right in VLMEvalKit
        ("mvbench", "(", "a cow", None),  # right in VLMEvalKit
        ("mvbench", "(C) a cow", "a cow", 1.0),
        ("longvideobench", "I have not seen it.", 2, None),  # a random letter there
        ("vsi-bench", "about 4 tables", "4", 1.0),  # the first word alone there, which is no number
    ],
)
def test_the_faults_of_other_tools_are_not_ours(
    card: str, reply: str, right: Any, found: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    row, video, _ = ROWS[card]
    row = {name: value for name, value in row.items() if name not in ("start", "end", "fps")}
    answer = next(name for name in ("answer", "correct_choice", "ground_truth") if name in row)
    (tmp_path / "table.jsonl").write_text(json.dumps(row | {answer: right}))
    (tmp_path / video).parent.mkdir(parents=True, exist_ok=True)
    write_video(tmp_path / video, 4)
    overrides: tuple[tuple[str, Any], ...] = (("dataset.path", str(tmp_path / "table.jsonl")),)
    settings = RunSettings(tasks=(card,), model="blind/longest", overrides=overrides, output_dir=tmp_path / "plan")
    (sample,) = make_plan(settings).tasks[0].dataset
    (tmp_path / "replies.jsonl").write_text(json.dumps({"sample": sample.id, "text": reply}))
    ours = "snellen" if card in ("video-mme", "vsi-bench") else None  # where `official` is the authors' own reader
    model = f"replay/{tmp_path / 'replies.jsonl'}"
    result = snellen.run(card, model, overrides=overrides, output_dir=tmp_path / "run", protocol=ours)
    metric = result.results["tasks"][card]["metrics"]["accuracy"]
    assert (metric["value"], metric["n"]) == (found or 0.0, 1), "nothing leaves the denominator"
    assert metric["read"]["n"] == (0 if found is None else 1)
