"""Settings to a checked plan: tasks, prompts, data and model, and the header that names the run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product, starmap
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.builtins import INFERENCERS, default_registry
from ..core.config import convert, set_by_path
from ..core.errors import DataError, UsageError, did_you_mean, not_among
from ..core.ids import content_hash
from ..core.jobs import Item, Job
from ..core.protocols import Capability, Inferencer, LoadContext, Model
from ..core.registry import Registry, foreign_code
from ..core.secret import names_a_key
from ..core.tasks import Prompt, RunHeader, Task
from ..core.types import Form, Sample
from ..core.variants import parse_variant
from ..data.catalog import DEFAULT_SCORERS, Catalog, with_defaults
from ..data.dataset import Dataset, Survey, survey
from ..data.degrade.calibrations import calibrated_variant
from ..data.loaders.row_dialogues import DIALOGUES
from ..data.selection import choose
from ..extract.profiles import profile_named
from ..infer.generate import GENERATE
from ..infer.plugged import contain, raised
from ..model.options import ModelOptions
from ..prompt.build import Prompter
from ..prompt.by_form import PrompterByForm
from ..prompt.duplicate import duplicate
from ..prompt.pack import apply_pack, read_pack
from ..prompt.shots import make_retriever
from .header import installed_versions, make_header
from .settings import RunSettings

NOT_IN_IDENTITY = ("scorers", "aggregates", "group_by", "title", "notes", "licence", "dimension")
"""Fields of a task that change how replies are read, not the replies: scoring again may differ."""


class PlannedTask(NamedTuple):
    """One task, ready to be asked."""

    task: Task
    prompter: Prompter | PrompterByForm
    dataset: Dataset
    survey: Survey

    @property
    def trials(self) -> int:
        """Return how many trials it has."""
        return self.survey.samples * len(self.task.variants) * self.task.repeats


class Plan(NamedTuple):
    """A checked run."""

    tasks: list[PlannedTask]
    model: Model
    registry: Registry
    header: RunHeader
    folder: Path
    seed: int

    @property
    def trials(self) -> int:
        """Return how many trials all tasks have."""
        return sum(task.trials for task in self.tasks)

    def jobs(self, order: Callable[[list[Item], int], list[Item]] | None = None) -> Iterator[Job]:
        """Yield the jobs of all tasks, lazily, in the order of the data, or in the order that `order` makes of it."""
        for task, prompter, dataset, _ in self.tasks:
            items: Iterable[Item] = starmap(Item, enumerate(dataset))
            if order is not None:
                items = order(list(items), self.seed)
            make_jobs = partial(self.registry.get("inferencer", task.infer).plan, task, items, prompter)
            is_ours = task.infer in INFERENCERS
            yield from make_jobs() if is_ours else contain(task.infer, make_jobs, partial(enumerate, dataset))


def make_plan(settings: RunSettings) -> Plan:
    """Resolve every name, read the data once, and refuse what cannot work before the first request."""
    registry = _registry_for(settings)
    model = create_model(settings, registry)
    catalog = Catalog(settings.catalogs)
    names = list(dict.fromkeys(name for wanted in settings.tasks for name in catalog.expand(wanted)))
    if not names:
        raise UsageError("name at least one task (see `snellen tasks`) or data file")
    tasks = [_resolve(catalog, name, settings) for name in names]
    check_names(tasks, names)
    for task in tasks:
        check_trials(task)
        check_capabilities(model, task, registry)
    folder = settings.output_dir or Path("runs") / _folder_name(tasks, model, settings)
    planned = [_plan_task(task, catalog, registry, settings, folder) for task in tasks]
    check_images(model, planned)
    return Plan(planned, model, registry, _header(planned, model, settings), folder, settings.seed)


def _registry_for(settings: RunSettings) -> Registry:
    registry = default_registry()
    if settings.profile not in (None, "snellen"):
        profile_named(str(settings.profile))
    for plugin in settings.plugins:
        registry.load_plugin(plugin)
    return registry


def _resolve(catalog: Catalog, name: str, settings: RunSettings) -> Task:
    """Return one task as it will be asked."""
    task = catalog.task(name, settings.task_overrides())
    if settings.duplication is not None or settings.random_instruct:
        prompt = _prompt_for(catalog, task, settings)
        task = duplicate(task, prompt, settings.duplication or len(prompt.instructions) or 1, settings.random_instruct)
    return task


def create_model(settings: RunSettings, registry: Registry) -> Model:
    """Return the model named `provider/name`."""
    provider, _, name = settings.model.partition("/")
    known = registry.names("model")
    if provider not in known:
        hint = f"openai/{settings.model}" if settings.base_url else ""
        tip = f" (did you mean {hint!r}?)" if hint else did_you_mean(provider, known)
        wrong = f"model {settings.model!r}: unknown provider {provider!r}{tip}"
        raise UsageError(f"{wrong}; write provider/name, providers: {', '.join(known)}")
    refuse_keys(settings)
    options = ModelOptions(
        base_url=settings.base_url,
        api_key=settings.api_key,
        timeout_s=settings.timeout_s or 600.0,
        image_policy=settings.image_policy,
        arguments=settings.model_arguments,
    )
    model: Model = registry.get("model", provider)(name, options)
    return model


def check_names(tasks: list[Task], names: list[str]) -> None:
    """Refuse two tasks of one name: their trials would be taken for each other's."""
    seen: dict[str, str] = {}
    for task, name in zip(tasks, names, strict=True):
        other = seen.setdefault(task.name, name)
        if other != name:
            both = f"{other!r} and {name!r} are both called {task.name!r}"
            raise UsageError(f"{both}: rename one file, or run them one by one")


def check_trials(task: Task) -> None:
    """Refuse a task without trials, or with the same one twice."""
    if task.repeats < 1 or not task.variants:
        counts = f"{task.repeats} repeats and {len(task.variants)} variants"
        raise UsageError(f"task {task.name!r} has {counts}: at least one of each")
    if not 0 <= (task.params.temperature or 0) < math.inf:
        raise UsageError(f"task {task.name!r}: temperature {task.params.temperature} is not a number from 0")
    if len(set(task.variants)) != len(task.variants):
        raise UsageError(f"task {task.name!r} names a variant twice: {', '.join(task.variants)}")


def check_groups(task: Task, content: Survey) -> None:
    """Refuse to group by what no sample has, before anything is asked."""
    known = {"variant", "repeat", *content.tags}.union(*(parse_variant(variant) for variant in task.variants))
    for key in task.group_by:
        if key not in known:
            raise UsageError(f"task {task.name!r}: cannot group by {not_among(key, sorted(known))}")


def check_capabilities(model: Model, task: Task, registry: Registry) -> None:
    """Refuse, by name, what the model cannot do."""
    known = registry.names("inferencer")
    if task.infer not in known:
        raise UsageError(f"task {task.name!r}: unknown inferencer {task.infer!r}{did_you_mean(task.infer, known)}")
    with foreign_code(raised(task.infer)):
        inferencer: Inferencer = registry.get("inferencer", task.infer)
        inferencer.read_options(task)
        missing = inferencer.needs - model.capabilities
    if missing:
        what = ", ".join(sorted(missing))
        raise UsageError(f"model {model.name!r} cannot do {what}, which task {task.name!r} needs ({task.infer})")


def check_images(model: Model, planned: list[PlannedTask]) -> None:
    """Refuse to show pictures to a model that cannot see."""
    for task, _, _, content in planned:
        if content.images and Capability.IMAGES not in model.capabilities:
            raise UsageError(f"model {model.name!r} takes no images, and task {task.name!r} has {content.images}")


def _header(planned: list[PlannedTask], model: Model, settings: RunSettings) -> RunHeader:
    tasks = {entry.task.name: _identity_of(entry) for entry in planned}
    return make_header(
        model,
        {"seed": settings.seed, "limit": settings.limit, "tasks": tasks},
        versions=installed_versions(),
        command=settings.command,
        tasks=[entry.task for entry in planned],
        planned={entry.task.name: entry.trials for entry in planned},
    )


def _identity_of(planned: PlannedTask) -> dict[str, Any]:
    table = msgspec.to_builtins(planned.task)
    for field in NOT_IN_IDENTITY:
        table.pop(field)
    for field in ("path", "image_root", "image_list", "documents_in_flight"):
        table["dataset"].pop(field, None)  # the data's content counts, not where it lies
    table["variants"] = [calibrated_variant(variant) for variant in planned.task.variants]
    for field in ("timeout_s", "stream"):
        table["params"].pop(field, None)
    prompter = planned.prompter
    prompt = prompter.prompts if isinstance(prompter, PrompterByForm) else prompter.prompt
    return {**table, "prompt": msgspec.to_builtins(prompt), "data": planned.survey.fingerprint}


def settle_form(task: Task, content: Survey) -> Task:
    """Return a task whose records decided their form with that form, if all decided alike; else it stays `auto`."""
    if task.form is not Form.AUTO or len(content.forms) != 1:
        return task
    scorers = () if task.scorers == DEFAULT_SCORERS[Form.AUTO] else task.scorers
    return with_defaults(msgspec.structs.replace(task, form=next(iter(content.forms)), scorers=scorers))


def check_forms(task: Task, content: Survey, registry: Registry) -> None:
    """Refuse candidates' likelihood where some records have none, and dialogues where no record has a history."""
    inferencer: Inferencer = registry.get("inferencer", task.infer)
    if task.form is Form.AUTO and Capability.LIKELIHOOD in inferencer.needs:
        found = ", ".join(f"{counts.samples} {form.value}" for form, counts in content.forms.items())
        raise UsageError(f"task {task.name!r} has records of several forms ({found}): likelihood needs one; use --ids")
    if task.infer in INFERENCERS:
        inferencer.read_options(task)
    if task.dataset["loader"] == "table" and task.infer in DIALOGUES and not content.with_history:
        needs = "rows with group and round, or a list of messages in each (messages, conversations, turns)"
        raise UsageError(f"task {task.name!r} has no dialogues, which --infer-method {task.infer} needs: {needs}")


def _make_prompter(
    task: Task, dataset: Dataset, content: Survey, catalog: Catalog, settings: RunSettings
) -> Prompter | PrompterByForm:
    def of_form(form: Form) -> Prompter:
        prompt = _prompt_for(catalog, task, settings, form)
        drawn = prompt.shots.retriever != "zero"
        return Prompter(task, prompt, settings.seed, make_retriever(prompt.shots, list(dataset)) if drawn else None)

    if task.form is not Form.AUTO:
        return of_form(task.form)
    return PrompterByForm({form: of_form(form) for form in sorted(content.forms)})


def _plan_task(task: Task, catalog: Catalog, registry: Registry, settings: RunSettings, folder: Path) -> PlannedTask:
    context = LoadContext(seed=settings.seed, root=settings.data_root, workdir=folder / "images", limit=settings.limit)
    dataset = Dataset(task, registry.get("loader", task.dataset["loader"]), context)
    dataset = choose(dataset, settings.ids, settings.sample, settings.sample_seed, settings.stratify)
    content = survey(dataset)
    task = settle_form(task, content)
    dataset = replace(dataset, tagged=task.form is Form.AUTO)
    if content.missing_count and not settings.allow_missing_images:
        missing = f"{content.missing_count} images missing ({'; '.join(content.missing)})"
        raise DataError(f"task {task.name!r}: {missing}; add them, or --allow-missing-images")
    for kind, names in (("scorer", task.scorers), ("aggregate", task.aggregates)):
        for name in names:
            registry.get(kind, name)
    check_groups(task, content)
    check_forms(task, content, registry)
    prompter = _make_prompter(task, dataset, content, catalog, settings)
    if registry.get("inferencer", task.infer) is GENERATE:
        # A prompt that cannot be built must fail here, not at the first request. Others may have axes of their own.
        for sample, variant in product(first_of_each_form(dataset, content), task.variants):
            prompter.build(sample, variant)
    return PlannedTask(task, prompter, dataset, content)


def first_of_each_form(dataset: Dataset, content: Survey) -> list[Sample]:
    """Return the first sample of each form, without reading further than needed."""
    found: dict[Form, Sample] = {}
    for sample in dataset:
        found.setdefault(sample.form, sample)
        if len(found) == len(content.forms):
            break
    return list(found.values())


def _prompt_for(catalog: Catalog, task: Task, settings: RunSettings, form: Form | None = None) -> Prompt:
    prompt = catalog.prompt(task, form)
    if settings.prompt_template is not None:
        prompt = msgspec.structs.replace(prompt, template=settings.prompt_template, instructions=())
    if settings.prompt_pack is not None:
        prompt = apply_pack(prompt, task, read_pack(settings.prompt_pack))
    if settings.option_mark is not None:
        prompt = msgspec.structs.replace(prompt, marks=settings.option_mark)
    own = settings.prompt_overrides()
    if settings.prompt or own:
        table = {**msgspec.to_builtins(prompt), **settings.prompt}
        for key, value in own:
            set_by_path(table, key, value)
        prompt = convert(table, Prompt, f"prompt of {task.name!r}")
    return prompt


def refuse_keys(settings: RunSettings) -> None:
    """Refuse a key where settings are stored: it would stand in run.db, results.json and report.html."""
    places = {"--model-arg": settings.model_arguments, "extra_body": settings.extra_body or {}}
    named = [(place, name) for place, table in places.items() for name in table]
    named += [("-p", name) for name, _ in settings.overrides]
    for place, name in named:
        if names_a_key(name):
            raise UsageError(f"{place} {name}: a key here would be stored; give it by --api-key-env NAME")


def _folder_name(tasks: list[Task], model: Model, settings: RunSettings) -> str:
    """Name a run by task and model, and by a hash of the settings so that another configuration gets its own folder."""
    settled = {field: getattr(settings, field) for field in settings.__struct_fields__ if field not in _NOT_IN_NAME}
    settled["prompt_pack"] = str(settings.prompt_pack or "")
    label = f"{'+'.join(task.name for task in tasks)[:60]}--{model.name}"
    return f"{re.sub(r'[^A-Za-z0-9._+-]+', '-', label)}--{content_hash(settled, 8)}"


_NOT_IN_NAME = {
    *("api_key", "base_url", "output_dir", "data_root", "command", "plugins", "catalogs", "profile", "cache"),
    *("max_workers", "max_retries", "timeout_s", "max_errors", "allow_missing_images", "until_ci", "detailed_keys"),
    *("same_model", "deadline_s"),
}
"""Settings that change where things are or how they are asked, not what is measured."""
