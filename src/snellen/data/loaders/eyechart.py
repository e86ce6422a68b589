"""Seeds -> eye charts as Samples: one condition (axis, level, script) a chart, drawn to PNG files on the way."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import msgspec
import PIL
from msgspec import Struct
from PIL import Image as Pillow
from PIL import ImageChops, ImageDraw, ImageFilter, ImageFont

from ...core.config import convert
from ...core.errors import ConfigError, EnvironmentProblem, not_among
from ...core.folders import cache_folder
from ...core.ids import content_hash, derive_seed, rng
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Image, Sample
from ..images.decode import encode_png

OVERSAMPLE = 6
"""Drawn this many times larger, then averaged: antialiasing by coverage, the same for every glyph."""
PAPER = 255
REFERENCE = {"letters": "H", "digits": "7", "words": "H", "cjk": "田"}
"""The flat glyph whose ink height is the glyph height of a script."""
WORD_GAP = 0.7
"""Width of a space, in glyph heights beyond the gap between glyphs."""

Font = ImageFont.FreeTypeFont


class Line(Struct, frozen=True):
    """One line of a chart; contrast 1 is black on white, 0 is nothing."""

    text: str
    height_px: float
    contrast: float = 1.0


class Chart(Struct, frozen=True):
    """Everything that decides the pixels of one chart. Lengths in px unless they say otherwise."""

    lines: tuple[Line, ...]
    script: str = "letters"
    width: int = 640
    height: int = 640
    spacing: float = 0.5
    """Gap between glyphs, in glyph heights."""
    blur_px: float = 0.0
    """Standard deviation of a Gaussian blur."""
    rotation_deg: float = 0.0
    clutter: float = 0.0
    """Density of strokes behind the glyphs: 0 none, 1 crowded."""
    position: str = "centre"
    """Where the block of lines stands: centre, top-left, top-right, bottom-left or bottom-right."""
    font: str | None = None
    """A font file; None is the font that comes with Pillow."""
    seed: int = 0
    """Of the clutter."""


def draw(chart: Chart) -> Pillow.Image:
    """Return the picture of a chart in grey."""
    ink = ink_layer(chart)
    page = draw_clutter(chart) if chart.clutter else Pillow.new("L", (chart.width, chart.height), PAPER)
    page = ImageChops.multiply(page, ImageChops.invert(ink))
    return page.filter(ImageFilter.GaussianBlur(chart.blur_px)) if chart.blur_px else page


def ink_layer(chart: Chart) -> Pillow.Image:
    """Return how much ink lies on each pixel of the page, 0 to 255."""
    block = block_of_lines(chart)
    if chart.rotation_deg:
        block = block.rotate(chart.rotation_deg, Pillow.Resampling.BICUBIC, expand=True)
    block = block.reduce(OVERSAMPLE)
    page = Pillow.new("L", (chart.width, chart.height), 0)
    page.paste(block, place_block(chart, block.size))
    return page


def place_block(chart: Chart, size: tuple[int, int]) -> tuple[int, int]:
    """Return the upper left corner of the block; refuse a block that does not fit."""
    free_x, free_y = chart.width - size[0], chart.height - size[1]
    if free_x < 0 or free_y < 0:
        raise EnvironmentProblem(
            f"a chart of {size[0]}×{size[1]} px does not fit a canvas of {chart.width}×{chart.height} px: "
            "raise dataset.size or lower dataset.largest_px"
        )
    vertical, _, horizontal = chart.position.partition("-")
    shares = {"top": 0.04, "bottom": 0.96, "left": 0.04, "right": 0.96}
    return round(free_x * shares.get(horizontal, 0.5)), round(free_y * shares.get(vertical, 0.5))


def block_of_lines(chart: Chart) -> Pillow.Image:
    """Return all lines, centred under each other, as ink at OVERSAMPLE times their size."""
    strips = [line_strip(line, chart) for line in chart.lines]
    gaps = [line_gap(line.height_px) * OVERSAMPLE for line in chart.lines]
    width = _whole(max(strip.width for strip in strips))
    block = Pillow.new("L", (width, sum(strip.height for strip in strips) + sum(gaps)), 0)
    y = gaps[-1] // 2 // OVERSAMPLE * OVERSAMPLE
    for strip, gap in zip(strips, gaps, strict=True):
        block.paste(strip, ((width - strip.width) // 2 // OVERSAMPLE * OVERSAMPLE, y))
        y += strip.height + gap
    return block


def line_gap(height_px: float) -> int:
    """Return the space below a line in px: seven tenths of its height, but never so little that lines run together."""
    return max(12, round(0.7 * height_px))


def _whole(length: float) -> int:
    return -(-round(length) // OVERSAMPLE) * OVERSAMPLE


def line_strip(line: Line, chart: Chart) -> Pillow.Image:
    """Return one line as ink at OVERSAMPLE times its size; the flat glyphs begin at row `overhang`."""
    font = font_for(chart.script, line.height_px * OVERSAMPLE, chart.font)
    gap = chart.spacing * line.height_px * OVERSAMPLE
    boxes = [font.getbbox(char, anchor="ls") for char in line.text]
    space = gap * WORD_GAP + gap
    widths = [space if char == " " else box[2] - box[0] for char, box in zip(line.text, boxes, strict=True)]
    total = sum(widths) + gap * (len(widths) - 1)
    above, below = max(-box[1] for box in boxes), max(box[3] for box in boxes)
    above, below = _whole(above), _whole(max(0, below))
    strip = Pillow.new("L", (_whole(total) + 2 * OVERSAMPLE, above + below), 0)
    pen, x = ImageDraw.Draw(strip), float(OVERSAMPLE)
    for char, box, width in zip(line.text, boxes, widths, strict=True):
        pen.text((x - box[0], above), char, font=font, fill=round(255 * line.contrast), anchor="ls")
        x += width + gap
    return strip


def draw_clutter(chart: Chart) -> Pillow.Image:
    """Return a page of grey strokes and arcs, as many as `clutter` says."""
    page = Pillow.new("L", (chart.width * 2, chart.height * 2), PAPER)
    pen, draw_from = ImageDraw.Draw(page), rng(chart.seed, "clutter")
    for _ in range(round(chart.clutter * chart.width * chart.height / 900)):
        x, y = draw_from.uniform(0, page.width), draw_from.uniform(0, page.height)
        reach = draw_from.uniform(10, 60)
        grey, thickness = draw_from.randint(90, 215), draw_from.randint(2, 5)
        if draw_from.random() < 0.5:
            box, start = (x - reach, y - reach, x + reach, y + reach), draw_from.uniform(0, 360)
            pen.arc(box, start, start + draw_from.uniform(40, 200), fill=grey, width=thickness)
        else:
            end = x + draw_from.uniform(-reach, reach), y + draw_from.uniform(-reach, reach)
            pen.line((x, y, *end), fill=grey, width=thickness)
    return page.reduce(2)


@lru_cache(maxsize=256)
def font_for(script: str, height: float, file: str | None) -> Font:
    """Return the font whose reference glyph is `height` tall."""
    return _load(file, height / height_ratio(script, file))


@lru_cache(maxsize=32)
def height_ratio(script: str, file: str | None) -> float:
    """Return the ink height of a script's reference glyph per unit of font size, measured on a large rendering."""
    box = _load(file, 2000.0).getmask(REFERENCE[script], mode="1").getbbox()
    if box is None:
        glyph = f"no glyph for {REFERENCE[script]!r}"
        raise EnvironmentProblem(f"font {file!r} has {glyph}: name another with dataset.font")
    return float(box[3] - box[1]) / 2000.0


def _load(file: str | None, size: float) -> Font:
    try:
        return ImageFont.truetype(file, size) if file else cast("Font", ImageFont.load_default(size))
    except OSError as error:
        fix = "name a .ttf or .otf file with dataset.font"
        raise EnvironmentProblem(f"font {file!r} cannot be opened: {error}; {fix}") from None


def has_glyphs(file: str, text: str) -> bool:
    """Say whether a font file draws these characters, rather than the box for a missing one."""
    font = _load(file, 64)
    missing = bytes(font.getmask("\U000fffff"))
    return all(bytes(font.getmask(char)) != missing for char in text)


ALPHABETS = {
    "letters": "CDHKNORSVZ",
    "digits": "0123456789",
    "cjk": "日月山川田木火水土金人口手目耳足牛羊馬鳥魚米竹花雨雪風雲天地東西南北上下左右大小",
}
"""Letters are Sloan's ten, chosen to be equally legible."""
SCRIPTS = (*ALPHABETS, "words")

FONT_FOLDERS = (
    "/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "/System/Library/Fonts", "C:/Windows/Fonts",
)  # fmt: skip
CJK_FONTS = (
    "NotoSansCJK", "NotoSansSC", "SourceHanSans", "wqy-", "DroidSansFallback", "PingFang", "msyh", "simhei", "uming",
    "ukai",
)  # fmt: skip


@lru_cache(maxsize=1)
def words() -> tuple[str, ...]:
    """Return the word list of the catalog, in capitals."""
    return tuple((files("snellen") / "catalog" / "words" / "english.txt").read_text("utf-8").upper().split())


def random_text(script: str, glyphs: int, draw: random.Random) -> str:
    """Return a line of `glyphs` optotypes, each drawn on its own so that chance is exact; words until it is full."""
    if script == "words":
        line = draw.choice(words())
        while len(line.replace(" ", "")) < glyphs:
            line += " " + draw.choice(words())
        return line
    return "".join(draw.choice(ALPHABETS[script]) for _ in range(glyphs))


@lru_cache(maxsize=8)
def chance_of(script: str) -> float:
    """Return how often a guess at one glyph is right: 1 in the alphabet; in words, by the letters of the word list."""
    if script in ALPHABETS:
        return 1 / len(ALPHABETS[script])
    letters = Counter("".join(words()))
    return sum((count / letters.total()) ** 2 for count in letters.values())


def alphabet_of(script: str) -> str:
    """Return the glyphs a line of a script may hold."""
    return ALPHABETS.get(script) or "".join(sorted(set("".join(words()))))


def wrong_readings(text: str, script: str, count: int, draw: random.Random) -> list[str]:
    """Return `count` other texts of the same length, drawn like the right one: the options alone give nothing away."""
    readings: list[str] = []
    while len(readings) < count:
        other = _like(text, draw) if script == "words" else random_text(script, len(text), draw)
        if other != text and other not in readings:
            readings.append(other)
    return readings


def _like(text: str, draw: random.Random) -> str:
    """Return other words of the same lengths."""
    return " ".join(draw.choice([other for other in words() if len(other) == len(word)]) for word in text.split(" "))


@lru_cache(maxsize=1)
def find_cjk_font() -> str:
    """Return an installed font with Chinese characters; say how to get one if there is none."""

    for folder in (Path(name).expanduser() for name in FONT_FOLDERS):
        for path in sorted(folder.rglob("*.tt[fc]")) + sorted(folder.rglob("*.otf")) if folder.is_dir() else []:
            if path.name.startswith(CJK_FONTS) and has_glyphs(str(path), ALPHABETS["cjk"]):
                return str(path)
    fix = "apt install fonts-noto-cjk, or name one with -p dataset.font=FILE"
    raise EnvironmentProblem(f"eyechart script 'cjk' needs a font with Chinese characters: {fix}")


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
