"""This machine to findings: versions, extras, disk, keys, and what the response cache holds."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ..core.builtins import default_registry
from ..core.folders import cache_folder
from ..core.version import __version__
from ..store.cache import open_cache
from ..store.damage import Health, Repaired
from ..store.damage import look_at_run as look_at_store
from ..store.damage import repair_run as repair_store
from ..store.database import NETWORK_FILE_SYSTEMS, file_system_of


def look_at_run(folder: str | Path) -> Health:
    """Return whether a run is sound, and how many of its rows can be read; nothing is changed."""
    return look_at_store(Path(folder))


def repair_run(folder: str | Path) -> Repaired:
    """Save every readable row of a damaged run into a new run.db; the same `snellen run` then asks what was lost."""
    return repair_store(Path(folder))


EXTRAS = {
    "ocr": (("rapidocr", "onnxruntime"), "the embedded reader"),
    "parquet": (("pyarrow",), "Parquet and Arrow files"),
    "xlsx": (("python_calamine",), "Excel workbooks"),
    "hub": (("huggingface_hub",), "datasets from a hub"),
    "hf": (("torch", "transformers", "accelerate", "num2words"), "local checkpoints"),
    "train": (("torch", "transformers", "trl", "peft", "accelerate", "datasets"), "training"),
    "vllm": (("vllm",), "the offline vLLM engine"),
    "ray": (("ray",), "replicas on a cluster"),
    "caption": (("pycocoevalcap",), "METEOR and PTB tokens for captions"),
    "video": (("av",), "videos"),
    "parse": (("markdown_it", "lxml", "bs4", "pylatexenc", "fuzzysearch"), "parsed pages"),
    "parse-ocrbench": (("nltk", "jieba"), "full pages by the rule of OCRBench v2"),
    "view": (("starlette", "uvicorn", "markdown_it", "latex2mathml"), "the viewer"),
    "plots": (("vl_convert",), "plots as SVG and PNG"),
    "tensorboard": (("tensorboard",), "--log tensorboard"),
    "mlflow": (("mlflow", "sqlalchemy", "alembic"), "--log mlflow"),
    "wandb": (("wandb",), "--log wandb"),
}
"""Extra -> (the modules it brings, what they are for)."""
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
LEAST_FREE_BYTES = 500 * 2**20


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    ok: bool
    text: str
    needed: bool = False


def look_around() -> list[Finding]:
    """Return what this machine has and lacks, and what to do about it."""
    return [*_look_at_machine(), *_look_at_extras(), *_look_by_kits(), *_look_at_keys()]


def _look_at_machine() -> list[Finding]:
    free = shutil.disk_usage(Path.cwd()).free
    system = file_system_of(Path.cwd() / "x")
    on_network = system.startswith(NETWORK_FILE_SYSTEMS)
    warning = ": runs are safer on a local disk" if on_network else ""
    cache = cache_folder()
    writable = os.access(next(folder for folder in (cache, *cache.parents) if folder.exists()), os.W_OK)
    remedy = "" if writable else ": not writable, set SNELLEN_CACHE_DIR"
    return [
        Finding("snellen", True, f"{__version__} on Python {platform.python_version()}, {platform.platform()}"),
        Finding("free disk", free > LEAST_FREE_BYTES, f"{free / 2**30:.1f} GB in {Path.cwd()}", needed=True),
        Finding("file system", not on_network, f"{system or 'unknown'}{warning}"),
        Finding("cache folder", writable, f"{cache}{remedy}", needed=True),
    ]


def _look_at_extras() -> list[Finding]:
    findings = []
    for extra, (modules, purpose) in EXTRAS.items():
        complete = all(importlib.util.find_spec(module) for module in modules)
        remedy = "" if complete else f": pip install 'snellen[{extra}]'"
        findings.append(Finding(f"extra {extra}", complete, f"{purpose}{remedy}"))
    tesseract = shutil.which("tesseract")
    hint = "for reader/tesseract: apt-get install tesseract-ocr"
    return [*findings, Finding("tesseract", tesseract is not None, tesseract or hint)]


def _look_by_kits() -> Iterator[Finding]:
    """Yield what registered checks find."""
    registry = default_registry()
    for name in registry.names("check"):
        yield from registry.get("check", name)()


def _look_at_keys() -> list[Finding]:
    known = {name: bool(os.environ.get(name)) for name in KEYS}
    return [Finding(name, is_set, "is set" if is_set else "is not set") for name, is_set in known.items()]


def cache_info() -> dict[str, Any]:
    """Return where the response cache is, how large, and how many replies of which models it holds."""
    with closing(open_cache()) as cache:
        return cache.info()


def prune_cache(older_than_s: float) -> int:
    """Forget cached replies older than so many seconds; return how many. Runs keep theirs."""
    with closing(open_cache()) as cache:
        return cache.prune(older_than_s, time.time())
