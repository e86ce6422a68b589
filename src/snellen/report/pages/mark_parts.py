"""Notes to the parts of pages that show them and, where the viewer may write, the form that changes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...core.markup import Child, Html, tag
from ...core.text import plural
from ...core.types import TrialKey
from ...scoring.tables.table import Mask, TrialColumns
from .ledger import TRIAL_KINDS, Note, key_words, notes_on
from .tables import head, row, scrolled

MOST_ROWS = 200


def marks_form(action: str, back: str, key: TrialKey, notes: Sequence[Note]) -> Html:
    """Return the form that sets the marks of one trial; it leads back to where it was shown."""
    here = {note.kind: note for note in notes_on(notes, key)}
    boxes = [
        tag("label", tag("input", type="checkbox", name=kind, value="1", checked=kind in here), f" {words}")
        for kind, words in TRIAL_KINDS.items()
        if kind != "note"
    ]
    text = here["note"].text if "note" in here else ""
    told: dict[str, str | int] = {
        "task": key.task,
        "sample": key.sample,
        "variant": key.variant,
        "repeat": key.repeat,
        "back": back,
    }
    hidden = [tag("input", type="hidden", name=name, value=value) for name, value in told.items()]
    note = tag("label", "note ", tag("textarea", text, name="note", rows=2, maxlength=4000))
    fields = (*hidden, tag("div", *boxes, class_="marks"), note, tag("button", "Keep marks"))
    return tag("form", *fields, method="post", action=action, class_="filters markform")


def marks_shown(key: TrialKey, notes: Sequence[Note]) -> Html | None:
    """Return what was said of one trial."""
    found = notes_on(notes, key)
    if not found:
        return None
    made = [tag("li", tag("b", TRIAL_KINDS[note.kind]), f": {note.text}" if note.text else "") for note in found]
    return tag("ul", *made, class_="notice calm plain")


def notes_table(notes: Sequence[Note], to: Callable[[Note], str] | None = None) -> Iterator[Child]:
    """Yield the notes on the trials of a run as a table; `to` gives the address of the trial of one."""
    said = [note for note in notes if note.sample]
    if not said:
        return
    rows = []
    for note in said[:MOST_ROWS]:
        name: Child = tag("a", key_words(note), href=to(note)) if to else key_words(note)
        texts = (TRIAL_KINDS.get(note.kind, note.kind), note.text, note.at[:16].replace("T", " "))
        rows.append(row(name, *(tag("td", text, class_="text") for text in texts), name_class="mono"))
    yield tag("h2", "Notes and marks")
    caption = plural(len(said), "note") + (f", the first {MOST_ROWS:,} here" if len(said) > MOST_ROWS else "")
    table = scrolled("Notes", tag("caption", caption), head("trial", "mark", "note", "when"), tag("tbody", *rows))
    yield tag("div", table, class_="card")


def marked_trials(columns: TrialColumns, notes: Sequence[Note], kind: str) -> Mask:
    """Return which trials have a mark of a kind, or any."""
    task = columns.task.name
    found = np.zeros(len(columns), np.bool_)
    for note in notes:
        if note.task == task and note.sample and kind in ("any", note.kind):
            here = columns.rows_with("sample", note.sample)
            if note.variant:
                here &= columns.rows_with("variant", note.variant) & (columns.repeat == note.repeat)
            found |= here
    return found
