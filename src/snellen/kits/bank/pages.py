"""Banks, gates and audits in the viewer."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ...core.errors import SnellenError
from ...core.markup import Child, Html, shorten, tag
from ...core.types import Image
from ...data.images.decode import open_image
from ...report.pages import draw
from ...report.pages.parts import document
from ...report.viewer.run_library import OpenRun, RunLibrary
from ...report.viewer.shell import shell
from .audit import SUMMARY, Audit
from .bank_file import read_bank
from .build import card_lines
from .gate import GateResult, gate_parts

if TYPE_CHECKING:
    from .audit import Audit, Doubt


SHOWN = 60
THUMBNAIL_PX = 240
LONGEST_QUESTION = 400


def audit_page(audit: Audit) -> str:
    """Return the page as text."""
    return document(f"Audit of {audit.task} – Snellen", audit_parts(audit))


def audit_parts(audit: Audit) -> list[Child]:
    """Return the audit as parts of a page."""
    chips = (f"{audit.rows:,} rows", f"{audit.models} models", f"by {audit.method}", f"{audit.listed} listed")
    title = tag(
        "div",
        tag("p", "Gold answers to look at", class_="kicker"),
        tag("h1", audit.task),
        tag("ul", *(tag("li", chip, class_="chip") for chip in chips), class_="chips"),
    )
    limits = audit.lines(0)[-1]
    parts: list[Child] = [tag("header", draw.logo(), title, class_="masthead")]
    parts += [tag("p", limits[0].upper() + limits[1:], ".", class_="notice", role="note")]
    for doubt in audit.doubts[:SHOWN]:
        parts.append(_row(doubt))
    left = len(audit.doubts) - SHOWN
    return [*parts, tag("p", f"{left} more are in audit.jsonl.")] if left > 0 else parts


def _row(doubt: Doubt) -> Html:
    answers = ", ".join(f"{text} ({count})" for text, count in doubt.answers.items())
    facts = [
        tag("p", shorten(doubt.question, LONGEST_QUESTION)) if doubt.question else None,
        tag("p", tag("strong", "Gold: "), " | ".join(doubt.official) or "–"),
        tag("p", tag("strong", "Instead: "), doubt.proposed) if doubt.proposed else None,
        tag("p", tag("strong", "Answered: "), answers) if answers else None,
        tag("ul", *(tag("li", reason) for reason in doubt.reasons)),
    ]
    pictures = [thumbnail(ref) for ref in doubt.pictures[:2]]
    head = tag("h2", f"{doubt.rank}. {doubt.sample}")
    return tag("section", head, *filter(None, pictures), *filter(None, facts), class_="card")


def thumbnail(ref: str) -> Html | None:
    """Return a small picture inside the page; None where it cannot be opened."""
    try:
        picture = open_image(Image(ref)).convert("RGB")
    except (SnellenError, OSError):
        return tag("p", f"(the picture {Path(ref).name[:60]} cannot be opened)")
    picture.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX))
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=80)
    address = "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
    return tag("img", src=address, alt="the picture of this question")


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
