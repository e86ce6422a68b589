"""Addresses to pages: the routes of the viewer. Each reads, renders and answers; what writes is in `changes`."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from inspect import iscoroutinefunction
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from ...core.builtins import default_registry
from ...core.errors import DataError, MissingExtra, SnellenError, UsageError
from ...core.ids import sha256_hex
from ...core.markup import Child, Html, tag
from ...core.registry import Page, Registry, resolve_target
from ...core.text import plural
from ...core.types import Image
from ...data.images.decode import encode_png, open_image
from ...scoring.compare.paired import Comparison
from ...scoring.compare.run_pairs import compare_parts, compare_runs
from ...store.reader import RunReader
from ..pages import draw
from ..pages.comparison import part_sheets, sheets_of
from ..pages.gallery import Shown, read_trial, thumbnail
from ..pages.ledger import exported_notes
from ..pages.parts import DRAWN, cost_cells, head, numbers, scrolled, static
from ..pages.ranking import UNRANKED, Board, Entry, Line, board_sheets, make_board, ranked_blocks
from ..pages.sheet import Sheet, render
from ..pages.vega import to_csv
from ..trial_files import csv_lines, jsonl_lines, parquet_bytes
from .browse_page import browse_page
from .changes import Changes
from .compare_page import Comparer, compare_page, matrix_page
from .guard import Asgi, Guard
from .home import runs_page, sought_in
from .label_page import label_page
from .raw_exchange import whole_exchange
from .run_library import NotFound, OpenRun, RunLibrary
from .run_page import again_page, figures_page, known_profile, run_page
from .same_sample import sample_page
from .shell import KIT_PLACES, downloads, link, shell, trial_in, wanted_page, whole_number
from .stage import stored_pictures
from .trial_page import trial_page
from .video_line import caption_track, playable, records_of
from .walk import walk_of

CAPTION = "Best first, among runs of the same questions, metric, way of asking, variants and reading. Rank 1 is best."
NOTE = (
    "Runs that share a rank do not differ significantly from the first of that rank "
    "(95 %, unpaired, so conservative). Choose runs under Runs to test them on the samples they share."
)
COLUMNS = ("#", "model", "run", *((name, "n") for name in ("tasks", "average rank", "mean", "95 % interval")), DRAWN)


def board_page(board: Board, keys: dict[str, str]) -> Html:
    """Return the leaderboard; `keys` are the runs' keys by name."""
    ranked, alone = ranked_blocks(board)
    tables = [_table(board, lines, keys) for lines in ranked]
    nothing = "Nothing can be ranked yet: no two runs of different models or settings did the same."
    parts: list[Child] = [tag("h1", "Leaderboard")]
    parts += [tag("p", NOTE, class_="muted"), *tables] if tables else [tag("p", nothing)]
    parts += [_unranked(alone, keys), downloads("/leaderboard/download") if tables else None]
    return shell("Leaderboard", parts, place="/leaderboard")


def _unranked(lines: Sequence[Line], keys: dict[str, str]) -> Html | None:
    """Return the runs that no other run can be ranked against, folded away."""
    if not lines:
        return None
    items = [tag("li", _name(line, keys), f" · {line.model} · {', '.join(line.tasks)}") for line in lines]
    summary = tag("summary", f"Not ranked: {plural(len(lines), 'run')} ", tag("span", UNRANKED, class_="muted"))
    return tag("details", summary, tag("ul", *items, class_="small"))


def _name(line: Line, keys: dict[str, str]) -> Child:
    return link(line.name, f"/run/{keys[line.name]}") if line.name in keys else line.name


def _table(board: Board, lines: Sequence[Line], keys: dict[str, str]) -> Html:
    """Return one block: runs that did the same, ranked among themselves."""
    tasks = [task for task in board.tasks if task in lines[0].tasks]
    dimensions = tuple(name for name in board.dimensions if any(name in line.dimensions for line in lines))
    board = msgspec.structs.replace(board, dimensions=dimensions if len(dimensions) > 1 else ())
    rows, last = [], 0
    for line in lines:
        rows.append(_row(line, board, tasks, keys, new=line.band not in (0, last)))
        last = line.band
    names = head(*COLUMNS, *((name, "n") for name in (*board.cost_columns, *board.dimensions, *tasks)))
    label = f"Leaderboard: {', '.join(tasks)}"
    return scrolled(label, tag("caption", CAPTION), names, tag("tbody", *rows), class_="scroll card")


def _row(line: Line, board: Board, tasks: Sequence[str], keys: dict[str, str], *, new: bool) -> Html:
    words = "not distinguishable from the first of this number"
    band = tag("b", line.band) if new else tag("span", f"{line.band} =", class_="muted", title=words)
    band = band if line.band else tag("span", "–", class_="muted", title="nothing was measured")
    name = _name(line, keys)
    dimensions = (
        f"{line.dimensions[name] * 100:.1f} %" if name in line.dimensions else "–" for name in board.dimensions
    )
    who = (tag("td", band, class_="nowrap"), tag("th", line.model, scope="row", class_="nowrap"), tag("td", name))
    drawn = tag("td", draw.interval(line.mean, line.ci95, 0.0, 1.0), class_="bar")
    costs = cost_cells(line.cost) if board.cost_columns else ()
    cells = (
        *who,
        *numbers(_standing(line)),
        drawn,
        *numbers((*costs, *dimensions)),
        *(_cell(line, task) for task in tasks),
    )
    return tag("tr", *cells, class_="row best" if new else "row")


def _standing(line: Line) -> tuple[str, ...]:
    return (
        str(len(line.tasks)),
        "–" if line.average_rank is None else f"{line.average_rank:.2f}",
        "–" if line.mean is None else f"{line.mean * 100:.1f} %",
        f"{line.ci95[0] * 100:.1f} – {line.ci95[1] * 100:.1f}" if line.ci95 else "–",
    )


def _cell(line: Line, task: str) -> Html:
    cell = line.tasks.get(task)
    if cell is None or cell.value is None:
        return tag("td", "–", class_="n")
    value = f"{cell.value * 100:.1f}" if 0 <= cell.value <= 1 else f"{cell.value:.3g}"
    half = f" ± {(cell.ci95[1] - cell.ci95[0]) * 50:.1f}" if cell.ci95 and 0 <= cell.value <= 1 else ""
    title = f"{cell.metric}, n {cell.n}, rank {cell.rank:g}" if cell.rank else cell.metric
    return tag("td", value, tag("span", half, class_="muted small"), class_="n", title=title)


SIDE_PX = 220
MOST_BYTES = 48 * 1024 * 1024
"""Some ten thousand thumbnails."""
MOST_PLACES = 20_000
"""So many addresses of thumbnails are remembered."""


class _Known:
    """A picture by what it shows: the hash of its record, and its file where it has one."""

    __slots__ = ("_hash", "_path")

    def __init__(self, image: Image) -> None:
        self._hash = sha256_hex(msgspec.json.encode(image))  # a hash, because a reference may hold the picture itself
        self._path = image.ref if image.ref.startswith("/") else ""

    def name(self) -> str:
        """Return what changes with the picture, its file as it is now included."""
        try:
            found = os.stat(self._path) if self._path else None  # noqa: PTH116 - hundreds a page
        except (OSError, ValueError):
            found = None
        return f"{self._hash}:{found.st_mtime_ns}:{found.st_size}" if found else self._hash


class Thumbs:
    """Thumbnails by what they show; a file that was changed since is drawn anew."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._places: OrderedDict[Hashable, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def small(self, image: Image, place: Hashable = None) -> bytes:
        """Return a small WebP of a picture, to be found at a `place` again. Raises DataError where it cannot be had."""
        known = _Known(image)
        name = known.name()
        data = self._find(name) or thumbnail(image, SIDE_PX)  # outside the lock: nobody waits for another's picture
        with self._lock:
            self._size += len(data) - len(self._kept.pop(name, b""))
            self._kept[name] = data
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])
            if place is not None:
                self._places[place] = known
                while len(self._places) > MOST_PLACES:
                    self._places.popitem(last=False)
        return data

    def again(self, place: Hashable) -> bytes | None:
        """Return the thumbnail that was drawn for a place, if it is at hand and its picture is as it was."""
        known = self._places.get(place)
        return self._find(known.name()) if known is not None else None

    def _find(self, name: str) -> bytes | None:
        with self._lock:
            data = self._kept.get(name)
            if data is not None:
                self._kept.move_to_end(name)
            return data


STATIC = {"snellen.css": "text/css", "view.js": "text/javascript", "icon.svg": "image/svg+xml"}
ENDINGS = {"csv": "csv", "markdown": "md", "latex": "tex"}
MOST_RUNS = 6
LINES_AT_ONCE = 500
QueryFields = Mapping[str, str]


class Viewer:
    """The pages over one library."""

    def __init__(self, library: RunLibrary, *, may_write: bool = False) -> None:
        self._library, self._may_write = library, may_write
        self._thumbs, self._comparer = Thumbs(), Comparer()

    def home(self, request: Request) -> Response:
        """All runs, or those that hold a text."""
        return page(runs_page(self._library, sought_in(request.query_params), may_write=self._may_write))

    def board(self, _: Request) -> Response:
        """The leaderboard."""
        return page(board_page(self._board(), {run.name: run.key for run in self._library.runs()}))

    def board_download(self, request: Request) -> Response:
        """The leaderboard as a file."""
        return sheets_file(board_sheets(self._board()), "leaderboard", request)

    def state(self, request: Request) -> Response:
        """A text that changes when a run has grown, or anything else that is listed beside all runs."""
        runs = request.query_params.getlist("run")
        grown = [self._run(key) for key in runs] if runs else self._library.listed()
        others = [] if runs else self._library.listed_by_kits()
        told = [f"{run.key}:{sum(run.version())}" for run in grown]
        told += [sha256_hex(section.encode()) for section, _ in others if section is not None]
        return Response(" ".join(told), media_type="text/plain")

    def run(self, request: Request) -> Response:
        """One run."""
        with self._opened(request) as run:
            has_report = (run.folder / "report.html").is_file()
            return page(run_page(run, request.query_params.get("task", ""), has_report=has_report))

    def figures(self, request: Request) -> Response:
        """The figures of a run alone."""
        with self._opened(request) as run:
            return page(figures_page(run, request.query_params.get("task", "")))

    def trials(self, request: Request) -> Response:
        """The sample browser."""
        with self._opened(request) as run:
            told = request.query_params
            return page(browse_page(run, walk_of(run, told), wanted_page(told)))

    def trial(self, request: Request) -> Response:
        """One trial."""
        with self._opened(request) as run:
            told = request.query_params
            return page(trial_page(run, _shown(run, told), walk_of(run, told), may_write=self._may_write))

    async def image(self, request: Request) -> Response:
        """The n-th picture of a stored trial. A thumbnail at hand is answered at once, nothing is read for it."""
        run = self._library.known(request.path_params["key"])
        place = (run.key, run.version(), request.scope["query_string"]) if run else None
        drawn = self._thumbs.again(place)
        return _webp(drawn) if drawn else await run_in_threadpool(self._picture, request, place)

    def _picture(self, request: Request, place: Hashable) -> Response:
        """Return a picture of a stored request, decoded and encoded again by us; no address ever names a file."""
        told = request.query_params
        with self._opened(request) as run:
            images = stored_pictures(run.reader, trial_in(told)) or []
        number = whole_number(told.get("n", "0"), len(images))
        if number >= len(images):
            raise NotFound("there is no such picture in this trial")
        chosen = images[number]
        if told.get("small"):
            return _webp(self._thumbs.small(chosen, place))
        return Response(encode_png(open_image(chosen), compress_level=1), media_type="image/png")

    def video(self, request: Request) -> Response:
        """The n-th video of a stored trial, if it begins as one; no address ever names a file."""
        record = self._video_record(request)
        found = None if record is None else playable(record)
        if found is None:
            raise NotFound("there is no such video in this trial")
        return FileResponse(found[0], media_type=found[1])

    def captions(self, request: Request) -> Response:
        """The subtitles of the n-th video of a stored trial, as the model was shown them, for the player."""
        record = self._video_record(request)
        if record is None:
            raise NotFound("there is no such video in this trial")
        return Response(caption_track(record).encode("utf-8", "replace"), media_type="text/vtt; charset=utf-8")

    def _video_record(self, request: Request) -> Mapping[str, Any] | None:
        told = request.query_params
        with self._opened(request) as run:
            records = records_of(_shown(run, told))
        number = whole_number(told.get("n", "0"), len(records))
        return records[number] if number < len(records) else None

    def reply(self, request: Request) -> Response:
        """One reply as a text file, however long."""
        with self._opened(request) as run:
            shown = _shown(run, request.query_params)
        return download(shown.prediction.text or "", "reply.txt", "text/plain")

    def request(self, request: Request) -> Response:
        """The request of a trial as its server would get it, pictures and all."""
        with self._opened(request) as run:
            exchange = whole_exchange(run, _shown(run, request.query_params))
        if exchange is None:
            raise NotFound("this trial was not asked over HTTP, or not by a dialect we write")
        return download(exchange.body, "request.json", "application/json")

    def label(self, request: Request) -> Response:
        """The next reply that people are to label for a judge, or one whose label is corrected."""
        told = request.query_params
        with self._opened(request) as run:
            judge, by = told.get("judge", ""), told.get("by", "")
            return page(label_page(run, judge, trial_in(told), by=by, may_write=self._may_write))

    def notes(self, request: Request) -> Response:
        """What people said of a run and its trials, as JSON lines."""
        run = self._run(request.path_params["key"])
        return download(exported_notes(run.folder), f"{run.key}-notes.jsonl", "application/x-ndjson")

    def figure(self, request: Request) -> Response:
        """The data of a figure, as CSV or as a Vega-Lite specification."""
        told = request.query_params
        with self._opened(request) as run:
            figures = run.overview(run.task(told.get("task", "")).name).figures
        figure = next((figure for figure in figures if figure.name == told.get("name")), None)
        if figure is None:
            raise NotFound("there is no such figure")
        if told.get("format") == "json":
            spec = msgspec.json.format(msgspec.json.encode(figure.spec), indent=1)
            return download(spec, f"{figure.name}.vl.json", "application/json")
        return download(to_csv(figure.rows), f"{figure.name}.csv", "text/csv")

    def download(self, request: Request) -> Response:
        """All trials of a run as CSV, JSONL or Parquet."""
        form = request.query_params.get("format", "csv")
        with self._opened(request) as run:
            if form == "parquet":
                return download(parquet_bytes(run.reader), f"{run.key}.parquet", "application/vnd.apache.parquet")
        form = "jsonl" if form == "jsonl" else "csv"
        headers = {"content-disposition": f'attachment; filename="{run.key}.{form}"'}
        return StreamingResponse(_lines(run.folder, form), media_type="text/csv", headers=headers)

    def compare(self, request: Request) -> Response:
        """Two to six runs side by side."""
        runs, names, results = self._compared(request)
        told = request.query_params
        beside = part_sheets(compare_parts([run.folder for run in runs], registry=runs[0].registry))
        return page(compare_page(runs, names, results, told.get("task", ""), wanted_page(told), beside=beside))

    def matrix(self, request: Request) -> Response:
        """Who fails where: samples and runs."""
        told = request.query_params
        return page(matrix_page(self._chosen(request), self._comparer, told.get("task", ""), wanted_page(told)))

    def sample(self, request: Request) -> Response:
        """One sample across runs."""
        told = request.query_params
        names = (told.get("task", ""), told.get("sample", ""), told.get("at", ""))
        return page(sample_page(self._chosen(request), self._comparer, *names))

    def compare_download(self, request: Request) -> Response:
        """A comparison as a file."""
        _, names, results = self._compared(request)
        return sheets_file(sheets_of(results, names), "comparison", request)

    def again(self, request: Request) -> Response:
        """The replies of a run read another way; nothing is written."""
        profile = known_profile(request.query_params.get("profile", ""))
        with self._opened(request) as run:
            return page(again_page(run, profile, may_write=self._may_write))

    def _run(self, key: str) -> OpenRun:
        return self._library.run(key)

    def _opened(self, request: Request) -> AbstractContextManager[OpenRun]:
        return self._run(request.path_params["key"]).held()

    def _board(self) -> Board:
        entries = []
        for run in self._library.runs():
            if run.is_load:  # how fast is not how well: its rows are those of a run that has its own line
                continue
            with run.held():
                entries.append(Entry(run.name, run.header(), run.results()))
        return make_board(entries)

    def _chosen(self, request: Request) -> list[OpenRun]:
        keys = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 2 <= len(keys) <= MOST_RUNS:
            raise UsageError(f"choose two to {MOST_RUNS} runs to compare, not {len(keys)}")
        # The older run first: then an improvement reads as a plus.
        return sorted((self._run(key) for key in keys), key=lambda run: run.header().created)

    def _compared(self, request: Request) -> tuple[list[OpenRun], list[str], Mapping[str, Sequence[Comparison]]]:
        runs = self._chosen(request)
        results = compare_runs([run.folder for run in runs])
        short = [run.folder.name for run in runs]
        names = short if len(set(short)) == len(short) else [str(run.folder) for run in runs]
        return runs, names, results


def create_app(library: RunLibrary, token: str, *, may_write: bool = False, registry: Registry | None = None) -> Asgi:
    """Return the whole viewer behind its guard."""
    viewer, registry = Viewer(library, may_write=may_write), registry or default_registry()
    pages: dict[str, Callable[[Request], Any]] = {
        "/run/{key}/image": viewer.image,  # routes are tried in order, and hundreds of these are asked for on a page
        "/": viewer.home,
        "/leaderboard": viewer.board,
        "/leaderboard/download": viewer.board_download,
        "/state": viewer.state,
        "/compare": viewer.compare,
        "/compare/download": viewer.compare_download,
        "/matrix": viewer.matrix,
        "/sample": viewer.sample,
        "/run/{key}": viewer.run,
        "/run/{key}/figures": viewer.figures,
        "/run/{key}/trials": viewer.trials,
        "/run/{key}/trial": viewer.trial,
        "/run/{key}/reply": viewer.reply,
        "/run/{key}/request": viewer.request,
        "/run/{key}/notes": viewer.notes,
        "/run/{key}/label": viewer.label,
        "/run/{key}/video": viewer.video,
        "/run/{key}/captions": viewer.captions,
        "/run/{key}/figure": viewer.figure,
        "/run/{key}/download": viewer.download,
        "/run/{key}/again": viewer.again,
        "/static/{name}": own_file,
    }
    routes = [Route(path, function) for path, function in pages.items()]
    routes += kit_routes(library, registry, may_write=may_write)
    changes = Changes(library, registry, allowed=may_write)
    routes.append(Route("/run/{key}/again", changes.scores, methods=["POST"]))
    routes.append(Route("/run/{key}/marks", changes.marks, methods=["POST"]))
    routes.append(Route("/run/{key}/label", changes.labels, methods=["POST"]))
    routes.append(Route("/runs/{doing}", changes.runs, methods=["POST"]))
    problems: dict[Any, Any] = {NotFound: not_found, SnellenError: explained, sqlite3.Error: explained, 404: not_found}
    return Guard(with_kit_places(Starlette(routes=routes, exception_handlers=problems), registry), token)


def kit_routes(library: RunLibrary, registry: Registry, *, may_write: bool) -> list[Route]:
    """Return a route for every registered page; its module is imported when it is first asked for."""
    pages = registry.entries("page").items()
    return [
        Route(address, _endpoint(page, library, may_write=may_write), methods=["POST" if page.writes else "GET"])
        for address, page in pages
    ]


def _endpoint(page: Page, library: RunLibrary, *, may_write: bool) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        if page.writes and not may_write:
            raise UsageError("this viewer only reads: start it with `snellen view --write` to change anything")
        make = resolve_target(page.target)
        made = await (make if iscoroutinefunction(make) else _in_thread(make))(library, request)
        return HTMLResponse(made.encode("utf-8", "replace")) if isinstance(made, str) else made

    return answer


def _in_thread(make: Callable[[RunLibrary, Request], Any]) -> Callable[[RunLibrary, Request], Any]:
    return lambda library, request: run_in_threadpool(make, library, request)


def with_kit_places(app: Asgi, registry: Registry) -> Asgi:
    """Return the application with the pages that stand in the bar known to every page it makes."""
    places = [(to, page.label) for to, page in registry.entries("page").items() if page.linked_from == "bar"]

    async def placed(scope: dict[str, Any], receive: Any, send: Any) -> None:
        KIT_PLACES.set(places)
        await app(scope, receive, send)

    return placed


def own_file(request: Request) -> Response:
    """One of our own three files, by name."""
    name = request.path_params["name"]
    if name not in STATIC:
        raise NotFound("there is no such file")
    return Response(static(name), media_type=STATIC[name])


def page(html: Html, status: int = 200) -> Response:
    """Answer with a page."""
    return HTMLResponse(html.encode("utf-8", "replace"), status_code=status)


def download(body: str | bytes, name: str, kind: str) -> Response:
    """Answer with a file to keep; the browser never shows it as a page."""
    data = body.encode("utf-8", "replace") if isinstance(body, str) else body
    return Response(data, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def sheets_file(sheets: Sequence[Sheet], name: str, request: Request) -> Response:
    """Answer with tables in the form that the address asks for; CSV if it asks for none we know."""
    form = request.query_params.get("format", "csv")
    form = form if form in ENDINGS else "csv"
    return download(render(sheets, form), f"{name}.{ENDINGS[form]}", "text/plain")


def not_found(_: Request, error: Exception) -> Response:
    """Say that something is not there."""
    words = str(error) if isinstance(error, NotFound) else "there is no such page"
    return _problem("Not found", words, 404)


def explained(request: Request, error: Exception) -> Response:
    """Say what is wrong, in a page or, for a picture, in a line."""
    if isinstance(error, DataError) and request.url.path.endswith("/image"):
        return Response(str(error), 404, media_type="text/plain")
    return _problem("That did not work", str(error), 501 if isinstance(error, MissingExtra) else 400)


def _webp(data: bytes) -> Response:
    return Response(data, media_type="image/webp")


def _problem(title: str, words: str, status: int) -> Response:
    parts = [tag("h1", title), tag("p", words, class_="notice"), tag("p", link("All runs", "/"))]
    return page(shell(title, parts), status)


def _lines(folder: Path, form: str) -> Iterator[bytes]:
    """Yield a large file piece by piece, from a reader of its own: nobody else waits for it."""
    with RunReader(folder) as reader:
        lines = jsonl_lines(reader) if form == "jsonl" else csv_lines(reader)
        while piece := "".join(islice(lines, LINES_AT_ONCE)):
            yield piece.encode("utf-8", "replace")


def _shown(run: OpenRun, told: QueryFields) -> Shown:
    shown = read_trial(run.reader, trial_in(told))
    if shown is None:
        raise NotFound("there is no such trial in this run")
    return shown
