"""The dictionary files of WordNet in, the words that mean the same out: all that METEOR asks of it."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ...core.errors import EnvironmentProblem

FOLDERS = ("/usr/share/wordnet", "/usr/local/share/wordnet", "/opt/homebrew/share/wordnet")
"""Where systems keep it; the variable WNSEARCHDIR, WordNet's own, comes first."""
_ENDINGS = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
"""WordNet's rules of detachment (morphy(7WN)), by part of speech."""


class Lemma(NamedTuple):
    """One word of a synset."""

    word: str

    def name(self) -> str:
        """Return the word; several joined by `_`."""
        return self.word


class Synset(NamedTuple):
    """Words that mean the same."""

    words: tuple[str, ...]

    def lemmas(self) -> list[Lemma]:
        """Return its words."""
        return [Lemma(word) for word in self.words]


class WordNet:
    """The four parts of speech of one folder of dictionary files."""

    def __init__(self, folder: Path) -> None:
        self._offsets = {part: _read_index(folder / f"index.{part}") for part in _ENDINGS}
        self._irregular = {part: _read_exceptions(folder / f"{part}.exc") for part in _ENDINGS}
        self._data = {part: (folder / f"data.{part}").read_bytes() for part in _ENDINGS}

    def synsets(self, word: str) -> list[Synset]:
        """Return every meaning of a word, of its base forms too."""
        lower = word.lower()
        return [
            self._synset(part, offset)
            for part in _ENDINGS
            for form in self._forms(lower, part)
            for offset in self._offsets[part][form]
        ]

    def _synset(self, part: str, offset: int) -> Synset:
        data = self._data[part]
        fields = data[offset : data.index(b"\n", offset)].decode().split()
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        return Synset(tuple(re.sub(r"\(.*\)$", "", word) for word in words))

    def _forms(self, word: str, part: str) -> list[str]:
        known = self._offsets[part]
        if word in self._irregular[part]:
            return list(dict.fromkeys(form for form in (word, *self._irregular[part][word]) if form in known))
        shorter = _detach([word], part)
        found = [form for form in dict.fromkeys([word, *shorter]) if form in known]
        while not found and shorter:
            shorter = _detach(shorter, part)
            found = [form for form in dict.fromkeys(shorter) if form in known]
        return found


def _detach(forms: list[str], part: str) -> list[str]:
    return [form[: -len(old)] + new for form in forms for old, new in _ENDINGS[part] if form.endswith(old)]


def _read_index(path: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for line in path.read_text().splitlines():
        if not line.startswith(" "):
            fields = line.split()
            found[fields[0]] = [int(offset) for offset in fields[len(fields) - int(fields[2]) :]]
    return found


def _read_exceptions(path: Path) -> dict[str, list[str]]:
    return {fields[0]: fields[1:] for line in path.read_text().splitlines() if (fields := line.split())}


@cache
def find_wordnet() -> WordNet:
    """Return WordNet where the system has it. Raises EnvironmentProblem with what to install."""
    folders = [os.environ.get("WNSEARCHDIR", ""), *FOLDERS]
    folder = next((Path(folder) for folder in folders if folder and Path(folder, "index.noun").is_file()), None)
    if folder is None:
        raise EnvironmentProblem(
            "METEOR of OCRBench v2 needs the files of WordNet 3.0 and there are none: apt install wordnet-base, "
            "or set WNSEARCHDIR to their folder"
        )
    return WordNet(folder)
