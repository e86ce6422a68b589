"""Seeds -> the text of chart lines: random optotypes, and wrong readings of them for the multiple-choice form."""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from ...core.errors import EnvironmentProblem

ALPHABETS = {
    "letters": "CDHKNORSVZ",
    "digits": "0123456789",
    "cjk": "日月山川田木火水土金人口手目耳足牛羊馬鳥魚米竹花雨雪風雲天地東西南北上下左右大小",
}
"""Letters are Sloan's ten, chosen to be equally legible."""
SCRIPTS = (*ALPHABETS, "words")
NAMES = {"letters": "capital letters", "digits": "digits", "words": "words", "cjk": "Chinese characters"}

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
    from .eyechart_draw import has_glyphs

    for folder in (Path(name).expanduser() for name in FONT_FOLDERS):
        for path in sorted(folder.rglob("*.tt[fc]")) + sorted(folder.rglob("*.otf")) if folder.is_dir() else []:
            if path.name.startswith(CJK_FONTS) and has_glyphs(str(path), ALPHABETS["cjk"]):
                return str(path)
    fix = "apt install fonts-noto-cjk, or name one with -p dataset.font=FILE"
    raise EnvironmentProblem(f"eyechart script 'cjk' needs a font with Chinese characters: {fix}")
