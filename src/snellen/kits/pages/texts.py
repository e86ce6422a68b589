"""Files of many kinds into documents with an id and a text: plain text, markdown, LongBench-v2 JSON, folders, gzip."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...core.errors import DataError, MissingExtra, UsageError
from .layout import clean_text

TEXT_SUFFIXES = (".txt", ".text", ".md", ".markdown", ".rst", ".py", ".c", ".csv", ".log")
_ID = re.compile(r"[^\w.-]+")
_MARKDOWN = (
    (re.compile(r"^#{1,6}\s+", re.MULTILINE), ""),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"^(```|~~~).*\n?", re.MULTILINE), ""),
    (re.compile(r"`([^`\n]+)`"), r"\1"),
)


class Document(NamedTuple):
    """A text to be rendered. `record` is the JSON object it came from, if any."""

    id: str
    text: str
    record: dict[str, Any]


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a file or folder; ids must be unique and fit into a file name."""
    seen: set[str] = set()
    for document in _read(path):
        if document.id in seen:
            raise DataError(f"{path}: id {document.id!r} occurs twice; ids name the page files")
        seen.add(document.id)
        yield document
    if not seen:
        expected = "text, markdown, a LongBench-v2 JSON list, or a folder of them"
        raise DataError(f"{path} holds no document: expected {expected}")


def read_text(path: Path) -> str:
    """Read a text file (plain or .gz) as UTF-8; bytes that are not are named with their offset."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        return clean_text(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 at byte {error.start}: convert it first (iconv -t utf-8)") from None


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read a JSON list or JSON lines of objects."""
    text = read_text(path)
    try:
        if path.name.removesuffix(".gz").endswith(".jsonl"):
            value = [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]
        else:
            value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, list) or not all(isinstance(record, dict) for record in value):
        raise DataError(f"{path} must be a JSON list of objects")
    return value


def plain_markdown(text: str) -> str:
    """Drop the marks of headings, emphasis, links and fences; indentation and lines stay."""
    for pattern, replacement in _MARKDOWN:
        text = pattern.sub(replacement, text)
    return text


def pdf_pages(path: Path, dpi: float) -> Iterator[Any]:
    """Yield the pages of a PDF as grey numpy arrays (extra `pdf`)."""
    try:
        import pypdfium2
    except ImportError:
        raise MissingExtra("pdf", f"rendering {path.name}") from None
    try:
        pdf = pypdfium2.PdfDocument(str(path))
    except pypdfium2.PdfiumError as error:
        raise DataError(f"{path} is not a readable PDF: {error}") from None
    try:
        for page in pdf:
            yield page.render(scale=dpi / 72, grayscale=True, rev_byteorder=True).to_numpy().squeeze().copy()
    finally:
        pdf.close()


def document_id(path: Path) -> str:
    """Turn a file name into an id that is safe in a page's file name."""
    stem = path.name.removesuffix(".gz")
    return _ID.sub("_", Path(stem).stem) or "document"


def _read(path: Path) -> Iterator[Document]:
    if path.is_dir():
        for file in sorted(path.iterdir()):
            if _kind(file):
                yield from _read(file)
        return
    if not path.is_file():
        raise UsageError(f"{path} does not exist")
    kind = _kind(path)
    if kind == "json":
        yield from _json_documents(path)
    elif kind in ("text", "markdown"):
        text = read_text(path)
        yield Document(document_id(path), plain_markdown(text) if kind == "markdown" else text, {})
    else:
        raise UsageError(f"{path}: cannot read {path.suffix or 'a file without a suffix'} as a document")


def _kind(path: Path) -> str:
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix in (".json", ".jsonl"):
        return "json"
    if suffix in (".md", ".markdown"):
        return "markdown"
    return "text" if suffix in TEXT_SUFFIXES else ""


def _json_documents(path: Path) -> Iterator[Document]:
    for index, record in enumerate(read_records(path)):
        key = record.get("_id")
        context = record.get("context")
        if not isinstance(key, str) or not key or _ID.search(key):
            raise DataError(f"{path} record {index}: `_id` is {key!r}; it must be a text of letters, digits, . _ -")
        if not isinstance(context, str):
            raise DataError(f"{path} record {index} ({key}): `context` is missing or not a text")
        yield Document(key, clean_text(context), record)
