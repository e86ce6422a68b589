"""A seed in, a page out: Markdown that nobody has seen before, and the picture of it, line by line.

Headings, paragraphs, lists, tables with merged cells and formulas with scripts, fractions and roots. What is drawn is
what the Markdown says: no model can know it, and the gold answer has no mistakes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from ..pages.font_files import default_font, find_face, open_face

_VOCABULARY = (
    "amber anchor apple arrow autumn barley basket beacon bench bridge bright broken candle canvas carry castle "
    "cedar chalk cherry circle clay clear cliff cloud cobalt copper corner cotton crane crisp current dawn deep "
    "desert distant draft drift early earth ember empty evening falcon feather fence field flame flint forest "
    "fossil gather gentle glass golden grain granite green harbour hazel hollow honey hunter island ivory jacket "
    "kettle ladder lantern leather ledger letter linen little lumber maple marble market meadow measure mellow "
    "meteor middle mirror morning narrow needle north oak ocean olive orange orchard pebble pencil pepper piano "
    "pigeon planet plenty pocket powder quarry quiet rabbit ragged ribbon river robin rocket saddle sailor salmon "
    "shadow silver simple slender smooth spring square stable station steady stone stream summer sunlit tablet "
    "tailor tender thicket timber tower travel trumpet tunnel upper valley velvet village violet walnut wander "
    "water weaver wheat whistle willow window winter wooden yellow "
)
WORDS = tuple(re.findall("[a-z]+", _VOCABULARY))
WIDTH, MARGIN, SIZE = 1000, 70, 22
KINDS = ("text", "list", "table", "formula")


@dataclass(frozen=True)
class DrawnPage:
    """A page: its blocks with their categories, and its picture."""

    blocks: tuple[dict[str, object], ...]
    image: Image.Image = field(compare=False)

    @property
    def markdown(self) -> str:
        """Return the page as Markdown."""
        return "\n\n".join(_as_markdown(block) for block in self.blocks)


def _as_markdown(block: dict[str, object]) -> str:
    return f"# {block['text']}" if block["category"] == "title" else str(block["text"])


def page_blocks(draw: random.Random, parts: int = 5) -> tuple[dict[str, object], ...]:
    """Return the blocks of one page: a heading, then parts of every kind in turn."""
    blocks = [{"category": "title", "text": _phrase(draw, 3)}]
    kinds = ["text", *draw.sample(KINDS[1:], 3), *draw.choices(KINDS, k=max(0, parts - 4))][:parts]
    blocks += [{"category": _CATEGORIES[kind], "text": _MAKERS[kind](draw)} for kind in kinds]
    return tuple({**block, "order": order} for order, block in enumerate(blocks, start=1))


def _phrase(draw: random.Random, count: int) -> str:
    return " ".join(draw.choices(WORDS, k=count)).capitalize()


def _sentence(draw: random.Random) -> str:
    words = draw.choices(WORDS, k=draw.randint(6, 13))
    words[draw.randrange(1, len(words) - 1)] += ","
    if draw.random() < 0.4:
        words.insert(draw.randrange(1, len(words)), str(draw.randint(2, 9999)))
    return " ".join(words).capitalize() + "."


def _paragraph(draw: random.Random) -> str:
    return " ".join(_sentence(draw) for _ in range(draw.randint(2, 4)))


def _list(draw: random.Random) -> str:
    return "\n".join(f"- {_phrase(draw, draw.randint(2, 4))}" for _ in range(draw.randint(3, 5)))


def _table(draw: random.Random) -> str:
    columns, rows = draw.randint(3, 4), draw.randint(3, 5)
    head = "".join(f"<td>{draw.choice(WORDS).capitalize()}</td>" for _ in range(columns))
    if draw.random() < 0.5:
        names = [draw.choice(WORDS).capitalize() for _ in range(columns - 1)]
        head = f'<td colspan="2">{names[0]}</td>' + "".join(f"<td>{name}</td>" for name in names[1:])
    body = "".join(
        "<tr>" + "".join(f"<td>{_value(draw, column)}</td>" for column in range(columns)) + "</tr>" for _ in range(rows)
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _value(draw: random.Random, column: int) -> str:
    return draw.choice(WORDS) if column == 0 else f"{draw.uniform(0, 500):.{draw.randint(0, 2)}f}"


def _formula(draw: random.Random) -> str:
    letters = draw.sample("abcdkmnpqrstuvwxyz", 5)
    terms = [_term(draw, letter) for letter in letters[1:4]]
    signs = [draw.choice(("+", "-")) for _ in terms]
    right = " ".join(f"{term} {sign}" for term, sign in zip(terms, signs, strict=True)).rsplit(" ", 1)[0]
    return f"$${letters[0]} = {right}$$"


def _term(draw: random.Random, letter: str) -> str:
    number = str(draw.randint(2, 9))
    return draw.choice(
        (f"{letter}^{{{number}}}", f"{letter}_{{{number}}}", f"\\frac{{{letter}}}{{{number}}}", number + letter)
    )


_MAKERS = {"text": _paragraph, "list": _list, "table": _table, "formula": _formula}
_CATEGORIES = {"text": "text_block", "list": "text_block", "table": "table", "formula": "equation_isolated"}


@lru_cache(maxsize=16)
def _font(size: int) -> ImageFont.FreeTypeFont:
    return open_face(find_face(default_font()), size)


class _Sheet:
    """A page that grows downwards."""

    def __init__(self) -> None:
        self.image = Image.new("L", (WIDTH, 2400), 255)
        self.pen = ImageDraw.Draw(self.image)
        self.y = MARGIN

    def words(self, text: str, size: int = SIZE, indent: int = 0) -> None:
        font, line = _font(size), ""
        for word in [*text.split(), ""]:
            longer = f"{line} {word}".strip()
            if not word or font.getlength(longer) > WIDTH - 2 * MARGIN - indent:
                self.pen.text((MARGIN + indent, self.y), line, 0, font)
                self.y += round(size * 1.4)
                line = word
            else:
                line = longer

    def table(self, rows: Sequence[Sequence[tuple[str, int]]]) -> None:
        columns = max(sum(span for _, span in row) for row in rows)
        width, height = (WIDTH - 2 * MARGIN) // columns, SIZE * 2
        for row in rows:
            x = MARGIN
            for text, span in row:
                self.pen.rectangle((x, self.y, x + width * span, self.y + height), outline=0, width=2)
                self.pen.text((x + 12, self.y + SIZE // 2), text, 0, _font(SIZE))
                x += width * span
            self.y += height
        self.y += SIZE // 2

    def formula(self, latex: str) -> None:
        x, size = WIDTH // 3, SIZE + 6
        self.y += size
        for part in latex.strip("$").split():
            x = self._part(part, x, size) + 10
        self.y += size * 2

    def _part(self, part: str, x: int, size: int) -> int:
        pen, big, small = self.pen, _font(size), _font(size * 2 // 3)
        if part.startswith("\\frac"):
            above, below = part[6:-1].split("}{")
            width = int(max(big.getlength(above), big.getlength(below))) + 8
            pen.text((x + 4, self.y - size), above, 0, big)
            pen.line((x, self.y + size // 2, x + width, self.y + size // 2), 0, 2)
            pen.text((x + 4, self.y + size // 2 + 4), below, 0, big)
            return x + width
        for mark, rise in (("^", -size // 3), ("_", size // 2)):
            if mark in part:
                base, _, script = part.partition(mark)
                pen.text((x, self.y), base, 0, big)
                x += int(big.getlength(base))
                pen.text((x, self.y + rise), script.strip("{}"), 0, small)
                return x + int(small.getlength(script.strip("{}")))
        pen.text((x, self.y), part, 0, big)
        return x + int(big.getlength(part))


def draw_blocks(blocks: Sequence[dict[str, object]]) -> Image.Image:
    """Return the picture of blocks that were made here."""
    sheet = _Sheet()
    for block in blocks:
        text = str(block["text"])
        if block["category"] == "table":
            sheet.table(_rows(text))
        elif block["category"] == "equation_isolated":
            sheet.formula(text)
        elif block["category"] == "title":
            sheet.words(text, SIZE * 3 // 2)
        elif text.startswith("- "):
            for item in text.split("\n"):
                sheet.words("• " + item[2:], indent=30)
        else:
            sheet.words(text)
        sheet.y += SIZE
    return sheet.image.crop((0, 0, WIDTH, min(sheet.y + MARGIN // 2, 2400)))


def _rows(table: str) -> list[list[tuple[str, int]]]:
    """Return the cells of a table that was made here, each with how many columns it spans."""
    rows = [row.removeprefix("<tr>") for row in table.removeprefix("<table>").split("</tr>")[:-1]]
    return [[_cell(cell) for cell in row.split("</td>")[:-1]] for row in rows]


def _cell(cell: str) -> tuple[str, int]:
    opening, _, text = cell.partition(">")
    return text, 2 if "colspan" in opening else 1
