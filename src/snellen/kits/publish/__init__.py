"""Runs written for other programs: the files of other tools and systems, and trackers that hear of a run."""

from __future__ import annotations

from ...core.registry import Registry

EXPORTS = {
    "flageval": "harness_files:write_flageval",
    "aisbench": "harness_files:write_aisbench",
    "eee": "eee_records:write",
    "inspect": "inspect_log:write",
    "hub": "hub_results:write",
    "otel": "otel_spans:write",
    "junit": "junit_gates:write",
    "croissant": "croissant_card:write",
}
TRACKERS = {
    "jsonl": "trackers:JsonLines",
    "tensorboard": "trackers:TensorBoard",
    "mlflow": "trackers:Mlflow",
    "otel": "otel_spans:OtelSpans",
    "wandb": "trackers:Wandb",
}


def register(registry: Registry) -> None:
    """Add the forms that a run is exported in, and the trackers."""
    for kind, names in {"export": EXPORTS, "tracker": TRACKERS}.items():
        for name, target in names.items():
            registry.add(kind, name, f"snellen.kits.publish.{target}")
