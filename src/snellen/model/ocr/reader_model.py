"""The embedded reader: an OCR engine and a small answerer as a Model. It sees the request and nothing else."""

from __future__ import annotations

import asyncio
import math
import os
import re
import subprocess
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from io import BytesIO
from shutil import which
from statistics import median
from typing import Any, Protocol

import numpy as np
import PIL.Image
from rapidfuzz import fuzz

from ...core.errors import DataError, EnvironmentProblem, MissingExtra, ModelError, UsageError, did_you_mean
from ...core.ids import content_hash, sha256_hex
from ...core.protocols import Capability, EncodedImages, ImagePolicy
from ...core.types import FailureKind, Image, Prediction, Request, Timing, Usage
from ...data.images.decode import decode, read_bytes
from ...data.images.edits import apply_edits
from ..options import ModelOptions

ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth",
)  # fmt: skip
TRANSCRIBE = re.compile(
    r"transcri|\bread (?:it|the|this|all|aloud)\b|what you read|\btext in the (?:picture|image)|copy the text"
    r"|\bwhat (?:is|does) .*\b(?:text|written|say|read)\b",
    re.IGNORECASE,
)
LINE_NUMBER = re.compile(r"\bline (?:number )?(\d{1,3})\b|\b(\d{1,3})(?:st|nd|rd|th) line\b", re.IGNORECASE)
LINE_NAME = re.compile(rf"\b({'|'.join(ORDINALS)}|last) line\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
LINK = re.compile(r"\b(?:is|are|was|were|equals|reads|called|named)\b|[:=]", re.IGNORECASE)
_SMALL_WORDS = (
    "a an and are as at be by did do does for from has have how i in into is it its many much name of on or shown "
    "that the their there this to was were what when where which who whose why with you your"
)
STOP_WORDS = frozenset(_SMALL_WORDS.split())
NUMBER = re.compile(r"\d[\d.,:/\-]*\d|\d")


def answer(question: str, lines: Sequence[str], options: Sequence[str] = ()) -> str:
    """Answer from the lines: an option, one line, yes or no, the whole text, or the value by the question's key."""
    asked = line_asked(question, len(lines))
    if asked is not None:
        lines = lines[asked : asked + 1]
    if options:
        return best_option(question, lines, options)
    if asked is not None:
        return "".join(lines)
    head = question.partition("?")[0]
    if re.search(r"\byes or no\b", question, re.IGNORECASE):
        return "yes" if supports(head, lines) else "no"
    if TRANSCRIBE.search(question):
        return "\n".join(lines)
    return look_up(head, lines)


def line_asked(question: str, count: int) -> int | None:
    """Return the index of the line a question names ("line 3", "the last line"), or None if it names none."""
    number, name = LINE_NUMBER.search(question), LINE_NAME.search(question)
    if number:
        index = int(number.group(1) or number.group(2)) - 1
    elif name:
        index = count - 1 if name.group(1).lower() == "last" else ORDINALS.index(name.group(1).lower())
    else:
        return None
    return max(0, index)


def best_option(question: str, lines: Sequence[str], options: Sequence[str]) -> str:
    """Return the option the text supports best: by the sentence about the question, then by all; else the first."""
    near = _squeeze(best_sentence(question.partition("?")[0], lines))
    everything = _squeeze(" ".join(lines))

    def _support(option: str) -> tuple[float, float]:
        wanted = _squeeze(option)
        return _closeness(wanted, near) + 0.5 * _closeness(wanted, everything), len(wanted)

    return max(options, key=_support)


def _closeness(wanted: str, text: str) -> float:
    return fuzz.partial_ratio(wanted, text) if len(text) > len(wanted) else fuzz.ratio(wanted, text)


def _squeeze(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def supports(statement: str, lines: Sequence[str]) -> bool:
    """Say whether most of a statement's telling words stand on the page."""
    wanted = telling_words(statement)
    seen = set(telling_words(" ".join(lines)))
    return bool(wanted) and sum(word in seen for word in wanted) >= 0.7 * len(wanted)


def look_up(question: str, lines: Sequence[str]) -> str:
    """Return the value in the sentence that shares most with the question, or that sentence."""
    sentence = best_sentence(question, lines)
    return extract_value(question, sentence) or sentence


def sentences_of(lines: Sequence[str]) -> list[str]:
    """Join lines (words broken by a hyphen too) and cut into sentences."""
    text = re.sub(r"(\w)- (?=[a-z])", r"\1", " ".join(lines))
    return [part for part in SENTENCE_END.split(text) if part.strip()]


def telling_words(text: str) -> list[str]:
    """Return the words that say what a text is about, in lower case."""
    return [word for word in re.findall(r"\w+", text.casefold()) if word not in STOP_WORDS]


def best_sentence(question: str, lines: Sequence[str]) -> str:
    """Return the sentence that shares the rarest words with the question; a line where sentences are long."""
    candidates = [*sentences_of(lines), *lines]
    if not candidates:
        return ""
    bags = [set(telling_words(candidate)) for candidate in candidates]
    frequency = Counter(word for bag in bags for word in bag)
    wanted = set(telling_words(question))

    def _weight(index: int) -> float:
        shared = wanted & bags[index]
        return sum(math.log(1 + len(bags) / frequency[word]) for word in shared) - 0.01 * len(bags[index])

    return candidates[max(range(len(candidates)), key=_weight)]


def extract_value(question: str, sentence: str) -> str:
    """Return what follows the link (is, was, :) after the question's words; a number where a number is asked for."""
    wanted = set(telling_words(question))
    if re.search(r"\bhow many\b|\bhow much\b|\bnumber\b|\bcode\b|\byear\b|\bwhen\b", question, re.IGNORECASE):
        numbers = [match for match in NUMBER.findall(sentence) if match not in question]
        if numbers:
            return str(numbers[-1])
    for link in LINK.finditer(sentence):
        before, after = sentence[: link.start()], sentence[link.end() :]
        if wanted & set(telling_words(before)) and telling_words(after):
            return _trim(after)
    return ""


def _trim(text: str) -> str:
    return text.strip().strip("\"'“”‘’").rstrip(".!。！").strip("\"'“”‘’ ")


Corner = tuple[float, float]

COLUMN_ROWS = 3
"""A column has at least this many rows; fewer are a heading or a number at the margin."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A text and the corners of its box, clockwise from the upper left, in px."""

    text: str
    corners: tuple[Corner, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A piece in upright coordinates."""

    text: str
    left: float
    right: float
    top: float
    bottom: float

    @property
    def height(self) -> float:
        """Return the height in px."""
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        """Return the middle of the height."""
        return (self.top + self.bottom) / 2


def lines_of(pieces: Sequence[Piece]) -> list[str]:
    """Return the text line by line, as one would read it."""
    boxes = upright(pieces)
    return [" ".join(box.text for box in row) for column in columns_of(boxes) for row in rows_of(column)]


def upright(pieces: Sequence[Piece]) -> list[Box]:
    """Turn all boxes by the slant of the page, the median over its wider pieces."""
    if not pieces:
        return []
    slants = [_slant(piece) for piece in pieces if len(piece.text) > 2] or [0.0]
    angle = median(slants)
    return [_turn(piece, angle) for piece in pieces]


def _slant(piece: Piece) -> float:
    (x0, y0), (x1, y1) = piece.corners[0], piece.corners[1]
    return math.atan2(y1 - y0, x1 - x0)


def _turn(piece: Piece, angle: float) -> Box:
    """Turn the middle of the box; keep its own width and height."""
    x, y = (sum(values) / len(values) for values in zip(*piece.corners, strict=True))
    across = x * math.cos(angle) + y * math.sin(angle)
    down = -x * math.sin(angle) + y * math.cos(angle)
    corners = piece.corners
    width, height = math.dist(corners[0], corners[1]), math.dist(corners[1], corners[2])
    return Box(piece.text, across - width / 2, across + width / 2, down - height / 2, down + height / 2)


def columns_of(boxes: Sequence[Box]) -> list[list[Box]]:
    """Split where a clear gutter runs down the page with enough rows on both sides."""
    if len(boxes) < 2 * COLUMN_ROWS:
        return [list(boxes)] if boxes else []
    gutter = median(box.height for box in boxes)
    ordered = sorted(boxes, key=lambda box: box.left)
    reach, groups = ordered[0].right, [[ordered[0]]]
    for box in ordered[1:]:
        if box.left > reach + gutter:
            groups.append([])
        groups[-1].append(box)
        reach = max(reach, box.right)
    return groups if min(len(rows_of(group)) for group in groups) >= COLUMN_ROWS else [list(boxes)]


def rows_of(boxes: Sequence[Box]) -> list[list[Box]]:
    """Gather boxes whose middle lies within another's height into rows, each from left to right."""
    rows: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: box.middle):
        if rows and _same_row(rows[-1], box):
            rows[-1].append(box)
        else:
            rows.append([box])
    return [sorted(row, key=lambda box: box.left) for row in rows]


def _same_row(row: Sequence[Box], box: Box) -> bool:
    middle = sum(other.middle for other in row) / len(row)
    height = min(max(other.height for other in row), box.height)
    return abs(box.middle - middle) < height / 2


class Engine(Protocol):
    """An OCR engine; `read` may be called from several threads at once."""

    name: str

    def prepare(self) -> None:
        """Raise EnvironmentProblem if the engine is not installed."""
        ...

    def version(self) -> str:
        """Return what changes its readings."""
        ...

    def read(self, picture: PIL.Image.Image) -> list[Piece]:
        """Return the pieces of text on a picture."""
        ...


class RapidEngine:
    """rapidocr with the weights inside its package; one session a thread, one core each."""

    name = "rapidocr"

    def __init__(self) -> None:
        self._local = threading.local()

    def prepare(self) -> None:
        """Check that the package and its weights are there, so that nothing is ever downloaded."""
        try:
            models = files("rapidocr") / "models"
        except ModuleNotFoundError:
            raise MissingExtra("ocr", "the embedded reader") from None
        if not [item for item in models.iterdir() if item.name.endswith(".onnx")]:
            fix = "pip install --force-reinstall rapidocr"
            raise EnvironmentProblem(f"rapidocr is installed without its weights: {fix}")
        try:
            import_module("onnxruntime")
        except ImportError:
            raise MissingExtra("ocr", "the embedded reader") from None

    def version(self) -> str:
        """Return the versions of rapidocr and onnxruntime."""
        try:
            return f"rapidocr {version('rapidocr')}, onnxruntime {version('onnxruntime')}"
        except PackageNotFoundError:
            return "not installed"

    def read(self, picture: PIL.Image.Image) -> list[Piece]:
        """Return the pieces rapidocr finds."""
        if not hasattr(self._local, "engine"):
            self._local.engine = _create_rapid()
        found = self._local.engine(np.asarray(picture.convert("RGB"))[:, :, ::-1])
        if found.boxes is None or not found.txts:
            return []
        return [
            Piece(str(text), tuple((float(x), float(y)) for x, y in box))
            for text, box in zip(found.txts, found.boxes, strict=True)
        ]


def _create_rapid() -> Any:
    from rapidocr import RapidOCR

    # One thread a session: on two loaded cores, two such sessions read 3 times as fast as one with its own thread pool.
    threads = {f"EngineConfig.onnxruntime.{scope}_op_num_threads": 1 for scope in ("intra", "inter")}
    return RapidOCR(params={**threads, "Global.log_level": "error"})


class TesseractEngine:
    """The tesseract program, one process a picture, one thread each."""

    name = "tesseract"

    def __init__(self, language: str = "eng") -> None:
        self._language = language

    def prepare(self) -> None:
        """Check that the program is there."""
        if which("tesseract") is None:
            raise EnvironmentProblem("reader/tesseract needs the tesseract program: apt install tesseract-ocr")

    def version(self) -> str:
        """Return the first line of `tesseract --version`."""
        if which("tesseract") is None:
            return "not installed"
        result = subprocess.run(["tesseract", "--version"], capture_output=True, text=True, check=False)  # noqa: S607
        return (result.stdout or result.stderr).splitlines()[0]

    def read(self, picture: PIL.Image.Image) -> list[Piece]:
        """Return one piece a word."""
        data = BytesIO()
        picture.save(data, "PNG", compress_level=1)
        command = ["tesseract", "stdin", "stdout", "-l", self._language, "--psm", "6", "tsv"]
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
        result = subprocess.run(  # noqa: S603 - a fixed command; the picture goes in by stdin
            command, input=data.getvalue(), capture_output=True, env=environment, check=False
        )
        if result.returncode:
            raise EnvironmentProblem(f"tesseract failed: {result.stderr.decode('utf-8', 'replace').strip()[-200:]}")
        return parse_tsv(result.stdout.decode("utf-8", "replace"))


def parse_tsv(text: str) -> list[Piece]:
    """Read tesseract's table: left, top, width, height, …, text in the columns 6 to 11."""
    pieces = []
    for row in text.splitlines()[1:]:
        cells = row.split("\t")
        if len(cells) == 12 and cells[11].strip():
            left, top, width, height = map(float, cells[6:10])
            corners = ((left, top), (left + width, top), (left + width, top + height), (left, top + height))
            pieces.append(Piece(cells[11].strip(), corners))
    return pieces


ENGINES: dict[str, type[RapidEngine] | type[TesseractEngine]] = {"rapidocr": RapidEngine, "tesseract": TesseractEngine}


ANSWERER_VERSION = 1
"""Raised when `reading` answers differently from the same text: old replies in the cache are then no longer used."""
PAGES_KEPT = 512
"""Pages whose text is remembered, so that many questions on one page read it once."""


def create(name: str, options: ModelOptions) -> Reader:
    """Return `reader` (rapidocr) or `reader/tesseract`."""
    chosen = name or "rapidocr"
    if chosen not in ENGINES:
        raise UsageError(f"no reader named {chosen!r}{did_you_mean(chosen, ENGINES)}; known: {', '.join(ENGINES)}")
    return Reader(f"reader/{name}" if name else "reader", ENGINES[chosen](), options)


class Reader:
    """Reads pictures in worker threads (both engines leave Python while they work) and answers from the text."""

    capabilities = frozenset({Capability.GENERATE, Capability.IMAGES})
    cacheable = True

    def __init__(self, name: str, engine: Engine, options: ModelOptions) -> None:
        options.allow_arguments(name, ("workers",))
        self.name = name
        self.image_policy = options.image_policy or ImagePolicy()
        self._engine = engine
        self._clock = options.clock
        workers = int(options.arguments.get("workers", 0)) or min(4, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="reader")
        self._pages: OrderedDict[str, asyncio.Future[list[str]]] = OrderedDict()

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request from what stands on its pictures."""
        if request.choices:
            raise ModelError(
                FailureKind.CAPABILITY, f"{self.name} cannot score candidates: use --infer-method generation"
            )
        sent = self._clock.monotonic()
        try:
            # Read from the file, not from `images`: what is sent may be shrunk to the policy, and small print with it.
            pages = [await self._read(image) for turn in request.messages for image in turn.images]
        except DataError as error:
            raise ModelError(FailureKind.DECODE, str(error)) from None
        lines = [line for page in pages for line in page]
        text = answer(request.messages[-1].text, lines, request.shown)
        if text in request.shown:
            text = request.marks[request.shown.index(text)]
        usage = Usage(output_tokens=len(text.split()))
        return Prediction(
            request.key, text=text, usage=usage, timing=Timing(sent, self._clock.monotonic()), finish="stop"
        )

    async def _read(self, image: Image) -> list[str]:
        loop = asyncio.get_running_loop()
        data = await loop.run_in_executor(self._pool, read_bytes, image)
        key = content_hash([sha256_hex(data), image.edits])
        if key not in self._pages:
            self._pages[key] = loop.run_in_executor(self._pool, self._read_page, data, image)
            if len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
        return await asyncio.shield(self._pages[key])

    def _read_page(self, data: bytes, image: Image) -> list[str]:
        picture = apply_edits(decode(data, image.ref), image.edits)
        try:
            return lines_of(self._engine.read(picture))
        except EnvironmentProblem as error:
            raise ModelError(FailureKind.SERVER, str(error)) from None

    async def check(self) -> None:
        """Raise if the engine is not installed."""
        self._engine.prepare()

    def identity(self) -> Mapping[str, Any]:
        """Return the engine, its version and that of the answerer."""
        engine = {"engine": self._engine.name, "version": self._engine.version()}
        return {"model": self.name, **engine, "answerer": ANSWERER_VERSION}

    async def close(self) -> None:
        """End the worker threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
