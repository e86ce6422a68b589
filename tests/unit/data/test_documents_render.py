"""Pages as pixels: deterministic bytes, crop, colours, missing glyphs, natural names, one page in memory."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from snellen.core.errors import DataError, UsageError
from snellen.data.visual_tokens import count_tokens, visual_tokens
from snellen.kits.pages.font_files import BUILT_IN, font_file
from snellen.kits.pages.fonts import is_complex
from snellen.kits.pages.page_style import PageStyle, degrade_style, style_of
from snellen.kits.pages.publish import page_sizes, publish, read_manifest, solve_size
from snellen.kits.pages.render import Accent, page_font, png_bytes, render_pages
from snellen.kits.pages.texts import Document, plain_markdown, read_documents

STYLE = PageStyle(width_pt=220, height_pt=160, dpi=72, font=BUILT_IN, size_pt=10, leading_pt=12, margin_pt=6)
TEXT = "The quick brown fox jumps over the lazy dog. " * 30


def test_the_same_text_gives_the_same_bytes_and_valid_png() -> None:
    first = [png_bytes(page.pixels, 72) for page in render_pages(TEXT, STYLE)]
    second = [png_bytes(page.pixels, 72) for page in render_pages(TEXT, STYLE)]
    assert first == second and len(first) > 1
    opened = Image.open(io.BytesIO(first[0]))
    opened.load()
    assert opened.size == STYLE.page_px and opened.mode == "L"
    assert round(opened.info["dpi"][0]) == 72


def test_glyphs_stand_where_pillow_would_draw_them() -> None:
    from PIL import ImageDraw, ImageFont

    style = PageStyle(width_pt=300, height_pt=40, dpi=72, font=BUILT_IN, size_pt=14, leading_pt=18, margin_pt=6)
    page = next(iter(render_pages("Hamburg 123", style)))
    font = page_font(style)
    drawn = Image.new("L", style.page_px, 255)
    ImageDraw.Draw(drawn).text((6, 6 + font.ascent_px), "H", 0, ImageFont.load_default(14), anchor="ls")
    box = font.glyph("H")[0].shape
    assert np.array_equal(page.pixels[6:24, 6 : 6 + box[1]], np.asarray(drawn)[6:24, 6 : 6 + box[1]])


def test_every_page_holds_ink_only_where_its_lines_are() -> None:
    for page in render_pages(TEXT, STYLE):
        rows = np.flatnonzero((page.pixels < 255).any(axis=1))
        assert rows.min() >= page.lines[0].y
        assert rows.max() <= page.lines[-1].y + 2 * page.lines[-1].height


def test_colours_accents_and_newline_marks_make_a_colour_page() -> None:
    dark = next(iter(render_pages("hello", style_of("seed", {"font": BUILT_IN, "ink": "white", "paper": "#000040"}))))
    assert dark.pixels.ndim == 3 and tuple(dark.pixels[0, 0]) == (0, 0, 64)
    red = next(iter(render_pages("one two three", STYLE, accents=[Accent(4, 7, "#ff0000")])))
    reddish = (red.pixels[:, :, 0] > 200) & (red.pixels[:, :, 1] < 100)
    assert reddish.any()
    marked = next(iter(render_pages("one\ntwo", style_of("seed", {"newlines": "mark"}))))
    assert marked.pixels.ndim == 3


def test_crop_cuts_below_the_text_and_beside_it() -> None:
    last = list(render_pages("short", PageStyle(**{**_fields(), "crop": "last"})))[-1]
    assert last.pixels.shape[0] < STYLE.page_px[1] and last.pixels.shape[1] == STYLE.page_px[0]
    both = list(render_pages("short", PageStyle(**{**_fields(), "crop": "all"})))[-1]
    assert both.pixels.shape[1] < STYLE.page_px[0]


def test_characters_that_no_font_has_are_counted(tmp_path: Path) -> None:
    odd = [Document("d", "ab\U000e0fff\U000e0fffcd", {})]
    with pytest.raises(DataError, match=r"no installed font has 2 of its characters .*U\+E0FFF.*--missing-glyphs mark"):
        publish(odd, tmp_path, STYLE)
    assert read_manifest(tmp_path) is None
    manifest = publish(odd, tmp_path, STYLE, missing_glyphs="mark")
    record = manifest.documents["d"]
    assert record.missing_glyph_share == pytest.approx(2 / 6, abs=1e-6) and record.missing_glyph_count == 2
    assert read_manifest(tmp_path) == manifest


def test_published_pages_are_named_hashed_and_mapped(tmp_path: Path) -> None:
    manifest = publish([Document("doc", TEXT, {})], tmp_path, STYLE, source={"name": "x"})
    pages = manifest.documents["doc"].pages
    assert [page.file for page in pages][:2] == ["doc_page_001.png", "doc_page_002.png"]
    from snellen.core.ids import sha256_hex

    assert all(sha256_hex((tmp_path / "images" / page.file).read_bytes()) == page.sha256 for page in pages)
    lines = (tmp_path / "lines" / "doc.jsonl").read_text().splitlines()
    assert len(lines) == sum(len(page.lines) for page in render_pages(TEXT, STYLE))
    sizes = [(page.width, page.height) for page in pages]
    assert manifest.documents["doc"].visual_tokens["qwen2.5-vl"] == visual_tokens(sizes, "qwen2.5-vl")


def test_fixed_ratio_solves_the_font_size() -> None:
    text = TEXT * 20
    for wanted in (0.8, 1.5):
        style = solve_size(text, STYLE, wanted, "qwen2.5-vl")
        achieved = count_tokens(text) / visual_tokens(page_sizes(text, style), "qwen2.5-vl")
        assert achieved == pytest.approx(wanted, rel=0.08)


def test_render_degradations_change_size_or_type() -> None:
    base = style_of("seed")
    assert degrade_style(base, "dpi_render", 4).dpi == 50
    assert degrade_style(base, "dense_text", 3).size_pt == 7
    assert degrade_style(base, "typography", 1).font == "DejaVu Serif"
    assert degrade_style(base, "dpi_render", 0) == base
    with pytest.raises(UsageError, match="0-5"):
        degrade_style(base, "dpi_render", 6)


def test_scripts_that_need_shaping_are_known_and_drawn() -> None:
    assert is_complex("مرحبا") and is_complex("שלום") and not is_complex("中文 é")


def test_an_unknown_font_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="No Such Font"):
        font_file("No Such Font")
    with pytest.raises(UsageError, match="does not exist"):
        font_file("/nowhere/none.ttf")


def test_sources_text_markdown_json_and_their_faults(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Title\n\nSome **bold** [link](http://x) and `code`.\n")
    assert [document.text for document in read_documents(tmp_path)] == ["Title\n\nSome bold link and code.\n"]
    assert plain_markdown("a_b_c and 2*3*4") == "a_b_c and 2*3*4"
    data = tmp_path / "data.json"
    data.write_text('[{"_id": "x1", "context": "one"}, {"_id": "x1", "context": "two"}]')
    with pytest.raises(DataError, match="twice"):
        list(read_documents(data))
    data.write_text('[{"_id": "../evil", "context": "one"}]')
    with pytest.raises(DataError, match="_id"):
        list(read_documents(data))
    data.write_text("[1,")
    with pytest.raises(DataError, match="not valid JSON"):
        list(read_documents(data))
    (tmp_path / "bad.txt").write_bytes(b"ok \xff\xfe")
    with pytest.raises(DataError, match="byte 3"):
        list(read_documents(tmp_path / "bad.txt"))


def test_a_pdf_is_rastered_page_by_page(tmp_path: Path) -> None:
    reportlab = pytest.importorskip("reportlab.pdfgen.canvas")
    pytest.importorskip("pypdfium2")
    from snellen.kits.pages.publish import publish_pdf

    canvas = reportlab.Canvas(str(tmp_path / "two.pdf"), pagesize=(200, 100))
    for text in ("first", "second"):
        canvas.drawString(20, 50, text)
        canvas.showPage()
    canvas.save()
    manifest = publish_pdf(tmp_path / "two.pdf", tmp_path / "out", 72)
    assert [(page.width, page.height) for page in manifest.documents["two"].pages] == [(200, 100)] * 2
    (tmp_path / "not.pdf").write_bytes(b"hello")
    with pytest.raises(DataError, match="not a readable PDF"):
        publish_pdf(tmp_path / "not.pdf", tmp_path / "out", 72)


def _fields() -> dict:
    import msgspec

    return msgspec.structs.asdict(STYLE)
