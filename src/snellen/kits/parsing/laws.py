"""Eighteen laws that a rule for parsed pages should obey, and what shows that one does not: the smallest page.

A law changes a page or a reply in a way whose effect on the score is known beforehand: none, some, or never upwards.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ...core.errors import EnvironmentProblem
from ...core.types import Form, Sample
from . import ccocr, ocrbench, olmocr
from .blocks import read_gold, read_page
from .drawn import page_blocks
from .page_score import score_page
from .scorers import gold_of, measure_omnidoc
from .states import State, state_of
from .teds import teds

TOLERANCE = 0.001
"""A tenth of a point."""
Values = Mapping[str, float]
"""What a rule says of a reply, by part, 1 the best."""
REFUSALS = ("I'm sorry, but I can't help with reading this image.", "I cannot see any text in the picture.")
UNRELATED = (
    "The committee met on Thursday to discuss funding for the new library wing.\n\nNobody objected to the budget, and "
    "the chair thanked all volunteers for two years of patient work."
)
INVENTED = "Every visitor of the annual festival receives free lemonade, a paper hat and three balloons."


@dataclass(frozen=True)
class TestPage:
    """A page that laws are tried on."""

    __test__ = False
    blocks: tuple[Mapping[str, object], ...]

    @property
    def markdown(self) -> str:
        """Return the gold answer as a perfect reply writes it."""
        return "\n\n".join(map(_written, self.blocks))

    @property
    def sample(self) -> Sample:
        """Return the page as scorers get it."""
        return Sample("page", "laws", Form.PARSE, "", answers=(self.markdown,), meta={"blocks": list(self.blocks)})


def _written(block: Mapping[str, object]) -> str:
    text = str(block["text"])
    if block["category"] == "title":
        return f"# {text}"
    return f"```python\n{text}\n```" if block["category"] == "code_txt" else text


def drawn_pages(count: int, seed: int = 0) -> list[TestPage]:
    """Return drawn pages, with a header, a caption or code on some of them."""
    pages = []
    for number in range(count):
        draw = random.Random(f"laws {seed} {number}")  # noqa: S311
        blocks = [dict(block) for block in page_blocks(draw, draw.randint(1, 5))]
        if number % 3 == 1:
            blocks.insert(1, {"category": "figure_caption", "text": f"Figure {number}. A view of the quay from afar."})
        if number % 4 == 2:
            blocks.append({"category": "code_txt", "text": f"total = {number} + 7\nprint(total)"})
        if number % 5 == 3:
            blocks.insert(0, {"category": "header", "text": "The harbour gazette, weekly edition"})
        pages.append(TestPage(tuple({**block, "order": order} for order, block in enumerate(blocks, start=1))))
    return [*FIXED, *pages]


def _page(*blocks: tuple[str, str]) -> TestPage:
    return TestPage(tuple({"category": kind, "text": text, "order": n} for n, (kind, text) in enumerate(blocks, 1)))


_SMALL_TABLE = "<table><tr><td>Boat</td><td>Tons</td></tr><tr><td>Heron</td><td>12</td></tr></table>"
FIXED = (
    _page(("title", "Notice"), ("text_block", "Closed.")),
    _page(("text_block", "The quay is closed today."), ("table", _SMALL_TABLE)),
    _page(("text_block", "The energy is, as ever, known."), ("equation_isolated", "$$E = mc^{2}$$")),
    _page(("text_block", "港口办公室每天清点船只。"), ("text_block", "夜班由两人轮值到四点。")),
    _page(("text_block", "يفتح المرفأ عند الفجر كل يوم."), ("text_block", "تغادر السفن قبل الظهر.")),
    _page(
        ("text_block", "Salt & timber cost < 9 crowns, if light."),
        ("figure_caption", "Figure 4. The east pier."),
        ("text_block", "Lamps are lit at dusk, then counted."),
    ),
)
"""Small pages that examples are taken from first."""
UNDRAWABLE = _page(("text_block", "As stated before,"), ("equation_isolated", r"$$\undefinedcommand{x} + 4$$"))


class Rule(NamedTuple):
    """A rule: what it says of a page's reply, and which of its parts its headline is made of."""

    measure: Callable[[TestPage, str], Values]
    headline: tuple[str, ...]
    about: str


def own_rule(page: TestPage, reply: str) -> Values:
    """Our rule: the page, from 0 to 1; nothing is read from a refusal."""
    found = score_page(gold_of(page.sample), read_page(reply))
    refused = state_of(reply, None) is State.REFUSED and not found.content
    return {"page": 0.0 if refused else found.page / 100}


def _omnidoc(page: TestPage, reply: str) -> Values:
    found = measure_omnidoc(page.sample, reply)
    values = {name: float(value) for name, value in found.items() if not isinstance(value, str)}
    turned = {name.removeprefix("edit_distance_"): 1 - value for name, value in values.items() if "edit_dist" in name}
    parts = {name: turned[name] for name in ("text", "formula", "order") if name in turned}
    return parts | ({"tables": values["table_teds"]} if "table_teds" in values else {})


def _olmocr(page: TestPage, reply: str) -> Values:
    tests = list(_unit_tests(page))
    return {
        kind: sum(olmocr.run_test(test, reply).passed for test in tests if test["type"] == kind) / count
        for kind in dict.fromkeys(str(test["type"]) for test in tests)
        if (count := sum(test["type"] == kind for test in tests))
    }


def _unit_tests(page: TestPage) -> Iterator[Mapping[str, object]]:
    """Yield the unit tests that people would write for a page."""
    texts = [str(block["text"]) for block in page.blocks if block["category"] in ("text_block", "title")]
    parts = [part for text in texts for part in text.split("\n")]
    yield from ({"type": "present", "text": part.removeprefix("- ")} for part in parts)
    dependent = [text.split("\n")[0].removeprefix("- ") for text in texts]
    yield from (
        {"type": "order", "before": first, "after": second} for first, second in pairwise(dependent) if first != second
    )
    for block in page.blocks:
        if block["category"] == "equation_isolated":
            yield {"type": "math", "math": str(block["text"]).strip("$")}
        if block["category"] == "table":
            rows = read_gold([block])[0].rows
            yield {"type": "table", "cell": rows[-1][1].text, "left": rows[-1][0].text}
    yield {"type": "baseline"}


def _ocrbench(page: TestPage, reply: str) -> Values:
    found = {"document": ocrbench.score_document(reply, page.markdown)}
    with suppress(EnvironmentProblem):  # the part is then not audited
        found["full_page"] = ocrbench.score_page(reply, page.markdown).value if reply else 0.0
    return found


def _ccocr(page: TestPage, reply: str) -> Values:
    return {"document": ccocr.score_document(reply, page.markdown), "words": ccocr.score_words(reply, page.markdown)}


def _teds(page: TestPage, reply: str) -> Values:
    tables = [str(block["text"]) for block in page.blocks if block["category"] == "table"]
    if not tables:
        return {}
    found = re.search(r"<table.*</table>", reply, re.S | re.I)
    wrapped = [f"<html><body>{text}</body></html>" for text in (found[0] if found else "", tables[0])]
    return {"teds": teds(*wrapped).teds}


RULES: Mapping[str, Rule] = {
    "snellen": Rule(own_rule, ("page",), "our own rule"),
    "omnidocbench-1.6": Rule(
        _omnidoc, ("text", "formula", "tables"), "OmniDocBench 147cd5a; formulas by edit distance"
    ),
    "olmocr-bench": Rule(_olmocr, ("present", "order", "math", "table", "baseline"), "olmOCR-bench f7cfe4c"),
    "ocrbench-v2": Rule(_ocrbench, ("document", "full_page"), "OCRBench v2 794c36d"),
    "cc-ocr": Rule(_ccocr, ("document", "words"), "CC-OCR"),
    "pubtabnet": Rule(_teds, ("teds",), "TEDS of PubTabNet, first table"),
}


class Broken(NamedTuple):
    """A page on which a rule breaks a law."""

    law: int
    page: TestPage
    reply: str
    why: str

    @property
    def size(self) -> int:
        """Return how long the example is."""
        return len(self.page.markdown) + len(self.reply)


class Verdict(NamedTuple):
    """Whether a rule obeys a law."""

    law: int
    tried: int
    broken: int
    example: Broken | None


Finding = Iterator[tuple[str, str]]
"""Replies that show that a law is broken, each with what was seen."""


def _same(rule: Rule, page: TestPage, reply: str) -> Finding:
    """Yield the reply if it is worth another value than the gold answer."""
    gold, now = rule.measure(page, page.markdown), rule.measure(page, reply)
    for part in gold:
        if abs(gold[part] - now.get(part, 0.0)) > TOLERANCE:
            yield reply, f"{part} {gold[part]:.3f} → {now.get(part, 0.0):.3f}"
            return


def _total(rule: Rule, values: Values) -> float:
    return sum(values[part] for part in rule.headline if part in values)


def _costs(rule: Rule, page: TestPage, reply: str) -> Finding:
    """Yield the reply if the headline is not below that of the gold answer."""
    gold, now = rule.measure(page, page.markdown), rule.measure(page, reply)
    if _total(rule, gold) and _total(rule, now) >= _total(rule, gold) - 1e-9:
        yield reply, f"{_total(rule, gold):.3f} → {_total(rule, now):.3f}: costs nothing"


def _gold_is_perfect(rule: Rule, page: TestPage) -> Finding:
    for part, value in rule.measure(page, page.markdown).items():
        if abs(value - 1) > TOLERANCE:
            yield page.markdown, f"{part} {value:.3f}"


def _empty_is_nothing(rule: Rule, page: TestPage) -> Finding:
    for part, value in rule.measure(page, "").items():
        if abs(value) > TOLERANCE:
            yield "", f"{part} {value:.3f}"


def _newline_is_empty(rule: Rule, page: TestPage) -> Finding:
    empty, now = rule.measure(page, ""), rule.measure(page, "\n")
    for part in empty:
        if abs(empty[part] - now[part]) > TOLERANCE:
            yield "\n", f"{part} {empty[part]:.3f} → {now[part]:.3f}"


def _fence(rule: Rule, page: TestPage) -> Finding:
    yield from _same(rule, page, f"```markdown\n{page.markdown}\n```")


def _line_ends(rule: Rule, page: TestPage) -> Finding:
    yield from _same(rule, page, page.markdown.replace("\n", "\r\n"))


def _trailing_blanks(rule: Rule, page: TestPage) -> Finding:
    yield from _same(rule, page, "\n".join(line + "  " for line in page.markdown.split("\n")))


def _pipes(rule: Rule, page: TestPage) -> Finding:
    if "<table" in page.markdown and "colspan" not in page.markdown and "rowspan" not in page.markdown:
        yield from _same(rule, page, re.sub(r"<table>.*?</table>", lambda found: _as_pipes(found[0]), page.markdown))


def _as_pipes(table: str) -> str:
    rows = [[cell.text for cell in row] for row in read_page(table).blocks[0].rows]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def _looks(rule: Rule, page: TestPage) -> Finding:
    if "<table" not in page.markdown:
        return
    head = page.markdown.replace("<table><tr>", "<table><thead><tr>", 1)
    head = re.sub(r"(<thead><tr>.*?</tr>)", lambda f: f[1].replace("td", "th") + "</thead>", head, count=1)
    for reply in (head, page.markdown.replace("<td>", '<td style="color:red">'), _upper_tags(page.markdown)):
        found = list(_same(rule, page, reply))
        if found:
            yield found[0]
            return


def _upper_tags(text: str) -> str:
    return re.sub(r"</?(?:table|tr|td)", lambda found: found[0].upper(), text)


def _entities(rule: Rule, page: TestPage) -> Finding:
    blocks = [
        {**block, "text": str(block["text"]).replace("&", "&amp;").replace(",", "&#44;").replace("<", "&lt;")}
        if block["category"] == "text_block"
        else block
        for block in page.blocks
    ]
    reply = TestPage(tuple(blocks)).markdown
    if reply != page.markdown:
        yield from _same(rule, page, reply)


def _delimiters(rule: Rule, page: TestPage) -> Finding:
    if "$$" in page.markdown:
        for form in (r"\[{}\]", "$$\n{}\n$$"):
            parts = re.split(r"\$\$(.+?)\$\$", page.markdown)
            reply = "".join(form.replace("{}", part) if place % 2 else part for place, part in enumerate(parts))
            yield from _same(rule, page, reply)


def _deleting(rule: Rule, page: TestPage) -> Finding:
    gold = rule.measure(page, page.markdown)
    for left_out in range(len(page.blocks)):
        reply = TestPage(page.blocks[:left_out] + page.blocks[left_out + 1 :]).markdown
        if _total(rule, rule.measure(page, reply)) > _total(rule, gold) + TOLERANCE:
            yield reply, f"block {left_out + 1} deleted: {_total(rule, gold):.3f} rises"
            return


def _inventing(rule: Rule, page: TestPage) -> Finding:
    yield from _costs(rule, page, f"{page.markdown}\n\n{INVENTED}")


_BESIDE = ("figure_caption", "header", "footer", "page_number", "table_caption", "page_footnote")


def _reversing(rule: Rule, page: TestPage) -> Finding:
    blocks = [block for block in page.blocks if block["category"] not in _BESIDE]
    if len(blocks) > 1:
        yield from _costs(rule, page, TestPage(tuple(reversed(page.blocks))).markdown)


def _moving_captions(rule: Rule, page: TestPage) -> Finding:
    beside = [block for block in page.blocks if block["category"] in _BESIDE]
    if beside:
        rest = [block for block in page.blocks if block["category"] not in _BESIDE]
        yield from _same(rule, page, TestPage((*rest, *beside)).markdown)


def _one_glyph(rule: Rule, page: TestPage) -> Finding:
    for place, block in enumerate(page.blocks):
        for text in _misread(str(block["text"]), str(block["category"])):
            blocks = (*page.blocks[:place], {**block, "text": text}, *page.blocks[place + 1 :])
            found = list(_costs(rule, page, TestPage(blocks).markdown))
            if found:
                yield found[0][0], f"{str(block['text'])[:30]!r} read as {text[:30]!r} costs nothing"
                return


def _misread(text: str, category: str) -> Iterator[str]:
    if category == "equation_isolated":
        yield from (
            new for new in (text.replace("^", "_", 1), text.swapcase().replace("\\FRAC", "\\frac")) if new != text
        )
    else:
        last = max((found.start() for found in re.finditer(r"[a-z0-9](?=[^<>]*(?:<|$))", text)), default=None)
        if last is not None:
            yield text[:last] + ("7" if text[last] != "7" else "1") + text[last + 1 :]


def _unscorable(rule: Rule, page: TestPage) -> Finding:
    bad = UNDRAWABLE
    reply = "As stated before,\n\n$$y = 2$$"
    now = rule.measure(bad, reply)
    gold = rule.measure(bad, bad.markdown)
    parts = [part for part in now if part in ("math", "formula")]
    if any(now[part] >= gold[part] - 1e-9 for part in parts):
        yield reply, "a formula that cannot be drawn is found in a reply that has another"


def _again(rule: Rule, page: TestPage) -> Finding:
    if rule.measure(page, page.markdown) != rule.measure(page, page.markdown):
        yield page.markdown, "another value the second time"


def _refusing(rule: Rule, page: TestPage) -> Finding:
    empty = rule.measure(page, "")
    for reply in (*REFUSALS, UNRELATED):
        now = rule.measure(page, reply)
        for part in now:
            if part != "baseline" and now[part] > empty.get(part, 0.0) + TOLERANCE:
                yield reply, f"{part} {empty.get(part, 0.0):.3f} → {now[part]:.3f}"
                return


LAWS: Sequence[tuple[str, Callable[[Rule, TestPage], Finding]]] = (
    ("the gold answer is perfect", _gold_is_perfect),
    ("an empty reply is 0", _empty_is_nothing),
    ("a reply of one line break is an empty one", _newline_is_empty),
    ("a fence around the whole reply changes nothing", _fence),
    ("Windows line ends change nothing", _line_ends),
    ("blanks at the ends of lines change nothing", _trailing_blanks),
    ("a table of pipes is the table in HTML", _pipes),
    ("th, thead, attributes and upper-case tags change nothing", _looks),
    ("entities are the characters they stand for", _entities),
    ("the delimiters of a formula change nothing", _delimiters),
    ("deleting a block never helps", _deleting),
    ("invented text costs", _inventing),
    ("reversed blocks cost", _reversing),
    ("a caption or header elsewhere costs nothing", _moving_captions),
    ("one wrong glyph costs", _one_glyph),
    ("what cannot be scored is not passed", _unscorable),
    ("the same reply has the same value", _again),
    ("a refusal is no better than an empty reply", _refusing),
)
"""What each law says, and the search for a page that breaks it; numbered from 1."""


def audit(name: str, pages: Sequence[TestPage]) -> list[Verdict]:
    """Try every law on every page; of those that break it the smallest is kept."""
    rule = RULES[name]
    measured = [page for page in pages if rule.measure(page, page.markdown)]
    verdicts = []
    remembered = _remembered(rule)
    for law, (_, search) in enumerate(LAWS, start=1):
        asked = rule if search is _again else remembered
        found = [Broken(law, page, *shown) for page in measured if (shown := next(search(asked, page), None))]
        verdicts.append(Verdict(law, len(measured), len(found), min(found, key=lambda one: one.size, default=None)))
    return verdicts


def _remembered(rule: Rule) -> Rule:
    """Return a rule that measures a reply once: every law begins with the gold answer."""
    known: dict[tuple[int, str], Values] = {}

    def measure(page: TestPage, reply: str) -> Values:
        key = id(page), reply
        if key not in known:
            known[key] = rule.measure(page, reply)
        return known[key]

    return rule._replace(measure=measure)
