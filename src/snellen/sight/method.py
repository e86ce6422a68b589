"""What an exam was made of to words that a paper can use: the method, the command, what to cite. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ..core.config import read_config_file
from ..core.version import __version__
from .drift import ALARM
from .plate import fill
from .procedure import PRECISION
from .recipe_round import RECIPE_TRIALS


@cache
def _words() -> Mapping[str, str]:
    return read_config_file(str(files("snellen") / "catalog/exam/method.toml"))


def method_of(
    mode: str, seed: int, half_width: float | None, command: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what exam.json says of how it was made: version, settings, command, a paragraph, BibTeX."""
    width = f"{half_width or PRECISION[mode]:g}"
    text = fill(_words()["text"], {"width": width, "alarm": f"{ALARM:g}", "pages": RECIPE_TRIALS[mode]})
    cited = fill(_words()["bibtex"], {"version": __version__, "mode": mode, "seed": seed})
    told = {"version": __version__, "settings": dict(settings), "command": command}
    return told | {"text": text.strip(), "bibtex": cited.strip()}


def exam_command(model: str, mode: str, seed: int, tests: Sequence[str], more: Mapping[str, Any]) -> str:
    """Return the command that sits this exam, however it was started."""
    words = ["snellen", "exam", "--model", model]
    words += [] if mode == "standard" else [f"--{mode}"]
    words += ["--tests", ",".join(tests)] if tests else []
    words += ["--seed", str(seed)]
    for name, value in more.items():
        words += [f"--{name}", str(value)] if value is not None else []
    return shlex.join(words)
