"""Every frame policy returns exactly the frames of its formula; disturbances and subtitles are what they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ConfigError, DataError
from snellen.core.types import Showing
from snellen.data.video.frame_rules import (
    MOST_FRAMES,
    RULES,
    check_showing,
    choose_frames,
    disturb,
    read_rule,
    vary_showing,
)
from snellen.data.video.reel import Reel, part_of
from snellen.data.video.unfold import Cue, cues_at, cues_between, parse_cues, parse_json_cues, write_stamp


def reel_of(frames: int, fps: float = 30.0, **more: object) -> Reel:
    """Return a film of evenly shown frames."""
    pts = tuple(round(n * 90000 / fps) for n in range(frames))
    return Reel(pts, (1, 90000), fps, 640, 360, last=1 / fps, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "frames", "expected"),
    [
        ("uniform:4", 100, [12, 37, 62, 87]),
        ("uniform:1", 100, [50]),
        ("uniform:8", 5, [0, 1, 2, 3, 4]),
        ("linspace:4", 100, [0, 33, 66, 99]),
        ("linspace:1", 100, [0]),
        ("linspace:4", 2, [0, 0, 0, 1]),
        ("vlmevalkit:4", 100, [20, 40, 60, 80]),
        ("vlmevalkit:8", 300, [33, 66, 100, 133, 166, 200, 233, 266]),
        ("mvbench:8", 101, [6, 18, 31, 44, 56, 68, 81, 94]),  # s = 12.5: 6.25 + 0, 12, 25, 38, 50, 62, 75, 88
        ("mvbench:4", 2, [0, 0, 0, 1]),
        ("vlmevalkit-fps:1", 100, [0, 30, 60]),
        ("vlmevalkit-fps:0.5", 180, [0, 60, 120]),
        ("fps:1", 100, [0, 30, 60, 90]),
        ("fps:2,max=3", 100, [16, 50, 83]),
        ("fps:0.1,min=4", 100, [12, 37, 62, 87]),
        ("fps:60", 4, [0, 1, 2, 3]),
        ("qwen:2", 300, [0, 16, 31, 47, 63, 79, 94, 110, 126, 142, 157, 173, 189, 205, 220, 236, 252, 268, 283, 299]),
        ("qwen:1", 60, [0, 20, 39, 59]),
        ("qwen:2,max=6", 3000, [0, 600, 1200, 1799, 2399, 2999]),
        ("llava:1", 100, [0, 30, 60, 90]),
        ("llava:1,max=2", 100, [0, 99]),
        ("tokens:1000,per=250", 100, [12, 37, 62, 87]),
        ("tokens:1196,patch=28", 100, [12, 37, 62, 87]),
        ("bytes:100,per=40", 100, [25, 75]),
        ("times:0;1;2.5", 100, [0, 30, 75]),
        ("all", 3, [0, 1, 2]),
    ],
)
def test_a_policy_returns_the_frames_of_its_formula(policy: str, frames: int, expected: list[int]) -> None:
    assert choose_frames(policy, reel_of(frames)) == expected


def test_keys_and_scenes_are_those_of_the_film() -> None:
    film = reel_of(10, keys=(0, 4, 8), scenes=(0.0, 0.0, 0.3, 0.0, 0.1, 0.6, 0.0, 0.0, 0.0, 0.25))
    assert choose_frames("keyframes", film) == [0, 4, 8]
    assert choose_frames("keyframes,max=2", film) == [0, 8]
    assert choose_frames("scenes", film) == [0, 2, 5, 9]
    assert choose_frames("scenes:0.5", film) == [0, 5]


@given(st.integers(1, 5000), st.integers(1, MOST_FRAMES), st.sampled_from((23.976, 25.0, 30.0, 59.94)))
def test_uniform_frames_rise_never_repeat_and_lie_in_the_film(frames: int, count: int, fps: float) -> None:
    chosen = choose_frames(f"uniform:{count}", reel_of(frames, fps))
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(count, frames)
    assert 0 <= chosen[0] <= chosen[-1] < frames


@given(
    st.sampled_from(
        ("linspace:{n}", "vlmevalkit:{n}", "llava:{n}", "fps:{n},max=64", "qwen:{n}", "vlmevalkit-fps:{n}")
    ),
    st.integers(8, 3000),
    st.integers(1, 30),
)
def test_no_policy_names_a_frame_that_is_not_there(policy: str, frames: int, number: int) -> None:
    try:
        chosen = choose_frames(policy.format(n=number), reel_of(frames))
    except DataError as refused:
        assert "shows no frame" in str(refused)
        return
    assert all(0 <= index < frames for index in chosen)
    assert chosen == sorted(chosen)


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=60), st.floats(0.1, 20))
def test_frames_a_second_are_those_shown_at_these_seconds(gaps: list[int], rate: float) -> None:
    pts = [0]
    for gap in gaps:
        pts.append(pts[-1] + gap)
    film = Reel(tuple(pts), (1, 1000), 30.0, 10, 10, last=0.033)
    chosen = choose_frames(f"fps:{rate},max={MOST_FRAMES}", film)
    for index in chosen:
        begins, ends = film.seconds[index], (*film.seconds[1:], film.duration)[index]
        assert any(begins - 1e-5 <= k / rate < ends + 1e-5 for k in range(int(begins * rate), int(ends * rate) + 2))


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("unifrom:8", "uniform"),
        ("uniform", "lacks its number"),
        ("uniform:0", "whole number from 1"),
        ("uniform:2.5", "whole number from 1"),
        ("uniform:99999", "the limit is 4096"),
        ("fps:0", "above 0"),
        ("fps:nan", "not a finite number"),
        ("fps:2,cap=8", "cap"),
        ("fps:2,max=0", "not a number above 0"),
        ("fps:2,min=9,max=3", "min is above max"),
        ("times:1;x", "not a number"),
        ("times:-1", "joined by ;"),
        ("tokens:1000", "lacks|needs what a frame costs"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(policy: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        choose_frames(policy, reel_of(100))


def test_what_shows_nothing_or_too_much_is_refused_never_capped() -> None:
    with pytest.raises(DataError, match="there is no frame at 9 s"):
        choose_frames("times:9", reel_of(30))
    with pytest.raises(DataError, match="set max="):
        choose_frames("fps:30", reel_of(5000))
    with pytest.raises(DataError, match="shows no frame"):
        choose_frames("vlmevalkit-fps:0.1", reel_of(30))
    with pytest.raises(DataError, match="does not pay for one frame"):
        choose_frames("tokens:100,per=250", reel_of(30))


def test_a_part_is_a_film_of_its_own() -> None:
    part = part_of(reel_of(100), 1.0, 2.0)
    assert (part.first, len(part.pts)) == (30, 31)
    assert part.seconds[0] == 0.0
    assert choose_frames("linspace:2", part) == [0, 30]


def test_variants_keep_the_formula_and_change_the_number() -> None:
    base = Showing(frames="vlmevalkit:8")
    assert vary_showing(base, {"frames": "32"}).frames == "vlmevalkit:32"
    assert vary_showing(base, {"fps": "2"}).frames == "fps:2"
    assert vary_showing(Showing(frames="qwen:2,max=768"), {"fps": "1"}).frames == "qwen:1,max=768"
    assert vary_showing(Showing(frames="qwen:2"), {"frames": "16"}).frames == "uniform:16"
    assert vary_showing(base, {"frames": "keyframes,max=4"}).frames == "keyframes,max=4"
    assert vary_showing(base, {"tempo": "drop:2", "subtitles": "all"}).tempo == "drop:2"
    with pytest.raises(ConfigError, match="not both"):
        vary_showing(base, {"frames": "8", "fps": "1"})
    for wrong in (Showing(route="nativ"), Showing(encoding="webp"), Showing(subtitles="some"), Showing(tempo="drop:9")):
        with pytest.raises(ConfigError):
            check_showing(wrong)


def test_every_rule_has_a_name_and_says_what_it_does() -> None:
    assert all(rule.__doc__ for rule in RULES.values())
    assert read_rule("fps:2,max=768,min=4").most == 768


@given(st.integers(1, 200), st.integers(1, 64), st.sampled_from(("drop", "freeze", "jitter")), st.integers(1, 5))
def test_disturbances_are_the_same_every_time_and_stay_in_the_film(
    frames: int, count: int, family: str, severity: int
) -> None:
    chosen = choose_frames(f"uniform:{count}", reel_of(frames))
    seen = disturb(f"{family}:{severity}", chosen, frames, seed=7)
    assert seen == disturb(f"{family}:{severity}", chosen, frames, seed=7)
    assert seen == sorted(seen)
    assert seen
    assert all(0 <= index < frames for index in seen)
    assert len(seen) == len(chosen) or family == "drop"
    assert family == "jitter" or set(seen) <= set(chosen)


SRT = """1
00:00:01,000 --> 00:00:02,500
<i>Hello</i> &amp; welcome

2
00:01:00,000 --> 00:01:01,000
{\\an8}Two
lines
"""
VTT = "WEBVTT\n\nNOTE a remark\n\nintro\n00:01.000 --> 00:02.500 align:start\n<v Ann>Hello &amp; welcome</v>\n"


def test_subtitles_of_both_kinds_are_read() -> None:
    assert parse_cues(SRT) == [Cue(1.0, 2.5, "Hello & welcome"), Cue(60.0, 61.0, "Two lines")]
    assert parse_cues(VTT) == [Cue(1.0, 2.5, "Hello & welcome")]
    cues = parse_cues(SRT.replace("\n", "\r\n"))
    assert [cue.text for cue in cues_at(cues, 1.0)] == ["Hello & welcome"]
    assert cues_at(cues, 2.5) == []
    assert [cue.text for cue in cues_between(cues, 1.5, 61)] == ["Two lines"]


def test_subtitles_as_json_are_read_and_others_refused() -> None:
    rows = '[{"start": "00:00:01.500", "end": "00:00:02.000", "line": "Hi"}, {"timestamp": [0.5, null], "text": "Oh"}]'
    assert parse_json_cues(rows, "a.json") == [Cue(0.5, 86400.5, "Oh"), Cue(1.5, 2.0, "Hi")]
    for wrong in ("{", "[1]", '[{"start": 1}]', '[{"start": "x", "end": 2, "line": "y"}]'):
        with pytest.raises(DataError, match=r"a\.json"):
            parse_json_cues(wrong, "a.json")


def test_a_stamp_says_when_a_frame_is_shown() -> None:
    assert write_stamp("[{clock}] ", 3725.25, 2) == "[01:02:05.2] "
    assert write_stamp("Frame {number} at {seconds} s: ", 12.5, 3) == "Frame 3 at 12.5 s: "
