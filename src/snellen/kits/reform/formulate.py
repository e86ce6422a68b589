"""Items to Samples: the formulations. Which reader and which reformulator, the card says; this module runs them."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

import msgspec

from ...core.errors import ConfigError, DataError, did_you_mean, not_among
from ...core.ids import rng
from ...core.types import Form, Image, Sample
from .corpus import Corpus, Item, box_edits
from .distractors import Distractor, place, require

T = TypeVar("T")

FAMILIES = ("caption", "classify", "count", "dialog", "ground", "kie", "match", "ocr", "spatial", "vqa")
"""The modules `family_*` of this room, which hold readers and methods."""

BOX_COLOURS = ("#e8222e", "#1a9641", "#2c5fd5", "#e6a700")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a reformulator may depend on besides the items: the dataset's name, the seed and the card's settings."""

    dataset: str
    form: Form = Form.CHOICE
    seed: int = 0
    options: int = 4
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def wrong(self) -> int:
        """Return how many wrong options a choice has."""
        return self.options - 1

    def rng(self, item_id: str, purpose: str) -> random.Random:
        """Return the generator of one draw: keyed by data set, item, purpose and seed, and by nothing else."""
        return rng(self.dataset, item_id, purpose, self.seed)


Reader = Callable[[Corpus], Iterator[Item]]
Method = Callable[[Iterable[Item], Corpus, Recipe], Iterator[Sample]]


def build(corpus: Corpus, reader: str, method: str, recipe: Recipe) -> Iterator[Sample]:
    """Read the raw files with `reader` and re-formulate every item with `method`, both written `family.name`."""
    read: Reader = _look_up(reader, "READERS")
    reform: Method = _look_up(method, "METHODS")
    return guard(reform(guard(read(corpus), reader), corpus, recipe), method)


def guard(records: Iterator[T], where: str) -> Iterator[T]:
    """Yield on; a record that lacks a field or holds another type becomes one clear line with its number."""
    for number in count(1):
        try:
            yield next(records)
        except StopIteration:
            return
        except KeyError as error:
            doubt = "is the file what the card describes?"
            raise DataError(f"{where}: record {number} has no field {error}; {doubt}") from None
        except (IndexError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{where}: record {number} is not as the card describes: {error}") from None


def _look_up(name: str, table: str) -> Any:
    family, _, function = name.partition(".")
    if family not in FAMILIES:
        raise ConfigError(f"{name!r}: no family {not_among(family, FAMILIES)}")
    known: dict[str, Any] = getattr(importlib.import_module(f"{__package__}.family_{family}"), table)
    if function not in known:
        hint = f"{did_you_mean(function, known)}; known: {', '.join(known)}"
        raise ConfigError(f"{name!r} is not among the {table.lower()} of {family}{hint}")
    return known[function]


def choice(
    item: Item, corpus: Corpus, recipe: Recipe, wrong: Iterable[Distractor], *, complete: bool = False
) -> Sample:
    """Make a choice Sample: the answer at a uniform place among the wrong options, each with its provenance.

    `complete` refuses fewer wrong options than the recipe wants.
    """
    others = list(wrong)
    require(others, recipe.wrong if complete else 1, f"record {item.id}")
    item, others = _without_stops(item, others)
    options, origins = place(item.answer, others, recipe.rng(item.id, "place"))
    return sample(msgspec.structs.replace(item, options=options), corpus, recipe, {"distractors": origins})


def _without_stops(item: Item, others: list[Distractor]) -> tuple[Item, list[Distractor]]:
    """Take the full stop from options that are sentences: a prompt ends the list of options with its own."""
    plain = [msgspec.structs.replace(wrong, text=plain_end(wrong.text)) for wrong in others]
    return msgspec.structs.replace(item, answer=plain_end(item.answer)), plain


def plain_end(text: str) -> str:
    """Return a text without the full stop of a sentence; abbreviations, initials and dots of omission keep theirs."""
    words = text.split()
    is_sentence = len(words) > 1 and text.endswith(".") and not text.endswith("..") and len(words[-1].strip(".")) > 2
    return text[:-1] if is_sentence and "." not in words[-1][:-1] else text


def fixed(item: Item, corpus: Corpus, recipe: Recipe, options: tuple[str, ...]) -> Sample:
    """Make a Sample with a fixed list of options in their usual order (yes/no, entailment)."""
    origins = {"*": {"source": "fixed set"}}
    return sample(msgspec.structs.replace(item, options=options), corpus, recipe, {"distractors": origins})


def sample(item: Item, corpus: Corpus, recipe: Recipe, meta: Mapping[str, Any] | None = None) -> Sample:
    """Make the Sample of an item whose options (if any) are settled."""
    known = {"slots": item.slots, "wordings": list(item.wordings), "boxes": [list(box) for box in item.boxes]}
    return Sample(
        id=item.id,
        dataset=recipe.dataset,
        form=recipe.form,
        question=item.question or "".join(item.wordings[:1]),
        images=_images(item, corpus),
        options=item.options,
        answers=_answers(item),
        group=item.group,
        tags=item.tags,
        meta={**(meta or {}), **{key: value for key, value in known.items() if value}},
    )


def _images(item: Item, corpus: Corpus) -> tuple[Image, ...]:
    if not item.image:
        return ()
    first = corpus.image(item.image, item.size)
    marked = msgspec.structs.replace(first, edits=box_edits(item, first, BOX_COLOURS))
    return (marked, *map(corpus.image, item.more_images))


def _answers(item: Item) -> tuple[str, ...]:
    """A choice has one answer; an open question has every annotator's, as often as it was given."""
    if item.options:
        return (item.answer,)
    first = (item.answer,) if item.answer not in item.accepted else ()
    return tuple(text for text in (*first, *item.accepted) if text)


def native(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Keep the options the dataset brings, sentences without their full stop; fewer than two is an error."""
    from ...data.checks import check_options

    for item in items:
        options, answer = tuple(map(plain_end, item.options)), plain_end(item.answer)
        check_options(item.id, options, answer)
        yield sample(msgspec.structs.replace(item, options=options, answer=answer), corpus, recipe)


def open_ended(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Keep the question open; every accepted answer is right."""
    for item in items:
        yield sample(item, corpus, recipe)
