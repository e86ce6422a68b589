"""Prepared hub files: every picture once, clear errors with record numbers, the hub as a source."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import reform_fixtures
from snellen import load_reform_dataset
from snellen.core.errors import DataError, MissingExtra
from snellen.core.protocols import LoadContext
from snellen.core.types import Sample
from snellen.data.catalog import Catalog
from snellen.data.images.decode import open_image
from snellen.kits.reform.card_loader import HUB, available, load, read_card

CARDS = Path(__file__).resolve().parents[3] / "src/snellen/catalog/datasets/reform"


def card(slug: str) -> dict[str, Any]:
    return tomllib.loads((CARDS / f"{slug}.toml").read_text(encoding="utf-8"))


def read(slug: str, root: Path, source: str = "prepared", **settings: Any) -> list[Sample]:
    told = [("dataset.source", source), *((f"dataset.{key}", value) for key, value in settings.items())]
    return list(load(Catalog().task(f"reform/{slug}", told), LoadContext(root=root, workdir=root / "work")))


def path_of(slug: str, root: Path) -> Path:
    return root / str(card(slug)["dataset"]["prepared"]["file"])


@pytest.fixture
def prepared(tmp_path: Path) -> Any:
    def make(slug: str) -> Path:
        reform_fixtures.prepared(slug, tmp_path, card(slug))
        return tmp_path

    return make


def test_each_picture_is_stored_once(prepared: Any) -> None:
    root = prepared("tdiuc-color")
    samples = read("tdiuc-color", root)
    stored = list((root / "work/images").iterdir())
    assert len(stored) == 3, "pictures of other question types are not even written"
    assert {Path(sample.images[0].ref) for sample in samples} <= set(stored)
    assert open_image(samples[0].images[0]).size == reform_fixtures.SIZE


def test_the_hub_layout_and_a_flat_folder_are_found(prepared: Any, tmp_path: Path) -> None:
    root = prepared("vqa-v2")
    file = path_of("vqa-v2", root)
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / file.name).write_bytes(file.read_bytes())
    assert [sample.id for sample in read("vqa-v2", flat)] == [sample.id for sample in read("vqa-v2", root)]
    task = Catalog().task("reform/vqa-v2")
    assert available(read_card(task), "reform/vqa-v2", flat) == ["prepared"]


def test_who_asks_for_prepared_files_is_given_those_where_reform_eval_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reform_fixtures.prepared("vqa-v2", tmp_path / "ReForm-Eval-Data", card("vqa-v2"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SNELLEN_DATA", raising=False)
    names = {"dataset_name": "VQA", "formulation": "SingleChoice", "dataset_config": "VQA_vqa_v2_val.yaml"}
    found = load_reform_dataset(**names, offline_from_hf=True, data_duplication=1)
    assert found[0]["answer_options"]
    assert available(read_card(Catalog().task("reform/vqa-v2")), "reform/vqa-v2", None) == [], "nobody asked for them"
    elsewhere = load_reform_dataset(**names, offline_from_hf=True, data_root=tmp_path / "data")
    with pytest.raises(DataError, match=r"huggingface_data/VQA_v2/vqa_val_10p.json.*data_root"):
        len(elsewhere)


def test_the_hub_itself(prepared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    root, asked = prepared("vqa-v2"), []
    hub = ModuleType("huggingface_hub")

    def download(repository: str, name: str, repo_type: str) -> str:
        asked.append((repository, name, repo_type))
        if "vqa" not in name:
            raise OSError("no network")
        return str(root / name)

    hub.hf_hub_download = download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    samples = read("vqa-v2", root, "hub")
    assert len(samples) == reform_fixtures.N
    assert asked == [(HUB, "huggingface_data/VQA_v2/vqa_val_10p.json", "dataset")]
    with pytest.raises(DataError, match=r"the hub did not give.*--data-root"):
        read("gqa", root, "hub")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"snellen\[hub\]"):
        read("vqa-v2", tmp_path, "hub")


def test_negatives_are_drawn_once_a_sample(prepared: Any) -> None:
    root = prepared("coco-counting")
    assert read("coco-counting", root) == read("coco-counting", root)
    places = {sample.options.index(sample.answers[0]) for sample in read("coco-counting", root)}
    assert len(places) > 1, "the answer does not always stand last"


@pytest.mark.parametrize(
    ("slug", "change", "message"),
    [
        ("vqa-v2", lambda text: text.replace('"version": "2.0"', '"version": "9"'), "says version '9', the card '2.0'"),
        ("vqa-v2", lambda text: text.replace('"split": "COCO_val2014"', '"split": "train"'), "says split 'train'"),
        ("vqa-v2", lambda text: text.replace('"version": "2.0", ', ""), "does not say its version"),
        ("vqa-v2", lambda text: text.replace('"answer_options"', '"options"'), "record 1 has no column 'answer_options'"),
        ("vqa-v2", lambda text: text[: int(len(text) * 0.9)], "record 10 is not valid JSON"),
        ("vqa-v2", lambda text: _each(text, lambda rows: rows[3].update(image_id="%%%" * 200)), "record 4: the picture is neither a file nor valid base64"),
        ("vqa-v2", lambda text: _each(text, lambda rows: rows[2].update(answer="nothing")), "record 3: answer 'nothing' is not among the options"),
        ("vqa-v2", lambda text: _each(text, lambda rows: rows.insert(1, 5)), "record 2 is a int"),
        ("vizwiz", lambda text: _each(text, lambda rows: rows[4].update(image_id="../../secret.png")), "record 5: picture .* leads out of the data root"),
        ("coco-mci", lambda text: _each(text, lambda rows: rows[1].update(answer=4)), "record 2: answer index 4 is outside the 4 options"),
        ("coco-goi", lambda text: _each(text, lambda rows: rows[1].update(bbox=[900, 2, 5, 5])), "record 2: .*outside the 96×72 picture"),
        ("k-viquae", lambda text: text.replace('"context"', '"contexts"'), "record 1 has no column 'context'"),
    ],
)  # fmt: skip
def test_bad_files_name_the_record(prepared: Any, slug: str, change: Any, message: str) -> None:
    root = prepared(slug)
    file = path_of(slug, root)
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read(slug, root)


def _each(text: str, change: Any) -> str:
    table = json.loads(text)
    change(table["data"])
    return json.dumps(table)


def test_dialogue_indices_are_checked(prepared: Any) -> None:
    root = prepared("visdial")
    file = path_of("visdial", root)
    table = json.loads(file.read_text())
    table["data"]["dialogs"][1]["dialog"][2]["answer"] = 4000
    file.write_text(json.dumps(table))
    with pytest.raises(DataError, match="record 2 round 2: index outside the string tables"):
        read("visdial", root)


def test_a_missing_choice_list_names_the_file(prepared: Any) -> None:
    root = prepared("tdiuc-color")
    (root / "huggingface_data/TDIUC/choice_list/color.json").unlink()
    with pytest.raises(DataError, match=r"choice_list/color.json does not exist"):
        read("tdiuc-color", root)


@pytest.mark.parametrize(
    "shape",
    [
        lambda texts: texts,
        lambda texts: {"choice": texts},
        lambda texts: [{"choice": texts}],
        lambda texts: [{"choice": text} for text in texts],
        lambda texts: "".join(json.dumps({"choice": text}) + "\n" for text in texts),
        lambda texts: [[text] for text in texts],
    ],
)
@pytest.mark.parametrize("slug", ["tdiuc-color", "coco-counting"])
def test_every_shape_of_choice_list_is_read_alike(prepared: Any, slug: str, shape: Any) -> None:
    """One of them became options that read {'choice': 'five'}, another stopped the run."""
    root = prepared(slug)
    layout = card(slug)["dataset"]["prepared"]
    path = root / (f"{layout['choices']}{layout['question_type']}.json" if slug == "tdiuc-color" else layout["choices"])
    flat = read(slug, root)
    texts = shape(json.loads(path.read_text()))
    path.write_text(texts if isinstance(texts, str) else json.dumps(texts))
    assert [sample.options for sample in read(slug, root)] == [sample.options for sample in flat]


def test_a_choice_list_of_another_shape_is_refused(prepared: Any) -> None:
    root = prepared("coco-counting")
    path = root / card("coco-counting")["dataset"]["prepared"]["choices"]
    for text, message in (
        ('{"five": 12}', "is no list of answers: it holds an object with five"),
        ("[]", "holds no answers"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            read("coco-counting", root)


def test_numbers_of_a_choice_list_are_written_like_the_answer(prepared: Any) -> None:
    root = prepared("coco-counting")
    layout = card("coco-counting")["dataset"]["prepared"]
    rows = json.loads((root / layout["file"]).read_text())
    words = ("zero", "one", "two", "three", "four", "five")
    (root / layout["file"]).write_text(json.dumps([{**row, "Answer": words[row["Answer"]]} for row in rows]))
    for sample in read("coco-counting", root):
        assert not any(option.isdigit() for option in sample.options), sample.options
