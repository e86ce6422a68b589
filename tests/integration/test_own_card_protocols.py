"""A card of one's own with protocols: what it stands for without a headline, and a run of it read without the card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import snellen
from snellen.core.errors import UsageError
from snellen.scoring.compare.protocol_parts import moved_parts
from snellen.scoring.protocols.readings import card_note
from snellen.scoring.stored import read_columns
from snellen.store.reader import RunReader

ROWS = [("1", "red"), ("2", "blue"), ("3", "green"), ("4", "grey")]
REPLIES = {"1": "red", "2": "It is blue.", "3": "The colour is green.", "4": "black"}
CARD = """
name = "colours"
form = "open"
protocol = "strict"

[dataset]
loader = "table"
path = "{rows}"

[protocols.strict]
why = "The whole reply is the answer."
scorers = ["exact"]
fallback = "wrong"

[protocols.lenient]
why = "The answer stands somewhere in the reply."
scorers = ["contains"]
fallback = "wrong"
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    rows = tmp_path / "colours.jsonl"
    rows.write_text("".join(json.dumps({"id": n, "question": "Which colour?", "answer": a}) + "\n" for n, a in ROWS))
    said = tmp_path / "said.jsonl"
    said.write_text("".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in REPLIES.items()))
    (tmp_path / "cards" / "datasets").mkdir(parents=True)
    (tmp_path / "cards" / "datasets" / "colours.toml").write_text(CARD.format(rows=rows))
    return tmp_path / "cards"


def asked(catalog: Path, protocol: str = "strict") -> Path:
    folder = catalog.parent / protocol
    snellen.run(
        "colours", f"replay/{catalog.parent / 'said.jsonl'}", catalogs=(catalog,), protocol=protocol, output_dir=folder
    )
    return folder


def results_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())["tasks"]["colours"]
    return found


def test_a_card_that_says_nothing_of_its_headline_stands_for_what_tables_choose(catalog: Path) -> None:
    result = results_of(asked(catalog))
    assert result["headline"] == "exact_match"
    assert result["notes"] == [], "nothing was to be computed that is missing"
    assert result["protocol"]["peer"] is None, "no tool's own reader was asked, so none is said to print a number"


def test_two_protocols_without_a_headline_are_taken_apart(catalog: Path) -> None:
    moved = moved_parts((asked(catalog), asked(catalog, "lenient")))["colours"]
    assert (moved.first_value, moved.second_value) == (0.5, 0.75)
    assert moved.parts["reader"] == 0.25
    assert moved.most == "reader"


def test_a_run_is_scored_in_another_protocol_of_a_card_that_is_gone(catalog: Path) -> None:
    folder = asked(catalog)
    (catalog / "datasets" / "colours.toml").unlink()
    result = snellen.score(folder, protocol="lenient")["tasks"]["colours"]
    assert (result["headline"], result["metrics"]["contains"]["value"]) == ("contains", 0.75)
    assert result["protocol"]["name"] == "lenient, asked in strict"
    assert result["notes"] == []
    with pytest.raises(UsageError, match=r"'colours' has no protocol 'lenent'.*'lenient'"):
        snellen.score(folder, protocol="lenent")


def test_a_run_without_protocols_is_not_read_by_a_card_of_the_same_name(tmp_path: Path) -> None:
    """Rows in a file called mmmu.jsonl are not the benchmark."""
    rows = tmp_path / "mmmu.jsonl"
    rows.write_text(json.dumps({"id": "1", "question": "Which?", "options": ["a", "b"], "answer": "A"}) + "\n")
    folder = snellen.run(str(rows), "blind/first", output_dir=tmp_path / "run").folder
    with pytest.raises(UsageError, match="'mmmu' has no protocols"):
        snellen.score(folder, protocol="official")


def test_only_a_run_that_holds_no_protocols_is_said_to_be_read_by_the_installed_card(catalog: Path) -> None:
    with RunReader(asked(catalog)) as reader:
        header = reader.header()
    (task,), earlier = header.tasks, msgspec.structs.replace(header, protocols=None)
    assert card_note(task, "lenient", header) == []
    assert card_note(task, task.protocol, earlier) == card_note(task, "", earlier) == []
    (note,) = card_note(task, "lenient", earlier)
    assert "lenient" in note and "installed card colours" in note


def test_a_protocol_that_cannot_be_read_is_refused_before_anything_is_asked(catalog: Path) -> None:
    card = catalog / "datasets" / "colours.toml"
    card.write_text(f'{card.read_text()}[protocols.odd]\nscorer = ["exact"]\n')
    with pytest.raises(UsageError, match=r"protocol 'odd'.*'scorer'"):
        asked(catalog)


def test_a_first_call_that_failed_does_not_hide_the_headline_of_the_trials(catalog: Path) -> None:
    """A failed call has the number of the protocol's own tool alone."""
    said = catalog.parent / "said.jsonl"
    said.write_text("".join(said.read_text().splitlines(keepends=True)[1:]))
    with RunReader(asked(catalog)) as reader:
        columns = read_columns(reader, reader.header().tasks[0])
    assert (columns.metric, columns.metrics) == ("exact_match", ("exact_match", "exact_match_peer"))
