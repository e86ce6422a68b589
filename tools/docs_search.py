"""A hook of `make docs`: decisions are pages of the site and no results of its search, which they would fill."""

from __future__ import annotations

from typing import Any


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave the pages below adr/ out of the search."""
    if page.file.src_uri.startswith("adr/"):
        page.meta["search"] = {"exclude": True}
    return markdown
