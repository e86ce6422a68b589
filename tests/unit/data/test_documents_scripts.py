"""Text of any script: never boxes in silence, shaped and ordered as it is read, faces named, regular before bold."""

from __future__ import annotations

import ctypes
import io
import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs
from PIL import Image, ImageFont

from snellen.core.errors import DataError, EnvironmentProblem, UsageError
from snellen.kits.pages import font_files, fonts, layout
from snellen.kits.pages.bidi import base_level, bidi_levels, is_right_to_left, visual_order
from snellen.kits.pages.font_files import BUILT_IN, FontFile, code_points, face_codes, find_face, font_set, open_face
from snellen.kits.pages.fonts import TextFont, clusters, is_complex
from snellen.kits.pages.layout import lay_out
from snellen.kits.pages.page_style import PageStyle
from snellen.kits.pages.publish import publish
from snellen.kits.pages.render import page_font, render_pages, span_boxes
from snellen.kits.pages.texts import Document

WIDE = PageStyle(width_pt=420, height_pt=60, dpi=96, font="DejaVu Sans", size_pt=12, leading_pt=18, margin_pt=6)
LARGE = PageStyle(width_pt=420, height_pt=60, dpi=288, font="DejaVu Sans", size_pt=12, leading_pt=18, margin_pt=6)
HEBREW, ARABIC = "שלום", "مرحبا"
MIXED = "אבגדמנשת ابتجدسم abcXYZ 0123456789 ٠١٢٣ ()[]«» .,:;!?+-%$/ \u0301"


@pytest.fixture(scope="module")
def fribidi() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libfribidi.so.0")
    except OSError:
        pytest.skip("FriBiDi, which our order of runs is held against, is not installed")


def levels_of(fribidi: ctypes.CDLL, text: str, base: int) -> list[int]:
    size = len(text)
    codes = (ctypes.c_uint32 * size)(*map(ord, text))
    direction = ctypes.c_uint32(0x111 if base else 0x110)
    found = (ctypes.c_int8 * size)()
    fribidi.fribidi_log2vis(codes, size, ctypes.byref(direction), None, None, None, found)
    return list(found)


@settings(max_examples=400, deadline=None)
@given(st.text(st.sampled_from(MIXED), min_size=1, max_size=24), st.integers(0, 1))
@example("car (שלום) עולם", 0)
@example("שלום 12,5% (a) ب 3-4", 1)
def test_levels_are_those_of_the_reference(fribidi: ctypes.CDLL, text: str, base: int) -> None:
    text = f"{text.strip()}."  # spaces at a line's end are reset by the reference, and dropped by us
    assert bidi_levels(text, base) == levels_of(fribidi, text, base)


@given(st.lists(st.integers(0, 3), max_size=12))
def test_the_visual_order_moves_every_piece_once(levels: list[int]) -> None:
    order = visual_order(levels)
    assert sorted(order) == list(range(len(levels)))
    if all(level == 1 for level in levels):
        assert order == list(range(len(levels)))[::-1]


def test_a_paragraph_runs_as_its_first_letter_does() -> None:
    assert base_level(f"12 {HEBREW} abc") == 1 and base_level(f"abc {HEBREW}") == 0 and base_level("12 .") == 0
    assert is_right_to_left(f"a {ARABIC}") and not is_right_to_left("中文 é abc")
    assert is_complex(ARABIC) and is_complex("हिन्दी") and is_complex("e\u0301") and not is_complex("中文 é")


@pytest.mark.parametrize(
    "text", [f"{HEBREW} עולם abc {ARABIC} 12", f"abc {HEBREW} (עולם) def", f"{ARABIC} (12) بالعالم"]
)
def test_a_line_is_drawn_as_the_shaping_library_draws_it_whole(text: str) -> None:
    """DejaVu has all of it, so raqm can draw the line at once; ours, word by word, must look the same."""
    page = next(iter(render_pages(text, LARGE)))
    whole = ImageFont.truetype(str(find_face("DejaVu Sans").path), 48, layout_engine=ImageFont.Layout.RAQM)
    direction = "rtl" if base_level(text) else "ltr"
    mask, _ = whole.getmask2(text, "L", anchor="ls", direction=direction)
    theirs = np.frombuffer(bytes(mask), np.uint8).reshape(mask.size[1], mask.size[0])
    ink = 255 - page.pixels
    columns = np.flatnonzero(ink.any(axis=0))
    ours = ink[:, columns[0] : columns[-1] + 1]
    assert ours.shape[1] == pytest.approx(theirs.shape[1], rel=0.04), "words are placed on whole pixels"
    ours_by_column, theirs_by_column = _profile(ours), _profile(theirs)
    assert np.corrcoef(ours_by_column, theirs_by_column)[0, 1] > 0.9
    if direction == "rtl":
        assert columns[-1] > LARGE.page_px[0] - 40, "a paragraph begins where its script does"


BESIDE = [
    "United Nations Educational Scientific Organization 1234567890 1111111111 kilometres Illinois (עברית)",
    "длинный русский текст и слова внутри строки с ивритом (עברית) 1111111111 2222222222",
    f"{HEBREW} 1234567890 1111111111 kilometres Illinois {ARABIC} fifty 1111111111 illicit",
]


@pytest.mark.parametrize("text", BESIDE)
@pytest.mark.parametrize("size_pt", [7.0, 9.5, 13.0])
def test_left_to_right_words_beside_right_to_left_ones_stay_apart(text: str, size_pt: float) -> None:
    style = structs.replace(WIDE, size_pt=size_pt, leading_pt=1.4 * size_pt, newlines="keep")
    font = page_font(style)
    for lines in lay_out(text, style, font):
        for line in lines:
            placed = sorted((x, place) for place, (_, x, _) in enumerate(line.words))
            for (x, place), (after, following) in itertools.pairwise(placed):
                (word, _, at), (_, _, next_at) = line.words[place], line.words[following]
                if abs(next_at - at) < 2 or not any(c.isspace() for c in text[min(at, next_at) : max(at, next_at)]):
                    continue
                reach = x + font.ink_width(word, leftward=place in line.leftward)
                assert after - reach >= 0.5 * font.advance(" "), (word, line.words[following][0])


@pytest.mark.parametrize(
    "text", [*BESIDE, "one two\tthree\n\nfour  five", "中文，字 and 中文。", "x" * 700 + " end", ""]
)
@pytest.mark.parametrize("newlines", ["keep", "space", "mark", "paragraph"])
def test_words_drawn_are_counted_against_words_given(text: str, newlines: str, tmp_path: Path) -> None:
    style = structs.replace(WIDE, newlines=newlines)
    record = publish([Document("d", text, {})], tmp_path, style, missing_glyphs="mark").documents["d"]
    assert record.words_drawn == record.words_given


def test_words_that_run_together_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(layout, "_width", lambda text, leftward, font: 0 if text.isspace() else font.advance(text))
    record = publish([Document("d", BESIDE[0], {})], tmp_path, WIDE).documents["d"]
    assert record.words_given == 10 and record.words_drawn < 5


def _profile(ink: np.ndarray) -> np.ndarray:
    """Ink by place along the line, a few pixels wide, on a common scale."""
    picture = Image.fromarray(ink.sum(axis=0).astype(np.float32)[None, :])
    return np.asarray(picture.resize((30, 1), Image.Resampling.BOX))[0]


def test_boxes_of_right_to_left_words_are_where_they_are_drawn() -> None:
    text = f"abc {HEBREW} עולם def"
    font = page_font(WIDE)
    lines = next(lay_out(text, WIDE, font))
    page = next(iter(render_pages(text, WIDE, font)))
    ink = np.flatnonzero((page.pixels < 128).any(axis=0))
    (_, first), (_, second) = (span_boxes(lines, start, start + 4, font)[0] for start in (4, 9))
    assert second[2] <= first[0] + 1, "the second word stands left of the first"
    for left, _, right, _ in (first, second):
        assert ((ink >= left) & (ink < right)).any()
    (_, both) = span_boxes(lines, 4, 13, font)[0]
    assert (both[0], both[2]) == (second[0], first[2])


def test_one_word_of_another_script_leaves_the_rest_as_it_was() -> None:
    """Each run of a script has a face of its own: Hebrew beside Latin changes nothing of the Latin, and is no box."""
    font = TextFont(BUILT_IN, 32.0)  # Latin only: Hebrew and Greek come from a fallback
    alone, mixed = font.word("Hamburg"), font.word(f"Hamburg{HEBREW}")
    rows = slice(alone[2] - mixed[2], alone[2] - mixed[2] + alone[0].shape[0])
    assert np.array_equal(mixed[0][rows, : alone[0].shape[1] - 2], alone[0][:, :-2])
    assert mixed[3] == alone[3] + font.word(HEBREW)[3]
    assert np.array_equal(font.word(HEBREW)[0], TextFont("DejaVu Sans", 32.0).word(HEBREW)[0])
    turned = font.word(f"Ω{HEBREW}", leftward=True)
    assert turned[3] == font.word("Ω")[3] + font.word(HEBREW)[3]


def test_clusters_keep_marks_joined_consonants_and_vowels_together() -> None:
    assert list(clusters("क्षिab")) == ["क्षि", "a", "b"]
    assert list(clusters("e\u0301x")) == ["e\u0301", "x"]
    assert list(clusters("เก้า")) == ["เก้า"] and list(clusters("")) == []


@given(st.text(st.sampled_from("क्षिเก้าسلامabc \u0301\u200d"), max_size=30))
def test_clusters_lose_nothing(text: str) -> None:
    assert "".join(clusters(text)) == text


def empty_font(folder: Path, monkeypatch: pytest.MonkeyPatch, *kept: str) -> None:
    """A machine that has only the named font files."""
    known = {key: path for key, path in font_files.installed_fonts().items() if path.stem in kept}
    monkeypatch.setattr(font_files, "installed_fonts", lambda: known)
    font_files.try_face.cache_clear()


@pytest.mark.parametrize("text", ["हिन्दी", "ภาษาไทย", "中文", f"中文{ARABIC}"])
def test_text_without_a_font_is_refused_not_drawn_as_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    empty_font(tmp_path, monkeypatch, "DejaVuSans")
    try:
        with pytest.raises(DataError, match=r"no installed font has .* of its characters"):
            publish([Document("d", f"plain {text}", {})], tmp_path, WIDE)
        record = publish([Document("d", f"plain {text}", {})], tmp_path, WIDE, missing_glyphs="mark").documents["d"]
        lacking = TextFont("DejaVu Sans", 16).lacking(text)
        assert record.missing_glyph_count == lacking.total() > 0 and set(record.missing_glyphs) == set(lacking)
        with pytest.raises(UsageError, match="--missing-glyphs"):
            publish([], tmp_path, WIDE, missing_glyphs="guess")
    finally:
        monkeypatch.undo()
        font_files.try_face.cache_clear()


def test_fallback_faces_are_named_with_their_hash(tmp_path: Path) -> None:
    style = PageStyle(**{name: getattr(WIDE, name) for name in WIDE.__struct_fields__} | {"font": BUILT_IN})
    manifest = publish([Document("d", f"plain {HEBREW} Ωλ", {})], tmp_path, style)
    assert manifest.documents["d"].fallback_faces == {"DejaVuSans": 6}
    assert manifest.faces == {"DejaVuSans": font_files.face_sha256(find_face("DejaVu Sans"))}
    plain = publish([Document("d", "plain", {})], tmp_path / "plain", style)
    assert plain.faces == {} and plain.documents["d"].fallback_faces == {}


def test_regular_faces_come_before_bold_and_no_other_family_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("NotoSansCJK-Bold.ttc", "NotoSansCJK-Regular.ttc", "Some-Bold.ttf", "Some-Italic.ttf", "Only-Bold.ttf")
    found = {font_files._squash(Path(name).stem): tmp_path / name for name in names}
    monkeypatch.setattr(font_files, "installed_fonts", lambda: found)
    assert find_face("Noto Sans CJK").path == tmp_path / "NotoSansCJK-Regular.ttc"
    with pytest.raises(UsageError, match="Noto Sans"):
        find_face("Noto Sans")  # another family: this is how all Chinese became bold
    assert find_face("Only").path == tmp_path / "Only-Bold.ttf"
    assert FontFile(tmp_path / "Some.ttc", 2).label == "Some:2"


def test_the_map_of_a_font_says_what_it_has() -> None:
    codes = face_codes(find_face("DejaVu Sans"))
    assert codes is not None and {0x41, 0x5D0, 0x25A1} <= codes and 0x4E2D not in codes
    built_in = face_codes(find_face(BUILT_IN))
    assert built_in is not None and 0x41 in built_in and 0x5D0 not in built_in
    assert code_points(b"") is None and code_points(b"ttcf" + bytes(40)) is None
    assert code_points(find_face("DejaVu Sans").path.read_bytes()[:600]) is None


def test_the_map_agrees_with_what_is_drawn() -> None:
    """Against the ink: a character the map lacks is drawn like one that no font has."""
    face = open_face(find_face("DejaVu Sans"), 20.0)
    codes = face_codes(find_face("DejaVu Sans"))
    for character in "Aé中अשΩ\u0e01\u1000ﷺ😀":
        assert fonts._inked(face, character) == (ord(character) in codes), character


@pytest.mark.parametrize("form", [4, 12])
def test_both_forms_of_the_map_are_read(form: int) -> None:
    if form == 12:
        table = struct.pack(">HHIII", 12, 0, 40, 0, 2) + struct.pack(">IIIIII", 65, 67, 5, 0x4E2D, 0x4E2D, 9)
    else:
        segments = [(65, 67, -60, 0), (0x4E2D, 0x4E2D, 9 - 0x4E2D, 0), (0xFFFF, 0xFFFF, 1, 0)]
        columns = list(zip(*segments, strict=True))
        words = [*columns[1], 0, *columns[0], *(delta & 0xFFFF for delta in columns[2]), *columns[3]]
        table = struct.pack(">HHHHHHH", 4, 0, 0, 6, 0, 0, 0) + struct.pack(f">{len(words)}H", *words)
    cmap = struct.pack(">HHHHI", 0, 1, 3, 10 if form == 12 else 1, 12) + table
    font = struct.pack(">IHHHH", 0x10000, 1, 0, 0, 0) + struct.pack(">4sIII", b"cmap", 0, 28, len(cmap)) + cmap
    assert code_points(font) == {65, 66, 67, 0x4E2D}


def test_without_a_shaping_library_nothing_is_drawn_unshaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts.features, "check", lambda name: False)
    with pytest.raises(EnvironmentProblem, match="libfribidi0"):
        TextFont("DejaVu Sans", 16).word(HEBREW)


def test_every_recommended_script_has_its_face_in_the_recommended_packages() -> None:
    font = TextFont("DejaVu Sans", 16)
    scripts = font_set().scripts
    lacking = {name for name, script in scripts.items() if font.lacking(script.sample)}
    if "notosansdevanagariregular" in font_files.installed_fonts():
        assert not {name for name in lacking if scripts[name].package == "fonts-noto-core"}
    assert not {name for name in lacking if scripts[name].package == "fonts-dejavu-core"}
    page = io.BytesIO()
    next(iter(render_pages(" ".join(script.sample for script in scripts.values()), WIDE, font))).image().save(
        page, "PNG"
    )
    assert page.getvalue()
