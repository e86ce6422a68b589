"""The parts of Ray that need no cluster: pictures once, room for replicas, and what its errors mean in one line."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from snellen.core.errors import EnvironmentProblem, MissingExtra, UsageError
from snellen.kits.scale.items import Content
from snellen.kits.scale.ray_cluster import RayCluster, RayNode, import_ray, one_line, reach
from snellen.kits.scale.ray_link import INLINE_BYTES, RayPictures, describe_loss
from snellen.kits.scale.ray_survey import compare_nodes, explain_failure, look_at_node


class Full(Exception):
    """Stands for Ray's own."""


class FakeRay:
    """An object store that counts, and may be full."""

    exceptions = SimpleNamespace(ObjectStoreFullError=Full, OutOfDiskError=Full)

    def __init__(self, *, full: bool = False) -> None:
        self.stored: list[bytes] = []
        self._full = full

    def put(self, content: bytes) -> str:
        if self._full:
            raise Full("The object store is full\nof many lines")
        self.stored.append(content)
        return f"reference {len(self.stored)}"


def picture(name: str, size: int) -> Content:
    return Content(name, b"x" * size)


def test_a_picture_is_put_once_and_the_oldest_is_let_go() -> None:
    ray = FakeRay()
    pictures = RayPictures(ray, kept_bytes=3 * INLINE_BYTES)
    large = INLINE_BYTES + 1
    assert pictures.reference(picture("a", large)) == "reference 1"
    assert pictures.reference(picture("a", large)) == "reference 1"
    pictures.reference(picture("b", large))
    pictures.reference(picture("a", large))
    pictures.reference(picture("c", large))
    assert pictures.used_bytes == 2 * large
    assert pictures.reference(picture("a", large)) == "reference 1", "used last, so it stayed"
    assert pictures.reference(picture("b", large)) == "reference 4"
    pictures.let_go()
    assert pictures.used_bytes == 0


def test_a_small_picture_travels_with_its_lease() -> None:
    ray = FakeRay()
    assert RayPictures(ray).reference(picture("a", 10)) == b"x" * 10
    assert ray.stored == []


def test_a_full_object_store_is_one_line_that_says_what_to_do() -> None:
    with pytest.raises(EnvironmentProblem, match="--object-store-memory") as caught:
        RayPictures(FakeRay(full=True)).reference(picture("a", INLINE_BYTES + 1))
    assert "\n" not in str(caught.value)


def room(nodes: list[RayNode], replicas: int, gpus: float) -> list[str]:
    cluster: Any = SimpleNamespace(nodes=lambda: nodes)
    return RayCluster.check_room(cluster, replicas, gpus)


def test_replicas_that_fit_nowhere_are_refused_and_those_that_wait_are_said() -> None:
    nodes = [RayNode("1", "a", 8, 4, 0), RayNode("2", "b", 8, 2, 0)]
    assert room(nodes, 3, 2) == []
    assert room(nodes, 4, 2) == ["3 of 4 replicas fit into the cluster now; the others join when there is room"]
    with pytest.raises(UsageError, match="the largest of 2 nodes has 4"):
        room(nodes, 1, 8)
    assert room(nodes, 16, 0) == []


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("OutOfMemoryError", "Task was killed due to the node running low on memory", "ran out of memory"),
        ("ActorUnavailableError", "The actor is unavailable: RpcError: socket closed", "cannot be reached"),
        ("ActorDiedError", "The actor died because its node has died.", "its node was lost"),
        (
            "ActorDiedError",
            "The actor is dead because its worker process has died. (1) OOM killer …",
            "its process died",
        ),
        ("ActorDiedError", "raised in its creation\nModuleNotFoundError: No module named 'snellen'", "No module named"),
        ("RaySystemError", "something\nelse", "something else"),
    ],
)
def test_a_loss_is_told_in_few_words(kind: str, text: str, said: str) -> None:
    told = describe_loss(type(kind, (Exception,), {})(text))
    assert said in told
    assert "\n" not in told


def test_an_address_where_nothing_listens_is_known_at_once() -> None:
    with pytest.raises(OSError, match="refused"):
        reach("127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        reach(f"127.0.0.1:{server.getsockname()[1]}")
    reach("auto")
    reach(None)


def test_the_last_line_of_an_error_says_it() -> None:
    assert one_line(RuntimeError("Traceback\n  File x\nno such file\n")) == "no such file"
    assert one_line(TimeoutError()) == "TimeoutError"


def test_of_versions_that_differ_both_are_said() -> None:
    told = "Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"
    said = one_line(RuntimeError(f"{told}This process was started with:\n    Ray: 2.1.0\n    Python: 3.11.7\n"))
    assert "Ray: 2.60.0" in said and "Ray: 2.1.0" in said and "\n" not in said


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"snellen\[ray\]"):
        import_ray()


def test_what_a_node_lacks_is_said_with_how_to_mend_it() -> None:
    here = look_at_node(None, checks=False) | {"model": "a"}
    assert compare_nodes(here, here) == []
    old = here | {"snellen": "0.0.1", "ray": "", "free": 10, "model": "b"}
    problems = compare_nodes(old, here)
    assert [problem.split(",")[0] for problem in problems[:2]] == ["snellen 0.0.1", "ray missing"]
    assert "make room" in problems[2]
    assert "its model is not the driver's" in problems[3]
    assert "no checkpoint" in compare_nodes(here | {"problem": "no checkpoint"}, here)[0]
    assert "pip install 'snellen[ray]'" in explain_failure("ModuleNotFoundError: No module named 'snellen'")


def test_what_is_kept_for_later_goes_before_a_full_store_ends_a_run() -> None:
    ray = FakeRay()
    put, held = ray.put, INLINE_BYTES + 1

    def one_fits(content: bytes) -> str:
        if pictures.used_bytes:
            raise Full("The object store is full")
        return put(content)

    ray.put = one_fits  # type: ignore[method-assign]
    pictures = RayPictures(ray)
    assert pictures.reference(picture("a", held)) == "reference 1"
    assert pictures.reference(picture("b", held)) == "reference 2"
    assert pictures.used_bytes == held
