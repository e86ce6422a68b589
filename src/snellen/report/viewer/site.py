"""One run to a folder of plain pages: for a colleague, or for any web server; nothing of it needs the viewer.

The pages are those of the viewer. Their addresses become files, what only a server can do is left out, and a small
script over a list of the trials (`rows-N.js`) does what filters and the keys j and k need.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
import numpy as np
import pybase64
from starlette.datastructures import QueryParams

from ...core.errors import DataError, UsageError
from ...core.ids import sha256_hex
from ...core.markup import Child, Html, tag, text
from ...core.protocols import ImagePolicy
from ...core.types import Image, TrialKey
from ...core.version import __version__
from ...data.images.decode import short_name
from ...data.images.encode import encode_moving
from ...data.images.whole_video import is_whole_video
from ...scoring.tables.table import Outcome, TrialColumns
from ..pages.gallery import read_trial, thumbnail
from ..pages.parts import static
from ..query import OUTCOMES, Rows, rows_of_outcome
from .browse_page import trial_table
from .run_library import OpenRun
from .run_page import run_page
from .shell import EXPORTED, run_crumbs, shell
from .stage import stored_pictures
from .trial_page import REPLY_SHOWN, trial_page
from .walk import Walk, outcome_buttons, walk_of, why_choice

MARKER = "snellen-site.json"
FOLDERS = ("trial", "pictures", "static")
OURS = re.compile(r"index\.html|task-\d+\.html|trials-\d+\.html|rows-\d+\.js|" + re.escape(MARKER))
"""What an export writes; what else lies in its folder is never touched."""
MOST_TRIALS = 5_000
MOST_PICTURE_BYTES = 1_000_000_000
SMALL_PX = 220
SEARCHED_HERE = 300
"""Characters of a question and of a reply that the search of an export looks at."""
FILTERS = ("outcome", "why", "rule", "flipped", "text", "group")
"""What an exported page can filter by; an address that asks for more leads nowhere there."""
PLACES = ("task", "page", "sample", "variant", "repeat")
ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}
_LINK = re.compile(r'<a((?: [^>]*?)?) href="(/[^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)
_PICTURE = re.compile(r'<img((?: [^>]*?)?) src="(/[^"]*)"([^>]*)>')
_FILE = re.compile(r'(<(?:link|script)[^>]*?) (href|src)="(/[^"]*)"')


class Exported(NamedTuple):
    """What was written."""

    folder: Path
    pages: int
    trials: int
    of_trials: int
    pictures: int
    bytes: int
    left_out: int
    """Pictures that are not there: gone or changed since, or beyond the most bytes."""


def export_site(run: OpenRun, folder: Path, *, most: int = MOST_TRIALS) -> Exported:
    """Write all pages of a run to a folder. Raises UsageError where that holds something else."""
    _make_room(folder, run)
    token = EXPORTED.set(True)
    try:
        with run.held():
            return _Site(run, folder, most).write()
    finally:
        EXPORTED.reset(token)


def _make_room(folder: Path, run: OpenRun) -> None:
    """Make the folder, or clear an earlier export of ours out of it."""
    if folder.resolve() == run.folder.resolve():
        raise UsageError(f"{folder} is the run itself: choose another folder for --export")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARKER).is_file())):
        raise UsageError(f"{folder} is not empty and no earlier export: choose another folder for --export")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text("{}\n", encoding="utf-8")  # first: a broken-off export can be made again
    for path in folder.iterdir():
        if path.is_file() and OURS.fullmatch(path.name) and path.name != MARKER:
            path.unlink()
    for name in FOLDERS:
        (folder / name).mkdir(exist_ok=True)
        for path in filter(Path.is_file, (folder / name).iterdir()):
            path.unlink()


class _Pictures:
    """The pictures of an export, each once, as the model saw it and small."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[Image, bool], str] = {}
        self.used, self.left_out, self.count = 0, set[Image](), 0

    def place(self, image: Image, *, small: bool) -> str:
        """Return the file of a picture, written at its first use. Raises DataError where it cannot be had."""
        if (image, small) not in self._known:
            try:
                self._known[image, small] = self._write(image, small=small)
            except DataError as error:
                self.left_out.add(image)
                name = image.ref.rpartition("/")[2]  # where it lay here is nobody's business there
                raise DataError(str(error).replace(short_name(image.ref), short_name(name))) from None
        return self._known[image, small]

    def _write(self, image: Image, *, small: bool) -> str:
        if is_whole_video(image):
            raise DataError("a video is not part of an export")
        data, ending = thumbnail(image, SMALL_PX), "webp"  # also tells that the file is a picture and nothing else
        if not small:
            encoded = encode_moving(image, ImagePolicy(bare=True))
            data, ending = pybase64.b64decode(encoded.base64), ENDINGS.get(encoded.sent.mime, "png")
        if self.used + len(data) > MOST_PICTURE_BYTES:
            raise DataError(f"an export holds {MOST_PICTURE_BYTES // 10**6:,} MB of pictures, and this is beyond")
        name = f"pictures/{sha256_hex(data)[:20]}.{ending}"
        if not (self._folder / name).exists():
            (self._folder / name).write_bytes(data)
            self.used, self.count = self.used + len(data), self.count + (not small)
        return name


class _Site:
    """An export while it is written."""

    def __init__(self, run: OpenRun, folder: Path, most: int) -> None:
        self._run, self._folder = run, folder
        self._tasks = [task.name for task in run.header().tasks]
        self._rows = {task: _chosen_rows(run.columns(task), most // len(self._tasks)) for task in self._tasks}
        keys = [run.columns(task).key(int(row)) for task, rows in self._rows.items() for row in rows]
        self._numbers = {key: number for number, key in enumerate(keys, 1)}
        self._images: tuple[TrialKey, Sequence[Image]] = (TrialKey("", ""), ())
        self._pictures = _Pictures(folder)
        self._written = 0
        self._pages = 0

    def write(self) -> Exported:
        """Write everything; the page people open first comes last."""
        for name in ("snellen.css", "view.js", "site.js", "icon.svg"):
            self._put(f"static/{name}", static(name))
        for place, task in reversed(list(enumerate(self._tasks, 1))):
            self._write_task(place, task)
        of_trials = sum(len(self._run.columns(task)) for task in self._tasks)
        told: dict[str, Any] = {"snellen": __version__, "run": self._run.header().id, "trials": len(self._numbers)}
        self._put(MARKER, msgspec.json.encode(told).decode() + "\n")
        pictures = self._pictures
        size = self._written + pictures.used
        counts = (self._pages, len(self._numbers), of_trials, pictures.count, size, len(pictures.left_out))
        return Exported(self._folder, *counts)

    def _write_task(self, place: int, task: str) -> None:
        run, columns, rows = self._run, self._run.columns(task), self._rows[task]
        walk = walk_of(run, QueryParams({"task": task}))
        run.overview(task)  # also of a large run: here nobody comes back for its figures
        kinds = {one.row: group.kind for group in run.errors(task) for one in group.trials}
        listed = [_listed(run, columns, int(row), kinds, self._numbers[columns.key(int(row))]) for row in rows]
        self._put(f"rows-{place}.js", f"window.SNELLEN_ROWS = {msgspec.json.encode(listed).decode()};\n")
        for row in rows:
            key = columns.key(int(row))
            shown = read_trial(run.reader, key)
            if shown is not None:
                number = self._numbers[key]
                self._page(f"trial/{number}.html", trial_page(run, shown, walk), place)
                if len(reply := shown.prediction.text or "") > REPLY_SHOWN:
                    self._put(f"trial/{number}.txt", reply)
        self._page(f"trials-{place}.html", _trials_page(run, columns, rows, walk), place)
        self._page(self._task_page(task), run_page(run, task, has_report=False))

    def _page(self, name: str, page: Html, place: int = 0) -> None:
        """Write a page whose addresses are files; one of trials brings the list of them."""
        up = "../" * name.count("/")
        made = _FILE.sub(lambda one: f'{one[1]} {one[2]}="{up}{one[3][1:]}"', page)
        made = _PICTURE.sub(lambda one: self._img(one, up), made)
        made = _LINK.sub(lambda one: self._anchor(one, up), made)
        if place:
            scripts = (tag("script", src=f"{up}{file}", defer=True) for file in (f"rows-{place}.js", "static/site.js"))
            made = made.replace("</head>", f"{''.join(scripts)}</head>", 1)
        self._put(name, made)
        self._pages += 1

    def _anchor(self, found: re.Match[str], up: str) -> str:
        """Return a link to a file, or its words where the address leads nowhere."""
        before, to, after, words = found.groups()
        file = self._resolve(html.unescape(to))
        return f'<a{before} href="{text(up + file)}"{after}>{words}</a>' if file else f"<span>{words}</span>"

    def _img(self, found: re.Match[str], up: str) -> str:
        before, source, after = found.groups()
        try:
            return f'<img{before} src="{up}{self._picture(html.unescape(source))}"{after}>'
        except DataError as error:
            return tag("span", f"no picture: {str(error)[:200]}", class_="nopicture muted small")

    def _resolve(self, to: str) -> str | None:
        """Return the file, below the folder, that an address of the viewer became; None where there is none."""
        parts = urlsplit(to)
        told = parse_qs(parts.query)
        home, base = parts.path == "/", f"/run/{self._run.key}"
        task = told.get("task", [self._tasks[0]])[0]
        if home or (parts.path == base and task in self._tasks):
            return self._task_page(self._tasks[0] if home else task)
        kept = [(name, value) for name in FILTERS for value in told.get(name, ())]
        if not set(told) <= {*FILTERS, *PLACES} or not self._has_groups(task, told):
            return None
        wanted = f"#{urlencode(kept, errors='replace')}" if kept else ""
        if parts.path == f"{base}/trials" and task in self._tasks:
            return f"trials-{self._tasks.index(task) + 1}.html{wanted}"
        number = self._numbers.get(_key(told))
        endings = {f"{base}/trial": f".html{wanted}", f"{base}/reply": ".txt"}
        return f"trial/{number}{endings[parts.path]}" if number and parts.path in endings else None

    def _has_groups(self, task: str, told: dict[str, list[str]]) -> bool:
        keys = {one.partition("=")[0] for one in told.get("group", ())}
        return keys <= set(_group_keys(self._run.columns(task)))

    def _task_page(self, task: str) -> str:
        place = self._tasks.index(task) + 1
        return "index.html" if place == 1 else f"task-{place}.html"

    def _picture(self, source: str) -> str:
        told = parse_qs(urlsplit(source).query)
        key = _key(told)
        if self._images[0] != key:
            self._images = (key, stored_pictures(self._run.reader, key) or [])
        number = int(told.get("n", ["0"])[0])
        if number >= len(self._images[1]):
            raise DataError("the trial holds no such picture")
        return self._pictures.place(self._images[1][number], small="small" in told)

    def _put(self, name: str, content: str) -> None:
        data = content.encode("utf-8", "replace")
        (self._folder / name).write_bytes(data)
        self._written += len(data)


def _key(told: dict[str, list[str]]) -> TrialKey:
    one = {name: values[0] for name, values in told.items()}
    return TrialKey(one.get("task", ""), one.get("sample", ""), one.get("variant", "base"), int(one.get("repeat", "0")))


def _chosen_rows(columns: TrialColumns, most: int) -> Rows:
    """Return the trials that are written, in the order of the plan; of too many, those first that are not right."""
    every = np.arange(len(columns))
    if len(columns) <= most:
        return every
    order = np.argsort(np.asarray(columns.outcome) == Outcome.RIGHT, kind="stable")
    return np.sort(order[:most])


def _group_keys(columns: TrialColumns) -> Iterator[str]:
    """Yield what trials of an export can be grouped by."""
    yield from columns.tags
    yield "variant"
    if columns.groups is not None:
        yield "group"


def _listed(run: OpenRun, columns: TrialColumns, row: int, kinds: dict[int, str], number: int) -> list[Any]:
    """Return what the script knows of a trial: number, outcome, why, rule and reason, flipped, groups, text."""
    sample = int(columns.sample[row])
    facts = columns.facts[sample]
    tagged = {**columns.tags, **({"group": columns.groups} if columns.groups is not None else {})}
    groups = [f"{key}={texts[int(codes[sample])]}" for key, (codes, texts) in tagged.items() if int(codes[sample]) >= 0]
    groups.append(f"variant={columns.key(row).variant}")
    said = [name for column in ("rule", "reason") if (name := columns.text(column, row))]
    reply = run.reader.rows("SELECT body FROM predictions WHERE rowid = ?", (int(columns.row[row]),))
    words = next((msgspec.json.decode(body).get("text") for (body,) in reply), "") or ""
    looked = "\n".join((facts.id, facts.question[:SEARCHED_HERE], words[:SEARCHED_HERE])).lower()
    outcome = Outcome(int(columns.outcome[row])).name.lower()
    return [number, outcome, kinds.get(int(columns.row[row]), ""), said, bool(columns.flipped[row]), groups, looked]


def _trials_page(run: OpenRun, columns: TrialColumns, rows: Rows, walk: Walk) -> Html:
    """Return all exported trials of a task as one table; the script hides those that a filter does not want."""
    shown, every = [int(row) for row in rows], len(columns)
    counts = {name: int(rows_of_outcome(columns, name)[rows].sum()) for name in OUTCOMES}
    bounded = f"{len(shown):,} of {every:,} trials are part of this export, those that are not right first."
    caption = tag("caption", f"{len(shown):,} trials")
    parts: list[Child] = [
        tag("h1", f"Trials of {walk.task}"),
        tag("p", bounded, class_="notice") if len(shown) < every else None,
        outcome_buttons(run, walk, counts),
        _filter_form(run, columns, walk),
        trial_table(run, columns, shown, walk, caption) if shown else tag("p", "No trial is stored."),
    ]
    return shell(f"Trials of {run.name}", parts, crumbs=run_crumbs(run, "trials", task=walk.task))


def _filter_form(run: OpenRun, columns: TrialColumns, walk: Walk) -> Html:
    """Return the filters that the script applies; without it they are not shown."""
    groups = {key: values for key, values in run.groups(walk.task).items() if key in set(_group_keys(columns))}
    kinds = [group.kind for group in run.errors(walk.task)]
    fields = [tag("label", "why not right", why_choice(kinds))] if kinds else []
    fields += [tag("label", key, _group_choice(key, values)) for key, values in groups.items() if len(values) <= 500]
    words = f"text in id, and the first {SEARCHED_HERE} characters of question and reply"
    fields.append(tag("label", words, tag("input", type="search", name="text", id="search")))
    return tag("form", *fields, class_="filters", role="search", data_site=True, hidden=True)


def _group_choice(key: str, values: Sequence[str]) -> Html:
    options = [tag("option", value, value=f"{key}={value}") for value in values]
    return tag("select", tag("option", "any", value=""), *options, name="group")
