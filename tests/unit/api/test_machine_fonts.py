"""`doctor` on fonts: which scripts cannot be drawn, and which packages bring them."""

from __future__ import annotations

import pytest

from snellen.kits.pages import font_files
from snellen.kits.pages.font_check import look_at_fonts


def test_missing_scripts_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {key: path for key, path in font_files.installed_fonts().items() if path.stem == "DejaVuSans"}
    monkeypatch.setattr(font_files, "installed_fonts", lambda: known)
    font_files.try_face.cache_clear()
    try:
        shaping, fonts = look_at_fonts()
    finally:
        monkeypatch.undo()
        font_files.try_face.cache_clear()
    assert shaping.ok and not fonts.ok and not fonts.needed
    assert "Devanagari" in fonts.text and "Chinese" in fonts.text and "Hebrew" not in fonts.text
    assert fonts.text.endswith("apt-get install fonts-noto-cjk fonts-noto-core")
