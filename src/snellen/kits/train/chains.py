"""Chains: what a model is told and should reply, from files of others and CURE sets; and the rows a trainer takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.config import convert
from ...core.errors import DataError, UsageError
from ...core.tasks import Prompt, Task
from ...core.types import Image, Request, Sample, Turn
from ...data.catalog import Catalog, card_of_file
from ...data.files.rows import Row, read_rows
from ...data.images.decode import open_image
from ...prompt.build import Prompter
from ...prompt.template import fill
from ..cure.loader import INFERENCE, CureItem, CureSource, PictureFinder, item_samples, read_items


class Chain(Struct, frozen=True, gc=False, omit_defaults=True):
    """One sample of any training: SFT reads `reply`, DPO also `rejected`, GRPO the labels alone."""

    id: str
    turns: tuple[Turn, ...]
    """What the model is told; the last turn is the user's."""
    reply: str = ""
    rejected: str = ""
    answers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    """What a right rationale states, in order: the right answers of the steps."""
    good: bool | None = None
    """What a judge said of the reply, where it did (conditional training)."""

    @property
    def pictures(self) -> tuple[Image, ...]:
        """Return all pictures in the order shown."""
        return tuple(image for turn in self.turns for image in turn.images)


def mark_control(chain: Chain, words: Sequence[str]) -> Chain:
    """Return the chain with the control word of its verdict before the last thing the user says."""
    *before, last = chain.turns
    word = words[0] if chain.good else words[1]
    text = f"{word} {last.text}"
    parts = last.parts
    if parts:
        first = next(place for place, part in enumerate(parts) if isinstance(part, str))
        parts = (*parts[:first], f"{word} {parts[first]}", *parts[first + 1 :])
    return Chain(chain.id, (*before, Turn(last.role, text, last.images, parts)), chain.reply)


def open_pictures(chain: Chain) -> list[Any]:
    """Return the pixels of all pictures through the one door, edits applied: as a model is asked, so it is taught."""
    try:
        return [open_image(image).convert("RGB") for image in chain.pictures]
    except DataError as error:
        raise DataError(f"{chain.id}: {error}") from None


def message_of(turn: Turn) -> dict[str, Any]:
    """Return a turn as the message a chat template takes, pictures as placeholders where they stand."""
    shown = turn.arrange([{"type": "image"} for _ in turn.images])
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in shown]
    return {"role": turn.role, "content": content}


def _said_by(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def sft_row(chain: Chain) -> dict[str, Any]:
    """Return prompt and completion: the loss is on the completion only."""
    prompt = [message_of(turn) for turn in chain.turns]
    return {"images": open_pictures(chain), "prompt": prompt, "completion": _said_by(chain.reply)}


def preference_row(chain: Chain) -> dict[str, Any]:
    """Return a prompt with the better and the worse reply."""
    prompt = [message_of(turn) for turn in chain.turns]
    chosen, rejected = _said_by(chain.reply), _said_by(chain.rejected)
    return {"images": open_pictures(chain), "prompt": prompt, "chosen": chosen, "rejected": rejected}


def prompt_row(chain: Chain) -> dict[str, Any]:
    """Return a prompt with what a reward needs to know of it."""
    prompt = [message_of(turn) for turn in chain.turns]
    labels = {"answers": list(chain.answers), "options": list(chain.options), "facts": list(chain.facts)}
    return {"images": open_pictures(chain), "prompt": prompt, **labels}


TASK = "cure-rationale"
PUBLISHED = "task.toml"


class RationaleWords(Struct, frozen=True, forbid_unknown_fields=True):
    """How a chain is told: catalog/train/*.toml."""

    prompt: str
    step: str
    answer: str
    join: str = "\n"
    title: str = ""
    control: tuple[str, str] = ("<good>", "<bad>")
    """The words before a prompt whose reply was judged good, and bad (conditional training)."""


def read_words(catalog: Catalog, name: str) -> RationaleWords:
    """Return one card of words."""
    return convert(catalog.card("train", name), RationaleWords, f"train card {name!r}")


def find_cure_task(path: Path, catalog: Catalog, image_root: Path | None) -> Task | None:
    """Return the task of annotated chains behind a path (file, task file or published set), or None if it is none."""
    if path.is_dir() and (path / "published" / PUBLISHED).is_file():  # a whole workshop
        path = path / "published"
    if path.is_dir() and (path / PUBLISHED).is_file():
        path = path / PUBLISHED
    root = [("dataset.image_root", str(image_root))] if image_root else []
    if path.suffix == ".toml":
        task = catalog.task(str(path), root)
        if task.dataset.get("loader") != "cure":
            raise UsageError(f"{path} is no task of chains (loader cure): give its rows as messages instead")
        return task
    if path.is_file() and card_of_file(path) == "cure":
        return catalog.task(TASK, [("dataset.path", str(path)), *root])
    return None


def read_cure_chains(task: Task, catalog: Catalog, words: RationaleWords, *, seed: int, steps: bool) -> Iterator[Chain]:
    """Yield for each item its inference with the rationale, and if told its steps with their short answers."""
    source = convert(task.dataset, CureSource, f"dataset of task {task.name!r}")
    find = PictureFinder(source, None)
    prompter = Prompter(task, _prompt_of(task, catalog, words), seed)
    for number, item in enumerate(read_items(Path(source.path))):
        if source.items is not None and number >= source.items:
            return
        for sample in item_samples(item, number, source, find, task.name):
            if steps or sample.tags["role"] == INFERENCE:
                yield _chain(sample, prompter.build(sample), item, words)


def _prompt_of(task: Task, catalog: Catalog, words: RationaleWords) -> Prompt:
    """Return the task's own prompt, or that of the words: a published set names none."""
    if task.prompt:
        return catalog.prompt(task)
    return convert(catalog.card("prompts", words.prompt), Prompt, f"prompt {words.prompt!r}")


def _chain(sample: Sample, request: Request, item: CureItem, words: RationaleWords) -> Chain:
    answer = sample.answers[0]
    mark = request.marks[request.shown.index(answer)] if request.marks else ""
    last = fill(words.answer, {"mark": mark, "text": answer})
    facts = tuple(step.candidate[step.gt].strip() for step in item.cot_inference.chain)
    lines = []
    if sample.tags["role"] == INFERENCE:
        told = zip(item.cot_inference.chain, facts, strict=True)
        lines = [fill(words.step, {"question": step.question, "answer": fact}) for step, fact in told]
    reply = words.join.join([*lines, last])
    labels = facts if sample.tags["role"] == INFERENCE else ()
    shown = request.shown or sample.options
    return Chain(sample.id, request.messages, reply, answers=(answer,), options=shown, facts=labels)


MARKER = "<image>"
ROLES = {
    **{"human": "user", "user": "user"},
    **{"gpt": "assistant", "assistant": "assistant", "model": "assistant"},
    **{"system": "system"},
}
CONVERSATIONS = ("conversations", "messages", "conversation")
PICTURES = ("images", "image", "image_path", "picture")
PROMPTS = ("prompt", "question", "query", "instruction")
REPLIES = ("completion", "chosen", "response", "rationale", "answer")
Said = tuple[str, str | list[Any]]


def read_chains(path: Path, image_root: Path | None = None) -> Iterator[Chain]:
    """Yield one chain a reply of the model, each with all that was said before it; lazily, errors by record."""
    root = image_root or path.parent
    for number, row in read_rows(path):
        where = f"{path.name} record {number}"
        yield from _chains_of(row, f"{path.stem}:{number}", root, where)


def _chains_of(row: Row, name: str, root: Path, where: str) -> Iterator[Chain]:
    if "turns" in row and "id" in row:
        yield _own(row, root, where)
        return
    find = Finder(row, root, where)
    said, rejected = _said(row, where), _text(row, "rejected", where) if "rejected" in row else ""
    turns: list[Turn] = []
    replies = 0
    for role, content in said:
        if role != "assistant":
            turns.append(find.turn(role, content))
            continue
        replies += 1
        turn = find.turn(role, content)
        if not turn.text.strip():
            raise DataError(f"{where}: reply {replies} of the model is empty; give it a text or take the record out")
        if not turns or turns[-1].role != "user":
            raise DataError(f"{where}: reply {replies} of the model answers nothing that a user said")
        yield Chain(f"{name}.{replies}", tuple(turns), turn.text, rejected)
        turns.append(turn)
    find.check_all_used()
    if not replies:
        raise DataError(f"{where}: nothing the model should reply (no turn of 'assistant' or 'gpt')")


def _own(row: Row, root: Path, where: str) -> Chain:
    """Return a chain as we write it ourselves; pictures beside the file are found."""
    try:
        chain = msgspec.convert(row, Chain)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {error}") from None
    return found_from(chain, root)


def found_from(chain: Chain, root: Path) -> Chain:
    """Return a chain whose pictures are found from anywhere: what was relative is relative to `root`."""
    turns = tuple(msgspec.structs.replace(turn, images=tuple(_at(image, root) for image in turn.images))
                  for turn in chain.turns)  # fmt: skip
    return msgspec.structs.replace(chain, turns=turns)


def _at(image: Image, root: Path) -> Image:
    return image if "://" in image.ref[:9] or image.ref[:5] == "data:" else msgspec.structs.replace(
        image, ref=str(root / image.ref)
    )  # fmt: skip


def _said(row: Row, where: str) -> list[Said]:
    """Return who said what, from the conversation, or from prompt and completion."""
    for field in CONVERSATIONS:
        if isinstance(row.get(field), list):
            system = [("system", row["system"])] if isinstance(row.get("system"), str) and row["system"] else []
            return [*system, *(_one_said(turn, f"{where}, turn {n}") for n, turn in enumerate(row[field], 1))]
    prompt, reply = _first(row, PROMPTS), _first(row, REPLIES)
    if not prompt or not reply:
        known = f"{', '.join(CONVERSATIONS)}, or prompt and completion ({', '.join(REPLIES[1:])})"
        raise DataError(f"{where}: no conversation; known fields: {known}; it has {', '.join(row) or 'none'}")
    return [("user", _text(row, prompt, where)), ("assistant", _text(row, reply, where))]


def _first(row: Row, names: tuple[str, ...]) -> str:
    return next((name for name in names if name in row), "")


def _one_said(turn: Any, where: str) -> Said:
    if not isinstance(turn, Mapping):
        raise DataError(f"{where}: a turn is an object with role and content, or from and value")
    role, content = turn.get("role", turn.get("from")), turn.get("content", turn.get("value"))
    if role not in ROLES:
        raise DataError(f"{where}: unknown speaker {role!r}; known: {', '.join(ROLES)}")
    if not isinstance(content, str | list):
        raise DataError(f"{where}: content is neither a text nor a list of parts")
    return ROLES[role], content


def _text(row: Row, name: str, where: str) -> str:
    value = row[name]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):  # one message in a list
        value = value[0].get("content")
    if not isinstance(value, str):
        raise DataError(f"{where}: {name} is not a text")
    return value


class Finder:
    """The pictures of one record, handed out in the order of their markers."""

    def __init__(self, row: Row, root: Path, where: str) -> None:
        self._root, self._where = root, where
        listed: Any = next((row[name] for name in PICTURES if row.get(name)), [])
        self._waiting = [self.image(each) for each in (listed if isinstance(listed, list) else [listed])]
        self._handed = 0
        self._count = len(self._waiting)
        self._marked = MARKER in str([row.get(name) for name in (*CONVERSATIONS, "prompt", "question", "query")])

    def image(self, value: Any) -> Image:
        """Return one picture: a path beside the file, or a data: URL."""
        reference = value.get("path") if isinstance(value, Mapping) else value
        if not isinstance(reference, str) or not reference:
            raise DataError(f"{self._where}: a picture is a path, not {type(value).__name__}")
        return Image(reference if reference.startswith("data:") else str(self._root / reference))

    def turn(self, role: str, content: str | list[Any]) -> Turn:
        """Return a turn with the pictures that stand in it; without any marker all stand in the first of the user."""
        pieces = self._pieces(content)
        if not self._marked and self._handed == 0 and role == "user":
            pieces = [*(self._next() for _ in range(self._count)), *pieces]
        turn = _turn(role, pieces)
        if role == "assistant" and turn.images:
            raise DataError(f"{self._where}: a picture in what the model says; pictures stand in turns of the user")
        return turn

    def _pieces(self, content: str | list[Any]) -> list[str | Image]:
        if isinstance(content, str):
            texts = content.split(MARKER)
            pieces: list[str | Image] = [texts[0]]
            for text in texts[1:]:
                pieces += [self._next(), text]
            return [piece for piece in pieces if piece not in ("", "\n")] if len(texts) > 1 else pieces
        return [self._part(part) for part in content]

    def _part(self, part: Any) -> str | Image:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text" and isinstance(part.get("text"), str):
            return str(part["text"])
        if kind == "image":
            self._marked = True
            given = part.get("image") or part.get("path") or part.get("url")
            return self.image(given) if given else self._next()
        if kind == "image_url":
            self._marked = True
            url = part.get("image_url")
            return self.image(url.get("url") if isinstance(url, Mapping) else url)
        raise DataError(f"{self._where}: a part of a message is a text or an image, not {kind!r}")

    def _next(self) -> Image:
        if self._handed >= self._count:
            raise DataError(f"{self._where}: more {MARKER} markers than pictures ({self._count})")
        self._handed += 1
        return self._waiting[self._handed - 1]

    def check_all_used(self) -> None:
        """Refuse a picture that no marker shows: it would be left out in silence."""
        if self._handed < self._count:
            raise DataError(f"{self._where}: {self._count} pictures and {self._handed} {MARKER} markers")


def _turn(role: str, pieces: list[str | Image]) -> Turn:
    images = [piece for piece in pieces if isinstance(piece, Image)]
    counter = iter(range(len(images)))
    parts = tuple(piece if isinstance(piece, str) else next(counter) for piece in pieces)
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    return Turn(role, text, tuple(images), parts if len(pieces) > 1 and images else ())
