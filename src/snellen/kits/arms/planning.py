"""A task to the same in arms: every variant with and without its picture; what the data cannot be asked is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.errors import UsageError
from ...core.message_parts import all_pictures, all_videos
from ...core.tasks import Task
from ...core.types import OFFERED, Sample
from ...core.variants import (
    BLANK,
    FRAMES_SHUFFLED,
    NO_VIDEO,
    ONE_FRAME,
    OTHER,
    SHUFFLED_OPTIONS,
    WITHOUT_PAGE,
    check_arms,
    find_arms,
    in_arms,
    parse_variant,
)

if TYPE_CHECKING:
    from ...api.settings import RunSettings
    from ...core.protocols import Model
    from ...prompt.controls import OtherPictures

NEW = (BLANK, OTHER, WITHOUT_PAGE)
"""Controls that show something in the place of what a row has."""


def with_arms(task: Task, settings: RunSettings, _model: Model) -> Task:
    """Return the task with every variant in every arm that was named."""
    if not settings.arms:
        return task
    check_arms(settings.arms)
    return replace(task, variants=in_arms(task.variants, settings.arms))


def check_rows(task: Task, samples: Iterable[Sample], others: OtherPictures | None, settings: RunSettings) -> None:
    """Refuse what rows cannot be asked in, of all arms that were named."""
    check_evidence(task, samples, others, told=bool(settings.arms))


def check_evidence(task: Task, samples: Iterable[Sample], others: OtherPictures | None, *, told: bool) -> None:
    """Refuse arms that some rows cannot be asked in: a figure over the others would be one of another test.

    `told`: arms were named as such; else only what stands in for a picture is looked at, and never in vain.
    """
    controls = {parse_variant(variant).get("control", ""): variant for variant in task.variants}
    arms = {name: variant for name, variant in controls.items() if name in NEW}
    arms |= {arm.name: arm.variant for arm in find_arms(task.variants)} if told else {}
    if not arms:
        return
    lacking: dict[str, list[str]] = {}
    count = 0
    for sample in samples:
        count += 1
        for arm, variant in arms.items():
            lack = _lack(sample, arm, variant, others)
            if lack:
                lacking.setdefault(lack, []).append(sample.id)
    for lack, ids in lacking.items():
        raise UsageError(f"task {task.name!r}: {_said(ids, count)} {lack}")


def _said(ids: Sequence[str], count: int) -> str:
    if len(ids) == count:
        return "every row"
    named = ", ".join(map(repr, ids[:3]))
    return f"{len(ids)} of {count} rows ({named}{', …' if len(ids) > 3 else ''})"


def _lack(sample: Sample, arm: str, variant: str, others: OtherPictures | None) -> str:
    """Return what a row lacks for an arm, and what to do about it; nothing where it can be asked."""
    pictures, videos = all_pictures(sample), all_videos(sample)
    if not pictures and not videos:
        return f"lacks a picture, and arm {arm} is about it: leave those rows out (--ids, --subset), or --arms"
    if arm in (NO_VIDEO, ONE_FRAME, FRAMES_SHUFFLED) and not videos:
        return f"lacks a video, which arm {arm} is about: arms of pictures are none, blank and other"
    if arm == SHUFFLED_OPTIONS and (sample.form not in OFFERED or len(sample.options) < 2):
        return f"lacks options, whose order arm {arm} changes: leave the arm out"
    if arm == WITHOUT_PAGE:
        return _lacks_pages(sample, variant)
    if arm == OTHER and (others is None or others.find(sample) is None):
        return "has no other picture of the task with another answer: leave arm other out, or add rows"
    return ""


def _lacks_pages(sample: Sample, variant: str) -> str:
    from ...prompt.controls import choose_pages, needle_pages

    axes = {axis: value for axis, value in parse_variant(variant).items() if axis != "control"}
    wanted, shown = needle_pages(sample, axes.get("pages", "")), choose_pages(sample, axes)
    if not wanted:
        return "does not say which page holds the answer (column evidence_pages): leave arm without-page out"
    if all((image.page or place) in wanted for place, image in enumerate(shown, start=1)):
        return "has no page but the one that holds the answer: arm none asks that"
    return ""
