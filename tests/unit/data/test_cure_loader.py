"""The CURE file as samples: order, region, settings, odd data, and errors that name the item."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cure_fixtures import item, write_cure
from snellen.core.errors import DataError, UsageError
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Sample
from snellen.data.dataset import check_sample
from snellen.data.images.decode import open_image
from snellen.kits.cure.loader import LEAD, load


def samples(path: Path, *, limit: int | None = None, **dataset: object) -> list[Sample]:
    task = Task(name="cure", dataset={"loader": "cure", "path": str(path), **dataset})
    found = list(load(task, LoadContext(limit=limit)))
    for sample in found:
        check_sample(sample)
    return found


def test_steps_come_in_order_and_the_inference_last(tmp_path: Path) -> None:
    found = samples(write_cure(tmp_path))
    assert [sample.id for sample in found] == [
        "00000.1",
        "00000.2",
        "00000.h",
        "00001.1",
        "00001.2",
        "00001.3",
        "00001.h",
        "00002.1",
        "00002.2",
        "00002.h",
    ]
    assert [sample.tags["steps"] for sample in found[3:7]] == [3, 3, 3, 3]
    assert found[2].tags["role"] == "inference" and found[2].answers == ("story 0 c",)
    assert {sample.group for sample in found[:3]} == {"00000"}


def test_one_object_a_line_reads_the_same(tmp_path: Path) -> None:
    path = write_cure(tmp_path)
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps(each) for each in json.loads(path.read_text())))
    assert samples(lines) == samples(path)


@pytest.mark.parametrize("region", ["box", "crop", "coordinates", "none"])
def test_the_region_is_the_first_box_clamped_to_the_picture(tmp_path: Path, region: str) -> None:
    first = samples(write_cure(tmp_path), region=region)[0]
    picture = open_image(first.images[0])
    if region == "crop":
        assert picture.size == (40, 39)  # 60..100 of 100, 0..39 of 80: one px over each edge is gone
    else:
        assert picture.size == (100, 80)
    corner = picture.convert("RGB").getpixel((picture.width - 1, 0))
    assert (corner == (232, 34, 46)) == (region == "box")
    assert ("(60, 0) to (100, 39)" in first.question) == (region == "coordinates")
    assert ("red box" in first.question) == (region == "box")


@pytest.mark.parametrize("region", ["box", "crop", "coordinates"])
def test_all_boxes_of_an_item_can_be_shown(tmp_path: Path, region: str) -> None:
    first = samples(write_cure(tmp_path), region=region, boxes="all")[0]
    picture = open_image(first.images[0])
    assert picture.size == ((100, 39) if region == "crop" else (100, 80)), "a crop holds both boxes"
    corners = [picture.convert("RGB").getpixel((x, 0)) for x in (0, picture.width - 1)]
    assert (corners == [(232, 34, 46)] * 2) == (region == "box")
    assert ("(60, 0) to (100, 39) and from (0, 0) to (1, 1)" in first.question) == (region == "coordinates")


def test_all_boxes_of_an_item_are_shown_where_all_are_asked_for(tmp_path: Path) -> None:
    path = write_cure(tmp_path)
    drawn, cropped, told = (samples(path, region=region, boxes="all")[0] for region in ("box", "crop", "coordinates"))
    assert [edit.split(",")[0] for edit in drawn.images[0].edits] == ["box:0.600000", "box:0.000000"]
    assert drawn.question.startswith("Look at the regions in the red boxes. ")
    assert len(cropped.images[0].edits) == 1 and open_image(cropped.images[0]).size == (100, 39)
    places = "from (60, 0) to (100, 39) and from (0, 0) to (1, 1) of a picture of 100 × 80 px"
    assert places in told.question and not told.images[0].edits
    one = {**item(0, 2), "bboxes": item(0, 2)["bboxes"][:1]}
    assert samples(write_cure(tmp_path, [one]), boxes="all") == samples(write_cure(tmp_path, [one]))


def test_settings_change_what_the_inference_is_told(tmp_path: Path) -> None:
    path = write_cure(tmp_path)
    assert LEAD not in samples(path)[2].question
    told = samples(path, chain="gold")[2].question
    assert "What is seen at 0.1? thing 01 d" in told and "What is seen at 0.2? thing 02 e" in told
    assert [sample.tags["role"] for sample in samples(path, ask="inference")] == ["inference"] * 3
    assert {sample.tags["role"] for sample in samples(path, ask="steps")} == {"step"}
    assert all(not sample.images for sample in samples(path, pictures=False))


def test_stripped_punctuation_leaves_nothing_to_choose_by(tmp_path: Path) -> None:
    for sample in samples(write_cure(tmp_path), punctuation="strip"):
        assert not any(option.endswith(".") for option in sample.options)
        assert sample.answers[0] in sample.options


def test_a_distractor_written_twice_counts_once(tmp_path: Path) -> None:
    odd = item(0, 2)
    odd["cot_inference"]["chain"][0]["candidate"] = ["Libraries.", "Libraries.", "Parks.", "Docks.", "Farms.", "Mills."]
    odd["cot_inference"]["chain"][0]["gt"] = 4
    first = samples(write_cure(tmp_path, [odd]))[0]
    assert len(first.options) == 5 and first.answers == ("Farms.",)


def test_a_limit_never_cuts_a_chain(tmp_path: Path) -> None:
    path = write_cure(tmp_path)
    assert len(samples(path, limit=6)) == 3
    assert len(samples(path, limit=7)) == 7
    assert len(samples(path, items=2)) == 7
    with pytest.raises(UsageError, match="less than the first chain"):
        samples(path, limit=2)


def test_pictures_are_found_by_the_end_of_their_address_or_by_a_list(tmp_path: Path) -> None:
    path = write_cure(tmp_path)
    (tmp_path / "VG_100K" / "0.png").rename(tmp_path / "elsewhere.png")
    listed = tmp_path / "list.csv"
    listed.write_text("url,path\nhttps://example.org/VG_100K/0.png,elsewhere.png\n")
    found = samples(path, image_list=str(listed))
    assert found[0].images[0].ref == str(tmp_path / "elsewhere.png")
    assert found[3].images[0].ref == str(tmp_path / "VG_100K" / "1.png")
    missing = samples(path)[0].images[0].ref
    assert missing.endswith("0.png") and not Path(missing).exists()


def test_an_address_cannot_lead_out_of_the_root(tmp_path: Path) -> None:
    path = write_cure(tmp_path, [item(0, 2, url="../../../../etc/passwd")])
    assert Path(samples(path)[0].images[0].ref).is_relative_to(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row["cot_inference"].update(chain=[]), "item 1: the chain is empty"),
        (lambda row: row["inference"].update(gt=6), "item 1: inference has gt 6 and 6 candidates"),
        (lambda row: row["inference"].update(candidate=["a", "a", "a"], gt=0), "all candidates read the same"),
        (lambda row: row.pop("bboxes"), "item 1: Object missing required field `bboxes`"),
        (lambda row: row["image"].update(width=0), "item 1: the picture is 0×80 px"),
    ],
)
def test_errors_name_the_item(tmp_path: Path, change: object, message: str) -> None:
    broken = item(1, 2)
    change(broken)
    with pytest.raises(DataError, match=message):
        samples(write_cure(tmp_path, [item(0, 2), broken]))


def test_what_is_not_the_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"dataset\.path"):
        list(load(Task(name="cure", dataset={"loader": "cure"}), LoadContext()))
    with pytest.raises(DataError, match="No such file"):
        samples(tmp_path / "none.jsonl")
    (tmp_path / "bad.jsonl").write_text("{]")
    with pytest.raises(DataError, match="neither a JSON array"):
        samples(tmp_path / "bad.jsonl")
