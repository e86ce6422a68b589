"""A task's samples, checked before the first request: unique ids, answers among options, images that exist."""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from os.path import basename
from pathlib import Path

import msgspec
from msgspec import Struct

from ..core.errors import DataError
from ..core.message_parts import all_pictures, all_videos, holds_marker, marked_pictures, number_markers
from ..core.protocols import LoadContext, Loader
from ..core.tasks import MOST_GROUPS, PlannedCounts, Task
from ..core.text import NO_TAG, plural, tag_text
from ..core.twins import read_rules, with_twins
from ..core.types import OFFERED, Form, Sample, Video
from .errata import Golds
from .images.decode import short_name

LISTED_FOLDERS = 3
NAMED = 5
"""So many missing files are named."""
IMAGE, VIDEO, SUBTITLES = "image", "video", "subtitle file"


class Leaving(Struct, frozen=True):
    """What would leave with one pass over the samples."""

    size_bytes: int = 0
    outside: int = 0
    first_outside: tuple[str, ...] = ()
    """The first few pictures that lie outside, as `sample: file`."""
    folder: str = ""
    """The folder they lie outside of."""


class SampleFiles:
    """Looks at the files that samples name: which are missing, how large pictures are, what lies outside the folders.

    Links are followed. Without folders (a loader that makes or fetches its own pictures) nothing lies outside. They are
    looked up when the first picture comes: a loader names them when it begins.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._given = folders
        self._known: dict[str, bool] = {}
        self._size_bytes = self._outside = 0
        self._first_outside: list[str] = []
        self._missing: Counter[str] = Counter()
        self.first_missing: list[str] = []

    def add(self, sample: Sample) -> int:
        """Look at the files of one sample; return how many pictures it names."""
        pictures = all_pictures(sample)
        for image in pictures:
            self._add_picture(sample.id, image.ref)
        for video in all_videos(sample):
            self._add_video(VIDEO, sample.id, video.ref)
            if video.subtitles:
                self._add_video(SUBTITLES, sample.id, video.subtitles)
        return len(pictures)

    @property
    def missing_count(self) -> int:
        """Return how many files are missing."""
        return self._missing.total()

    @property
    def missing_said(self) -> str:
        """Return what is missing, kind by kind: `2 images and 1 video`; empty where nothing is."""
        kinds = [kind for kind in (IMAGE, VIDEO, SUBTITLES) if self._missing[kind]]
        return " and ".join(plural(self._missing[kind], kind) for kind in kinds)

    def leaving(self) -> Leaving:
        """Return what would leave."""
        return Leaving(self._size_bytes, self._outside, tuple(self._first_outside), next(iter(self._given), ""))

    def _add_picture(self, sample: str, ref: str) -> None:
        if ref.startswith("data:"):
            self._size_bytes += (len(ref) - ref.find(",") - 1) * 3 // 4
            return
        size_bytes, linked = _look_at(ref)
        if size_bytes is None:
            self._add_missing(IMAGE, sample, ref)
            return
        self._size_bytes += size_bytes
        self._check_place(sample, ref, linked=linked)

    def _add_video(self, kind: str, sample: str, ref: str) -> None:
        """Look at a video, a folder of frames or a file of subtitles; what leaves of it is known when it is asked."""
        if Path(ref).exists():
            self._check_place(sample, ref, linked=True)
        else:
            self._add_missing(kind, sample, ref)

    def _add_missing(self, kind: str, sample: str, ref: str) -> None:
        self._missing[kind] += 1
        if len(self.first_missing) < NAMED:
            self.first_missing.append(f"{sample}: {short_name(ref)}")

    def _check_place(self, sample: str, ref: str, *, linked: bool) -> None:
        if self._roots and self._lies_outside(ref, linked=linked):
            self._outside += 1
            if len(self._first_outside) < LISTED_FOLDERS:
                self._first_outside.append(f"{sample}: {short_name(ref)}")

    @cached_property
    def _roots(self) -> list[str]:
        return [root for folder in self._given for root in _roots_of(os.path.realpath(folder))]

    def _lies_outside(self, ref: str, *, linked: bool) -> bool:
        folder = ref.rpartition("/")[0]
        inside = self._known.get(folder)
        if inside is None:  # thousands of pictures lie in few folders: only what may be a link is looked at alone
            inside = self._known[folder] = self._is_under(os.path.realpath(folder or "/"))
        if inside and not linked:
            return False
        return not self._is_under(os.path.realpath(ref))

    def _is_under(self, path: str) -> bool:
        return any(path == root or path.startswith(root.rstrip("/") + "/") for root in self._roots)


def _roots_of(folder: str) -> list[str]:
    """Return a folder and, for a snapshot in a hub's cache, the folder of its repository: its files are links there."""
    head, found, _ = folder.partition("/snapshots/")
    return [folder, head] if found and Path(head, "blobs").is_dir() else [folder]


def _look_at(ref: str) -> tuple[int | None, bool]:
    """Return how many bytes a picture has (None where it is not there), and whether the file itself may be a link."""
    try:
        status = os.lstat(ref)  # one call for most of thousands of pictures
        if stat.S_ISREG(status.st_mode):
            return status.st_size, False
        status = Path(ref).stat()
    except (OSError, ValueError):
        try:
            status = Path(ref).stat()  # as a Path: `a.png/` is written so in some tables
        except (OSError, ValueError):
            return None, False
    return (status.st_size if stat.S_ISREG(status.st_mode) else None), True


class MarkerCount(Struct):
    """What one pass over the samples found."""

    rows: int = 0
    """Samples with a marker of a picture they have."""
    options: int = 0
    """Samples with a picture among their options."""
    unnamed: int = 0
    """Pictures that no marker names, of questions that name others."""
    unnamed_in: str = ""
    """The first sample with one."""
    missing: int = 0
    """Markers of pictures that their samples do not have."""
    missing_in: str = ""

    def add(self, sample: Sample) -> None:
        """Count one sample."""
        texts = "\n".join((sample.question, *sample.options))
        if "<" in texts and holds_marker(texts):
            self._add_question(sample, number_markers((sample.question, *sample.options)))
        elif sample.turns and any(turn.images and holds_marker(turn.text) for turn in sample.turns):
            self.rows += 1

    def _add_question(self, sample: Sample, texts: list[str]) -> None:
        named = set(marked_pictures(texts))
        there = named & set(range(1, len(sample.images) + 1))
        self.missing += len(named - there)
        self.missing_in = self.missing_in or (sample.id if named - there else "")
        if not there:
            return
        self.rows += 1
        self.options += not there.isdisjoint(marked_pictures(texts[1:]))
        if len(there) < len(sample.images) and marked_pictures(texts[:1]):
            self.unnamed += len(sample.images) - len(there)
            self.unnamed_in = self.unnamed_in or sample.id


MOST = 200
"""When there are so many, every second goes."""
MOST_BYTES = 16 * 2**20
"""Pictures in data URLs are heavy: of those fewer are kept."""


class SampleExamples:
    """Keeps every sample at first, then every second, every fourth and so on."""

    def __init__(self) -> None:
        self._kept: list[Sample] = []
        self._weight_bytes = 0
        self._seen, self._step = 0, 1

    def add(self, sample: Sample) -> None:
        """Keep a sample if it is its turn."""
        self._seen += 1
        if (self._seen - 1) % self._step:
            return
        self._kept.append(sample)
        self._weight_bytes += weight_bytes(sample)
        while len(self._kept) > 1 and (len(self._kept) >= MOST or self._weight_bytes > MOST_BYTES):
            del self._kept[1::2]
            self._weight_bytes = sum(map(weight_bytes, self._kept))
            self._step *= 2

    def kept(self) -> tuple[Sample, ...]:
        """Return those that are kept, in the order they came."""
        return tuple(self._kept)


def weight_bytes(sample: Sample) -> int:
    """Return about how much text a sample carries, where it may be much."""
    weight = len(sample.question)
    if sample.images:
        weight += sum([len(image.ref) for image in sample.images])
    if sample.meta:
        weight += len(repr(sample.meta))
    return weight


TWINS = 3
"""Twins that are drawn of a question whose card gives a rule."""
LISTED = 5
KEPT_SAMPLES = 5_000
KEPT_BYTES = 64 * 2**20
"""Pictures in data URLs and whole documents are heavy: what would take more than this is read again instead."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Iterates the same samples every time, lazily, up to the limit."""

    task: Task
    loader: Loader
    context: LoadContext
    _kept: list[Sample] = field(default_factory=list)
    """A small dataset is read once and kept; a large one is read again each time, in constant memory."""
    tagged: bool = False
    """Whether samples carry their form as a tag: those of a task of several forms are grouped by it."""
    chosen: frozenset[str] | None = None
    """The ids to keep; None keeps all."""
    marks: array[int] = field(default_factory=lambda: array("q"))
    """A hash of each sample that was surveyed and not kept: one that is read again must be the same."""
    golds: Golds | None = None
    """Corrections of gold answers, put in as samples are read."""

    def __iter__(self) -> Iterator[Sample]:
        samples = iter(self._kept) if self._kept else self._read()
        return map(_tagged, samples) if self.tagged else samples

    def _read(self) -> Iterator[Sample]:
        fresh: list[Sample] | None = []
        room_bytes = KEPT_BYTES
        samples = self.loader(self.task, self.context)
        if self.golds is not None:
            samples = self.golds.applied(samples)
        if self.task.twins:
            rules = read_rules(self.task.twins, self.task.name)
            samples = (with_twins(sample, rules, TWINS, self.context.seed) for sample in samples)
        if self.chosen is not None:
            samples = (sample for sample in samples if sample.id in self.chosen)
        samples = islice(samples, self.context.limit)
        for sample in self._unchanged(samples) if self.marks else samples:
            if fresh is not None:
                fresh.append(sample)
                room_bytes -= weight_bytes(sample)
                if room_bytes < 0 or len(fresh) > KEPT_SAMPLES:
                    fresh = None
            yield sample
        if fresh:
            self._kept[:] = fresh

    def remember(self, marks: array[int]) -> None:
        """Keep what a survey saw, to compare what is read again with it; what is kept whole is not read again."""
        self.marks[:] = array("q") if self._kept or self.tagged else marks

    def _unchanged(self, samples: Iterator[Sample]) -> Iterator[Sample]:
        """Pass on what is as it was surveyed; refuse data that was changed under the run, by its first row."""
        count = 0
        for count, sample in enumerate(samples, 1):
            if count > len(self.marks) or hash(content_bytes(sample)) != self.marks[count - 1]:
                raise self._changed(f"row {sample.id!r}")
            yield sample
        if count < len(self.marks):
            raise self._changed(f"{count:,} of {len(self.marks):,} rows are left:")

    def _changed(self, what: str) -> DataError:
        fix = "put it back and run the same command again, or choose another -o"
        kept = "nothing was asked of the changed data"
        return DataError(f"task {self.task.name!r}: {what} changed after the run was planned ({kept}): {fix}")


def _tagged(sample: Sample) -> Sample:
    return msgspec.structs.replace(sample, tags={"form": sample.form.value, **sample.tags})


class FormCount(msgspec.Struct):
    """How many samples of one form there are, and what they have."""

    samples: int = 0
    images: int = 0
    videos: int = 0
    options: int = 0
    answered: int = 0

    def add(self, sample: Sample) -> None:
        """Count one sample."""
        self.samples += 1
        self.options += len(sample.options)
        self.answered += bool(sample.answers)
        if sample.images or sample.videos or sample.turns:
            self.images += len(all_pictures(sample))
            self.videos += len(all_videos(sample))


class Survey(msgspec.Struct, frozen=True):
    """What one pass over a dataset found."""

    samples: int
    images: int
    characters: int
    fingerprint: str
    """Hash of all samples: the same data, the same fingerprint, wherever the files lie."""
    missing: tuple[str, ...] = ()
    """The first few files that are not there, as `sample: file`."""
    missing_count: int = 0
    tags: frozenset[str] = frozenset()
    """What the samples can be grouped by."""
    forms: dict[Form, FormCount] = {}
    with_history: int = 0
    """Samples that have earlier rounds."""
    notes: tuple[str, ...] = ()
    """What the loader has to say of the data."""
    videos: int = 0
    markers: MarkerCount = msgspec.field(default_factory=MarkerCount)
    """Where pictures stand inside the texts."""
    leaving: Leaving = Leaving()
    """What of the pictures would leave with the questions."""
    counted: PlannedCounts = PlannedCounts()
    """What is planned, group by group."""
    examples: tuple[Sample, ...] = ()
    """Some samples, spread evenly over all."""
    missing_said: str = ""
    """What is missing, kind by kind: `2 images and 1 video`."""


class GroupCounter:
    """Counts how many samples each value of each tag has, and how many chains, documents or dialogues there are."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = frozenset(wanted)
        self._samples = self._alone = 0
        self._groups: set[str] = set()
        self._tags: dict[str, dict[str, int] | None] = {}
        """None: a tag with too many values to be a group."""

    def add(self, sample: Sample) -> None:
        """Count one sample."""
        self._samples += 1
        if sample.group is None:
            self._alone += 1
        else:
            self._groups.add(sample.group)
        if sample.tags:
            self._count_tags(sample.tags)

    @property
    def names(self) -> frozenset[str]:
        """Return what the samples can be grouped by."""
        return frozenset(self._tags)

    def _count_tags(self, tags: Mapping[str, object]) -> None:
        for key, value in tags.items():
            counts = self._tags.setdefault(key, {})
            if counts is not None:
                text = tag_text(value)
                counts[text] = counts.get(text, 0) + 1
                if len(counts) > MOST_GROUPS and key not in self._wanted:
                    self._tags[key] = None

    def counts(self) -> PlannedCounts:
        """Return what was counted; samples without a tag that others have are counted as such."""
        tags = {key: dict(counts) for key, counts in self._tags.items() if counts is not None}
        for counts in tags.values():
            without = self._samples - sum(counts.values())
            if without:
                counts[NO_TAG] = counts.get(NO_TAG, 0) + without
        return PlannedCounts(self._samples, self._alone + len(self._groups), tags)


FINGERPRINT_DIGITS = 16
_encode = msgspec.json.Encoder(order="deterministic").encode


def content_bytes(sample: Sample) -> bytes:
    """Return all of a sample but where its pictures lie."""
    if not (sample.images or sample.turns or sample.videos or sample.meta):  # it names no file
        return _encode(sample)
    names = [image.ref if image.ref.startswith("data:") else _name(image.ref) for image in all_pictures(sample)]
    return _encode(without_places(sample)) + "".join(names).encode()


def fingerprint_of(samples: Iterable[Sample]) -> str:
    """Return the hash of samples as a survey of them has it; that of the first rows of more data is theirs alone."""
    digest = hashlib.sha256()
    for sample in samples:
        digest.update(content_bytes(sample))
    return digest.hexdigest()[:FINGERPRINT_DIGITS]


def survey(dataset: Dataset) -> Survey:
    """Read every sample once, in constant memory but for the ids, and refuse what cannot be measured."""
    digest, marks = hashlib.sha256(), array("q")
    ids: set[str] = set()
    repeated: list[str] = []
    images = characters = with_history = 0
    forms: dict[Form, FormCount] = defaultdict(FormCount)
    dataset.context.notes.clear()
    files, markers, examples = SampleFiles(dataset.context.folders), MarkerCount(), SampleExamples()
    counter = GroupCounter(dataset.task.group_by)
    for sample in dataset:
        counter.add(sample)
        examples.add(sample)
        name = sample.id if sample.id.isascii() else unicodedata.normalize("NFC", sample.id)  # equal on screen is equal
        if name in ids:
            repeated.append(sample.id)
        ids.add(name)
        check_sample(sample)
        content = content_bytes(sample)
        digest.update(content)
        marks.append(hash(content))  # for this process alone
        characters += len(sample.question)
        with_history += bool(sample.turns)
        markers.add(sample)
        if sample.images or sample.videos or sample.turns:
            images += files.add(sample)
        forms[sample.form].add(sample)
    _check_ids(dataset.task.name, ids, repeated)
    dataset.remember(marks)
    return Survey(
        samples=len(ids),
        images=images,
        characters=characters,
        fingerprint=digest.hexdigest()[:FINGERPRINT_DIGITS],
        missing=tuple(files.first_missing),
        missing_count=files.missing_count,
        tags=counter.names,
        forms=dict(forms),
        with_history=with_history,
        notes=tuple(_note(text, who) for text, who in dataset.context.notes.items()),
        videos=sum(counts.videos for counts in forms.values()),
        markers=markers,
        leaving=files.leaving(),
        counted=counter.counts(),
        examples=examples.kept(),
        missing_said=files.missing_said,
    )


def _check_ids(task: str, ids: set[str], repeated: list[str]) -> None:
    """Refuse a task without samples, or with several of one id."""
    if repeated:
        shown = ", ".join(map(repr, dict.fromkeys(repeated[:LISTED])))
        repeats = f"samples that repeat an id: {len(repeated)} ({shown})"
        fix = "ids must be unique (--map id=COLUMN names their column, --map id=COLUMN,question joins several)"
        raise DataError(f"task {task!r}: {repeats}; {fix}")
    if not ids:
        raise DataError(f"task {task!r} has no samples")


def _note(text: str, who: Counter[str]) -> str:
    """Return a note with how many rows it is about, and the first few of them by name."""
    if not text.startswith("rows "):
        return text
    named = [name for name in islice(who, LISTED) if name]
    listed = f" ({', '.join(named)}{', …' if who.total() > len(named) else ''})" if named else ""
    return f"{plural(who.total(), 'row')}{text.removeprefix('rows')}{listed}"


def _name(ref: str) -> str:
    name = basename(ref)  # noqa: PTH119
    return name if name not in ("", ".") or not ref else Path(ref).name


def without_places(sample: Sample) -> Sample:
    """Return the sample without where its pictures lie: only their names count."""
    sample = _without_video_places(sample)
    if not sample.images and not sample.meta and not sample.turns:
        return sample
    if any(turn.images for turn in sample.turns):  # they are digested with the others
        bare = tuple(msgspec.structs.replace(turn, images=()) for turn in sample.turns)
        sample = msgspec.structs.replace(sample, turns=bare)
    pages = {name: [_name(ref) for _, ref in found] for name, found in sample.meta.get("pages", {}).items()}
    return msgspec.structs.replace(sample, images=(), meta=sample.meta | {"pages": pages} if pages else sample.meta)


def _without_video_places(sample: Sample) -> Sample:
    if not all_videos(sample):
        return sample
    turns = tuple(
        msgspec.structs.replace(turn, videos=_names_of(turn.videos)) if turn.videos else turn for turn in sample.turns
    )
    return msgspec.structs.replace(sample, videos=_names_of(sample.videos), turns=turns)


def _names_of(videos: Iterable[Video]) -> tuple[Video, ...]:
    return tuple(msgspec.structs.replace(one, ref=_name(one.ref), subtitles=_name(one.subtitles)) for one in videos)


def check_sample(sample: Sample) -> None:
    """Refuse a sample whose answer cannot be right: not among its options, or options that are the same."""
    if sample.form not in OFFERED:
        return
    if len(sample.options) < 2:
        raise DataError(f"sample {sample.id!r} is a choice with {len(sample.options)} options; it needs at least two")
    if len(set(sample.options)) != len(sample.options) and not sample.meta.get("duplicate_options"):
        raise DataError(f"sample {sample.id!r} has the same option twice: {list(sample.options)}")
    for answer in sample.answers:
        if answer not in sample.options:
            raise DataError(f"sample {sample.id!r}: answer {answer!r} is not among its options {list(sample.options)}")
