"""Sources by weight become one prepared file: counted, drawn by the seed, read line by line, refused where a picture is missing."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import DataError, UsageError
from snellen.core.types import Image, Turn
from snellen.kits.train.blend import Blended, PreparedChains, RowMaker, prepare_chains
from snellen.kits.train.chains import Chain, sft_row


def some(count: int, name: str = "c", picture: str = "") -> list[Chain]:
    images = (Image(picture),) if picture else ()
    return [
        Chain(f"{name}{n}", (Turn("user", f"ask {n}", images),), "I see a thing. So it is one.") for n in range(count)
    ]


def source(chains: list[Chain], weight: float = 1.0, name: str = "a") -> Blended:
    return Blended(name, weight, partial(iter, chains))


def test_weights_show_records_more_often_or_a_part_of_them(tmp_path: Path) -> None:
    counts = prepare_chains([source(some(100), 2.0), source(some(400, "d"), 0.25, "b")], tmp_path, seed=1)
    first, second = counts.sources
    assert (first.records, first.rows) == (100, 200)
    assert second.records == 400 and 70 <= second.rows <= 130, "a quarter, drawn"
    assert counts.rows == first.rows + second.rows == len(PreparedChains(tmp_path).order)


def test_the_same_seed_draws_the_same_rows_and_another_others(tmp_path: Path) -> None:
    hashes = []
    for place, seed in (("a", 1), ("b", 1), ("c", 2)):
        hashes.append(prepare_chains([source(some(50), 0.5)], tmp_path / place, seed=seed).sha256)
    assert hashes[0] == hashes[1] != hashes[2]


def test_another_word_in_the_data_is_another_hash(tmp_path: Path) -> None:
    one = prepare_chains([source(some(3))], tmp_path / "a", seed=1)
    other = prepare_chains([source(some(3, "x"))], tmp_path / "b", seed=1)
    assert one.sha256 != other.sha256


def test_a_missing_picture_is_refused_by_name_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"1 picture missing \(/no/such.png of c0\); add them, or --allow-missing-images"
    ):
        prepare_chains([source(some(3, picture="/no/such.png"))], tmp_path, seed=1)
    assert list(tmp_path.iterdir()) == []


def test_allowed_missing_pictures_leave_their_records_out_and_are_counted(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    chains = [*some(2, picture=str(tmp_path / "a.png")), *some(3, "m", picture="/no/such.png")]
    counts = prepare_chains([source(chains)], tmp_path, seed=1, allow_missing=True)
    assert (counts.rows, counts.missing, counts.pictures, counts.sources[0].records) == (2, 1, 1, 5)


def test_an_empty_reply_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="c0: the reply is empty"):
        prepare_chains([source([Chain("c0", (Turn("user", "x"),))])], tmp_path, seed=1)


def test_a_weight_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="weight 0 shows nothing"):
        prepare_chains([source(some(1), 0)], tmp_path, seed=1)


def test_no_row_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to train on"):
        prepare_chains([source([])], tmp_path, seed=1)


@given(st.lists(st.text(min_size=1, max_size=40).filter(str.strip), min_size=1, max_size=20), st.data())
def test_every_line_is_read_back_at_its_place(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("blend")
    chains = [Chain(str(n), (Turn("user", text),), text) for n, text in enumerate(texts)]
    prepare_chains([source(chains)], folder, seed=0)
    prepared = PreparedChains(folder)
    place = data.draw(st.integers(0, len(chains) - 1))
    assert prepared[place] == chains[place]
    prepared.close()


def test_a_worker_opens_the_file_for_itself(tmp_path: Path) -> None:
    prepare_chains([source(some(3))], tmp_path, seed=0)
    prepared = PreparedChains(tmp_path)
    assert prepared[1].id == "c1"
    copy = pickle.loads(pickle.dumps(prepared))
    assert copy[2].id == "c2"
    copy.close()
    prepared.close()


def test_rows_open_their_pictures_when_asked(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (4, 4), "red").save(tmp_path / "a.png")
    prepare_chains([source(some(2, picture=str(tmp_path / "a.png")))], tmp_path, seed=0)
    prepared = PreparedChains(tmp_path)
    rows = RowMaker(prepared, sft_row)({"place": [1, 0]})
    assert [images[0].size for images in rows["images"]] == [(4, 4), (4, 4)]
    assert rows["completion"][0] == [{"role": "assistant", "content": "I see a thing. So it is one."}]
    prepared.close()
