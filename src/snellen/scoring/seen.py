"""What only the viewer asks of trials: texts to search in, and what each reply took; packed some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.types import Prediction
from ..store.reader import Trial
from .packed import fewest_bytes
from .table import Codes, Costs, Mask

SEARCHED = 4_000
"""Characters of a reply that the text search looks at."""
BLOCK_TEXTS = 4_000
"""Texts that are packed together where nothing else cuts them."""


class TextBlock(NamedTuple):
    """Some texts in lower case, one a row. Equal ones are held, and searched, once: short replies are often equal."""

    texts: bytes
    ends: NDArray[Any]
    """Where each of the different texts ends."""
    codes: NDArray[Any]
    """Which one a row has."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> TextBlock:
        """Pack texts that are in lower case already."""
        book: dict[str, int] = {}
        codes = [book.setdefault(text, len(book)) for text in texts]
        content = [text.encode("utf-8", "surrogatepass") for text in book]
        ends = np.cumsum([len(text) for text in content], dtype=np.int64)
        return cls(b"".join(content), fewest_bytes(ends), fewest_bytes(np.array(codes, np.int64)))

    def pieces(self) -> list[bytes]:
        """Return the different texts."""
        return [self.texts[start:end] for start, end in pairwise((0, *self.ends.tolist()))]

    def containing(self, needle: bytes) -> Mask:
        """Return which rows have a text in theirs."""
        if needle not in self.texts:
            return np.zeros(self.codes.size, np.bool_)
        found = np.array([needle in piece for piece in self.pieces()], np.bool_)
        return np.asarray(found[self.codes], np.bool_)


class SearchTexts(Protocol):
    """Where the texts of a task's trials are: in memory, or in the file of its columns."""

    @property
    def places(self) -> Codes | None:
        """Return which question belongs to each sample; None: they are in the order of the samples."""
        ...

    def replies(self) -> Iterable[TextBlock]:
        """Yield the replies, in the order of the columns."""
        ...

    def questions(self) -> Iterable[TextBlock]:
        """Yield ids and questions."""
        ...


class HeldTexts(NamedTuple):
    """Texts in memory."""

    reply_blocks: list[TextBlock]
    question_blocks: list[TextBlock]
    places: Codes | None = None

    def replies(self) -> Iterable[TextBlock]:
        """Return the replies, in the order of the columns."""
        return self.reply_blocks

    def questions(self) -> Iterable[TextBlock]:
        """Return ids and questions, in the order of the samples."""
        return self.question_blocks


class SeenPart(NamedTuple):
    """Some trials, in the order of the plan, as the viewer asks for them; of their samples, in that order, as well."""

    replies: TextBlock
    questions: TextBlock
    latency_s: NDArray[np.float64]
    tokens: NDArray[Any]
    input_tokens: NDArray[Any]


class SeenTrials:
    """Gathers a part as its trials pass."""

    def __init__(self) -> None:
        self._questions: dict[str, str] = {}
        self._replies: list[str] = []
        self._costs: list[tuple[float, int, int]] = []

    def add(self, trials: Sequence[Trial]) -> None:
        """Take trials."""
        for sample, _, prediction, _ in trials:
            self._questions.setdefault(sample.id, sample.question)
            self._replies.append(searched_reply(prediction.text))
            self._costs.append(spent_on(prediction))

    def part(self) -> SeenPart:
        """Return all that was taken."""
        questions = [searched_question(name, question) for name, question in self._questions.items()]
        costs = costs_of(self._costs)
        tokens, asked = fewest_bytes(costs.tokens), fewest_bytes(costs.input_tokens)
        return SeenPart(TextBlock.of(self._replies), TextBlock.of(questions), costs.latency_s, tokens, asked)


def searched_reply(text: str | None) -> str:
    """Return the part of a reply that is searched."""
    return (text or "")[:SEARCHED].lower()


def searched_question(name: str, question: str) -> str:
    """Return what is searched of a sample."""
    return f"{name}\n{question}".lower()


def text_blocks(texts: Iterable[str]) -> list[TextBlock]:
    """Return texts as blocks."""
    return list(_blocks(iter(texts)))


def _blocks(texts: Iterator[str]) -> Iterator[TextBlock]:
    while some := list(islice(texts, BLOCK_TEXTS)):
        yield TextBlock.of(some)


def spent_on(prediction: Prediction) -> tuple[float, int, int]:
    """Return the seconds, tokens and input tokens of one prediction; NaN and 0 where they are not known."""
    timing, usage = prediction.timing, prediction.usage
    latency_s = np.nan if timing is None or prediction.cached else timing.done - timing.sent
    tokens = ((usage.output_tokens or 0), (usage.input_tokens or 0)) if usage else (0, 0)
    return latency_s, *tokens


def costs_of(rows: Sequence[tuple[float, int, int]]) -> Costs:
    """Return what trials took as columns."""
    latency, tokens, asked = zip(*rows, strict=True) if rows else ((), (), ())
    return Costs(np.array(latency, np.float64), np.array(tokens, np.int64), np.array(asked, np.int64))
