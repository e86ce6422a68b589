"""A card and a protocol make one task; sources are recognised, rows changed as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.core.config import convert
from snellen.core.errors import ConfigError, DataError, UsageError
from snellen.core.protocols import LoadContext
from snellen.data.atlas import card_rows
from snellen.data.atlas.card_sources import CardSource, choose_source
from snellen.data.atlas.protocols import under_protocol
from snellen.data.atlas.row_changes import RowChange, changed_rows
from snellen.data.catalog import Catalog

CARD = {
    "name": "made",
    "dataset": {"loader": "card", "path": "made", "answer_kind": "letter"},
    "params": {"max_tokens": 8},
    "about": {"quoted": "nothing"},
    "protocols": {
        "official": {"prompt": "choice", "why": "as it is"},
        "other": {"params": {"temperature": 0.0}, "dataset": {"split": "test"}, "fallback": "wrong"},
        "elsewhere": {"dataset": {"loader": "table", "path": "x.jsonl"}},
    },
}


def test_official_is_taken_where_nothing_is_said() -> None:
    task = under_protocol(CARD, "made", None)
    assert task["protocol"] == "official"
    assert task["prompt"] == "choice"
    assert not {"about", "protocols", "why"} & set(task)


def test_params_and_dataset_are_merged_unless_the_loader_is_another() -> None:
    other = under_protocol(CARD, "made", "other")
    assert other["params"] == {"max_tokens": 8, "temperature": 0.0}
    assert other["dataset"] == {"loader": "card", "path": "made", "answer_kind": "letter", "split": "test"}
    assert under_protocol(CARD, "made", "elsewhere")["dataset"] == {"loader": "table", "path": "x.jsonl"}


def test_an_unknown_protocol_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="it has: official, other, elsewhere"):
        under_protocol(CARD, "made", "lmms-eval")
    with pytest.raises(UsageError, match="has no protocols, so --protocol official says nothing"):
        under_protocol({"name": "plain"}, "plain", "official")


def test_a_field_that_no_task_has_is_refused() -> None:
    wrong = {**CARD, "protocols": {"official": {"scorer": ["choice"]}}}
    with pytest.raises(UsageError, match=r"unknown field 'scorer'.*scorers"):
        under_protocol(wrong, "made", None)


@pytest.mark.parametrize("protocol", ["official", "lmms-eval", "vlmevalkit"])
def test_mmmu_pro_is_a_task_in_every_protocol(protocol: str) -> None:
    task = Catalog().task("mmmu-pro", protocol=protocol)
    assert task.protocol == protocol
    assert Catalog().prompt(task).template


def test_a_folder_of_prompts_has_one_a_form() -> None:
    catalog = Catalog()
    task = catalog.task("mmmu-pro", [("prompt", "mmmu-official"), ("form", "auto")])
    from snellen.core.types import Form

    assert catalog.prompt(task, Form.CHOICE).option_format == "({mark}) {text}"
    assert catalog.prompt(task, Form.OPEN).instructions == ("Answer the question using a single word or phrase.",)
    with pytest.raises((UsageError, ConfigError)):
        catalog.prompt(task, Form.NUMBER)


def test_rows_are_changed_in_order() -> None:
    changes = [
        RowChange("circle", of="index", by="remainder", using={"of": 1_000_000}),
        RowChange("set_id", of="code", by="part", using={"between": "_", "number": 2}),
        RowChange("answer", values={"1": "Yes", "0": "No"}),
        RowChange("question", words="Hint: {hint}\nQuestion: {question}", when="hint"),
        RowChange("question", words="Question: {question}", without="hint"),
        RowChange("options", of="verbatim", by="marked_options"),
        RowChange("subject", of="metadata", by="member", using={"key": "subject"}),
        RowChange("spoken", of="verbatim", by="capitalized"),
    ]
    row = {
        "index": 3_000_017, "code": "VD_ocr_7", "answer": 1, "question": "How?", "hint": None,
        "verbatim": "which ONE?\nA. red\nB. blue", "metadata": "{'subject': 'algebra'}",
    }  # fmt: skip
    ((_, changed),) = changed_rows(changes, iter([(1, row)]))
    assert changed["circle"] == "17"
    assert changed["set_id"] == "7"
    assert changed["answer"] == "Yes"
    assert changed["question"] == "Question: How?"
    assert changed["options"] == ["red", "blue"]
    assert changed["subject"] == "algebra"
    assert changed["spoken"].startswith("Which one?")
    assert row["question"] == "How?"


def test_a_change_that_cannot_be_made_names_the_record() -> None:
    with pytest.raises(DataError, match="record 4: 'x' is no whole number"):
        list(changed_rows([RowChange("g", of="index", by="remainder", using={"of": 10})], iter([(4, {"index": "x"})])))
    with pytest.raises(DataError, match=r"record 4: .*names a column"):
        list(changed_rows([RowChange("g", words="{nowhere}")], iter([(4, {"index": "x"})])))
    with pytest.raises(DataError, match="record 4: 'a_b' has no part 5"):
        change = RowChange("g", of="index", by="part", using={"between": "_", "number": 5})
        list(changed_rows([change], iter([(4, {"index": "a_b"})])))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"by": "remaind", "using": {"of": 10}}, "remainder"),
        ({"by": "remainder"}, "of"),
        ({"by": "remainder", "using": {"of": 10, "by": 2}}, "by"),
        ({"modulo": 10}, "modulo"),
    ],
)
def test_a_change_that_names_no_function_or_tells_it_wrongly_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        convert({"set": "g", **wrong}, RowChange, "card x")


def test_a_source_is_recognised_by_most_columns_and_two_alike_are_refused() -> None:
    sources = {"hub": CardSource(columns=("id", "question")), "tsv": CardSource(columns=("index", "question", "A"))}
    assert choose_source(sources, "", ["index", "question", "A", "B"], Path("x.tsv"))[0] == "tsv"
    assert choose_source(sources, "", ["something"], Path("x.tsv"))[0] == ""
    assert choose_source(sources, "hub", [], Path("x.tsv"))[0] == "hub"
    with pytest.raises(DataError, match="can be hub or other"):
        choose_source({**sources, "other": sources["hub"]}, "", ["id", "question"], Path("x.jsonl"))
    with pytest.raises(UsageError, match="is unknown"):
        choose_source(sources, "offical", [], Path("x.jsonl"))


def test_a_card_without_its_data_says_how_to_get_it(tmp_path: Path) -> None:
    task = Catalog().task("mmmu-pro")
    with pytest.raises(DataError, match="snellen data fetch mmmu-pro"):
        next(card_rows.load(task, LoadContext(root=tmp_path)))


def test_rows_that_are_not_the_benchmarks_are_refused_with_its_columns(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"prompt": "Who?", "target": "A"}\n')
    task = Catalog().task("mmmu-pro", [("dataset.path", "mine.jsonl")])
    with pytest.raises(DataError, match=r"has not the columns of any form of mmmu-pro \(hub: id, question, options"):
        next(card_rows.load(task, LoadContext(root=tmp_path)))


def test_a_cards_rows_become_samples_in_the_words_of_the_protocol(tmp_path: Path) -> None:
    row = {"id": "test_Art_1", "question": "Who?", "options": "['Klee', \"O'Keeffe\"]", "answer": "B", "subject": "Art"}
    (tmp_path / "mmmu-pro.jsonl").write_text(json.dumps(row) + "\n")
    own, told = (
        next(
            card_rows.load(
                Catalog().task("mmmu-pro", [("dataset.path", "mmmu-pro.jsonl")], protocol), LoadContext(root=tmp_path)
            )
        )
        for protocol in ("official", "vlmevalkit")
    )
    assert own.options == ("Klee", "O'Keeffe")
    assert own.answers == ("O'Keeffe",)
    assert (own.question, told.question) == ("Who?", "Question: Who?")
    assert own.tags["subject"] == "Art"
