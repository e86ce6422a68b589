"""A run's task to how it was asked: protocol, prompt as sent, settings; so that a number is never without its way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ...core.markup import Child, shorten, tag
from ...core.text import plural
from ...core.types import Request
from ..pages.parts import facts
from ..web.shelf import OpenRun


def asked_parts(run: OpenRun, task: str) -> Iterator[Child]:
    """Yield the protocol of a task in words, its first prompt as it was sent, and all settings, folded away."""
    header, one = run.header(), run.task(task)
    about: list[tuple[str, Any]] = [
        ("form", one.form.value),
        ("asked by", one.infer),
        ("scored by", ", ".join(one.scorers)),
    ]
    about += [("inferences", one.repeats), ("variants", shorten(", ".join(one.variants), 400))]
    yield tag("h2", "How it was asked")
    yield facts(about)
    first = next(
        run.reader.rows("SELECT request FROM predictions WHERE +task = ? ORDER BY rowid LIMIT 1", (task,)), None
    )
    if first is not None:
        yield tag("details", tag("summary", "The first prompt as it was sent"), *_prompt(first[0]))
    config = msgspec.json.format(msgspec.json.encode(header.config), indent=2).decode()
    versions = "\n".join(f"{name} {version}" for name, version in header.versions.items())
    for name, body in (("All settings that change results", config), ("Versions", versions)):
        yield tag("details", tag("summary", name), tag("pre", shorten(body, 40_000), class_="code", tabindex=0))


def _prompt(body: bytes) -> Iterator[Child]:
    request = msgspec.json.decode(body, type=Request)
    for turn in request.messages:
        pictures = f" ({plural(len(turn.images), 'picture')})" if turn.images else ""
        inside = (tag("header", f"{turn.role}{pictures}"), tag("pre", shorten(turn.text, 8000)))
        yield tag("div", *inside, class_="message")
    yield tag("p", f"Parameters: {msgspec.json.encode(request.params).decode()}", class_="muted small")
