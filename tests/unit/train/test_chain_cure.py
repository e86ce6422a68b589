"""Annotated chains become rationales, asked with the very prompt and pictures they are measured with."""

from __future__ import annotations

from pathlib import Path

import pytest

from cure_fixtures import item, write_cure
from snellen.core.errors import UsageError
from snellen.core.protocols import LoadContext
from snellen.data.catalog import Catalog
from snellen.kits.cure.loader import load
from snellen.kits.train.chains import find_cure_task, read_cure_chains, read_words
from snellen.prompt.build import Prompter

CATALOG = Catalog()
WORDS = read_words(CATALOG, "rationale")


def test_an_inference_is_taught_with_its_steps_and_the_mark_of_its_answer(tmp_path: Path) -> None:
    task = find_cure_task(write_cure(tmp_path), CATALOG, None)
    assert task is not None
    chains = list(read_cure_chains(task, CATALOG, WORDS, seed=0, steps=True))
    assert [chain.id for chain in chains[:3]] == ["00000.1", "00000.2", "00000.h"]
    inference = chains[2]
    first, second, last = inference.reply.split("\n")
    assert first == "What is seen at 0.1? thing 01 d" and second == "What is seen at 0.2? thing 02 e"
    mark = "ABCDEF"[inference.options.index("story 0 c")]
    assert last == f"Answer: {mark}. story 0 c"
    assert inference.facts == ("thing 01 d", "thing 02 e") and chains[0].facts == ()
    assert inference.pictures[0].edits and inference.pictures[0].edits[0].startswith("box:")


def test_training_and_measuring_ask_the_same(tmp_path: Path) -> None:
    task = find_cure_task(write_cure(tmp_path), CATALOG, None)
    assert task is not None
    prompter = Prompter(task, CATALOG.prompt(task), 5)
    asked = [prompter.build(sample).messages for sample in load(task, LoadContext())]
    taught = [chain.turns for chain in read_cure_chains(task, CATALOG, WORDS, seed=5, steps=True)]
    assert taught == asked


def test_steps_can_be_left_out(tmp_path: Path) -> None:
    task = find_cure_task(write_cure(tmp_path), CATALOG, None)
    assert task is not None
    names = [chain.id for chain in read_cure_chains(task, CATALOG, WORDS, seed=0, steps=False)]
    assert names == ["00000.h", "00001.h", "00002.h"]


def test_a_published_set_is_found_in_its_workshop(tmp_path: Path) -> None:
    folder = tmp_path / "shop" / "published"
    write_cure(folder, [item(0, 2)]).rename(folder / "annotations.json")
    (folder / "task.toml").write_text(
        'name = "mine"\nform = "choice"\n[dataset]\nloader = "cure"\npath = "annotations.json"\n'
    )
    for place in (tmp_path / "shop", folder, folder / "task.toml"):
        task = find_cure_task(place, CATALOG, None)
        assert task is not None and task.name == "mine"
        assert len(list(read_cure_chains(task, CATALOG, WORDS, seed=0, steps=True))) == 3


def test_another_task_is_refused_and_another_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('form = "choice"\n[dataset]\nloader = "table"\npath = "x.jsonl"\n')
    with pytest.raises(UsageError, match="no task of chains"):
        find_cure_task(tmp_path / "t.toml", CATALOG, None)
    (tmp_path / "x.jsonl").write_text("{}\n")
    assert find_cure_task(tmp_path / "x.jsonl", CATALOG, None) is None
