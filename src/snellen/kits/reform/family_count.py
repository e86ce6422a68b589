"""Counting questions to Items, and numbers to choices among near numbers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count as count_from
from itertools import islice

from ...core.errors import DataError
from ...core.types import Sample
from ...data.answer_kinds import is_year, normalise, read_written
from .corpus import Corpus, Item, need
from .distractors import Distractor
from .family_ground import read_instances
from .formulate import Recipe, choice


def near_numbers(
    question: str,
    answer: str,
    accepted: Iterable[str],
    count: int,
    *,
    generator: random.Random,
    latest: int | None = None,
) -> list[Distractor] | None:
    """Draw numbers near the answer and written like it, none an accepted one; None if the answer is no number.

    Years stay within what could have been meant: close by, and not after `latest`, the last one of the corpus.
    """
    written = read_written(answer, question)
    if written is None:
        return None
    forbidden = {normalise(text) for text in (answer, *accepted)}
    year = is_year(question, answer)
    last = max(latest or 0, written.value)
    highest = last if year else written.highest

    def fits(value: int) -> bool:
        return (highest is None or value <= highest) and normalise(written.write(value)) not in forbidden

    step, reach = (1, 5 + (last - written.value) // 8) if year else (written.step, 0)
    values = near_values(written.value, count, generator, fits=fits, step=step, reach=reach)
    return [Distractor(written.write(value), "near year" if year else "near integer") for value in values]


def near_integers(answer: int, count: int, generator: random.Random) -> list[Distractor]:
    """Draw `count` integers near `answer` so that its rank among all options is uniform where 0 allows."""
    values = near_values(answer, count, generator, fits=lambda value: value != answer)
    return [Distractor(str(value), "near integer") for value in values]


def near_values(
    answer: int, count: int, generator: random.Random, *, fits: Callable[[int], bool], step: int = 1, reach: int = 0
) -> list[int]:
    """Draw `count` values at multiples of `step` from `answer`, none below 0, so that its rank is uniform.

    What does not fit is passed over, never left out: the next farther value takes its place.
    """
    reach = reach or (3 if abs(answer) < 20 * step else max(3, abs(answer) // (10 * step)))
    under = list(islice(_fitting(answer, -step, fits), max(reach, count)))
    over = list(islice(_fitting(answer, step, fits), max(reach, count)))
    below = min(generator.randrange(count + 1), len(under))
    above = min(count - below, len(over))
    below = min(count - above, len(under))
    return sorted(generator.sample(under, below)) + sorted(generator.sample(over, above))


FARTHEST = 400
"""Steps after which nothing more is looked for (words for numbers end, years end)."""


def _fitting(answer: int, step: int, fits: Callable[[int], bool]) -> Iterator[int]:
    values = (answer + step * place for place in islice(count_from(1), FARTHEST))
    return (value for value in values if value >= 0 and fits(value))


def read_countqa(corpus: Corpus) -> Iterator[Item]:
    """CountQA: a list of Image_ID, Question, Answer (an integer) and Resolved_COCO_category."""
    for number, row in enumerate(corpus.rows("questions"), 1):
        where = f"{corpus.files['questions']} record {number}"
        answer = str(need(row, "Answer", where))
        if not answer.isdigit():
            raise DataError(f"{where}: answer {answer!r} is not a whole number")
        tags = {"category": row.get("Resolved_COCO_category")}
        yield Item(str(number), str(row["Image_ID"]), question=row["Question"].strip(), answer=answer, tags=tags)


def read_counts(corpus: Corpus) -> Iterator[Item]:
    """COCO instances: one question for each category of a picture."""
    for item in read_instances(corpus):
        counts = Counter(entry["category"] for entry in item.data["objects"])
        for category, number in sorted(counts.items()):
            question, tags = f"How many of this are in the picture: {category}?", {"category": category}
            name = f"{item.id}_{category}"
            yield Item(name, item.image, size=item.size, question=question, answer=str(number), tags=tags)


def choose_number(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Number to choice: near integers, the answer's rank among them uniform."""
    for item in items:
        wrong = near_integers(int(item.answer), recipe.wrong, recipe.rng(item.id, "distractors"))
        yield choice(item, corpus, recipe, wrong)


READERS = {"countqa": read_countqa, "instances": read_counts}
METHODS = {"numbers": choose_number}
