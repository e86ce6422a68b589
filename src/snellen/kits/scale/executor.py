"""The executors `processes` and `ray`: what the core asks of one, by the modules that do it."""

from __future__ import annotations

from .chore_workers import mapper_for
from .replicas import keeping_replicas, open_replicas, policy_for
from .scored_ranges import scoring


class FleetExecutor:
    """Fits `api.executors.Executor`; processes and actors differ only in what a fleet is linked to."""

    open_replicas = staticmethod(open_replicas)
    policy_for = staticmethod(policy_for)
    keeping_replicas = staticmethod(keeping_replicas)
    mapper_for = staticmethod(mapper_for)
    scoring = staticmethod(scoring)


FLEET = FleetExecutor()
