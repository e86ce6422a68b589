"""A stored trial with tools to what its page shows: where it looked, call → crop → reply, and the other arms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ...core.errors import SnellenError
from ...core.looks import LOOK_ARMS, PLAIN, Look, LookEnd, arm_of, end_of, variant_of_arm
from ...core.markup import Child, Html, shorten, tag
from ...core.text import plural
from ...core.types import Image, Sample, ToolCall, TrialKey
from ...data.images.decode import read_bytes, read_header
from ...report.pages.gallery import Shown, read_trial
from ...report.pages.parts import reply_text, row_outcome
from ...report.viewer.run_library import OpenRun
from ...report.viewer.shell import link, picture
from ...report.viewer.stage import Looked
from ...report.viewer.walk import Walk, place_of
from ...scoring.tables.table import TrialColumns
from ...store.reader import RunReader
from ...store.turns import StoredTurn
from .figures import PART, LookArms, LookFilter
from .part import ARM_WORDS, KIND_WORDS
from .trials import has_looks, source_of
from .views import SHRINKING

SAID = 600
"""Characters of a reply between looks that are shown."""


def turns_of(reader: RunReader, key: TrialKey) -> list[StoredTurn]:
    """Return the turns of a trial; none of a run without tools."""
    return reader.turns(key) if has_looks(reader, key.task) else []


def numbered(turns: Sequence[StoredTurn]) -> list[tuple[str, Look]]:
    """Return every look by the number of its turn; several of one turn have letters: 1, 2a, 2b."""
    looks = [look for turn in turns for look in turn.looks]
    several = Counter(look.turn for look in looks)
    seen: Counter[int] = Counter()
    named = []
    for look in looks:
        letter = "abcdefghijklmnopqrstuvwxyz"[seen[look.turn] % 26] if several[look.turn] > 1 else ""
        seen[look.turn] += 1
        named.append((f"{look.turn + 1}{letter}", look))
    return named


def looked_at(reader: RunReader, shown: Shown) -> list[Looked]:
    """Return the regions of a trial's looks."""
    return regions_of(shown.sample, turns_of(reader, shown.prediction.key))


def regions_of(sample: Sample, turns: Sequence[StoredTurn]) -> list[Looked]:
    """Return the regions that were looked at on the question's own pictures, where these show their whole source."""
    named = numbered(turns)
    every = [look for _, look in named]
    sizes = {place: source_size(image) for place, image in enumerate(sample.images)} if named else {}
    found = []
    for name, look in named:
        place = source_of(look, sample, every)
        size = sizes.get(place)
        if look.region is not None and not look.problem and size is not None:
            left, top, right, bottom = look.region
            box = (left / size[0], top / size[1], right / size[0], bottom / size[1])
            found.append(Looked(place, name, box))
    return found


def source_size(image: Image) -> tuple[int, int] | None:
    """Return the size of a picture's source file; None where the picture shows a part of it, or it is gone."""
    if any(not edit.startswith(SHRINKING) for edit in image.edits):
        return None
    if image.width and image.height:
        return image.width, image.height
    try:
        header = read_header(read_bytes(image), image.ref)
    except SnellenError:
        return None
    return header.width, header.height


def looks_part(run: OpenRun, shown: Shown, columns: TrialColumns, walk: Walk) -> Iterator[Child]:
    """Yield what a trial did with its tools: how it ended, call → crop → reply, and the other arms."""
    key = shown.prediction.key
    if PART not in columns.filters:
        return
    turns, end = turns_of(run.reader, key), end_of(shown.prediction)
    if end is not None:
        yield tag("h2", "What it looked at")
        yield tag("p", *_ended(end), class_="looked")
        yield tag("div", *_calls_strip(run, key, turns), class_="columns look-cards", tabindex=0, role="region",
                  aria_label="Call, crop and reply, turn by turn")  # fmt: skip
    yield from _arms(run, columns, key, walk)


def _ended(end: LookEnd) -> Iterator[Child]:
    """Yield in words how the trial went."""
    yield f"{plural(end.turns, 'turn')}, {plural(end.calls, 'call')}, {end.looks:,} done. "
    if end.classes:
        yield f"Not done: {', '.join(f'{count:,} {name}' for name, count in end.classes.items())}. "
    yield from ("Ended as ", tag("b", end.end))
    yield f", by the limit {end.limit}." if end.limit else "."
    if end.shared:
        yield f" {plural(end.shared, 'turn')} shared with another arm."
    if end.foreign:
        yield f" The server looked by itself {end.foreign:,} times: not shown."


def _calls_strip(run: OpenRun, key: TrialKey, turns: Sequence[StoredTurn]) -> Iterator[Html]:
    named, places = numbered(turns), picture_places(turns)
    for turn in turns:
        reply = turn.prediction
        parts: list[Child] = [tag("header", f"turn {turn.number + 1}", class_="small muted")]
        if reply.text:
            parts.append(reply_text(reply.text, most=SAID))
        written = {call.id: call for call in reply.calls}
        own = [(name, look) for name, look in named if look.turn == turn.number]
        for name, look in own:
            place = places.get(id(look))
            crop = None if place is None else link(picture(run, key, f"Look {name}", n=place), f"#picture-{place}")
            parts.append(_result(name, look, written.pop(look.call, None), crop, place))
        parts += [_written(call, call.problem or "not run") for call in written.values()]
        if turn is turns[-1]:
            parts.append(tag("p", "the last reply", class_="small muted"))
        yield tag("article", *parts, class_="card")


def picture_places(turns: Sequence[StoredTurn]) -> dict[int, int]:
    """Return where each look's picture stands among those of the last request, by the id of the look's record."""
    asked = sum(len(turn.images) for turn in turns[0].request.messages) if turns else 0
    shown = [look for turn in turns for look in turn.looks if look.image is not None]
    return {id(look): asked + place for place, look in enumerate(shown)}


def _written(call: ToolCall, said: Child) -> Html:
    words = tag("code", f"{call.name} {shorten(call.arguments, 200)}")
    return tag("figure", words, tag("figcaption", said, class_="small"))


def _result(name: str, look: Look, call: ToolCall | None, crop: Html | None, place: int | None) -> Html:
    """Return a call as it was written, where that is no part of the reply's text, and what came of it."""
    written = tag("code", f"{call.name} {shorten(call.arguments, 200)}") if call is not None else None
    if look.problem:
        why = tag("figcaption", tag("b", look.problem), f": {shorten(look.told, 200)}", class_="small")
        return tag("figure", written, why)
    if crop is None or place is None:
        told = tag("figcaption", f"{name} → no picture: {shorten(look.told, 200)}", class_="small")
        return tag("figure", written, told)
    enlarged = f", {look.enlargement:.1f} ×" if look.enlargement != 1.0 else ""
    mended = f" ({', '.join(look.notes)})" if look.notes else ""
    return tag(
        "figure", written, crop, tag("figcaption", f"{name} → picture {place + 1}{enlarged}{mended}", class_="small")
    )


def _arms(run: OpenRun, columns: TrialColumns, key: TrialKey, walk: Walk) -> Iterator[Child]:
    """Yield the same question in every arm: what was shown first, and what came of it."""
    own = arm_of(key.variant)[1]
    cards = []
    for arm in LOOK_ARMS:
        other = TrialKey(key.task, key.sample, variant_of_arm(own, arm), key.repeat)
        shown = read_trial(run.reader, other) if other.variant in columns.variants else None
        if shown is not None:
            cards.append(_arm_card(run, columns, arm, shown, walk, here=other == key))
    if len(cards) > 1:
        yield tag("h2", "The same question in every arm")
        yield from _kind_words(columns, key)
        label = "Arms side by side"
        yield tag("div", *cards, class_="columns look-cards", tabindex=0, role="region", aria_label=label)


def _kind_words(columns: TrialColumns, key: TrialKey) -> Iterator[Html]:
    filtered = cast(LookFilter, columns.filters[PART])
    kinds: Mapping[str, str] = dict(zip(columns.samples, LookArms(columns, filtered.trials).kinds(), strict=True))
    if kind := kinds.get(key.sample):
        yield tag("p", f"Over all replies this question is {kind}: {KIND_WORDS[kind]}.", class_="muted")


def _arm_card(run: OpenRun, columns: TrialColumns, arm: str, shown: Shown, walk: Walk, *, here: bool) -> Html:
    key = shown.prediction.key
    place = place_of(columns, key)
    outcome = None if place is None else row_outcome(columns, place)
    to = link(arm, walk.trial(run, key), aria_current="true" if here else None)
    turns = turns_of(run.reader, key)
    places = picture_places(turns)
    first: Child = None
    if places:
        first = picture(run, key, f"What arm {arm} showed first", n=min(places.values()))
    called = any(turn.looks for turn in turns)
    words = tag("p", ARM_WORDS[arm] if called or arm == PLAIN else "no tool was called", class_="small muted")
    return tag("article", tag("p", outcome, " ", to), words, first, reply_text(shown.text, shown.span, most=300),
               class_="card")  # fmt: skip
