"""What crosses the line arrives as it left; what is malformed costs one request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import PIL.Image
import pytest

from snellen.core.errors import EnvironmentProblem, FailureKind, ModelError, SnellenError, StopRun, UsageError
from snellen.core.protocols import ImagePolicy
from snellen.core.types import Image, Likelihood, Prediction, Request, TrialKey, Turn
from snellen.data.images.decode import open_image
from snellen.data.images.encode import ImageDoor
from snellen.kits.scale.items import (
    FileCache,
    Outcome,
    Question,
    Result,
    WorkItem,
    pack_lease,
    read_lease,
    read_outcomes,
    unpack_requests,
    write_outcomes,
    write_wire_error,
)

KEY = TrialKey("t", "1")
QUESTION = Question(Request(KEY, (Turn("user", "?"),)), {})


def returned(result: Result, item: Question | WorkItem = QUESTION) -> Result:
    (outcome,) = read_outcomes(write_outcomes([(7, result)]))
    assert outcome.number == 7
    return item.read(outcome)


def test_a_prediction_arrives_as_it_left() -> None:
    prediction = Prediction(KEY, loglikelihoods=(-1.25, -0.1), detail={"route": "tree", "tokens": [1, 2]})
    assert returned(prediction) == prediction


@pytest.mark.parametrize(
    "error",
    [
        ModelError(FailureKind.RATE, "slow down", status=429, retryable=True, retry_after_s=7.5, detail={"a": 1}),
        StopRun(FailureKind.AUTH, "no key", status=401),
        EnvironmentProblem("no disk"),
        UsageError("no such model"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_arrives_with_all_that_steers_the_engine(error: SnellenError) -> None:
    back = returned(error)
    assert isinstance(back, SnellenError)
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)
    assert back.exit_code == error.exit_code


def test_a_missing_extra_arrives_as_what_it_is_about() -> None:
    from snellen.core.errors import MissingExtra

    back = write_wire_error(MissingExtra("hf", "a local model")).revive()
    assert isinstance(back, EnvironmentProblem)
    assert "snellen[hf]" in str(back)


@pytest.mark.parametrize("content", [b"", b"\xc1", msgspec.msgpack.encode({"key": ["t"]}), msgspec.msgpack.encode(5)])
def test_a_malformed_prediction_fails_its_own_request(content: bytes) -> None:
    found = QUESTION.read(Outcome(1, msgspec.Raw(content)))
    assert isinstance(found, ModelError)
    assert found.kind is FailureKind.DECODE
    assert str(found).startswith("a replica gave a malformed result: ")


def test_a_prediction_of_wrong_types_or_of_another_trial_is_malformed() -> None:
    wrong = Prediction(KEY, text=5)  # type: ignore[arg-type]
    assert "malformed" in str(returned(wrong))
    assert "it answers trial '2', not '1'" in str(returned(Prediction(TrialKey("t", "2"), text="A")))
    assert "malformed" in str(returned(Prediction(KEY, text="A", detail={"x": object()})))


def test_work_travels_as_its_bytes_each_content_once() -> None:
    packed, contents = pack_lease([(1, WorkItem("page 1", b"same")), (2, WorkItem("page 2", b"same"))])
    assert [content.data for content in contents] == [b"same"]
    assert read_lease(packed).work == ((1, 0), (2, 0))


def test_the_result_of_work_arrives_as_it_left_and_nothing_else_passes_for_one() -> None:
    item = WorkItem("page 1", b"x")
    assert returned(b"\x00\xff", item) == b"\x00\xff"
    assert isinstance(returned(EnvironmentProblem("no disk"), item), EnvironmentProblem)
    assert "malformed" in str(returned(Prediction(KEY, text="A"), item)), "a reply is no result of work"
    assert "malformed" in str(returned(b"A")), "and bytes are no reply"


def test_pictures_travel_once_and_files_keep_their_pixels(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "a.jpg"
        PIL.Image.effect_noise((80, 60), 90).convert("RGB").save(path, quality=90)
        whole, part = Image(str(path)), Image(str(path), edits=("crop:0,0,0.5,0.5",))
        turns = (Turn("user", "?", (whole, part)),)
        request = Request(KEY, turns, likelihood=Likelihood(baseline=turns))
        images = dict(await ImageDoor().encode_all(request, ImagePolicy()))
        lease = [(3, Question(request, images, await FileCache().files_of(images)))] * 2
        packed, contents = pack_lease(lease)
        assert len(contents) == 2, "the file, which is also what is sent of it, and the cut-out"
        path.unlink()  # a node without the data
        (_, there, pictures), _ = unpack_requests(read_lease(packed), [one.data for one in contents])
        assert [image.edits for image in there.messages[0].images] == [(), part.edits]
        assert there.likelihood.baseline == there.messages
        assert {image.ref[:23] for image in there.messages[0].images} == {"data:image/jpeg;base64,"}
        assert [pictures[image].sent for image in there.messages[0].images] == [images[whole].sent, images[part].sent]
        return open_image(there.messages[0].images[1])

    path = tmp_path / "b.jpg"
    PIL.Image.effect_noise((80, 60), 90).convert("RGB").save(path, quality=90)
    assert asyncio.run(main()).size == (40, 30)


def test_a_file_that_is_gone_is_a_typed_failure(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "a.png"
        PIL.Image.new("RGB", (8, 8)).save(path)
        images = {Image(str(path)): await ImageDoor().encode(Image(str(path)), ImagePolicy())}
        path.unlink()
        with pytest.raises(ModelError, match="does not exist"):
            await FileCache().files_of(images)

    asyncio.run(main())
