"""A reply in Markdown and LaTeX to the same reply as a reader would see it; a hostile one stays text.

markdown-it and latex2mathml only parse: what they understood is written again, element by element, through
`core.markup` and from short lists of names. Links and pictures of a reply are told, not made.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from html import unescape
from importlib.resources import files
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from ...core.markup import Child, Html, join, shorten, tag
from ...core.text import plural
from ...core.types import Score, TrialKey
from ...extract.choice import RULE_NAMES, extract_choice, why
from ...extract.extraction import RULE_SET, Extraction
from ...extract.option_set import derive_marks
from ...scoring.tables.table import SampleFacts, TrialColumns, code_of, lower_is_better
from ..pages.gallery import Shown
from ..pages.parts import row_outcome
from .run_library import OpenRun
from .shell import link
from .walk import Walk

MOST_STEPS = 60


def group_steps(run: OpenRun, columns: TrialColumns, key: TrialKey, walk: Walk) -> Iterator[Child]:
    """Yield the samples of the same group in the order of the plan, in this variant and repeat; none for a lone one."""
    code = code_of(columns.samples, key.sample)
    group = columns.facts[code].group if code >= 0 else None
    if group is None:
        return
    together = columns.cluster_of_sample == columns.cluster_of_sample[code]
    here = columns.rows_with("variant", key.variant) & (columns.repeat == key.repeat) & together[columns.sample]
    rows = np.flatnonzero(here).tolist()
    if len(rows) < 2:
        return
    steps = [_step(run, columns, row, key, walk) for row in rows[:MOST_STEPS]]
    more = f", the first {MOST_STEPS} shown" if len(rows) > MOST_STEPS else ""
    label = f"{plural(len(rows), 'sample')} of {group}{more}"
    yield tag("nav", tag("p", label, class_="muted small"), tag("ol", *steps), class_="steps", aria_label="Steps")


def _step(run: OpenRun, columns: TrialColumns, row: int, key: TrialKey, walk: Walk) -> Html:
    other, sample = columns.key(row), columns.facts[int(columns.sample[row])]
    outcome = row_outcome(columns, row)
    current = "step" if other == key else None
    name = link(_name(sample), walk.trial(run, other), aria_current=current, title=shorten(sample.question, 200))
    return tag("li", outcome, " ", name)


def _name(sample: SampleFacts) -> str:
    """Return which step a sample is: its role and number in a chain, its round in a dialogue, else its id."""
    role, step, turn = (sample.tags.get(name) for name in ("role", "step", "round"))
    told = " ".join(str(part) for part in (role, step) if part is not None)
    return told or (f"round {turn}" if turn is not None else sample.id)


LIKELIHOOD = "likelihood"


class Explained(NamedTuple):
    """Why a trial was read as it was; empty where its scorer reads no options."""

    sentence: str = ""
    span: Sequence[int] | None = None


def explain_score(shown: Shown) -> Explained:
    """Return the words for a trial's first score: the reader's own for a reply, the values for likelihoods."""
    if not shown.scores:
        return Explained()
    score = shown.scores[0]
    if shown.prediction.loglikelihoods is not None:
        return Explained(_values_in_words(score))
    if shown.prediction.text is None or score.rule is None:
        return Explained("", shown.span)
    found = _read_again(shown, score) or _as_stored(shown, score)
    if found is None:
        return Explained(_metric_in_words(score), shown.span or _place_of(shown, score))
    return Explained(why(found, shown.prediction.text), found.span or shown.span)


@cache
def _sentences() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads((files("snellen") / "catalog" / "reading" / "metrics.toml").read_text("utf-8"))


def _metric_in_words(score: Score) -> str:
    """Return what the score of a text, a number or fields means; nothing where no sentence fits what is stored."""
    told = _sentences().get(score.metric, {}).get(score.rule or "", {})
    if score.value is None or not told:
        return ""
    best = score.value <= 0.0 if lower_is_better(score.metric) else score.value >= 1.0
    named = {"answer": shorten(score.answer or "", 60), "value": score.value, **score.detail}
    try:
        return told["right" if best else "wrong"].format_map(named)
    except (KeyError, ValueError):  # scored by another version, which kept other details
        return ""


def _place_of(shown: Shown, score: Score) -> tuple[int, int] | None:
    """Return where in the reply the answer stands, if it stands there once: then it is what decided."""
    text, answer = (shown.prediction.text or "").lower(), (score.answer or "").lower()
    if not answer or answer == text.strip() or len(text) != len(shown.prediction.text or "") or text.count(answer) != 1:
        return None
    start = text.index(answer)
    return start, start + len(answer)


def _read_again(shown: Shown, score: Score) -> Extraction | None:
    """Return the reading whole, its place too where no option was read; None if other rules read it than today's."""
    options = shown.request.shown or shown.sample.options
    if score.detail.get("rules") != RULE_SET or not options:
        return None
    marks = shown.request.marks or derive_marks(len(options))
    offered = dict(zip(marks, options, strict=True))
    found = extract_choice(shown.prediction.text or "", offered, finish=shown.prediction.finish)
    same = found.rule == score.rule and (None if found.letter is None else offered[found.letter]) == score.answer
    return found if same else None


def _as_stored(shown: Shown, score: Score) -> Extraction | None:
    """Return the reading as far as the score keeps it, where a rule of ours or of a profile read it."""
    options = shown.request.shown or shown.sample.options
    if "profile" not in score.detail and (score.rule not in RULE_NAMES or not options):
        return None
    named = dict(zip(shown.request.shown, shown.request.marks, strict=False))
    letter = None if score.answer is None else named.get(score.answer, score.answer)
    start, end = shown.span if isinstance(shown.span, list | tuple) and len(shown.span) == 2 else (0, 0)
    return Extraction(letter, str(score.rule), None if letter else score.reason, (start, end) if end > start else None)


def _values_in_words(score: Score) -> str:
    values = sorted(score.detail.get("values") or (), reverse=True)
    if score.detail.get("ties", 1) > 1:
        tied = f"{score.detail['ties']} options are equally likely ({values[0]:.4f})"
        if score.answer is None:
            return f"{tied}, right and wrong ones: none was chosen."
        return f"{tied}; the one that stands first in the sample is taken."
    if score.answer is None or len(values) < 2:
        return "No option has a likelihood above zero, so none was chosen." if score.answer is None else ""
    _, _, reduction = (score.rule or LIKELIHOOD).partition(":")
    return (
        f"The likeliest option is taken: {values[0]:.4f} against {values[1]:.4f} of the next (by {reduction or 'sum'})."
    )


MOST = 20_000
"""Characters of a reply that is rendered; a longer one is shown as it came."""
MOST_TOKENS = 10_000
MOST_FORMULA = 2_000
MOST_FORMULAS = 200
DEEPEST = 60
"""Elements inside one another in a formula."""
BEGIN, END = "\ue000", "\ue001"
"""Stand around the part that decided the answer while Markdown is parsed."""
_BARE = str.maketrans({BEGIN: "\ufffd", END: "\ufffd"})
_UNMARKED = str.maketrans({BEGIN: None, END: None})
DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
PLAIN = {"root", "paragraph", "inline", "text", "softbreak"}
"""What a reply without any markup consists of."""
SAME = {"strong": "strong", "em": "em", "s": "s", "blockquote": "blockquote", "list_item": "li", "bullet_list": "ul"}
SAME |= {name: name for name in ("table", "thead", "tbody", "tr")}
"""Nodes that are an element with what is in them, and no more."""


def rendered_reply(text: str, span: Sequence[int] | None = None) -> Html | None:
    """Return a reply as Markdown and LaTeX mean it, what decided the answer marked; None where it has no markup."""
    if len(text) > MOST:
        return None
    plain = text.translate(_BARE)
    tokens = _parser().parse(plain)
    if len(tokens) > MOST_TOKENS:  # a table of many empty cells is short to write
        return None
    tree = SyntaxTreeNode(tokens)
    if all(node.type in PLAIN for node in tree.walk()):
        return None
    return tag("div", *_Writer().inside(_marked(plain, span) or tree), class_="reply tall rendered", tabindex=0)


def _marked(text: str, span: Sequence[int] | None) -> SyntaxTreeNode | None:
    """Return the reply with signs around what decided the answer; None where they would change its meaning."""
    if not span or len(span) != 2 or not 0 <= span[0] < span[1] <= len(text):
        return None
    start, end = span
    inner = text[start:end]
    start, end = start + len(inner) - len(inner.lstrip(" \n#>*-+")), end - len(inner) + len(inner.rstrip())
    if start >= end:
        return None
    signed = _parser().parse(f"{text[:start]}{BEGIN}{text[start:end]}{END}{text[end:]}")
    same = _shape(signed) == _shape(_parser().parse(text))
    return SyntaxTreeNode(signed) if same else None


def _shape(tokens: Sequence[Token]) -> list[Any]:
    """Return what was understood, whatever signs stand in its texts."""
    return [(one.type, one.level, one.content.translate(_UNMARKED), _shape(one.children or ())) for one in tokens]


@cache
def _parser() -> MarkdownIt:
    """Return CommonMark with tables, line breaks as they were written, and formulas; HTML is text."""
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "formula", _inline_formula)
    parser.block.ruler.before("fence", "formula", _block_formula, {"alt": ["paragraph", "blockquote", "list"]})
    return parser


def _inline_formula(state: StateInline, silent: bool) -> bool:
    """Take a formula inside a line; a dollar before a number, as in prices, begins none."""
    source, start = state.src, state.pos
    for opening, closing in DELIMITERS if source[start] in "$\\" else ():
        if source.startswith(opening, start):
            first = start + len(opening)
            end = source.find(closing, first, first + MOST_FORMULA)
            inner = source[first:end] if end > first else ""
            if not inner.strip() or (opening == "$" and not _is_formula(source, start, end)):
                continue
            if not silent:
                state.push("formula", "", 0).content = inner
            state.pos = end + len(closing)
            return True
    return False


def _is_formula(source: str, start: int, end: int) -> bool:
    """Tell whether single dollars stand close around their text, and are no prices."""
    after = source[end + 1 : end + 2]
    close = not source[start + 1].isspace() and not source[end - 1].isspace() and source[end - 1] != "\\"
    return close and not after.isdigit() and not source[max(0, start - 1) : start].isalnum()


def _block_formula(state: StateBlock, line: int, last: int, silent: bool) -> bool:
    """Take a formula that begins a line and ends one: its lines are no lists and no headings."""
    first = state.bMarks[line] + state.tShift[line]
    closing = {"$$": "$$", "\\[": "\\]"}.get(state.src[first : first + 2])
    if closing is None:
        return False
    end = state.src.find(closing, first + 2, first + 2 + MOST_FORMULA)
    close = next((n for n in range(line, last) if state.bMarks[n] <= end < state.eMarks[n]), None) if end > 0 else None
    if (
        close is None
        or state.src[end + 2 : state.eMarks[close]].strip(" .,;")
        or not state.src[first + 2 : end].strip()
    ):
        return False
    if not silent:
        token = state.push("formula_block", "", 0)
        token.block, token.content = True, state.src[first + 2 : end]
        state.line = close + 1
    return True


class _Writer:
    """Writes what was understood, and knows while it goes whether the deciding part has begun."""

    def __init__(self) -> None:
        self._marking = False
        self._formulas = 0

    def inside(self, node: SyntaxTreeNode) -> Iterator[Child]:
        """Yield what is in a node, in order."""
        for child in node.children:
            yield self._written(child)

    def _written(self, node: SyntaxTreeNode) -> Child:
        if node.type in SAME:
            return tag(SAME[node.type], *self.inside(node))
        writer = getattr(self, f"_{node.type}", None)
        return writer(node) if writer is not None else [*self._pieces(node), *self.inside(node)]

    def _paragraph(self, node: SyntaxTreeNode) -> Child:
        inner = list(self.inside(node))
        return inner if node.hidden else tag("p", inner)

    def _inline(self, node: SyntaxTreeNode) -> Child:
        return list(self.inside(node))

    def _heading(self, node: SyntaxTreeNode) -> Child:
        """Return a line that looks like a heading: the page has an outline of its own."""
        return tag("p", *self.inside(node), class_=f"heading {node.tag}")

    def _ordered_list(self, node: SyntaxTreeNode) -> Child:
        return tag("ol", *self.inside(node), start=str(node.attrs.get("start", "")) or None)

    def _th(self, node: SyntaxTreeNode) -> Child:
        return tag("th", *self.inside(node), scope="col")

    def _td(self, node: SyntaxTreeNode) -> Child:
        aligned = "right" in str(node.attrs.get("style", ""))
        return tag("td", *self.inside(node), class_="n" if aligned else None)

    def _hr(self, _: SyntaxTreeNode) -> Child:
        return tag("hr")

    def _softbreak(self, _: SyntaxTreeNode) -> Child:
        return tag("br")

    _hardbreak = _softbreak

    def _link(self, node: SyntaxTreeNode) -> Child:
        """Return the words of a link and where it would lead: nobody is sent anywhere by a reply."""
        words, to = list(self.inside(node)), str(node.attrs.get("href", ""))
        return words if join(words) == join((to,)) else (words, tag("span", f" ({shorten(to, 200)})", class_="muted"))

    def _image(self, node: SyntaxTreeNode) -> Child:
        to = shorten(str(node.attrs.get("src", "")), 200)
        return ("[picture: ", *self._pieces(node), " ", tag("span", to, class_="muted"), "]")

    def _code_inline(self, node: SyntaxTreeNode) -> Child:
        return tag("code", *self._pieces(node))

    def _fence(self, node: SyntaxTreeNode) -> Child:
        return tag("pre", *self._pieces(node), class_="code")

    _code_block = _fence

    def _formula(self, node: SyntaxTreeNode, *, block: bool = False) -> Child:
        latex = node.content.translate(_UNMARKED)
        marked = self._marking or BEGIN in node.content
        list(self._pieces(node))  # the signs in it count
        self._formulas += 1
        drawn = formula(latex, block=block) if self._formulas <= MOST_FORMULAS else None
        shown = drawn or tag("code", latex.strip())
        shown = tag("mark", shown, title="this decided the answer") if marked else shown
        return tag("div", shown, class_="formula") if block else shown

    def _formula_block(self, node: SyntaxTreeNode) -> Child:
        return self._formula(node, block=True)

    def _pieces(self, node: SyntaxTreeNode) -> Iterator[Child]:
        """Yield the text of a node, the deciding part of it marked."""
        for piece in re.split(f"([{BEGIN}{END}])", node.content):
            if piece in (BEGIN, END):
                self._marking = piece == BEGIN
            elif piece:
                yield tag("mark", piece, title="this decided the answer") if self._marking else piece


ELEMENTS = frozenset(
    {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup"}
    | {"munder", "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose"}
)
ATTRIBUTES = frozenset(
    {"display", "stretchy", "fence", "form", "accent", "accentunder", "linethickness", "displaystyle", "scriptlevel"}
    | {"width", "height", "depth", "lspace", "rspace", "minsize", "maxsize", "columnalign", "notation", "movablelimits"}
)
"""What a formula may hold: nothing that loads, leads anywhere, or styles."""
_VALUE = re.compile(r"[\w.+ %-]{1,30}")
_ALIGNED = re.compile(r"\\(begin|end)\{(?:aligned|gathered|split|eqnarray|gather|multline)\*?\}")


def formula(latex: str, *, block: bool = False) -> Html | None:
    """Return a formula as MathML; None where it is not understood: then it is shown as it came."""
    known = _ALIGNED.sub(r"\\\1{align*}", latex[:MOST_FORMULA]).strip()
    try:
        made = convert_to_element(known, display="block" if block else "inline")
        return _element(made)
    except Exception:  # noqa: BLE001 - the parser of another project on hostile text: it raises anything
        return None


def _element(one: Element, depth: int = 0) -> Html:
    """Write an element again, and all in it; one of another name is its content."""
    if depth > DEEPEST:
        raise ValueError("a formula inside formulas inside formulas")
    inside: list[Child] = [unescape(one.text or "")]
    for child in one:
        inside += [_element(child, depth + 1), unescape(child.tail or "")]
    if one.tag not in ELEMENTS:
        return tag("mrow", *inside)
    kept = {name: value for name, value in one.attrib.items() if name in ATTRIBUTES and _VALUE.fullmatch(value)}
    return tag(one.tag, *inside, **kept)
