"""LongBench-v2 and needle files with their page images into Samples: a question stays when its pages are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from ...core.config import convert
from ...core.errors import DataError, UsageError, not_among
from ...core.frames import Size
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Image, Sample
from ...data.loaders.row_source import resolve
from ...data.visual_tokens import DEFAULT_TOKENIZER, context_bin, count_tokens, visual_tokens
from .pages import PageFile, PageFolder, find_variants, page_size, read_pages
from .publish import Manifest, read_manifest
from .texts import read_records

POLICIES = ("skip", "middle", "dpi", "chunk")
_SMALLEST = 0.3
"""Share of both sides below which text is no longer legible."""


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """What a model takes in one request; None is no limit. `policy` says what happens to a document beyond it."""

    max_images: int | None = None
    max_visual_tokens: int | None = None
    family: str = "qwen2.5-vl"
    policy: str = "skip"

    def check(self) -> None:
        """Refuse an unknown policy."""
        if self.policy not in POLICIES:
            raise UsageError(f"too-long policy {not_among(self.policy, POLICIES)}")


class Fit(NamedTuple):
    """What of a document is sent. `reason` is set when nothing is; `chunk` is the pages per request when it is cut."""

    pages: tuple[int, ...]
    edits: tuple[str, ...] = ()
    reason: str = ""
    chunk: int = 0


def fit(sizes: Sequence[Size], limits: Limits) -> Fit:
    """Decide before anything is sent; page indices count from 0."""
    limits.check()
    everything = tuple(range(len(sizes)))
    most = _most_pages(sizes, limits)
    if most >= len(sizes):
        return Fit(everything)
    over = f"too long: {len(sizes)} pages where the model takes {most}"
    if limits.policy == "skip" or most < 1:
        return Fit((), reason=over)
    if limits.policy == "chunk":
        return Fit(everything, chunk=most)
    if limits.policy == "dpi":
        share = _share(sizes, limits)
        if share is not None:
            return Fit(everything, (f"scale:{share:g}",))
    head = (most + 1) // 2
    return Fit((*everything[:head], *everything[len(sizes) - (most - head) :]))


def _most_pages(sizes: Sequence[Size], limits: Limits) -> int:
    most = len(sizes) if limits.max_images is None else min(len(sizes), limits.max_images)
    if limits.max_visual_tokens is None or not sizes:
        return most
    costs = [visual_tokens([size], limits.family) for size in sizes[:most]]
    while most and sum(costs[:most]) > limits.max_visual_tokens:
        most -= 1
    return most


def _share(sizes: Sequence[Size], limits: Limits) -> float | None:
    """Return the largest share of both sides at which all pages fit, or None if only their number is the trouble."""
    if limits.max_visual_tokens is None or len(sizes) > (limits.max_images or len(sizes)):
        return None
    for step in range(19, int(_SMALLEST * 20) - 1, -1):
        share = step / 20
        scaled = [(round(width * share), round(height * share)) for width, height in sizes]
        if visual_tokens(scaled, limits.family) <= limits.max_visual_tokens:
            return share
    return None


LETTERS = ("A", "B", "C", "D")
CLEAN = ("clean", "longbenchv2_img")
"""The subfolder that `base` means when the images' folder holds several."""


class DocumentSource(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of both loaders."""

    loader: str
    path: str
    """`data.json`."""
    image_root: str = ""
    """One variant folder, or the parent of several (then ask `--variant pages=NAME`)."""
    tokenizer: str = DEFAULT_TOKENIZER
    controls: tuple[str, ...] = ()
    """`text` loads the context itself for the variant `control=text`."""
    limits: Limits = Limits()
    documents_in_flight: int = 8
    """How many documents are asked about at once; does not change results."""
    max_documents: int | None = None
    """Use only the first so many documents."""


def load_choice(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield LongBench-v2 questions: four options, grouped by document, tagged by difficulty, length, domain, tokens."""
    source, library, records = _open(task, context.root)
    for where, document, record in records:
        options = tuple(str(_field(record, f"choice_{letter}", where)) for letter in LETTERS)
        answer = str(_field(record, "answer", where)).strip().upper()
        if answer not in LETTERS:
            raise DataError(f"{where}: answer {record['answer']!r} is not one of A, B, C, D")
        pages = library.pages(document)
        facts = {"answer": answer, "difficulty_length": _pair(record)}
        yield Sample(
            id=document,
            dataset=task.name,
            form=Form.CHOICE,
            question=str(_field(record, "question", where)),
            images=pages.images,
            options=options,
            answers=(options[LETTERS.index(answer)],),
            group=document,
            tags={**_facts(record, source), **pages.tags},
            meta={**pages.meta, **_controls(record, source), **facts},
        )


def load_needles(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield every question of every needle document, document by document; plain and extended files alike."""
    source, library, records = _open(task, context.root)
    for where, document, record in records:
        questions, answers = _field(record, "questions", where), _field(record, "answers", where)
        if not isinstance(questions, list) or not isinstance(answers, list) or len(questions) != len(answers):
            raise DataError(f"{where} ({document}): `questions` and `answers` must be lists of the same length")
        pages, facts = library.pages(document), _facts(record, source)
        shared = {**pages.meta, **_controls(record, source)}
        planted = list(record.get("secrets", {}).values())
        for place, question in enumerate(questions):
            found = needle_facts(record, place)
            yield Sample(
                id=f"{document}#{place}",
                dataset=task.name,
                form=Form.OPEN,
                question=str(question),
                images=pages.images,
                answers=tuple(found.pop("answers", None) or [str(answers[place])]),
                group=document,
                tags={**facts, **pages.tags, **found.pop("tags")},
                meta={**shared, **found, "planted": planted},
            )


def needle_facts(record: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Return what is known of one question: answers, how they match, and tags with depth, kind, row and column."""
    depths = record.get("question_depths") or []
    tags: dict[str, Any] = dict.fromkeys(("needle_depth", "kind", "depth", "page", "row", "column"))
    if place < len(depths):
        tags["needle_depth"] = str(depths[place])
    queries = record.get("queries") or []
    if place >= len(queries):
        return {"tags": tags}
    query = queries[place]
    needles = [needle for needle in record.get("needles", []) if needle["id"] in query["needles"]]
    tags |= {"kind": query["kind"], "depth": round(float(query["depth"]), 4)}
    tags["achieved_depth"] = query.get("achieved_depth")
    if needles and needles[0].get("page") is not None:
        tags |= {"page": needles[0]["page"], "row": tenth(needles[0]["row"]), "column": tenth(needles[0]["column"])}
    return {
        "tags": tags,
        "answers": query["answers"],
        "match": query["match"],
        **_where(needles, record.get("pages_in") or {}),
    }


def _where(needles: Sequence[Mapping[str, Any]], pages_in: Mapping[str, Mapping[str, list[int]]]) -> dict[str, Any]:
    """Return the pages that needles stand on, in every rendering, and their boxes for whoever shows the page."""
    names = [str(needle["id"]) for needle in needles]
    pages = {
        style: sorted({page for name in names for page in by_name.get(name, [])}) for style, by_name in pages_in.items()
    }
    boxes = [box for needle in needles for box in _boxes(needle)]
    begun = {needle["page"] for needle in needles if needle.get("page") is not None}
    return {
        "needle_pages": sorted(begun | {box["page"] for box in boxes}),
        "needle_pages_in": pages,
        "boxes": [{"page": box["page"] - 1, "box": box["box"]} for box in boxes],
    }


def _boxes(needle: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every box of a needle; what 0.2 wrote has only the one where it begins."""
    if needle.get("boxes"):
        return list(needle["boxes"])
    return [{"page": needle["page"], "box": needle["bbox"]}] if needle.get("page") and needle.get("bbox") else []


def tenth(share: float) -> float:
    """Return the middle of the fifth of the page a position lies in (0.1, 0.3 … 0.9)."""
    return round(min(4, int(share * 5)) / 5 + 0.1, 1)


class DocumentPages(Struct):
    """The pages of one document in every variant, ready for a Sample."""

    images: tuple[Image, ...]
    meta: dict[str, Any]
    tags: dict[str, Any]


class PageLibrary:
    """All variants of the page images; looks documents up and applies the model's limits."""

    def __init__(self, source: DocumentSource, data_root: Path | None = None) -> None:
        self._limits = source.limits
        root = resolve(source.image_root, data_root) if source.image_root else None
        self._folders: dict[str, tuple[PageFolder, Manifest | None]] = {}
        self._is_parent = False
        if root is None:
            return
        if (root / "images").is_dir() or any(root.glob("*_page_*")):
            self._folders[""] = (read_pages(root), _manifest_of(root))
        else:
            variants = find_variants(root)
            self._folders = {name: (read_pages(path), read_manifest(path)) for name, path in variants.items()}
            main = next((name for name in self._folders if name in CLEAN or len(self._folders) == 1), None)
            self._is_parent = main is None
            if main is not None:
                self._folders = {"": self._folders[main], **self._folders}

    def pages(self, document: str) -> DocumentPages:
        """Return where a document's pages lie; what cannot be asked is named in `meta["skip"]`, never dropped."""
        found = DocumentPages((), {"pages": {}, "skip": {}, "edits": {}}, {})
        if self._is_parent:
            found.meta["skip"][""] = f"image_root holds variants: ask --variant pages=NAME ({', '.join(self._folders)})"
        if not self._folders:
            found.meta["skip"][""] = "no image_root was given"
        for name, (folder, manifest) in self._folders.items():
            self._look_up(document, name, folder, manifest, found)
        return DocumentPages(found.images, {key: value for key, value in found.meta.items() if value}, found.tags)

    def _look_up(
        self, document: str, name: str, folder: PageFolder, manifest: Manifest | None, found: DocumentPages
    ) -> None:
        files = folder.documents.get(document)
        if files is None:
            absent = f"no pages {document}_page_*.png in {folder.root}"
            found.meta["skip"][name] = folder.problems.get(document) or absent
            return
        sizes = _sizes(document, files, manifest, needed=self._limits.max_visual_tokens is not None)
        chosen = fit(sizes, self._limits)
        if chosen.reason:
            found.meta["skip"][name] = chosen.reason
            return
        if chosen.chunk:
            found.meta["chunk_pages"] = chosen.chunk
        kept = [files[page] for page in chosen.pages]
        if name:
            found.meta["pages"][name] = [(page.number, str(page.path)) for page in kept]
            found.meta["edits"][name] = list(chosen.edits)
        else:
            known = _known_sizes(document, manifest)
            found.images = tuple(_image(page, known.get(page.path.name), chosen.edits) for page in kept)
            found.meta |= _glyph_height(manifest)
        found.tags.setdefault("pages", pages_bin(len(files)))
        found.meta.setdefault("visual_tokens", {})[name or "base"] = _visual(document, manifest)


def _image(page: PageFile, size: tuple[int, int] | None, edits: tuple[str, ...]) -> Image:
    width, height = size or (None, None)
    return Image(str(page.path), page.mime, width, height, page.number, edits=edits)


def pages_bin(count: int) -> str:
    """Return the group of a document by its number of pages."""
    for low, high in ((1, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 199)):
        if count <= high:
            return f"{low:03d}-{high:03d}"
    return "200+"


def _visual(document: str, manifest: Manifest | None) -> dict[str, int]:
    return manifest.documents[document].visual_tokens if manifest and document in manifest.documents else {}


def _known_sizes(document: str, manifest: Manifest | None) -> dict[str, tuple[int, int]]:
    known = manifest.documents.get(document) if manifest else None
    return {page.file: (page.width, page.height) for page in known.pages} if known else {}


def _glyph_height(manifest: Manifest | None) -> dict[str, float]:
    """Return how high letters are in pixels, which a simulated reader's sight depends on."""
    style = manifest.style if manifest else {}
    return {"glyph_px": round(style["size_pt"] * style["dpi"] / 72, 2)} if "size_pt" in style and "dpi" in style else {}


def _sizes(
    document: str, files: tuple[PageFile, ...], manifest: Manifest | None, *, needed: bool
) -> list[tuple[int, int]]:
    if not needed:
        return [(1, 1)] * len(files)
    known = _known_sizes(document, manifest)
    return [known.get(page.path.name) or page_size(page.path) for page in files]


def _manifest_of(root: Path) -> Manifest | None:
    return read_manifest(root) or (read_manifest(root.parent) if root.name == "images" else None)


MADE_BY = {
    "niah": "`snellen docs needle` makes one; ",
    "longbench-v2": "bring LongBench-v2's data.json and render it with `snellen docs render`; ",
}
"""Where the file of a built-in task comes from, by its loader."""


def _open(
    task: Task, root: Path | None
) -> tuple[DocumentSource, PageLibrary, Iterator[tuple[str, str, dict[str, Any]]]]:
    """Return the loader's arguments, the pages, and (where, document id, record) of every document."""
    source = convert(task.dataset, DocumentSource, f"task {task.name!r} dataset")
    path = resolve(source.path, root)
    if not path.is_file():
        makes = MADE_BY.get(source.loader, "")
        raise DataError(f"data file {path} does not exist: {makes}-p dataset.path=FILE names it")
    records = read_records(path)[: source.max_documents]
    places = ((f"{source.path} record {index}", record) for index, record in enumerate(records))
    documents = ((where, str(_field(record, "_id", where)), record) for where, record in places)
    return source, PageLibrary(source, root), documents


def _facts(record: Mapping[str, Any], source: DocumentSource) -> dict[str, Any]:
    tags: dict[str, Any] = {name: str(record.get(name, "unknown")) for name in ("difficulty", "length")}
    tags["domain"] = f"{record.get('domain', 'unknown')} / {record.get('sub_domain', '')}".removesuffix(" / ")
    tags |= {"context_length": None, "context_tokens": None, "pages": None}
    if isinstance(record.get("context"), str):
        tokens = count_tokens(record["context"], source.tokenizer)
        told = str(record.get("length", ""))  # a planted text of 8k holds a few tokens less: it is one of 8k
        tags |= {"context_length": context_bin(int(told) if told.isdecimal() else tokens), "context_tokens": tokens}
    return tags


def _pair(record: Mapping[str, Any]) -> str:
    return f"{record.get('difficulty', 'unknown')}_{record.get('length', 'unknown')}"


def _controls(record: Mapping[str, Any], source: DocumentSource) -> dict[str, Any]:
    kept = {"context": record.get("context")} if "text" in source.controls else {}
    if "transcript" in source.controls and record.get("transcript"):
        kept["transcript"] = record["transcript"]
    return kept | {"tokenizer": source.tokenizer}


def _field(record: Mapping[str, Any], name: str, where: str) -> Any:
    if record.get(name) in (None, ""):
        raise DataError(f"{where} ({record.get('_id', 'without _id')}): `{name}` is missing")
    return record[name]
