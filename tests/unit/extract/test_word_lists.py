"""Word lists: every group does what the example beside it shows, every group is used, stems cover what they gate."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import snellen.extract
from snellen.extract import cue, mentions, phrases, structured, whole_reply, without_cue
from snellen.extract.choice import extract_choice
from snellen.extract.extraction import Extraction
from snellen.extract.option_set import Reply, derive_marks, mark_patterns, option_set
from snellen.extract.option_text import NONE_SAID, OptionTexts, plain
from snellen.extract.word_lists import (
    After,
    Before,
    Gated,
    LazyPattern,
    Stems,
    ascii_words,
    assemble,
    places,
    read_lists,
    word_set,
    words,
)

COLOURS = ["red", "blue", "green", "yellow"]
FILES = sorted(
    Path(entry.name).stem
    for entry in (files("snellen") / "catalog" / "words").iterdir()
    if entry.name.endswith(".toml")
)
GROUPS: list[tuple[str, dict[str, Any]]] = [
    (f"{file}.{group}", table) for file in FILES for group, table in read_lists(file).items()
]
SOURCES = "\n".join(path.read_text("utf-8") for path in Path(snellen.extract.__path__[0]).rglob("*.py"))


def test_every_example_holds_a_word_of_its_group_and_is_read_as_it_says() -> None:
    assert len(GROUPS) > 100
    without = [group for group, table in GROUPS if not re.search(assemble(f"(?:<{group}>)"), table["example"].lower())]
    assert not without
    read = {group: extract_choice(table["example"], table.get("options", COLOURS)) for group, table in GROUPS}
    wrong = {
        group: read[group] for group, table in GROUPS if table["reads"] != (read[group].letter or read[group].reason)
    }
    assert not wrong


def test_a_group_is_words_by_language_each_once() -> None:
    by_language = {group: table.keys() - {"example", "options", "reads"} for group, table in GROUPS}
    assert all(by_language.values())
    assert all(re.fullmatch("[a-z]{2}", language) for languages in by_language.values() for language in languages)
    listed = [(group, language, table[language]) for group, table in GROUPS for language in by_language[group]]
    twice = [(group, language) for group, language, found in listed if len(set(found)) < len(found)]
    capital = [word for _, _, found in listed for word in found if word != word.lower() and not {"\\", "["} & set(word)]
    assert not twice and not capital


def test_every_group_is_used() -> None:
    assert [group for group, _ in GROUPS if not re.search(rf"<{group}>|\"{group}\"", SOURCES)] == [
        "cues.answer",
        "cues.option",
        "cues.verb",
    ], "the kinds of cues are looked up by name; all others stand in a pattern"


def patterns() -> Iterator[tuple[str, LazyPattern | Gated]]:
    for module in pkgutil.walk_packages(snellen.extract.__path__, "snellen.extract."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, LazyPattern | Gated):
                yield f"{module.name}.{name}", value


def test_every_pattern_compiles() -> None:
    compiled = [(value.phrase if isinstance(value, Gated) else value).compile() for _, value in patterns()]
    assert len(compiled) > 60
    assert not any("<" in pattern.pattern and re.search(r"<\w+\.\w+>", pattern.pattern) for pattern in compiled)


def found(pattern: LazyPattern | Gated, text: str) -> bool:
    """Try a pattern as rules do: up to the end of a text, from its beginning, or anywhere in it."""
    if isinstance(pattern, Before):
        return pattern.before(text, len(text)) is not None
    return (pattern.after(text, 0) if isinstance(pattern, After) else pattern.search(text)) is not None


def test_every_pattern_finds_its_example_and_passes_over_the_other() -> None:
    examples = {
        name: (pattern, pattern.phrase if isinstance(pattern, Gated) else pattern) for name, pattern in patterns()
    }
    without = [name for name, (_, shown) in examples.items() if not shown.finds]
    assert not without
    missed = [name for name, (pattern, shown) in examples.items() if not found(pattern, shown.finds)]
    taken = [
        name for name, (pattern, shown) in examples.items() if shown.passes is not None and found(pattern, shown.passes)
    ]
    assert not missed
    assert not taken


GATED_WORDS = [
    *[(phrases.CORRECTION, f"the answer is a. {word} b") for word in words("corrections.turn")],
    *[(phrases.CORRECTION, f"a。{word}b") for word in words("corrections.turn_glued")],
    *[(phrases.REFUSAL, f"{word} determine") for word in words("refusals.unable")],
    *[(phrases.REFUSAL, f"cannot {word}") for word in words("refusals.telling")],
    *[(phrases.REFUSAL, word) for word in (*words("refusals.sorry"), *words("refusals.declines"))],
    *[(phrases.REFUSAL, f"{word} information") for word in words("refusals.lack")],
    *[(phrases.DOUBT_CLAUSE, word) for word in words("doubt.reported")],
    *[(NONE_SAID, word) for word in words("options.none_said")],
    *[(phrases.DOUBT, f"{word} ") for word in words("doubt.condition")],
    *[(phrases.DOUBT, f"{word} ") for word in words("doubt.wrong")],
    *[(phrases.DOUBT, f"{word} ") for word in (*words("doubt.denied"), *words("doubt.earlier"))],
]


def test_stems_cover_every_plain_word_they_gate() -> None:
    plain_words = [(gated, text) for gated, text in GATED_WORDS if not set("[(\\?") & set(text)]
    assert len(plain_words) > 100
    missed = [text for gated, text in plain_words if not (gated.phrase.search(text) and gated.search(text))]
    assert not missed


def test_a_gate_finds_what_its_pattern_finds() -> None:
    text = "the answer is a. wait, it is b." + " x" * 60 + " hold on: c"
    assert [match.group() for match in phrases.CORRECTION.matches(text)] == ["wait", "hold on"]
    later = phrases.CORRECTION.search(text, 30)
    assert later is not None
    assert text[later.start() :] == "hold on: c"
    assert phrases.CORRECTION.search(text, 30, 60) is None
    assert places("ab ab ab", Stems(("ab", "b", "x")), 0, 8, 2) == [(3, "ab"), (4, "b"), (6, "ab"), (7, "b")]


VOCABULARIES = [
    *(words(group) for group in ("doubt.stems", "corrections.stems", "refusals.stems", "options.none_said_stems")),
    *(ascii_words(group) for group in ("doubt.reported_stems", "refusals.stems", "conclusions.undecided_stems")),
    tuple(phrases.cue_kinds()),
]


@given(st.data(), st.sampled_from(VOCABULARIES))
def test_gathered_stems_are_found_as_if_each_were_looked_for(data: st.DataObject, stems: tuple[str, ...]) -> None:
    pieces = st.one_of(st.sampled_from(stems), st.sampled_from(stems).map(lambda stem: stem[1:]), st.text(max_size=9))
    text = "".join(data.draw(st.lists(pieces, max_size=30)))
    assert sorted(Stems(stems).occurring(text)) == sorted(stem for stem in stems if stem in text)


def test_gathering_spares_most_tests_of_a_short_text_and_loses_no_stem() -> None:
    gathered = Stems(phrases.cue_kinds())
    by_part = gathered._by_part
    assert len(by_part) * 3 < len(phrases.cue_kinds())
    assert sorted(stem for held in by_part.values() for stem in held) == sorted(phrases.cue_kinds())
    assert all(part in stem for part, held in by_part.items() for stem in held)


def test_words_come_in_the_order_of_the_file() -> None:
    assert words("cues.text_join") == ("or", "and", "/", "oder", "ou", "o", "y", "或", "和")
    assert ascii_words("cues.text_join") == ("or", "and", "/", "oder", "ou", "o", "y")
    assert "ou" in word_set("cues.text_join")
    assert extract_choice("Die Antwort ist red oder blue.", COLOURS).reason == "ambiguous"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (phrases.DENIED_BEFORE, "it can be anything but "),
        (phrases.AFFIRMED_BEFORE, "hence it is most likely the option "),
        (phrases.TENTATIVE_BEFORE, "it could be "),
        (phrases.SPARED_BEFORE, "all other options except "),
        (phrases.DENIED_AFTER, ") is clearly ruled"),
        (phrases.AFFIRMED_AFTER, " is not wrong"),
        (phrases.LINK, " to this question is clearly: "),
    ],
)
def test_a_side_of_a_mention(pattern: LazyPattern, text: str) -> None:
    match = pattern.match(text) or pattern.search(text)
    assert match is not None
    assert match.end() == len(text)


def test_importing_the_room_compiles_and_reads_no_words() -> None:
    program = (
        "import re, sys\nimport snellen.extract.choice\nfrom snellen.extract import word_lists, phrases\n"
        "assert word_lists.read_lists.cache_info().currsize == 0\n"
        "first = phrases.DENIED_AFTER.match\n"
        "assert phrases.DENIED_AFTER.match(' is wrong') and phrases.DENIED_AFTER.match is not first\n"
        "assert word_lists.read_lists.cache_info().currsize == 1\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_pieces_alone() -> None:
    options = OptionTexts(["The red one", "4", "none of these"])
    assert plain(" The  Red one. ") == "red one"
    assert (options.none, options.index_of("four")) == (2, 1)
    assert derive_marks(28)[-2:] == ("AA", "AB")
    assert mark_patterns(("A", "B")) is mark_patterns(("A", "B"))
    assert mentions.speaks_of_options("let me consider")
    assert not mentions.speaks_of_options("it is red")
    assert structured.answer_field('x <answer>B</answer> {"a": 1}') == (10, 11)
    assert cue.Cue(0, 6, "answer", "answer").kind == "answer"


def test_the_rules_alone() -> None:
    options, reply = option_set(COLOURS), Reply("the answer is a. wait, it's C.", offset=100)
    first = cue.cue(options, Reply("the answer is a."))
    assert first == Extraction("A", "cue", None, (14, 15))
    verdict = cue.corrected(options, reply, options.pick_at(reply, 0, "cue", 14, 15))
    assert verdict == Extraction("C", "self_correction", None, (128, 129)), "spans count from the reply's beginning"
    assert without_cue.affirmed(options, Reply("Hence B.")) == Extraction("B", "affirmed", None, (6, 7))
    assert whole_reply.whole(options, Reply("**B**")) == Extraction("B", "whole", None, (2, 3))
    assert structured.structured(options, Reply("B")) is None
