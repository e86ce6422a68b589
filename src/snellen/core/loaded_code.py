"""A plug-in to a hash of everything it loaded: its file, the modules it imports, the files it opens or is given.

Modules are found in the source, also where a function imports them later, and so are environment variables; files by
what the interpreter is seen to open (`sys.addaudithook`) while a plug-in is loaded, made or called. Installed packages
count by their version. What it reaches beyond that is told: no hash covers it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from .secret import names_a_key, slow_hash

BEYOND = {
    "socket.connect": "connects to a server",
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.posix_spawn": "starts a program",
}
"""What no hash of files covers, by the name of its audit event."""
UNNAMED = "reads environment variables that its source does not name"
WHERE = frozenset({"CUDA_VISIBLE_DEVICES", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
WHERE |= {"HOME", "PATH", "TMPDIR", "USER", "HF_HOME", "HF_HUB_CACHE", "TORCH_HOME"}
WHERE_PREFIXES = ("SLURM_", "OMP_", "SNELLEN_")
"""Environment variables that say where it is computed and stored, not what."""
ENGINES = ("torch", "transformers", "tokenizers")
"""Packages that compute replies: they count too where a plug-in has them by way of another package."""
MODULE_ENDINGS = (".py", ".pyc")
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".onnx", ".gguf", ".npz")
"""Files that libraries map into memory unseen: they count where a file beside them was opened."""
SMALL = 2**22
BLOCKS = 256
"""Of a larger file so many blocks, spread evenly: weights that were tuned with both ends frozen differ in between."""
MOST_FILES = 2_000


class Seen:
    """What was opened, and what was reached beyond files, while somebody looked."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.beyond: dict[str, None] = {}


_watch = threading.local()
_file_of: dict[str, str] = {}
_of_module: dict[str, Seen] = {}
"""What plug-in files opened while they were loaded, by the name of their module."""


@cache
def _listen() -> None:
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    seen: Seen | None = getattr(_watch, "seen", None)
    if seen is None:
        return
    if event == "open":
        path, mode = arguments[0], arguments[1]
        if isinstance(path, str) and not (isinstance(mode, str) and set(mode) & set("wax+")):
            seen.files[path] = None
    elif event in BEYOND:
        seen.beyond[BEYOND[event]] = None


@contextmanager
def watching(seen: Seen) -> Iterator[None]:
    """Note what this thread opens and reaches in the block."""
    _listen()
    before = getattr(_watch, "seen", None)
    _watch.seen = seen
    try:
        yield
    finally:
        _watch.seen = before


@contextmanager
def loading(module: str, file: str) -> Iterator[None]:
    """Note what a plug-in's file opens while it is loaded.

    Loaded again it opens less, because its modules are there: what was seen stays. Another file under the same name
    begins anew.
    """
    if _file_of.get(module) != file:
        _file_of[module], _of_module[module] = file, Seen()
    with watching(_of_module[module]):
        yield


class FreshSource(SourceFileLoader):
    """Compiles a source whenever it is loaded.

    Python believes a compiled file by the second and the size of its source. An edit may change neither, and then the
    former code would answer under the hash of the new one.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of what the file holds now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _BesidePlugins(MetaPathFinder):
    """Finds modules as the interpreter does; those that lie beside plug-ins are loaded from their sources."""

    def __init__(self) -> None:
        self.folders: dict[str, None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a module beside a plug-in; None of every other."""
        found = PathFinder.find_spec(fullname, path, target)
        if found is None or type(found.loader) is not SourceFileLoader or not found.origin:
            return None
        origin = str(Path(found.origin).resolve())
        if not origin.startswith(tuple(self.folders)) or not is_own(origin):
            return None
        found.loader = FreshSource(fullname, found.origin)
        return found


_beside = _BesidePlugins()


def plugin_spec(name: str, file: Path) -> ModuleSpec | None:
    """Return how to load a plug-in's file, and from now on the modules beside it: by their sources."""
    _beside.folders[f"{file.resolve().parent}{os.sep}"] = None
    if _beside not in sys.meta_path:
        sys.meta_path.insert(0, _beside)
    if file.suffix != ".py":
        return importlib.util.spec_from_file_location(name, file)
    return importlib.util.spec_from_file_location(name, file, loader=FreshSource(name, str(file)))


@cache
def _installed_places() -> tuple[str, ...]:
    paths = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    ours = str(Path(__file__).resolve().parents[1])
    system = ("/usr", "/etc", "/proc", "/sys", "/dev", "/lib", "/opt/venv", sys.prefix, sys.base_prefix)
    return tuple(f"{Path(path).resolve()}/" for path in (*paths, ours, *system))


def is_own(path: str) -> bool:
    """Tell whether a file is of the user, not of an installed package, of the interpreter or of the system."""
    real = str(Path(path).resolve())
    return not real.startswith(_installed_places()) and "site-packages" not in real and "dist-packages" not in real


class Loaded:
    """What a plug-in consists of: `files` by a name with a hash each, and what of it cannot be hashed."""

    def __init__(self, module: str, arguments: Mapping[str, Any], made: Seen | None = None) -> None:
        self._paths: dict[Path, None] = {}
        self.module = sys.modules[module]
        own = str(self.module.__file__)
        self.file = hash_file(Path(own))
        self._skip = Path(own).resolve()
        self.beyond: dict[str, None] = {}
        imported = list(_imports(own, getattr(self.module, "__package__", "") or ""))
        for found in imported:
            self._add(found.origin)
        self.packages = _versions(imported)
        self._variables = variables_of(own, *(found.origin for found in imported if found.is_own))
        if None in self._variables:
            self.beyond[UNNAMED] = None
        for seen in filter(None, (_of_module.get(module), made)):
            self.take(seen)
        for value in arguments.values():
            if isinstance(value, str) and value:
                self._add(str(Path(value).expanduser()))

    def take(self, seen: Seen) -> list[Path]:
        """Add what was opened and reached; return the files that are new."""
        before = len(self._paths)
        for path in seen.files:
            self._add(path)
            for beside in _weights_beside(path):
                self._add(beside)
        self.beyond |= seen.beyond
        return list(self._paths)[before:]

    def _add(self, path: str) -> None:
        real = Path(path).resolve()
        if real != self._skip and not _is_compiled(real) and is_own(path) and _is_there(real):
            self._paths[real] = None

    def files(self) -> dict[str, str]:
        """Return a hash of each file and folder but the plug-in's own, and of each `$VARIABLE` it reads, by name."""
        named = {f"${name}": _hash_variable(name) for name in sorted(filter(None, self._variables))}
        for path in sorted(self._paths):
            name = path.name if path.name not in named else "/".join(path.parts[-2:])
            named[name] = hash_file(path) if path.is_file() else hash_folder(path)
        return named


def _is_compiled(path: Path) -> bool:
    """Tell whether the interpreter made a file from a source, which counts itself."""
    kept = sys.pycache_prefix
    return "__pycache__" in path.parts or bool(kept and path.is_relative_to(Path(kept).resolve()))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # an argument may be any text
        return False


def code_of(thing: Any) -> Loaded | None:
    """Return what a function, a class or an object of a plug-in consists of; None of anything else."""
    named = thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)
    module = sys.modules.get(getattr(named, "__module__", "") or "")
    file = getattr(module, "__file__", None)
    if module is None or not file or not is_own(file) or not any(map(partial(_brings, file), _of_module)):
        return None
    return Loaded(module.__name__, {})


def _brings(file: str, plugin: str) -> bool:
    """Tell whether a module is a plug-in's, or is imported by it."""
    module = sys.modules.get(plugin)
    own = str(getattr(module, "__file__", ""))
    return module is not None and (file == own or any(file == found.origin for found in _imports(own, "")))


def hashes_of(thing: Any) -> dict[str, str]:
    """Return the files of a plug-in's function, class or object with their hashes; nothing of anything else."""
    loaded = code_of(thing)
    if loaded is None:
        return {}
    return {Path(str(loaded.module.__file__)).name: loaded.file, **loaded.files()}


def packages_of(thing: Any) -> dict[str, str]:
    """Return the installed packages that a plug-in's function, class or object imports, with their versions."""
    loaded = code_of(thing)
    return {} if loaded is None else loaded.packages


def hash_file(path: Path) -> str:
    """Hash a file: a small one whole, a large one by its size and blocks from all over it, both ends among them.

    A large one is read once in a process, and again if its size or time changed.
    """
    status = path.stat()
    if status.st_size > SMALL:
        return _hash_large(path, status.st_size, (status.st_mtime_ns, status.st_ctime_ns))
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@lru_cache(MOST_FILES)
def _hash_large(path: Path, size: int, changed_ns: tuple[int, int]) -> str:
    digest = hashlib.sha256(f"{size}:".encode())
    block = SMALL // BLOCKS
    with path.open("rb") as stream:
        for number in range(BLOCKS):
            stream.seek((size - block) * number // (BLOCKS - 1))
            digest.update(stream.read(block))
    return digest.hexdigest()[:16]


def hash_folder(path: Path, pattern: str = "**/*") -> str:
    """Hash the names and contents of a folder's files, those below too; of one with very many, the first by name."""
    digest = hashlib.sha256()
    files = sorted(file for file in path.glob(pattern) if file.is_file() and "__pycache__" not in file.parts)
    for file in files[:MOST_FILES]:
        digest.update(f"{file.relative_to(path)}:{hash_file(file)}\n".encode())
    return digest.hexdigest()[:16]


def _weights_beside(path: str) -> Iterable[str]:
    if path.endswith(MODULE_ENDINGS) or not is_own(path):
        return ()
    try:
        return [str(file) for file in Path(path).resolve().parent.iterdir() if file.name.endswith(WEIGHTS)]
    except OSError:
        return ()


class _Import(NamedTuple):
    name: str
    origin: str
    is_own: bool


def _imports(file: str, package: str) -> Iterator[_Import]:
    """Yield the modules that a file imports, and those of the user's own that they import in turn."""
    waiting, known = [(file, package)], {file}
    while waiting:
        here, inside = waiting.pop()
        for name in _names_in(here, inside):
            spec = _spec_of(name, Path(here).parent)
            origin = getattr(spec, "origin", None)
            if not origin or origin in known or not origin.endswith((".py", ".so")):
                continue
            known.add(origin)
            found = _Import(name, origin, origin.endswith(".py") and is_own(origin))
            yield found
            if found.is_own:
                waiting.append((origin, name if spec.submodule_search_locations else name.rpartition(".")[0]))


def _versions(imported: Iterable[_Import]) -> dict[str, str]:
    """Return the version of each installed package among imports, of one that has none a hash of its file."""
    roots = {name.partition(".")[0]: origin for name, origin, is_own in imported if not is_own}
    ours = {*sys.stdlib_module_names, __name__.partition(".")[0]}
    known = {name: origin for name, origin in roots.items() if name not in ours}
    versions = {name: _version_of(name, origin) for name, origin in known.items()}
    return dict(sorted((_engines_behind(known) | versions).items()))


def _engines_behind(packages: Iterable[str]) -> dict[str, str]:
    """Return the engines that packages need, with their versions.

    What else this process has imported says nothing of a plug-in.
    """
    waiting = list(packages)
    known = set(waiting)
    while waiting:
        new = set(_needs_of(waiting.pop())) - known
        known |= new
        waiting += new
    versions = {}
    for name in known.intersection(ENGINES):
        with suppress(PackageNotFoundError):  # needed on another machine
            versions[name] = version(name)
    return versions


@cache
def _needs_of(package: str) -> tuple[str, ...]:
    try:
        told = requires(package) or ()
    except PackageNotFoundError:
        return ()
    return tuple(re.split(r"[^\w.-]", one, maxsplit=1)[0].lower() for one in told if "extra ==" not in one)


def _version_of(name: str, origin: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # named otherwise than its module: PIL, yaml
        told = getattr(sys.modules.get(name), "__version__", None)
        return told if isinstance(told, str) else hash_file(Path(origin))


def _hash_variable(name: str) -> str:
    value = os.environ.get(name)
    return "unset" if value is None else slow_hash(value, name)


def variables_of(*files: str) -> set[str | None]:
    """Return the environment variables that sources read, but those of `WHERE` and keys; None: some without a name."""
    found = {name for file in files for name in _read_at(file)}
    return {
        name
        for name in found
        if name is None or not (name in WHERE or name.startswith(WHERE_PREFIXES) or names_a_key(name))
    }


def _read_at(file: str) -> frozenset[str | None]:
    try:
        return _variables_at(file, Path(file).stat().st_mtime_ns)
    except (OSError, SyntaxError, ValueError):
        return frozenset()


@lru_cache(1024)
def _variables_at(file: str, changed: int) -> frozenset[str | None]:
    tree = ast.parse(Path(file).read_bytes())
    named: dict[int, str | None] = {}
    for node in ast.walk(tree):
        for place, name in _names_a_variable(node):
            named[id(place)] = name
    places = (node for node in ast.walk(tree) if _is_environment(node))
    return frozenset(name for node in places if (name := named.get(id(node))) != "")


def _is_environment(node: ast.AST) -> bool:
    word = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return word in ("environ", "getenv")


def _names_a_variable(node: ast.AST) -> Iterator[tuple[ast.AST, str | None]]:
    """Yield where a node reads the environment, with the variable's name; an empty one where it only writes."""
    if isinstance(node, ast.Subscript):
        is_read = isinstance(node.ctx, ast.Load)
        yield node.value, _text(node.slice) if is_read else ""
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr != "getenv":
        if node.func.attr in ("get", "setdefault", "pop") and node.args:
            yield node.func.value, _text(node.args[0])
        elif node.func.attr == "update":
            yield node.func.value, ""
    elif isinstance(node, ast.Call) and node.args:
        yield node.func, _text(node.args[0])
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        yield node.comparators[0], _text(node.left)


def _text(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _names_in(file: str, package: str) -> list[str]:
    try:
        return _names_at(file, package, Path(file).stat().st_mtime_ns)
    except (OSError, SyntaxError, ValueError):
        return []


@lru_cache(1024)
def _names_at(file: str, package: str, changed: int) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(Path(file).read_bytes())):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names += (base, *(f"{base}.{alias.name}" for alias in node.names))
    return names


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join(filter(None, (*parents, node.module)))


def _spec_of(name: str, beside: Path) -> Any:
    """Return where a module comes from: as it was imported, as it would be, or beside the file that names it."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__spec__", None)
    if name.partition(".")[0] in sys.stdlib_module_names:
        return None
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        found = None
    path = beside.joinpath(*name.split(".")).with_suffix(".py")
    return found or (importlib.util.spec_from_file_location(name, path) if path.is_file() else None)
