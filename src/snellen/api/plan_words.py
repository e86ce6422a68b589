"""A plan in words: how own data was read, what there is of each form, and prompts as they will be sent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..core.protocols import Capability, TellsSampling
from ..core.text import plural
from ..data.dataset import MarkerCount
from ..data.images.decode import short_name
from ..prompt.build import PrompterByForm
from .header import prompts_of
from .plan import Plan, PlannedTask, first_of_each_form, where_pictures_go
from .run_cost import CostEstimate, short_cost

SHORT_TASKS = 2
"""Tasks that a short plan names one by one."""


def short_plan(plan: Plan, estimate: CostEstimate) -> list[str]:
    """Return a plan in five lines at most: first what one should know of the rows, then what is asked, and of whom."""
    notes = [*(note for planned in plan.tasks for note in _notes(planned)), *leaving_notes(plan)]
    more = f" ({plural(len(notes) - 1, 'further note')}: --verbose)" if len(notes) > 1 else ""
    lines = [f"note: {notes[0]}{more}"] if notes else []
    one_by_one = len(plan.tasks) <= SHORT_TASKS - len(lines)
    tasks = list(map(_short_task, plan.tasks)) if one_by_one else [_all_tasks(plan)]
    cost = "; ".join(short_cost(estimate))
    folder = f"run folder {plan.folder}; the whole plan: --verbose"
    return [*lines, *tasks, _short_model(plan), *([cost] if cost else []), folder]


def _notes(planned: PlannedTask) -> Iterator[str]:
    """Yield what was guessed, left out or looks wrong; how a file was recognised is for the whole plan."""
    rows = planned.survey.samples
    counts = {one["count"] for one in (planned.task.dataset.get("sources") or {}).values() if one.get("count")}
    if counts and rows not in counts:
        yield f"{rows:,} of {' or '.join(f'{count:,}' for count in sorted(counts))} rows: a part of {planned.task.name}"
    markers = describe_markers(planned.survey.markers, placed=places_pictures(planned))
    told = [line for line in markers if "without" in line]
    yield from (*told, *(note for note in planned.survey.notes if not note.startswith("read as")))


def _all_tasks(plan: Plan) -> str:
    pictures = sum(one.survey.images for one in plan.tasks)
    return f"{len(plan.tasks)} tasks: {plural(plan.trials, 'trial')}, {plural(pictures, 'picture')}"


def _short_task(planned: PlannedTask) -> str:
    """Say a task in a line: rows of how many, forms, pictures, and trials where these are more."""
    content, task = planned.survey, planned.task
    counts = {one["count"] for one in (task.dataset.get("sources") or {}).values() if one.get("count")}
    whole = f" of {content.samples:,} rows" if content.samples in counts else ""
    forms = [f"{counts.samples:,} {form.value}" for form, counts in content.forms.items()]
    kinds = f" ({', '.join(forms)})" if len(forms) > 1 else ""
    asked = f"{content.samples:,}{whole}" if whole else plural(content.samples, "question")
    shown = [plural(content.images, "picture")] if content.images else []
    shown += [plural(content.videos, "video")] if content.videos else []
    times = [plural(len(task.variants), "variant"), plural(task.repeats, "inference")]
    trials = f"; × {' × '.join(times)} = {plural(planned.trials, 'trial')}" if planned.trials != content.samples else ""
    return f"{task.name}: {', '.join([asked + kinds, *shown])}{trials}"


def _short_model(plan: Plan) -> str:
    """Say in a line who is asked, how it samples and what leaves this machine."""
    said = next((line.strip() for planned in plan.tasks for line in describe_params(planned, plan)), "")
    return "; ".join(filter(None, (f"model {plan.model.name}", said, leaving_bytes(plan))))


def describe_rows(planned: PlannedTask) -> Iterator[str]:
    """Say where pictures stand in the text, how rows were read and, of own data, what there is of each form."""
    yield from (f"  {line}" for line in describe_markers(planned.survey.markers, placed=places_pictures(planned)))
    for note in planned.survey.notes:
        yield f"  {note}"
    if planned.task.dataset["loader"] != "table":
        return
    for sample in first_of_each_form(planned.dataset, planned.survey):
        counts = planned.survey.forms[sample.form]
        videos = ((counts.videos, "video"),) if counts.videos else ()
        parts = (*videos, (counts.images, "picture"), (counts.options, "option"), (counts.answered, "answer"))
        has = [plural(*pair) for pair in parts]
        asks = f"the first asks {shorten(sample.question)}"
        yield f"  {sample.form.value}: {plural(counts.samples, 'row')}, {', '.join(has)}; {asks}"


def describe_videos(planned: PlannedTask) -> Iterator[str]:
    """Say how videos are shown, where there are any."""
    if planned.survey.videos:
        for show in dict.fromkeys(prompt.video for prompt in prompts_of(planned.prompter)):
            said = {"native": "as videos", "frames": "as frames"}[show.route]
            size = f", longest side {show.side} px" if show.side else ""
            subtitles = f", subtitles {show.subtitles}" if show.subtitles != "none" else ""
            tempo = f", disturbed by {show.tempo}" if show.tempo else ""
            yield f"  videos: shown {said}, policy {show.frames}{size}, {show.encoding}{subtitles}{tempo}"


def describe_markers(markers: MarkerCount, *, placed: bool) -> Iterator[str]:
    """Say in how many rows pictures have their place in the text, and what has no partner."""
    if markers.rows:
        then = "each picture stands where its marker does" if placed else "they stay text, all pictures stand first"
        among = f", {markers.options} of them among the options" if markers.options else ""
        yield f"{markers.rows} rows with markers (<image 1>) in their text{among}: {then}"
    if markers.unnamed and placed:
        where = f"in rows that name others (first: {markers.unnamed_in})"
        yield f"{markers.unnamed} pictures without a marker {where}: shown first"
    if markers.missing:
        yield f"{markers.missing} markers without their picture (first: {markers.missing_in}): left as text"


def describe_leaving(plan: Plan) -> Iterator[str]:
    """Say how many bytes of pictures go where, and how many of these files lie outside the data's folder."""
    yield from filter(None, (leaving_bytes(plan), *leaving_notes(plan)))


def leaving_bytes(plan: Plan) -> str:
    """Say how many bytes of picture files go where; nothing where there are none."""
    times = ((one.survey.leaving.size_bytes, len(one.task.variants) * one.task.repeats) for one in plan.tasks)
    size_bytes = sum(size * count for size, count in times)
    place = where_pictures_go(plan.model)
    stripped = " without their metadata" if plan.model.image_policy.bare else ""
    goes = f"go to {place}{stripped}" if place else "stay on this machine"
    return f"{count_bytes(size_bytes)} of picture files {goes}" if size_bytes else ""


def leaving_notes(plan: Plan) -> Iterator[str]:
    """Say what a model's replies are not kept for, what of it is not used, and which pictures lie elsewhere."""
    if uncovered := getattr(plan.model, "uncovered", ""):
        yield f"replies of {plan.model.name} are not cached: it {uncovered}, and what answers there may change unseen"
    if unused := getattr(plan.model, "unused", ""):
        yield f"{plan.model.name}: {unused}"
    for leaving in (one.survey.leaving for one in plan.tasks):
        if leaving.outside:
            yield f"{leaving.outside} pictures lie outside {leaving.folder}: {'; '.join(leaving.first_outside)}"


def count_bytes(size_bytes: int) -> str:
    """Return a number of bytes as people say it."""
    power = min(3, (len(str(size_bytes)) - 1) // 3)
    return f"{size_bytes / 1000**power:,.{min(power, 1)}f} {('bytes', 'kB', 'MB', 'GB')[power]}"


def places_pictures(planned: PlannedTask) -> bool:
    """Tell whether markers become pictures, in any form."""
    prompter = planned.prompter
    prompts = prompter.prompts.values() if isinstance(prompter, PrompterByForm) else [prompter.prompt]
    return any(prompt.place_pictures for prompt in prompts)


def describe_params(planned: PlannedTask, plan: Plan) -> Iterator[str]:
    """Say how replies are sampled, what was left open included; nothing of a task that generates none."""
    task, model = planned.task, plan.model
    if Capability.GENERATE not in plan.registry.get("inferencer", task.infer).needs:
        return
    if isinstance(model, TellsSampling):
        yield f"  sampling: {model.describe_sampling(task.params)}"
    elif Capability.STREAM in model.capabilities:
        asked = task.params.temperature
        yield "  temperature: " + ("not set, the server's default applies" if asked is None else f"{asked:g}")


def shorten(text: str, width: int = 60) -> str:
    """Return the beginning of a text in one line, quoted."""
    line = " ".join(text.split())
    return repr(line if len(line) <= width else line[: width - 1] + "…")


def show_prompts(planned: PlannedTask, count: int) -> Iterator[str]:
    """Yield the first prompts as they will be sent, message by message."""
    variant = planned.task.variants[0]
    for sample in islice(planned.dataset, count):
        yield f"--- {planned.task.name} {sample.id} ({sample.form.value})"
        for turn in planned.prompter.build(sample, variant).messages:
            names = [f"<{short_name(image.ref)}>" for image in turn.images]
            yield " ".join([f"[{turn.role}]", *([] if turn.parts else names)])
            yield "".join(turn.arrange(names)) if turn.parts else turn.text
