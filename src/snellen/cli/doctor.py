"""`snellen doctor`: what this machine has, and what to do about what it lacks."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from .. import __version__

EXTRAS = {
    "ocr": (("rapidocr", "onnxruntime"), "the embedded reader"),
    "parquet": (("pyarrow",), "Parquet files"),
    "hub": (("datasets",), "datasets from a hub"),
    "hf": (("torch", "transformers", "accelerate"), "local checkpoints"),
    "vllm": (("vllm",), "the offline vLLM engine"),
    "caption": (("pycocoevalcap",), "METEOR and PTB tokens for captions"),
    "view": (("starlette", "uvicorn"), "the viewer"),
    "plots": (("altair", "vl_convert"), "plots as SVG and PNG"),
    "ray": (("ray",), "many machines"),
}
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
LEAST_FREE_BYTES = 500 * 2**20


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    ok: bool
    text: str
    needed: bool = False


@click.command(epilog="\b\nExample:\n  snellen doctor --json")
@click.option("--json", "as_json", is_flag=True, help="Machine output.")
def doctor(as_json: bool) -> int:
    """Look at this machine: versions, extras, disk, cache, keys. Exit 3 if something needed is missing."""
    findings = [*_look_at_machine(), *_look_at_extras(), *_look_at_keys()]
    if as_json:
        click.echo(msgspec.json.encode([finding._asdict() for finding in findings]).decode())
    else:
        for finding in findings:
            mark = "ok " if finding.ok else "BAD" if finding.needed else " – "
            click.echo(f"{mark} {finding.what:16} {finding.text}")
    return 3 if any(finding.needed and not finding.ok for finding in findings) else 0


def _look_at_machine() -> list[Finding]:
    from ..core.folders import cache_folder
    from ..store.database import NETWORK_FILE_SYSTEMS, file_system_of

    free = shutil.disk_usage(Path.cwd()).free
    system = file_system_of(Path.cwd() / "x")
    on_network = system.startswith(NETWORK_FILE_SYSTEMS)
    cache = cache_folder()
    writable = os.access(next(folder for folder in (cache, *cache.parents) if folder.exists()), os.W_OK)
    return [
        Finding("snellen", True, f"{__version__} on Python {platform.python_version()}, {platform.platform()}"),
        Finding("free disk", free > LEAST_FREE_BYTES, f"{free / 2**30:.1f} GB in {Path.cwd()}", needed=True),
        Finding(
            "file system",
            not on_network,
            f"{system or 'unknown'}{': runs are safer on a local disk' if on_network else ''}",
        ),
        Finding(
            "cache folder",
            writable,
            f"{cache}{'' if writable else ': not writable, set SNELLEN_CACHE_DIR'}",
            needed=True,
        ),
    ]


def _look_at_extras() -> list[Finding]:
    found: list[Finding] = []
    for extra, (modules, purpose) in EXTRAS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        text: Any = purpose if not missing else f"{purpose}: pip install 'snellen[{extra}]'"
        found.append(Finding(f"extra {extra}", not missing, text))
    tesseract = shutil.which("tesseract")
    found.append(
        Finding("tesseract", tesseract is not None, tesseract or "for reader/tesseract: apt-get install tesseract-ocr")
    )
    return found


def _look_at_keys() -> list[Finding]:
    return [
        Finding(name, bool(os.environ.get(name)), "is set" if os.environ.get(name) else "is not set") for name in KEYS
    ]
