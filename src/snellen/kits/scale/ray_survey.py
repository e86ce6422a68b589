"""What each node of a Ray cluster has: asked on the node itself, compared with the driver."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from ...core.errors import SnellenError
from ...core.ids import content_hash
from ...core.registry import foreign_code
from ...core.version import __version__
from .links import Recipe
from .ray_cluster import RayCluster, RayNode, one_line

COMPARED = ("python", "snellen", "ray")
"""What must be the same on every node."""
LEAST_FREE_BYTES = 2**30
PATIENCE_S = 120.0


class NodeReport(NamedTuple):
    """One node: what it has, and what is wrong with it."""

    node: str
    ok: bool
    has: str
    problems: tuple[str, ...] = ()


def look_at_node(recipe: bytes | None, checks: bool) -> dict[str, Any]:
    """Return what this machine has; with a recipe also whether its model can be made here, and what it is."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "snellen": __version__,
        "ray": installed_version("ray"),
        "torch": installed_version("torch"),
        "vllm": installed_version("vllm"),
        "devices": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        "free": shutil.disk_usage("/tmp").free,  # noqa: S108 - where Ray keeps its session
    }
    if recipe is not None:
        try:
            found["model"] = asyncio.run(_identify(Recipe.unpacked(recipe), checks))
        except SnellenError as error:
            found["problem"] = str(error)
    return found


def installed_version(package: str) -> str:
    """Return the version of a package, or nothing where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


async def _identify(recipe: Recipe, checks: bool) -> str:
    with foreign_code("the model cannot be made:"):
        model = recipe.make()
    try:
        if checks:
            await model.check()
        return content_hash(model.identity(), 32)
    finally:
        await model.close()


def survey_nodes(cluster: RayCluster, recipe: Recipe | None, *, loads_weights: bool) -> list[NodeReport]:
    """Ask every node at once; one that does not answer in time is said so."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = cluster.nodes()
    packed = None if recipe is None else recipe.packed()
    here = look_at_node(packed, checks=False)
    look = cluster.ray.remote(look_at_node)
    asked = [
        look.options(
            num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)
        ).remote(packed, loads_weights)
        for node in nodes
    ]
    return [_report(cluster, node, reference, here) for node, reference in zip(nodes, asked, strict=True)]


def _report(cluster: RayCluster, node: RayNode, reference: Any, here: dict[str, Any]) -> NodeReport:
    name = node.address
    try:
        found = cluster.ray.get(reference, timeout=PATIENCE_S)
    except cluster.ray.exceptions.GetTimeoutError:
        return NodeReport(name, False, "", (f"no answer within {PATIENCE_S:.0f} s",))
    except cluster.ray.exceptions.RayError as error:
        return NodeReport(name, False, "", (explain_failure(one_line(error)),))
    problems = compare_nodes(found, here)
    gpus = f"{node.gpus:g} GPUs" if node.gpus else "no GPU"
    versions = ", ".join(f"{package} {found[package]}" for package in (*COMPARED, "torch", "vllm") if found[package])
    store = f"object store {node.store_bytes / 2**30:.1f} GB"
    has = f"{node.cpus:g} CPUs, {gpus}, {store}, {versions}"
    return NodeReport(name, not problems, has, tuple(problems))


def compare_nodes(found: dict[str, Any], here: dict[str, Any]) -> Sequence[str]:
    """Return what is wrong with a node, each with how to mend it."""
    problems = [
        f"{package} {found[package] or 'missing'}, the driver has {here[package]}: install the same"
        for package in COMPARED
        if found[package] != here[package]
    ]
    if found["free"] < LEAST_FREE_BYTES:
        problems.append(f"{found['free'] / 2**30:.1f} GB free for Ray's session: make room")
    if "problem" in found:
        problems.append(found["problem"])
    elif found.get("model") != here.get("model"):
        problems.append("its model is not the driver's: the files or their revision differ")
    return problems


def explain_failure(line: str) -> str:
    """Return what a node's failure means."""
    if "No module named 'snellen" in line:
        return "snellen is not installed there: pip install 'snellen[ray]' with the driver's version"
    return line
