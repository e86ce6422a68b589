"""The tables of video benchmarks by hand: twenty tasks, three tracks and what was learnt, eight tasks of space."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import snellen
from command_line import run_command
from snellen.api.load import load_run
from snellen.core.errors import UsageError
from snellen.data.catalog import Catalog
from snellen.data.files.folder_tables import tables_by_name
from video_files import draw_number, write_video

TASKS = sorted(Catalog(()).task("mvbench").dataset["table_roots"])
FOUR = ["a cat", "a dog", "a cow", "a hen"]
NO_VIDEO = "control=no-video"


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def film(tmp_path: Path) -> Path:
    return write_video(tmp_path / "film.mp4", 4)


def put(film: Path, *places: Path) -> None:
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(film, place)


def write_table(file: Path, rows: list[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(map(json.dumps, rows)))


def play(
    folder: Path, card: str, replies: dict[tuple[str, str], str], *, variants: tuple[str, ...] = ("base",), **more: Any
) -> Any:
    """Run a card with these replies, by sample and variant."""
    told = folder.parent / "replies.jsonl"
    rows = [{"sample": sample, "variant": variant, "text": text} for (sample, variant), text in replies.items()]
    told.write_text("\n".join(map(json.dumps, rows)))
    overrides = (("dataset.path", str(folder)), *more.pop("overrides", ()))
    settings = {"output_dir": folder.parent / "run", "overrides": overrides, "variants": variants, **more}
    return snellen.run(card, f"replay/{told}", **settings)


def values(result: Any, card: str) -> dict[str, float | None]:
    return {name: one["value"] for name, one in result.results["tasks"][card]["metrics"].items()}


def write_mvbench(folder: Path, film: Path, tasks: list[str]) -> dict[tuple[str, str], str]:
    """Write tasks of one question, answered rightly, and every second of three, of which one is right."""
    replies = {}
    for place, task in enumerate(tasks):
        count = 3 if place % 2 else 1
        rows = [
            {"id": f"{number}", "video": "x.mp4", "question": f"What, {number}?", "candidates": FOUR, "answer": "a cow"}
            for number in range(count)
        ]
        write_table(folder / "json" / f"{task}.jsonl", rows)
        replies |= {(f"{task}/{number}", "base"): "(C)" if number == 0 else "(A)" for number in range(count)}
    roots = Catalog(()).task("mvbench").dataset["table_roots"]
    put(film, *(folder / "video" / roots[task] / "x.mp4" for task in tasks))
    return replies


def test_mvbench_is_the_mean_of_twenty_tasks_and_has_a_table_of_them(tmp_path: Path, film: Path) -> None:
    replies = write_mvbench(tmp_path / "MVBench", film, TASKS)
    result = play(tmp_path / "MVBench", "mvbench", replies)
    found = values(result, "mvbench")
    # Ten tasks at 1, ten at 1/3; of 10 + 30 questions 20 are right.
    assert found["mean_of_tasks"] == pytest.approx((10 * 1 + 10 / 3) / 20)
    assert found["accuracy"] == pytest.approx(20 / 40)
    groups = result.results["tasks"]["mvbench"]["groups"]["task"]
    assert {task: one["accuracy"]["value"] for task, one in groups.items()} == {
        task: pytest.approx(1 / 3 if place % 2 else 1.0) for place, task in enumerate(TASKS)
    }
    with load_run(result.folder) as run:
        shown = {t.prediction.key.sample: t.prediction.detail["videos"][0]["video"] for t in run.trials("mvbench")}
    assert shown["moving_count/0"].endswith("video/clevrer/video_validation/x.mp4")


def test_fewer_than_twenty_tasks_are_not_called_mvbench(tmp_path: Path, film: Path) -> None:
    replies = write_mvbench(tmp_path / "MVBench", film, TASKS[:3])
    result = play(tmp_path / "MVBench", "mvbench", replies)
    found = values(result, "mvbench")
    assert found["mean_of_tasks"] is None
    assert found["accuracy"] == pytest.approx(3 / 5)
    notes = " ".join(result.results["tasks"]["mvbench"]["notes"])
    assert "mean_of_tasks has no value: it is the mean of 20, and 3 of 20 groups of task were asked" in notes


def test_one_table_is_chosen_by_its_name(tmp_path: Path, film: Path) -> None:
    replies = write_mvbench(tmp_path / "MVBench", film, TASKS[:3])
    one = play(tmp_path / "MVBench", "mvbench", replies, overrides=(("dataset.config", TASKS[1]),))
    assert list(one.results["tasks"]["mvbench"]["groups"]["task"]) == [TASKS[1]]
    with pytest.raises(
        UsageError,
        match=r"has no table 'action_kount' \(did you mean 'action_count'\?\); it has: action_antonym, action",
    ):
        play(tmp_path / "MVBench", "mvbench", replies, overrides=(("dataset.config", "action_kount"),))


def write_mmmu(folder: Path, film: Path) -> dict[tuple[str, str], str]:
    """Write three tracks of four lectures; 3, 2 and 3 of four are right, 2 of the last before the lecture."""
    right = {"Perception": 3, "Comprehension": 2, "Adaptation": 3}
    replies = {}
    draw_number(9).save(folder.parent / "still.png")
    for track, count in right.items():
        rows = []
        for number in range(4):
            name = f"dev_Art_{number}"
            row = {"id": name, "question": f"What, {number}?", "options": FOUR, "answer": "D"}
            row |= {"question": f"<image 1> What, {number}?", "image 1": "still.png"} if track == "Adaptation" else {}
            rows.append(row)
            replies[f"{track}/{name}", "base"] = "D" if number < count else "A"
            replies[f"{track}/{name}", NO_VIDEO] = "D" if number < 2 else "B"
        write_table(folder / f"{track}.jsonl", rows)
    (folder / "still.png").write_bytes((folder.parent / "still.png").read_bytes())
    put(film, *(folder / "Art" / f"dev_Art_{number}.mp4" for number in range(4)))
    return replies


def test_video_mmmu_has_three_tracks_and_what_was_learnt(tmp_path: Path, film: Path) -> None:
    replies = write_mmmu(tmp_path / "VideoMMMU", film)
    result = play(tmp_path / "VideoMMMU", "video-mmmu", replies, variants=("base", NO_VIDEO))
    found = values(result, "video-mmmu")
    assert [found[name] for name in ("perception", "comprehension", "adaptation")] == [0.75, 0.5, 0.75]
    assert found["overall"] == pytest.approx(8 / 12)
    assert found["knowledge_gain"] == pytest.approx((0.75 - 0.5) / (1 - 0.5))
    gain = result.results["tasks"]["video-mmmu"]["metrics"]["knowledge_gain"]
    assert (gain["n"], gain["unit"]) == (4, "questions")
    with load_run(result.folder) as run:
        trials = {(t.prediction.key.sample, t.prediction.key.variant): t for t in run.trials("video-mmmu")}
    before, after = (trials["Adaptation/dev_Art_0", variant] for variant in (NO_VIDEO, "base"))
    assert [image.frame for image in before.request.messages[-1].images] == [None], (
        "the picture stays, the lecture goes"
    )
    assert "videos" not in before.prediction.detail
    assert len(after.request.messages[-1].images) == 1 + 4


def test_without_the_questions_alone_no_gain_is_said(tmp_path: Path, film: Path) -> None:
    replies = write_mmmu(tmp_path / "VideoMMMU", film)
    result = play(tmp_path / "VideoMMMU", "video-mmmu", replies)
    assert "knowledge_gain" not in values(result, "video-mmmu")
    notes = " ".join(result.results["tasks"]["video-mmmu"]["notes"])
    assert "knowledge_gain is not computed: nothing was asked with --variant control=no-video" in notes


def test_questions_unread_on_one_side_are_not_right_there(tmp_path: Path, film: Path) -> None:
    replies = write_mmmu(tmp_path / "VideoMMMU", film)
    replies["Adaptation/dev_Art_0", NO_VIDEO] = "I cannot tell without the lecture."
    result = play(tmp_path / "VideoMMMU", "video-mmmu", replies, variants=("base", NO_VIDEO))
    gain, read = (result.results["tasks"]["video-mmmu"]["metrics"][f"knowledge_gain{end}"] for end in ("", "_read"))
    assert gain["value"] == pytest.approx((3 / 4 - 1 / 4) / (1 - 1 / 4))
    assert (gain["n"], gain["unscored"], gain["failed"]) == (4, 0, 0)
    # Of the three others: after 2 of 3, before 1 of 3.
    assert read["value"] == pytest.approx((2 / 3 - 1 / 3) / (1 - 1 / 3))
    assert (read["n"], read["unscored"], read["failed"]) == (3, 1, 0)


def test_a_lecture_in_two_folders_is_refused(tmp_path: Path, film: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "VideoMMMU"
    write_mmmu(folder, film)
    put(film, folder / "Business" / "dev_Art_2.mp4")
    arguments = ["run", "video-mmmu", "--model", "blind/first", "-p", f"dataset.path={folder}", "-o", tmp_path / "run"]
    assert run_command(arguments) != 0
    assert "'dev_Art_2.mp4' lies in Art and Business: which one is meant?" in " ".join(capsys.readouterr().err.split())


SPACE = {
    "object_counting": (None, "4", ["4.4", "6"]),  # 0.9 and 0.1
    "object_abs_distance": (None, "2", ["2"]),
    "object_size_estimation": (None, "100", ["140", "9"]),  # 0.3 and 0
    "room_size_estimation": (None, "20", ["20", "20"]),
    "object_rel_distance": (FOUR, "B", ["B", "C"]),
    "route_planning": (FOUR, "A", ["D"]),
    "obj_appearance_order": (FOUR, "C", ["C"]),
    "object_rel_direction_easy": (FOUR, "A", ["A"]),
    "object_rel_direction_medium": (FOUR, "A", ["A", "B"]),
    "object_rel_direction_hard": (FOUR, "A", ["B", "B", "B"]),
}
BY_HAND = {
    "object_counting": 0.5,
    "object_abs_distance": 1.0,
    "object_size_estimation": 0.15,
    "room_size_estimation": 1.0,
}
BY_HAND |= {"object_rel_distance": 0.5, "route_planning": 0.0, "obj_appearance_order": 1.0, "object_rel_direction": 0.5}


def write_space(folder: Path, film: Path, kinds: list[str]) -> dict[tuple[str, str], str]:
    rows, replies = [], {}
    for kind in kinds:
        options, truth, said = SPACE[kind]
        for number, text in enumerate(said):
            name = f"{kind}-{number}"
            row = {
                "id": name,
                "dataset": "arkitscenes",
                "scene_name": "1",
                "question_type": kind,
                "question": f"{name}?",
            }
            rows.append(row | {"ground_truth": truth, "options": options})
            replies[name, "base"] = text
    write_table(folder / "test.jsonl", rows)
    put(film, folder / "arkitscenes" / "1.mp4")
    return replies


def test_vsi_bench_is_the_mean_of_eight_tasks_directions_averaged_first(tmp_path: Path, film: Path) -> None:
    replies = write_space(tmp_path / "VSI", film, list(SPACE))
    result = play(tmp_path / "VSI", "vsi-bench", replies)
    found = values(result, "vsi-bench")
    assert {name: found[name] for name in BY_HAND} == {name: pytest.approx(value) for name, value in BY_HAND.items()}
    assert found["overall"] == pytest.approx(sum(BY_HAND.values()) / 8)
    levels = (1.0, 0.5, 0.0)
    assert found["macro"] == pytest.approx((sum(BY_HAND.values()) - 0.5 + sum(levels)) / 10), "another number, as said"
    assert result.results["tasks"]["vsi-bench"]["headline"] == "overall"
    assert result.results["tasks"]["vsi-bench"]["metrics"]["overall"]["n"] == 17, "every question counts once"


@pytest.mark.parametrize("lacking", ["route_planning", "object_rel_direction_hard"])
def test_a_task_that_was_not_asked_leaves_vsi_bench_without_a_number(tmp_path: Path, film: Path, lacking: str) -> None:
    replies = write_space(tmp_path / "VSI", film, [kind for kind in SPACE if kind != lacking])
    result = play(tmp_path / "VSI", "vsi-bench", replies)
    assert values(result, "vsi-bench").get("overall") is None


def test_tables_are_named_by_their_files_or_by_the_folders_of_a_split(tmp_path: Path) -> None:
    for name in ("Perception/test-00000-of-00002.parquet", "Perception/test-00001-of-00002.parquet",
                 "Adaptation/test-00000-of-00001.parquet", "json/moving_count.json"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = tables_by_name(tmp_path)
    assert {name: len(files) for name, files in found.items()} == {"Adaptation": 1, "Perception": 2, "moving_count": 1}
    assert list(tables_by_name(tmp_path, "Perception")) == ["Perception"]
    assert list(tables_by_name(tmp_path / "Adaptation" / "test-00000-of-00001.parquet")) == ["Adaptation"]
    with pytest.raises(UsageError, match="has no table of split 'dev': leave out --split, or name another"):
        tables_by_name(tmp_path, "", "dev")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no data file"):
        tables_by_name(tmp_path / "empty")
    (tmp_path / "Perception" / "test-00000-of-00002.parquet").unlink()
    with pytest.raises(UsageError, match="1 shards are missing"):
        tables_by_name(tmp_path)
