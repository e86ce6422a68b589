"""Names of metrics that stand beside another one: rates, strict twins, other weightings."""

from __future__ import annotations

SIDE_METRICS = ("_rate", "_strict", "_micro", "_peer")
MACRO = "_macro_"


def is_side_metric(metric: str) -> bool:
    """Tell whether a metric stands beside another one."""
    return metric.endswith(SIDE_METRICS) or MACRO in metric
