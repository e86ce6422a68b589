"""Banks, gates and audits in the viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import SnellenError
from ...core.markup import Child, Html, tag
from ...report.viewer.run_library import OpenRun, RunLibrary
from ...report.viewer.shell import shell
from ...store.bank_file import read_bank
from .audit import SUMMARY, Audit
from .audit_page import audit_parts
from .check import card_lines
from .gate import GateResult
from .gate_words import gate_parts

DEEPEST = 2


def banks(library: RunLibrary, request: Any) -> Html:
    """Show the card of every bank that lies beside the runs."""
    parts: list[Child] = [tag("h1", "Banks")]
    found = sorted({path for root in library.roots for path in _banks_in(Path(root))})
    for path in found:
        parts += [tag("h2", path.name), _card(path)]
    if not found:
        parts.append(tag("p", "No bank lies beside these runs: snellen bank build RUNS -o NAME.bank makes one."))
    return shell("Banks", parts, place="/banks")


def _banks_in(root: Path) -> list[Path]:
    patterns = ["/".join(["*"] * depth + ["*.bank"]) for depth in range(DEEPEST)]
    return [path for place in (root, root.parent) for pattern in patterns for path in place.glob(pattern)]


def _card(path: Path) -> Html:
    try:
        lines = card_lines(read_bank(path))
    except SnellenError as error:
        return tag("p", str(error), class_="notice")
    return tag("ul", *(tag("li", line) for line in lines))


def has_gate(run: OpenRun) -> bool:
    """Tell whether a run was asked by a gate."""
    return (Path(run.folder) / "gate.json").is_file()


def gate(library: RunLibrary, request: Any) -> Html:
    """Show the verdict of a gate, and the answers that flipped."""
    with library.run(request.path_params["key"]).held() as run:
        body = (Path(run.folder) / "gate.json").read_bytes()
    return shell("Gate", gate_parts(msgspec.json.decode(body, type=GateResult)))


def has_audit(run: OpenRun) -> bool:
    """Tell whether an audit lies in a run's folder."""
    return (Path(run.folder) / "audit" / SUMMARY).is_file()


def audit(library: RunLibrary, request: Any) -> Html:
    """Show the doubtful golds of the audit in a run's folder."""
    with library.run(request.path_params["key"]).held() as run:
        body = (Path(run.folder) / "audit" / SUMMARY).read_bytes()
    return shell("Audit", audit_parts(msgspec.json.decode(body, type=Audit)))
