"""Pictures with texts (captions, steps, hypotheses, claims) to Items, and to choices among texts that nearly fit."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...core.errors import DataError
from ...core.types import Sample
from ...data.answer_kinds import normalise
from .corpus import Corpus, Item, Tags
from .distractors import Distractor, first_unique, require
from .family_ground import read_instances
from .formulate import Recipe, choice, fixed, native

MAX_SHARED_WORDS = 0.5
"""Captions with more words in common than this share are taken for paraphrases."""
TRIES = 40
WHICH_CAPTION = "Which caption describes the picture?"
ENTAILMENT = {"entailment": "yes", "neutral": "not sure", "contradiction": "no"}
_BLOCK = re.compile(r"</?(?:p|br|div|li|ul|ol|h\d|td|tr|table|blockquote)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
CLAIMS = {"supported": "supported", "refuted": "refuted", "nei": "not enough information"}


def read_captions(corpus: Corpus) -> Iterator[Item]:
    """COCO captions joined to COCO instances: each picture with its captions and the categories seen in it."""
    captions: dict[int, list[str]] = {}
    for row in corpus.rows("captions", "annotations"):
        captions.setdefault(row["image_id"], []).append(" ".join(row["caption"].split()))
    for item in read_instances(corpus):
        texts = captions.get(int(item.id), [])
        if texts:
            seen = sorted({entry["category"] for entry in item.data["objects"]})
            yield msgspec.structs.replace(item, data={"captions": texts, "objects": seen})


class CaptionIndex:
    """Finds captions of other pictures that share an object but are no paraphrase."""

    def __init__(self, items: list[Item]) -> None:
        self._items = items
        self._by_object: dict[str, list[int]] = {}
        for place, item in enumerate(items):
            for name in item.data["objects"]:
                self._by_object.setdefault(name, []).append(place)

    def draw(self, item: Item, count: int, recipe: Recipe) -> list[Distractor]:
        """Draw `count` captions; those that share an object come first, any other picture's fill up."""
        generator = recipe.rng(item.id, "distractors")
        names = sorted(item.data["objects"])
        near = sorted({place for name in names for place in self._by_object.get(name, [])})
        everyone = range(len(self._items))
        chosen: list[Distractor] = []
        for source, places in (("shares an object", near), ("another picture", everyone)):
            tries = places if len(places) <= TRIES else generator.sample(places, TRIES)
            for place in generator.sample(list(tries), len(tries)):
                if len(chosen) == count:
                    return chosen
                self._consider(self._items[place], item, source, chosen, generator)
        return chosen

    def _consider(self, other: Item, item: Item, source: str, chosen: list[Distractor], generator: Any) -> None:
        text = generator.choice(other.data["captions"])
        known = [*item.data["captions"], *(wrong.text for wrong in chosen)]
        if other.id != item.id and all(_overlap(text, caption) <= MAX_SHARED_WORDS for caption in known):
            chosen.append(Distractor(text, f"{source}: image {other.id}"))


def _overlap(left: str, right: str) -> float:
    a, b = set(normalise(left).split()), set(normalise(right).split())
    return len(a & b) / max(1, min(len(a), len(b)))


def match_captions(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Does the caption fit? Of each two pictures one gets its own and one a hard wrong one: labels balance exactly."""
    gathered = list(items)
    index = CaptionIndex(gathered)
    for place, item in enumerate(gathered):
        pair = gathered[place - place % 2].id
        fits = (place % 2 == 0) == (recipe.rng(pair, "label").random() < 0.5)
        generator = recipe.rng(item.id, "caption")
        wrong = [] if fits else require(index.draw(item, 1, recipe), 1, f"record {item.id}")
        caption = generator.choice(item.data["captions"]) if fits else wrong[0].text
        question, answer = f"Does this caption describe the picture? Caption: {caption}", "yes" if fits else "no"
        slots, tags = {"caption": caption}, Tags(caption_from="itself" if fits else wrong[0].source)
        asked = Item(item.id, item.image, (), question, answer, size=item.size, slots=slots, tags=tags)
        yield fixed(asked, corpus, recipe, ("no", "yes"))


def select_caption(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Which caption fits? The picture's own against captions that share an object."""
    gathered = list(items)
    index = CaptionIndex(gathered)
    for item in gathered:
        wrong = index.draw(item, recipe.wrong, recipe)
        caption = recipe.rng(item.id, "caption").choice(item.data["captions"])
        asked = Item(item.id, item.image, size=item.size, question=WHICH_CAPTION, answer=caption)
        yield choice(asked, corpus, recipe, wrong, complete=True)


def read_wikihow(corpus: Corpus) -> Iterator[Item]:
    """wikiHow VGSI: JSON Lines of articles with methods and steps; one Item a step with a picture."""
    for article in corpus.rows("articles"):
        for method in article["methods"]:
            steps = [" ".join(step["headline"].split()) for step in method["steps"]]
            slots = {"method": method["name"], "title": article["goal"]}
            shared: dict[str, Any] = {"slots": slots, "group": str(article["file_id"]), "data": {"steps": steps}}
            for step, answer in zip(method["steps"], steps, strict=True):
                yield Item(step["step_id"], step["step_id"], answer=answer, **shared)


def select_step(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Which step does the picture show? Against other steps of the same method; methods too short are left out."""
    for item in items:
        others = first_unique(item.data["steps"], [item.answer])
        if len(others) < recipe.wrong:
            continue
        texts = recipe.rng(item.id, "distractors").sample(others, recipe.wrong)
        question = f'The picture belongs to the method "{item.slots["method"]}". Which step does it show?'
        asked = msgspec.structs.replace(item, question=question)
        yield choice(asked, corpus, recipe, [Distractor(text, "another step of the method") for text in texts])


def read_winoground(corpus: Corpus) -> Iterator[Item]:
    """Winoground: two pictures and two captions of the same words; each picture is one item."""
    for row in corpus.rows("examples"):
        captions, group, tags = (row["caption_0"], row["caption_1"]), str(row["id"]), {"tag": row.get("collapsed_tag")}
        for side, answer in enumerate(captions):
            name, image = f"{group}_{side}", str(row[f"image_{side}"])
            yield Item(name, image, (), WHICH_CAPTION, answer, options=captions, group=group, tags=tags)


def read_snli_ve(corpus: Corpus) -> Iterator[Item]:
    """SNLI-VE: JSON Lines with Flickr30K_ID, sentence2 and gold_label."""
    for number, row in enumerate(corpus.rows("pairs"), 1):
        label = row["gold_label"]
        if label not in ENTAILMENT:
            where = f"{corpus.files['pairs']} record {number}"
            raise DataError(f"{where}: label {label!r} is not one of {', '.join(ENTAILMENT)}")
        text = row["sentence2"].strip()
        question, slots = f"Does the picture show that this is true: {text}", {"hypothesis": text}
        yield Item(row["pairID"], str(row["Flickr30K_ID"]), (), question, ENTAILMENT[label], slots=slots)


def judge_entailment(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Yes, not sure or no."""
    return (fixed(item, corpus, recipe, tuple(ENTAILMENT.values())) for item in items)


def read_mocheg(corpus: Corpus) -> Iterator[Item]:
    """MOCHEG: Corpus2.csv joined to img_evidence_qrels.csv; the first relevant picture of each claim."""
    pictures: dict[str, str] = {}
    for row in corpus.rows("pictures"):
        if str(row["RELEVANCY"]) == "1":
            pictures.setdefault(str(row["TOPIC"]), row["DOCUMENT#"])
    seen: set[str] = set()
    for row in corpus.rows("claims"):
        number, label = str(row["claim_id"]), str(row["cleaned_truthfulness"]).lower()
        if number in seen or number not in pictures or label not in CLAIMS:
            continue
        seen.add(number)
        claim, evidence = plain_words(row["Claim"]), plain_words(row["Evidence"])
        question = f"Is this claim true? Claim: {claim} Text evidence: {evidence}"
        slots = {"claim": claim, "evidence": evidence}
        yield Item(number, pictures[number], question=question, answer=CLAIMS[label], slots=slots)


def plain_words(markup: str) -> str:
    """Return the words of a text with HTML in it: tags and entities gone, blanks single."""
    return " ".join(html.unescape(_TAG.sub("", _BLOCK.sub(" ", markup))).split())


def judge_claim(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Supported, refuted or not enough information."""
    return (fixed(item, corpus, recipe, tuple(CLAIMS.values())) for item in items)


READERS = {
    "captions": read_captions, "wikihow": read_wikihow, "winoground": read_winoground, "snli_ve": read_snli_ve,
    "mocheg": read_mocheg,
}  # fmt: skip
METHODS = {
    "match": match_captions, "select": select_caption, "step": select_step, "entail": judge_entailment,
    "claim": judge_claim, "native": native,
}  # fmt: skip
