"""A run that is an eye exam to its parts of the viewer: the curve of each test, its stimuli, and the prescription."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from starlette.datastructures import QueryParams

from ...core.errors import SnellenError
from ...core.markup import Child, Html, tag
from ...core.types import Sample
from ...scoring.tables.table import TrialColumns
from ...sight.sitting import PREFIX
from ..pages.exam_page import curve, exam_notices, hinge, joined, prescription_box, strip, test_map, tests_table
from ..stored_results import stored_exam
from .browse_page import gallery_grid
from .run_library import OpenRun
from .shell import link
from .walk import walk_of

STIMULI = 12
"""So many stimuli are shown at once, spread from the easiest level to the hardest."""


def exam_parts(run: OpenRun, task: str) -> Iterator[Child]:
    """Yield what an exam found in a test, its stimuli by level, and the prescription; nothing for other runs."""
    if not task.startswith(PREFIX):
        return
    exam = _exam(run)
    if isinstance(exam, str):
        yield tag("p", exam, class_="notice", role="note")
    else:
        yield from _found(exam, task.removeprefix(PREFIX))
    found = {} if isinstance(exam, str) else exam["tests"].get(task.removeprefix(PREFIX), {})
    yield from _stimuli(run, task, found.get("axis"))
    if not isinstance(exam, str):
        whole = (exam_notices(exam), prescription_box(exam), strip(exam["tests"]))
        yield tag("details", tag("summary", "The whole exam: its prescription and all tests"), *whole)


def exam_curve(run: OpenRun, task: str, sample: Sample) -> Iterator[Child]:
    """Yield the curve that a trial of an exam is one point of, with its level marked."""
    exam = _exam(run) if task.startswith(PREFIX) else ""
    result = None if isinstance(exam, str) else exam["tests"].get(task.removeprefix(PREFIX))
    if result is None or not result["levels"]:
        return
    level = sample.tags.get("level")
    here = float(level) if isinstance(level, int | float) else None
    yield tag("h2", "Its place on the curve")
    yield tag("figure", curve(task, result, here), class_="card examcurve")


def _exam(run: OpenRun) -> dict[str, Any] | str:
    """Return what the exam found, or why that cannot be shown."""
    try:
        exam = stored_exam(run.folder)
    except SnellenError as error:
        return str(error)
    return exam or "This exam is not over: its curves are drawn when it is; the same command continues it."


def _found(exam: Mapping[str, Any], name: str) -> Iterator[Child]:
    result = exam["tests"].get(name)
    if result is None:
        yield tag("p", f"exam.json holds no test {name}: its figures are of another sitting.", class_="notice")
        return
    yield tag("h2", f"{result['title']}: {result['verdict']}")
    yield tag("p", result["about"], class_="muted")
    drawn = [*([curve(name, result)] if result["levels"] else []), *_maps(exam, name, result)]
    if drawn:
        yield joined([tag("figure", one, class_="card") for one in drawn])
    yield tests_table({name: result}, f"What came of {name}")


def _maps(exam: Mapping[str, Any], name: str, result: Mapping[str, Any]) -> Iterator[Html]:
    drawn = test_map(name, result)
    if drawn:
        yield drawn
    if name.startswith("resolution-") and exam["resolution"]:
        yield hinge(exam["resolution"])


def _stimuli(run: OpenRun, task: str, axis: Sequence[float] | None) -> Iterator[Child]:
    """Yield stimuli spread over the levels (hardest and easiest are the `axis`), each a way to its trial."""
    columns, walk = run.columns(task), walk_of(run, QueryParams({"task": task}))
    order = list(range(len(columns)))
    if not order:
        return
    if axis:
        order.sort(key=lambda row: _level(columns, row), reverse=axis[1] > axis[0])
    places = np.unique(np.linspace(0, len(order) - 1, min(STIMULI, len(order))).round().astype(int))
    rows = [order[place] for place in places]
    ends = f"{_level(columns, rows[0]):.3g} to {_level(columns, rows[-1]):.3g}"
    words = f", from the easiest level to the hardest: {ends}" if axis else ""
    yield tag("h2", "Stimuli")
    yield gallery_grid(run, columns, rows, walk, tag("caption", f"{len(rows)} of {len(columns):,} stimuli{words}"))
    yield tag("p", link(f"All {len(columns):,} stimuli", walk.to(run, view="gallery")))


def _level(columns: TrialColumns, row: int) -> float:
    told = columns.facts[int(columns.sample[row])].tags.get("level")
    return float(told) if isinstance(told, int | float) else 0.0
