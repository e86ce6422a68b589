"""Seeds to drawn pages as samples of form `parse`: an endless test that no model has seen."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import PIL
from msgspec import Struct

from ...core.config import convert
from ...core.errors import EnvironmentProblem
from ...core.folders import cache_folder
from ...core.ids import content_hash, rng
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Image, Sample
from .drawn import draw_blocks, page_blocks


class DrawnPages(Struct, frozen=True, forbid_unknown_fields=True):
    """What a card says: how many pages, and how much stands on each."""

    loader: str
    count: int = 20
    parts: int = 5
    seed: int = 0
    """Another seed is another set of pages."""


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield the pages of a seed; pictures are drawn once and kept."""
    source = convert(task.dataset, DrawnPages, f"task {task.name!r}, dataset")
    folder = (context.workdir or cache_folder() / "generated") / "pages"
    for number in range(source.count):
        blocks = page_blocks(rng(source.seed, task.name, number, source.parts, "page"), source.parts)
        path = folder / f"page{number:04d}-{content_hash([blocks, PIL.__version__], 12)}.png"
        if not path.is_file():
            written = io.BytesIO()
            draw_blocks(blocks).save(written, "PNG")
            try:
                folder.mkdir(parents=True, exist_ok=True)
                temporary = path.with_suffix(f".{os.getpid()}.tmp")
                temporary.write_bytes(written.getvalue())
                temporary.replace(path)
            except OSError as error:
                raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from None
        text = "\n\n".join(f"# {b['text']}" if b["category"] == "title" else str(b["text"]) for b in blocks)
        image = Image(str(path.resolve()), "image/png")
        meta = {"blocks": list(blocks)}
        yield Sample(f"page{number:04d}", task.name, Form.PARSE, "", (image,), (), (text,), meta=meta)
