"""Dialogues about a picture to Items, one a round, and each round to a choice with the rounds before it as history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...core.errors import DataError
from ...core.types import Sample, Turn
from ...data.answer_kinds import plain_kind, word_lists
from ...data.files.jsonstream import iterate_array, read_header
from .corpus import Corpus, Item, Tags
from .distractors import Distractor, same_answer
from .family_count import near_numbers
from .family_vqa import make_choices, read_pairs
from .formulate import Recipe, choice, fixed

MIN_ROUNDS = 2
SAYS_YES, SAYS_NO, UNSURE = "yes", "no", "unsure"
POLAR = {SAYS_YES: SAYS_NO, SAYS_NO: SAYS_YES}


def read_visdial(corpus: Corpus) -> Iterator[Item]:
    """VisDial 1.0: string tables, dialogues of indices into them, 100 candidates a round, relevance where given."""
    path = corpus.path("dialogs")
    tables = read_header(path, ("data", "dialogs"))
    questions, answers = tables.get("data.questions", []), tables.get("data.answers", [])
    relevance: dict[Any, list[float] | None] = {}
    if corpus.has("dense"):
        for row in corpus.rows("dense"):
            relevance[row["image_id"], row["round_id"] - 1] = row.get("gt_relevance", row.get("relevance"))
    for dialogue in iterate_array(path, ("data", "dialogs")):
        image = dialogue["image_id"]
        for number, turn in enumerate(dialogue["dialog"]):
            if turn["question"] >= len(questions) or turn["answer"] >= len(answers):
                raise DataError(f"{path.name} dialogue {image} round {number}: index outside the string tables")
            candidates = [answers[index] for index in turn["answer_options"]]
            data = {"candidates": candidates, "relevance": relevance.get((image, number))}
            question, answer = as_question(questions[turn["question"]]), answers[turn["answer"]]
            name, group, tags = f"{image}_{number}", str(image), Tags(round=number)
            yield Item(name, group, (), question, answer, group=group, tags=tags, data=data)


def as_question(text: str) -> str:
    """Return the text with a question mark at its end."""
    text = text.strip()
    return text if text.endswith("?") else text + "?"


def choose_candidate(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Each round: the answer against candidates of its kind that say something else, of no relevance where rated."""
    yield from with_history(_candidates(items, corpus, recipe))


def _candidates(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    for item in items:
        wrong, bare = _irrelevant(item, recipe), msgspec.structs.replace(item, data={})
        if {item.answer.lower(), *(other.text.lower() for other in wrong[:1])} == {"yes", "no"}:
            yield fixed(msgspec.structs.replace(bare, answer=item.answer.lower()), corpus, recipe, ("yes", "no"))
        else:
            yield choice(bare, corpus, recipe, wrong)


def _irrelevant(item: Item, recipe: Recipe) -> list[Distractor]:
    """Draw wrong replies; a round that is answered by yes or no has one, any other as many as there are."""
    candidates: list[str] = item.data["candidates"]
    rated: list[float] = item.data["relevance"] or [0.0] * len(candidates)
    texts = [text for text, value in zip(candidates, rated, strict=True) if value == 0]
    source = "candidate rated irrelevant" if item.data["relevance"] else "candidate unlike the answer"
    draw = _opposite_reply if reply_kind(item.answer) in POLAR else _replies_of_its_kind
    return draw(item, texts, source, recipe)


def _opposite_reply(item: Item, texts: list[str], source: str, recipe: Recipe) -> list[Distractor]:
    """Return the shortest reply that says the opposite: of those that say the same, the one that adds nothing."""
    wanted = POLAR[reply_kind(item.answer)]
    found = min((text for text in texts if reply_kind(text) == wanted), key=lambda text: (len(text), text), default="")
    return [Distractor(found, source) if found else Distractor(wanted, "the opposite reply")]


def _replies_of_its_kind(item: Item, texts: list[str], source: str, recipe: Recipe) -> list[Distractor]:
    """Draw replies of the answer's kind; numbers are made where candidates have too few."""
    kind, generator = reply_kind(item.answer), recipe.rng(item.id, "distractors")
    near = near_numbers(item.question, item.answer, (), recipe.wrong, generator=generator)
    alike = [text for text in texts if reply_kind(text) == kind]
    unlike = _apart(generator.sample(alike, len(alike)), item.answer, recipe.wrong)
    if near is not None and len(unlike) < recipe.wrong:
        return near
    return [Distractor(text, source) for text in unlike]


def reply_kind(text: str) -> str:
    """Return what a spoken reply is: yes, no, unsure, number, colour or words; "nope" and "0 that i see" say no."""
    said, lists = " ".join(text.casefold().replace(",", " ").split()).rstrip(" ."), word_lists()["replies"]
    for kind in (UNSURE, SAYS_NO, SAYS_YES):
        if said in lists.get(f"whole_{kind}", ()) or any(f"{said} ".startswith(f"{begin} ") for begin in lists[kind]):
            return kind
    return plain_kind("", said) or "words"


def _apart(texts: Iterable[str], answer: str, count: int) -> list[str]:
    """Return `count` texts that are neither the answer nor each other in other words."""
    kept: list[str] = []
    for text in texts:
        if len(kept) < count and not any(same_answer(text, other) for other in (answer, *kept)):
            kept.append(text)
    return kept


def join_questions(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """VQA-MT: the questions of one picture, in order of their ids, become the rounds of one dialogue."""
    by_image: dict[str, list[Item]] = {}
    for item in items:
        by_image.setdefault(item.image, []).append(item)
    rounds = []
    for image, group in by_image.items():
        if len(group) < MIN_ROUNDS:
            continue
        for number, item in enumerate(sorted(group, key=lambda member: member.id)):
            name, question = f"{image}_{number}", as_question(item.question)
            tags = {**item.tags, "round": number}
            rounds.append(msgspec.structs.replace(item, id=name, group=image, tags=tags, question=question))
    yield from with_history(make_choices(rounds, corpus, recipe))


def with_history(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Give each round the rounds before it: their right answers as turns, their options for prompts that show them."""
    turns: tuple[Turn, ...] = ()
    options: list[list[str]] = []
    group: str | None = None
    for sample in samples:
        if sample.group != group:
            turns, options, group = (), [], sample.group
        meta = {**sample.meta, "history_options": list(options)} if options else sample.meta
        yield msgspec.structs.replace(sample, turns=turns, meta=meta)
        turns = (*turns, Turn("user", sample.question), Turn("assistant", sample.answers[0]))
        options.append(list(sample.options))


READERS = {"visdial": read_visdial, "vqa": read_pairs}
METHODS = {"candidates": choose_candidate, "join": join_questions}
