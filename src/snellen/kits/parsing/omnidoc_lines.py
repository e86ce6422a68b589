"""How OmniDocBench 1.6 cuts a formula of several lines into its lines."""

from __future__ import annotations

import re
from typing import NamedTuple

from .omnidoc_text import without_delimiters, without_tags

_ENVIRONMENTS = (
    *("array", "aligned", "align", "align*", "alignedat", "alignedat*", "split", "gather", "gather*", "gathered"),
    *("multline", "multline*", "flalign", "flalign*", "eqnarray", "eqnarray*", "cases"),
)
_OPENING = re.compile(
    r"^\\begin\{(?P<name>" + "|".join(map(re.escape, _ENVIRONMENTS)) + r")\}\s*(?P<extra>(?:\{[^{}]*\}\s*)*)", re.S
)
_ALIGNED = frozenset({"aligned", "align", "align*", "alignedat", "alignedat*"})
_NESTED = re.compile(
    r"\\begin\{(?:array|aligned|align\*?|alignedat\*?|split|gathered?|multline\*?|flalign\*?|eqnarray\*?|cases)\}"
)
_LOGIC = re.compile(
    r"\\(?:Rightarrow|Leftrightarrow|Longrightarrow|Longleftrightarrow|longrightarrow|longleftrightarrow|implies|"
    r"therefore|because|uparrow|downarrow|Updownarrow|forall|exists)\b|单调|否定"
)
_CASE_LEAD = re.compile(
    r"^(?:\(?\d+\)?|\\(?:Rightarrow|Leftrightarrow|Longrightarrow|Longleftrightarrow|implies|therefore|uparrow|"
    r"downarrow|Updownarrow|leftarrow|rightarrow))"
)
_WORDS = re.compile(r"\\(?:text|mathrm|operatorname)\s*\{")
_SPACING_END = re.compile(r"(?:\\qquad|\\quad|\\,|\\;|\\!|\\>|\\:|~)\s*$")
_SPACING = re.compile(r"(?:\\qquad|\\quad|\\,|\\;|\\!|\\>|\\:|~)+")


class Environment(NamedTuple):
    """An environment of several lines that a whole formula consists of."""

    name: str
    columns: str
    body: str
    rows: list[str]
    braced: bool
    trailing: str
    body_start: int
    trailing_end: int


class Line(NamedTuple):
    """One line of a formula: without its tag, and where it stands in the formula as written (-1: unknown)."""

    content: str
    start: int
    end: int


def formula_lines(formula: str) -> list[Line]:
    """Return the lines of a formula that is to be cut, else nothing."""
    found = _environment(formula)
    if found is not None and _is_cut(found):
        return _placed(found.body, found.rows, found.body_start, found.trailing, found.trailing_end)
    bare = without_delimiters(formula).strip()
    if "\\\\" not in bare:
        return []
    return _placed(bare, latex_rows(bare), max(formula.find(bare), 0), "", -1)


def _placed(body: str, rows: list[str], body_start: int, trailing: str, trailing_end: int) -> list[Line]:
    lines: list[Line] = []
    cursor = 0
    for row in rows:
        content = without_tags(row).strip()
        if not content:
            continue
        at = body.find(content, cursor)
        at = cursor if at == -1 else at
        cursor = at + len(content)
        lines.append(Line(content, body_start + at, body_start + cursor - 1))
    if len(lines) <= 1:
        return []
    suffix = without_tags(trailing).strip()
    if suffix:
        lines[-1] = lines[-1]._replace(content=f"{lines[-1].content} {suffix}".strip())
    if trailing_end > 0:
        lines[-1] = lines[-1]._replace(end=trailing_end - 1)
    return lines


def _environment(formula: str) -> Environment | None:
    bare = without_delimiters(formula).strip()
    prefix = re.match(r"^(?:\\left\s*\\\{|\\left\.)\s*", bare)
    core = bare[prefix.end() :].lstrip() if prefix else bare
    suffix = re.search(r"\s*\\right(?:\.|\\\})\s*$", core)
    core = core[: suffix.start()].rstrip() if suffix else core
    opening = _OPENING.match(core)
    if opening is None:
        return None
    name = opening["name"]
    end = _environment_end(core, name, opening.end())
    if end < opening.end():
        return None
    body = core[opening.end() : end]
    groups = re.findall(r"\{([^{}]*)\}", opening["extra"])
    closing = f"\\end{{{name}}}"
    trailing = _without_labels(core[end + len(closing) :]).strip()
    start = max(formula.find(body), 0)
    return Environment(
        name,
        groups[0] if name == "array" and groups else "",
        body,
        latex_rows(body),
        bool(prefix or suffix),
        trailing,
        start,
        _trailing_end(formula, trailing, closing, start + len(body)),
    )


def _trailing_end(formula: str, trailing: str, closing: str, start: int) -> int:
    if not trailing or (at := formula.find(closing, start)) < 0:
        return -1
    found = formula.find(trailing, at + len(closing))
    return found + len(trailing) if found >= 0 else -1


def _environment_end(text: str, name: str, start: int) -> int:
    depth = 1
    for found in re.compile(rf"\\(begin|end)\{{{re.escape(name)}\}}").finditer(text, start):
        depth += 1 if found[1] == "begin" else -1
        if not depth:
            return found.start()
    return -1


def _is_cut(found: Environment) -> bool:
    if found.trailing and len(latex_rows(found.trailing)) > 1:
        return False
    if found.name == "cases":
        return _are_cases_cut(found)
    if found.name in _ALIGNED:
        return not _is_aligned_whole(found)
    return found.name != "array" or _is_array_cut(found)


def _is_array_cut(found: Environment) -> bool:
    columns = re.sub(r"!{[^}]*}", "", re.sub(r"@{[^}]*}", "", re.sub(r"\s+|\|", "", found.columns)))
    if not columns or set(columns) - set("lcr"):
        return False
    if len(columns) > 2 or (len(columns) == 2 and columns == "cc"):
        return False
    nested = bool(_NESTED.search(found.body)) and any(map(_is_case, found.rows[1:]))
    return not nested and not (found.braced and set(columns) <= {"l"} and len(found.rows) > 1)


def _are_cases_cut(found: Environment) -> bool:
    if len(found.rows) <= 1 or any(len(_cells(row)) > 1 for row in found.rows) or not _LOGIC.search(found.body):
        return False
    return (
        bool(_NESTED.search(found.body))
        or any(_LOGIC.search(_lead(row)) or _WORDS.search(_lead(row)) for row in found.rows[1:])
        or bool(_LOGIC.search(_lead(found.rows[0])))
    )


def _is_aligned_whole(found: Environment) -> bool:
    nested, cases = bool(_NESTED.search(found.body)), any(map(_is_case, found.rows[1:]))
    if nested and cases:
        return True
    if not found.braced:
        return False
    left_sides = sum(len(cells := _cells(row)) > 1 and bool(without_tags(cells[0]).strip()) for row in found.rows)
    return nested or left_sides >= 2 or any(_WORDS.search(_lead(row)) for row in found.rows[1:]) or cases


def _lead(row: str) -> str:
    return re.sub(r"^\s*(?:&\s*)*", "", row)


def _is_case(row: str) -> bool:
    return bool(_CASE_LEAD.match(without_tags(_lead(row)).strip()))


def _without_labels(text: str) -> str:
    """Return what follows an environment without labels, tags and a number in brackets at its end."""
    text = re.sub(r"\\label\s*\{[^{}]*\}", "", text)
    while (text := text.rstrip()) != "":
        tag = re.search(r"\\tag\*?\s*\{[^{}]*\}$", text)
        if tag:
            text = _without_spacing(text[: tag.start()].rstrip())
            continue
        start = text.rfind({")": "(", "]": "["}.get(text[-1], "\0"))
        if start < 0 or not _is_label(text[start + 1 : -1].strip(), text[:start]):
            return text
        text = _without_spacing(text[:start])
    return ""


def _without_spacing(text: str) -> str:
    text = text.rstrip()
    while (shorter := _SPACING_END.sub("", text).rstrip()) != text:
        text = shorter
    return text


def _is_label(label: str, before: str) -> bool:
    if not label or (before and not (before[-1].isspace() or _SPACING.search(before[-10:]))):
        return False
    if re.fullmatch(r"[a-z]{1,3}", label):
        return False
    return bool(re.fullmatch(r"[A-Za-z0-9.\-#]+|(?:\\[A-Za-z#]+)+", label))


_PARTS = re.compile(r"\\begin\{[^}]*\}|\\end\{[^}]*\}|\\\\|.", re.S)


def latex_rows(body: str) -> list[str]:
    """Return what stands between the `\\\\` of a body, those within groups and environments left alone."""
    rows: list[str] = []
    current: list[str] = []
    braces = depth = index = 0
    while index < len(body):
        part = _PARTS.match(body, index)[0]  # type: ignore[index]
        if part == "\\\\" and not braces and not depth:
            rows.append("".join(current).strip())
            current = []
            index = _after_break(body, index + 2)
            continue
        if part == "\\\\":
            part = "\\"
        depth, braces = _depths(part, body, index, depth, braces)
        current.append(part)
        index += len(part)
    rows.append("".join(current).strip())
    return [row for row in rows if row]


def _depths(part: str, body: str, index: int, depth: int, braces: int) -> tuple[int, int]:
    if part.startswith("\\begin{"):
        return depth + 1, braces
    if part.startswith("\\end{"):
        return max(0, depth - 1), braces
    if part in "{}" and not _is_escaped(body, index):
        return depth, braces + 1 if part == "{" else max(0, braces - 1)
    return depth, braces


def _after_break(body: str, index: int) -> int:
    """Return where the next row begins: blanks, a star and `[1ex]` belong to the break."""
    found = re.compile(r"\s*\*?").match(body, index)
    index = found.end() if found else index
    if body[index : index + 1] == "[" and (end := body.find("]", index + 1)) != -1:
        return end + 1
    return index


def _is_escaped(text: str, index: int) -> bool:
    bare = text[:index].rstrip("\\")
    return (index - len(bare)) % 2 == 1


def _cells(row: str) -> list[str]:
    cells = [""]
    depth = index = 0
    while index < len(row):
        part = _PARTS.match(row, index)[0]  # type: ignore[index]
        part = "\\" if part == "\\\\" else part
        depth, _ = _depths(part, row, index, depth, 0)
        if part == "&" and not depth and not _is_escaped(row, index):
            cells.append("")
        else:
            cells[-1] += part
        index += len(part)
    return [cell.strip() for cell in cells]


def with_braced_cases(formula: str) -> str:
    """Return a formula whose `cases` that draw conclusions are written as a braced array of one column."""
    new, changed = _braced(formula)
    return new if changed else formula


def _braced(text: str) -> tuple[str, bool]:
    pieces: list[str] = []
    cursor, changed = 0, False
    while (begin := text.find("\\begin{", cursor)) >= 0:
        pieces.append(text[cursor:begin])
        opening = _OPENING.match(text[begin:])
        if opening is None:
            pieces.append("\\begin{")
            cursor = begin + 7
            continue
        start = begin + opening.end()
        end = _environment_end(text, opening["name"], start)
        if end < start:
            cursor = begin
            break
        closing = f"\\end{{{opening['name']}}}"
        body, inner = _braced(text[start:end])
        cursor = end + len(closing)
        if opening["name"] == "cases" and _is_braced(body, text[cursor : cursor + 200]):
            pieces.append("\\left\\{ \\begin{array}{l} " + body.strip() + " \\end{array} \\right.")
            changed = True
        else:
            pieces.append(text[begin:start] + body + closing)
            changed = changed or inner
    return "".join(pieces) + text[cursor:], changed


def _is_braced(body: str, after: str) -> bool:
    rows = latex_rows(body)
    if len(rows) <= 1 or any(len(_cells(row)) > 1 for row in rows):
        return False
    return bool(_LOGIC.search(body) or _LOGIC.search(after.lstrip()) or _OPENING.match(after.lstrip()))
