"""A picture to what a terminal can show: its own picture protocol where it has one, else two pixels a character."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping

import PIL.Image
import pybase64
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from ..core.errors import DataError
from ..core.types import Image
from ..data.images.decode import open_image
from .terminal import plain

UPPER_HALF = "▀"
KITTY_CHUNK = 4096


def show_image(console: Console, image: Image) -> None:
    """Show an image as well as the terminal can; where there is none, or the file is bad, say so in words."""
    if not console.is_terminal:
        console.print(plain(f"picture {image.ref[:200]}"))
        return
    try:
        picture = open_image(image)
    except DataError as error:
        console.print(plain(str(error)))
        return
    protocol = protocol_of(os.environ)
    if protocol == "blocks":
        console.print(blocks(picture))
    else:
        console.file.write(escape_sequence(picture, protocol))


def protocol_of(environment: Mapping[str, str]) -> str:
    """Return kitty, iterm or blocks: what the terminal says it is."""
    if environment.get("TERM") == "xterm-kitty" or environment.get("KITTY_WINDOW_ID"):
        return "kitty"
    return "iterm" if environment.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm") else "blocks"


def escape_sequence(picture: PIL.Image.Image, protocol: str) -> str:
    """Return the bytes that make a kitty or iTerm terminal show a picture."""
    out = io.BytesIO()
    picture.save(out, "PNG")
    data = pybase64.b64encode(out.getvalue()).decode()
    if protocol == "iterm":
        return f"\x1b]1337;File=inline=1;preserveAspectRatio=1:{data}\x07\n"
    chunks = [data[at : at + KITTY_CHUNK] for at in range(0, len(data), KITTY_CHUNK)]
    parts = [
        f"\x1b_G{'f=100,a=T,' if n == 0 else ''}m={int(n + 1 < len(chunks))};{chunk}\x1b\\"
        for n, chunk in enumerate(chunks)
    ]
    return "".join(parts) + "\n"


def blocks(picture: PIL.Image.Image, columns: int = 64, rows: int = 32) -> Text:
    """Return a picture as coloured half blocks."""
    small = picture.convert("RGB")
    small.thumbnail((columns, rows * 2))
    width, height = small.size
    pixels = small.load()
    text = Text()
    for y in range(0, height - 1, 2):
        for x in range(width):
            upper, lower = (Color.from_rgb(*pixels[x, row]) for row in (y, y + 1))  # type: ignore[index,misc]
            text.append(UPPER_HALF, Style(color=upper, bgcolor=lower))
        text.append("\n")
    return text
