"""The tool `frame`: times that a model names are frames of the film, each with its class where that cannot be."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from look_doubles import ask_all, box_call, chat, look_task, sample
from snellen.core.looks import end_of
from snellen.core.types import Form, Sample, Showing, TrialKey, Video
from snellen.data.images.decode import open_image, read_bytes
from snellen.data.video.unfold import Film, open_film
from snellen.kits.looks.films import MOST_FRAMES, Moment, find_moments, other_moment, shown_frames
from snellen.kits.looks.views import CallError
from snellen.store.reader import RunReader
from video_files import read_number, read_numbers, write_folder, write_video

pytestmark = pytest.mark.usefixtures("drawn_here")
FPS = 10
FIRST = [2, 7, 12, 17, 22, 27, 32, 37]
"""Eight frames of forty."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_video(tmp_path_factory.mktemp("film") / "a.mp4", 40, fps=FPS))


@pytest.fixture
def film(path: str) -> Film:
    return open_film(Video(path, showing=Showing(frames="uniform:2", side=96)))


def asked(of: Film, views: Any = (), **arguments: Any) -> list[Moment]:
    return find_moments(arguments, [of], views)


def numbers(moments: list[Moment]) -> list[int]:
    return [read_numbers(read_bytes(moment.look.image)) for moment in moments if moment.look.image is not None]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"seconds": 0}, [0]),
        ({"seconds": 1.54}, [15]),
        ({"seconds": "1.56"}, [16]),
        ({"seconds": 4.0}, [39]),
        ({"first": 1, "last": 2, "count": 3}, [10, 15, 20]),
        ({"first": 2, "last": 1, "count": 2}, [10, 20]),
        ({"first": 1, "last": 2, "count": 1}, [15]),
        ({"first": 1, "last": 1.1, "count": 8}, [10, 11]),
        ({"first": 0, "last": 3.5}, [0, 5, 10, 15, 20, 25, 30, 35]),
        ({"seconds": 4.1, "film": 1}, [39]),
    ],
)
def test_the_frames_nearest_to_the_times_are_shown_in_their_own_size(
    film: Film, arguments: dict[str, Any], wanted: list[int]
) -> None:
    found = asked(film, **arguments)
    assert numbers(found) == wanted and len(found) <= MOST_FRAMES
    for place, moment in enumerate(found, 1):
        image = moment.look.image
        assert image is not None and image.frame is not None and open_image(image).size == (192, 96)
        assert moment.look.shown == place and f"{image.frame.seconds:.2f} s" in moment.look.told
    outside = arguments.get("seconds") == 4.1
    assert found[0].look.notes == (("swapped",) if arguments.get("first") == 2 else ("clamped",) * outside)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "schema"),
        ({"seconds": "soon"}, "schema"),
        ({"seconds": float("nan")}, "schema"),
        ({"seconds": 1, "first": 0, "last": 2}, "schema"),
        ({"first": 1}, "schema"),
        ({"first": 0, "last": 3, "count": 9}, "schema"),
        ({"first": 0, "last": 3, "count": 0}, "schema"),
        ({"first": 0, "last": 3, "count": 1.5}, "schema"),
        ({"seconds": -1}, "frame"),
        ({"seconds": 4.3}, "frame"),
        ({"first": 1, "last": 1e300, "count": 2}, "frame"),
        ({"seconds": 1, "film": 2}, "picture"),
        ({"seconds": 1, "film": "first"}, "schema"),
    ],
)
def test_what_cannot_be_a_frame_has_its_class(film: Film, arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(CallError) as error:
        asked(film, **arguments)
    assert error.value.problem == problem


def test_a_frame_is_shown_once_but_again_where_it_was_smaller(path: str, film: Film) -> None:
    small = shown_frames(film)
    assert [view.shown for view in small] == [(96, 48)] * 2 and {view.size for view in small} == {(192, 96)}
    (again,) = asked(film, small, seconds=1.0)
    assert again.look.shown == 3 and again.view.base == small[0].base
    with pytest.raises(CallError) as error:
        asked(film, [*small, again.view], seconds=1.01)
    assert error.value.problem == "repeat"
    new = asked(film, [*small, again.view], first=1, last=2, count=2)
    assert numbers(new) == [20] and new[0].look.shown == 4
    large = open_film(Video(path, showing=Showing(frames="uniform:2")))
    with pytest.raises(CallError, match="shown already"):
        asked(large, shown_frames(large), seconds=1.0)


def test_a_part_and_a_folder_are_films_too(path: str, tmp_path: Path) -> None:
    part = open_film(Video(path, start=1.0, end=2.0))
    assert numbers(asked(part, seconds=1.5)) == [15]
    with pytest.raises(CallError, match=r"from 1\.00 to 2\.10 s"):
        asked(part, seconds=0.5)
    folder = open_film(Video(str(write_folder(tmp_path / "clip", range(12))), fps=2, showing=Showing(side=96)))
    found = asked(folder, seconds=2.6)
    assert numbers(found) == [5] and found[0].view.shown == (192, 96)
    image = found[0].look.image
    assert image is not None
    elsewhere = other_moment(image, [part, folder], random.Random(1))
    assert elsewhere is not None and abs(read_number(open_image(elsewhere)) - 5) > 3


def question(path: str) -> Sample:
    """Return a question about a film, of which eight frames are shown."""
    return Sample("0", "t", Form.OPEN, "Which?", answers=("15",), videos=(Video(path),))


def seen_in(message: dict[str, Any]) -> list[int]:
    parts = message["content"] if isinstance(message["content"], list) else []
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [read_numbers(base64.b64decode(url.partition(",")[2])) for url in urls]


def two_calls(body: dict[str, Any], number: int) -> Any:
    """Ask for a span of frames, then zoom into the second of them, then say what was seen."""
    results = sum(message["role"] == "tool" for message in body["messages"])
    if "tools" not in body or results == 2:
        return chat(json.dumps([seen_in(message) for message in body["messages"]]))
    span = ("frame", json.dumps({"first": 1.0, "last": 1.5, "count": 2}))
    return chat(None, [span if results == 0 else box_call(0, 0, 1000, 500, picture=10)])


def test_frames_are_pictures_that_can_be_looked_at_again_in_every_arm(path: str, tmp_path: Path) -> None:
    arms = ("base", "plain", "none", "grey", "elsewhere", "whole")
    task = look_task({"tools": ("frame", "zoom")}, arms)
    ask_all(tmp_path / "run", two_calls, task, [question(path)])
    with RunReader(tmp_path / "run") as reader:
        trials = {trial.prediction.key.variant: trial.prediction for trial in reader.trials("t")}
        turns = reader.turns(TrialKey("t", "0"))
    end = end_of(trials["base"])
    assert end is not None and (end.end, end.calls, end.looks, end.classes) == ("answered", 2, 2, {})
    shown = json.loads(trials["base"].text or "")
    assert shown[0] == FIRST and shown[3] == [10, 15]
    looks = [look for turn in turns for look in turn.looks]
    assert [(look.tool, look.shown, look.region) for look in looks] == [
        ("frame", 9, None),
        ("frame", 10, None),
        ("zoom", 11, (0, 0, 192, 48)),
    ]
    crop = looks[2].image
    assert crop is not None and crop.ref == path and crop.frame is not None and crop.frame.index == 15
    elsewhere = json.loads(trials["look=elsewhere"].text or "")[3]
    assert len(elsewhere) == 2 and all(abs(one - other) > 10 for one, other in zip(elsewhere, (10, 15), strict=True))
    assert json.loads(trials["look=none"].text or "")[3] == []
    assert json.loads(trials["look=plain"].text or "") == [FIRST]
    again = ask_all(tmp_path / "run", lambda body, number: (500, {}), task, [question(path)])
    assert again.bodies == [] and again.state.resumed == 6


def test_without_a_film_or_with_its_time_disturbed_there_is_no_frame(path: str, tmp_path: Path) -> None:
    def call(body: dict[str, Any], number: int) -> Any:
        return chat(None, [("frame", '{"seconds": 1}')]) if number == 0 else chat("none")

    task = look_task({"tools": ("frame",)})
    ask_all(tmp_path / "pictures", call, task, [sample(tmp_path)])
    with RunReader(tmp_path / "pictures") as reader:
        (trial,) = reader.trials("t")
    assert (end_of(trial.prediction) or pytest.fail()).classes == {"picture": 1}
    ask_all(tmp_path / "run", call, replace(task, variants=("tempo=shuffle:5",)), [question(path)])
    with RunReader(tmp_path / "run") as reader:
        (trial,) = reader.trials("t")
    assert trial.prediction.failure is not None and "tempo=shuffle:5" in trial.prediction.failure.message
