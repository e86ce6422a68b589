"""Seeds -> eye charts as Samples: one condition (axis, level, script) a chart, drawn to PNG files on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import PIL
from msgspec import Struct

from ...core.config import convert
from ...core.errors import ConfigError, EnvironmentProblem, not_among
from ...core.folders import cache_folder
from ...core.ids import content_hash, derive_seed, rng
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Image, Sample
from ..images.decode import encode_png
from .eyechart_draw import Chart, Line, draw
from .eyechart_text import ALPHABETS, SCRIPTS, alphabet_of, chance_of, find_cjk_font, random_text, wrong_readings

NAMES = {
    "letters": ("capital letters", "letter"),
    "digits": ("digits", "digit"),
    "words": ("English words in capital letters", "letter"),
    "cjk": ("Chinese characters", "character"),
}
"""Script -> what its rows hold, and one glyph of it."""


def chart_question(chart: Chart) -> str:
    """Return the question for the whole chart: numbered rows of stated length, so that every glyph has its place."""
    change = "fainter" if chart.lines[0].contrast != chart.lines[-1].contrast else "smaller"
    many, one = NAMES[chart.script]
    lengths = ", ".join(str(_glyphs(line.text)) for line in chart.lines)
    return (
        f"This is an eye chart with {len(chart.lines)} rows of {many} that get {change} from top to bottom"
        f"{_alphabet(chart)}. From top to bottom the rows hold {lengths} {one}s{_spaces(chart)}. "
        f'Read it: write every row on a line of its own after its number, as in "1: …", with exactly as many '
        f"{one}s as it holds: your best guess for each {one}, or ? for a {one} you cannot see at all."
    )


def line_question(chart: Chart, number: int, *, transcribe: bool) -> str:
    """Return the question for one line; with options to choose from, its text alone is asked for."""
    question = f"What does line {number} of this eye chart say, counted from the top?"
    if not transcribe:
        return question
    count, one = _glyphs(chart.lines[number - 1].text), NAMES[chart.script][1]
    noun = f"{count} {one}{'s' if count != 1 else ''}"
    return (
        f"{question} It holds {noun}{_spaces(chart)}{_alphabet(chart)}. "
        f"Write exactly {noun}: your best guess for each, or ? for one you cannot see at all."
    )


def _glyphs(text: str) -> int:
    return len(text.replace(" ", ""))


def _alphabet(chart: Chart) -> str:
    """Name the alphabet where it is not a matter of course."""
    return f", all from {' '.join(ALPHABETS[chart.script])}" if chart.script in ("letters", "cjk") else ""


def _spaces(chart: Chart) -> str:
    return ", spaces not counted" if chart.script == "words" else ""


Level = float | str

DEFAULT_LEVELS: dict[str, tuple[Level, ...]] = {
    "base": (0.0,),
    "contrast": (0.0,),
    "crowding": (0.1, 0.0),
    "blur": (1.0, 2.0),
    "rotation": (5.0, 15.0),
    "clutter": (0.3, 1.0),
    "position": ("top-left", "bottom-right"),
}
"""What a level means: crowding, the gap in glyph heights; blur, sigma in px; rotation, degrees; clutter, density;
position, the corner of a canvas twice as wide and high. A contrast chart holds its own levels, one a line."""

AXIS_FIELDS = {"crowding": "spacing", "blur": "blur_px", "rotation": "rotation_deg"}
AXIS_FIELDS |= {axis: axis for axis in ("clutter", "position")}
"""Axis -> the field of a Chart that its level sets."""
ASKS = ("transcribe", "line", "choice")


class ChartSource(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the loader (`-p dataset.charts=5`)."""

    loader: str
    charts: int = 3
    """Charts per condition."""
    lines: int = 12
    glyphs: tuple[int, int] = (4, 10)
    """Glyphs in the first and in the last line."""
    largest_px: float = 40.0
    smallest_px: float = 2.0
    contrast_px: float = 16.0
    """Glyph height on contrast charts, whose lines fade instead of shrinking."""
    lowest_contrast: float = 0.008
    size: int = 640
    axes: tuple[str, ...] = tuple(DEFAULT_LEVELS)
    scripts: tuple[str, ...] = ("letters", "digits", "words")
    levels: dict[str, tuple[Level, ...]] = {}
    ask: str = "transcribe"
    options: int = 4
    font: str | None = None


class Condition(Struct, frozen=True):
    """What is hard about a chart."""

    axis: str
    level: Level
    script: str

    @property
    def name(self) -> str:
        """Return a short name that is unique among conditions."""
        return f"{self.axis}-{self._level}-{self.script}"

    @property
    def label(self) -> str:
        """Return how reports name it: `plain`, `contrast`, `blur=2`."""
        return {"base": "plain", "contrast": "contrast"}.get(self.axis, f"{self.axis}={self._level}")

    @property
    def _level(self) -> str:
        return self.level if isinstance(self.level, str) else f"{self.level:g}"


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield charts round by round over all conditions, so that `--limit` cuts evenly."""
    source = convert(task.dataset, ChartSource, f"task {task.name!r}, dataset")
    _check(source)
    folder = (context.workdir or cache_folder()) / "eyechart"
    for index in range(source.charts):
        for condition in conditions(source):
            chart = make_chart(source, condition, derive_seed(context.seed, "eyechart", condition.name, index))
            ident = f"{condition.name}-{index:03d}"
            yield from _samples(task, source, condition, chart, (ident, write_chart(chart, folder, ident)))


def conditions(source: ChartSource) -> list[Condition]:
    """Return all conditions: every script plain, then every level of every axis in the first script."""
    plain = [Condition("base", 0.0, script) for script in source.scripts] if "base" in source.axes else []
    hard = [axis for axis in source.axes if axis != "base"]
    levels = [(axis, level) for axis in hard for level in source.levels.get(axis, DEFAULT_LEVELS[axis])]
    return plain + [Condition(axis, level, source.scripts[0]) for axis, level in levels]


def make_chart(source: ChartSource, condition: Condition, seed: int) -> Chart:
    """Return one random chart of a condition."""
    text_of = rng(seed, "text")
    # Each chart shifts the ladder by up to half a rung: together they test every height between the rungs.
    shift = rng(seed, "ladder").uniform(-0.5, 0.5)
    steps = [min(1.0, max(0.0, (place + shift) / max(1, source.lines - 1))) for place in range(source.lines)]
    lines = []
    for share in steps:
        glyphs = round(source.glyphs[0] + share * (source.glyphs[1] - source.glyphs[0]))
        height_px = round(source.largest_px * (source.smallest_px / source.largest_px) ** share, 2)
        contrast = 1.0
        if condition.axis == "contrast":
            height_px, contrast = source.contrast_px, grey_contrast(source.lowest_contrast**share)
        lines.append(Line(random_text(condition.script, glyphs, text_of), height_px, contrast))
    font = source.font or (find_cjk_font() if condition.script == "cjk" else None)
    chart = Chart(tuple(lines), condition.script, source.size, source.size, font=font, seed=seed % 2**32)
    return apply_condition(chart, condition)


def grey_contrast(contrast: float) -> float:
    """Return the contrast that 256 grey levels can really show."""
    return round(max(1, round(255 * contrast)) / 255, 4)


def apply_condition(chart: Chart, condition: Condition) -> Chart:
    """Return the chart made hard in one way."""
    field = AXIS_FIELDS.get(condition.axis)
    changes: dict[str, Any] = {field: condition.level} if field else {}
    if condition.axis == "position":
        changes |= {"width": chart.width * 2, "height": chart.height * 2}
    if condition.axis == "rotation" and chart.seed % 2:
        changes["rotation_deg"] = -float(condition.level)
    return msgspec.structs.replace(chart, **changes)


def write_chart(chart: Chart, folder: Path, ident: str) -> Image:
    """Draw a chart to a PNG file named by its content, unless it is there already."""
    path = folder / f"{ident}-{content_hash([chart, PIL.__version__], 12)}.png"
    if not path.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix(f".{os.getpid()}.tmp")
            temporary.write_bytes(encode_png(draw(chart)))
            temporary.replace(path)
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from None
    return Image(str(path.resolve()), "image/png", chart.width, chart.height)


def _samples(
    task: Task, source: ChartSource, condition: Condition, chart: Chart, named: tuple[str, Image]
) -> Iterator[Sample]:
    ident, image = named
    tags: dict[str, Any] = {**msgspec.structs.asdict(condition), "condition": condition.label}
    told: dict[str, Any] = {"alphabet": alphabet_of(chart.script), "chance": chance_of(chart.script)}
    if source.ask == "transcribe":
        answer = "\n".join(line.text for line in chart.lines)
        meta: dict[str, Any] = {"lines": [msgspec.structs.asdict(line) for line in chart.lines], **told}
        yield Sample(ident, task.name, Form.OCR, chart_question(chart), (image,), (), (answer,), tags=tags, meta=meta)
        return
    for number, line in enumerate(chart.lines, 1):
        options: tuple[str, ...] = ()
        if source.ask == "choice":
            shuffled = rng(chart.seed, ident, number, "options")
            mixed = [line.text, *wrong_readings(line.text, chart.script, source.options - 1, shuffled)]
            shuffled.shuffle(mixed)
            options = tuple(mixed)
        own: dict[str, Any] = {"tags": {**tags, "line": number}, "group": ident}
        meta = {"lines": [msgspec.structs.asdict(line)], "glyph_px": line.height_px, **told}
        name, form = f"{ident}-line{number:02d}", Form.CHOICE if options else Form.OCR
        question = line_question(chart, number, transcribe=not options)
        yield Sample(name, task.name, form, question, (image,), options, (line.text,), meta=meta, **own)


def _check(source: ChartSource) -> None:
    for what, given, known in (
        ("dataset.axes", source.axes, DEFAULT_LEVELS),
        ("dataset.scripts", source.scripts, SCRIPTS),
        ("dataset.levels", source.levels, DEFAULT_LEVELS),
        ("dataset.ask", (source.ask,), ASKS),
    ):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ConfigError(f"{what}: {not_among(unknown[0], known, ' is unknown')}")
    heights_fit = 0 < source.smallest_px <= source.largest_px
    limits = {
        "dataset.scripts and dataset.axes need at least one name": source.scripts and source.axes,
        "dataset.lines and dataset.charts must be at least 1": min(source.lines, source.charts) >= 1,
        "dataset.smallest_px lies above 0 and at most at dataset.largest_px": heights_fit,
        "dataset.lowest_contrast lies above 0 and at most at 1": 0 < source.lowest_contrast <= 1,
        "dataset.options must be at least 2": source.options >= 2,
        "dataset.glyphs must be at least 1": min(source.glyphs) >= 1,
    }
    broken = [rule for rule, kept in limits.items() if not kept]
    if broken:
        raise ConfigError(broken[0])
