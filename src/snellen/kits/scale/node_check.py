"""A Ray cluster to what each node has, before a run depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...api.settings import RunSettings
from .executor import MAKER
from .links import Recipe
from .ray_cluster import RayCluster
from .ray_survey import NodeReport, survey_nodes


def check_cluster(
    address: str | None,
    model: str | None = None,
    base_url: str | None = None,
    plugins: Sequence[Path] = (),
    *,
    loads_weights: bool = False,
) -> list[NodeReport]:
    """Return a report a node: versions, GPUs, disk, and whether the model can be made there and is the same one."""
    recipe = None
    if model:
        settings = RunSettings(tasks=(), model=model, base_url=base_url, plugins=tuple(plugins))
        recipe = Recipe(MAKER, settings, str(Path.cwd()))
    cluster = RayCluster(address)
    try:
        return survey_nodes(cluster, recipe, loads_weights=loads_weights or bool(base_url))
    finally:
        cluster.close()
