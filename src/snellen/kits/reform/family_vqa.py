"""Question answering sets in their published files to Items, and open questions to choices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pybase64

from ...core.errors import DataError
from ...core.types import Sample
from ...data.answer_kinds import COLOUR, answer_kinds, is_year, normalise, word_lists
from .corpus import Corpus, Item, Tags, need
from .distractors import AnswerPool, Distractor, opposite_of, require, same_answer
from .family_count import near_numbers
from .formulate import Recipe, choice, fixed, native, open_ended

MAX_WORDS = 4
_OR = re.compile(r",?\s+or\s+", re.IGNORECASE)
_END = re.compile(r"[?.!]+\s*$")
_ARTICLES = ("a", "an", "the", "to", "on", "in", "at")


def other_alternative(question: str, answer: str) -> str | None:
    """Return the alternative that a question offers beside the answer, as it words it; None if it offers no two."""
    parts = _OR.split(_END.sub("", question.strip()))
    if len(parts) != 2:
        return None
    left, right = parts[0].split(), parts[1].split()
    said = answer.split()
    place = _find(said, right[: MAX_WORDS + 2])
    if place is not None:
        return _as_said(_mirrored(left, right[:place], len(said)), answer)
    place = _find(said, left[-MAX_WORDS - 2 :])
    if place is not None and _ends_with(left, said):
        lead = left[: len(left) - len(said)]
        return _as_said(_following(right, lead, len(said)), answer)
    return None


def _find(said: list[str], words: list[str]) -> int | None:
    """Return where `said` stands in `words`, whatever its case."""
    wanted = [normalise(word) for word in said]
    forms = [normalise(word) for word in words]
    return next((at for at in range(len(forms) - len(wanted) + 1) if forms[at : at + len(wanted)] == wanted), None)


def _ends_with(words: list[str], said: list[str]) -> bool:
    """Tell whether the answer ends the first alternative, a few words of which may follow ("on the left of …")."""
    return _find(said, words[-len(said) :]) is not None


def _mirrored(left: list[str], lead: list[str], length: int) -> list[str]:
    """Return the first alternative where the second is the answer after `lead` ("the", "to the")."""
    forms, wanted = [word.casefold() for word in left], [word.casefold() for word in lead]
    if wanted:
        for at in range(len(forms) - len(wanted) - 1, -1, -1):
            if forms[at : at + len(wanted)] == wanted and len(forms) - at - len(wanted) <= MAX_WORDS:
                return left[at + len(wanted) :]
    return left[-length:]


def _following(right: list[str], lead: list[str], length: int) -> list[str]:
    """Return the second alternative: without the words that led the first, and no longer than it where more follows."""
    start = 0
    while start < len(right) - 1 and right[start].casefold() in _ARTICLES:
        start += 1
    rest = right[start:]
    return rest if len(rest) <= max(length, 2) else rest[:length]


def _as_said(words: list[str], answer: str) -> str | None:
    """Return the alternative, if it is another thing than the answer; opposites are the surest."""
    while len(words) > 1 and words[0].casefold() in _ARTICLES:
        words = words[1:]
    text = " ".join(words).strip(" ,;")
    known = opposite_of(answer)
    if known and normalise(known) in normalise(text):
        return known
    return text if text and normalise(text) != normalise(answer) else None


YES_NO = ("yes", "no")


def read_pairs(corpus: Corpus) -> Iterator[Item]:
    """VQA v2, OK-VQA and TDIUC: a questions file and an annotations file joined by question_id."""
    wanted = corpus.settings.get("question_type")
    rows = corpus.rows("annotations", "annotations")
    labels = {row["question_id"]: _annotation(row) for row in rows if wanted in (None, row.get("question_type"))}
    for row in corpus.rows("questions", "questions"):
        number = need(row, "question_id", corpus.files["questions"])
        if number not in labels:
            if wanted is None:
                where = f"{corpus.files['questions']} question {number}"
                raise DataError(f"{where} has no annotation in {corpus.files['annotations']}")
            continue
        answer, accepted, kinds = labels[number]
        tags = Tags(question_type=kinds[0], answer_type=kinds[-1])
        yield Item(str(number), str(row["image_id"]), (), row["question"], answer, accepted, kinds=kinds, tags=tags)


def _annotation(label: dict[str, Any]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    answers = [str(given["answer"]) for given in label["answers"]]
    answer = str(label.get("multiple_choice_answer") or _majority(answers))
    kind, wide = str(label.get("question_type", "")), str(label.get("answer_type", label.get("question_type", "")))
    return answer, tuple(dict.fromkeys(answers)), (kind, wide)


def _majority(answers: list[str]) -> str:
    """Return the most frequent answer; of equals, the first given."""
    return Counter(answers).most_common(1)[0][0]


def read_gqa(corpus: Corpus) -> Iterator[Item]:
    """GQA: one object of questions keyed by id."""
    for number, row in corpus.members("questions"):
        types = row.get("types", {})
        kinds = tuple(str(types.get(key, "")) for key in ("detailed", "semantic", "structural"))
        tags = Tags(question_type=kinds[2])
        yield Item(str(number), str(row["imageId"]), (), row["question"], row["answer"], kinds=kinds, tags=tags)


def read_scienceqa(corpus: Corpus) -> Iterator[Item]:
    """ScienceQA: problems keyed by id; those of the split that have a picture."""
    split = corpus.settings.get("split", "test")
    for number, row in corpus.members("problems"):
        if row.get("split") != split or not row.get("image"):
            continue
        choices = tuple(row["choices"])
        hint = (row.get("hint") or "").strip()
        question = f"{row['question']} Context: {hint}" if hint else row["question"]
        tags = {key: row.get(key) for key in ("subject", "topic", "grade")}
        yield Item(str(number), str(number), (), question, choices[row["answer"]], options=choices, tags=tags)


def read_vizwiz(corpus: Corpus) -> Iterator[Item]:
    """VizWiz: pictures, each with one question and ten answers; unanswerable ones are left out unless asked for."""
    for row in corpus.rows("annotations"):
        answers = [str(given["answer"]) for given in row["answers"]]
        answer = _majority(answers)
        if answer in ("unanswerable", "unsuitable") and not corpus.settings.get("unanswerable"):
            continue
        kinds, name = (str(row.get("answer_type", "")),), row["image"].rsplit(".", 1)[0]
        yield Item(name, row["image"], (), row["question"], answer, tuple(answers), kinds=kinds)


def read_viquae(corpus: Corpus) -> Iterator[Item]:
    """ViQuAE: JSON Lines with input, output and image; with a passages file, the first that supports the answer."""
    passages: dict[int, str] = {}
    if corpus.has("passages"):
        passages = {int(row["index"]): row["passage"].strip() for row in corpus.rows("passages")}
    for row in corpus.rows("questions"):
        context = next((passages[index] for index in row.get("provenance_indices") or [] if index in passages), "")
        if context or not corpus.settings.get("context"):
            yield _entity_question(row, context)


def _entity_question(row: dict[str, Any], context: str) -> Item:
    output = row["output"]
    answer, accepted = output.get("original_answer") or output["answer"][0], tuple(output["answer"])
    question, slots = (f"{row['input']} Context: {context}", {"context": context}) if context else (row["input"], {})
    return Item(str(row["id"]), row["image"], (), question, answer, accepted, slots=slots, data={"asked": row["input"]})


def read_aokvqa(corpus: Corpus) -> Iterator[Item]:
    """A-OKVQA: native choices; `ask` = answer, answer_with_rationale or rationale."""
    ask = corpus.settings.get("ask", "answer")
    for row in corpus.rows("annotations"):
        choices, rationale = tuple(row["choices"]), " ".join(str(row["rationales"][0]).split())
        answer, question = choices[row["correct_choice_idx"]], row["question"]
        item = Item(row["question_id"], str(row["image_id"]), question=question, answer=answer, options=choices)
        if ask == "answer_with_rationale":
            told = f"{question} Rationale: {rationale}"
            item = msgspec.structs.replace(item, question=told, slots={"rationale": rationale})
        elif ask == "rationale":
            told, accepted = f"{question} Answer: {answer}", tuple(row["rationales"])
            # Reasons for the same answer come first: of others, the answer in the question would tell them apart.
            kinds = (f"reasons for {answer!r}",)
            item = Item(item.id, item.image, (), told, rationale, accepted, kinds=kinds, data={"asked": question})
        yield item


def read_whoops(corpus: Corpus) -> Iterator[Item]:
    """WHOOPS!: a table whose column question_answering_pairs lists [question, answer]."""
    for row in corpus.rows("table"):
        pairs = row["question_answering_pairs"]
        pairs = msgspec.json.decode(pairs) if isinstance(pairs, str) else pairs
        image = str(row["image_id"])
        for number, (question, answer) in enumerate(pairs):
            yield Item(f"{image}_{number}", image, (), question, answer)


def read_imagenetvc(corpus: Corpus) -> Iterator[Item]:
    """ImageNetVC: one CSV an aspect (category, question, answer); the picture is the class folder's first."""
    synsets = {}
    for _, line in corpus.lines("classes"):
        synset, _, names = line.partition(" ")
        synsets[names.split(",")[0].strip()] = synset
    for path, rows in corpus.tables("tables"):
        kind = path.stem
        for number, row in enumerate(rows, 1):
            folder = corpus.inside(f"{corpus.settings.get('folder', 'images')}/{synsets.get(row['category'], '?')}")
            image = min((file.name for file in folder.glob("*.*")), default=None)
            if image is None:
                raise DataError(f"{path.name} record {number}: no picture of {row['category']!r} in {folder}")
            name, answer, tags = f"{kind}_{number}", str(row["answer"]).lower(), Tags(aspect=kind)
            yield Item(name, f"{folder.name}/{image}", (), row["question"], answer, kinds=(kind,), tags=tags)


def read_blink(corpus: Corpus) -> Iterator[Item]:
    """BLINK: Parquet files by subtask with up to four pictures, choices and an answer letter in brackets."""
    for path, rows in corpus.tables("tables"):
        for row in rows:
            images = [_data_url(row[key]) for key in ("image_1", "image_2", "image_3", "image_4") if row.get(key)]
            options = tuple(str(option) for option in row["choices"])
            letter = str(row["answer"]).strip("()")
            place = ord(letter) - ord("A") if len(letter) == 1 else -1
            if not 0 <= place < len(options):
                where = f"{path.name} record {row['idx']}"
                raise DataError(f"{where}: answer {row['answer']!r} is not one of {len(options)} choices")
            question, tags = row["question"], {"sub_task": row["sub_task"]}
            answer, more = options[place], tuple(images[1:])
            yield Item(row["idx"], images[0], more, question, answer, options=options, tags=tags)


def _data_url(value: Any) -> str:
    data: bytes = value["bytes"] if isinstance(value, dict) else value
    return "data:image/unknown;base64," + pybase64.b64encode(data).decode()


def make_choices(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Open question to choice: yes/no as such, two that it names, numbers among near ones, else answers of its kind."""
    gathered = list(items)
    known = [(COLOUR, word) for word in word_lists()["colours"]["common"]]
    kinds = [_kinds(item) for item in gathered]
    pairs = (pair for item, own in zip(gathered, kinds, strict=True) for pair in _kind_pairs(item, own))
    pool = AnswerPool([*pairs, *known])
    years = (int(item.answer) for item in gathered if is_year(_asked(item), item.answer))
    latest = max(years, default=None)
    for item, own in zip(gathered, kinds, strict=True):
        if normalise(item.answer) in YES_NO:
            yield fixed(msgspec.structs.replace(item, answer=normalise(item.answer)), corpus, recipe, YES_NO)
        else:
            yield choice(item, corpus, recipe, _wrong(item, own, pool, recipe, latest))


def _asked(item: Item) -> str:
    """Return the question itself, without a passage that stands beside it."""
    return str(item.data.get("asked") or item.question)


def _kinds(item: Item) -> tuple[str, ...]:
    return answer_kinds(_asked(item), item.answer, item.kinds)


def _kind_pairs(item: Item, kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if normalise(item.answer) not in YES_NO:
        yield from ((kind, item.answer) for kind in (*kinds, ""))


def _wrong(
    item: Item, kinds: tuple[str, ...], pool: AnswerPool, recipe: Recipe, latest: int | None
) -> Iterable[Distractor]:
    count, generator = recipe.wrong, recipe.rng(item.id, "distractors")
    other = other_alternative(_asked(item), item.answer)
    if other is not None and not any(same_answer(other, text) for text in item.accepted):
        return [Distractor(other, "the question's other alternative")]
    near = near_numbers(_asked(item), item.answer, item.accepted, count, generator=generator, latest=latest)
    if near is not None:
        return require(near, count, f"record {item.id}")
    opposite = opposite_of(item.answer)
    first = [Distractor(opposite, "opposite")] if opposite and opposite not in item.accepted else []
    accepted = (*item.accepted, *(wrong.text for wrong in first))
    more = pool.negatives(kinds, item.answer, accepted, count - len(first), generator)
    # Fewer options of the answer's kind are better than more: one of another kind is no option, and tells the others.
    found = first + more or pool.negatives(("",), item.answer, accepted, count, generator)
    return require(found, 1, f"record {item.id}")


READERS = {
    "pairs": read_pairs, "gqa": read_gqa, "scienceqa": read_scienceqa, "vizwiz": read_vizwiz, "viquae": read_viquae,
    "aokvqa": read_aokvqa, "whoops": read_whoops, "imagenetvc": read_imagenetvc, "blink": read_blink,
}  # fmt: skip
METHODS = {"choices": make_choices, "native": native, "open": open_ended}
