"""Folders of pages: natural order, exact ids, gaps, impostors; degraded folders and recipes; limits before a request."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from snellen.core.errors import ConfigError, DataError, UsageError
from snellen.core.ids import rng
from snellen.kits.pages.degrade_folder import Recipe, arrange, degrade, read_recipe
from snellen.kits.pages.loader import Limits, fit
from snellen.kits.pages.page_style import PageStyle
from snellen.kits.pages.pages import find_variants, page_name, read_pages, sniff
from snellen.kits.pages.publish import publish, read_manifest
from snellen.kits.pages.texts import Document

STYLE = PageStyle(width_pt=160, height_pt=120, dpi=72, font="built-in", size_pt=10, leading_pt=12, margin_pt=6)


def picture(path: Path, form: str = "PNG") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (8, 8), 200).save(path, form)


def test_pages_stand_in_the_order_of_their_numbers_not_of_their_names(tmp_path: Path) -> None:
    names = [page_name("d", number) for number in (999, 1000, 1001)]
    assert names == ["d_page_999.png", "d_page_1000.png", "d_page_1001.png"]
    for number in range(1, 12):
        picture(tmp_path / f"e_page_{number}.png")
    assert [page.number for page in read_pages(tmp_path).documents["e"]] == list(range(1, 12))


def test_pages_are_found_by_exact_id_in_page_order(tmp_path: Path) -> None:
    for name in ("ab_page_001.png", "ab_page_002.png", "abc_page_001.png", "ab_page_extra_page_001.png", "notes.txt"):
        picture(tmp_path / "images" / name) if name.endswith("png") else (tmp_path / "images" / name).write_text("x")
    folder = read_pages(tmp_path)
    assert {name: len(pages) for name, pages in folder.documents.items()} == {"ab": 2, "abc": 1, "ab_page_extra": 1}
    for number in range(1, 1002):
        picture(tmp_path / "many" / page_name("d", number))
    assert [page.number for page in read_pages(tmp_path / "many").documents["d"]] == list(range(1, 1002))


def test_gaps_doubles_and_impostors_are_problems_with_a_reason(tmp_path: Path) -> None:
    for name in (
        "gap_page_001.png",
        "gap_page_004.png",
        "twice_page_001.png",
        "twice_page_1.jpg",
        "good_page_001.jpg",
        "late_page_002.png",
    ):
        picture(tmp_path / name)
    (tmp_path / "fake_page_001.png").write_text("<html>not a picture</html>")
    folder = read_pages(tmp_path)
    assert folder.problems["gap"] == "page gap: 2, 3 missing of 4"
    assert folder.problems["late"].startswith("page gap: 1 missing")
    assert "exists twice" in folder.problems["twice"]
    assert "not an image" in folder.problems["fake"]
    assert folder.documents["good"][0].mime == "image/png"  # what it is, not what its name says


def test_what_bytes_are() -> None:
    assert sniff(b"RIFF0000WEBPVP8 ") == "image/webp"
    assert sniff(b"\xff\xd8\xff\xe0") == "image/jpeg"
    assert sniff(b"GIF89a") == "image/gif"
    assert sniff(b"") is None


def test_a_parent_without_variants_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="VARIANT/images"):
        find_variants(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        find_variants(tmp_path / "none")
    with pytest.raises(DataError, match="not a folder"):
        read_pages(tmp_path / "none")


def test_a_degraded_folder_keeps_names_and_measures_the_loss(tmp_path: Path) -> None:
    clean = publish([Document("d", "some words to blur " * 60, {})], tmp_path / "clean", STYLE)
    seen: list[int] = []

    def transcribe(data: bytes) -> str:
        seen.append(len(data))
        return "abcd" if len(seen) % 2 else "abXd"

    degraded = degrade(tmp_path / "clean", tmp_path / "bad", ["rotation:1", "blur:4"], 3, transcribe)
    assert [page.file for page in degraded.documents["d"].pages] == [page.file for page in clean.documents["d"].pages]
    first = degraded.documents["d"].pages[0]
    assert first.degradation["ssim"] < 0.9 and first.degradation["psnr_db"] < 30 and first.degradation["cer"] == 0.25
    assert degraded.perturbation == ("rotation:1", "blur:4")
    assert degraded.documents["d"].compression_ratio == clean.documents["d"].compression_ratio
    again = degrade(tmp_path / "clean", tmp_path / "again", ["rotation:1", "blur:4"], 3)
    assert [page.sha256 for page in again.documents["d"].pages] == [
        page.sha256 for page in degraded.documents["d"].pages
    ]
    old = degrade(tmp_path / "clean", tmp_path / "old", ["rotation:1", "blur:4"], 3, calibrated=1)
    assert (degraded.calibration, old.calibration, clean.calibration) == (3, 1, None)
    assert read_manifest(tmp_path / "old").calibration == 1
    other = degrade(tmp_path / "clean", tmp_path / "other", ["gaussian_noise:2"], 4)
    assert len({page.sha256 for page in other.documents["d"].pages}) == len(other.documents["d"].pages)


def test_page_families_shuffle_lose_double_and_stitch(tmp_path: Path) -> None:
    for family, length in (("page_shuffle", 6), ("page_missing", 4), ("page_duplicate", 8)):
        order = arrange(6, family, 2, rng(1))
        assert len(order) == length and set(order) <= set(range(6))
    assert arrange(6, "page_shuffle", 2, rng(1)) != list(range(6))
    assert arrange(1, "page_missing", 5, rng(1)) == [0]
    publish([Document("d", "word " * 400, {})], tmp_path / "clean", STYLE)
    count = len(read_manifest(tmp_path / "clean").documents["d"].pages)
    stitched = degrade(tmp_path / "clean", tmp_path / "two", ["page_stitch:3"])
    assert len(stitched.documents["d"].pages) == -(-count // 4)
    assert stitched.documents["d"].pages[0].width == 2 * STYLE.page_px[0]


def test_a_folder_with_a_gap_is_not_degraded(tmp_path: Path) -> None:
    picture(tmp_path / "images" / "d_page_002.png")
    with pytest.raises(DataError, match="document d: page gap"):
        degrade(tmp_path, tmp_path / "out", ["jpeg:1"])
    (tmp_path / "empty" / "images").mkdir(parents=True)
    with pytest.raises(DataError, match="no pages"):
        degrade(tmp_path / "empty", tmp_path / "out", ["jpeg:1"])


def test_recipes_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(
        'families = ["jpeg"]\nseverities = [1, 5]\n[[variant]]\nname = "scan"\nsteps = ["rotation:1", "jpeg:2"]\n'
    )
    assert [variant.folder for variant in read_recipe(path).variants()] == ["scan", "jpeg_1", "jpeg_5"]
    assert read_recipe(path).calibration == 3
    path.write_text('families = ["jpeg"]\ncalibration = 1\n')
    assert read_recipe(path).calibration == 1
    for text, error in (
        ("", "no variant"),
        ('[[variant]]\nsteps = ["jpg:1"]', "did you mean 'jpeg'"),
        ('[[variant]]\nsteps = ["page_shuffle:9"]', "1 to 5"),
        ("familes = []", "did you mean 'families'"),
    ):
        path.write_text(text)
        with pytest.raises((ConfigError, UsageError), match=error):
            read_recipe(path)
    assert Recipe(families=("blur",)).variants()[4].steps == ("blur:5",)


def test_a_broken_manifest_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="manifest"):
        read_manifest(tmp_path)
    assert read_manifest(tmp_path / "none") is None


A4 = (793, 1123)
"""1,120 tokens for qwen2.5-vl."""


@pytest.mark.parametrize(
    "limits, expected",
    [
        (Limits(), (tuple(range(10)), "")),
        (Limits(max_images=10), (tuple(range(10)), "")),
        (Limits(max_images=4), ((), "too long: 10 pages where the model takes 4")),
        (Limits(max_images=4, policy="middle"), ((0, 1, 8, 9), "")),
        (Limits(max_visual_tokens=3_400, policy="middle"), ((0, 1, 9), "")),
        (Limits(max_images=3, policy="dpi"), ((0, 1, 9), "")),  # fewer pixels do not make fewer pictures
    ],
)
def test_what_is_sent_of_a_document_beyond_the_limits(limits: Limits, expected: tuple) -> None:
    found = fit([A4] * 10, limits)
    assert (found.pages, found.reason) == expected


def test_lower_resolution_and_chunks() -> None:
    shrunk = fit([A4] * 10, Limits(max_visual_tokens=6_000, policy="dpi"))
    assert len(shrunk.pages) == 10 and shrunk.edits == ("scale:0.7",)
    assert fit([A4] * 10, Limits(max_images=4, policy="chunk")).chunk == 4
    assert fit([A4] * 10, Limits(max_visual_tokens=10, policy="middle")).reason.startswith("too long")
    assert fit([], Limits(max_images=1)).pages == ()
    with pytest.raises(UsageError, match="did you mean 'middle'"):
        fit([A4], Limits(policy="midle"))
