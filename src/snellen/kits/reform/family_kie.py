"""Forms and receipts to Items: one question for each key and its value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError
from .corpus import Corpus, Item
from .formulate import open_ended

SROIE_KEYS = ("company", "date", "address", "total")


def ask_key(key: str) -> str:
    """Return the question for a key."""
    return f'What does the field "{key}" say?'


def read_funsd(corpus: Corpus) -> Iterator[Item]:
    """FUNSD: one JSON a page; each link from a question entity to answer entities is one item."""
    for path in corpus.glob("pages"):
        entities = {entity["id"]: entity for entity in _decode(path)["form"]}
        for number, entity in sorted(entities.items()):
            if entity["label"] != "question" or not entity["text"].strip():
                continue
            linked = [entities.get(end) for start, end in entity["linking"] if start == number]
            value = " ".join(other["text"].strip() for other in linked if other and other["label"] == "answer").strip()
            if value:
                key = entity["text"].strip().rstrip(":").strip()
                yield Item(f"{path.stem}_{number}", path.stem, question=ask_key(key), answer=value, group=path.stem)


def read_poie(corpus: Corpus) -> Iterator[Item]:
    """POIE: one JSON object a line with file_name and entity_dict."""
    decoder = msgspec.json.Decoder()
    for number, line in corpus.lines("labels"):
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise DataError(f"{corpus.files['labels']} line {number} is not valid JSON: {error}") from None
        yield from _key_items(Path(row["file_name"]).stem, row["file_name"], sorted(row["entity_dict"].items()))


def read_sroie(corpus: Corpus) -> Iterator[Item]:
    """SROIE task 3: one JSON a receipt with company, date, address and total."""
    for path in corpus.glob("receipts"):
        row = _decode(path)
        yield from _key_items(path.stem, path.stem, [(key, row.get(key, "")) for key in SROIE_KEYS])


def _key_items(name: str, image: str, pairs: Iterable[tuple[str, Any]]) -> Iterator[Item]:
    """Yield one item for each key of a page whose value is not empty."""
    for key, value in pairs:
        text = str(value).strip()
        if text:
            yield Item(f"{name}_{key}", image, (), ask_key(key), text, group=name, tags={"key": key})


def _decode(path: Path) -> dict[str, Any]:
    try:
        value: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is not valid JSON: {error}") from None
    return value


READERS = {"funsd": read_funsd, "poie": read_poie, "sroie": read_sroie}
METHODS = {"open": open_ended}
