"""The frame in which a model gives coordinates: told, measured by an exam, or on its card; and tasks asked in it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..core.errors import ConfigError, UsageError
from ..core.frames import Frame, read_frame
from ..core.protocols import Model
from ..core.tasks import Task
from ..data.atlas.protocols import protocols_of, under_protocol
from ..data.catalog import Catalog
from ..report.stored_results import stored_exam
from .chosen_model import find_card
from .settings import RunSettings

CARD, COORDINATES = "card", "coordinates"
TESTS = (COORDINATES, "locate")
"""Tests of the exam that measure a frame; the first asks for none, and tells what a model does by itself."""
FIX = "sit `snellen exam --tests coordinates` and give its folder, or name the frame"


class KnownFrame(NamedTuple):
    """A frame, or None, and where it was found, or why it was not."""

    frame: Frame | None
    where: str


def model_frame(model: Model, settings: RunSettings, told: str = CARD) -> KnownFrame:
    """Return the frame of a model: as told (a frame, or the folder of an exam), or as its card says for `card`."""
    if told == CARD:
        found = find_card(model, settings)
        spelt = found.card.coordinates if found.card else None
        why = found.where if found.card is None else f"{found.where} says nothing of coordinates"
        return KnownFrame(read_frame(spelt), found.where) if spelt else KnownFrame(None, why)
    if Path(told).is_dir():
        return _measured_frame(Path(told))
    try:
        return KnownFrame(read_frame(told), "as told")
    except ConfigError as error:
        raise UsageError(f"{error}; nor is it `{CARD}`, or the folder of an exam") from None


def _measured_frame(folder: Path) -> KnownFrame:
    exam = stored_exam(folder)
    if exam is None:
        return KnownFrame(None, f"{folder} holds no exam.json")
    for name in TESTS:
        result = exam["tests"].get(name) or {}
        if result.get("card"):
            return KnownFrame(read_frame(result["card"]), f"{name} of the exam {folder}")
    words = [f"{name} is {exam['tests'][name]['verdict']}" for name in TESTS if name in exam["tests"]]
    return KnownFrame(None, f"the exam {folder} measured no frame ({'; '.join(words) or 'it has no such test'})")


def needed_frame(model: Model, settings: RunSettings, told: str, flag: str) -> Frame:
    """Return the frame of a model, or refuse with what to do."""
    known = model_frame(model, settings, told)
    if known.frame is None:
        raise UsageError(f"{flag} {told}: the frame of {settings.model} is not known, {known.where}; {FIX}")
    return known.frame


def task_in_frame(catalog: Catalog, name: str, settings: RunSettings, frame: Frame) -> Task:
    """Return a task whose prompt asks for coordinates in a frame and whose replies are read in it.

    It is the protocol of the card with the prompt of that frame; a task without coordinates is as it is.
    """
    task = catalog.task(name, settings.task_overrides(), settings.protocol)
    if COORDINATES not in task.score_options:
        return task
    kind = str(task.prompt).partition("-")[0]
    wanted, table = f"{kind}-{prompt_of(frame)}", catalog.task_table(name)
    prompts = {protocol: under_protocol(table, name, protocol).get("prompt") for protocol in protocols_of(table)}
    fitting = [protocol for protocol, prompt in prompts.items() if prompt == wanted]
    if not fitting:
        has = ", ".join(f"{protocol} ({prompt})" for protocol, prompt in prompts.items())
        raise UsageError(f"--coordinates: task {name!r} has no prompt for the frame {frame.name}; it has {has}")
    if settings.protocol not in (None, *fitting):
        raise UsageError(f"--coordinates {frame.name} asks as --protocol {fitting[0]}, not {settings.protocol}")
    overrides = [*settings.task_overrides(), (f"score_options.{COORDINATES}.reply", frame.name)]
    return catalog.task(name, overrides, settings.protocol or fitting[0])


def prompt_of(frame: Frame) -> str:
    """Return how prompts in this frame end; a model told `pixels` means those of the picture as it sees it."""
    edge = 1000.0 if frame.edge == 999.0 else frame.edge  # one in a thousand: no prompt tells them apart
    scale = "pixels" if edge is None else f"0-{edge:g}"
    words = [scale, *(("y-first",) if frame.y_first else ()), *(("y-up",) if frame.y_up else ())]
    return "-".join([*words, *(("padded",) if frame.padded else ())])
