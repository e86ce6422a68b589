"""Training data against benchmarks: what they share is named, and refused unless it was allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from ...core.builtins import default_registry
from ...core.errors import UsageError
from ...core.ids import content_hash
from ...core.protocols import LoadContext
from ...core.text import plural
from ...core.types import Image, Sample
from ...data.catalog import Catalog
from .blend import PreparedChains
from .chains import Chain
from .overlap import Overlap, picture_marks, shared_pictures, shared_questions, shared_texts
from .recipe import Recipe

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
