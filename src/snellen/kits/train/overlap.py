"""Training chains and a benchmark's samples to what they share: the same file, a picture alike, a passage of text."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain as joined
from typing import NamedTuple, TypeAlias

import numpy as np
import PIL.Image
from msgspec import Struct
from numpy.typing import NDArray

from ...core.builtins import default_registry
from ...core.errors import DataError, UsageError
from ...core.ids import content_hash, sha256_hex
from ...core.protocols import LoadContext
from ...core.text import plural
from ...core.types import Image, Sample
from ...data.catalog import Catalog
from ...data.images.decode import decode, read_bytes
from .blend import PreparedChains
from .chains import Chain
from .rationale_facts import words_of
from .recipe import Recipe

MOST_BITS = 8
MOST_LEVELS = 10.0
"""Of 256: mean difference of the thumbnails."""
BLOCK = 512


Box: TypeAlias = tuple[float, float, float, float]
VIEW, FINE = 16, 48
CROPS = (0.0, 0.05, 0.1)
"""Shares of each side that the views of a picture leave out: a cropped copy is like one of them."""
COARSE, ALIKE, LOOSE = 0.85, 0.89, 0.85
"""Correlations: two views are looked at closer, are of one picture, are so if the words beside them are equal too."""
DETAIL, HOPED, PLAIN = 0.9, 0.5, 2.0
"""Correlation of what rows and columns do not share, in one picture; where no shift helps; levels of 256 of none.

Pages of one layout, forms and tables of one template look alike and are others: their words stand elsewhere."""
FLAT = 4.0
"""Levels of 256: what varies less has nothing to be known by."""
BORDER_LEVELS, BORDER_SHARE, MOST_BORDERS = 12, 0.25, 3
"""What differs from a frame by no more levels, or by no more of the largest difference, is it: JPEG blurs its rims."""


class PictureMark(NamedTuple):
    """One picture's fingerprints."""

    name: str
    sha256: str
    signs: int
    thumbnail: NDArray[np.float32]
    ref: str
    views: NDArray[np.float16] | None
    """Grey, without an even border, cropped by `CROPS`, brought to mean 0 and length 1; None of a flat picture."""
    fine: NDArray[np.uint8]


def mark_picture(name: str, image: Image) -> PictureMark:
    """Return the fingerprints of a picture as it lies on the disk, without its edits."""
    data = read_bytes(image)
    picture = decode(data, image.ref).convert("RGB")
    grey = np.asarray(picture.convert("L").resize((9, 8), PIL.Image.Resampling.BOX), dtype=np.int16)
    bits = (grey[:, 1:] > grey[:, :-1]).ravel()
    small = np.asarray(picture.resize((8, 8), PIL.Image.Resampling.BOX), dtype=np.float32).ravel()
    signs = int(np.packbits(bits).view(">u8")[0])
    inner = _without_border(picture.convert("L"))
    fine = np.asarray(inner.resize((FINE, FINE), PIL.Image.Resampling.BOX), np.uint8)
    views = [_normed(_cut(inner, _box(inner.size, crop), VIEW)) for crop in CROPS] if fine.std() >= FLAT else None
    packed = None if views is None else np.stack(views).astype(np.float16)
    return PictureMark(name, sha256_hex(data), signs, small, image.ref, packed, fine)


def _without_border(grey: PIL.Image.Image) -> PIL.Image.Image:
    """Return a picture without the even frames around it; a frame may lie on an even ground of its own."""
    for _ in range(MOST_BORDERS):
        pixels = np.asarray(grey, np.int16)
        corners = pixels[[0, 0, -1, -1], [0, -1, 0, -1]]
        off = np.abs(pixels - pixels[0, 0])
        inked = off > max(BORDER_LEVELS, BORDER_SHARE * float(off.max()))
        rows, columns = np.flatnonzero(inked.any(1)), np.flatnonzero(inked.any(0))
        if np.ptp(corners) > BORDER_LEVELS or rows.size < 8 or columns.size < 8:
            return grey
        box = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
        if box == (0, 0, *grey.size):
            return grey
        grey = grey.crop(box)
    return grey


def _box(size: tuple[int, int], crop: float, at: tuple[float, ...] = (0.5, 0.5)) -> Box:
    """Return a picture without so much of its sides in all, `at` saying how much of that on the left and at the top."""
    wide, tall = 2 * crop * size[0], 2 * crop * size[1]
    left, top = at[0] * wide, at[1] * tall
    return left, top, size[0] - wide + left, size[1] - tall + top


def _cut(grey: PIL.Image.Image, box: Box, side: int = FINE) -> NDArray[np.uint8]:
    return np.asarray(grey.resize((side, side), PIL.Image.Resampling.BOX, box=box), np.uint8)


def _normed(pixels: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
    flat = pixels.astype(np.float32).ravel()
    flat -= flat.mean()
    return flat / max(float(np.linalg.norm(flat)), 1e-6)


def near_pairs(taught: Sequence[PictureMark], tested: Sequence[PictureMark]) -> Iterator[tuple[int, int]]:
    """Yield the places (taught, tested) of pictures that look alike; equal files are not looked for here."""
    if not taught or not tested:
        return
    signs = np.asarray([mark.signs for mark in tested], dtype=np.uint64)
    thumbnails = np.stack([mark.thumbnail for mark in tested])
    for start in range(0, len(taught), BLOCK):
        block = taught[start : start + BLOCK]
        mine = np.asarray([mark.signs for mark in block], dtype=np.uint64)
        apart = np.bitwise_count(mine[:, None] ^ signs[None, :])
        near = apart <= MOST_BITS
        for row, column in np.argwhere(near | (_best_views(block, tested) >= COARSE)):
            levels = np.abs(block[row].thumbnail - thumbnails[column]).mean()
            least = -1.0 if near[row, column] and levels <= MOST_LEVELS else ALIKE
            if _one_picture(block[row], tested[column], least):
                yield start + int(row), int(column)


def _best_views(taught: Sequence[PictureMark], tested: Sequence[PictureMark]) -> NDArray[np.float32]:
    """Return the best correlation of each pair over who was cropped, and by how much, and mirrored or not."""
    mine, theirs = _views_of(taught), _views_of(tested)
    mirrored = theirs.reshape(*theirs.shape[:2], VIEW, VIEW)[..., ::-1].reshape(theirs.shape)
    best = np.full((len(taught), len(tested)), -1.0, np.float32)
    for other in (theirs, mirrored):
        for crop in range(len(CROPS)):
            np.maximum(best, mine[crop] @ other[0].T, out=best)
            np.maximum(best, mine[0] @ other[crop].T, out=best)
    return best


def _views_of(marks: Sequence[PictureMark]) -> NDArray[np.float32]:
    """Return (crop, picture, pixel); flat pictures are like none."""
    empty = np.zeros((len(CROPS), VIEW * VIEW), np.float32)
    return np.stack([empty if mark.views is None else mark.views.astype(np.float32) for mark in marks], axis=1)


ENDS = (0.0, 0.5, 1.0)
CLOSE_CROPS = (0.0125, 0.025, 0.0375, 0.05, 0.075, 0.1)


def _one_picture(one: PictureMark, other: PictureMark, least: float) -> bool:
    """Tell whether one of two pictures is a part of the other, mirrored or not, by a closer look and by its details."""
    return _is_part(one.fine, other.fine, least) or _is_part(other.fine, one.fine, least)


def _is_part(whole: NDArray[np.uint8], part: NDArray[np.uint8], least: float) -> bool:
    grey, looks = PIL.Image.fromarray(whole), (part, np.ascontiguousarray(part[:, ::-1]))
    normed = np.stack([_normed(look) for look in looks])
    boxes = [_box(grey.size, 0.0)]
    boxes += [_box(grey.size, *one) for one in itertools.product(CLOSE_CROPS, itertools.product(ENDS, ENDS))]
    alike = np.stack([normed @ _normed(_cut(grey, box)) for box in boxes])
    place, mirrored = np.unravel_index(int(alike.argmax()), alike.shape)
    return bool(alike.max() >= least) and _same_details(grey, looks[int(mirrored)], boxes[int(place)])


SHIFTS = (0.5, 0.25, 0.125)
"""By so much of a pixel of the closer look an edge is moved, again and again while that helps."""


def _same_details(grey: PIL.Image.Image, look: NDArray[np.uint8], box: Box) -> bool:
    """Tell whether a part has the details of the look at it; its edges are found more exactly where they may be."""
    sought, found = _details(look), _details(_cut(grey, box))
    if max(sought.std(), found.std()) < PLAIN:
        return True
    wanted = _normed(sought)
    best = float(_normed(found) @ wanted)
    for shift in SHIFTS:
        moved = True
        while moved and HOPED <= best < DETAIL:
            tries = [one for one in _moved(box, shift) if min(one[:2]) >= 0 and max(one[2:]) <= FINE]
            alike = [float(_normed(_details(_cut(grey, one))) @ wanted) for one in tries]
            moved = max(alike, default=-1.0) > best
            if moved:
                best, box = max(zip(alike, tries, strict=True))
    return best >= DETAIL


def _moved(box: Box, shift: float) -> Iterator[Box]:
    """Yield a box with each of its edges moved outwards and inwards."""
    for edge, way in itertools.product(range(4), (shift, -shift)):
        left, top, right, bottom = (end + way * (place == edge) for place, end in enumerate(box))
        yield left, top, right, bottom


def _details(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return what a picture has beyond the means of its rows and columns: lines of text and of tables are those."""
    levels = pixels.astype(np.float32)
    levels -= levels.mean(0)
    levels -= levels.mean(1, keepdims=True)
    return levels


PASSAGE = 13
"""Words in a row that two texts do not share by chance."""
LEAST_SHARE, LEAST_PASSAGES = 0.5, 5
"""Of a test item's own passages, how many stand in one training text: the half of few, or a row of seventeen words."""
COMMON_SHARE, COMMON_ITEMS = 0.02, 3
"""A passage in more of a benchmark's items than this is its wording, not its content."""


class Overlap(Struct, frozen=True):
    """One thing that training data and a benchmark share."""

    kind: str
    """`same picture`, `near picture`, `text` or `text with its picture`."""
    taught: str
    tested: str
    task: str


def picture_marks(named: Iterable[tuple[str, Image]]) -> tuple[list[PictureMark], list[str]]:
    """Return the fingerprints of all pictures, each file once, and what could not be read."""
    marks: list[PictureMark] = []
    unread: list[str] = []
    seen: set[str] = set()
    for name, image in named:
        if image.ref in seen:
            continue
        seen.add(image.ref)
        try:
            marks.append(mark_picture(name, image))
        except DataError as error:
            unread.append(str(error))
    return marks, unread


def shared_pictures(taught: Sequence[PictureMark], tested: Sequence[PictureMark], task: str) -> Iterator[Overlap]:
    """Yield equal files first, then pictures that look alike."""
    by_content = {mark.sha256: mark.name for mark in reversed(taught)}  # the first of equal ones is named
    equal: set[str] = set()
    for mark in tested:
        if mark.sha256 in by_content:
            equal.add(mark.name)
            yield Overlap("same picture", by_content[mark.sha256], mark.name, task)
    for mine, theirs in near_pairs(taught, tested):
        if tested[theirs].name not in equal:
            equal.add(tested[theirs].name)
            yield Overlap("near picture", taught[mine].name, tested[theirs].name, task)


def shared_texts(taught: Iterable[Chain], tested: Iterable[Sample], task: str) -> Iterator[Overlap]:
    """Yield test items whose own words stand in a row in a training text, or half of whose own passages do."""
    own = _own_passages({sample.id: _passages(_text_of(sample)) for sample in tested})
    holders: dict[int, list[str]] = {}
    for name, passages in own.items():
        for passage in passages:
            holders.setdefault(passage, []).append(name)
    said: set[str] = set()
    for chain in taught:
        hits = Counter(name for one in _passages(_taught_text(chain)) for name in holders.get(one, ()))
        for name, count in hits.items():
            if count >= min(LEAST_SHARE * len(own[name]), LEAST_PASSAGES) and name not in said:
                said.add(name)
                yield Overlap("text", chain.id, name, task)


SHORTEST = 3
"""Words: shorter questions are everybody's."""


def shared_questions(
    taught: Iterable[Chain],
    tested: Iterable[Sample],
    marks: tuple[Sequence[PictureMark], Sequence[PictureMark]],
    task: str,
) -> Iterator[Overlap]:
    """Yield test items too short for a passage whose words stand in a chain beside a picture that is about theirs."""
    mine, theirs = ({mark.ref: mark for mark in some} for some in marks)
    holders: dict[tuple[str, ...], list[Sample]] = {}
    for sample in tested:
        words = tuple(words_of(sample.question))
        if SHORTEST <= len(words) < PASSAGE and sample.images:
            holders.setdefault(words, []).append(sample)
    lengths, said = sorted({len(words) for words in holders}), set[str]()
    for chain in taught:
        shown = [mine[image.ref] for image in chain.pictures if image.ref in mine]
        for sample in _asked_in(words_of(_taught_text(chain)), lengths, holders) if shown else ():
            own = [theirs[image.ref] for image in sample.images if image.ref in theirs]
            if own and sample.id not in said and float(_best_views(shown, own).max()) >= LOOSE:
                said.add(sample.id)
                yield Overlap("text with its picture", chain.id, sample.id, task)


def _asked_in(
    words: Sequence[str], lengths: Iterable[int], holders: dict[tuple[str, ...], list[Sample]]
) -> Iterator[Sample]:
    """Yield the items whose whole question stands in a row among some words."""
    runs = {tuple(words[at : at + length]) for length in lengths for at in range(len(words) - length + 1)}
    for run in sorted(runs & holders.keys()):
        yield from holders[run]


def _own_passages(items: dict[str, set[int]]) -> dict[str, set[int]]:
    """Return of each item the passages that are not the wording of the whole benchmark."""
    found_in = Counter(joined.from_iterable(items.values()))
    most = max(COMMON_ITEMS, COMMON_SHARE * len(items))
    return {name: {one for one in passages if found_in[one] <= most} for name, passages in items.items()}


def _text_of(sample: Sample) -> str:
    return " ".join([sample.question, *sample.options, *(turn.text for turn in sample.turns)])


def _taught_text(chain: Chain) -> str:
    return " ".join([*(turn.text for turn in chain.turns), chain.reply])


def _passages(text: str) -> set[int]:
    words = words_of(text)
    return {hash(tuple(words[at : at + PASSAGE])) for at in range(len(words) - PASSAGE + 1)}


LISTED = 5
FILE = "overlap.json"


def check_contamination(recipe: Recipe, chains: PreparedChains, say: Callable[[str], None]) -> list[Overlap]:
    """Look for the benchmarks' pictures and texts among the training data; refuse what was not allowed, by name."""
    if not recipe.against:
        return []
    with closing(chains):
        found = find_overlaps(recipe, chains, say)
    report = {"against": list(recipe.against), "overlaps": found, "chains": len(chains), "content": content_hash(found)}
    (recipe.folder / FILE).write_bytes(_json(report))
    if not found:
        say(f"nothing shared with {', '.join(recipe.against)}")
        return found
    message = describe_overlaps(found)
    if not recipe.allow_overlap:
        fix = f"take them out, or --allow-overlap trains on them and says so in the card; all in {recipe.folder / FILE}"
        raise UsageError(f"training data and benchmark overlap: {message}; {fix}")
    say(f"training data and benchmark overlap, as allowed: {message}")
    return found


def find_overlaps(recipe: Recipe, chains: PreparedChains, say: Callable[[str], None]) -> list[Overlap]:
    """Return all that training data and the named benchmarks share."""
    marks, unread = picture_marks((chain.id, image) for chain in _all(chains) for image in chain.pictures)
    found: list[Overlap] = []
    for name in recipe.against:
        samples = benchmark_samples(name, recipe)
        theirs, theirs_unread = picture_marks((sample.id, image) for sample in samples for image in _shown(sample))
        if unread or theirs_unread:
            first = [*unread, *theirs_unread][0]
            say(f"{plural(len(unread) + len(theirs_unread), 'picture')} not compared with {name}: {first}")
        found += shared_pictures(marks, theirs, name)
        found += shared_texts(_all(chains), samples, name)
        found += shared_questions(_all(chains), samples, (marks, theirs), name)
    return found


def benchmark_samples(name: str, recipe: Recipe) -> list[Sample]:
    """Return the samples of a task, as it is asked."""
    catalog = Catalog(recipe.catalogs)
    samples: list[Sample] = []
    for each in catalog.expand(name):
        task = catalog.task(each, recipe.against_overrides)
        samples += default_registry().get("loader", task.dataset["loader"])(task, LoadContext())
    return samples


def describe_overlaps(found: Sequence[Overlap]) -> str:
    """Return the counts and the first items, for one line."""
    counts = ", ".join(f"{count} {kind}" for kind, count in Counter(one.kind for one in found).items())
    named = "; ".join(f"{one.kind}: {one.taught} = {one.tested} of {one.task}" for one in found[:LISTED])
    return f"{counts} ({named}{'; …' if len(found) > LISTED else ''})"


def _shown(sample: Sample) -> Iterator[Image]:
    yield from sample.images
    for turn in sample.turns:
        yield from turn.images


def _all(chains: PreparedChains) -> Iterator[Chain]:
    return (chains[place] for place in range(len(chains)))


def _json(value: object) -> bytes:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
