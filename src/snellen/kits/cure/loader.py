"""CURE annotations to Samples: for each item the sub-questions of its chain in order, then the inference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from ...core.config import convert
from ...core.errors import DataError, UsageError
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Image, Sample
from ...data.files.rows import read_rows
from ...data.loaders.row_source import resolve

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CureImage(Struct, frozen=True):
    """Where the picture was and its size in px."""

    url: str
    width: int
    height: int


class CureBox(Struct, frozen=True):
    """A region in px of the original picture."""

    left: float
    top: float
    width: float
    height: float


class CureChoice(Struct, frozen=True):
    """Candidates and the place of the right one, from 0."""

    candidate: list[str]
    gt: int


class CureStep(CureChoice, frozen=True, kw_only=True):
    """One sub-question."""

    question: str


class CureChain(Struct, frozen=True):
    """The chain of sub-questions, from recognition to cognition."""

    chain: list[CureStep]
    total_step: int | None = None


class CureItem(Struct, frozen=True):
    """One item of the file. It has no id of its own: the place in the file is its name."""

    image: CureImage
    bboxes: list[CureBox]
    inference: CureChoice
    cot_inference: CureChain
    clue: str = ""


def read_items(path: Path) -> Iterator[CureItem]:
    """Yield the items of a file that is one JSON array (also when its name says JSONL) or one object a line."""
    for number, value in enumerate(_read_values(path)):
        where = f"{path.name} item {number}"
        try:
            item = msgspec.convert(value, CureItem)
        except msgspec.ValidationError as error:
            raise DataError(f"{where}: {error}") from None
        _check(item, where)
        yield item


def _read_values(path: Path) -> list[Any]:
    try:
        data = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
    except OSError as error:
        fix = "give the annotation file with -p dataset.path=FILE"
        raise DataError(f"cannot read {path}: {error.strerror}; {fix}") from None
    try:
        if data.lstrip()[:1] == b"[":
            return msgspec.json.decode(data, type=list[Any])
        return [msgspec.json.decode(line) for line in data.splitlines() if line.strip()]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} is neither a JSON array nor one JSON object a line: {error}") from None


def _check(item: CureItem, where: str) -> None:
    chain = item.cot_inference.chain
    if not chain:
        raise DataError(f"{where}: the chain is empty")
    if item.image.width <= 0 or item.image.height <= 0:
        raise DataError(f"{where}: the picture is {item.image.width}×{item.image.height} px")
    steps = ((f"step {place}", step) for place, step in enumerate(chain, 1))
    for name, choice in (("inference", item.inference), *steps):
        size = len(choice.candidate)
        if not 0 <= choice.gt < size:
            raise DataError(f"{where}: {name} has gt {choice.gt} and {size} candidates; gt counts from 0")


PUNCTUATION = " .。!！…"
INFERENCE = "inference"
STEP = "step"
Tags = dict[str, str | int | float | bool | None]
LEAD = "What is known so far:"
POINTERS = {
    "box": ("Look at the region in the red box.", "What can be inferred about the region in the red box?"),
    "crop": ("", "The picture is one part of a larger one. What can be inferred about it?"),
    "coordinates": ("Look at the region {place}.", "What can be inferred about the region {place}?"),
    "none": ("", "What can be inferred from the picture?"),
}
"""What stands before a sub-question, and the inference question (the file has none), by the way the region is shown."""
POINTERS_TO_SEVERAL = {
    "box": ("Look at the regions in the red boxes.", "What can be inferred about the regions in the red boxes?"),
    "crop": POINTERS["crop"],
    "coordinates": ("Look at the regions {place}.", "What can be inferred about the regions {place}?"),
}
"""The same where an item has several boxes and all are shown."""
Corners = tuple[float, float, float, float]
"""Left, top, right, bottom in px."""


class CureSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the CURE loader."""

    loader: str
    path: str = ""
    image_root: str | None = None
    """Folder of the pictures; found by the end of their URL (VG_100K/1.jpg, or 1.jpg)."""
    image_list: str | None = None
    """A table with columns `url` and `path`, for pictures that lie elsewhere."""
    region: Literal["box", "crop", "coordinates", "none"] = "box"
    boxes: Literal["first", "all"] = "first"
    """Which boxes of an item are its region: the first, as its authors did it, or all (203 of 1,622 have more)."""
    chain: Literal["none", "gold"] = "none"
    """What the inference question is told: nothing, or the right answers of its chain."""
    ask: Literal["all", "inference", "steps"] = "all"
    punctuation: Literal["keep", "strip"] = "keep"
    """`strip` takes the final full stop off every option: the published wrong ones have it, most right ones do not."""
    pictures: bool = True
    """False asks without any picture: what the words alone give away."""
    items: int | None = None
    facts: bool = False
    """Whether the inference knows the right answers of its chain (`meta["facts"]`), for scorers of rationales."""


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield the samples item by item; a limit never cuts a chain."""
    source = convert(task.dataset, CureSource, f"dataset of task {task.name!r}")
    if not source.path:
        settings = "-p dataset.path=FILE (and -p dataset.image_root=FOLDER)"
        raise UsageError(f"task {task.name!r} needs the annotation file: {settings}")
    find = PictureFinder(source, context.root)
    count = 0
    for number, item in enumerate(read_items(resolve(source.path, context.root))):
        if source.items is not None and number >= source.items:
            return
        samples = list(item_samples(item, number, source, find, task.name))
        count += len(samples)
        if context.limit is not None and count > context.limit:
            if count == len(samples):
                chain = f"less than the first chain ({count} questions)"
                raise UsageError(f"task {task.name!r}: --limit {context.limit} is {chain}")
            return
        yield from samples


class CureLoader:
    """The loader, and what it counts of a file beside its samples."""

    def __call__(self, task: Task, context: LoadContext) -> Iterator[Sample]:
        """Yield the samples of a task."""
        return load(task, context)

    def described(self, task: Task) -> tuple[Iterator[Sample], Counter[int]]:
        """Return the samples in the file's own words, without a region, and how many items have so many boxes."""
        plain = msgspec.structs.replace(task, dataset={**task.dataset, "region": "none"})
        return load(plain, LoadContext()), Counter(len(item.bboxes) for item in read_items(Path(task.dataset["path"])))


LOADER = CureLoader()


def item_samples(
    item: CureItem, number: int, source: CureSource, find: PictureFinder, dataset: str
) -> Iterator[Sample]:
    """Yield the steps of one item, then its inference, all in one group."""
    images, (before, question) = _show_region(item, source, find)
    name = f"{number:05d}"
    chain = item.cot_inference.chain
    shared: dict[str, Any] = {"dataset": dataset, "form": Form.CHOICE, "images": images, "group": name}
    shared["meta"] = {"clue": item.clue}
    for place, step in enumerate(chain, 1):
        if source.ask != INFERENCE:
            options, answer = _options(step.candidate, step.gt, source, f"{name} step {place}")
            text = f"{before} {step.question}".strip()
            tags = Tags(role=STEP, step=place, steps=len(chain))
            yield Sample(id=f"{name}.{place}", question=text, options=options, answers=(answer,), tags=tags, **shared)
    if source.ask != "steps":
        options, answer = _options(item.inference.candidate, item.inference.gt, source, f"{name} inference")
        known = [(step.question, step.candidate[step.gt]) for step in chain] if source.chain == "gold" else []
        text, last = recount(question, known), Tags(role=INFERENCE, step=0, steps=len(chain))
        if source.facts:
            shared["meta"] = {**shared["meta"], "facts": [step.candidate[step.gt].strip() for step in chain]}
        yield Sample(id=f"{name}.h", question=text, options=options, answers=(answer,), tags=last, **shared)


def recount(question: str, answered: Iterable[tuple[str, str]]) -> str:
    """Return the question with earlier (question, answer) pairs before it; without pairs, the question itself.

    A gold chain and a model's own are told in the same words.
    """
    lines = [f"{number}. {earlier} {answer}" for number, (earlier, answer) in enumerate(answered, 1)]
    return "\n".join([LEAD, *lines, question]) if lines else question


def _options(candidates: Sequence[str], right: int, source: CureSource, where: str) -> tuple[tuple[str, ...], str]:
    """Return the distinct options and the answer; a wrong option written twice, or as the right one, counts once."""
    texts = [text.strip() for text in candidates]
    if source.punctuation == "strip":
        texts = [text.rstrip(PUNCTUATION) or text for text in texts]
    options = tuple(dict.fromkeys(texts))
    if len(options) < 2:
        raise DataError(f"item {where}: all candidates read the same ({texts[0]!r})")
    return options, texts[right]


def _show_region(item: CureItem, source: CureSource, find: PictureFinder) -> tuple[tuple[Image, ...], tuple[str, str]]:
    picture = item.image
    region = source.region if source.pictures and item.bboxes else "none"
    place, edits = "", tuple[str, ...]()
    chosen = item.bboxes if source.boxes == "all" else item.bboxes[:1]
    if region != "none":
        corners = [clamp(box, picture) for box in chosen]
        named = [f"from ({left:.0f}, {top:.0f}) to ({right:.0f}, {low:.0f})" for left, top, right, low in corners]
        place = f"{' and '.join(named)} of a picture of {picture.width} × {picture.height} px"
        edits = _edits(region, corners, picture)
    before, question = (POINTERS_TO_SEVERAL if region != "none" and len(chosen) > 1 else POINTERS)[region]
    images = (Image(find(picture.url), edits=edits),) if source.pictures else ()
    return images, (before.format(place=place), question.format(place=place))


def _edits(region: str, corners: Sequence[Corners], picture: CureImage) -> tuple[str, ...]:
    """Return a drawn box for each region, or one crop that holds them all; coordinates are only told."""
    if region == "crop":
        lefts, tops, rights, bottoms = zip(*corners, strict=True)
        corners = [(min(lefts), min(tops), max(rights), max(bottoms))]
    size = picture.width, picture.height, picture.width, picture.height
    shares = [[value / side for value, side in zip(one, size, strict=True)] for one in corners]
    told = [",".join(f"{value:.6f}" for value in share) for share in shares]
    return tuple(f"{region}:{numbers}" for numbers in told) if region in ("box", "crop") else ()


def clamp(box: CureBox, picture: CureImage) -> Corners:
    """Return the corners inside the picture, at least one px apart (some boxes reach over)."""
    left = min(max(box.left, 0.0), picture.width - 1.0)
    top = min(max(box.top, 0.0), picture.height - 1.0)
    right = min(max(box.left + box.width, left + 1.0), float(picture.width))
    bottom = min(max(box.top + box.height, top + 1.0), float(picture.height))
    return left, top, right, bottom


class PictureFinder:
    """URL -> local file: by a list, by the end of the URL under a root, by the URL itself where it is a path."""

    def __init__(self, source: CureSource, root: Path | None) -> None:
        self._root = resolve(source.image_root, root) if source.image_root else resolve(source.path, root).parent
        self._listed = _read_list(resolve(source.image_list, root)) if source.image_list else {}

    def __call__(self, url: str) -> str:
        """Return the file's path; where none exists, the one that was looked for, so that it is reported as missing."""
        if url in self._listed:
            return self._listed[url]
        steps = unquote(urlsplit(url).path if "://" in url else url).split("/")
        parts = [step for step in steps if step not in ("", ".", "..")]
        tails = [self._root.joinpath(*parts[-length:]) for length in range(min(len(parts), 4), 0, -1)]
        return str(next((path for path in tails if path.is_file()), tails[-1] if tails else self._root / "unnamed"))


def _read_list(path: Path) -> dict[str, str]:
    listed = {}
    for number, row in read_rows(path):
        if not isinstance(row.get("url"), str) or not isinstance(row.get("path"), str):
            raise DataError(f"{path.name} record {number} must have columns url and path")
        listed[row["url"]] = str(path.parent / row["path"])
    return listed
