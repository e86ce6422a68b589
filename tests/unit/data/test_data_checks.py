"""Checks: every planted defect is found and named, and clean data has no finding."""

from __future__ import annotations

import random
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image as Pillow

from snellen.core.errors import DataError
from snellen.core.types import Form, Image, Sample
from snellen.data.checks import check_options, check_samples

WORDS = [
    f"{a}{b}" for a in ("ba", "co", "di", "fu", "ga", "he", "jo", "ka") for b in ("ron", "lta", "ske", "mer", "cki")
]


@pytest.fixture
def clean(tmp_path: Path) -> list[Sample]:
    draw = random.Random(4)
    samples = []
    for number in range(200):
        path = tmp_path / f"{number}.png"
        Pillow.new("RGB", (4, 4), (number, 9, 9)).save(path)
        options = tuple(draw.sample(WORDS, 4))
        samples.append(
            Sample(
                f"s{number}",
                "d",
                Form.CHOICE,
                f"Which {number}?",
                (Image(str(path)),),
                options,
                (draw.choice(options),),
            )
        )
    return samples


def found(samples: list[Sample], **settings: Any) -> dict[str, Any]:
    return {finding.check: finding for finding in check_samples(samples, **({"licence": "CC0"} | settings)).findings}


def change(samples: list[Sample], number: int, **fields: Any) -> list[Sample]:
    copy = list(samples)
    copy[number] = msgspec.structs.replace(copy[number], **fields)
    return copy


def test_clean_data_has_no_finding(clean: list[Sample]) -> None:
    report = check_samples(clean, "CC0")
    assert report.findings == ()
    assert report.errors == 0
    assert sum(report.positions.values()) == report.samples == 200
    blind = report.figures["blind"]
    assert blind["ci95"][0] <= blind["value"] <= blind["ci95"][1]
    assert blind["ci95"][0] <= blind["chance"] + 0.15


@pytest.mark.parametrize(
    ("fields", "check", "level"),
    [
        ({"question": "  "}, "question", "error"),
        ({"answers": ()}, "answer", "error"),
        ({"options": ("one",), "answers": ("one",)}, "options", "error"),
        ({"options": ("two", "2", "three"), "answers": ("two",)}, "unique", "error"),
        ({"options": ("The cat", "cat", "dog"), "answers": ("dog",)}, "unique", "error"),
        ({"answers": ("elsewhere",)}, "label", "error"),
        ({"options": ("", "b"), "answers": ("b",)}, "answer", "error"),
        ({"id": "s3"}, "ids", "error"),
        ({"images": (Image("/nowhere/x.png"),)}, "images", "error"),
        ({"images": ()}, "images", "warning"),
    ],
)
def test_defects(clean: list[Sample], fields: dict[str, Any], check: str, level: str) -> None:
    finding = found(change(clean, 7, **fields))[check]
    assert (finding.level, finding.count) == (level, 1)
    assert finding.examples == (fields.get("id", "s7"),)


def test_broken_and_changed_pictures(clean: list[Sample], tmp_path: Path) -> None:
    (tmp_path / "7.png").write_bytes(b"\x89PNG cut")
    assert found(clean)["images"].message == "1 samples have a picture that is broken or changed"
    wrong = change(clean, 8, images=(Image(clean[8].images[0].ref, sha256="0" * 64),))
    assert found(wrong)["images"].examples == ("s7", "s8")
    assert "images" not in found(wrong, images=False)


def test_duplicates(clean: list[Sample]) -> None:
    twin = msgspec.structs.replace(clean[3], id="twin", options=clean[3].options[::-1])
    finding = found([*clean, twin])["duplicates"]
    assert finding.examples == ("twin",)


def test_licence(clean: list[Sample]) -> None:
    assert found(clean, licence="")["licence"].level == "warning"


def test_position_bias(clean: list[Sample]) -> None:
    last = [msgspec.structs.replace(sample, answers=(sample.options[3],)) for sample in clean]
    assert "0%, 0%, 0%, 100%" in found(last)["position"].message


def test_length_bias(clean: list[Sample]) -> None:
    longest = [
        msgspec.structs.replace(
            sample,
            options=(*sample.options[:3], sample.options[3] + " and so on"),
            answers=(sample.options[3] + " and so on",),
        )
        for sample in clean
    ]
    assert found(longest)["longest"].message.startswith("taking the longest option is right 100%")


def test_punctuation_bias(clean: list[Sample]) -> None:
    ended = []
    for sample in clean:
        options = tuple(option + "." if option == sample.answers[0] else option for option in sample.options)
        ended.append(msgspec.structs.replace(sample, options=options, answers=(sample.answers[0] + ".",)))
    assert "punctuated" in found(ended)


def test_blind_bias(clean: list[Sample]) -> None:
    favourite = [
        msgspec.structs.replace(sample, options=("mostly", *sample.options[1:]), answers=("mostly",))
        if number % 3
        else sample
        for number, sample in enumerate(clean)
    ]
    assert "never sees the picture" in found(favourite)["blind"].message


def test_label_balance(clean: list[Sample]) -> None:
    answers = ["yes"] * 170 + ["no"] * 30
    yes_no = [
        msgspec.structs.replace(sample, options=("yes", "no"), answers=(answer,))
        for sample, answer in zip(clean, answers, strict=True)
    ]
    assert "85% are 'yes'" in found(yes_no)["balance"].message
    even = [
        msgspec.structs.replace(sample, options=("yes", "no"), answers=(("yes", "no")[number % 2],))
        for number, sample in enumerate(clean)
    ]
    assert "balance" not in found(even)


@pytest.mark.parametrize(
    ("options", "answer", "message"),
    [
        (("a",), "a", "at least two"),
        (("Two", "2", "the two"), "2", "all options are equal after normalising"),
        (("a1", "b1"), "c1", "not among the options"),
    ],
)
def test_options_that_cannot_be_asked(options: tuple[str, ...], answer: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_options("7", options, answer)


def test_a_guess_that_is_right_half_of_the_time_has_the_wilson_interval_and_one_never_made_has_none() -> None:
    questions = [f"Is picture {number} sharp?" for number in range(30)]
    samples = [
        Sample(
            str(number),
            "t",
            Form.CHOICE,
            text,
            options=("yes", "not at all"),
            answers=(("yes", "not at all")[number % 2],),
        )
        for number, text in enumerate(questions)
    ]
    figures = check_samples(samples, "CC0", images=False).figures
    low, high = figures["longest"]["ci95"]
    assert (round(low, 4), round(high, 4)) == (0.3315, 0.6685)
    assert figures["punctuated"]["value"] is None
    assert figures["punctuated"]["ci95"] == [0.0, 1.0]


def _numbers(answer: str, wrong: list[str], number: int) -> Sample:
    options = tuple(sorted([answer, *wrong], key=lambda text: (zlib.crc32(f"{number}{text}".encode()), text)))
    return Sample(
        str(number), "d", Form.CHOICE, f"How many are in picture {number}?", options=options, answers=(answer,)
    )


def test_a_way_of_writing_that_only_answers_have_is_found() -> None:
    """Answers were words and wrong options digits: anyone could tell them apart, and nothing wrong was found."""
    words = ("one", "two", "three", "four", "five", "six")
    leaky = [_numbers(words[i % 6], [str(i % 6 + k) for k in (2, 3, 4)], i) for i in range(60)]
    report = check_samples(leaky, "CC0", images=False)
    assert report.figures["wording"]["value"] == 1.0
    assert {"wording", "kinds"} <= {finding.check for finding in report.findings}
    fair = [_numbers(words[i % 6], [words[(i + k) % 6] for k in (1, 2, 3)], i) for i in range(60)]
    fair_report = check_samples(fair, "CC0", images=False)
    assert fair_report.figures["wording"]["value"] < 0.45
    assert not {"wording", "kinds"} & {finding.check for finding in fair_report.findings}


def test_ten_samples_are_drawn_for_a_person_to_read() -> None:
    samples = [_numbers("one", ["two", "three", "four"], i) for i in range(40)]
    report = check_samples(samples, "CC0", images=False)
    assert len(report.excerpts) == 10
    assert report.excerpts == check_samples(samples, "CC0", images=False).excerpts, "the same at every look"
    assert [excerpt.id for excerpt in report.excerpts] != [sample.id for sample in samples[:10]]
    assert report.excerpts[0].answers == ("one",)
    assert len(check_samples(samples[:3], "CC0", images=False).excerpts) == 3
