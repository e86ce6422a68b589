"""Every card of tier 2, end to end: rows in the source's shape, known replies, and the number worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from atlas_fixtures import figure_of_read
from benchmark_rows import Fixture, tier2_fixtures
from documentation import docs_tool
from snellen.cli.main import main
from snellen.core.builtins import default_registry
from snellen.core.protocols import LoadContext
from snellen.core.types import Sample
from snellen.data.atlas.protocols import about_card, protocols_of
from snellen.data.catalog import Catalog
from snellen.scoring.aggregates import caption_scores

FIXTURES = tier2_fixtures()
CASES = [(fixture, protocol) for fixture in FIXTURES for protocol in fixture.expected]
TIER_2 = sorted({fixture.card for fixture in FIXTURES})


def samples_of(fixture: Fixture, path: Path, protocol: str, folder: Path) -> list[Sample]:
    task = Catalog().task(fixture.card, [("dataset.path", str(path))], protocol)
    load = default_registry().get("loader", task.dataset["loader"])
    return list(load(task, LoadContext(workdir=folder / "kept")))


def run_card(fixture: Fixture, protocol: str, folder: Path) -> dict[str, Any]:
    """Write the rows, answer them with the replies, and return the metrics."""
    path = fixture.write(folder / "data")
    samples = samples_of(fixture, path, protocol, folder)
    assert len(samples) == len(fixture.replies)
    lines = [{"sample": sample.id, "text": reply} for sample, reply in zip(samples, fixture.replies, strict=True)]
    (folder / "replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = snellen.run(
        fixture.card,
        f"replay/{folder / 'replies.jsonl'}",
        overrides=(("dataset.path", str(path)),),
        protocol=protocol,
        output_dir=folder / "run",
    )
    return result.results["tasks"][fixture.card]["metrics"]


@pytest.mark.parametrize(
    ("fixture", "protocol"), CASES, ids=[f"{fixture.card}-{fixture.shape}-{protocol}" for fixture, protocol in CASES]
)
def test_a_card_gives_the_number_worked_out_by_hand(
    fixture: Fixture, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caption_scores, "missing_reason", lambda: "no figure here is METEOR's")  # eight seconds a start
    metrics = run_card(fixture, protocol, tmp_path)
    for name, value in fixture.expected[protocol].items():
        expected = None if value is None else pytest.approx(value)
        assert figure_of_read(metrics, name) == expected, (name, sorted(metrics))
    headline = Catalog().task(fixture.card, protocol=protocol).headline
    assert headline in metrics


def test_a_run_on_a_part_of_a_card_says_so_under_its_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixture = next(one for one in FIXTURES if one.card == "erqa")
    asked = ["run", fixture.card, "--model", "blind/first", "-p", f"dataset.path={fixture.write(tmp_path / 'data')}"]
    with pytest.raises(SystemExit, match="0"):
        main([*asked, "-o", str(tmp_path / "part")])
    said, plan = capsys.readouterr()
    assert "2 of 400 rows" in said[said.index("95 % interval") :]
    assert "read as the hub form of erqa" in plan
    with pytest.raises(SystemExit, match="0"):
        main([*asked, "-o", str(tmp_path / "whole"), "-p", "dataset.sources.hub.count=2"])
    assert "of 400 rows" not in capsys.readouterr().out


def test_forty_cards_of_tier_2_and_more_are_there() -> None:
    assert len(TIER_2) >= 50


def test_cards_say_what_people_must_know() -> None:
    lacking = {name: [what for what, said in said_by(name).items() if not said] for name in TIER_2}
    assert not {name: parts for name, parts in lacking.items() if parts}


def said_by(name: str) -> dict[str, Any]:
    table = Catalog().task_table(name)
    about = about_card(table, name)
    sources = table["dataset"]["sources"]
    return {
        "how large it is": about.size,
        "which number is quoted": about.quoted,
        "where its facts were seen": about.marks,
        "its licence": table["licence"],
        "an official protocol": "official" in protocols_of(table),
        "why there is each protocol": all(one.get("why") for one in protocols_of(table).values()),
        "sources, and the columns of each": sources and all(source["columns"] for source in sources.values()),
    }


def test_both_spellings_of_a_moved_owner_are_known() -> None:
    hubs = {name: Catalog().task_table(name)["dataset"]["sources"].get("hub", {"ids": []})["ids"] for name in TIER_2}
    assert not [
        (name, spelling)
        for name, ids in hubs.items()
        for spelling in ids
        if spelling.startswith("lmms-lab/") and spelling.replace("lmms-lab/", "lmms-lab-encoder/") not in ids
    ]


def test_the_whole_document_is_shown(tmp_path: Path) -> None:
    pages = {"slidevqa": 20, "mp-docvqa": 2, "longdocurl": 3}
    for fixture in FIXTURES:
        if fixture.card in pages:
            samples = samples_of(fixture, fixture.write(tmp_path / fixture.card), "official", tmp_path)
            assert {len(sample.images) for sample in samples} == {pages[fixture.card]}


def test_the_caption_that_holds_the_answer_is_never_shown(tmp_path: Path) -> None:
    fixture = next(one for one in FIXTURES if one.card == "countbenchqa")
    path = fixture.write(tmp_path)
    assert not any("photo" in sample.question for sample in samples_of(fixture, path, "official", tmp_path))
    assert all("photo" in sample.question for sample in samples_of(fixture, path, "lmms-eval", tmp_path))


def tags_known(source: dict[str, Any]) -> set[str]:
    return set(source["columns"]) | {change["set"] for change in source.get("rows", ())}


def test_what_a_card_counts_by_is_in_every_shape_of_its_data() -> None:
    """A figure whose groups were missing would make one group of everything: a confident wrong number."""
    assert not [
        (name, shape, missing)
        for name in TIER_2
        for shape, source in Catalog().task_table(name)["dataset"]["sources"].items()
        if (missing := counted_by(name) - tags_known(source))
    ]


def counted_by(name: str) -> set[str]:
    table = Catalog().task_table(name)
    figures = [*table.get("figures", ()), *(one for p in protocols_of(table).values() for one in p.get("figures", ()))]
    by_figures = {tag for figure in figures for tag in (*figure.get("by", ()), *figure.get("where", {}))}
    return by_figures | set(table.get("group_by", ()))


def test_questions_on_one_picture_are_one_cluster(tmp_path: Path) -> None:
    fixture = next(one for one in FIXTURES if one.card == "mme")
    samples = samples_of(fixture, fixture.write(tmp_path), "official", tmp_path)
    assert len({sample.group for sample in samples}) == 3
    assert all(sample.group for sample in samples)


def test_every_page_of_a_pdf_is_shown_and_a_list_is_one_answer(tmp_path: Path) -> None:
    folder = tmp_path / "mmlongbench-doc"
    (folder / "documents").mkdir(parents=True)
    pages = [PIL.Image.new("RGB", (64, 64), colour) for colour in ("white", "grey", "black")]
    pages[0].save(folder / "documents" / "a.pdf", "PDF", save_all=True, append_images=pages[1:])
    facts = [*[("List", "['a cat', 'a dog']")] * 3, ("Int", "3")]
    rows = [
        {"doc_id": "a.pdf", "doc_type": "Guide", "question": f"Question {n}?", "answer": answer, "answer_format": kind}
        | {"evidence_pages": "[1]", "evidence_sources": "['Table']"}
        for n, (kind, answer) in enumerate(facts)
    ]
    path = Fixture("mmlongbench-doc", "hub", rows, [], {}).write(folder)
    task = Catalog().task("mmlongbench-doc", [("dataset.path", str(path))])
    load = default_registry().get("loader", task.dataset["loader"])
    samples = list(load(task, LoadContext(root=tmp_path, workdir=tmp_path / "kept")))
    assert {len(sample.images) for sample in samples} == {3}
    replies = ["['a dog', 'a cat']", "['a cat', 'a dog']", "a cat", "3"]
    lines = [{"sample": sample.id, "text": reply} for sample, reply in zip(samples, replies, strict=True)]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = snellen.run(
        "mmlongbench-doc",
        f"replay/{tmp_path / 'replies.jsonl'}",
        overrides=(("dataset.path", str(path)),),
        data_root=tmp_path,
        output_dir=tmp_path / "run",
    )
    metrics = result.results["tasks"]["mmlongbench-doc"]["metrics"]
    assert metrics["accuracy"]["value"] == pytest.approx(3 / 4), "one member of a list is not the list"


def test_every_card_stands_in_the_documentation() -> None:
    made = docs_tool("docs_pages").card_pages()
    assert [name for name in TIER_2 if f"[`{name}`]({name}.md)" not in made["cards/index.md"]] == []


def test_pixels_of_a_reply_are_those_of_the_picture_the_model_saw() -> None:
    grounded = [name for name in TIER_2 if "pixels" in protocols_of(Catalog().task_table(name))]
    assert len(grounded) == 9
    for name in grounded:
        assert Catalog().task(name, protocol="pixels").score_options["coordinates"]["reply"] == "sent-pixels"


def test_cmmmu_is_asked_in_its_own_words_with_its_pictures_named_by_number(tmp_path: Path) -> None:
    fixture = next(one for one in FIXTURES if one.card == "cmmmu")
    samples = samples_of(fixture, fixture.write(tmp_path), "official", tmp_path)
    choice, judgement, blank = samples[0].question, samples[3].question, samples[6].question
    assert "问题：看<图片 1>，第0题\n选项：\n(A) 红色\n(B) 蓝色\n(C) 绿色\n(D) 黄色\n\n正确答案：" in choice
    assert "多项选择题" in choice and "判断题" in judgement and "填空题" in blank
    assert judgement.count("问题：") == blank.count("问题：") == 1
    assert all(len(sample.images) == 1 and "<img=" not in sample.question for sample in samples)


def test_pictures_of_mm_vet_v2_stand_where_its_files_name_them(tmp_path: Path) -> None:
    facts = {"answer": "x=2", "capability": ["ocr", "math"]}
    rows = {"v2_0": {"question": "Which of<IMG>a.jpg<IMG>and<IMG>b.png<IMG> is it?", **facts}}
    (tmp_path / "images").mkdir()
    (tmp_path / "mm-vet-v2.json").write_text(json.dumps(rows))
    for name in ("a.jpg", "b.png"):
        PIL.Image.new("RGB", (8, 8)).save(tmp_path / "images" / name)
    (sample,) = snellen.load_dataset("mm-vet-v2", path=str(tmp_path))
    assert (sample.id, sample.question) == ("v2_0", "Which of<image 1>and<image 2> is it?")
    assert [Path(image.ref).name for image in sample.images] == ["a.jpg", "b.png"]
    assert sample.tags["capability"] == "ocr,math"
