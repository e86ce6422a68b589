"""The rules of other projects' tools, as their table says them: frame, pictures, least side, aspect, size, limits."""

from __future__ import annotations

import pytest

from snellen.core.types import Image
from snellen.kits.looks.inferencer import LookOptions, Setup
from snellen.kits.looks.tools import run_call
from snellen.kits.looks.views import CallError, View, first_view
from snellen.kits.looks.words import PRESETS

LONGEST = 2048


def shown_by(
    name: str, size: tuple[int, int], box: list[float], views: list[View] | None = None, **told: object
) -> View:
    """Return what a preset shows of a picture for a call as its model writes it."""
    preset, all_views = PRESETS[name], views or [first_view(Image("/a.png"), size, size)]
    named = {"source": "original_image"} if name == "mini-o3" else {}  # which it always has to name
    arguments = preset.arguments({"bbox_2d": box, **named, **told}, sum(view.first for view in all_views))
    view = run_call("zoom", arguments, all_views, preset.terms(LONGEST), ()).view
    assert view is not None
    return view


@pytest.mark.parametrize(
    ("name", "size", "box", "region", "shown"),
    [
        ("qwen3-vl", (1000, 800), [100, 100, 300, 200], (100, 80, 300, 160), (832, 352)),  # area at least 256·32²
        ("qwen3-vl", (2048, 1024), [0, 0, 1000, 1000], (0, 0, 2048, 1024), (2048, 1024)),
        ("qwen3-vl", (2000, 2000), [0, 0, 500, 500], (0, 0, 1000, 1000), (992, 992)),  # multiples of 32
        ("deepeyes", (1000, 800), [100, 100, 300, 200], (100, 100, 300, 200), (196, 112)),  # multiples of 28
        ("deepeyes", (1000, 800), [900, 700, 2000, 2000], (900, 700, 1000, 800), (112, 112)),  # cut at the edge
        ("mini-o3", (1000, 800), [0.1, 0.1, 0.3, 0.2], (100, 80, 300, 160), (800, 320)),  # 4 times
        ("mini-o3", (1000, 800), [0.0, 0.0, 0.5, 0.5], (0, 0, 500, 400), (1000, 800)),  # not above the original
        ("mini-o3", (1000, 800), [0.0, 0.0, 1.0, 1.0], (0, 0, 1000, 800), (1000, 800)),
        ("mini-o3", (1000, 1000), [0.5, 0.5, 0.51, 0.51], (491, 491, 519, 519), (112, 112)),  # 28 grows
        ("pixel-reasoner", (1000, 800), [0.4, 0.4, 0.6, 0.6], (300, 240, 700, 560), (400, 320)),  # 0.1 a side
        ("pixel-reasoner", (1000, 800), [400, 320, 600, 480], (300, 240, 700, 560), (400, 320)),  # a number of 1 or more
        ("pixel-reasoner", (1000, 800), [0.0, 0.0, 0.05, 0.05], (0, 0, 150, 120), (150, 120)),
    ],
)  # fmt: skip
def test_regions_and_sizes(
    name: str, size: tuple[int, int], box: list[float], region: tuple[int, ...], shown: tuple[int, int]
) -> None:
    view = shown_by(name, size, box)
    assert (view.region, view.shown) == (region, shown)


@pytest.mark.parametrize(("name", "kernel"), [("qwen3-vl", "bicubic"), ("deepeyes", "bicubic"), ("mini-o3", "lanczos")])
def test_resampling(name: str, kernel: str) -> None:
    box = [0.1, 0.1, 0.3, 0.3] if name == "mini-o3" else [100, 100, 333, 333]
    image = shown_by(name, (1000, 1000), box).image
    assert image is not None and image.edits[-1].endswith(f":{kernel}")


@pytest.mark.parametrize(
    ("name", "size", "box", "problem"),
    [
        ("deepeyes", (4000, 4000), [0, 100, 3000, 128], "aspect"),  # 107 times
        ("mini-o3", (8000, 8000), [0.0, 0.5, 0.75, 0.5035], "aspect"),  # 6000 by 28: 214 times
        ("pixel-reasoner", (100, 100), [0.5, 0.5, 0.51, 0.51], "empty"),  # 21 px with its margins
        ("pixel-reasoner", (140, 140), [0.5, 0.5, 0.5001, 0.5001], "empty"),  # 28 is not more than 28
    ],
)
def test_refusals(name: str, size: tuple[int, int], box: list[float], problem: str) -> None:
    with pytest.raises(CallError) as error:
        shown_by(name, size, box)
    assert error.value.problem == problem


def test_which_pictures_can_be_named() -> None:
    first = [first_view(Image(f"/{n}.png"), (1000, 1000), (1000, 1000)) for n in range(2)]
    crop = shown_by("mini-o3", (0, 0), [0.0, 0.0, 0.5, 0.5], first, source="original_image")
    views = [*first, crop]
    refs = [shown_by("qwen3-vl", (0, 0), [0, 0, 500, 500], views, img_idx=n).base.ref for n in (0, 1)]
    assert refs == ["/0.png", "/1.png"]
    for name, told in (
        ("qwen3-vl", {"img_idx": 2}),
        ("pixel-reasoner", {"target_image": 0}),
        ("mini-o3", {"source": "x"}),
    ):
        with pytest.raises(CallError) as error:
            shown_by(name, (0, 0), [0.0, 0.0, 0.5, 0.5], views, **told)
        assert error.value.problem == "picture"
    assert shown_by("deepeyes", (0, 0), [0, 0, 500, 500], views).base.ref == "/0.png"
    nested = shown_by("mini-o3", (0, 0), [0.0, 0.0, 0.5, 0.5], views, source="observation_1")
    assert nested.region == (0, 0, 250, 250)
    third = shown_by("pixel-reasoner", (0, 0), [0.0, 0.0, 0.9, 0.9], views, target_image=3)
    assert third.base.ref == "/0.png" and third.region[2] <= 500


@pytest.mark.parametrize(("name", "turns", "looks"), [("qwen3-vl", 21, 20), ("deepeyes", 11, 33), ("mini-o3", 13, 12), ("pixel-reasoner", 6, 12)])  # fmt: skip
def test_limits(name: str, turns: int, looks: int) -> None:
    options = Setup.of(LookOptions(dialect=name)).options
    assert (options.max_turns, options.max_looks) == (turns, looks)
