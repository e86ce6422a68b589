"""Every card of tier 1 in the shapes of its sources, run in every protocol: the figures are those counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas_fixtures import FIXTURES, figure_of_read, run_card, write_shape
from snellen.core.errors import DataError
from snellen.core.protocols import LoadContext
from snellen.data.atlas import card_rows
from snellen.data.catalog import Catalog

TIER_1 = 20
CASES = [
    (card, shape, protocol)
    for card, fixture in FIXTURES.items()
    for shape in fixture.shapes
    for protocol in fixture.expected
]


@pytest.mark.parametrize(("card", "shape", "protocol"), CASES)
def test_a_card_gives_the_figures_counted_by_hand(card: str, shape: str, protocol: str, tmp_path: Path) -> None:
    needs = Catalog().task(card, protocol=protocol).dataset.get("needs") or ()
    if needs and shape not in needs:
        with pytest.raises(DataError, match="another --protocol"):
            run_card(tmp_path, card, shape, protocol)
        return
    done = run_card(tmp_path, card, shape, protocol)
    metrics = done["results"]["tasks"][card]["metrics"]
    task = Catalog().task(card, protocol=protocol)
    headline = metrics[f"{task.headline}_read"]
    for name, value in FIXTURES[card].expected[protocol].items():
        found = headline[name] if name in ("n", "unscored", "failed") else figure_of_read(metrics, name)
        assert found == pytest.approx(value), name
    assert done["results"]["tasks"][card]["protocol"]["name"] == protocol


def test_the_cards_of_tier_1_all_have_a_fixture_and_three_protocols() -> None:
    catalog = Catalog()
    numbers: dict[int, list[str]] = {}
    for name in catalog.names("datasets"):
        table = catalog.task_table(name)
        number = (table.get("about") or {}).get("number", 0)
        if 1 <= number <= TIER_1:
            numbers.setdefault(number, []).append(name)
            lacking = {"official", "lmms-eval", "vlmevalkit"} - set(table["protocols"])
            assert lacking <= ({"lmms-eval"} if name.endswith("-v11") else set()), name
            assert name in FIXTURES, name
    assert sorted(numbers) == list(range(1, TIER_1 + 1))


def test_every_shape_that_a_card_of_tier_1_reads_has_a_fixture() -> None:
    for card, fixture in FIXTURES.items():
        sources = Catalog().task(card, protocol="official").dataset["sources"]
        shapes = {name for name, source in sources.items() if "refuse" not in source} - {"text-only"}
        assert shapes == set(fixture.shapes), card  # the text-only form is read in test_authors_files


@pytest.mark.parametrize("shape", ["hub", "tsv", "official"])
def test_every_page_of_a_document_is_shown_in_every_shape(shape: str, tmp_path: Path) -> None:
    done = run_card(tmp_path, "mmlongbench-doc", shape, "official")
    assert [len(sample.images) for sample in done["samples"]] == [2, 2, 2]


def test_the_words_of_a_prompt_are_those_of_the_protocol(tmp_path: Path) -> None:
    place = write_shape(tmp_path, "textvqa", "hub", FIXTURES["textvqa"])
    asked = {}
    for protocol in ("official", "lmms-eval"):
        task = Catalog().task("textvqa", [("dataset.path", str(place))], protocol)
        asked[protocol] = next(card_rows.load(task, LoadContext(root=tmp_path, workdir=tmp_path / "w"))).question
    assert asked["official"] == "what does the ACME sign say?"
    assert asked["lmms-eval"] == "What does the acme sign say?"  # str.capitalize lower-cases the rest


def test_rows_of_another_split_are_left_out_and_said(tmp_path: Path) -> None:
    place = write_shape(tmp_path, "mmmu", "tsv", FIXTURES["mmmu"])
    context = LoadContext(root=tmp_path, workdir=tmp_path / "w")
    samples = list(card_rows.load(Catalog().task("mmmu", [("dataset.path", str(place))]), context))
    assert len(samples) == 4
    assert any("their split is not validation" in note for note in context.notes)
