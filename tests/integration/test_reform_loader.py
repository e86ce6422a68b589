"""The data loader: dicts with random access, seeded, for a torch DataLoader, under the argument names of ReForm-Eval."""

from __future__ import annotations

import pickle
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reform_fixtures
import snellen
from snellen.core.errors import UsageError
from snellen.data.catalog import Catalog
from snellen.kits.reform.items import OnlineDataset, ReformDataset, find_card

CARDS = Path(__file__).resolve().parents[2] / "src/snellen/catalog/datasets/reform"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for slug in ("vqa-v2", "coco-caption", "funsd", "visdial", "coco-itm"):
        reform_fixtures.raw(slug, tmp_path / slug)
    return tmp_path


def open_vqa(root: Path, **settings: Any) -> ReformDataset:
    return snellen.load_dataset("reform/vqa-v2", formulation="SingleChoice", data_root=root, **settings)


def test_an_item_has_all_fields(root: Path) -> None:
    item = open_vqa(
        root,
        in_context_sample=True,
        random_instruct=True,
        data_duplication=5,
        shuffle_options=True,
        option_mark="lower",
    )[7]
    assert {
        "sample_id",
        "image",
        "question",
        "answer",
        "answer_options",
        "instruct",
        "question_with_option",
        "history",
        "text",
    } <= set(item)
    assert isinstance(item["image"], Image.Image)
    assert item["image"].mode == "RGB"
    assert item["question_with_option"].startswith(item["question"] + " Options: (a) ")
    assert item["question_with_option"] in item["text"]
    assert item["history"][0]["from"] == "human"
    assert item["history"][1] == {"from": "assistant", "value": "(a) yes"}


def test_length_and_repeats(root: Path) -> None:
    dataset = open_vqa(root, data_duplication=5, random_instruct=True, limit=4)
    assert len(dataset) == 20
    first = [dataset[index] for index in range(5)]
    assert len({item["instruct"] for item in first}) == 5
    assert len({item["sample_id"] for item in first}) == 1
    assert [item["sample_id"] for item in dataset][5] != first[0]["sample_id"]
    assert dataset[-1]["sample_id"] == dataset[19]["sample_id"]
    with pytest.raises(IndexError):
        dataset[20]


def test_reading_order_changes_nothing(root: Path) -> None:
    dataset, again = (
        open_vqa(root, data_duplication=3, shuffle_options=True, option_mark=None, seed=9) for _ in range(2)
    )
    forwards = [dataset[index]["text"] for index in range(len(dataset))]
    backwards = [again[index]["text"] for index in reversed(range(len(again)))]
    assert forwards == backwards[::-1]
    other = open_vqa(root, data_duplication=3, shuffle_options=True, option_mark=None, seed=10)
    assert forwards != [other[index]["text"] for index in range(len(other))]


def test_likelihood_hides_options(root: Path) -> None:
    item = open_vqa(root, inference_method="likelihood", in_context_sample=True, response_prefix="The answer is")[0]
    assert "Options" not in item["text"]
    assert not item["text"].endswith("The answer is")
    assert item["answer_options"]


def test_open_ended_and_captions(root: Path) -> None:
    caption = snellen.load_dataset("reform/coco-caption", formulation="Generation", data_root=root)[0]
    assert len(caption["references"]) == 2
    assert "answer" not in caption
    form = snellen.load_dataset("reform/funsd", formulation="KIEOpenEnded", data_root=root)[0]
    assert form["answer"] == "J. Smith"


def test_a_torch_loader_can_use_it(root: Path) -> None:
    data = pytest.importorskip("torch.utils.data")
    dataset = open_vqa(root, data_duplication=2, shuffle_options=True)
    loader = data.DataLoader(
        dataset, batch_size=4, collate_fn=lambda items: [item["text"] for item in items], shuffle=False
    )
    assert [text for batch in loader for text in batch] == [dataset[index]["text"] for index in range(len(dataset))]
    copy = pickle.loads(pickle.dumps(dataset))  # as workers that are spawned get it
    assert copy[3]["text"] == dataset[3]["text"]


def test_the_names_of_reform_eval(root: Path) -> None:
    dataset = snellen.load_reform_dataset(
        dataset_name="VQA", formulation="SingleChoice", dataset_config="/path/build/configs/VQA_vqa_v2_val.yaml", inference_method="generation",
        in_context_sample=True, random_instruct=True, data_duplication=5, shuffle_options=True, load_from_hf=False, offline_from_hf=False,
        source="raw", data_root=root,
    )  # fmt: skip
    assert len(dataset) == 5 * 36
    assert dataset[0]["question"][0].islower(), "only dialogues are capitalised, unless one asks for it"
    dialogue = snellen.load_reform_dataset(
        "VisDial", "SingleChoice", "VisDial_val_v1.2.yaml", source="raw", data_root=root
    )
    assert dialogue[0]["question"][0].isupper()


def test_every_command_of_the_table_names_one_card() -> None:
    catalog = Catalog()
    for path in CARDS.glob("*.toml"):
        keys = tomllib.loads(path.read_text(encoding="utf-8"))["dataset"]["keys"]
        assert find_card(keys["dataset_name"], f"build/configs/{keys['config']}") == f"reform/{path.stem}"
        assert catalog.task(f"reform/{path.stem}").title


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"formulation": "SingelChoice"}, "did you mean 'SingleChoice'"),
        ({"formulation": "Generation"}, "is formulated as SingleChoice, not Generation"),
        ({"inference_method": "likelyhood"}, "did you mean 'likelihood'"),
        ({"data_duplication": 0}, "must be 1 or more"),
    ],
)
def test_bad_arguments(root: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        snellen.load_dataset("reform/vqa-v2", **({"formulation": "SingleChoice", "data_root": root} | arguments))


def test_unclear_names() -> None:
    with pytest.raises(UsageError, match="did you mean 'VisDial'"):
        find_card("VisDail", None)
    with pytest.raises(UsageError, match=r"give one of .*VQA_gqa_val"):
        find_card("VQA", None)


def test_online_rounds_wait_for_answers(root: Path) -> None:
    dataset = snellen.load_dataset(
        "reform/visdial", formulation="SingleChoice", data_root=root, online_multi_round=True, data_duplication=3
    )
    assert isinstance(dataset, OnlineDataset)
    rounds = [sample.tags["round"] for sample in dataset.samples]
    assert rounds == sorted(rounds)
    assert max(rounds) == 11
    second = next(index for index in range(len(dataset)) if dataset.sample_of(index).tags["round"] == 1)
    with pytest.raises(UsageError, match=r"the answer to 500_0 was fed back 0 of 3 times"):
        dataset[second]
    dataset.update_history([dataset.answer_of(index, reply) for index, reply in enumerate(("(B)", "(A)", "(B)"))])
    options = dataset[0]["answer_options"]
    assert dataset[second]["history"][1]["value"] == f"(B) {options[1]}"


def test_settings_of_the_loader_need_no_formulation(root: Path) -> None:
    """They were taken for fields of the dataset's table, and what came back had no length."""
    dataset = snellen.load_dataset("reform/vqa-v2", data_root=root, option_mark="lower", data_duplication=2)
    assert len(dataset) == 72
    assert "(a) " in dataset[0]["text"]


def test_receipts_can_be_opened_as_text_too(root: Path) -> None:
    for slug in ("poie", "sroie"):
        reform_fixtures.raw(slug, root / slug)
        for formulation in ("OCROpenEnded", "KIEOpenEnded"):
            dataset = snellen.load_dataset(f"reform/{slug}", formulation=formulation, data_root=root)
            assert dataset[0]["answer"]
