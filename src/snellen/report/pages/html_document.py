"""Parts to a page that holds its own style, loads nothing and runs no script; and our own static files."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from ...core.markup import Child, Html, tag


def document(title: str, parts: list[Child]) -> Html:
    """Return a page that holds its own style and forbids everything else."""
    style = static("snellen.css")
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    )
    main = tag("main", *parts, _footer(), id="main", class_="wrap")
    body = tag("body", tag("a", "Skip to the results", href="#main", class_="skip"), main)
    return Html("<!doctype html>\n" + tag("html", head, body, lang="en"))


@cache
def static(name: str) -> str:
    """Return one of our own style or script files."""
    return (files("snellen.report") / "static" / name).read_text(encoding="utf-8")


def _footer() -> Html:
    words = "Made by Snellen, the eye chart for vision-language models."
    return tag("footer", f"{words} This file is complete: it loads nothing and runs no script.")
