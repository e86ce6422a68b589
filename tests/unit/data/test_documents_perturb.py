"""Every degradation: pure, seeded, in place, stronger with severity; the command's spelling of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from snellen.core.errors import DataError, UsageError
from snellen.data.images.edits import apply_edits, calibrated_variant, stated_calibration
from snellen.kits.pages.page_style import PageStyle
from snellen.kits.pages.perturb import FAMILIES, apply, calibration, edits_of, page_seed, parse_variants
from snellen.kits.pages.quality import character_error_rate, degradation
from snellen.kits.pages.render import render_pages

STYLE = PageStyle(width_pt=260, height_pt=180, dpi=96, font="built-in", size_pt=9, leading_pt=11, margin_pt=8)
PAGE = next(iter(render_pages("Sphinx of black quartz, judge my vow 0123456789. " * 40, STYLE))).image()
OWN = [name for name in FAMILIES if not name.startswith("imagenet_c.")]


def test_there_are_enough_families() -> None:
    assert len(OWN) >= 24
    assert len(FAMILIES) - len(OWN) >= 12


@pytest.mark.parametrize("family", FAMILIES)
def test_a_degradation_is_pure_seeded_and_keeps_mode_and_size(family: str) -> None:
    before = PAGE.tobytes()
    degraded = apply(PAGE, family, 4, 11)
    assert PAGE.tobytes() == before
    assert degraded.mode == "L"
    assert degraded.size == PAGE.size or FAMILIES[family].resizes
    assert degraded.tobytes() == apply(PAGE, family, 4, 11).tobytes()
    assert degraded.tobytes() != before or degraded.size != PAGE.size
    assert apply(PAGE.convert("RGB"), family, 2, 11).mode == "RGB"


MOVING = ("rotate", "perspective", "elastic", "curl", "crop")
"""Of a page that moved, pixel by pixel nothing is left at any severity: only a reader tells those apart."""


@pytest.mark.parametrize("family", [name for name in OWN if FAMILIES[name].step not in MOVING])
def test_severity_five_takes_more_away_than_severity_one(family: str) -> None:
    mild, harsh = (degradation(PAGE, apply(PAGE, family, severity, 3)) for severity in (1, 5))
    assert harsh["psnr_db"] < mild["psnr_db"] or harsh["ssim"] < mild["ssim"]


def test_severity_zero_is_the_picture_itself_and_others_are_refused() -> None:
    assert apply(PAGE, "jpeg", 0, 1) is PAGE
    with pytest.raises(UsageError, match="0-5"):
        apply(PAGE, "jpeg", 6, 1)
    with pytest.raises(UsageError, match="did you mean 'jpeg'"):
        apply(PAGE, "jpg", 1, 1)


def test_noise_depends_on_the_seed_and_pages_have_their_own() -> None:
    assert apply(PAGE, "gaussian_noise", 3, 1).tobytes() != apply(PAGE, "gaussian_noise", 3, 2).tobytes()
    assert len({page_seed(0, "a", 1), page_seed(0, "a", 2), page_seed(0, "b", 1), page_seed(1, "a", 1)}) == 4


def test_transparent_and_palette_pictures_are_laid_on_white() -> None:
    clear = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    assert np.asarray(apply(clear, "blur", 1, 0)).min() == 255
    assert apply(PAGE.convert("P"), "jpeg", 1, 0).mode == "RGB"


def test_the_spelling_of_variants() -> None:
    assert parse_variants("jpeg:1-3,blur:2") == ["perturb=jpeg:1", "perturb=jpeg:2", "perturb=jpeg:3", "perturb=blur:2"]
    assert parse_variants("rotation") == [f"perturb=rotation:{severity}" for severity in range(1, 6)]
    assert parse_variants("rotation:1+jpeg:2") == ["perturb=rotation:1+jpeg:2"]
    assert edits_of("rotation:1+jpeg:2", 7) == ("perturb:rotation:1:7:3", "perturb:jpeg:2:7:3")
    for wrong in ("", "jpeg:0", "jpeg:3-9", "jpeg:4-2", "jpge:1", "jpeg:x", "a+b", "jpeg:1+"):
        with pytest.raises(UsageError):
            parse_variants(wrong)


def test_the_image_door_applies_the_same_edit() -> None:
    edited = apply_edits(PAGE, edits_of("blur:3", 5))
    assert edited.tobytes() == apply(PAGE, "blur", 3, 5).tobytes()


def test_an_old_name_never_means_a_new_picture() -> None:
    old, new = (apply(PAGE, "thin", 4, 5, calibrated) for calibrated in (1, 2))
    assert old.tobytes() != new.tobytes()
    assert apply_edits(PAGE, ("perturb:thin:4:5",)).tobytes() == old.tobytes(), "what 0.2 stored says no number"
    assert apply_edits(PAGE, edits_of("thin:4", 5)).tobytes() == new.tobytes()
    assert calibration(1)["contrast"].levels == (0.5, 0.25, 0.1, 0.04, 0.02) and not calibration(1)["contrast"].grain
    assert calibration(2)["bold"].levels == (0.4, 0.95, 1.33, 1.42, 1.6), "a table that runs may name stays as it was"
    with pytest.raises(UsageError, match="calibration 9"):
        apply(PAGE, "jpeg", 1, 1, 9)
    for wrong in ("perturb:jpeg", "perturb:jpeg:1:2:3:4", "perturb:jpeg:x"):
        with pytest.raises(DataError, match="family:severity"):
            apply_edits(PAGE, (wrong,))


def test_a_runs_identity_names_the_calibration_of_what_it_degrades() -> None:
    assert calibrated_variant("perturb=jpeg:3&wording=1") == "perturb=jpeg:3@3&wording=1"
    for variants, told in (
        (["base", "perturb=jpeg:3@3"], {"perturb_calibration": 3}),
        (["order=1&perturb=jpeg:3"], {"perturb_calibration": 1}),  # as 0.2 stored it
        (["base"], {}),
    ):
        assert stated_calibration({"tasks": {"t": {"variants": variants}}}) == told
    assert stated_calibration({}) == {}
    assert calibrated_variant("base") == "base" and calibrated_variant("wording=1") == "wording=1"


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(OWN),
    st.integers(1, 5),
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
)
def test_no_family_breaks_on_small_pictures(family: str, severity: int, seed: int, size: tuple[int, int]) -> None:
    picture = Image.new("L", size, 255)
    picture.paste(0, (0, 0, size[0] // 2, size[1] // 2))
    result = apply(picture, family, severity, seed)
    assert result.size == size or FAMILIES[family].resizes


def test_degradation_measures() -> None:
    assert degradation(PAGE, PAGE) == {"psnr_db": 99.0, "ssim": 1.0}
    assert character_error_rate("abcd", "abXd") == 0.25
    assert character_error_rate("a  b\nc", "a b c") == 0.0
    assert character_error_rate("", "") == 0.0
