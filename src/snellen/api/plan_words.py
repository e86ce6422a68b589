"""A plan in words: how own data was read, what there is of each form, and prompts as they will be sent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..core.protocols import Capability, TellsSampling
from ..data.images.decode import short_name
from .plan import Plan, PlannedTask, first_of_each_form


def describe_rows(planned: PlannedTask) -> Iterator[str]:
    """Say of own data how it was read, and what there is of each form."""
    if planned.task.dataset["loader"] != "table":
        return
    for note in planned.survey.notes:
        yield f"  {note}"
    for sample in first_of_each_form(planned.dataset, planned.survey):
        counts = planned.survey.forms[sample.form]
        has = (f"{counts.images} pictures", f"{counts.options} options", f"{counts.answered} answers")
        asks = f"the first asks {shorten(sample.question)}"
        yield f"  {sample.form.value}: {counts.samples} rows, {', '.join(has)}; {asks}"


def describe_params(planned: PlannedTask, plan: Plan) -> Iterator[str]:
    """Say how replies are sampled, what was left open included; nothing of a task that generates none."""
    task, model = planned.task, plan.model
    if Capability.GENERATE not in plan.registry.get("inferencer", task.infer).needs:
        return
    if isinstance(model, TellsSampling):
        yield f"  sampling: {model.describe_sampling(task.params)}"
    elif Capability.STREAM in model.capabilities:
        asked = task.params.temperature
        yield "  sampling: " + ("temperature not sent: the server's own" if asked is None else f"temperature {asked:g}")


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
            yield f"[{turn.role}]" + "".join(f" <{short_name(image.ref)}>" for image in turn.images)
            yield turn.text
