"""Subtitles as WebVTT: our own reader finds the same texts and times again, whatever the texts hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snellen.data.video.unfold import parse_cues
from snellen.report.viewer.video_line import caption_track, clock_stamp

WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1).map(
    lambda text: " ".join(text.split())
)
SPANS = st.tuples(st.integers(0, 10**7), st.integers(1, 10**5), WORDS.filter(bool))


@given(st.lists(SPANS, max_size=6))
def test_texts_and_times_come_back_as_they_were(spans: list[tuple[int, int, str]]) -> None:
    record = {"subtitles": [[start / 1000, (start + length) / 1000, text] for start, length, text in spans]}
    found = [(round(cue.start * 1000), round(cue.end * 1000), cue.text) for cue in parse_cues(caption_track(record))]
    assert sorted(found) == sorted((start, start + length, text) for start, length, text in spans)


def test_no_text_is_markup_or_another_cue() -> None:
    hostile = "<script>x</script>\n\n00:00:01.000 --> 00:00:02.000\nsecond & more"
    track = caption_track({"subtitles": [[0, 1, hostile]]})
    assert track.count("-->") == 1
    assert "<" not in track
    assert "&amp; more" in track
    (cue,) = parse_cues(track)
    assert cue.text == " ".join(hostile.split())


def test_a_moment_is_written_with_hours_and_a_cue_without_length_is_kept() -> None:
    assert clock_stamp(3723.4567) == "01:02:03.457"
    assert clock_stamp(-1) == "00:00:00.000"
    assert "00:00:05.000 --> 00:00:05.001" in caption_track({"subtitles": [[5, 5, "flash"]]})
    assert caption_track({}) == "WEBVTT\n"
