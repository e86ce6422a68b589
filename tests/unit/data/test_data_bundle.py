"""Bundles: what goes in comes out, whatever the format; a changed, cut or escaping bundle is refused."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from PIL import Image as Pillow

from snellen.core.errors import DataError, MissingExtra, UsageError
from snellen.core.types import Form, Image, Sample, Turn
from snellen.data.files.bundle import MANIFEST, read_bundle, read_manifest, write_bundle


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    for name, colour in (("a", "red"), ("b", "blue"), ("copy", "red")):
        Pillow.new("RGB", (20, 10), colour).save(tmp_path / f"{name}.png")
    names = ("a", "b", "copy", "a")
    return [
        Sample(
            id=f"s{number}",
            dataset="d",
            form=Form.CHOICE,
            question=f"Which {number}?",
            images=(Image(str(tmp_path / f"{name}.png"), edits=("crop:0,0,0.5,0.5",) if number == 3 else ()),),
            options=("x", "ÿ"),
            answers=("ÿ",),
            turns=(Turn("user", "hi"), Turn("assistant", "yo")),
            group="g",
            tags={"k": 1.5},
            meta={"distractors": {"x": {"source": "s"}}},
        )
        for number, name in enumerate(names)
    ]


@pytest.mark.parametrize("parquet", [False, True])
def test_round_trip(samples: list[Sample], tmp_path: Path, parquet: bool) -> None:
    if parquet:
        pytest.importorskip("pyarrow")
    out = tmp_path / "bundle"
    manifest = write_bundle(iter(samples), out, parquet, name="d", licence="CC0")
    assert (manifest.samples, manifest.images) == (4, 2)
    assert len(list((out / "images").iterdir())) == 2
    found = list(read_bundle(out))
    assert [msgspec.structs.replace(each, images=()) for each in found] == [
        msgspec.structs.replace(each, images=()) for each in samples
    ]
    assert found[3].images[0].edits == ("crop:0,0,0.5,0.5",)
    assert (found[0].images[0].width, found[0].images[0].height) == (20, 10)
    assert Path(found[0].images[0].ref).is_file()
    assert read_manifest(out).licence == "CC0"


def test_the_same_samples_give_the_same_bytes(samples: list[Sample], tmp_path: Path) -> None:
    first, second = (write_bundle(iter(samples), tmp_path / name, name="d") for name in ("one", "two"))
    assert first.items_sha256 == second.items_sha256
    moved = (tmp_path / "one").rename(tmp_path / "elsewhere")
    assert len(list(read_bundle(moved))) == 4


def test_a_failed_build_leaves_nothing(samples: list[Sample], tmp_path: Path) -> None:
    broken = msgspec.structs.replace(samples[1], id="bad", images=(Image(str(tmp_path / "none.png")),))
    with pytest.raises(DataError, match=r"record 2 \(bad\): image .*does not exist"):
        write_bundle(iter([samples[0], broken]), tmp_path / "bundle", name="d")
    assert not (tmp_path / "bundle").exists()
    assert not list(tmp_path.glob(".*part"))


def test_a_broken_picture_names_its_record(samples: list[Sample], tmp_path: Path) -> None:
    (tmp_path / "b.png").write_bytes(b"not a picture")
    with pytest.raises(DataError, match=r"record 2 \(s1\)"):
        write_bundle(iter(samples), tmp_path / "bundle", name="d")


def test_repeated_ids_are_refused(samples: list[Sample], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="record 2: id 's0' occurs twice"):
        write_bundle(iter([samples[0], samples[0]]), tmp_path / "bundle", name="d")


def test_other_folders_are_not_overwritten(samples: list[Sample], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a bundle"):
        write_bundle(iter(samples), tmp_path, name="d")
    write_bundle(iter(samples), tmp_path / "bundle", name="d")
    again = write_bundle(iter(samples[:1]), tmp_path / "bundle", name="d")
    assert again.samples == 1


def test_changed_items_are_refused(samples: list[Sample], tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    write_bundle(iter(samples), out, name="d")
    items = out / "items.jsonl"
    items.write_bytes(items.read_bytes().replace(b"Which 1", b"Which 9"))
    with pytest.raises(DataError, match="does not match its checksum"):
        list(read_bundle(out))
    items.unlink()
    with pytest.raises(DataError, match="is missing from the bundle"):
        list(read_bundle(out))


def test_pictures_of_earlier_rounds_travel_with_the_bundle(samples: list[Sample], tmp_path: Path) -> None:
    asked = (Turn("user", "hi", samples[1].images), Turn("assistant", "yo"))
    out = tmp_path / "bundle"
    assert write_bundle([msgspec.structs.replace(samples[0], turns=asked)], out, name="d").images == 2
    (found,) = read_bundle(out)
    assert Path(found.turns[0].images[0].ref).is_relative_to(out)


@pytest.mark.parametrize("place", ["images", "turns"])
def test_pictures_outside_the_bundle_are_refused(place: str, samples: list[Sample], tmp_path: Path) -> None:
    import hashlib

    out = tmp_path / "bundle"
    write_bundle(iter(samples[:1]), out, name="d")
    items = out / "items.jsonl"
    row = json.loads(items.read_text())
    (row if place == "images" else row["turns"][0])["images"] = [{"ref": "../../etc/passwd"}]
    items.write_text(json.dumps(row))
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["items_sha256"] = hashlib.sha256(items.read_bytes()).hexdigest()
    (out / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DataError, match=r"record 1: picture .* leads out of the bundle"):
        list(read_bundle(out))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a bundle manifest"),
        ('{"name":"d","samples":1,"images":0,"items":"i","items_sha256":"","format":"other/9"}', "other/9"),
    ],
)
def test_bad_manifests(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(DataError, match=message):
        read_manifest(tmp_path)


def test_parquet_needs_its_extra(samples: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"snellen\[parquet\]"):
        write_bundle(iter(samples), tmp_path / "bundle", True, name="d")
