"""Questions about long documents into jobs: the first question of a document as a warm-up, then the rest at once.

A server's prefix cache holds the pages once they were read; asking a document's questions together lets it hit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby, product

import msgspec

from ...core.jobs import Ask, Item, RequestBuilder
from ...core.message_parts import keep_pictures
from ...core.protocols import Capability, Inferencer
from ...core.tasks import Task
from ...core.types import Failure, FailureKind, Prediction, Request, TrialKey
from ...core.variants import parse_variant
from ...prompt.controls import skip_reason

DOCUMENTS_IN_FLIGHT = 8
"""How many documents with several questions are open at once: few enough that a server's cache holds them all."""


@dataclass(frozen=True, slots=True)
class DocumentJob:
    """All questions about one document under one variant and repeat."""

    items: Sequence[Item]
    keys: Sequence[TrialKey]
    prompter: RequestBuilder
    gate: asyncio.Semaphore

    async def run(self, ask: Ask) -> None:
        """Ask the first question alone, then the others side by side; a single one fills no cache and need not wait."""
        (item, key), *others = zip(self.items, self.keys, strict=True)
        async with self.gate if others else nullcontext():
            await self._ask(ask, item, key)
            await asyncio.gather(*(self._ask(ask, item, key) for item, key in others))

    async def _ask(self, ask: Ask, item: Item, key: TrialKey) -> None:
        request = self.prompter.build(item.sample, key.variant, key.repeat)
        reason = skip_reason(item.sample, parse_variant(key.variant))
        if reason is not None:
            kind = FailureKind.TOO_LONG if reason.startswith("too long") else FailureKind.SKIPPED
            await ask(item, request, Prediction(key, failure=Failure(kind, reason, attempts=0)))
            return
        pages = int(item.sample.meta.get("chunk_pages", 0))
        if pages and sum(len(turn.images) for turn in request.messages) > pages:
            await ask(item, request, await vote(ask, item, request, pages))
        else:
            await ask(item, request)


class Document(Inferencer):
    """Asks all questions about a document together."""

    needs = frozenset({Capability.GENERATE})

    def plan(self, task: Task, items: Iterable[Item], prompter: RequestBuilder) -> Iterator[DocumentJob]:
        """Yield a job for every document × variant × repeat; a document's questions follow one another in the data."""
        gate = asyncio.Semaphore(int(task.dataset.get("documents_in_flight", DOCUMENTS_IN_FLIGHT)))
        for _, group in groupby(items, key=lambda item: item.sample.group or item.sample.id):
            questions = list(group)
            for variant, repeat in product(task.variants, range(task.repeats)):
                keys = [TrialKey(task.name, item.sample.id, variant, repeat) for item in questions]
                yield DocumentJob(questions, keys, prompter, gate)


async def vote(ask: Ask, item: Item, request: Request, pages: int) -> Prediction:
    """Ask about every `pages` pages on their own and return the reply given most often; ties go to the earlier one."""
    replies = [await ask(item, part, keep=False) for part in chunks(request, pages)]
    failed = next((reply for reply in replies if reply.failure is not None), None)
    if failed is not None:
        return msgspec.structs.replace(failed, key=request.key)
    texts = [(reply.text or "").strip() for reply in replies]
    votes = [text for text in texts if not _abstains(text)] or texts
    counts = Counter(text.casefold() for text in votes)
    winner = max(votes, key=lambda text: counts[text.casefold()])
    chosen = replies[texts.index(winner)]
    return msgspec.structs.replace(chosen, key=request.key, detail={**chosen.detail, "chunks": texts})


def chunks(request: Request, pages: int) -> Iterator[Request]:
    """Yield the request once for every `pages` pictures of its last message."""
    *before, last = request.messages
    for start in range(0, len(last.images), pages):
        part = keep_pictures(last, range(start, start + pages))
        yield msgspec.structs.replace(request, messages=(*before, part))


def _abstains(text: str) -> bool:
    return not text or "not found" in text.casefold()


DOCUMENT = Document()
