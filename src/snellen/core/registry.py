"""One lazy registry: name of a loader, model, scorer, command, page … -> object; and the kits that fill it.

Names of the core are there from the start. Who else may bring some, the shipped kits and then installed packages, is
asked where a name is not among them, and where all names of a kind are wanted.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from .errors import ConfigError, SnellenError, UsageError, not_among
from .loaded_code import loading, plugin_spec

PLUGIN_PREFIX = "snellen_plugin_"
"""How the modules of plug-in files are named."""
KINDS = (
    "loader",
    "model",
    "inferencer",
    "scorer",
    "aggregate",
    "eye-test",
    "executor",
    "asking",
    "stop",
    "predictions",
    "formulation",
    "score-file",
    "items",
    "edit",
    "export",
    "tracker",
    "check",
    "command",
    "page",
    "rewrite",
    "part",
)
OF_PACKAGES = frozenset({"predictions", "formulation", "export"})
"""Kinds of which a command takes the name and no `--plugin`: those of installed packages only."""
KITS = "snellen.kits"
"""The package whose folders are the shipped kits; none of them is named anywhere else."""

Target = Any
"""Either the object itself or `"package.module:attribute"`, resolved on first use."""


class Command(NamedTuple):
    """A command of the command line by its name: what `--help` prints of it without importing it."""

    target: Target
    """A click command, or its `module:attribute`."""
    help: str
    group: str = "More"
    """The heading it stands under in `snellen --help`."""


class Page(NamedTuple):
    """A page of the viewer by its address (`/tools`, `/run/{key}/tools`), and where a link to it stands."""

    target: Target
    """`page(library, request)`: the run library and Starlette's request to an Html, or to a Response."""
    label: str = ""
    linked_from: str = ""
    """`bar` on every page, `run` on the page of a run (the address has `{key}`); empty: other pages link to it."""
    when: Target = None
    """For `run`: `when(run)` of an open run tells whether the link is shown. None: always."""
    writes: bool = False
    """A form that is posted here; answered only where the viewer may write."""
    known_by: str = ""
    """The name of a file: folders that hold one are found where runs are (`library.folders_with`)."""
    listed: Target = None
    """`listed(library, text)` of such folders: what stands of them below the list of runs, where a text is in their
    names (None: nothing), and whether one still goes on. Asked only where there are some."""


class Part(NamedTuple):
    """What a kit says of some tasks, beside what is said of every task: of those that its inferencer asked, or in whose
    variants an axis of its own stands; no other task ever asks for it.

    It is registered under its key in a task's part of results.json. The rest are targets; None: nothing of the kind.
    """

    inferencer: str = ""
    axes: tuple[str, ...] = ()
    check: Target = None
    """`check(task, samples, others, settings)` refuses what rows cannot be asked in, before the first request."""
    turns: Target = None
    """`turns(planned, plan, found, looked_at)`: how the requests of a trial grow, for the price; None: not known."""
    describe: Target = None
    """`describe(scored, keys)`: what stands in results.json, with its `notes` (empty: nothing), and more metrics."""
    files: Target = None
    """`files(folder)` writes files beside results.json."""
    tables: Target = None
    """`tables(found)`: what was described, as tables of the terminal."""
    section: Target = None
    """`section(reader, task, found, to)`: the same for the page of a run.

    `to(filter, value, variant)` is the address of trials; None where there is none.
    """
    filters: Target = None
    """`filters(reader, task)`: what trials can be chosen by beside their tags, each a `TrialFilter` with its name."""
    trial: Target = None
    """`trial(run, shown, columns, walk)`: what the page of one trial says."""
    regions: Target = None
    """`regions(reader, shown)`: the numbered regions that are drawn on the pictures of a trial."""
    compare: Target = None
    """`compare(folders, task)`: by task, how runs compare in it; only what has something to say."""
    compared: Target = None
    """`compared(task, found)`: one of these as a sheet."""
    way: Target = None
    """`way(task)`: how it was asked, in a word or two: rankings compare only what is asked alike."""


class Registry:
    """Maps (kind, name) to an object. A name clash is an error; an unknown name says what is near."""

    def __init__(
        self,
        own: Mapping[str, Mapping[str, Target]] = MappingProxyType({}),
        others: Iterable[Callable[[Registry], None]] = (),
    ) -> None:
        """`own` are its first names by kind, `others` add theirs when they are asked, installed packages after them."""
        self._targets: dict[str, dict[str, Target]] = {kind: dict(own.get(kind, ())) for kind in KINDS}
        self._unasked = [*others, register_installed]

    def add(self, kind: str, name: str, target: Target) -> None:
        """Register `target` (an object or `"module:attribute"`) under `name`."""
        known = self._kind(kind)
        if name in known and known[name] != target:
            raise ConfigError(f"{kind} {name!r} is registered twice: rename one of them")
        known[name] = target

    def find(self, kind: str, name: str) -> Target | None:
        """Return a registered target, not imported; None where nobody brings that name."""
        known = self._kind(kind)
        while name not in known and self._unasked:
            self._unasked.pop(0)(self)
        return known.get(name)

    def get(self, kind: str, name: str) -> Any:
        """Return the object, importing its module if need be."""
        target = self.find(kind, name)
        if target is None:
            own = "" if kind in OF_PACKAGES else "; one of your own: --plugin FILE"
            raise UsageError(f"unknown {kind} {not_among(name, self.names(kind))}{own}")
        return resolve_target(target)

    def entries(self, kind: str) -> Mapping[str, Target]:
        """Return all registered targets of one kind in the order of registration, nothing of them imported."""
        self._ask_all()
        return self._kind(kind)

    def names(self, kind: str) -> list[str]:
        """Return all registered names of one kind, sorted."""
        return sorted(self.entries(kind))

    def load_plugin(self, path: str | Path) -> None:
        """Run a plug-in file the user named; its `register(registry)` adds what it brings.

        A file without one may bring models: its classes and functions are found as `plugin/NAME`.
        """
        file = Path(path)
        if not file.is_file():
            raise UsageError(f"plug-in {str(path)!r} is not a file")
        self._ask_all()  # what takes the name of another is refused here, not where that name is needed
        spec = plugin_spec(PLUGIN_PREFIX + file.stem, file)
        if spec is None or spec.loader is None:
            raise UsageError(f"plug-in {str(path)!r} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        if (beside := str(file.resolve().parent)) not in sys.path:
            sys.path.append(beside)  # its own modules are found, also by a later import; installed ones come first
        with loading(spec.name, str(file.resolve())), foreign_code(f"plug-in {str(path)!r} cannot be loaded:"):
            spec.loader.exec_module(module)
        if callable(getattr(module, "register", None)):
            with loading(spec.name, str(file.resolve())), foreign_code(f"plug-in {str(path)!r} cannot be registered:"):
                module.register(self)
        elif not any(
            callable(value) and getattr(value, "__module__", "") == spec.name for value in vars(module).values()
        ):
            raise UsageError(f"plug-in {str(path)!r} has no function register(registry) and no model")

    def _kind(self, kind: str) -> dict[str, Target]:
        if kind not in self._targets:
            raise ConfigError(f"unknown registry kind {kind!r}; known: {', '.join(KINDS)}")
        return self._targets[kind]

    def _ask_all(self) -> None:
        while self._unasked:
            self._unasked.pop(0)(self)


@contextmanager
def foreign_code(what: str, error_type: Callable[[str], SnellenError] = UsageError) -> Iterator[None]:
    """Turn whatever a plug-in raises in the block into one error of ours that begins with `what`; ours pass."""
    try:
        yield
    except SnellenError:
        raise
    except Exception as error:
        raise error_type(f"{what} {type(error).__name__}: {error}") from error


def register_shipped_kits(registry: Registry) -> None:
    """Let every shipped kit register what it brings; a kit is a folder with a `register`, as a stranger's is."""
    for name in shipped_kits():
        importlib.import_module(f"{KITS}.{name}").register(registry)


@cache
def shipped_kits() -> tuple[str, ...]:
    """Return the names of the kits in this distribution."""
    package = importlib.import_module(KITS)
    return tuple(found.name for found in pkgutil.iter_modules(package.__path__) if found.ispkg)


def register_installed(registry: Registry) -> None:
    """Register what installed packages bring: single names, and kits."""
    for kind, name, target in _installed():
        if kind == "kit":
            with foreign_code(f"kit {name!r} ({target}) cannot be registered, update or remove its package:"):
                resolve_target(target)(registry)
        else:
            registry.add(kind, name, target)


@cache
def _installed() -> tuple[tuple[str, str, str], ...]:
    """Return what installed packages bring, as (kind, name, target); every package's files are read once a process."""
    if not _others_are_installed():
        return ()
    from importlib.metadata import entry_points

    points = entry_points()
    kinds = (*KINDS, "kit")
    return tuple((kind, point.name, point.value) for kind in kinds for point in points.select(group=f"snellen.{kind}"))


def _others_are_installed() -> bool:
    """Tell whether any installed package names a group of ours.

    importlib.metadata takes 30 ms to say so, which would double `snellen --help`; the files themselves take one or two.
    Where packages may come from elsewhere than folders, it is asked nevertheless.
    """
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    if len(finders) > 1 or any(os.path.isfile(entry) for entry in sys.path):  # noqa: PTH113 - see above
        return True
    return any(_names_a_group_of_ours(entry or ".") for entry in sys.path)


def _names_a_group_of_ours(folder: str) -> bool:
    for name in os.listdir(folder) if os.path.isdir(folder) else ():  # noqa: PTH112, PTH208
        if name.endswith(("dist-info", "egg-info")):
            with suppress(OSError), open(f"{folder}/{name}/entry_points.txt", "rb") as file:  # noqa: PTH123
                if b"[snellen." in file.read():
                    return True
    return False


def resolve_target(target: Target) -> Any:
    """Return what `module:attribute` (or `module`) names, importing it; an object is returned as it is."""
    if not isinstance(target, str):
        return target
    module, _, attribute = target.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found
