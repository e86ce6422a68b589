"""Pieces of text to HTML that cannot carry a script: every string is escaped, only this module makes markup."""

from __future__ import annotations

import html as standard
import re
from collections.abc import Iterable
from typing import Final

CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Bytes no page should show as they are: controls, overrides of the reading direction, halves of characters."""
VOID: Final = frozenset({"meta", "link", "img", "input", "br", "hr"})


class Html(str):
    """Markup made here; anything else that is text gets escaped."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]
Attribute = str | int | float | bool | None


def text(value: object) -> Html:
    """Return foreign text as it may stand in a page, in an element or in a quoted attribute."""
    return Html(standard.escape(CONTROL.sub("�", str(value)), quote=True))


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Return one element. `class_` stands for class, `aria_label` for aria-label; None and False leave one out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """Return the children one after the other."""
    return Html("".join(_render(child) for child in children))


def _render(child: Child) -> str:
    if isinstance(child, Html):
        return child
    if child is None or child is False:
        return ""
    if isinstance(child, str | int | float):
        return text(child)
    return join(child)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-") if key != "viewBox" else key
    return f" {name}" if value is True else f' {name}="{text(value)}"'


def shorten(value: str, most: int) -> str:
    """Return at most so many characters, and say that there were more."""
    return value if len(value) <= most else f"{value[:most]}… ({len(value):,} characters)"
