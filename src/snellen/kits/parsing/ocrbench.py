"""OCRBench v2's own rules for parsing (Yuliang-Liu/MultimodalOCR 794c36d): pages, tables, formulas, full-page text."""

from __future__ import annotations

import os
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from ...core.errors import EnvironmentProblem, MissingExtra
from .teds import Node, TableTooLarge, postorder, teds, tree_distance

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


_CHINESE = re.compile("[\u4e00-\u9fa5]")
_CLEANED = [
    (re.compile(pattern), new)
    for pattern, new in (
        (r"<bos>|<eos>|<pad>|<unk>", ""),
        (r"\s##(\S)", r"\1"),
        (r"\\\s", r"\\"),
        (r"\s\*\s\*\s", "**"),
        (r"{\s", "{"),
        (r"\s}", "}"),
        (r"\s}", "}"),
        (r"\\begin\s", r"\\begin"),
        (r"\\end\s", r"\\end"),
        (r"\\end{table}", r"\\end{table} \n\n"),
    )
]


def score_document(reply: str, gold: str) -> float:
    """Return the similarity of two trees of lines under headings; whatever words the lines hold."""
    trees = [postorder(_line_tree(text)) for text in (reply, gold)]
    blank = [np.array([not node.label.split() for node in nodes]) for nodes, _ in trees]
    renaming = (blank[0][:, None] | blank[1][None, :]).astype(float)
    most = max(len(nodes) for nodes, _ in trees)
    return 1 - tree_distance(renaming, trees[0][1], trees[1][1]) / most


def _line_tree(text: str) -> Node:
    title = Node("TITLE")
    root = Node("ROOT", [title])
    first = {"ROOT": root, "TITLE": title}
    heading = ""
    for line in map(_clean, text.split("\n")):
        if line.startswith("#"):
            heading = line.replace("#", "")
            node = Node(heading)
            root.children.append(node)
        else:
            node = Node(line)
            (first[heading] if heading else title).children.append(node)
        first = _first_nodes(root) if node.label in first else first | {node.label: node}
    return root


def _first_nodes(root: Node) -> dict[str, Node]:
    """Return the first node of each label, parents before children: the one that a line is put under."""
    found: dict[str, Node] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        found.setdefault(node.label, node)
        waiting.extend(reversed(node.children))
    return found


def _clean(line: str) -> str:
    for pattern, new in _CLEANED:
        line = pattern.sub(new, line)
    return line.replace("\n", " ").replace("*", " ").replace("_", " ")


def score_html_table(reply: str, gold: str) -> float:
    """Return TEDS of the first HTML table; 0 where there is none, or a span is not a number."""
    flat = reply.replace("\n", "")
    found = re.search("<body.*", flat) or re.search("<table.*", flat)
    if found is None:
        return 0.0
    try:
        return teds(_wrapped(found[0]), _wrapped(gold)).teds
    except TableTooLarge:
        raise
    except ValueError:
        return 0.0


def _wrapped(table: str) -> str:
    table = table.replace("\n", "")
    opened, closed = "<table" in table, "</table>" in table
    table = ("" if opened else "<table>") + table + ("" if closed else "</table>")
    table = table if "<body>" in table else f"<body>{table}</body>"
    return table if "<html>" in table else f"<html>{table}</html>"


def score_markdown_table(reply: str, gold: str) -> float:
    """Return TEDS of two Markdown tables; the second line is never read."""
    return teds(_markdown_as_html(reply), _markdown_as_html(gold)).teds


def _markdown_as_html(table: str) -> str:
    # str.strip takes a set of characters: letters of the word `markdown` go from both ends, as in the original
    lines = table.strip("```markdown").strip("```").strip().split("\n")  # noqa: B005,PLE1310
    rows = []
    for line in [lines[0], *lines[2:]]:
        cells = [cell.strip() if set(cell) != {" "} else " " for cell in line.strip().split("|")[1:-1]]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<html><body><table>{''.join(rows)}</table></body></html>".replace("\n", "")


def score_formula(reply: str, gold: str, chinese: bool = False) -> float:
    """Return 1 where the gold formula without blanks stands in the reply."""
    if chinese:
        reply, gold = (re.sub(r"\\text\{([^{}]*)\}", r"\1", text) for text in (reply, gold))
    bare = [text.strip().replace("\n", " ").replace(" ", "") for text in (reply, gold)]
    return float(bare[1] in bare[0])


class PageScore(NamedTuple):
    """The four parts of a full page's score; one that is undefined counts 0."""

    bleu: float
    meteor: float
    f_measure: float | None
    precision: float | None
    recall: float | None
    edit_dist: float

    @property
    def value(self) -> float:
        """Return the mean of BLEU, METEOR, F and 1 - edit distance."""
        return (self.bleu + self.meteor + (self.f_measure or 0.0) + 1 - self.edit_dist) / 4


def score_page(reply: str, gold: str) -> PageScore:
    """Return the parts of a full page's score. Raises EnvironmentProblem where nltk, jieba or WordNet is missing."""
    bleu, meteor_score, scores = _nltk()
    words = _chinese_words if _CHINESE.search(gold) or _CHINESE.search(reply) else str.split
    wanted, found = words(gold), words(reply)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = float(bleu([wanted], found))
    sets = set(wanted), set(found)
    return PageScore(
        value,
        float(meteor_score([wanted], found, wordnet=find_wordnet())),
        scores.f_measure(*sets),
        scores.precision(*sets),
        scores.recall(*sets),
        Levenshtein.distance(reply, gold) / max(len(reply), len(gold)),
    )


def _nltk() -> tuple[Any, Any, Any]:
    try:
        from nltk.metrics import scores
        from nltk.translate.bleu_score import sentence_bleu
        from nltk.translate.meteor_score import meteor_score
    except ImportError as error:
        raise MissingExtra("parse-ocrbench", "the full-page rule of OCRBench v2") from error
    return sentence_bleu, meteor_score, scores


def _chinese_words(text: str) -> list[str]:
    try:
        import jieba
    except ImportError as error:
        raise MissingExtra("parse-ocrbench", "words of Chinese in OCRBench v2") from error
    jieba.setLogLevel(60)
    return list(jieba.lcut(text))
