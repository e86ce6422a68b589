"""No run mixes two contents of one picture: what was sent is known by name, page, edits and frame."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from snellen.core.errors import RunMismatch
from snellen.core.types import Image, ImageSent, Turn
from snellen.store.picture_ledger import SAMPLED, PictureLedger


def sent(letter: str) -> ImageSent:
    return ImageSent(letter * 64, "image/png", 1, 1, 1)


def row(images: list[Image], letters: str) -> tuple[bytes, bytes]:
    request = msgspec.json.encode({"messages": [Turn("user", "Q?", tuple(images))]})
    return request, msgspec.json.encode({"images": [sent(letter) for letter in letters]})


def test_another_content_of_a_sent_picture_is_refused_by_name() -> None:
    here, page = Image("/d/a.png"), Image("/d/a.pdf", page=2)
    ledger = PictureLedger([row([here, page], "ab"), row([here], "a")])
    assert len(ledger) == 2
    ledger.check_sent([(here, sent("a")), (page, sent("b"))])
    others = [Image("/d/b.png"), Image("/d/a.pdf", page=3), Image("/d/a.png", edits=("crop:0,0,1,0.5",))]
    ledger.check_sent([(other, sent("c")) for other in others])
    for image, letter in ((here, "b"), (page, "a")):
        with pytest.raises(RunMismatch, match=image.ref):
            ledger.check_sent([(image, sent(letter))])


def test_what_is_no_record_of_pictures_teaches_nothing() -> None:
    a, b = Image("/d/a.png"), Image("/d/b.png")
    ledger = PictureLedger([row([a, b], "a"), (b"{}", b'{"text": "no picture"}'), row([], "")])
    assert len(ledger) == 0, "of which of two pictures the one record is, is not known"
    ledger.check_sent([(a, sent("c")), (b, sent("c"))])


def test_the_first_record_stays_and_pictures_in_the_request_are_not_looked_at_again() -> None:
    inside, file = Image("data:image/png;base64,AAAA"), Image("/d/a.png")
    ledger = PictureLedger([row([inside, file], "ab"), row([file], "c")])
    assert ledger.some == {file: "b" * 64}
    with pytest.raises(RunMismatch, match="data: URL"):
        ledger.check_sent([(inside, sent("b"))])
    with pytest.raises(RunMismatch):
        ledger.check_sent([(file, sent("c"))])


def test_the_first_few_pictures_are_looked_at_again_and_all_that_were_touched_since(tmp_path: Path) -> None:
    files = [tmp_path / f"{number:03}.png" for number in range(SAMPLED + 3)]
    for file in files:
        file.write_bytes(b"")
        os.utime(file, (1_000, 1_000))
    images = [Image(str(file)) for file in files]
    rows = [row([image], "a") for image in images]
    assert list(PictureLedger(rows).some) == images[:SAMPLED]
    began = files[0].stat().st_ctime + 10.0
    os.utime(files[-1], (began + 5.0, began + 5.0))
    os.utime(files[-2], (began, began))
    files[-3].unlink()
    assert list(PictureLedger(rows, since=began).some) == [*images[:SAMPLED], images[-2], images[-1]]
