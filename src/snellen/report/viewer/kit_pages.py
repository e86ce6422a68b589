"""Registered pages to routes of the viewer and to the links that lead there."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from ...core.errors import UsageError
from ...core.markup import Html, tag
from ...core.registry import Page, Registry, resolve_target
from .guard import Asgi
from .run_library import OpenRun, RunLibrary
from .shell import KIT_PLACES, link


def kit_routes(library: RunLibrary, registry: Registry, *, may_write: bool) -> list[Route]:
    """Return a route for every registered page; its module is imported when it is first asked for."""
    pages = registry.entries("page").items()
    return [
        Route(address, _endpoint(page, library, may_write=may_write), methods=["POST" if page.writes else "GET"])
        for address, page in pages
    ]


def _endpoint(page: Page, library: RunLibrary, *, may_write: bool) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        if page.writes and not may_write:
            raise UsageError("this viewer only reads: start it with `snellen view --write` to change anything")
        make = resolve_target(page.target)
        made = await (make if iscoroutinefunction(make) else _in_thread(make))(library, request)
        return HTMLResponse(made.encode("utf-8", "replace")) if isinstance(made, str) else made

    return answer


def _in_thread(make: Callable[[RunLibrary, Request], Any]) -> Callable[[RunLibrary, Request], Any]:
    return lambda library, request: run_in_threadpool(make, library, request)


def with_kit_places(app: Asgi, registry: Registry) -> Asgi:
    """Return the application with the pages that stand in the bar known to every page it makes."""
    places = [(to, page.label) for to, page in registry.entries("page").items() if page.linked_from == "bar"]

    async def placed(scope: dict[str, Any], receive: Any, send: Any) -> None:
        KIT_PLACES.set(places)
        await app(scope, receive, send)

    return placed


def kit_links(run: OpenRun) -> Html | None:
    """Return the links to what kits show of a run; None where they show nothing."""
    pages = registry_pages(run)
    links = [link(page.label, to.replace("{key}", run.key), class_="button quiet") for to, page in pages]
    return tag("nav", *links, class_="bar-of-buttons", aria_label="More of this run") if links else None


def registry_pages(run: OpenRun) -> list[tuple[str, Page]]:
    """Return the registered pages that are linked from a run, those left out whose `when` says no."""
    every = ((to, page) for to, page in run.registry.entries("page").items() if page.linked_from == "run")
    return [(to, page) for to, page in every if page.when is None or resolve_target(page.when)(run)]
