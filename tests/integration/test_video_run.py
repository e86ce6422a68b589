"""Videos from a table to a server that really reads them, and back to whoever looks."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snellen
from command_line import COMMAND, run_command
from snellen.api.load import load_run
from snellen.core.errors import ConfigError, DataError, RunMismatch, UsageError
from snellen.core.types import Frame, Image
from snellen.data.images.decode import open_image
from snellen.data.video.decoder import VideoDecoder
from video_files import write_folder, write_video
from video_server import ReadingServer, reading_server
from waiting import stored_trials, wait_until


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[ReadingServer]:
    with reading_server() as running:
        yield running


def listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def row(name: str, video: Any, right: list[int], **more: Any) -> dict[str, Any]:
    """Return a question whose options are lists of numbers."""
    wrong = [[number + 1 for number in right], right[:-1], [number + 2 for number in right]]
    options = [listed(numbers) for numbers in (wrong[0], right, wrong[1], wrong[2])]
    return {"id": name, "video": video, "question": "Which?", "options": options, "answer": listed(right), **more}


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> Path:
    table = folder / "films.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)))
    return table


def ask(table: Path, server: ReadingServer, folder: Path, **settings: Any) -> Any:
    return snellen.run(str(table), "openai/m", base_url=server.base_url, output_dir=folder, **settings)


def accuracy(result: Any) -> float:
    return float(result.results["tasks"]["films"]["metrics"]["accuracy"]["value"])


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """A table of a file, its bytes in the row, a folder of frames, and a part of a video."""
    film = write_video(tmp_path / "a.mp4", 60)
    write_folder(tmp_path / "clip", range(12))
    inline = "data:video/mp4;base64," + base64.b64encode(write_video(tmp_path / "b.mp4", 40).read_bytes()).decode()
    rows = [
        row("file", film.name, [(2 * i + 1) * 60 // 16 for i in range(8)]),
        row("bytes", inline, [(2 * i + 1) * 40 // 16 for i in range(8)]),
        row("folder", "clip", [(2 * i + 1) * 12 // 16 for i in range(8)], fps=2),
        row("part", film.name, [30 + (2 * i + 1) * 16 // 16 for i in range(8)], start=1.0, end=1.5),
    ]
    return write_rows(tmp_path, rows)


def test_a_server_that_reads_the_frames_is_always_right(films: Path, server: ReadingServer, tmp_path: Path) -> None:
    result = ask(films, server, tmp_path / "run")
    assert accuracy(result) == 1.0
    with load_run(result.folder) as run:
        trials = {trial.prediction.key.sample: trial for trial in run.trials("films")}
    record = trials["part"].prediction.detail["videos"][0]
    assert record["indices"] == [31, 33, 35, 37, 39, 41, 43, 45]
    assert record["seconds"][0] == pytest.approx(31 / 30, abs=1e-4)
    assert (record["route"], record["policy"], record["frames"]) == ("frames", "uniform:8", 60)
    images = trials["file"].request.messages[-1].images
    assert [image.frame.index for image in images if image.frame] == [3, 11, 18, 26, 33, 41, 48, 56]
    assert [(sent.width, sent.height) for sent in trials["file"].prediction.images] == [(192, 96)] * 8


@pytest.mark.parametrize(
    ("policy", "right"),
    [
        ("uniform:4", [7, 22, 37, 52]),
        ("linspace:4", [0, 19, 39, 59]),
        ("vlmevalkit:4", [12, 24, 36, 48]),
        ("vlmevalkit-fps:2", [0, 15, 30, 45]),
        ("fps:2", [0, 15, 30, 45]),
        ("qwen:2", [0, 20, 39, 59]),
        ("llava:1", [0, 30]),
        ("keyframes", [0, 12, 24, 36, 48]),
        ("times:0;0.5;1.99", [0, 15, 59]),
        ("tokens:600,per=200", [10, 30, 50]),
    ],
)
def test_every_policy_sends_exactly_the_frames_of_its_formula(
    tmp_path: Path, server: ReadingServer, policy: str, right: list[int]
) -> None:
    write_video(tmp_path / "a.mp4", 60, options={}, gop=12)
    table = write_rows(tmp_path, [row("file", "a.mp4", right)])
    result = ask(table, server, tmp_path / "run", overrides=(("prompt.video.frames", policy),))
    assert accuracy(result) == 1.0


def test_a_video_stands_where_its_marker_does_and_the_plan_says_how_it_is_shown(
    tmp_path: Path, server: ReadingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_video(tmp_path / "a.mp4", 60)
    rows = [row("file", "a.mp4", [15, 45], start=0.0)]
    rows[0]["question"] = "Look at <video> and say: which?"
    table = write_rows(tmp_path, rows)
    flags = ["--model", "openai/m", "--base-url", server.base_url, "-o", tmp_path / "run", "--show-prompt", "1"]
    assert run_command(["run", table, *flags, "-p", "prompt.video.frames=uniform:2"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "0 images, 1 video" in said
    assert "videos: shown as frames, policy uniform:2, jpeg:92" in said
    assert "Look at [video a.mp4: uniform:2] and say: which?" in said
    kinds = [part.get("text", part["type"]) for part in server.bodies[-1]["messages"][-1]["content"]]
    assert kinds[:3] == ["Look at ", "image_url", "image_url"]
    assert kinds[3].startswith(" and say: which?")


def test_only_the_part_that_answers_or_nothing_is_shown_where_a_control_asks(
    tmp_path: Path, server: ReadingServer
) -> None:
    grid = (("dataset.lengths", [2.0]), ("dataset.levels", [0.5]), ("dataset.depths", [0.5]))
    result = snellen.run(
        "video-needle",
        "openai/m",
        base_url=server.base_url,
        output_dir=tmp_path / "run",
        overrides=(*grid, ("prompt.video.frames", "all")),
        variants=("base", "control=oracle", "control=none"),
    )
    with load_run(result.folder) as run:
        shown = {t.prediction.key.variant: t.prediction.detail.get("videos") for t in run.trials("video-needle")}
    assert len(shown["base"][0]["seconds"]) == 24
    assert all(0.75 - 1e-6 <= second <= 1.25 + 1e-6 for second in shown["control=oracle"][0]["seconds"])
    assert shown["control=none"] is None


def test_a_load_shows_videos_too(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 20)
    table = write_rows(tmp_path, [row("file", "a.mp4", [1, 2])])
    flags = ["--model", "openai/m", "--base-url", server.base_url, "--requests", "2", "--warmup", "0"]
    assert run_command(["perf", table, *flags, "-o", tmp_path / "load"]) == 0
    parts = [part["type"] for part in server.bodies[-1]["messages"][-1]["content"]]
    assert parts.count("image_url") == 8


def test_variants_make_a_curve_over_frames(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 60)
    table = write_rows(tmp_path, [row("two", "a.mp4", [15, 45]), row("four", "a.mp4", [7, 22, 37, 52])])
    result = ask(table, server, tmp_path / "run", variants=("frames=2", "frames=4", "fps=1"))
    with load_run(result.folder) as run:
        shown = {t.prediction.key.variant: t.prediction.detail["videos"][0]["indices"] for t in run.trials("films")}
    assert shown == {"frames=2": [15, 45], "frames=4": [7, 22, 37, 52], "fps=1": [0, 30]}
    report = (result.folder / "report.html").read_text("utf-8")
    assert "accuracy against frames shown" in report
    assert "accuracy against tokens a question" in report


def test_stamps_and_subtitles_stand_between_the_frames(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 60)
    (tmp_path / "a.srt").write_text(
        "1\n00:00:00,100 --> 00:00:00,900\nfirst words\n\n2\n00:00:01,600 --> 00:00:01,900\nmore words\n"
    )
    rows = [row("file", "a.mp4", [15, 45], subtitles="a.srt")]
    stamps = (("prompt.video.frames", "uniform:2"), ("prompt.video.stamp", "At {seconds} s:"))
    settings = {
        "overrides": stamps,
        "variants": ("base", "subtitles=all", "subtitles=sampled", "subtitles=interleaved"),
    }
    result = ask(write_rows(tmp_path, rows), server, tmp_path / "run", **settings)
    assert accuracy(result) == 1.0
    with load_run(result.folder) as run:
        turns = {t.prediction.key.variant: t.request.messages[-1] for t in run.trials("films")}
    arranged = {name: [str(part).strip() for part in turn.arrange(["<1>", "<2>"])] for name, turn in turns.items()}
    assert arranged["base"][:4] == ["At 0.5 s:", "<1>", "At 1.5 s:", "<2>"]
    assert "first words\nmore words" in arranged["subtitles=all"][0]
    assert arranged["subtitles=interleaved"][2].split("\n") == ["first words", "At 1.5 s:"]
    assert arranged["subtitles=interleaved"][4].startswith("more words")


def test_native_sends_the_file_itself_and_says_that_the_server_chose(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 6)
    table = write_rows(tmp_path, [row("file", "a.mp4", [0, 1, 2, 3, 4, 5])])
    result = ask(table, server, tmp_path / "run", overrides=(("prompt.video.route", "native"),))
    assert accuracy(result) == 1.0
    (part, _) = server.bodies[-1]["messages"][-1]["content"]
    assert part["video_url"]["url"].startswith("data:video/mp4;base64,")
    with load_run(result.folder) as run:
        (trial,) = run.trials("films")
    assert trial.prediction.detail["videos"][0]["policy"] == "of the server"
    assert trial.prediction.images[0].mime == "video/mp4"
    with pytest.raises(UsageError, match="takes no videos: show their frames"):
        snellen.run(
            str(table), "blind/longest", output_dir=tmp_path / "b", overrides=(("prompt.video.route", "native"),)
        )


def test_a_broken_video_costs_its_own_sample_and_is_named(tmp_path: Path, server: ReadingServer) -> None:
    whole = write_video(tmp_path / "a.mp4", 60)
    (tmp_path / "cut.mp4").write_bytes(whole.read_bytes()[:900])
    rows = [row("whole", "a.mp4", [(2 * i + 1) * 60 // 16 for i in range(8)]), row("cut", "cut.mp4", [1, 2])]
    result = ask(write_rows(tmp_path, rows), server, tmp_path / "run")
    metric = result.results["tasks"]["films"]["metrics"]["accuracy"]
    assert (metric["value"], metric["n"], metric["failed"]) == (1.0, 1, 1)
    with load_run(result.folder) as run:
        failure = next(t.prediction.failure for t in run.trials("films") if t.prediction.failure)
    assert failure.kind == "decode"
    assert "cut.mp4" in failure.message


def test_what_cannot_be_meant_is_refused_before_anything_is_asked(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 10)
    table = write_rows(tmp_path, [row("file", "a.mp4", [1, 2])])
    with pytest.raises(ConfigError, match="uniform"):
        ask(table, server, tmp_path / "r1", overrides=(("prompt.video.frames", "unifrom:8"),))
    pictures = tmp_path / "plain.jsonl"
    pictures.write_text(json.dumps({"id": "1", "question": "?", "options": ["a", "b"], "answer": "a"}))
    with pytest.raises(ConfigError, match="frames=8: sample '1' has no video"):
        ask(pictures, server, tmp_path / "r2", variants=("frames=8",))
    write_rows(tmp_path, [row("file", "gone.mp4", [1, 2])])
    with pytest.raises(DataError, match=r"1 video missing \(file: .*gone\.mp4\)"):
        ask(table, server, tmp_path / "r3")
    write_rows(tmp_path, [row("file", "a.mp4", [1, 2], subtitles="gone.srt", image="gone.png")])
    with pytest.raises(DataError, match=r"1 image and 1 subtitle file missing"):
        ask(table, server, tmp_path / "r4")
    assert server.bodies == []


def test_another_policy_is_another_run(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 60)
    table = write_rows(tmp_path, [row("file", "a.mp4", [15, 45])])
    ask(table, server, tmp_path / "run", overrides=(("prompt.video.frames", "uniform:2"),))
    with pytest.raises(RunMismatch):
        ask(table, server, tmp_path / "run", overrides=(("prompt.video.frames", "uniform:4"),))


def test_perturbations_of_pixels_and_of_time_reach_the_frames(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 60)
    table = write_rows(tmp_path, [row("file", "a.mp4", [15, 45])])
    result = ask(table, server, tmp_path / "run", variants=("frames=20&tempo=drop:5", "frames=2&perturb=jpeg:1"))
    with load_run(result.folder) as run:
        trials = {t.prediction.key.variant: t for t in run.trials("films")}
    assert 1 <= len(trials["frames=20&tempo=drop:5"].prediction.images) < 20
    images = trials["frames=2&perturb=jpeg:1"].request.messages[-1].images
    assert len({image.edits for image in images}) == 2
    assert all(isinstance(image, Image) and image.edits[0].startswith("perturb:jpeg:1:") for image in images)
    assert trials["frames=2&perturb=jpeg:1"].prediction.failure is None


def test_questions_about_one_video_are_asked_together_and_its_frames_decoded_once(
    tmp_path: Path, server: ReadingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[tuple[str, int]] = []
    picture = VideoDecoder.picture

    def counted(self: VideoDecoder, path: str, frame: Frame) -> bytes:
        decoded.append((Path(path).name, frame.index))
        return picture(self, path, frame)

    monkeypatch.setattr(VideoDecoder, "picture", counted)
    rows = []
    for film in "abc":
        write_video(tmp_path / f"{film}.mp4", 60)
        rows += [row(f"{film}{n}", f"{film}.mp4", [15, 45]) | {"question": f"Which, {film} {n}?"} for n in range(5)]
    settings = {"infer_method": "document", "max_workers": 1, "overrides": (("prompt.video.frames", "uniform:2"),)}
    result = ask(write_rows(tmp_path, rows), server, tmp_path / "run", **settings)
    assert accuracy(result) == 1.0
    assert sorted(decoded) == [(f"{film}.mp4", index) for film in "abc" for index in (15, 45)]
    asked = [body["messages"][-1]["content"][-1]["text"].split(", ")[1][0] for body in server.bodies]
    assert "".join(asked) == "aaaaabbbbbccccc", "a server's prefix cache holds one film at a time"


def test_low_light_reaches_every_frame(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 60)
    table = write_rows(tmp_path, [row("file", "a.mp4", [15, 45])])
    result = ask(table, server, tmp_path / "run", variants=("frames=2", "frames=2&perturb=brightness:4"))
    with load_run(result.folder) as run:
        shown = {t.prediction.key.variant: t.request.messages[-1].images for t in run.trials("films")}
    plain, dark = (
        [float(np.asarray(open_image(image).convert("L")).mean()) for image in images] for images in shown.values()
    )
    assert all(night < 0.8 * day for day, night in zip(plain, dark, strict=True))


def test_a_video_compressed_to_a_bitrate_is_still_read_and_its_rate_is_recorded(
    tmp_path: Path, server: ReadingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_video(tmp_path / "a.mp4", 60)
    table = write_rows(tmp_path, [row("file", "a.mp4", [15, 45])])
    result = ask(table, server, tmp_path / "run", variants=("frames=2&tempo=bitrate:1", "frames=2&tempo=bitrate:4"))
    assert accuracy(result) == 1.0
    with load_run(result.folder) as run:
        records = {t.prediction.key.variant: t.prediction.detail["videos"][0] for t in run.trials("films")}
    rates = {variant: record["bitrate"]["asked_kbps"] for variant, record in records.items()}
    assert rates == {"frames=2&tempo=bitrate:1": 1000, "frames=2&tempo=bitrate:4": 125}
    assert all(record["indices"] == [15, 45] for record in records.values())
    flags = ["--model", "openai/m", "--base-url", server.base_url, "-o", tmp_path / "again"]
    assert run_command(["run", table, *flags, "-p", "prompt.video.tempo=bitrate:3"]) == 0
    assert "disturbed by bitrate:3" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(RunMismatch):
        ask(table, server, tmp_path / "again", overrides=(("prompt.video.tempo", "bitrate:2"),))


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, server: ReadingServer) -> None:
    rows = []
    for number in range(12):
        write_video(tmp_path / f"{number}.mp4", 20 + number)
        rows.append(row(f"q{number}", f"{number}.mp4", [(2 * i + 1) * (20 + number) // 16 for i in range(8)]))
    table, folder = write_rows(tmp_path, rows), tmp_path / "run"
    flags = [
        "--model",
        "openai/m",
        "--base-url",
        server.base_url,
        "--max-workers",
        "1",
        "-o",
        str(folder),
        "--no-cache",
    ]
    command = [*COMMAND, "run", str(table), *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: stored_trials(folder) >= 3 or process.poll() is not None, "three trials stored")
    process.kill()
    process.wait()
    before = stored_trials(folder)
    result = ask(table, server, folder, max_workers=1, cache=False)
    assert accuracy(result) == 1.0
    assert len(server.bodies) <= 12 + 1
    assert before < 12
