"""An observer with known thresholds for the eye exam. It knows only what it is told of a trial (level, truth), never the
picture or the question; its law is a normal ogive, its lapses and habits are its own."""

from __future__ import annotations

import asyncio
import hashlib
import io
import math
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from snellen.core.errors import FailureKind, ModelError
from snellen.core.frames import read_frame
from snellen.core.protocols import Capability, EncodedImages, ImagePolicy
from snellen.core.types import Prediction, Request, Sample, Usage
from snellen.sight.cards import exam_cards

USUAL: dict[str, float] = {
    "acuity": 8.0, "digits": 7.0, "words": 6.5, "cjk": 12.0, "contrast": 0.06, "crowding": 0.1, "rotation": 25.0,
    "blur": 0.25, "noise": 90.0, "jpeg": 130.0, "page": 1500.0, "colour": 6.0, "vernier": 2.5, "orientation": 20.0,
    "tumbling-e": 18.0, "junction": 5.0, "size": 0.08, "bars": 0.06, "count": 14.0, "images": 14.0,
    "pairs": 6.0, "mirror": 25.0, "mental-rotation": 60.0, "occlusion": 0.25, "figure-ground": 14.0, "path": 9.0,
    "scene-text": 11.0, "lookup-picture": 60.0, "lookup-text": 150.0,
}  # fmt: skip
"""Where half is right, in the units of the cards."""
CANVAS_ACUITY = 8.0


class Observer:
    """Answers as its traits say. `shrink` is (rule, limit in px) of the server before it."""

    name = "observer/known"
    capabilities = frozenset({Capability.GENERATE, Capability.IMAGES})
    image_policy = ImagePolicy()
    cacheable = False

    def __init__(self, truth: Mapping[str, float] = USUAL, **traits: Any) -> None:
        self.truth, self.traits = dict(truth), traits
        self.told: dict[tuple[str, str], Sample] = {}
        self.asked = 0

    def tell(self, sample: Sample) -> None:
        """Hear of a trial before it is asked."""
        self.told[sample.dataset, sample.id] = sample

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        self.asked += 1
        await asyncio.sleep(self.traits.get("delay_s", 0.0))
        sample = self.told[request.key.task, request.key.sample]
        if self.refuses(sample):
            raise ModelError(FailureKind.PAYLOAD, "too many pictures or pixels", status=400)
        text = self.answer(sample)
        return Prediction(request.key, text=text, usage=Usage(self.traits.get("tokens", 100), 10), finish="stop")

    async def check(self) -> None:
        pass

    def identity(self) -> Mapping[str, Any]:
        return {"model": self.name, "traits": {key: value for key, value in self.traits.items() if key != "delay_s"}}

    async def close(self) -> None:
        pass

    def refuses(self, sample: Sample) -> bool:
        """Tell whether the server before it takes no such request."""
        return len(sample.images) > self.traits.get("most_pictures", 99)

    def answer(self, sample: Sample) -> str:
        """Reply to one trial."""
        draw = random.Random(f"{self.traits.get('seed', 0)} {sample.dataset} {sample.id}")
        test = str(sample.meta["test"])
        if "always" in self.traits:
            return str(self.traits["always"])
        if self.traits.get("random"):
            return self.guess(test, sample, draw)
        if draw.random() < self.traits.get("lapse", 0.01):
            return self.guess(test, sample, draw)
        return self.look(test, sample, draw)

    def look(self, test: str, sample: Sample, draw: random.Random) -> str:
        """Answer from what is seen."""
        card, detail = exam_cards()[test], sample.meta["detail"]
        if test in ("locate", "coordinates"):
            return self.point(detail, draw)
        if not sample.answers:
            return self.guess(test, sample, draw)
        truth = sample.answers[0]
        share = self.seen(test, sample)
        if card.glyphs > 1:
            letters = detail.get("alphabet") or "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
            return "".join(c if draw.random() < share else self.unseen(letters, draw) for c in truth)
        return truth if draw.random() < share else self.guess(test, sample, draw)

    def point(self, detail: Mapping[str, Any], draw: random.Random) -> str:
        """Say where the disc is: in the frame of its traits, of the canvas or of the part beside it."""
        noise, x, y = self.traits.get("locate_px", 9.0), detail["x"], detail["y"]
        size = (detail["width"], detail["height"])
        if "part" in detail and self.traits.get("speaks_of") == "part":
            x, y, *size = detail["part"]
        share = ((x + draw.gauss(0, noise)) / size[0], (y + draw.gauss(0, noise)) / size[1])
        first, second = read_frame(self.traits.get("frame", "0-1000")).write(share, tuple(size))
        return f"{first:.3g}, {second:.3g}" if max(first, second) < 2 else f"{first:.0f}, {second:.0f}"

    def unseen(self, letters: str, draw: random.Random) -> str:
        return "?" if draw.random() < self.traits.get("silent", 0.0) else draw.choice(letters)

    def seen(self, test: str, sample: Sample) -> float:
        """Return how likely the stimulus is seen: a normal ogive in the logarithm of its level."""
        card, level = exam_cards()[test], float(str(sample.tags["level"]))
        if test == "quarter-turns":
            return float(self.traits.get("turned", {}).get(f"{level:.0f}", 1.0))
        threshold = self.truth.get(test, CANVAS_ACUITY)
        if test.startswith("resolution-") or test == "field":
            threshold = CANVAS_ACUITY * self.loss(card.canvas)
        if test == "recipe":
            threshold = CANVAS_ACUITY * self.loss(sample.meta["detail"]["size"]) / self.traits.get("on_pages", 1.0)
        if test == "acuity":
            threshold *= self.loss(card.canvas)
        if test == "field" and "bad_column" in self.traits:
            threshold *= 1.6 if sample.meta["detail"]["column"] == self.traits["bad_column"] else 1.0
        if test == "colour" and "weak_hue" in self.traits:
            turn = math.radians(sample.meta["detail"]["hue"] - self.traits["weak_hue"])
            threshold /= math.sqrt((math.cos(turn) / 1.7) ** 2 + (math.sin(turn) * 1.7) ** 2) or 1.0
        if "drift" in self.traits:
            factor, rounds = self.traits["drift"]
            threshold *= factor ** min(1.0, sample.meta["planned"]["round"] / rounds)
        x = card.axis.sign * math.log(level / threshold)
        return 0.5 * math.erfc(-x * self.traits.get("slope", 3.5) / math.sqrt(2))

    def loss(self, canvas: tuple[int, int]) -> float:
        """Return by how much the server shrinks a canvas."""
        rule, limit = self.traits.get("shrink", ("none", 1.0))
        if rule == "halving":
            return 2.0
        if rule == "fixed size":
            return float(max(canvas) / limit)
        sides = {"long side": max(canvas), "short side": min(canvas), "area": math.sqrt(canvas[0] * canvas[1])}
        return 1.0 if rule == "none" else max(1.0, sides[rule] / limit)

    def guess(self, test: str, sample: Sample, draw: random.Random) -> str:
        """Answer without having seen anything."""
        card, detail = exam_cards()[test], sample.meta["detail"]
        if draw.random() < self.traits.get("refuse", 0.0):
            return "I cannot tell from this picture."
        if card.answers:
            return draw.choice(card.answers)
        if "codes" in detail:
            return draw.choice(detail["codes"])
        if test == "count":
            number = int(sample.answers[0])
            return str(
                max(1, number + draw.choice((-3, -2, -1, 1, 2, 3)))
                if not self.traits.get("random")
                else draw.randint(1, 90)
            )
        if test in ("locate", "coordinates"):
            return f"{draw.randint(0, 1000)}, {draw.randint(0, 1000)}"
        if test == "words":
            return draw.choice(("HOUSE", "RIVER", "STONE", "PLANT"))
        letters = detail.get("alphabet") or "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
        return "".join(draw.choice(letters) for _ in sample.answers[0])


def _outline(pixels: NDArray[np.uint8], level: int = 1) -> bytes:
    """Return a PNG of the picture's size that is blank but for a mark of its own."""
    mark = hashlib.sha256(pixels.tobytes()).digest()
    picture = PIL.Image.new("1", pixels.shape[1::-1])
    picture.paste(PIL.Image.frombytes("1", (16, 16), mark))
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()


@contextmanager
def without_packing() -> Iterator[None]:
    """Leave out the packing of drawn pixels into files, half of the time of an exam: an observer never looks at them."""
    from snellen.sight import board

    packed = board.encode_png
    users = [module for name, module in sys.modules.items() if name.startswith("snellen.sight.")]
    users = [module for module in users if vars(module).get("encode_png") is packed]
    for module in users:
        vars(module)["encode_png"] = _outline
    try:
        yield
    finally:
        for module in users:
            vars(module)["encode_png"] = packed


def sit(folder: Any, observer: Observer, **settings: Any) -> Any:
    """Run an exam of an observer; its truth is told to it trial by trial."""
    import snellen
    from snellen.core import builtins

    builtins.MODELS["observer"] = lambda name, options: observer
    try:
        with without_packing():
            return snellen.exam("observer/known", output_dir=folder, told=observer.tell, cache=False, **settings)
    finally:
        del builtins.MODELS["observer"]
