"""Settings to a checked plan: tasks, prompts, data and model, and the header that names the run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product, starmap
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..core.builtins import INFERENCERS, default_registry, is_shipped, parts_of
from ..core.config import convert, set_by_path
from ..core.errors import DataError, UsageError, did_you_mean, not_among
from ..core.homes import Home, home_of_sample
from ..core.ids import content_hash
from ..core.jobs import Item, Job
from ..core.loaded_code import hashes_of
from ..core.protocols import Capability, Inferencer, LoadContext, Model
from ..core.registry import Registry, foreign_code
from ..core.tasks import PlannedCounts, Prompt, ProtocolReading, RunHeader, Shots, Task
from ..core.types import Form, Sample
from ..core.variants import OTHER, parse_variant
from ..data.catalog import DEFAULT_SCORERS, Catalog, with_defaults
from ..data.dataset import Dataset, Survey, fingerprint_of, survey, without_places
from ..data.errata import OFFICIAL, read_golds
from ..data.loaders.row_dialogues import DIALOGUES
from ..data.selection import choose, choose_subset, read_subset
from ..engine.request_videos import video_route
from ..extract.profiles import profile_named
from ..infer.generate import GENERATE
from ..infer.likelihood import with_likelihood_wording
from ..infer.plugged import contain, raised
from ..prompt.build import Prompter, PrompterByForm
from ..prompt.controls import OtherPictures
from ..prompt.duplicate import duplicate
from ..prompt.shots import Finder, make_retriever
from ..prompt.styles import forget_style_files
from ..prompt.template import apply_pack, read_pack
from ..scoring.protocols.peer_scores import check_fallback
from .chosen_model import create_model
from .header import identity_of, installed_versions, make_header, prompts_of
from .model_frame import COORDINATES, needed_frame, task_in_frame
from .settings import RunSettings, rewrites_of

OWN = "shots-file:"
"""Before the ids of examples: a row of the same id in the task is another row."""
READ_ALIKE = ("dataset.columns", "dataset.preset", "dataset.duplicates", "form")
"""What is told of the task's rows holds for the examples too."""


def load_examples(settings: RunSettings, catalog: Catalog, registry: Registry, folder: Path) -> list[Sample]:
    """Return the answered rows of the file of examples; missing pictures are refused like the task's own."""
    file = str(settings.shots_file)
    told = [(key, value) for key, value in settings.task_overrides() if key in READ_ALIKE]
    task = catalog.task(file, told)
    context = LoadContext(seed=settings.seed, workdir=folder / "images")
    rows = Dataset(task, registry.get("loader", task.dataset["loader"]), context)
    content = survey(rows)
    if content.missing_count:
        raise UsageError(f"--shots-file {file}: {content.missing_said} missing ({'; '.join(content.missing)})")
    return [msgspec.structs.replace(sample, id=OWN + sample.id, group=None) for sample in rows if sample.answers]


def without_tested(examples: Iterable[Sample], tested: Iterable[Sample]) -> list[Sample]:
    """Return the examples that are no row of the task: one of them would show its own answer."""
    known = {_asks(sample) for sample in tested}
    return [sample for sample in examples if _asks(sample) not in known]


def _asks(sample: Sample) -> bytes:
    """Return all that is asked: two rows that ask the same are the same row, whatever they are called."""
    bare = without_places(sample)
    asked = msgspec.structs.replace(bare, id="", dataset="", answers=(), tags={}, group=None, meta={})
    names = [image.sha256 or Path(image.ref).name for image in sample.images]
    return msgspec.json.encode((asked, names))


def drawn_from_file(prompt: Prompt, form: Form, examples: Sequence[Sample]) -> tuple[Prompt, Finder | None]:
    """Return the prompt with the examples' hash in it, and what finds examples of this form among them."""
    shots = prompt.shots
    if shots.retriever == "zero":
        raise UsageError("--shots-file needs --shots N: how many examples to show")
    pool = [sample for sample in examples if sample.form is form]
    if len(pool) < max(shots.count, 1):
        wanted = f"{shots.count} examples of form {form.value} are wanted"
        raise UsageError(f"--shots-file: {wanted}, and {len(pool)} answered rows of it are no rows of the task")
    told = msgspec.structs.replace(shots, ids=tuple(OWN + name for name in shots.ids))
    finder = make_retriever(told, pool, own=False)
    kept: Shots = msgspec.structs.replace(shots, pool=fingerprint_of(pool))
    return msgspec.structs.replace(prompt, shots=kept), finder


class PlannedTask(NamedTuple):
    """One task, ready to be asked."""

    task: Task
    prompter: Prompter | PrompterByForm
    dataset: Dataset
    survey: Survey
    announced: int | None = None
    """How many trials a plug-in's inferencer announced; ours ask every sample in every variant and repeat."""

    @property
    def trials(self) -> int:
        """Return how many trials it has."""
        every = self.survey.samples * len(self.task.variants) * self.task.repeats
        return every if self.announced is None else self.announced

    @property
    def counted(self) -> PlannedCounts:
        """Return what is planned, group by group; where records decide their form, the form is a group too."""
        counted, forms = self.survey.counted, self.survey.forms
        if self.task.form is not Form.AUTO:
            return counted
        of_forms = {form.value: found.samples for form, found in forms.items()}
        return msgspec.structs.replace(counted, tags={"form": of_forms, **counted.tags})


class Placed(NamedTuple):
    """One sample of a plan: with which others it belongs together, and how many trials it has."""

    home: Home
    task: str
    sample: str
    trials: int


class Plan(NamedTuple):
    """A checked run."""

    tasks: list[PlannedTask]
    model: Model
    registry: Registry
    header: RunHeader
    folder: Path
    seed: int
    fresh: bool = False
    """Whether the folder was made by this plan, for pictures that a loader draws."""

    @property
    def trials(self) -> int:
        """Return how many trials all tasks have."""
        return sum(task.trials for task in self.tasks)

    def data(self) -> dict[str, Dataset]:
        """Return the rows of each task."""
        return {planned.task.name: planned.dataset for planned in self.tasks}

    def placed(self) -> Iterator[Placed]:
        """Yield every sample with its home, in the order in which they are asked."""
        for task, _, dataset, *_ in self.tasks:
            trials = len(task.variants) * task.repeats
            for sample in dataset:
                yield Placed(home_of_sample(task.name, sample), task.name, sample.id, trials)

    def jobs(self, order: Callable[[list[Item], int], list[Item]] | None = None) -> Iterator[Job]:
        """Yield the jobs of all tasks, lazily, in the order of the data, or in the order that `order` makes of it."""
        for planned in self.tasks:
            items: Iterable[Item] = starmap(Item, enumerate(planned.dataset))
            if order is not None:
                items = order(list(items), self.seed)
            yield from jobs_of(planned, items, self.registry)


def jobs_of(planned: PlannedTask, items: Iterable[Item], registry: Registry) -> Iterator[Job]:
    """Yield the jobs of one task; those of a plug-in are contained."""
    task = planned.task
    inferencer: Inferencer = registry.get("inferencer", task.infer)
    make_jobs = partial(inferencer.plan, task, items, planned.prompter)
    if is_shipped("inferencer", task.infer):
        return make_jobs()
    return contain(task.infer, make_jobs, partial(enumerate, planned.dataset))


def count_announced(planned: PlannedTask, registry: Registry) -> PlannedTask:
    """Return the task with the number of trials its plug-in announces: it may ask more or fewer than one a sample."""
    if is_shipped("inferencer", planned.task.infer):
        return planned
    items = starmap(Item, enumerate(planned.dataset))
    return planned._replace(announced=sum(len(job.keys) for job in jobs_of(planned, items, registry)))


def make_plan(settings: RunSettings) -> Plan:
    """Resolve every name, read the data once, and refuse what cannot work before the first request."""
    registry = registry_for(settings)
    model = create_model(settings, registry)
    catalog = Catalog(settings.catalogs)
    whole = settings.split is None and settings.data_config is None  # either chooses one table of a folder
    expanded = (catalog.expand(wanted, open_folders=whole) for wanted in settings.tasks)
    names = list(dict.fromkeys(name for found in expanded for name in found))
    if not names:
        raise UsageError("name at least one task (see `snellen tasks`) or data file")
    tasks = [_rewritten(_resolve(catalog, name, settings, model), settings, model, registry) for name in names]
    check_names(tasks, names)
    if settings.coordinates is not None and not any(COORDINATES in task.score_options for task in tasks):
        raise UsageError(f"--coordinates: {', '.join(names)} ask for no points or boxes; leave it out")
    protocols = {
        task.name: catalog.protocols(name) if task.protocol else {} for task, name in zip(tasks, names, strict=True)
    }
    for task in tasks:
        check_trials(task)
        check_capabilities(model, task, registry)
    folder = settings.output_dir or Path("runs") / _folder_name(tasks, model, settings)
    fresh = not folder.exists()
    planned = [_plan_task(task, catalog, registry, settings, folder) for task in tasks]
    check_images(model, planned)
    check_outside(model, planned, allowed=settings.allow_outside)
    header = _header(planned, model, settings, protocols, registry)
    return Plan(planned, model, registry, header, folder, settings.seed, fresh)


def registry_for(settings: RunSettings) -> Registry:
    """Return what there is, with what the settings' plug-ins bring."""
    if settings.profile not in (None, "snellen"):
        profile_named(str(settings.profile))
    return default_registry(settings.plugins)


def _resolve(catalog: Catalog, name: str, settings: RunSettings, model: Model) -> Task:
    """Return one task as it will be asked."""
    task = catalog.task(name, settings.task_overrides(), settings.protocol)
    if settings.coordinates is not None:
        frame = needed_frame(model, settings, settings.coordinates, "--coordinates")
        task = task_in_frame(catalog, name, settings, frame)
    check_fallback(task.fallback, f"task {task.name!r}")
    if settings.duplication is not None or settings.random_instruct:
        prompt = _prompt_for(catalog, task, settings)
        task = duplicate(task, prompt, settings.duplication or len(prompt.instructions) or 1, settings.random_instruct)
    return task


def _rewritten(task: Task, settings: RunSettings, model: Model, registry: Registry) -> Task:
    """Return the task as kits rewrite it: those that a setting switches on, and the one of its own way of asking."""
    names = rewrites_of(settings)
    if task.infer not in INFERENCERS and task.infer not in names and registry.find("rewrite", task.infer):
        names.append(task.infer)
    for name in names:
        task = registry.get("rewrite", name)(task, settings, model)
    return task


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
    if registry.find("inferencer", task.infer) is None:
        near = did_you_mean(task.infer, registry.names("inferencer"))
        raise UsageError(f"task {task.name!r}: unknown inferencer {task.infer!r}{near}")
    with foreign_code(raised(task.infer)):
        inferencer: Inferencer = registry.get("inferencer", task.infer)
        inferencer.read_options(task)
        missing = inferencer.needs - model.capabilities
    if missing:
        what = ", ".join(sorted(missing))
        raise UsageError(f"model {model.name!r} cannot do {what}, which task {task.name!r} needs ({task.infer})")


def check_images(model: Model, planned: list[PlannedTask]) -> None:
    """Refuse to show pictures to a model that cannot see."""
    for task, prompter, _, content, _ in planned:
        if content.images and Capability.IMAGES not in model.capabilities:
            raise UsageError(f"model {model.name!r} takes no images, and task {task.name!r} has {content.images}")
        if content.videos:
            for prompt in prompts_of(prompter):
                video_route(model, prompt.video)


def check_outside(model: Model, planned: list[PlannedTask], *, allowed: bool) -> None:
    """Refuse to send pictures from outside the data's folder anywhere, unless that was allowed."""
    place = where_pictures_go(model)
    for task, _, _, content, _ in planned:
        if content.leaving.outside and place and not allowed:
            count = f"{content.leaving.outside} pictures lie outside {content.leaving.folder}"
            named = f"{count} ({'; '.join(content.leaving.first_outside)}) and would go to {place}"
            fix = "--allow-outside sends them, -p dataset.image_root=DIR names the folder they may lie in"
            raise DataError(f"task {task.name!r}: {named}; {fix}")


def where_pictures_go(model: Model) -> str:
    """Return the address that pictures are sent to, or nothing for a model of this machine."""
    if model.name.startswith("plugin/"):
        return f"{model.name}, whose code may send them anywhere"
    return str(model.identity().get("base_url") or "")


def _scorer_versions(planned: list[PlannedTask], registry: Registry) -> dict[str, str]:
    """Return the files of a plug-in's scorers: they change how replies are read, not the replies."""
    named = {scorer for entry in planned for scorer in entry.task.scorers}
    return {
        f"scorer {name}: {file}": of for name in named for file, of in hashes_of(registry.get("scorer", name)).items()
    }


def _header(
    planned: list[PlannedTask],
    model: Model,
    settings: RunSettings,
    protocols: dict[str, dict[str, ProtocolReading]],
    registry: Registry,
) -> RunHeader:
    tasks = {entry.task.name: identity_of(entry.task, entry.prompter, entry.survey, registry) for entry in planned}
    return make_header(
        model,
        {"seed": settings.seed, "limit": settings.limit, "tasks": tasks},
        versions={**installed_versions(), **_scorer_versions(planned, registry)},
        command=settings.command,
        tasks=[entry.task for entry in planned],
        planned={entry.task.name: entry.trials for entry in planned},
        counted={entry.task.name: entry.counted for entry in planned if entry.announced is None},
        protocols=protocols,
    )


def settle_form(task: Task, content: Survey) -> Task:
    """Return a task whose records decided their form with that form, if all decided alike; else it stays `auto`."""
    if task.form is not Form.AUTO or len(content.forms) != 1:
        return task
    scorers = () if task.scorers == DEFAULT_SCORERS[Form.AUTO] else task.scorers
    return with_defaults(msgspec.structs.replace(task, form=next(iter(content.forms)), scorers=scorers))


def check_forms(task: Task, content: Survey, inferencer: Inferencer) -> None:
    """Refuse candidates' likelihood where some records have none, and dialogues where no record has a history."""
    if task.form is Form.AUTO and Capability.LIKELIHOOD in inferencer.needs:
        found = ", ".join(f"{counts.samples} {form.value}" for form, counts in content.forms.items())
        raise UsageError(f"task {task.name!r} has records of several forms ({found}): likelihood needs one; use --ids")
    if is_shipped("inferencer", task.infer):  # its options may be wrong for the form that the records have
        check_candidates(task, content, inferencer.read_options(task))
    if task.dataset["loader"] == "table" and task.infer in DIALOGUES and not content.with_history:
        needs = "rows with group and round, or a list of messages in each (messages, conversations, turns)"
        raise UsageError(f"task {task.name!r} has no dialogues, which --infer-method {task.infer} needs: {needs}")


def check_candidates(task: Task, content: Survey, options: object) -> None:
    """Refuse the likelihood of option texts where options are pictures: their markers say nothing to a model."""
    if content.markers.options and getattr(options, "candidates", "") == "text":
        rows = f"task {task.name!r} has pictures as options in {content.markers.options} rows"
        raise UsageError(f"{rows}, which have no text to score: add --candidates letters")


def _make_prompter(
    task: Task,
    dataset: Dataset,
    content: Survey,
    catalog: Catalog,
    settings: RunSettings,
    *,
    registry: Registry,
    examples: list[Sample],
) -> Prompter | PrompterByForm:
    forget_style_files()
    inferencer: Inferencer = registry.get("inferencer", task.infer)

    def of_form(form: Form) -> Prompter:
        prompt = _prompt_for(catalog, task, settings, form)
        if Capability.LIKELIHOOD in inferencer.needs:
            prompt = with_likelihood_wording(prompt, catalog)
        finder = None
        if settings.shots_file is not None:
            prompt, finder = drawn_from_file(prompt, form, examples)
        elif prompt.shots.retriever != "zero":
            finder = make_retriever(prompt.shots, list(dataset))
        return Prompter(task, prompt, settings.seed, finder, others)

    shown_instead = any(parse_variant(variant).get("control") == OTHER for variant in task.variants)
    others = OtherPictures.of(list(dataset), settings.seed) if shown_instead else None
    for _, check in parts_of(task, "check", registry):
        check(task, dataset, others, settings)

    if task.form is not Form.AUTO:
        return of_form(task.form)
    return PrompterByForm({form: of_form(form) for form in sorted(content.forms)})


def _plan_task(task: Task, catalog: Catalog, registry: Registry, settings: RunSettings, folder: Path) -> PlannedTask:
    context = LoadContext(seed=settings.seed, root=settings.data_root, workdir=folder / "images", limit=settings.limit)
    dataset = Dataset(task, registry.get("loader", task.dataset["loader"]), context)
    dataset = replace(dataset, golds=read_golds(settings.errata, settings.gold))
    dataset = choose(dataset, settings.ids, settings.sample, settings.sample_seed, settings.stratify)
    if settings.subset is not None:
        dataset = choose_subset(dataset, read_subset(settings.subset, catalog))
    content = survey(dataset)
    check_golds(dataset, settings)
    task = settle_form(task, content)
    dataset = replace(dataset, tagged=task.form is Form.AUTO)
    if content.missing_count and not settings.allow_missing_images:
        missing = f"{content.missing_said} missing ({'; '.join(content.missing)})"
        fetched = any("http://" in name or "https://" in name for name in content.missing)
        fix = "save them as files (addresses are never fetched)" if fetched else "add them"
        raise DataError(f"task {task.name!r}: {missing}; {fix}, or --allow-missing-images")
    for kind, names in (("scorer", task.scorers), ("aggregate", task.aggregates)):
        for name in names:
            registry.get(kind, name)
    check_groups(task, content)
    inferencer: Inferencer = registry.get("inferencer", task.infer)
    check_forms(task, content, inferencer)
    examples: list[Sample] = []
    if settings.shots_file is not None:
        examples = without_tested(load_examples(settings, catalog, registry, folder), dataset)
    prompter = _make_prompter(task, dataset, content, catalog, settings, registry=registry, examples=examples)
    if inferencer is GENERATE:
        # A prompt that cannot be built must fail here, not at the first request. Others may have axes of their own.
        for sample, variant in product(first_of_each_form(dataset, content), task.variants):
            prompter.build(sample, variant)
    if told := _instruction_of_template(prompter, settings):
        content = msgspec.structs.replace(content, notes=(*content.notes, told))
    return count_announced(PlannedTask(task, prompter, dataset, content), registry)


def _instruction_of_template(prompter: Prompter | PrompterByForm, settings: RunSettings) -> str:
    """Say what becomes of the wordings of a task whose template is another: not sent, or sent before it."""
    if "template" not in _told_of_prompt(settings):
        return ""
    prompts = prompter.prompts.values() if isinstance(prompter, PrompterByForm) else [prompter.prompt]
    said = {one.instructions[0] for one in prompts if one.instructions and "{instruction}" not in one.template}
    if said:
        what = " or ".join(repr(text) for text in sorted(said))
        return f"prompt.template has no {{instruction}}: {what} goes before it"
    if any("{instruction}" not in one.template for one in prompts):
        return "prompt.template has no {instruction}: it is sent alone, without the task's own instruction"
    return ""


def check_golds(dataset: Dataset, settings: RunSettings) -> None:
    """Refuse a ledger that speaks of none of these questions: it is another benchmark's, or another version's."""
    golds = dataset.golds
    if golds is None or not len(golds) or golds.changed or settings.gold == OFFICIAL:
        return
    if golds.misfits:
        count = len(golds.misfits)
        raise UsageError(f"--errata {settings.errata}: its {count} rows ask something else here; use the data it is of")


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
        prompt = _alone(convert(table, Prompt, f"prompt of {task.name!r}"), settings)
    return prompt


def _alone(prompt: Prompt, settings: RunSettings) -> Prompt:
    """Return a prompt whose template was told as it is to be sent: without wordings that it has no place for.

    Who tells wordings too, or asks for several, wants them; where they are the question they are no instruction.
    """
    told = _told_of_prompt(settings)
    wanted = "instructions" in told or settings.random_instruct or "{instruction}" in prompt.template
    if "template" not in told or wanted or prompt.ask != "before":
        return prompt
    return msgspec.structs.replace(prompt, instructions=())


def _told_of_prompt(settings: RunSettings) -> set[str]:
    return {*settings.prompt, *(key.partition(".")[0] for key, _ in settings.prompt_overrides())}


def _folder_name(tasks: list[Task], model: Model, settings: RunSettings) -> str:
    """Name a run by task and model, and by a hash of the settings so that another configuration gets its own folder."""
    label = f"{'+'.join(task.name for task in tasks)[:60]}--{model.name}"
    return f"{re.sub(r'[^A-Za-z0-9._+-]+', '-', label)}--{content_hash(settings.named(), 8)}"
