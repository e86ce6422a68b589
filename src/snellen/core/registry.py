"""One lazy registry: name of a loader, model, inferencer, scorer, aggregate or eye test -> object."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from .errors import ConfigError, SnellenError, UsageError, not_among
from .loaded_code import loading

PLUGIN_PREFIX = "snellen_plugin_"
"""How the modules of plug-in files are named."""
KINDS = ("loader", "model", "inferencer", "scorer", "aggregate", "eye-test")

Target = Any
"""Either the object itself or `"package.module:attribute"`, resolved on first use."""


class Registry:
    """Maps (kind, name) to an object. A name clash is an error; an unknown name says what is near."""

    def __init__(self) -> None:
        self._targets: dict[str, dict[str, Target]] = {kind: {} for kind in KINDS}
        self._entry_points_loaded = False

    def add(self, kind: str, name: str, target: Target) -> None:
        """Register `target` (an object or `"module:attribute"`) under `name`."""
        known = self._kind(kind)
        if name in known and known[name] != target:
            raise ConfigError(f"{kind} {name!r} is registered twice: rename one of them")
        known[name] = target

    def get(self, kind: str, name: str) -> Any:
        """Return the object, importing its module if need be."""
        known = self._kind(kind)
        if name not in known:
            self._load_entry_points()
        if name not in known:
            raise UsageError(f"unknown {kind} {not_among(name, sorted(known))}")
        target = known[name]
        return resolve_target(target) if isinstance(target, str) else target

    def names(self, kind: str) -> list[str]:
        """Return the registered names of one kind, sorted."""
        self._load_entry_points()
        return sorted(self._kind(kind))

    def load_plugin(self, path: str | Path) -> None:
        """Run a plug-in file the user named; its `register(registry)` adds what it brings.

        A file without one may bring models: its classes and functions are found as `plugin/NAME`.
        """
        file = Path(path)
        if not file.is_file():
            raise UsageError(f"plug-in {str(path)!r} is not a file")
        spec = importlib.util.spec_from_file_location(PLUGIN_PREFIX + file.stem, file)
        if spec is None or spec.loader is None:
            raise UsageError(f"plug-in {str(path)!r} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        with loading(spec.name), foreign_code(f"plug-in {str(path)!r} cannot be loaded:"):
            spec.loader.exec_module(module)
        if callable(getattr(module, "register", None)):
            with loading(spec.name), foreign_code(f"plug-in {str(path)!r} cannot be registered:"):
                module.register(self)
        elif not any(
            callable(value) and getattr(value, "__module__", "") == spec.name for value in vars(module).values()
        ):
            raise UsageError(f"plug-in {str(path)!r} has no function register(registry) and no model")

    def _kind(self, kind: str) -> dict[str, Target]:
        if kind not in self._targets:
            raise ConfigError(f"unknown registry kind {kind!r}; known: {', '.join(KINDS)}")
        return self._targets[kind]

    def _load_entry_points(self) -> None:
        if self._entry_points_loaded:
            return
        self._entry_points_loaded = True
        for kind, name, target in _installed():
            self.add(kind, name, target)


@contextmanager
def foreign_code(what: str, error_type: Callable[[str], SnellenError] = UsageError) -> Iterator[None]:
    """Turn whatever a plug-in raises in the block into one error of ours that begins with `what`; ours pass."""
    try:
        yield
    except SnellenError:
        raise
    except Exception as error:
        raise error_type(f"{what} {type(error).__name__}: {error}") from error


@cache
def _installed() -> tuple[tuple[str, str, str], ...]:
    """Return what installed packages bring, as (kind, name, target); every package's files are read once a process."""
    points = entry_points()
    return tuple((kind, point.name, point.value) for kind in KINDS for point in points.select(group=f"snellen.{kind}"))


def resolve_target(target: str) -> Any:
    """Return what `module:attribute` names, importing the module."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
