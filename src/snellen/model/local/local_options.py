"""`--model-arg key=value` of a local model, checked by name before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ...core.config import convert
from ...core.errors import ConfigError

DTYPES = ("auto", "float32", "float16", "bfloat16")


class LocalOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """How a local checkpoint is loaded and run."""

    device: str | None = None
    """`cpu`, `cuda:0`, `auto` (spread over all devices by accelerate); None is the first GPU, or the CPU."""
    devices: tuple[str, ...] = ()
    """Several: a copy of the model on each, every batch shared out among them (no collectives)."""
    dtype: str = "auto"
    half: bool = False
    batch_size: int | None = None
    """None lets it grow until memory says no."""
    max_batch_size: int = 64
    revision: str | None = None
    trust_remote_code: bool = False
    adapter: str | None = None
    """Folder of a LoRA adapter of this checkpoint; it is merged into the weights when they are loaded."""
    attention: str | None = None
    """The library's `attn_implementation`; None is its own choice."""
    chat_template: bool = True
    """False: the prompt goes in as it is written (a dialogue style of the prompt, a base model)."""
    max_length: int | None = None
    """The context in tokens; None is what the checkpoint says."""
    keep_prefixes: int = 4
    """How many encoded prompts stay in memory for trials that begin alike."""
    threads: int = 2
    """Worker threads that open and prepare images ahead of the model."""

    @property
    def origin(self) -> dict[str, Any]:
        """Return which files are meant and whether their code may run, as the library's loaders take it."""
        return {"revision": self.revision, "trust_remote_code": self.trust_remote_code}


def read_options(arguments: Mapping[str, Any], provider: str) -> LocalOptions:
    """Check the arguments; a wrong one is named."""
    table = dict(arguments)
    if isinstance(table.get("devices"), str):
        table["devices"] = [part.strip() for part in table["devices"].split(",")]
    if table.get("batch_size") == "auto":
        del table["batch_size"]
    options = convert(table, LocalOptions, f"--model-arg of {provider}")
    if options.dtype not in DTYPES:
        raise ConfigError(f"--model-arg dtype={options.dtype}: choose one of {', '.join(DTYPES)}")
    check_pinned(trusted=options.trust_remote_code, revision=options.revision)
    for name in ("batch_size", "max_batch_size", "threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ConfigError(f"--model-arg {name}={value}: must be at least 1")
    return options


def check_pinned(*, trusted: bool, revision: str | None) -> None:
    """Refuse to run code of a checkpoint whose revision is not named: it could be other code tomorrow."""
    if trusted and not revision:
        fix = "pin it with --model-arg revision=COMMIT"
        raise ConfigError(f"--model-arg trust_remote_code=true runs code from the checkpoint: {fix}")
