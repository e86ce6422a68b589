"""`snellen data fetch` and `snellen data verify`: the data of a card, brought and compared with what the card says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..core.errors import MissingData, UsageError
from ..core.tasks import Task
from ..core.text import plural
from ..data.atlas.card_sources import read_card_sources
from ..data.atlas.fetch import Fetched, Progress, fetch_source, pick_source
from ..data.atlas.protocols import protocols_of
from ..data.atlas.verify import Verified, verify_data
from ..data.catalog import Catalog
from ..data.loaders.row_source import data_home
from .settings import RunSettings


def fetch_card_data(
    name: str,
    *,
    data_root: Path | None = None,
    source: str | None = None,
    catalogs: Sequence[Path] = (),
    progress: Progress | None = None,
    again: bool = False,
) -> tuple[Fetched, Path]:
    """Bring the data of a card under the data root, and return what was fetched and where it is."""
    task = _card_task(Catalog(catalogs), name)
    chosen, found = pick_source(read_card_sources(task.dataset, f"task {name!r}"), source, name)
    folder = (data_root or data_home()) / str(task.dataset.get("path") or name)
    return fetch_source(chosen, found, folder, progress, again=again), folder


def bring_data(
    lack: MissingData, settings: RunSettings, agrees: Callable[[str], bool], say: Callable[[str], object]
) -> None:
    """Fetch what a run lacks, if `--yes` or whoever sits there agrees; else the lack is raised again."""
    task = _card_task(Catalog(settings.catalogs), lack.card)
    name, source = pick_source(read_card_sources(task.dataset, f"task {lack.card!r}"), None, lack.card)
    place = (settings.data_root or data_home()) / str(task.dataset.get("path") or lack.card)
    rows = f", {source.count:,} rows" if source.count else ""
    origin = source.ids[0] if source.ids else source.url
    if not settings.yes and not agrees(f"{lack.card} is not here: fetch it from {origin} ({name}{rows}) into {place}?"):
        raise UsageError(f"{lack}; --yes fetches it now")
    fetched, folder = fetch_card_data(lack.card, data_root=settings.data_root, catalogs=settings.catalogs)
    say(f"{lack.card}: {plural(len(fetched.files), 'file')} of {fetched.origin} fetched into {folder}")


def verify_card_data(name: str, path: Path, catalogs: Sequence[Path] = ()) -> Verified:
    """Compare the data at a path with a card."""
    if not path.exists():
        raise UsageError(f"--path {str(path)!r} does not exist")
    return verify_data(_card_task(Catalog(catalogs), name), path)


def _card_task(catalog: Catalog, name: str) -> Task:
    """Return the card as a task whose data is described; of several protocols the first that describes it."""
    for protocol in protocols_of(catalog.task_table(name)):
        task = catalog.task(name, protocol=protocol)
        if task.dataset["loader"] == "card":
            return task
    raise UsageError(f"task {name!r} is no card of a published benchmark: nobody wrote down where its data lies")
