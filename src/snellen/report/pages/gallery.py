"""The trials worth looking at to cards with their pictures, within a budget of bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import PIL.Image
import pybase64

from ...core.errors import DataError
from ...core.markup import Html, shorten, tag
from ...core.protocols import ImagePolicy
from ...core.tasks import RunHeader
from ...core.types import Image, Prediction, Request, Sample, Score, TrialKey, Turn
from ...data.images.decode import open_image
from ...scoring.tables.table import TrialColumns, lower_is_better
from ...store.reader import RunReader
from ...store.sent_pictures import SeenPictures
from ..query import Query, select
from .parts import facts, outcome_tag, reply_text

THUMBNAIL_PX = 440
QUALITY, METHOD = 62, 1
"""A few per cent larger than at the encoder's most careful, and several times as fast."""
STRIP = 6
"""Frames of a video on a card."""
CARDS = 24


_TRIAL = (
    "SELECT s.body, p.request, p.body FROM predictions p JOIN samples s ON s.task = p.task AND s.id = p.sample "
    "WHERE p.task = ? AND p.sample = ? AND p.variant = ? AND p.repeat = ?"
)
_SCORES = (
    "SELECT metric, value, answer, rule, reason, detail FROM scores "
    "WHERE task = ? AND sample = ? AND variant = ? AND repeat = ? ORDER BY rowid"
)


class Shown(NamedTuple):
    """One stored trial with its scores, as a page shows it."""

    sample: Sample
    request: Request
    prediction: Prediction
    scores: list[Score]
    as_sent: Request | None = None

    @property
    def seen(self) -> Request:
        """Return the request with its pictures as the model saw them, whatever became of their files."""
        return self.request if self.as_sent is None else self.as_sent

    @property
    def text(self) -> str | None:
        """Return the reply, or why there is none."""
        failure = self.prediction.failure
        return self.prediction.text if failure is None else f"{failure.kind.value}: {failure.message}"

    @property
    def span(self) -> Any:
        """Return where in the reply the answer was read, as the first scorer says."""
        return self.scores[0].detail.get("span") if self.scores else None


class Budget:
    """Bytes that pictures may still take."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, size: int) -> bool:
        """Take so many bytes if there are as many."""
        if size > self.left:
            return False
        self.left -= size
        return True


def read_trial(reader: RunReader, key: TrialKey) -> Shown | None:
    """Return one trial whole, or None if it is not stored."""
    row = next(reader.rows(_TRIAL, msgspec.structs.astuple(key)), None)
    if row is None:
        return None
    kinds = (Sample, Request, Prediction)
    sample, request, prediction = (msgspec.json.decode(body, type=kind) for body, kind in zip(row, kinds, strict=True))
    scores = [
        Score(key, metric, value, answer, rule, reason, msgspec.json.decode(detail) if detail else {})
        for metric, value, answer, rule, reason, detail in reader.rows(_SCORES, msgspec.structs.astuple(key))
    ]
    seen = as_seen(reader, request, prediction) if prediction.images else request
    return Shown(sample, request, prediction, scores, seen)


def as_seen(reader: RunReader, request: Request, prediction: Prediction) -> Request:
    """Return a request whose pictures are what was sent: files that changed since are told, never shown."""
    count = sum(len(turn.images) for turn in request.messages)
    if len(prediction.images) != count:  # nobody noted all that was sent
        return request
    sent, pictures = iter(prediction.images), seen_pictures(reader)
    turns = []
    for turn in request.messages:
        images = tuple([pictures.seen(image, next(sent)) for image in turn.images])
        turns.append(msgspec.structs.replace(turn, images=images) if images else turn)
    return msgspec.structs.replace(request, messages=tuple(turns))


def seen_pictures(reader: RunReader) -> SeenPictures:
    """Return where a run's pictures are found as they were sent."""
    header = reader.header()
    return SeenPictures(reader.folder, image_policy(header), header.created)


def image_policy(header: RunHeader) -> ImagePolicy:
    """Return how a run's pictures were made to fit its model."""
    stored = (header.config.get("model") or {}).get("image_policy")
    return msgspec.convert(stored, ImagePolicy) if stored else ImagePolicy()


def thumbnail(image: Image, side_px: int = THUMBNAIL_PX) -> bytes:
    """Return a small WebP of a picture, decoded by our own door. Raises DataError where it cannot be had."""
    picture = open_image(image, side_px)
    picture.thumbnail((side_px, side_px), PIL.Image.Resampling.LANCZOS, reducing_gap=2.0)
    out = io.BytesIO()
    picture.convert("RGB").save(out, "WEBP", quality=QUALITY, method=METHOD)
    return out.getvalue()


def pick_rows(columns: TrialColumns, most: int = CARDS, outcome: str = "wrong") -> list[int]:
    """Return the rows of the worst trials of an outcome, one a sample, worst first."""
    rows = select(columns, Query(outcome=outcome, sort="value", descending=lower_is_better(columns.metric)))
    _, first = np.unique(columns.sample[rows], return_index=True)
    return [int(row) for row in rows[np.sort(first)][:most]]


def gallery(reader: RunReader, columns: TrialColumns, budget: Budget, *, outcome: str = "wrong") -> Html:
    """Return the worst trials of an outcome as cards."""
    cards = []
    for row in pick_rows(columns, outcome=outcome):
        shown = read_trial(reader, columns.key(row))
        if shown is not None:
            cards.append(card(shown, int(columns.outcome[row]), float(columns.value[row]), budget))
    return tag("div", *cards, class_="gallery")


def card(shown: Shown, outcome: int, value: float, budget: Budget) -> Html:
    """Return one trial as a card: picture, question, what was expected, what was read, the reply."""
    sample, score = shown.sample, shown.scores[0] if shown.scores else None
    about: list[tuple[str, Any]] = [("expected", shorten("\n".join(sample.answers), 300))]
    if score is not None and score.answer != shown.prediction.text:
        about.append(("read as", shorten(score.answer or "", 300)))
    about += [("by rule", score.rule if score else None), ("variant", _variant(shown.prediction.key))]
    asked = _asked(shown.seen, budget)
    body = tag(
        "div",
        asked or tag("h3", shorten(sample.question, 220)),
        tag("div", outcome_tag(outcome, value), " ", tag("span", sample.id, class_="muted small mono")),
        facts(about),
        reply_text(shown.prediction.text, shown.span, most=500),
        class_="body",
    )
    return tag("article", None if asked else request_picture(shown.seen, budget), body, class_="shot")


def _asked(request: Request, budget: Budget) -> Html | None:
    """Return the last message with its pictures where they stand, if they stand inside its text."""
    turn = request.messages[-1] if request.messages else Turn("user", "")
    if not turn.parts or any(image.frame is not None for image in turn.images):  # frames make a strip
        return None
    small = [_thumbnail(image, f"Picture {number}", budget) for number, image in enumerate(turn.images, 1)]
    shown = turn.arrange(small)
    return tag("div", *(tag("p", shorten(part, 220)) if type(part) is str else part for part in shown), class_="asked")


def _variant(key: TrialKey) -> str | None:
    parts = (key.variant if key.variant != "base" else "", f"inference {key.repeat + 1}" if key.repeat else "")
    return ", ".join(filter(None, parts)) or None


def request_picture(request: Request, budget: Budget) -> Html | None:
    """Return the first picture of a request, embedded, as far as the budget allows."""
    images = [image for turn in request.messages for image in turn.images]
    if not images:
        return None
    if images[0].frame is not None:
        return _frame_strip(images, budget)
    more = f" (first of {len(images)} pictures)" if len(images) > 1 else ""
    return _thumbnail(images[0], f"What the model saw for {request.key.sample}{more}", budget)


def _frame_strip(images: Sequence[Image], budget: Budget) -> Html:
    """Return some frames of a video side by side, evenly chosen, each with its time."""
    shown = [images[(2 * place + 1) * len(images) // (2 * STRIP)] for place in range(STRIP)]
    shown = list(images) if len(images) <= STRIP else shown
    frames = [(image, f"{image.frame.seconds:.1f} s" if image.frame else "") for image in shown]
    cells = [
        tag("figure", _thumbnail(image, at, budget), tag("figcaption", at, class_="small")) for image, at in frames
    ]
    words = f"{sum(image.frame is not None for image in images)} frames were shown"
    return tag("div", *cells, class_="strip", role="group", aria_label=words)


def _thumbnail(image: Image, words: str, budget: Budget) -> Html:
    try:
        data = thumbnail(image)
    except DataError as error:
        return tag("div", tag("p", f"No picture: {shorten(str(error), 160)}", class_="muted small"), class_="pic")
    if not budget.take(len(data) * 4 // 3):
        words = "Left out to keep this file small; `snellen view` shows it."
        return tag("div", tag("p", words, class_="muted small"), class_="pic")
    url = f"data:image/webp;base64,{pybase64.b64encode(data).decode()}"
    return tag("div", tag("img", src=url, alt=words), class_="pic")
