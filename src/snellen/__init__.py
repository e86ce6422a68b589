"""Snellen, the eye chart for vision-language models.

    import snellen
    result = snellen.run("eyechart", "openai/NAME", base_url="http://localhost:8000/v1")
    result.results["tasks"]["eyechart"]["metrics"]

Names are imported when first used, so `import snellen` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_PUBLIC = {
    "run": "snellen.api.run",
    "load_dataset": "snellen.api.load",
    "load_model": "snellen.api.load",
    "load_reform_dataset": "snellen.api.reform",
    "load_run": "snellen.api.load",
    "frame": "snellen.api.outputs",
    "RunResult": "snellen.api.run",
    "RunSettings": "snellen.api.settings",
    "extract_choice": "snellen.extract.choice",
    "Extraction": "snellen.extract.choice",
    "score": "snellen.api.score",
    "score_predictions": "snellen.scoring.outside.predictions",
    "Estimate": "snellen.core.types",
    "Form": "snellen.core.types",
    "Image": "snellen.core.types",
    "Params": "snellen.core.types",
    "Prediction": "snellen.core.types",
    "Request": "snellen.core.types",
    "Sample": "snellen.core.types",
    "Score": "snellen.core.types",
    "Task": "snellen.core.tasks",
    "SnellenError": "snellen.core.errors",
}
"""Public name -> the module that has it; at most 25."""

if TYPE_CHECKING:
    from .api.load import load_dataset, load_model, load_run
    from .api.outputs import frame
    from .api.reform import load_reform_dataset
    from .api.run import RunResult, run
    from .api.score import score
    from .api.settings import RunSettings
    from .core.errors import SnellenError
    from .core.tasks import Task
    from .core.types import Estimate, Form, Image, Params, Prediction, Request, Sample, Score
    from .extract.choice import Extraction, extract_choice
    from .scoring.outside.predictions import score_predictions

__all__ = [
    "Estimate", "Extraction", "Form", "Image", "Params", "Prediction", "Request", "RunResult", "RunSettings", "Sample", "Score",
    "SnellenError", "Task", "extract_choice", "frame", "load_dataset", "load_model", "load_reform_dataset", "load_run", "run", "score",
    "score_predictions",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'snellen' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
