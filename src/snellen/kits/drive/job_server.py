"""The tools of a workbench over HTTP: jobs, status, results, cancel; a token for everything but /health."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ...core.errors import EnvironmentProblem, SnellenError, UsageError
from ...core.secret import hide_passwords
from ...core.version import __version__
from ...report.viewer.guard import HOSTS
from .tools import TOOLS, call
from .workbench import Workbench

LONGEST_BODY = 1 << 20


class Route(NamedTuple):
    """An address and the tool that answers there."""

    method: str
    path: str
    tool: str
    status: int = 200


ROUTES: Final = (
    Route("GET", "/tasks", "list_tasks"),
    Route("GET", "/models", "list_models"),
    Route("POST", "/plans", "plan_run"),
    Route("GET", "/runs", "list_runs"),
    Route("GET", "/runs/{run}", "run_status"),
    Route("GET", "/runs/{run}/results", "results"),
    Route("GET", "/runs/{run}/wrong", "wrong_answers"),
    Route("GET", "/compare", "compare"),
    Route("GET", "/jobs", "list_jobs"),
    Route("POST", "/jobs", "start_run", 202),
    Route("GET", "/jobs/{run}", "run_status"),
    Route("GET", "/jobs/{run}/results", "results"),
    Route("DELETE", "/jobs/{run}", "stop_run", 202),
)


class JobServer:
    """An ASGI application: small enough to need no framework."""

    def __init__(self, bench: Workbench, token: str, *, hosts: tuple[str, ...] = HOSTS) -> None:
        self._bench, self._token, self._hosts = bench, token, hosts

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        body = await _body(receive)
        status, answer = await _in_thread(self.answer, scope, headers, body)
        data = msgspec.json.encode(answer, enc_hook=str)
        sent = [
            (b"content-type", b"application/json"),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        if status == 401:
            sent.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": sent})
        await send({"type": "http.response.body", "body": data})

    def answer(self, scope: Mapping[str, Any], headers: Mapping[str, str], body: bytes | None) -> tuple[int, Any]:
        """Return status and answer of a request."""
        if self._hosts and headers.get("host", "").rsplit(":", 1)[0].lower() not in self._hosts:
            return 421, _problem("this server answers to 127.0.0.1 and localhost only")
        if scope["path"] == "/health":
            return 200, {"ok": True, "version": __version__}
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
            return 401, _problem("the header Authorization: Bearer TOKEN is missing or wrong")
        if scope["path"] == "/openapi.json":
            return 200, openapi()
        if body is None:
            return 413, _problem(f"a body of more than {LONGEST_BODY} bytes")
        return self._route(scope, body)

    def _route(self, scope: Mapping[str, Any], body: bytes) -> tuple[int, Any]:
        fitting = [(route, found) for route in ROUTES if (found := _fits(route.path, scope["path"])) is not None]
        if not fitting:
            return 404, _problem(f"there is nothing at {scope['path']}; GET /openapi.json lists what there is")
        chosen = next(((route, found) for route, found in fitting if route.method == scope["method"]), None)
        if chosen is None:
            return 405, _problem(f"{scope['path']} takes {', '.join(route.method for route, _ in fitting)}")
        route, found = chosen
        try:
            arguments = _arguments(scope, body, route) | found
            return route.status, call(self._bench, route.tool, arguments)
        except UsageError as error:
            missing = route.path.count("{") and ("no job" in str(error) or str(error).startswith("run "))
            refused = "limit" in str(error) or "only looks" in str(error)
            return 404 if missing else 403 if refused else 400, _problem(str(error))
        except EnvironmentProblem as error:
            return 503, _problem(str(error))
        except SnellenError as error:
            return 422, _problem(str(error))


def _problem(message: str) -> dict[str, Any]:
    return {"error": hide_passwords(message)}


def _fits(pattern: str, path: str) -> dict[str, str] | None:
    """Return what stands in the places of a pattern, or None if the path is another."""
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    found: dict[str, str] = {}
    for part, text in zip(wanted, given, strict=True):
        if part.startswith("{"):
            found[part[1:-1]] = text
        elif part != text:
            return None
    return found


def _arguments(scope: Mapping[str, Any], body: bytes, route: Route) -> dict[str, Any]:
    """Return the arguments of a request: of its query, with their kinds, or of its JSON body."""
    if route.method == "POST":
        try:
            told = json.loads(body or b"{}")
        except (ValueError, RecursionError):
            raise UsageError("the body is no JSON") from None
        if not isinstance(told, dict):
            raise UsageError("the body is no JSON object")
        return told
    from urllib.parse import parse_qsl

    kinds = TOOLS[route.tool].arguments
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return {name: _typed(value, kinds.get(name, {})) for name, value in pairs}


def _typed(value: str, kind: Mapping[str, Any]) -> Any:
    if kind.get("type") == "integer" and value.isdecimal():
        return int(value)
    return value


async def _body(receive: Any) -> bytes | None:
    parts, size = [], 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size <= LONGEST_BODY:
            parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts) if size <= LONGEST_BODY else None


async def _in_thread(work: Any, *arguments: Any) -> Any:
    import asyncio

    return await asyncio.to_thread(work, *arguments)


def openapi() -> dict[str, Any]:
    """Return the description of all addresses in OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        tool = TOOLS[route.tool]
        places = [name[1:-1] for name in route.path.split("/") if name.startswith("{")]
        entry: dict[str, Any] = {
            "operationId": f"{route.tool}{'' if route.path.count('jobs') == 0 else '_job'}",
            "summary": tool.words,
            "responses": {
                str(route.status): {
                    "description": "done",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                "400": {"description": "a mistake in the request"},
                "401": {"description": "no token, or another"},
            },
        }
        named = [
            {"name": name, "in": "path", "required": True, "schema": dict(tool.arguments[name])} for name in places
        ]
        if route.method == "POST":
            entry["requestBody"] = {"required": True, "content": {"application/json": {"schema": tool.schema()}}}
        else:
            named += [
                {"name": name, "in": "query", "required": name in tool.needed, "schema": dict(kind)}
                for name, kind in tool.arguments.items()
                if name not in places
            ]
        if named:
            entry["parameters"] = named
        paths.setdefault(route.path, {})[route.method.lower()] = entry
    paths["/health"] = {
        "get": {"operationId": "health", "security": [], "responses": {"200": {"description": "it lives"}}}
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Snellen jobs", "version": __version__},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }
