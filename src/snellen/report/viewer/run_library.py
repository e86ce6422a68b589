"""Folders to the runs in them, each opened once, read-only, and read again when it has grown."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...core.builtins import default_registry
from ...core.errors import SnellenError, UsageError
from ...core.markup import Html
from ...core.registry import Registry, resolve_target
from ...core.tasks import RunHeader, Task
from ...core.types import TrialKey
from ...scoring.aggregates.error_groups import MOST_GROUPED, ErrorGroup, Mistake, read_errors
from ...scoring.judges.labels import DrawnTasks, drawn_tasks
from ...scoring.protocols.readings import Reading
from ...scoring.run import score_run
from ...scoring.stored import LIVE_SCORING, metrics_of, read_columns, read_costs
from ...scoring.tables.table import Costs, TrialColumns
from ...store.database import damaged
from ...store.merge import FollowedParts
from ...store.part_log import FOLDER, PLAN
from ...store.part_progress import part_states, read_attempts
from ...store.reader import RunReader
from ..pages.ledger import Note, read_notes
from ..pages.overview import TaskOverview, overview_of
from ..query import LastSifted, TextSearch, group_values
from ..run_briefs import LOADED, TRASH, RunBrief, header_brief, named_folders, run_key, thrown_runs, written_brief
from ..stored_results import Results, read_results, written_results

DEPTH = 3
"""How deep below a named folder runs are looked for."""
MOST_OPEN = 32
"""So many runs stay open: each takes three files, and a process may have 256 of them."""
MOST_TRIALS = 2_000_000
"""Trials of a run that is opened: reading them takes some 20 s of a core, and up to 2.4 GB."""
T = TypeVar("T")
Version = tuple[int, int, int, int]
"""When the database and its log were written last, and how large they are."""
REST = 3.0
"""A growing run is read again after at most this many times as long as reading took."""


class NotFound(Exception):
    """What was asked for is not there."""


class Progress(Struct, frozen=True):
    """Where a run stands, counted directly in its database."""

    planned: int
    stored: int

    @property
    def complete(self) -> bool:
        """Tell whether every planned trial is stored."""
        return self.stored >= self.planned


class OpenRun:
    """One run: its reader, and what was computed from what it held when last looked at. All use is under `lock`."""

    def __init__(self, key: str, name: str, folder: Path, desk: Desk, registry: Registry) -> None:
        self._parts = None if (folder / "run.db").exists() else FollowedParts(folder)
        """Of a run whose parts are still asked: it is read from where they are joined for us."""
        self.key, self.name, self.folder = key, name, folder
        self.is_load = False
        """Whether its replies came under a load that `snellen perf` measured."""
        if self._parts is not None:
            self._parts.refresh()
            self.folder = folder = self._parts.folder
        self.registry = registry
        self.lock = threading.RLock()
        self._files = tuple(str(folder / name) for name in ("run.db", "run.db-wal", "results.json"))
        self._desk = desk
        self._reader: RunReader | None = None
        self._inode = 0
        self._told: dict[str, tuple[object, Any]] = {}
        """What costs little and is never older than the page that shows it: when it was made, and what it is."""
        self._version: tuple[Version, int] | None = None
        self._fresh_after = 0.0
        self._kept: dict[tuple[str, ...], Any] = {}
        """What takes long to make, for as long as `refresh` lets it stand."""

    @property
    def reader(self) -> RunReader:
        """Return its reader, opened if it is not: of many runs only those used last are open."""
        if self._reader is None:
            self._reader, self._inode = RunReader(self.folder), _inode(self._files[0])
        self._desk.used(self)
        return self._reader

    def close(self) -> bool:
        """Close the reader unless someone uses it right now; tell whether it is closed."""
        if not self.lock.acquire(blocking=False):
            return False
        try:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
            return True
        finally:
            self.lock.release()

    def header(self) -> RunHeader:
        """Return the header."""
        return self._tell("header", self.version(), lambda: self.reader.header())  # noqa: PLW0108 - opened only then

    def brief(self) -> RunBrief:
        """Return by what the run is found and ordered in a list: told by its files, so that it need not be open."""
        return self._tell("brief", self.written(), lambda: written_brief(self.folder) or header_brief(self.header()))

    def notes(self) -> list[Note]:
        """Return what people said of the run and its trials; nothing where that cannot be read: see `notes_problem`."""
        return self._notes()[0]

    @property
    def notes_problem(self) -> str:
        """Return why the notes of the run cannot be read; empty where they can. Its numbers do not hang on them."""
        return self._notes()[1]

    def _notes(self) -> tuple[list[Note], str]:
        try:
            return read_notes(self.folder), ""
        except SnellenError as error:
            return [], str(error)

    def progress(self) -> Progress:
        """Count what is stored: cheap, so it is never older than the page that shows it."""
        return self._tell("progress", self.version(), self._count)

    def _count(self) -> Progress:
        stored = next(self.reader.rows("SELECT COUNT(*) FROM predictions"))[0]
        return Progress(sum(self.header().planned.values()), stored)

    def parts(self) -> dict[str, int]:
        """Return in which states the parts of a run are that is still asked in parts; none of another run."""
        if self._parts is None:
            return {}
        states = part_states(read_attempts(self._parts.source, time.time()))
        return dict(Counter(one.state for one in states))

    def failures(self) -> int:
        """Count the stored trials that failed: that takes a pass over them, so only where it is shown."""
        query = "SELECT COALESCE(SUM(failed), 0) FROM predictions"
        return self._tell("failures", self.version(), lambda: int(next(self.reader.rows(query))[0]))

    def version(self) -> Version:
        """Return what changes whenever anyone wrote to the run: told by its files, so that it need not be open."""
        return *_stamp(self._files[0]), *_stamp(self._files[1])

    @contextmanager
    def held(self) -> Iterator[OpenRun]:
        """Hold the run for one answer, read again first if it has grown."""
        with self.lock:
            self.refresh()
            try:
                yield self
            except msgspec.DecodeError as error:  # as `RunReader` tells whoever opens one for a block
                raise damaged(self.folder / "run.db", f"a stored record is none: {error}") from None

    def refresh(self) -> None:
        """Forget what was computed if the run has grown since; large runs are given a rest between readings."""
        self._follow()
        version, now = self.written(), time.monotonic()
        if version != self._version and now >= self._fresh_after:
            self._version, self._kept = version, {}

    def _follow(self) -> None:
        """Join what parts have asked since, and open the file anew that took the place of the one we read."""
        if self._parts is not None:
            self._parts.refresh()
        inode = _inode(self._files[0])
        if self._reader is not None and inode != self._inode:
            self._reader.close()
            self._reader = None
        self._inode = inode

    def written(self) -> tuple[Version, int]:
        """Return what changes whenever the run or its results were written."""
        return self.version(), self._results_written()

    def _results_written(self) -> int:
        return _stamp(self._files[2])[0]

    def task(self, name: str) -> Task:
        """Return a task by name, the first one for the empty name."""
        tasks = self.header().tasks
        found = next((task for task in tasks if task.name == name or not name), None)
        if found is None:
            raise UsageError(
                f"this run has no task {name!r}; it has {', '.join(task.name for task in tasks) or 'none'}"
            )
        return found

    def columns(self, task: str, metric: str = "") -> TrialColumns:
        """Return the trials of a task as columns."""
        found = self.task(task)
        known = metrics_of(self.reader, found.name) if metric else []
        metric = metric if metric in known[1:] else ""  # the first is what stands for none: it is not read twice
        return self._keep(("columns", found.name, metric), lambda: self._read(found, metric or None))

    def _read(self, task: Task, metric: str | None) -> TrialColumns:
        """Read the columns of a task; refuse to hold more than a machine can, and say what helps."""
        if self.progress().stored > MOST_TRIALS:
            why = f"{self.progress().stored:,} trials are too many to be looked at in a browser (most: {MOST_TRIALS:,})"
            helps = "report.html shows its figures, `snellen show` single trials, records.jsonl holds all"
            raise UsageError(f"{why}: {helps}")
        return read_columns(self.reader, task, metric, self.registry)

    def errors(self, task: str) -> list[ErrorGroup]:
        """Return why answers of a task are not right, in groups; nothing of a task with too many trials to read."""
        if len(self.columns(task)) > MOST_GROUPED or not self.reader.has_scores(task):
            return []
        return self._keep(("errors", task), lambda: read_errors(self.reader, task))

    def mistakes(self, task: str, kind: str) -> Sequence[Mistake]:
        """Return the trials of a task that are not right for one reason."""
        return next((group.trials for group in self.errors(task) if group.kind == kind), ())

    def error_of(self, key: TrialKey) -> str:
        """Return why a trial is not right; empty where it is, or where nobody knows."""
        kinds: dict[TrialKey, str] = self._keep(
            ("error of", key.task),
            lambda: {one.key: group.kind for group in self.errors(key.task) for one in group.trials},
        )
        return kinds.get(key, "")

    def costs(self, task: str) -> Costs:
        """Return latency and tokens of the trials of a task, read at their first use."""
        return self._keep(("costs", task), lambda: read_costs(self.reader, self.columns(task)))

    def groups(self, task: str) -> dict[str, list[str]]:
        """Return what the trials of a task can be grouped by."""
        return self._keep(("groups", task), lambda: group_values(self.columns(task)))

    def search(self, task: str) -> TextSearch:
        """Return the text search of a task, made at its first use."""
        return self._keep(("search", task), lambda: TextSearch(self.reader, self.columns(task)))

    def last_sifted(self, task: str) -> LastSifted:
        """Return what the last filters found in a task."""
        return self._keep(("sifted", task), LastSifted)

    def results(self) -> Results:
        """Return the results of what is stored."""
        return self._keep(("results",), self._read_results)

    def _read_results(self) -> Results:
        """Take what is written where it fits: of a thousand runs only a few are open."""
        written = written_results(self.folder, self.header(), self.progress().stored)
        return written or read_results(self.reader, self.header(), most=LIVE_SCORING, registry=self.registry)

    def drawn(self, judge: str) -> DrawnTasks:
        """Return the replies that a judge judged, in the order in which people are to look at them."""
        return self._keep(("drawn", judge), lambda: drawn_tasks(self.reader, judge))

    def rescored(self, profile: str) -> Results:
        """Return the results as another profile reads the replies; nothing is written."""
        how: dict[str, Any] = {"reading": Reading(profile), "keep": False}
        return self._keep(("again", profile), lambda: score_run(self.reader, self.registry, **how))

    def overview(self, task: str) -> TaskOverview:
        """Return a task with its figures."""
        return self._keep(
            ("overview", task),
            lambda: overview_of(self.reader, self.task(task), self.results(), columns=self.columns(task)),
        )

    def has_overview(self, task: str) -> bool:
        """Tell whether a task's figures are at hand."""
        return ("overview", task) in self._kept

    def _tell(self, name: str, stamp: object, make: Callable[[], T]) -> T:
        """Return what was made when the run was as the stamp says, made anew where it was not."""
        if name not in self._told or self._told[name][0] != stamp:
            self._told[name] = (stamp, make())
        told: T = self._told[name][1]
        return told

    def _keep(self, key: tuple[str, ...], make: Callable[[], T]) -> T:
        if key not in self._kept:
            started = time.monotonic()
            self._kept[key] = make()
            self._fresh_after = time.monotonic() + REST * (time.monotonic() - started)
        kept: T = self._kept[key]
        return kept


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - as below
    except OSError:
        return 0


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked for thousands of files a page
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


class Desk:
    """The runs whose files are open, the one used last at the end; beyond MOST_OPEN those used least are closed."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, OpenRun] = OrderedDict()
        self._lock = threading.Lock()

    def used(self, run: OpenRun) -> None:
        """Note that a run is used now, and close what was not for the longest time."""
        with self._lock:
            self._runs[run.key] = run
            self._runs.move_to_end(run.key)
            for key, other in list(self._runs.items())[: max(0, len(self._runs) - MOST_OPEN)]:
                if other is not run and other.close():
                    del self._runs[key]


class RunLibrary:
    """All runs below the named folders. A run is known by a hash: no address ever holds a path."""

    def __init__(self, folders: Sequence[Path], registry: Registry | None = None) -> None:
        self._registry = registry or default_registry()
        self._roots = [folder.resolve() for folder in folders]
        for folder in self._roots:
            if not folder.is_dir():
                raise UsageError(f"no folder {folder}: name a run, or the folder that holds runs, mostly `runs`")
        self._open: dict[str, OpenRun] = {}
        self._loads: set[Path] = set()
        self._listed = [page for page in self._registry.entries("page").values() if page.listed]
        self._holders: dict[str, set[Path]] = {}
        self._desk = Desk()
        self._lock = threading.Lock()
        self.problems: dict[str, str] = {}

    @property
    def roots(self) -> Sequence[Path]:
        """Return the folders that are shown."""
        return self._roots

    def runs(self) -> list[OpenRun]:
        """Return all runs that can be read, by name, each looked into; what cannot is in `problems`, and why."""
        return self._look(lambda run: run.progress())

    def listed(self) -> list[OpenRun]:
        """Return all runs by name, those whose results are as new as they are without being opened."""
        return self._look(lambda run: run.brief())

    def known(self, key: str) -> OpenRun | None:
        """Return a run that was seen before by its key; nothing is looked for."""
        return self._open.get(key)

    def find(self, key: str) -> OpenRun | None:
        """Return a run by its key."""
        return self.known(key) or next((run for run in self.listed() if run.key == key), None)

    def run(self, key: str) -> OpenRun:
        """Return a run by its key. Raises NotFound, which the viewer answers with a page."""
        run = self.find(key)
        if run is None:
            raise NotFound("there is no such run here")
        return run

    def folders_with(self, name: str) -> list[Path]:
        """Return the folders that hold a file by which a kit knows its own, as seen when runs were last looked for."""
        return sorted(self._holders.get(name, ()))

    def listed_by_kits(self, text: str = "") -> list[tuple[Html | None, bool]]:
        """Return what kits list of their folders in whose names a text is, and whether something of it goes on."""
        pages = [page for page in self._listed if self.folders_with(page.known_by)]
        return [resolve_target(page.listed)(self, text) for page in pages]

    def thrown(self) -> dict[str, Path]:
        """Return the runs in the trash by their keys."""
        places = dict.fromkeys(place for root in self._roots for place in (root, root.parent))
        found = [folder for place in places for folder in thrown_runs(place, DEPTH)]
        ours = [folder for folder in found if self._is_ours(folder)]
        return {run_key(folder): folder for folder in ours}

    def root_of(self, folder: Path) -> Path:
        """Return the named folder that holds a run."""
        return next(root for root in self._roots if folder.is_relative_to(root))

    def forget(self, run: OpenRun) -> None:
        """Close a run that is about to leave its place."""
        with run.lock, self._lock:
            run.close()
            self._open.pop(run.key, None)

    def _is_ours(self, thrown: Path) -> bool:
        """Tell whether a thrown run lay in or below a named folder; beside a named run lie the runs of others."""
        trash = next(parent for parent in thrown.parents if parent.name == TRASH)
        place = trash.parent.joinpath(*thrown.relative_to(trash).parts[1:])
        return any(place.is_relative_to(root) for root in self._roots)

    def _look(self, look: Callable[[OpenRun], object]) -> list[OpenRun]:
        with self._lock:
            self.problems = {}
            found = self._walk()
            runs = [run for run in (self._open_run(folder, look) for folder in found) if run is not None]
            self._open = {run.key: run for run in runs}
            return sorted(runs, key=lambda run: run.name)

    def _walk(self) -> list[Path]:
        """Return the folders of runs; those of kits are kept as they are seen on the way."""
        found, self._loads = set(), set()
        holders: dict[str, set[Path]] = {page.known_by: set() for page in self._listed}
        for folder, names in (each for root in self._roots for each in named_folders(root, DEPTH)):
            found |= {folder} if "run.db" in names or {PLAN, FOLDER} <= names else set()
            self._loads |= {folder} if LOADED & names else set()
            for name in holders.keys() & names:
                holders[name].add(folder)
        self._holders = holders
        return sorted(found)

    def _open_run(self, folder: Path, look: Callable[[OpenRun], object]) -> OpenRun | None:
        key = run_key(folder)
        name = self.name_of(folder)
        try:
            run = self._open.get(key) or OpenRun(key, name, folder, self._desk, self._registry)
            run.is_load = folder in self._loads
            look(run)
        except (SnellenError, sqlite3.Error, ValueError) as error:
            self.problems[name] = str(error)
            return None
        return run

    def name_of(self, folder: Path) -> str:
        """Return a folder's name: its path below the folder that is shown."""
        root = self.root_of(folder)
        return str(folder.relative_to(root)) if folder != root else root.name


def run_titles(runs: Sequence[OpenRun], names: Sequence[str] = ()) -> list[str]:
    """Return the model of each run, with the run's name (or its one of `names`) where two have the same model."""
    models = []
    for run in runs:
        with run.lock:
            models.append(run.header().model)
    if len(set(models)) == len(models):
        return models
    called = names or [run.name for run in runs]
    return [f"{model} ({name})" for model, name in zip(models, called, strict=True)]
