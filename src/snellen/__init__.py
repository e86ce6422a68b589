"""Snellen, the eye chart for vision-language models.

    import snellen
    result = snellen.run("eyechart", "openai/NAME", base_url="http://localhost:8000/v1")
    result.metrics["eyechart"]["acuity_px"]

Names are imported when first used, so `import snellen` stays fast.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from .core.version import __version__ as __version__

_PUBLIC = {
    "api.eye_exam": ("exam",),
    "api.load": ("load_dataset", "load_model", "load_reform_dataset"),
    "api.outputs": ("compare", "frame", "leaderboard"),
    "api.run_result": ("RunResult", "load"),
    "api.run": ("run",),
    "api.score": ("score", "score_predictions"),
    "api.settings": ("RunSettings",),
    "core.errors": ("SnellenError",),
    "core.tasks": ("Task",),
    "core.types": ("Estimate", "Form", "Image", "Params", "Prediction", "Request", "Sample", "Score"),
    "extract.choice": ("Extraction", "extract_choice"),
}
"""Module -> the public names it has; at most 25 in all."""
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}

if TYPE_CHECKING:  # the same names, for those who read types
    from .api.eye_exam import exam as exam
    from .api.load import load_dataset as load_dataset
    from .api.load import load_model as load_model
    from .api.load import load_reform_dataset as load_reform_dataset
    from .api.outputs import compare as compare
    from .api.outputs import frame as frame
    from .api.outputs import leaderboard as leaderboard
    from .api.run import run as run
    from .api.run_result import RunResult as RunResult
    from .api.run_result import load as load
    from .api.score import score as score
    from .api.score import score_predictions as score_predictions
    from .api.settings import RunSettings as RunSettings
    from .core.errors import SnellenError as SnellenError
    from .core.tasks import Task as Task
    from .core.types import Estimate as Estimate
    from .core.types import Form as Form
    from .core.types import Image as Image
    from .core.types import Params as Params
    from .core.types import Prediction as Prediction
    from .core.types import Request as Request
    from .core.types import Sample as Sample
    from .core.types import Score as Score
    from .extract.choice import Extraction as Extraction
    from .extract.choice import extract_choice as extract_choice

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 (a list, though not a literal one)


_OLD = {"load_run": ("api.load", "snellen.load(RUN), or snellen.store.reader.RunReader for the bare records")}
"""Names of earlier versions: where they are, and what replaces them."""


def __getattr__(name: str) -> Any:
    if name in _OLD:
        module, instead = _OLD[name]
        warnings.warn(f"snellen.{name} goes: use {instead}", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(f"snellen.{module}"), name)
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'snellen' has no attribute {name!r}")
    return getattr(importlib.import_module(f"snellen.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
