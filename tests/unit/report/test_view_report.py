"""report.html: complete, self-contained, within its size, and never broken by what a run holds."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from test_view_html import Seen

from hostile_run import make_hostile_run
from made_runs import ask, make_header, make_run, make_samples, make_task, page_of, run_apart, scored, trials
from snellen.api.outputs import report
from snellen.core.builtins import default_registry
from snellen.core.types import Prediction, TrialKey
from snellen.report.files import write_results
from snellen.report.pages.gallery import Budget, card, read_trial, thumbnail
from snellen.report.pages.report_page import measured_on
from snellen.report.stored_results import read_results
from snellen.scoring.protocols.readings import Reading
from snellen.scoring.run import score_run
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter

VARIANTS = ("base", "perturb=jpeg:1", "perturb=jpeg:3")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("report"), count=40, task=make_task(variants=VARIANTS, repeats=2))


@pytest.fixture(scope="module")
def page(run: Path) -> str:
    return page_of(run)


def test_says_all_it_must(page: str) -> None:
    words = Seen(page).words
    for told in (
        "openai/small", "95 % interval", "What degradation does", "By group", "Where the spread comes from", "What it got wrong", "Failures", "timeout",
        "Settings and versions", "Reproduce", "snellen run shapes --model openai/small", "n", "snellen view",
    ):  # fmt: skip
        assert told in words, told


def test_needs_no_network_and_no_script(page: str) -> None:
    seen = Seen(page)
    assert "script" not in {name for name, _ in seen.tags}
    links = [value or "" for _, attributes in seen.tags for name, value in attributes if name in ("src", "href")]
    assert all(link.startswith(("data:image/webp;base64,", "#")) for link in links)
    assert not [
        name for _, attributes in seen.tags for name, _ in attributes if name.startswith("on") or name == "style"
    ]
    assert re.search(r"default-src 'none'; style-src 'sha256-[^']+'; img-src data:", page)


def test_every_picture_and_figure_has_words(page: str) -> None:
    for name, attributes in Seen(page).tags:
        told = dict(attributes)
        if name == "img":
            assert told["alt"]
        if name == "svg":
            assert told.get("aria-hidden") == "true" or told.get("aria-label")


def test_pictures_stay_within_their_budget(run: Path) -> None:
    small, none = page_of(run, picture_bytes=20_000), page_of(run, picture_bytes=0)
    assert sum(len(found) for found in re.findall(r"base64,([^\"]+)", small)) <= 20_000
    assert "base64," not in none
    assert "Left out to keep this file small" in none


def test_a_trial_whose_request_says_nothing_has_its_card(run: Path) -> None:
    with RunReader(run) as reader:
        trial = next(iter(reader.trials(reader.tasks()[0])))
        shown = read_trial(reader, trial.prediction.key)
    assert shown is not None
    silent = shown._replace(request=msgspec.structs.replace(shown.request, messages=()))
    assert shown.sample.id in str(card(silent, 0, 1.0, Budget(1_000)))


def test_budget_is_exact() -> None:
    budget = Budget(10)
    assert budget.take(6)
    assert not budget.take(5)
    assert budget.take(4)
    assert budget.left == 0


def test_missing_pictures_are_said(tmp_path: Path) -> None:
    make_run(tmp_path, count=12)
    shutil.rmtree(tmp_path / "images")
    assert "does not exist" in Seen(page_of(tmp_path)).words


def test_half_written_run_says_so(tmp_path: Path) -> None:
    make_run(tmp_path, count=30, stop_after=11, score=False)
    words = Seen(page_of(tmp_path)).words
    assert "This run is not complete" in words
    assert "19 trials not yet asked" in words


def test_a_run_without_any_trial(tmp_path: Path) -> None:
    make_run(tmp_path, count=3, stop_after=0, score=False)
    assert "0 trials stored" in Seen(report(tmp_path).read_text()).words


def test_hostile_fields_make_no_element(tmp_path: Path) -> None:
    seen = Seen(page_of(make_hostile_run(tmp_path)))
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "main",
        "header",
        "svg",
        "text",
        "rect",
        "line",
        "circle",
        "polyline",
        "polygon",
        "div",
        "p",
        "h1",
        "h2",
        "h3",
        "ul",
        "li",
        "small",
        "span",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "figure",
        "figcaption",
        "details",
        "summary",
        "article",
        "img",
        "dl",
        "dt",
        "dd",
        "pre",
        "mark",
        "code",
        "footer",
        "b",
    }
    assert {name for name, _ in seen.tags} <= allowed


async def _put_long(folder: Path, replies: list[str], groups: int) -> None:
    task, samples = make_task(), make_samples(folder, max(len(replies), groups))
    writer = RunWriter(folder, make_header(task, "openai/long", len(samples)))
    try:
        waiting = []
        for position, sample, key in trials(task, samples):
            text = replies[position] if position < len(replies) else "The answer is (A)."
            waiting.append(writer.put(position, sample, ask(sample, key), Prediction(key, text=text), "0"))
        await asyncio.gather(*waiting)
    finally:
        writer.close()


def test_ten_megabyte_replies_and_thousands_of_groups(tmp_path: Path) -> None:
    run_apart(_put_long(tmp_path, ["The answer is (B). " + "x" * 10_000_000], 3000))
    results = scored(tmp_path)
    task = results["tasks"]["shapes"]
    one = next(iter(task["groups"]["shape"].values()))
    task["groups"]["thousands"] = {f"g{i}": one for i in range(3000)}
    write_results(tmp_path, results)
    page = page_of(tmp_path)
    assert len(page) < 5 * 2**20
    assert "and 2,940 more groups" in page


class TestResults:
    @pytest.mark.parametrize("odd", ["x", [], {}, 10**400])
    def test_figures_of_another_shape_are_made_again(self, tmp_path: Path, odd: object) -> None:
        make_run(tmp_path, count=10)
        with RunReader(tmp_path) as reader:
            whole = msgspec.json.decode((tmp_path / "results.json").read_bytes())
            task = next(iter(whole["tasks"]))
            metrics = whole["tasks"][task]["metrics"]
            name = next(iter(metrics))
            for field in ("value", "n", "ci95", "bounds"):
                changed = {name: {**metrics[name], field: odd}}
                told = {**whole, "tasks": {**whole["tasks"], task: {**whole["tasks"][task], "metrics": changed}}}
                (tmp_path / "results.json").write_text(json.dumps(told))
                again = msgspec.json.encode(read_results(reader, reader.header()))
                assert msgspec.json.decode(again)["tasks"][task]["metrics"] == metrics, field

    def test_results_json_is_used_where_it_fits(self, run: Path) -> None:
        reader = RunReader(run)
        again = msgspec.json.decode(msgspec.json.encode(score_run(reader, default_registry(), keep=False)))
        assert read_results(reader, reader.header())["tasks"] == again["tasks"]

    @pytest.mark.parametrize(
        "body",
        [b"", b"{", b"[]", b'{"run": 3}', b'{"run": {"id": "other"}, "status": {"planned": {}, "not_yet_asked": {}}}'],
    )
    def test_a_foreign_or_broken_file_is_not_believed(self, tmp_path: Path, body: bytes) -> None:
        make_run(tmp_path, count=10)
        (tmp_path / "results.json").write_bytes(body)
        reader = RunReader(tmp_path)
        results = read_results(reader, reader.header())
        assert results["run"]["id"] == reader.header().id
        assert results["tasks"]["shapes"]["metrics"]["accuracy"]["n"] > 0
        assert (tmp_path / "results.json").read_bytes() == body, "looking writes nothing"

    def test_another_profile_in_memory_equals_scoring_for_good(self, tmp_path: Path) -> None:
        make_run(tmp_path, count=30)
        reader = RunReader(tmp_path)
        seen = score_run(reader, default_registry(), reading=Reading("reform"), keep=False)
        reader.close()
        kept = scored(tmp_path, reading=Reading("reform"))
        assert seen["tasks"] == kept["tasks"]
        assert seen["run"] == kept["run"]


def test_thumbnails_are_small(run: Path) -> None:
    reader = RunReader(run)
    shown = read_trial(reader, TrialKey("shapes", "shape-00000"))
    assert shown is not None
    assert len(thumbnail(shown.request.messages[1].images[0], 100)) < 4000
    assert read_trial(reader, TrialKey("shapes", "nobody")) is None


def test_the_headline_says_on_how_many_of_what_it_rests() -> None:
    counts = {"n": 27, "unscored": 10, "failed": 3, "not_yet_asked": None, "left_out": 0}
    assert measured_on({**counts, "unit": "trials"}, 40) == "27 of 40 trials"
    assert measured_on({**counts, "n": 40, "unscored": 0, "failed": 0, "unit": "trials"}, 40) == "40 trials"
    chart = {"n": 9, "unscored": 0, "failed": 0, "not_yet_asked": 0, "left_out": 33, "unit": "charts"}
    assert measured_on(chart, 42) == "9 of 42 charts (42 trials stored)"
    assert measured_on({"n": 5, "unscored": 1, "failed": 0}, 6) == "5 values (6 trials stored)", "as 0.1 wrote them"
