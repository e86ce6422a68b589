"""Boxes on pictures, crops and turned crops are regions of the source; every crop is the formula's, pixel by pixel."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest

from snellen.core.errors import DataError
from snellen.core.looks import Look
from snellen.core.types import Image
from snellen.data.images.decode import open_image
from snellen.kits.looks.films import open_view
from snellen.kits.looks.standins import gold_box, stand_in
from snellen.kits.looks.tools import Terms, describe, run_call
from snellen.kits.looks.views import CallError, View, ZoomRules, draw, first_view, grid_size, overlap, read_box, zoom
from snellen.kits.looks.words import PRESETS

LONGEST = 1024


def shares(draw_by: random.Random) -> tuple[float, float, float, float]:
    x, y = sorted(draw_by.random() for _ in range(2)), sorted(draw_by.random() for _ in range(2))
    return x[0], y[0], x[1], y[1]


def direct(view: View, box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Return a box on a view in pixels of the source, by walking its four corners back with rotation matrices."""
    points = []
    for x, y in ((box[0], box[1]), (box[2], box[1]), (box[0], box[3]), (box[2], box[3])):
        angle = -math.radians(view.turned)
        across, down = x - 0.5, y - 0.5  # y goes down, so clockwise is the positive sense
        back = across * math.cos(angle) - down * math.sin(angle), across * math.sin(angle) + down * math.cos(angle)
        left, top, right, bottom = view.region
        points.append((left + (back[0] + 0.5) * (right - left), top + (back[1] + 0.5) * (bottom - top)))
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def test_ten_thousand_boxes_in_every_frame_on_nested_turned_crops_are_within_a_pixel_of_the_source() -> None:
    draw_by = random.Random(38)
    for number in range(10_000):
        size = draw_by.randint(200, 4000), draw_by.randint(200, 4000)
        shown = (size[0] // 2, size[1] // 2) if number % 3 == 0 else size
        view = first_view(Image("/a.png", edits=("fit:9",)), size, shown)._replace(sent=(shown[0] // 2, shown[1] // 2))
        for _ in range(draw_by.randrange(3)):
            try:
                view = zoom(view, shares(draw_by), "0-1", ZoomRules(), LONGEST).view
            except CallError:
                continue
            view = view._replace(sent=view.shown)
            if draw_by.random() < 0.5:
                turned = (view.turned + draw_by.choice((90, 180, 270))) % 360
                view = draw(view._replace(turned=turned), ZoomRules(enlarge=0), LONGEST).view._replace(sent=(50, 60))
        frame, box = draw_by.choice(("0-1", "0-1000", "pixels", "sent-pixels")), shares(draw_by)
        across, down = view.edges(frame)
        told = (box[0] * across, box[1] * down, box[2] * across, box[3] * down)
        try:
            found = zoom(view, told, frame, ZoomRules(least=1), LONGEST).view.region
        except CallError as error:
            assert error.problem in ("empty", "aspect")
            continue
        wanted = direct(view, box)
        assert all(abs(one - other) <= 1.0 + 1e-6 for one, other in zip(found, wanted, strict=True)), (view, box)
        assert 0 <= found[0] < found[2] <= size[0] and 0 <= found[1] < found[3] <= size[1]


@pytest.fixture
def noise(tmp_path: Path) -> Image:
    pixels = np.random.default_rng(3).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(tmp_path / "noise.png")
    return Image(str(tmp_path / "noise.png"))


def test_every_zoom_is_pixel_by_pixel_the_formula(noise: Image) -> None:
    source, draw_by = PIL.Image.open(noise.ref), random.Random(1)
    for _ in range(25):
        box = shares(draw_by)
        try:
            seen = zoom(open_view(noise), box, "0-1", ZoomRules(), LONGEST)
        except CallError:
            continue
        left, top, right, bottom = (
            math.floor(box[0] * 640 + 1e-6),
            math.floor(box[1] * 480 + 1e-6),
            math.ceil(box[2] * 640 - 1e-6),
            math.ceil(box[3] * 480 - 1e-6),
        )
        if min(right - left, bottom - top) < 32:
            continue
        width, height = right - left, bottom - top
        factor = max(1.0, min(LONGEST / max(width, height), 4.0))
        size = round(width * factor), round(height * factor)
        wanted = source.crop((left, top, right, bottom)).resize(size, PIL.Image.Resampling.LANCZOS)
        assert seen.view.image is not None
        assert np.array_equal(np.asarray(open_image(seen.view.image)), np.asarray(wanted))


def test_a_shrunk_or_cut_picture_is_looked_at_in_its_source(noise: Image) -> None:
    shrunk = open_view(Image(noise.ref, edits=("fit:160",)))
    assert (shrunk.size, shrunk.shown) == ((640, 480), (160, 120))
    seen = zoom(shrunk, (40, 30, 120, 90), "pixels", ZoomRules(), LONGEST)
    assert seen.view.region == (160, 120, 480, 360) and seen.view.image is not None
    assert open_image(seen.view.image).size == (1024, 768)
    cut = open_view(Image(noise.ref, edits=("crop:0.5,0.5,1,1", "perturb:blur:1")))
    assert (cut.size, cut.offset) == ((320, 240), (320, 240))
    inside = zoom(cut, (0, 0, 0.5, 0.5), "0-1", ZoomRules(), LONGEST).view
    assert inside.source(inside.region) == (320, 240, 480, 360)
    assert inside.image is not None and "perturb:blur:1" in inside.image.edits
    with pytest.raises(DataError, match="turned"):
        open_view(Image(noise.ref, edits=("turn:90",)))


def test_turned_and_enhanced_pictures_are_exact(noise: Image) -> None:
    source = PIL.Image.open(noise.ref)
    views, terms = [open_view(noise)], Terms("0-1000", longest=LONGEST)
    turned = run_call("turn", {"picture": 1, "degrees": 90}, views, terms, ()).view
    assert turned is not None and turned.image is not None
    assert np.array_equal(np.asarray(open_image(turned.image)), np.asarray(source.rotate(-90, expand=True)))
    views.append(turned)
    part = run_call("zoom", {"picture": 2, "box": [0, 0, 500, 500]}, views, terms, ()).look
    assert part.region == (0, 240, 320, 480)  # the upper left of the turned picture is its lower left
    inverted = run_call("enhance", {"picture": 1, "what": "invert"}, views, terms, ()).look.image
    assert inverted is not None
    assert np.array_equal(np.asarray(open_image(inverted)), np.asarray(PIL.ImageOps.invert(source)))
    for what in ("contrast", "brighten", "sharpen"):
        image = run_call("enhance", {"picture": 1, "what": what}, views, terms, ()).look.image
        assert image is not None and open_image(image).size == source.size


def test_measure_and_page_tell_what_they_found(noise: Image) -> None:
    views, terms = [open_view(noise)], Terms("0-1000")
    told = run_call("measure", {"picture": 1, "start": [0, 0], "end": [500, 0]}, views, terms, ()).look.told
    assert told.startswith("320.0 pixels") and "50.0 %" in told and "0.0 degrees" in told
    page = run_call("page", {"number": 1}, views, terms, ()).look
    assert page.size == (640, 480) and page.region == (0, 0, 640, 480)
    for name, arguments, problem in (
        ("page", {"number": 7}, "picture"),
        ("measure", {"picture": 1, "start": [0, 0], "end": [5]}, "schema"),
        ("measure", {"picture": 1, "start": [0, 0], "end": [5000, 0]}, "frame"),
        ("turn", {"picture": 1, "degrees": 45}, "schema"),
        ("enhance", {"picture": 1, "what": "magic"}, "schema"),
    ):
        with pytest.raises(CallError) as error:
            run_call(name, arguments, views, terms, ())
        assert error.value.problem == problem


def test_tools_say_their_frame_in_words_and_in_the_schema() -> None:
    offered = describe(("zoom", "turn", "enhance", "measure", "page"), Terms("0-1000"))
    assert [tool.name for tool in offered] == ["zoom", "turn", "enhance", "measure", "page"]
    assert "1000" in offered[0].description
    assert offered[0].schema["properties"]["box"]["items"] == {"type": "number", "minimum": 0, "maximum": 1000}
    assert "maximum" not in describe(("zoom",), Terms("pixels"))[0].schema["properties"]["box"]["items"]


def test_the_same_region_is_shown_once(noise: Image) -> None:
    views, terms = [open_view(noise)], Terms("0-1000")
    first = run_call("zoom", {"picture": 1, "box": [0, 0, 500, 500]}, views, terms, ()).look
    with pytest.raises(CallError) as error:
        run_call("zoom", {"picture": 1, "box": [0, 0, 502, 500]}, views, terms, (first,))
    assert error.value.problem == "repeat"
    assert isinstance(run_call("zoom", {"picture": 1, "box": [0, 0, 700, 500]}, views, terms, (first,)).look, Look)


def qwen(box: tuple[float, ...], size: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Return region and size by the rules of section 2 for qwen3-vl, written down a second time."""
    x0, y0 = max(0, box[0] / 1000 * size[0]), max(0, box[1] / 1000 * size[1])
    x1, y1 = min(size[0], box[2] / 1000 * size[0]), min(size[1], box[3] / 1000 * size[1])
    if min(x1 - x0, y1 - y0) < 32:
        grow = 32 / min(x1 - x0, y1 - y0)
        across, down = math.ceil((x1 - x0) * grow / 2), math.ceil((y1 - y0) * grow / 2)
        middle = (x0 + x1) / 2, (y0 + y1) / 2
        wide = (
            max(0, math.floor(middle[0] - across)),
            max(0, math.floor(middle[1] - down)),
            min(size[0], math.ceil(middle[0] + across)),
            min(size[1], math.ceil(middle[1] + down)),
        )
        if wide[2] - wide[0] > 32 and wide[3] - wide[1] > 32:
            x0, y0, x1, y1 = wide
    width, height = x1 - x0, y1 - y0
    drawn = [max(32, round(side / 32) * 32) for side in (width, height)]
    if drawn[0] * drawn[1] < 256 * 1024:
        factor = math.sqrt(256 * 1024 / (width * height))
        drawn = [math.ceil(side * factor / 32) * 32 for side in (width, height)]
    return (round(x0), round(y0), round(x1), round(y1)), (drawn[0], drawn[1])


def test_presets_draw_as_their_projects_do() -> None:
    draw_by, checked = random.Random(5), 0
    preset = PRESETS["qwen3-vl"]
    for _ in range(500):
        size = draw_by.randint(100, 3000), draw_by.randint(100, 3000)
        box = tuple(1000 * share for share in shares(draw_by))
        view = first_view(Image("/a.png"), size, size)
        try:
            seen = zoom(view, box, preset.frame, preset.rules, LONGEST).view  # type: ignore[arg-type]
        except CallError:
            continue
        checked += 1
        assert (seen.region, seen.shown) == qwen(box, size)
    assert checked > 450
    view = first_view(Image("/a.png"), (1000, 800), (1000, 800))
    eyes = zoom(view, (100, 100, 300, 200), "pixels", PRESETS["deepeyes"].rules, LONGEST).view
    assert eyes.region == (100, 100, 300, 200) and eyes.shown == (196, 112)
    mini = zoom(view, (0.1, 0.1, 0.3, 0.2), "0-1", PRESETS["mini-o3"].rules, LONGEST).view
    assert mini.region == (100, 80, 300, 160) and mini.shown == (800, 320)
    pixel = zoom(view, (0.4, 0.4, 0.6, 0.6), "0-1", PRESETS["pixel-reasoner"].rules, LONGEST).view
    assert pixel.region == (300, 240, 700, 560) and pixel.shown == (400, 320)
    with pytest.raises(CallError, match="too small"):
        small = first_view(Image("/a.png"), (100, 100), (100, 100))
        zoom(small, (0.5, 0.5, 0.51, 0.51), "0-1", PRESETS["pixel-reasoner"].rules, LONGEST)
    assert PRESETS["mini-o3"].arguments({"bbox_2d": [0, 0, 1, 1], "source": "observation_2"}, 1)["picture"] == 3
    assert grid_size((3000, 3000), ZoomRules(grid=28, most_pixels=784 * 100))[0] % 28 == 0


def test_stand_ins_have_the_size_of_the_crop_and_nothing_of_it(noise: Image) -> None:
    view = zoom(open_view(noise), (0, 0, 0.25, 0.25), "0-1", ZoomRules(), LONGEST).view
    draw_by, gold = random.Random(1), (400, 300, 500, 400)
    grey = stand_in("grey", view, gold, None, draw_by)
    assert grey is not None and len(np.unique(np.asarray(open_image(grey)).reshape(-1, 3), axis=0)) == 1
    assert open_image(grey).size == view.shown
    for _ in range(12):
        other = stand_in("elsewhere", view, gold, None, draw_by)
        assert other is not None and open_image(other).size == view.shown
        region = tuple(map(int, next(e for e in other.edits if e.startswith("region:"))[7:].split(",")))
        assert not overlap(region, view.region) and not overlap(region, gold)  # type: ignore[arg-type]
    whole = stand_in("whole", view, gold, None, draw_by)
    assert whole is not None
    size = open_image(whole).size
    assert size[0] * size[1] == pytest.approx(view.shown[0] * view.shown[1], rel=0.01)
    true = stand_in("gold", view, gold, None, draw_by)
    assert true is not None and "region:350,250,550,450" in true.edits
    assert stand_in("none", view, gold, None, draw_by) is None
    all_of_it = zoom(open_view(noise), (0, 0, 1, 1), "0-1", ZoomRules(), LONGEST).view
    far = stand_in("elsewhere", all_of_it, None, Image("/other.png"), draw_by)
    assert far is not None and far.ref == "/other.png"


def test_the_gold_box_is_read_from_columns_or_from_a_cards_answer(tmp_path: Path) -> None:
    from snellen.core.types import Form, Sample

    def of(answer: str = "", **meta: object) -> Sample:
        return Sample("1", "t", Form.OPEN, "?", answers=(answer,) if answer else (), meta=meta)

    size = (200, 100)
    assert gold_box(of(box=[0.1, 0.1, 0.5, 0.5]), {}, size) == (20, 10, 100, 50)
    assert gold_box(of(box="20,10,100,50"), {}, size) == (20, 10, 100, 50)
    assert gold_box(of(boxes=[{"box": [20, 10, 100, 50]}]), {}, size) == (20, 10, 100, 50)
    told = {"coordinates": {"gold": "pixels", "gold_order": "xywh"}}
    assert gold_box(of("[20, 10, 80, 40]"), told, size) == (20, 10, 100, 50)
    assert gold_box(of("a cat"), told, size) is None and gold_box(of(), {}, size) is None
    assert gold_box(of(box=[0, 0, 900, 900]), {}, size) is None


@pytest.mark.parametrize(
    "edit", ["region:0,0,9", "region:0,0,900,900", "resize:0x3:lanczos", "resize:3x3:magic", "turn:45"]
)
@pytest.mark.parametrize("second", ["enhance:magic", "grey:300"])
def test_edits_that_cannot_be_done_are_refused_by_name(noise: Image, edit: str, second: str) -> None:
    for one in (edit, second):
        with pytest.raises(DataError, match=one.partition(":")[0]):
            open_image(Image(noise.ref, edits=(one,)))


def test_boxes_in_other_spellings() -> None:
    assert read_box("[1, 2, 3, 4]") == (1, 2, 3, 4)
    for wrong in ("1 2 3", [1, 2, 3, None], {"left": 1}, [True, 1, 2, 3]):
        with pytest.raises(CallError):
            read_box(wrong)
