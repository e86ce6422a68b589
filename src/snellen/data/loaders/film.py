"""Seeds -> drawn films as Samples: one kind of story, a grid of lengths, levels and depths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from msgspec import Struct

from ...core.config import convert
from ...core.errors import ConfigError, not_among
from ...core.folders import cache_folder
from ...core.ids import derive_seed
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Sample, Video
from ..film.film_file import write_film
from ..film.plots import KINDS
from ..film.script import Told

LONGEST_S = 3600.0


class FilmSource(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the loader (`-p dataset.lengths=[8,32]`)."""

    loader: str
    kind: str = "needle"
    films: int = 2
    """Films of each cell of the grid."""
    lengths: tuple[float, ...] = (8.0, 16.0, 32.0)
    """In seconds."""
    levels: tuple[float, ...] = (2.0,)
    """What makes it hard: how long a card is shown, how many events there are, how much faster one is."""
    depths: tuple[float, ...] = (0.5,)
    """Where in the film the needle is, from 0 to 1."""


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield films round by round over the whole grid, so that `--limit` cuts evenly."""
    source = convert(task.dataset, FilmSource, f"task {task.name!r}, dataset")
    check_source(source)
    folder = (context.workdir or cache_folder() / "generated") / "films"
    for number in range(source.films):
        for length, level, depth in product(source.lengths, source.levels, source.depths):
            name = f"{source.kind}-{length:g}s-{level:g}-{depth:g}-{number:03d}"
            told = KINDS[source.kind](derive_seed(context.seed, "film", name), length, level, depth)
            path = write_film(told.script, folder, name)
            yield sample_of(task, name, told, str(path))


def sample_of(task: Task, name: str, told: Told, path: str) -> Sample:
    """Return the question about one film."""
    form = Form.CHOICE if told.options else Form.NUMBER if task.form is Form.NUMBER else Form.OPEN
    meta = {"needle_seconds": list(told.seen)} if told.seen else {}
    return Sample(
        name,
        task.name,
        form,
        told.question,
        options=told.options,
        answers=told.answers,
        group=name,
        tags=dict(told.tags),
        meta=meta,
        videos=(Video(path),),
    )


def check_source(source: FilmSource) -> None:
    """Refuse what cannot be drawn."""
    if source.kind not in KINDS:
        raise ConfigError(f"dataset.kind {not_among(source.kind, KINDS, ' is unknown')}")
    limits = {
        "dataset.films must be at least 1": source.films >= 1,
        "dataset.lengths, levels and depths need at least one value": source.lengths
        and source.levels
        and source.depths,
        f"dataset.lengths lie above 0 and at most at {LONGEST_S:g} s": all(0 < x <= LONGEST_S for x in source.lengths),
        "dataset.levels lie above 0": all(level > 0 for level in source.levels),
        "dataset.depths lie between 0 and 1": all(0 <= depth <= 1 for depth in source.depths),
    }
    broken = [rule for rule, kept in limits.items() if not kept]
    if broken:
        raise ConfigError(broken[0])
    _check_levels(source)


def _check_levels(source: FilmSource) -> None:
    """Refuse levels that this kind of story cannot have."""
    levels, shortest = source.levels, min(source.lengths)
    seconds = f"{source.kind} takes seconds below the shortest film, {shortest:g}"
    rules = {
        ("needle", "direction", "change"): (seconds, max(levels) < shortest),
        ("order", "count", "permanence"): (
            f"{source.kind} takes whole numbers",
            not any(level % 1 for level in levels),
        ),
        ("order",): ("order takes 3 to 10 words", min(levels) >= 3 and max(levels) <= 10),
        ("speed",): ("speed takes ratios above 1", min(levels) > 1),
    }
    for kinds, (rule, kept) in rules.items():
        if source.kind in kinds and not kept:
            raise ConfigError(f"dataset.levels: {rule}")
