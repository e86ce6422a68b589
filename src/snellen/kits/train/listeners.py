"""Who else hears the figures of a training (`report_to`), by the trainers' own callbacks; refused early who cannot."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from ...core.errors import ConfigError, MissingExtra, not_among

PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow"}
"""Listeners that have an extra of their name, and the package of each."""
TRLS_OWN = ("all", "none")


def check_listeners(names: Sequence[str]) -> None:
    """Refuse a name that the trainers do not know, and one whose package is missing, before anything is prepared."""
    if not names:
        return
    from transformers.integrations import integration_utils

    known = integration_utils.INTEGRATION_TO_CALLBACK
    for name in (name for name in names if name not in TRLS_OWN):
        if name not in known:
            raise ConfigError(f"training.report_to: {not_among(name, sorted(known))}")
        if name in PACKAGES and importlib.util.find_spec(PACKAGES[name]) is None:
            raise MissingExtra(name, f"--report-to {name}")
        try:
            known[name]()
        except (RuntimeError, ImportError, ValueError) as error:
            raise ConfigError(f"training.report_to = {name!r}: {' '.join(str(error).split())}") from None


def listener_errors(names: Sequence[str]) -> tuple[type[Exception], ...]:
    """Return what the libraries of listeners raise of their own, where a server or a key is missing."""
    found: list[type[Exception]] = []
    if "wandb" in names:
        from wandb.errors import Error

        found.append(Error)
    if "mlflow" in names:
        from mlflow.exceptions import MlflowException

        found.append(MlflowException)
    return tuple(found)
