"""What happens in a drawn film: things that appear, move and go, each at its time. Pure data."""

from __future__ import annotations

from msgspec import Struct


class Thing(Struct, frozen=True, omit_defaults=True):
    """Something seen from one second to another, moving straight from one place to another (shares of the picture)."""

    what: str
    """disc, square, triangle, star, cross, card (a text on white) or veil (all of the picture)."""
    start: float
    end: float
    place: tuple[float, float] = (0.5, 0.5)
    goal: tuple[float, float] | None = None
    """Where it is at its end; None: it stays."""
    colour: str = "#d62728"
    size: float = 0.12
    """Half its width, as a share of the height."""
    text: str = ""

    def at(self, second: float) -> tuple[float, float]:
        """Return where it is at a moment."""
        if self.goal is None or self.end <= self.start:
            return self.place
        share = min(1.0, max(0.0, (second - self.start) / (self.end - self.start)))
        (x0, y0), (x1, y1) = self.place, self.goal
        return x0 + (x1 - x0) * share, y0 + (y1 - y0) * share


class Script(Struct, frozen=True, omit_defaults=True):
    """A whole film."""

    seconds: float
    things: tuple[Thing, ...]
    fps: int = 12
    width: int = 480
    height: int = 270
    seed: int = 0
    scenery: bool = True
    """Whether shapes drift through the background."""

    @property
    def frames(self) -> int:
        """Return how many frames it has."""
        return max(1, round(self.seconds * self.fps))


class Told(Struct, frozen=True):
    """A film and the question about it."""

    script: Script
    question: str
    answers: tuple[str, ...]
    options: tuple[str, ...] = ()
    tags: dict[str, str | int | float] = {}
    seen: tuple[float, float] | None = None
    """When what answers the question is shown."""
