"""Published benchmarks of parsers to samples of form `parse`: a page's picture, and its gold blocks, tests or text.

`dataset.layout` names whose files they are: `omnidocbench` (a list of pages with `layout_dets`), `olmocr` (a folder of
unit tests, one JSON a line, beside `pdfs`), `ocrbench-v2` (a list of questions) or `cc-ocr` (a folder of subsets).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...core.config import convert
from ...core.errors import DataError, UsageError, not_among
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Image, Sample
from ...data.loaders.row_source import resolve

Block = dict[str, Any]
Tags = dict[str, str | int | float | bool | None]
LARGEST_FILE = 2**30


class PageBench(Struct, frozen=True, forbid_unknown_fields=True):
    """What a card says of its data."""

    loader: str
    path: str
    layout: str
    count: int = 0
    """How many pages the release has; others are noted."""
    types: tuple[str, ...] = ()
    """Of OCRBench v2: the types of questions that are asked; empty: those that are parsing."""


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield the pages of a benchmark."""
    source = convert(task.dataset, PageBench, f"task {task.name!r}, dataset")
    if source.layout not in LAYOUTS:
        raise UsageError(f"task {task.name!r}: dataset.layout {not_among(source.layout, LAYOUTS, ' is unknown')}")
    path = resolve(source.path, context.root)
    if not path.exists():
        raise DataError(
            f"{path}: there is no such file; name where {task.name} lies: -p dataset.path=PATH, or --data PATH"
        )
    found = 0
    for sample in LAYOUTS[source.layout](task, source, path):
        found += 1
        yield sample
    if source.count and found != source.count and not context.limit:
        context.notes.setdefault(f"{found:,} pages where the release has {source.count:,}", Counter())[""] += 1


def _read_json(path: Path) -> Any:
    if path.stat().st_size > LARGEST_FILE:
        raise DataError(f"{path}: larger than {LARGEST_FILE:,} bytes")
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path}: is no JSON: {error}") from None


def _file_in(path: Path, name: str) -> Path:
    if path.is_file():
        return path
    found = sorted(path.glob(name))
    if not found:
        raise DataError(f"{path}: has no {name}")
    return found[0]


def _picture(folder: Path, name: str) -> tuple[Image, ...]:
    places = (folder / name, folder / "images" / name, folder / "images" / Path(name).name)
    place = next((place for place in places if place.is_file()), places[1])
    return (Image(str(place.resolve())),)


def omnidoc_blocks(page: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of one page of OmniDocBench: parts of one text that columns or pictures cut apart are joined.

    Joined blocks come after all others, as the original has them; what is marked `ignore` is left out.
    """
    groups: list[set[Any]] = []
    for relation in (page.get("extra") or {}).get("relation") or ():
        if relation.get("relation_type") == "truncated":
            group = {relation["source_anno_id"], relation["target_anno_id"]}
            touching = [other for other in groups if other & group]
            groups = [other for other in groups if not other & group] + [group.union(*touching)]
    joined = {part for group in groups for part in group}
    items = list(page["layout_dets"])
    blocks = [_block(item) for item in items if item.get("anno_id") not in joined and not item.get("ignore")]
    for group in groups:
        parts = sorted(
            (item for item in items if item.get("anno_id") in group), key=lambda item: item.get("order") or 0
        )
        if parts and not any(part.get("ignore") for part in parts):
            text = "".join(str(part.get("text") or "") for part in parts)
            blocks.append({**_block(parts[0]), "text": text})
    return blocks


def _block(item: Mapping[str, Any]) -> Block:
    kind = str(item.get("category_type"))
    wanted = {"table": ("html", "latex"), "equation_isolated": ("latex", "text")}.get(kind, ("text", "latex"))
    text = next((str(item[name]) for name in wanted if item.get(name)), "")
    return {"category": kind, "text": text, "order": item.get("order")}


def markdown_of(blocks: Sequence[Block]) -> str:
    """Return the blocks that have an order as one page of Markdown."""
    placed = sorted((block for block in blocks if block.get("order") is not None), key=lambda block: block["order"])
    return "\n\n".join(f"# {block['text']}" if block["category"] == "title" else block["text"] for block in placed)


def _omnidocbench(task: Task, source: PageBench, path: Path) -> Iterator[Sample]:
    file = _file_in(path, "OmniDocBench*.json")
    for page in _read_json(file):
        about = page.get("page_info") or {}
        name = Path(str(about.get("image_path", ""))).name
        if not name:
            raise DataError(f"{file}: a page without page_info.image_path")
        blocks = omnidoc_blocks(page)
        told = (about.get("page_attribute") or {}).items()
        tags: Tags = {key: value for key, value in told if isinstance(value, str | int | float | bool)}
        meta = {"blocks": blocks}
        yield Sample(
            name,
            task.name,
            Form.PARSE,
            "",
            _picture(file.parent, name),
            (),
            (markdown_of(blocks),),
            tags=tags,
            meta=meta,
        )


def _olmocr(task: Task, source: PageBench, path: Path) -> Iterator[Sample]:
    tests: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for file in sorted(path.glob("*.jsonl")):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
            if line.strip():
                try:
                    test = json.loads(line)
                    tests[str(test["pdf"]), int(test["page"])].append({**test, "file": file.stem})
                except (ValueError, KeyError, TypeError) as error:
                    raise DataError(f"{file} line {number}: no unit test: {error!r}") from None
    if not tests:
        raise DataError(f"{path}: has no unit tests (*.jsonl)")
    with_baseline = {pdf for (pdf, _), found in tests.items() if any(one["type"] == "baseline" for one in found)}
    for (pdf, page), found in sorted(tests.items()):
        if pdf not in with_baseline:  # the bench adds one to every PDF that has none
            found.append({"type": "baseline", "id": f"{pdf}_baseline", "pdf": pdf, "page": page})
            with_baseline.add(pdf)
        image = Image(str((path / "pdfs" / pdf).resolve()), page=page)
        yield Sample(f"{pdf}_pg{page}", task.name, Form.PARSE, "", (image,), meta={"tests": found}, tags={"pdf": pdf})


PARSING_TYPES = (
    *("document parsing en", "document parsing cn", "table parsing en", "table parsing cn"),
    *("formula recognition en", "formula recognition cn", "full-page OCR en", "full-page OCR cn"),
)
"""Types of OCRBench v2 that are parsing and that have a rule here; its chart parsing is not among them."""


def _ocrbench(task: Task, source: PageBench, path: Path) -> Iterator[Sample]:
    file = _file_in(path, "OCRBench_v2*.json")
    wanted = source.types or PARSING_TYPES
    for place, row in enumerate(_read_json(file)):
        kind = str(row.get("type"))
        if kind not in wanted:
            continue
        answers = row.get("answers")
        texts = tuple(map(str, answers)) if isinstance(answers, list) else (str(answers),)
        tags: Tags = {
            "type": kind,
            "language": kind.rpartition(" ")[2],
            "ability": ABILITIES.get(kind[:4], "element parsing"),
        }
        images = _picture(file.parent, str(row.get("image_path", "")))
        name = str(row.get("id", place))
        yield Sample(name, task.name, Form.PARSE, str(row.get("question") or ""), images, (), texts, tags=tags)


ABILITIES = {"full": "text recognition"}
"""By the first letters of a type, the ability it is averaged in; all others are element parsing."""


def _ccocr(task: Task, source: PageBench, path: Path) -> Iterator[Sample]:
    subsets = sorted(folder for folder in path.iterdir() if (folder / "label.json").is_file())
    if not subsets:
        raise DataError(f"{path}: has no folders with a label.json ({{picture: text}})")
    for folder in subsets:
        for name, gold in _read_json(folder / "label.json").items():
            images = _picture(folder, name if Path(name).suffix else f"{name}.jpg")
            tags: Tags = {"subset": folder.name}
            yield Sample(f"{folder.name}/{name}", task.name, Form.PARSE, "", images, (), (str(gold),), tags=tags)


LAYOUTS: Mapping[str, Callable[[Task, PageBench, Path], Iterator[Sample]]] = {
    "omnidocbench": _omnidocbench,
    "olmocr": _olmocr,
    "ocrbench-v2": _ocrbench,
    "cc-ocr": _ccocr,
}
