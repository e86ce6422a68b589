"""Trainings in the viewer: listed beside runs, one page each, followed while they train, whatever their files hold."""

from __future__ import annotations

import json
import os
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgi import call
from made_runs import make_run
from made_trainings import make_training, step_line, training_record
from payloads import PAYLOADS
from snellen.api.view import make_viewer
from snellen.core.errors import DataError
from snellen.store.owner import RunLock

pytest.importorskip("starlette", reason="the extra `view` is not installed")

from snellen.kits.train import training_folder
from snellen.kits.train.training_folder import (
    METRICS,
    RECORD,
    MetricsFile,
    OpenTraining,
    RecordedTraining,
    plain_number,
    read_training_record,
)
from snellen.kits.train.training_page import (
    CHARTS,
    COUNTS,
    SAMPLE,
    thinned,
    training_figures,
    training_page,
    trainings_of,
)
from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.home import Sought, runs_page
from snellen.report.viewer.liveness import QUIET_S
from snellen.report.viewer.run_library import RunLibrary


def rest(folder: Path) -> None:
    """Make a training look as if nobody had written it for a while."""
    for name in (METRICS, RECORD):
        os.utime(folder / name, (time.time() - 10 * QUIET_S,) * 2)


OURS = {
    *("dialog", "kbd"),
    "html",
    "head",
    "meta",
    "title",
    "link",
    "script",
    "body",
    "a",
    "header",
    "nav",
    "svg",
    "rect",
    "circle",
    "line",
    "path",
    "polyline",
    "text",
    "g",
    "main",
    "p",
    "h1",
    "h2",
    "h3",
    "ul",
    "li",
    "div",
    "span",
    "progress",
    "figure",
    "figcaption",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "pre",
    "dl",
    "dt",
    "dd",
    "section",
    "form",
    "label",
    "input",
    "select",
    "option",
    "button",
    "b",
    "code",
    "polygon",
}


class Elements(HTMLParser):
    """The elements of a page, their attributes, and where they lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.ways: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ways |= {value or "" for name, value in attrs if name in ("href", "src", "action")}


def opened(folder: Path) -> OpenTraining:
    return OpenTraining("k", folder.name, folder)


def shown(folder: Path) -> str:
    return str(training_page(opened(folder)))


def test_trainings_stand_beside_runs_and_are_found_by_their_names(tmp_path: Path) -> None:
    make_run(tmp_path / "run", count=3)
    make_training(tmp_path / "tuned")
    make_training(tmp_path / "deep" / "better", trainer="dpo", finished=True, final={"steps": 40.0})
    library = RunLibrary([tmp_path])
    page = str(runs_page(library))
    assert "2 trainings" in page and "1 run" in page
    assert page.count('href="/training/') == 2
    assert 'data-live="/state"' in page, "one is not over"
    found = str(runs_page(library, Sought(text="dpo llava")))
    assert "deep/better" in found and ">tuned<" not in found
    assert "No run has this" not in found


def test_a_folder_of_one_training_is_enough(tmp_path: Path) -> None:
    page = str(runs_page(RunLibrary([make_training(tmp_path / "tuned")])))
    assert "1 training" in page and "No runs here yet" not in page


def test_the_page_tells_state_curves_lines_sample_data_and_versions(tmp_path: Path) -> None:
    folder = make_training(tmp_path / "tuned", events=["out of memory: batch 4 × 2 portions from here on"])
    page = shown(folder)
    for words in (
        "running: 25 of 40 steps",
        'data-live="/training/k/state"',
        "stage sft",
        "trainer sft",
        "base small-llava",
        "<h3>Loss</h3>",
        "<h3>Learning rate</h3>",
        "<h3>Tokens foretold</h3>",
        "batch 4 × 2 portions",
        "The last 10 lines of 25",
        "⟦ there is a red truck",
        "320 rows an epoch, 300 with a rationale, 310 pictures",
        "torch 2.13.0",
        "checkpoint-20",
        "3a964106e74449cc",
    ):
        assert words in page, words
    assert page.count("<polyline") == 4, "loss, token accuracy, learning rate, gradient"


@pytest.mark.parametrize(("trainer", "title"), [("dpo", "Rewards of both replies"), ("grpo", "Reward")])
def test_each_trainer_has_its_curves(tmp_path: Path, trainer: str, title: str) -> None:
    page = shown(make_training(tmp_path / trainer, trainer=trainer))
    assert f"<h3>{title}</h3>" in page and "<h3>Loss</h3>" in page
    assert "<h3>Tokens foretold</h3>" not in page


def test_what_became_of_a_training_is_told_by_its_files(tmp_path: Path) -> None:
    folder = make_training(tmp_path / "killed")
    training = opened(folder)
    assert training.look().state == "running", "written a moment ago"
    rest(folder)
    before = training.version()
    assert training.look().state == "stopped"
    assert "killed or failed after 25 of 40 steps; last written" in str(training_page(training))
    lock = RunLock(folder)
    assert training.look().state == "running", "slow steps are written seldom"
    assert training.version() != before, "a page that follows it notices"
    lock.release()
    asked = make_training(tmp_path / "asked", events=["continued from checkpoint-20", "interrupted after step 25"])
    assert "■ interrupted" in shown(asked) and "the same command goes on" in shown(asked)
    done = make_training(tmp_path / "done", steps=40, finished=True, final={"steps": 40.0}, planned=None)
    assert "✓ finished" in shown(done) and "40 of 40 steps" in shown(done)
    assert "data-live" not in shown(done), "nothing more is to come"


def test_a_loss_that_is_no_number_is_told_and_not_drawn(tmp_path: Path) -> None:
    folder = make_training(tmp_path / "nan")
    with (folder / METRICS).open("a") as stream:
        stream.write(json.dumps({**step_line(26), "loss": "nan", "grad_norm": "inf"}) + "\n")
    page = shown(folder)
    assert "■ ended" in page and "step 26: grad_norm is inf" in page and "step 26: loss is nan" in page
    assert "at step 25.</figcaption>" in page, "the curve ends before it"


def test_a_page_follows_its_training_by_the_mechanism_of_runs(tmp_path: Path) -> None:
    folder = make_training(tmp_path / "tuned")
    app = make_viewer([tmp_path], "secret")
    asked = {"cookie": f"{cookie_name('secret')}=secret"}
    home = call(app, "/", headers=asked)
    assert home.status == 200
    key = home.text.partition('href="/training/')[2].partition('"')[0]
    states = [call(app, path, headers=asked).text for path in ("/state", f"/training/{key}/state")]
    with (folder / METRICS).open("a") as stream:
        stream.write(json.dumps(step_line(26)) + "\n")
    after = [call(app, path, headers=asked).text for path in ("/state", f"/training/{key}/state")]
    assert all(old != new for old, new in zip(states, after, strict=True))
    assert "26 of 40 steps" in call(app, f"/training/{key}", headers=asked).text
    kept = call(app, f"/training/{key}/metrics", headers=asked)
    assert kept.body == (folder / METRICS).read_bytes() and "attachment" in kept.headers["content-disposition"]
    assert call(app, "/training/000000000000", headers=asked).status == 404
    assert call(app, "/training/000000000000/state", headers=asked).status == 404


def test_preferences_lead_to_their_runs(tmp_path: Path) -> None:
    folder = make_training(tmp_path / "better", trainer="dpo")
    make_run(folder / "feedback" / "sampling-0", count=3)
    counts = {"questions": 9, "pairs": 4, "dropped": {"tied": 3, "all replies are the same": 2}, "replies_failed": 1}
    (folder / COUNTS).write_text(json.dumps(counts))
    app = make_viewer([tmp_path], "secret")
    asked = {"cookie": f"{cookie_name('secret')}=secret"}
    home = call(app, "/", headers=asked).text
    key = home.partition('href="/training/')[2].partition('"')[0]
    page = call(app, f"/training/{key}", headers=asked).text
    assert "3 tied, 2 all replies are the same" in page and "replies failed" in page
    way = page.partition("Every sampled reply: ")[2].partition('href="')[2].partition('"')[0]
    assert way.startswith("/run/") and call(app, way, headers=asked).status == 200


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "No step with a loss is written yet"),
        (b'{"step": 1, "loss": 2.5}\n{"step": 2, "lo', "is half-written and not shown yet"),
        (b'{"step": 1, "loss": 2.5}\nnonsense\n[]\n', "2 of 3 lines not read; first, line 2 is no JSON"),
        (b'{"epoch": 1, "accuracy": 0.5}\n', "1 of 1 lines not read; first, line 1 names no step"),
        (b"\x89PNG\r\n\x1a\n\x00\xff\n", "lines not read; first, line 1 is no JSON"),
        (b"[" * 100_000 + b"\n", "line 1 is no JSON"),
        (b'{"step": 1' + b"0" * 400 + b', "loss": 1}\n', "line 1 names no step"),
        (b'{"step": 2, "loss": 1}\n{"step": 1, "loss": 2}\n', "step 1 of metrics.jsonl stands after a step"),
        (b'{"step": 1, "loss": NaN}\n', "step 1: loss is nan"),
        (b'{"step": 1, "loss": {"deep": []}}\n', "step 1: loss is"),
    ],
)
def test_broken_half_and_foreign_metrics_are_one_line_each(tmp_path: Path, body: bytes, said: str) -> None:
    folder = make_training(tmp_path / "odd")
    (folder / METRICS).write_bytes(body)
    assert said in shown(folder)
    assert runs_page(RunLibrary([folder]))


def test_metrics_too_large_or_no_file_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_training(tmp_path / "large")
    monkeypatch.setattr(training_folder, "MOST_METRIC_BYTES", 100)
    assert "more than is shown here (100)" in shown(folder)
    (folder / METRICS).unlink()
    assert "No step with a loss is written yet" in shown(folder)
    (folder / METRICS).mkdir()
    assert "metrics.jsonl cannot be read: Is a directory" in shown(folder)


@pytest.mark.parametrize("body", ["", "[]", '{"recipe": 3}', "[" * 100_000, '{"version": 1, "rows": []}'])
def test_a_record_that_is_none_is_one_line_beside_the_others(tmp_path: Path, body: str) -> None:
    make_training(tmp_path / "whole")
    folder = make_training(tmp_path / "odd")
    (folder / RECORD).write_text(body)
    with pytest.raises(DataError, match="is no record of a training"):
        read_training_record(folder)
    library = RunLibrary([tmp_path])
    page = str(runs_page(library))
    assert "1 training<" in page and "training odd" in page and "is no record of a training" in page
    app = make_viewer([tmp_path], "secret")
    key = next(one.key for one in trainings_of(library).values() if one.folder == folder)
    answer = call(app, f"/training/{key}", headers={"cookie": f"{cookie_name('secret')}=secret"})
    assert answer.status == 400 and "is no record of a training" in answer.text


def test_a_lone_training_json_is_anything(tmp_path: Path) -> None:
    (tmp_path / "split").mkdir()
    (tmp_path / "split" / RECORD).write_text("[1, 2]")
    assert "record of a training" not in str(runs_page(RunLibrary([tmp_path])))


def test_nothing_in_a_folder_becomes_markup(tmp_path: Path) -> None:
    hostile = "".join(PAYLOADS)
    record = training_record(events=[hostile], versions={hostile: hostile}, snellen=hostile, base={hostile: hostile})
    record["recipe"] |= {"model": f"hf/{hostile}", "stage": hostile}
    record["recipe"]["training"] |= {"trainer": hostile, "weights": hostile}
    record["data"]["sources"][0]["path"] = hostile
    folder = make_training(tmp_path / "<script>alert(1)</script>".replace("/", "_"), **record)
    line = {**step_line(26), "loss": hostile, hostile: hostile, "note": [hostile]}
    (folder / METRICS).write_text(json.dumps(line) + "\n" + hostile.replace("\n", " ") + "\n")
    (folder / SAMPLE).write_text(hostile, errors="replace")
    (folder / "feedback").mkdir()
    (folder / COUNTS).write_text(json.dumps({hostile: {hostile: hostile}}))
    for page in (shown(folder), str(runs_page(RunLibrary([tmp_path])))):
        found = Elements(page)
        assert found.names <= OURS, found.names - OURS
        assert not any(name.startswith("on") for name in found.attributes)
        assert all(way.startswith(("/", "#")) for way in found.ways)


def test_lines_are_read_once_and_a_file_that_was_cut_is_read_anew(tmp_path: Path) -> None:
    folder = make_training(tmp_path / "tuned", steps=5)
    read = MetricsFile(folder)
    first = read.read().lines
    assert len(first) == 5
    with (folder / METRICS).open("a") as stream:
        stream.write(json.dumps(step_line(6)) + "\n" + json.dumps(step_line(7))[:20])
    again = read.read()
    assert [line["step"] for line in again.lines] == [1, 2, 3, 4, 5, 6] and again.lines[0] is first[0]
    with (folder / METRICS).open("a") as stream:
        stream.write(json.dumps(step_line(7))[20:] + "\n")
    assert [line["step"] for line in read.read().lines][-1] == 7 and read.read().problems == ()
    kept = (folder / METRICS).read_text().splitlines(keepends=True)[:4]
    part = folder / ".part"
    part.write_text("".join(kept))
    part.replace(folder / METRICS)
    assert [line["step"] for line in read.read().lines] == [1, 2, 3, 4], "steps that are trained again were taken away"
    inode = (folder / METRICS).stat().st_ino
    (folder / METRICS).write_text("".join(json.dumps(step_line(step, trainer="dpo")) + "\n" for step in range(1, 30)))
    assert (folder / METRICS).stat().st_ino == inode
    assert len(read.read().lines) == 29, "another text in the same file"


@given(st.lists(st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5)), max_size=60))
def test_any_values_can_be_drawn(values: list[object]) -> None:
    columns = [name for chart in CHARTS for name in chart.columns]
    lines = [{"step": number, **dict.fromkeys(columns, value)} for number, value in enumerate(values)]
    figures = training_figures(lines)
    numbers = [plain_number(value) for value in values if plain_number(value) is not None]
    assert len(figures) == (len(CHARTS) if numbers else 0)
    assert not any("nan" in str(figure.drawing) or "inf" in str(figure.drawing) for figure in figures)
    assert all(len(figure.rows) == len(numbers) * len(figure.series) for figure in figures), (
        "nothing drawable is left out"
    )


def test_a_long_curve_is_drawn_by_means_and_says_so() -> None:
    curve = [(float(step), float(step % 2)) for step in range(1, 1001)]
    means, of = thinned(curve)
    assert of == 3 and len(means) == 334 and means[0] == (2.0, pytest.approx(2 / 3))
    lines = [{"step": step, "loss": value} for step, value in curve]
    (figure,) = training_figures(lines)
    assert "Each point is the mean of 3 lines." in figure.caption and len(figure.rows) == 1000
    assert str(figure.drawing).count("<circle") == 0


def test_large_counts_are_written_in_full(tmp_path: Path) -> None:
    folder = make_training(tmp_path / "long", planned=2_000_000)
    (folder / METRICS).write_text(json.dumps({**step_line(1_234_567), "num_tokens": 98_765_432.0}) + "\n")
    page = shown(folder)
    for words in ("1,234,567 of 2,000,000 steps", "at step 1,234,567", ">1,234,567<", ">98,765,432<"):
        assert words in page, words


def test_a_base_that_a_training_left_has_the_name_of_that_training(tmp_path: Path) -> None:
    recipe = training_record()["recipe"] | {"model": "hf//runs/sft-trained/model"}
    assert "base sft-trained/model" in shown(make_training(tmp_path / "better", recipe=recipe))


def test_pages_read_every_field_that_a_training_writes() -> None:
    """Two structs, as the one who writes keeps a recipe whole and the one who shows reads what it knows."""
    from snellen.kits.train.tuning import RECORD as WRITTEN
    from snellen.kits.train.tuning import TrainingRecord

    assert RecordedTraining.__struct_fields__ == TrainingRecord.__struct_fields__
    assert RECORD == WRITTEN
