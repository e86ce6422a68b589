"""Pages that a plug-in registers: found by their address, linked where they say, guarded as the viewer's own are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asgi import Answer, call
from made_runs import make_run
from snellen.api.view import make_viewer
from snellen.report.viewer.guard import cookie_name

PLUGIN = """
from starlette.responses import RedirectResponse
from snellen.core.markup import tag
from snellen.core.registry import Page
from snellen.report.viewer.shell import shell


def about(library, request):
    return shell("About", [tag("h1", f"{len(library.listed())} run here")], place="/about")


def size(library, request):
    with library.run(request.path_params["key"]).held() as run:
        return shell("Size", [tag("h1", f"{run.progress().stored} trials")])


async def keep(library, request):
    return RedirectResponse("/about", 303)


def register(registry):
    registry.add("page", "/about", Page(about, "About", "bar"))
    registry.add("page", "/run/{key}/size", Page(size, "Its size", "run"))
    registry.add("page", "/run/{key}/never", Page(size, "Never shown", "run", when=lambda run: False))
    registry.add("page", "/keep", Page(keep, writes=True))
"""


Asked = Callable[..., Answer]


@pytest.fixture
def make_asked(tmp_path: Path) -> Callable[..., Asked]:
    make_run(tmp_path / "runs" / "one", count=6)
    (tmp_path / "pages.py").write_text(PLUGIN)

    def make(**settings: Any) -> Asked:
        app = make_viewer([tmp_path / "runs"], "key", plugins=[tmp_path / "pages.py"], **settings)
        headers = {"cookie": f"{cookie_name('key')}=key", "origin": "http://127.0.0.1:1"}
        return lambda path, **more: call(app, path, headers=headers, **more)

    return make


def test_a_page_is_found_and_linked_where_it_says(make_asked: Callable[..., Asked]) -> None:
    asked = make_asked()
    key = asked("/state").text.partition(":")[0]
    home, page = asked("/").text, asked(f"/run/{key}").text
    assert 'href="/about"' in home and 'href="/about"' in page
    assert f'href="/run/{key}/size"' in page and "Never shown" not in page
    assert "1 run here" in asked("/about").text and "6 trials" in asked(f"/run/{key}/size").text
    assert asked("/run/nothing/size").status == 404


def test_a_page_that_writes_is_answered_only_where_the_viewer_may(make_asked: Callable[..., Asked]) -> None:
    assert make_asked()("/keep", method="POST").status == 400
    assert make_asked(may_write=True)("/keep", method="POST").status == 303
    assert make_asked(may_write=True)("/keep").status == 405
