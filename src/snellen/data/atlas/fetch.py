"""The data of a card to a folder: a hub's snapshot or official files. Afterwards nothing needs the network."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError, EnvironmentProblem, MissingExtra, SnellenError, UsageError, not_among
from ..files.rows import READERS
from .card_sources import CardSource

CHUNK = 1 << 20
TIMEOUT_S = 60.0
PART = ".part"
"""How a file ends that is not whole yet."""
Progress = Callable[[str, int, int | None], None]
"""Told the file, the bytes that are there and those that there will be, where known."""
DIGESTS = {8: "md5", 32: "md5", 64: "sha256"}
"""Which checksum a text of so many digits is."""


def file_digest(path: Path, kind: str) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()


def check_digest(path: Path, expected: str) -> bool | None:
    """Tell whether a file has the checksum a card says; None where the card says none."""
    kind = DIGESTS.get(len(expected))
    return None if kind is None else file_digest(path, kind).startswith(expected.lower())


def download(url: str, target: Path, expected: str = "", progress: Progress | None = None) -> None:
    """Bring a file to its place; what an earlier call left is continued, what does not match is not kept."""
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"{url!r} is no web address")
    part = target.with_name(target.name + PART)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _continue(url, part, progress)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise EnvironmentProblem(f"cannot fetch {url}: {_reason(error)}; {_what_next(error, part)}") from None
    if check_digest(part, expected) is False:
        kind = DIGESTS[len(expected)]
        found = file_digest(part, kind)
        part.unlink()
        raise DataError(
            f"{url} is another file than the card says ({kind} {found}, not {expected}): it was not kept; "
            "the benchmark may have a new version"
        )
    part.replace(target)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    return str(getattr(error, "reason", "") or error or type(error).__name__)


def _what_next(error: Exception, part: Path) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return "the file may have moved: bring it yourself, `snellen data verify` compares it with the card"
    have = part.stat().st_size if part.exists() else 0
    return f"{have:,} bytes are kept, the same command continues"


def _continue(url: str, part: Path, progress: Progress | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310 - checked
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310 - http and https only, see `download`
    except urllib.error.HTTPError as error:
        if have and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # all of it is here already
        raise
    with answer:
        whole = answer.status != http.HTTPStatus.PARTIAL_CONTENT  # a server that cannot continue sends all of it
        _write(answer, part, 0 if whole else have, progress)


def _write(answer: Any, part: Path, have: int, progress: Progress | None) -> None:
    length = answer.headers.get("Content-Length")
    total = have + int(length) if length else None
    with part.open("ab" if have else "wb") as file:
        while chunk := answer.read(CHUNK):
            file.write(chunk)
            have += len(chunk)
            if progress is not None:
                progress(part.name.removesuffix(PART), have, total)
    if total is not None and have < total:
        raise ConnectionError(f"the connection ended after {have:,} of {total:,} bytes")


RECORD = ".fetched.json"
"""What was fetched, from where, and its checksums; a hidden file is no table."""


class Fetched(Struct, frozen=True, omit_defaults=True):
    """Where the data of a card came from."""

    source: str
    origin: str
    revision: str = ""
    files: dict[str, str] = {}
    """File -> SHA-256."""
    already: bool = False
    """Everything was here before."""


def pick_source(sources: Mapping[str, CardSource], wanted: str | None, card: str) -> tuple[str, CardSource]:
    """Return the source that was named, else the first that can be fetched."""
    if wanted is not None:
        if wanted not in sources:
            raise UsageError(f"card {card!r}: --source {not_among(wanted, sorted(sources), ' is unknown')}")
        chosen = {wanted: sources[wanted]}
    else:
        chosen = dict(sources)
    for name, source in chosen.items():
        if source.ids or (source.url and source.files):
            return name, source
    bring = next((one.bring for one in chosen.values() if one.bring), "") or "bring it, -p dataset.path=FILE"
    raise UsageError(f"card {card!r} does not say where its {wanted or 'data'} lies: {bring}")


def fetch_source(
    name: str, source: CardSource, folder: Path, progress: Progress | None = None, *, again: bool = False
) -> Fetched:
    """Bring one source to a folder and write down what it is; a source that is here already is only checked."""
    known = None if again else _known(folder, name)
    if known is not None:
        return msgspec.structs.replace(known, already=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        fetched = _from_hub(name, source, folder) if source.ids else _from_address(name, source, folder, progress)
    except SnellenError:
        with suppress(OSError):  # nothing came: an empty folder would be taken for data
            folder.rmdir()
        raise
    (folder / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(fetched)))
    return fetched


def read_fetched(folder: Path) -> Fetched | None:
    """Return what was fetched into a folder, or None where nothing was (or the record cannot be read)."""
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=Fetched)
    except (OSError, msgspec.MsgspecError):
        return None


def _known(folder: Path, source: str) -> Fetched | None:
    record = read_fetched(folder)
    if record is None or record.source != source:
        return None
    whole = all(
        (folder / file).is_file() and check_digest(folder / file, digest) for file, digest in record.files.items()
    )
    return record if whole else None


def _from_address(name: str, source: CardSource, folder: Path, progress: Progress | None) -> Fetched:
    for file, digest in source.files.items():
        target = folder / file
        if not (target.is_file() and check_digest(target, digest)):
            download(source.url + file, target, digest, progress)
    files = {file: file_digest(folder / file, "sha256") for file in source.files}
    return Fetched(name, source.url, files=files)


def _from_hub(name: str, source: CardSource, folder: Path) -> Fetched:
    try:
        import huggingface_hub
        from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError
    except ImportError:
        raise MissingExtra("hub", "fetching from a hub") from None
    endpoint = os.environ.get("HF_ENDPOINT") or None
    hub = huggingface_hub.HfApi(endpoint=endpoint)
    for spelling in source.ids:
        try:
            revision = str(hub.dataset_info(spelling).sha)
            listed = hub.list_repo_files(spelling, repo_type="dataset", revision=revision)
            files = list(wanted_files(listed, source, spelling))
            hub.snapshot_download(
                spelling,
                repo_type="dataset",
                revision=revision,
                local_dir=folder,
                allow_patterns=[_literal(file) for file in files],
            )
        except RepositoryNotFoundError:
            continue
        except SnellenError:
            raise
        except HfHubHTTPError as error:
            raise EnvironmentProblem(
                f"cannot fetch {spelling}: {_first_line(error)}; the same command continues"
            ) from None
        except Exception as error:  # noqa: BLE001 - the transport, which the hub's library exchanges between versions
            offline = "is HF_HUB_OFFLINE set, or is there no network? With one the same command continues"
            bring = "without, -p dataset.path=FOLDER takes files that were fetched elsewhere"
            raise EnvironmentProblem(
                f"cannot reach the hub for {spelling} ({_first_line(error)}): {offline}; {bring}"
            ) from None
        digests = {file: file_digest(folder / file, "sha256") for file in files}
        return Fetched(name, spelling, revision, digests)
    raise DataError(f"the hub knows none of {', '.join(source.ids)}: the benchmark may have moved")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _literal(file: str) -> str:
    """Return a pattern that means this file alone."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in file)


def wanted_files(listed: Sequence[str], source: CardSource, origin: str) -> Iterator[str]:
    """Yield the tables of a source's config and split among the files of a dataset, and what else it names.

    Refused where there is none: a benchmark without its rows is not fetched.
    """
    tables = [file for file in listed if PurePosixPath(file).suffix.lower() in READERS]
    tables = _narrowed(tables, source.config, lambda file: source.config in PurePosixPath(file).parts)
    tables = _narrowed(tables, source.split, lambda file: _in_split(file, source.split))
    if not tables:
        raise DataError(f"{origin} has no table of config {source.config!r} and split {source.split!r}")
    yield from tables
    yield from (file for file in listed if any(fnmatch(file, pattern) for pattern in source.also))


def _narrowed(files: list[str], wanted: str, fits: Callable[[str], bool]) -> list[str]:
    """Return the files that fit what is wanted; all of them where none does: some datasets have one folder for all."""
    return (wanted and list(filter(fits, files))) or files


def _in_split(file: str, split: str) -> bool:
    stem = PurePosixPath(file).stem
    return stem == split or stem.startswith((f"{split}-", f"{split}_", f"{split}."))
