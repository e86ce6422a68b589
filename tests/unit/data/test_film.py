"""Drawn films show what their script says, when it says; their questions have one right answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.config import convert
from snellen.core.errors import ConfigError
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Form
from snellen.data.catalog import Catalog
from snellen.data.video.unfold import REELS
from snellen.kits.films.loader import BOXES, COLOURS, KINDS, FilmSource, Script, Thing, load, paint, write_film

LEVELS = {"needle": 2, "order": 4, "count": 3, "direction": 2, "speed": 2, "permanence": 3, "change": 1}


@pytest.mark.parametrize("kind", list(KINDS))
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_a_story_has_one_right_answer_and_is_the_same_every_time(kind: str, seed: int) -> None:
    told = KINDS[kind](seed, 8.0, LEVELS[kind], 0.5)
    assert told == KINDS[kind](seed, 8.0, LEVELS[kind], 0.5)
    assert len(told.answers) == 1
    if told.options:
        assert told.options.count(told.answers[0]) == 1
        assert len(set(told.options)) == len(told.options) >= 2
    assert all(0 <= thing.start < thing.end <= told.script.seconds + 1 for thing in told.script.things)


def test_our_cards_group_by_what_their_films_have() -> None:
    catalog, cards = Catalog(), ("needle", "flash", "order", "count", "direction", "speed", "permanence", "change")
    for task in (catalog.task(f"video-{name}") for name in cards):
        source = convert(task.dataset, FilmSource, task.name)
        film = KINDS[source.kind](0, source.lengths[0], source.levels[0], source.depths[0])
        assert {*task.group_by} <= {*film.tags}, task.name


def test_answers_are_what_the_pictures_show() -> None:
    for seed in range(20):
        told = KINDS["count"](seed, 8.0, 3, 0.5)
        red = [thing for thing in told.script.things if thing.colour == COLOURS["red"]]
        assert told.answers == (str(len(red)),)
        told = KINDS["order"](seed, 8.0, 4, 0.5)
        cards = sorted(told.script.things, key=lambda thing: thing.start)
        assert told.answers == (", ".join(card.text for card in cards),)
        told = KINDS["speed"](seed, 8.0, 2, 0.5)
        reach = {thing.colour: abs((thing.goal or thing.place)[0] - thing.place[0]) for thing in told.script.things}
        fastest = max(reach, key=lambda colour: reach[colour])
        assert told.answers == (f"the {next(name for name, code in COLOURS.items() if code == fastest)} disc",)


def test_a_film_drawn_again_has_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("av")
    script = KINDS["needle"](7, 8.0, 2, 0.1).script
    first, *others = [write_film(script, tmp_path / str(number), "film").read_bytes() for number in range(3)]
    assert others == [first, first]


def test_the_ball_is_where_following_its_box_ends() -> None:
    for seed in range(30):
        told = KINDS["permanence"](seed, 8.0, 3, 0.5)
        ball, *boxes = told.script.things
        x = (ball.goal or ball.place)[0]
        moves = sorted((box for box in boxes if box.start > 0), key=lambda box: (box.start, box.end))
        for _ in range(len(moves)):
            step = next((box for box in moves if box.place == (x, ball.goal[1] if ball.goal else 0) and box.goal), None)
            if step is None:
                break
            moves = [box for box in moves if box.start >= step.end - 1e-9]
            at = step.goal or step.place
            if at[1] != (ball.goal or ball.place)[1]:  # lifted: it comes down again
                step = next(box for box in moves if box.place == at)
                moves = [box for box in moves if box.start >= step.end - 1e-9]
                at = step.goal or step.place
            x = at[0]
        assert told.answers == (f"the {next(name for name, place in BOXES.items() if place == x)} box",)


def test_a_thing_is_seen_from_its_start_until_its_end() -> None:
    disc = Thing("disc", 1.0, 2.0, (0.5, 0.5), colour="#ff0000")
    script = Script(3.0, (disc,), scenery=False)
    red = [paint(script, second).getpixel((240, 135)) == (255, 0, 0) for second in (0.9, 1.0, 1.9, 2.0)]
    assert red == [False, True, True, False]
    moving = Thing("disc", 0, 4, (0.0, 0.5), (1.0, 0.5))
    assert moving.at(1) == (0.25, 0.5)


def test_a_film_has_the_frames_of_its_script_and_is_written_once(tmp_path: Path) -> None:
    script = KINDS["needle"](3, 2.0, 1.0, 0.5).script
    path = write_film(script, tmp_path, "a")
    written = path.stat().st_mtime_ns
    assert write_film(script, tmp_path, "a").stat().st_mtime_ns == written
    reel = REELS.of_file(str(path), scenes=False)
    assert (len(reel.pts), reel.width, reel.height) == (24, 480, 270)
    assert reel.duration == pytest.approx(2.0)


def film_task(**dataset: object) -> Task:
    return Task("films", {"loader": "film", **dataset}, Form.OPEN)


def test_the_loader_yields_the_whole_grid_with_its_tags(tmp_path: Path) -> None:
    task = film_task(films=1, lengths=[1.0, 2.0], levels=[0.5], depths=[0.0, 1.0])
    samples = list(load(task, LoadContext(workdir=tmp_path)))
    assert [(s.tags["length"], s.tags["depth"]) for s in samples] == [(1.0, 0.0), (1.0, 1.0), (2.0, 0.0), (2.0, 1.0)]
    assert samples[3].meta["needle_seconds"] == [1.5, 2.0]
    assert samples == list(load(task, LoadContext(workdir=tmp_path)))


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        ({"kind": "neddle"}, "needle"),
        ({"films": 0}, "at least 1"),
        ({"depths": [1.5]}, "between 0 and 1"),
        ({"levels": [9.0]}, "below the shortest film, 8"),
        ({"kind": "order", "levels": [2]}, "3 to 10 words"),
        ({"kind": "count", "levels": [1.5]}, "whole numbers"),
        ({"kind": "speed", "levels": [1.0]}, "ratios above 1"),
        ({"lengths": [100000.0]}, "at most at 3600 s"),
    ],
)
def test_what_cannot_be_drawn_is_refused(dataset: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        next(load(film_task(**dataset), LoadContext()))
