"""Captioned pictures to Items: every caption is a reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.errors import DataError
from .corpus import Corpus, Item, Tags
from .formulate import open_ended

ASK = "Describe the picture in one sentence."


def read_coco(corpus: Corpus) -> Iterator[Item]:
    """COCO captions and nocaps: `images` and `annotations` joined by image id."""
    captions: dict[Any, list[str]] = {}
    for row in corpus.rows("captions", "annotations"):
        captions.setdefault(row["image_id"], []).append(row["caption"])
    for row in corpus.rows("captions", "images"):
        if row["id"] in captions:
            tags = {"domain": row["domain"]} if "domain" in row else {}
            yield _item(str(row["id"]), row["file_name"], captions[row["id"]], tags)


def read_textcaps(corpus: Corpus) -> Iterator[Item]:
    """TextCaps: one row a caption with all reference_strs of its picture; each picture once."""
    seen: set[str] = set()
    for row in corpus.rows("captions", "data"):
        if row["image_id"] not in seen:
            seen.add(row["image_id"])
            yield _item(row["image_id"], row["image_id"], row["reference_strs"], {})


def read_flickr(corpus: Corpus) -> Iterator[Item]:
    """Flickr30K: results_*.token, lines `name.jpg#n<tab>caption`; a split file lists the names to keep."""
    wanted = {line.strip().removesuffix(".jpg") for _, line in corpus.lines("split")} if corpus.has("split") else None
    captions: dict[str, list[str]] = {}
    for number, line in corpus.lines("captions"):
        name, tab, caption = line.partition("\t")
        if not tab:
            raise DataError(f"{corpus.files['captions']} line {number}: expected `image#n<tab>caption`")
        captions.setdefault(name.partition("#")[0], []).append(caption)
    for name, texts in captions.items():
        if wanted is None or name.removesuffix(".jpg") in wanted:
            yield _item(name.removesuffix(".jpg"), name, texts, {})


def _item(number: str, image: str, captions: list[str], tags: Tags) -> Item:
    texts = tuple(dict.fromkeys(" ".join(text.split()) for text in captions if text.strip()))
    return Item(number, image, question=ASK, accepted=texts, tags=tags)


READERS = {"coco": read_coco, "textcaps": read_textcaps, "flickr": read_flickr}
METHODS = {"open": open_ended}
