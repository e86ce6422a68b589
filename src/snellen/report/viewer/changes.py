"""What the viewer may write, where it was started with --write: marks, labels, tags, the trash, other scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...core.errors import UsageError
from ...core.registry import Registry
from ...core.types import TrialKey
from ...scoring.judges.labels import add_label, check_person, kept_labels, read_label
from ...scoring.protocols.readings import Reading
from ..pages.finish import finish_run
from ..pages.ledger import TRIAL_KINDS, Note, add_notes, notes_on, read_notes, run_note, trial_note
from ..run_briefs import take_back, throw_away
from .liveness import is_written_now
from .run_library import OpenRun, RunLibrary
from .run_page import known_profile
from .shell import trial_in

Thing = TypeVar("Thing")
FormFields = Mapping[str, list[str]]
MOST_BYTES = 200_000
"""A form of ours is never longer."""


class Changes:
    """The changes to the runs of one library; refused whole where the viewer only reads."""

    def __init__(self, library: RunLibrary, registry: Registry, *, allowed: bool) -> None:
        self._library, self._registry, self._allowed = library, registry, allowed

    async def runs(self, request: Request) -> Response:
        """Hide, tag or throw away the chosen runs."""
        fields = await self._form_fields(request)
        await run_in_threadpool(self._change_runs, request.path_params["doing"], fields)
        return RedirectResponse("/", status_code=303)

    async def marks(self, request: Request) -> Response:
        """Set the marks and the note of one trial to what a form says, and go back to its page."""
        fields = await self._form_fields(request)
        await run_in_threadpool(self._mark, self._run(request.path_params["key"]), fields)
        return RedirectResponse(_own_page(_first(fields, "back"), request.path_params["key"]), status_code=303)

    async def labels(self, request: Request) -> Response:
        """Keep a person's label on a judged reply and show the next one, or score the run with all labels."""
        fields = await self._form_fields(request)
        run, judge = self._run(request.path_params["key"]), _first(fields, "judge")
        if _first(fields, "score"):
            await run_in_threadpool(finish_run, run.folder, self._registry)
            return RedirectResponse(f"/run/{run.key}", status_code=303)
        await run_in_threadpool(self._label, run, judge, fields)
        by = check_person(_first(fields, "by"))
        then = urlencode({"judge": judge} | ({"by": by} if by else {}))
        return RedirectResponse(f"/run/{run.key}/label?{then}", status_code=303)

    async def scores(self, request: Request) -> Response:
        """Keep the scores of another profile beside the run's own."""
        fields = await self._form_fields(request)
        run, profile = self._run(request.path_params["key"]), known_profile(_first(fields, "profile"))
        await run_in_threadpool(self._keep_scores, run.folder, profile)
        return RedirectResponse(f"/run/{run.key}", status_code=303)

    async def _form_fields(self, request: Request) -> FormFields:
        if not self._allowed:
            raise UsageError("this viewer only reads: start it with `snellen view --write` to change anything")
        body = await request.body()
        if len(body) > MOST_BYTES:
            raise UsageError(f"a form of {len(body):,} bytes is none of ours")
        return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)

    def _change_runs(self, doing: str, fields: FormFields) -> None:
        keys = fields.get("run", [])
        if not keys:
            raise UsageError("no run was chosen: tick some first")
        if doing == "restore":
            thrown = self._library.thrown()
            for key in keys:
                take_back(_known(thrown.get(key)))
        elif doing == "trash":
            for run in [self._run(key) for key in keys]:
                self._throw_away(run)
        else:
            note = _run_note(doing, _first(fields, "tag"))
            for run in [self._run(key) for key in keys]:
                add_notes(run.folder, [note])

    def _throw_away(self, run: OpenRun) -> None:
        if is_written_now(run.folder):
            raise UsageError(f"{run.name} is being written or was a moment ago: stop it first, or wait a minute")
        self._library.forget(run)
        throw_away(run.folder, self._library.root_of(run.folder))

    def _mark(self, run: OpenRun, fields: FormFields) -> None:
        key = trial_in({name: values[0] for name, values in fields.items()})
        with run.held():
            query = "SELECT 1 FROM predictions WHERE task = ? AND sample = ? AND variant = ? AND repeat = ?"
            _known(next(run.reader.rows(query, (key.task, key.sample, key.variant, key.repeat)), None))
        before = {note.kind: note for note in notes_on(read_notes(run.folder), key)}  # refused where it cannot be read
        add_notes(run.folder, list(_changed(before, key, fields)))

    def _label(self, run: OpenRun, name: str, fields: FormFields) -> None:
        """Keep a label, if it is one of the judge's scale and its reply the next that was drawn or labelled before."""
        key, by = trial_in({name: values[0] for name, values in fields.items()}), check_person(_first(fields, "by"))
        with run.held():
            drawn = run.drawn(name)
            drawn.check_turn(key, kept_labels(run.folder, drawn.judge, by))
            value = read_label(_first(fields, "label"), drawn.judge, f"sample {key.sample!r}")
            if value is None:
                raise UsageError(f"sample {key.sample!r}: no label was given; go back and choose one")
            add_label(run.folder, drawn.judge, key, value, by)

    def _run(self, key: str) -> OpenRun:
        run = _known(self._library.find(key))
        if run.parts():  # it is read from a copy of ours, which goes
            raise UsageError(f"{run.name} is still asked in parts: `snellen merge --partial` joins them, then write")
        return run

    def _keep_scores(self, folder: Path, profile: str) -> None:
        finish_run(folder, self._registry, report=False, reading=Reading(profile))


def _changed(before: Mapping[str, Note], key: TrialKey, fields: FormFields) -> list[Note]:
    """Return the lines to add: only what differs from what is there."""
    added = []
    for kind in TRIAL_KINDS:
        text = _first(fields, "note").strip() if kind == "note" else ""
        wanted = bool(text) if kind == "note" else bool(_first(fields, kind))
        if wanted != (kind in before) or (wanted and before[kind].text != text):
            added.append(trial_note(kind, key, text, off=not wanted))
    return added


def _run_note(doing: str, tag: str) -> Note:
    known = {"hide": ("hidden", "", False), "show": ("hidden", "", True)}
    known |= {"tag": ("tag", tag, False), "untag": ("tag", tag, True)}
    if doing not in known:
        raise UsageError(f"nothing is called {doing!r}")
    kind, text, off = known[doing]
    return run_note(kind, text, off=off)


def _first(fields: FormFields, name: str) -> str:
    return fields.get(name, [""])[0]


def _own_page(back: str, key: str) -> str:
    """Return where a form came from, if that is a page of this run; never another host."""
    parts = urlsplit(back)
    ours = not parts.scheme and not parts.netloc and parts.path.startswith(f"/run/{key}/")
    return back if ours and not back.startswith("//") and back.isprintable() else f"/run/{key}"


def _known(found: Thing | None) -> Thing:
    if found is None:
        raise UsageError("there is no such run or trial here (any more)")
    return found
