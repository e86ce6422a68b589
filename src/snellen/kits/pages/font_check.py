"""The fonts of this machine to findings of `snellen doctor`."""

from __future__ import annotations

from PIL import features

from ...api.machine import Finding
from .font_files import default_font, font_set
from .fonts import TextFont


def look_at_fonts() -> list[Finding]:
    """Return whether texts of all scripts can be shaped and drawn, and which Debian packages bring what is missing."""
    font = TextFont(default_font(), 16.0)
    scripts = font_set().scripts.items()
    lacking = {name: script.package for name, script in scripts if font.lacking(script.sample)}
    packages = " ".join(sorted(set(lacking.values())))
    remedy = f"no font for {', '.join(lacking)}: apt-get install {packages}"
    shaped = bool(features.check("raqm"))
    hint = "for Arabic, Hebrew, Indic, Thai …: apt-get install libfribidi0, or install a Pillow wheel"
    return [
        Finding("text shaping", shaped, f"raqm {features.version('raqm')}" if shaped else hint),
        Finding("fonts", not lacking, remedy if lacking else f"{font.name} and others cover {len(scripts)} scripts"),
    ]
