"""Embedded images become files: each content once, named by its hash, and what is none is refused by its place."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pybase64
import pytest

from snellen.core.errors import DataError, EnvironmentProblem
from snellen.data.images.embedded import ImageStore, suffix_of

PNG = b"\x89PNG\r\n\x1a\n and so on"


def test_equal_images_are_one_file_however_they_are_written(tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "new" / "folder")
    text = pybase64.b64encode(PNG).decode()
    images = [
        store.put(PNG),
        store.put_base64(text, "row 1"),
        store.put_base64(f"data:image/png;base64,{text}", "row 2"),
    ]
    digest = sha256(PNG).hexdigest()
    assert {image.ref for image in images} == {str(tmp_path / "new" / "folder" / f"{digest}.png")}
    assert images[0].sha256 == digest
    assert Path(images[0].ref).read_bytes() == PNG
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 1


@pytest.mark.parametrize(
    ("data", "suffix"),
    [(b"\xff\xd8\xff", ".jpg"), (b"GIF89a", ".gif"), (b"RIFF....WEBP", ".webp"), (b"MM\0*", ".tif"), (b"?", ".img")],
)
def test_the_ending_is_that_of_the_content(data: bytes, suffix: str) -> None:
    assert suffix_of(data) == suffix


def test_what_is_no_base64_is_refused_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"row 7: .*neither a file nor valid base64"):
        ImageStore(tmp_path).put_base64("cat.png", "row 7")


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem, match="cannot store"):
        ImageStore(tmp_path / "file" / "folder").put(PNG)
