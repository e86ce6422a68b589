"""Folders of runs to a viewer in the browser, on this machine only."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ..core.builtins import default_registry
from ..core.errors import EnvironmentProblem, MissingExtra, UsageError
from ..core.process import rare_collections
from ..report.run_briefs import run_folders, run_key

if TYPE_CHECKING:
    from ..report.viewer.site import Exported

EXTRA = ("starlette", "latex2mathml", "markdown_it")
"""What the extra `view` brings, beside the server."""


def make_viewer(
    folders: Sequence[str | Path], token: str, *, may_write: bool = False, plugins: Sequence[str | Path] = ()
) -> Any:
    """Return the viewer as an ASGI application that lets in who knows `token`; `plugins` bring scorers of runs."""
    _need_extra()
    from ..report.viewer.app import create_app
    from ..report.viewer.run_library import RunLibrary

    registry = default_registry(plugins)
    library = RunLibrary([Path(folder) for folder in folders], registry)
    return create_app(library, token, may_write=may_write, registry=registry)


def _need_extra() -> None:
    """Raise MissingExtra where the packages of the viewer are not all there."""
    try:
        import_module("snellen.report.viewer.app")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        raise MissingExtra("view", "the viewer") from None


def view(
    folders: Sequence[str | Path],
    *,
    port: int = 0,
    may_write: bool = False,
    plugins: Sequence[str | Path] = (),
    ready: Callable[[str], None] | None = None,
    page: str = "/",
) -> None:
    """Serve runs on 127.0.0.1 until interrupted; `ready` is given the address of a page to open, key included."""
    token = secrets.token_urlsafe(24)
    app = make_viewer(folders, token, may_write=may_write, plugins=plugins)
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("view", "the viewer") from None
    listener = _listen(port)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}{page}{'&' if '?' in page else '?'}token={token}"
    quiet = {"log_level": "warning", "lifespan": "off", "server_header": False, "ws": "none", "access_log": False}

    class Viewer(uvicorn.Server):  # type: ignore[misc]  # an extra: its types are not read
        """Tells its address when it listens to Ctrl-C too: before, an interrupt would find half a server."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if ready is not None:
                ready(address)

    with listener, rare_collections():
        Viewer(uvicorn.Config(app, **quiet)).run(sockets=[listener])


def export_view(run: str | Path, folder: str | Path, *, plugins: Sequence[str | Path] = ()) -> Exported:
    """Write all pages of one run to a folder that needs no viewer; return what was written."""
    _need_extra()
    from ..report.viewer.run_library import RunLibrary
    from ..report.viewer.site import export_site

    root = Path(run).resolve()
    library = RunLibrary([root], default_registry(plugins))
    runs = library.listed()
    if root in run_folders(root, 0):  # the votes of its judges and what an extractor said are runs in it
        runs = [one for one in runs if one.key == run_key(root)]
    if len(runs) != 1:
        found = f"holds {len(runs)} runs" if runs else "holds no run that can be read"
        why = next(iter(library.problems.values()), "")
        raise UsageError(f"{run} {found}{f' ({why})' if why else ''}: name one run to export")
    return export_site(runs[0], Path(folder))


def label_address(run: str | Path, judge_name: str, by: str = "") -> str:
    """Return the page of the viewer on which people label the replies that a judge was asked about."""
    from ..scoring.judges.labels import asked_judge, check_person

    folder = Path(run).resolve()
    asked_judge(folder, judge_name)
    name = check_person(by)
    return f"/run/{run_key(folder)}/label?{urlencode({'judge': judge_name} | ({'by': name} if name else {}))}"


def _listen(port: int) -> socket.socket:
    # asyncio sends at once (TCP_NODELAY) only where the protocol is named; else every answer but the first on a
    # connection waits some 40 ms for the browser's acknowledgement of its headers.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        reason = f"{error.strerror}; choose another --port, or none"
        raise EnvironmentProblem(f"cannot listen on 127.0.0.1:{port}: {reason}") from None
    listener.listen(128)
    return listener
