"""What arms show of videos and documents, and from where another picture is drawn."""

from __future__ import annotations

import pytest

from snellen.core.errors import ConfigError, UsageError
from snellen.core.message_parts import all_videos
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Form, Image, Sample, Video
from snellen.core.variants import ARMS, check_arms, find_arms, first_arm, in_arms, variants_beside
from snellen.data.video.frame_rules import disturb
from snellen.kits.arms.planning import check_evidence
from snellen.prompt.build import Prompter
from snellen.prompt.controls import OtherPictures

TASK = Task("t", {"loader": "table"})


def pictured(name: str, answer: str, pictures: int = 1, group: str | None = None) -> Sample:
    images = tuple(Image(f"/p/{name}-{page}.png", page=page) for page in range(1, pictures + 1))
    options = ("cat", "dog", "cow")
    return Sample(name, "t", Form.CHOICE, f"{name}?", images, options, (answer,), group=group)


def shown(sample: Sample, variant: str, pool: list[Sample], seed: int = 0) -> list[str]:
    prompter = Prompter(TASK, Prompt(), seed, None, OtherPictures.of(pool, seed))
    return [image.ref for turn in prompter.build(sample, variant).messages for image in turn.images]


def test_another_picture_has_another_answer_group_and_number_of_pages() -> None:
    pool = [pictured(f"s{n}", ("cat", "dog", "cow")[n % 3], 1 + n % 2, f"g{n // 2}") for n in range(40)]
    for sample in pool:
        (other, *_) = shown(sample, "control=other", pool)
        name = other.split("/")[-1].split("-")[0]
        found = next(one for one in pool if one.id == name)
        assert found.answers != sample.answers and found.group != sample.group
        assert len(found.images) == len(sample.images)
        assert shown(sample, "control=other", pool) == shown(sample, "control=other", pool[::1])
    assert {tuple(shown(pool[0], "control=other", pool, seed)) for seed in range(8)} != {
        tuple(shown(pool[0], "base", pool))
    }


def test_a_question_of_more_pictures_gets_as_many() -> None:
    pool = [pictured("a", "cat", 3), pictured("b", "dog", 1)]
    assert shown(pool[0], "control=other", pool) == ["/p/b-1.png"] * 3


def test_no_other_picture_is_said() -> None:
    pool = [pictured("a", "cat"), pictured("b", "cat")]
    with pytest.raises(ConfigError, match="'a'"):
        shown(pool[0], "control=other", pool)


def test_the_page_that_answers_is_left_out() -> None:
    sample = Sample(
        "d", "t", Form.OPEN, "Where?", pictured("d", "x", 4).images, answers=("x",), meta={"needle_pages": [2, 3]}
    )
    assert shown(sample, "control=without-page", [sample]) == ["/p/d-1.png", "/p/d-4.png"]
    task = Task("t", {"loader": "table"}, variants=("base", "control=without-page"))
    check_evidence(task, [sample], None, told=True)
    with pytest.raises(UsageError, match="evidence_pages"):
        check_evidence(task, [pictured("e", "cat", 2)], None, told=True)


def test_videos_are_blanked_replaced_and_shuffled() -> None:
    films = [
        Sample(f"v{n}", "t", Form.OPEN, "What?", answers=(str(n),), videos=(Video(f"/v/{n}.mp4"),)) for n in range(3)
    ]
    prompter = Prompter(TASK, Prompt(), 0, None, OtherPictures.of(films, 0))

    def videos(variant: str) -> list[Video]:
        return [
            part
            for turn in prompter.build(films[0], variant).messages
            for part in turn.parts
            if isinstance(part, Video)
        ]

    assert all_videos(films[0])[0].ref == videos("base")[0].ref
    assert videos("control=none") == []
    assert videos("control=blank")[0].edits == ("blank",)
    assert videos("control=other")[0].ref in ("/v/1.mp4", "/v/2.mp4")
    assert videos("frames=1")[0].showing.frames == "uniform:1"
    assert videos("tempo=shuffle:5")[0].showing.tempo == "shuffle:5"


def test_shuffled_frames_are_the_same_frames_in_another_order() -> None:
    frames = list(range(0, 80, 10))
    for seed in range(30):
        seen = disturb("shuffle:5", frames, 80, seed)
        assert sorted(seen) == frames and seen != frames
    assert disturb("shuffle:5", [7], 80, 0) == [7]


def test_arms_are_variants_and_are_found_again() -> None:
    made = in_arms(("base", "wording=1"), ("picture", "none", "shuffled-options"))
    assert made == ("base", "control=none", "order=1", "wording=1", "control=none&wording=1", "order=1&wording=1")
    arms = find_arms(made)
    assert {(arm.name, arm.beside) for arm in arms} == {
        (name, beside) for name in ("none", "shuffled-options") for beside in ("base", "wording=1")
    }
    assert first_arm(arms) == "none"
    assert variants_beside(made) == set(made) - {"base", "wording=1"}
    assert find_arms(("base", "order=1")) == [] and variants_beside(("base", "order=1", "perturb=blur:2")) == set()
    assert variants_beside(("control=none",)) == set(), "alone it is the task"
    with pytest.raises(UsageError, match="order"):
        in_arms(("order=2",), ("picture", "shuffled-options"))
    check_arms(tuple(ARMS))
