"""A stored run scored again, without asking the model; a judge may be asked about its replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from ..core.builtins import default_registry
from ..core.errors import UsageError
from ..core.registry import Registry
from ..core.types import Prediction, Request, Sample, Score
from ..report.pages.finish import finish_run
from ..scoring.judges.judge_card import Judge
from ..scoring.judges.verdicts import rename_without_judge
from ..scoring.protocols.readings import Reading, check_reading, own_reading, read_in
from ..store.reader import RunReader
from .executors import Workers, range_executor
from .stored_results import asked_in_parts, is_unfinished

NO_EXTRACTOR = "--extractor-arg says how the extracting model is asked: name it by --extractor"
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


def score(
    folder: str | Path,
    *,
    profile: str | None = None,
    scorers: Sequence[str] = (),
    likelihood_reduction: str | None = None,
    convention: str | None = None,
    protocol: str | None = None,
    plugins: Sequence[str | Path] = (),
    judge_name: str | None = None,
    judge_model: str | None = None,
    base_url: str | None = None,
    judge_settings: Mapping[str, Any] = NO_SETTINGS,
    extractor: str | None = None,
    extractor_settings: Mapping[str, Any] = NO_SETTINGS,
    executor: str = "local",
    replicas: int | None = None,
    ray_address: str | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Score every stored reply of a run again and return the results.

    As the run's first command read them, results.json and records.jsonl are written; another profile, convention,
    reduction or other scorers (those that `plugins` bring, unless `scorers` are named) are a reading of their own, kept
    beside them as results-NAME.json. With `judge_name` and
    `judge_model` the judge is asked first (cached, resumable), as `judge_settings` of `RunSettings` say (`rate`,
    `max_cost`, `deadline_s`, `headers`, `batch` …); with a judge but no model its fallback scorer is used, under a
    metric name that says so. `extractor` is a model that reads what a protocol's rule leaves unread, where the
    protocol's own tool asks one; it is asked as `extractor_settings` say. Large runs:
    `executor="processes", replicas=N`; `say` is told of lost processes.

    Example:
        >>> folder = snellen.run("my.jsonl", "blind/longest").folder
        >>> snellen.score(folder, scorers=["exact"])["tasks"]["my"]["metrics"]["exact_match"]["value"]
        0.0
    """
    folder = Path(folder)
    if is_unfinished(folder):
        asked_in_parts().join_parts(folder)
    told = tuple(str(Path(plugin).resolve()) for plugin in plugins)
    if judge_model and not judge_name:
        raise UsageError("--judge-model needs --judge NAME (a card of catalog/judges)")
    if judge_settings and not judge_model:
        raise UsageError("--judge-arg says how the judging model is asked: name it by --judge-model")
    if extractor_settings and not extractor:
        raise UsageError(NO_EXTRACTOR)
    more: list[str] = []
    if judge_name:
        more = _judged(folder, told, judge_name, judge_model, {"base_url": base_url, **judge_settings})
    with RunReader(folder) as reader:
        scorers = scorers or brought_scorers(told, reader)
        reading = make_reading(reader, profile, scorers, likelihood_reduction, convention)
        if protocol:
            reading = in_protocol(reader, reading, protocol)
    if extractor:
        from .judges import ask_extractor, asking_settings

        reading = msgspec.structs.replace(reading, extractor=extractor)
        how = asking_settings(extractor, extractor_settings)
        ask_extractor(folder, reading, how, scoring_registry((told, None)))
    recipe = (told, judge_name if more else None)
    maker = (f"{__name__}:{scoring_registry.__name__}", recipe)
    with range_executor(folder, Workers(executor, replicas, ray_address), registry=maker, say=say) as ranges:
        registry = scoring_registry(recipe)
        return finish_run(folder, registry, reading=reading, more=more, executor=ranges)


def score_file(source: str | Path, **how: Any) -> dict[str, Any]:
    """Make a run of predictions that were made elsewhere and return its numbers, as what is registered for that does.

    By a `formulation` with its options; by the card `task` in its `protocol`; else as the file looks.
    """
    found: dict[str, Any] = _file_scoring().score_file(source, **how)
    return found


def score_predictions(
    predictions: Any, formulation: str, *, output: str | Path | None = None, **options: Any
) -> dict[str, Any]:
    """Score predictions (a JSON or JSONL file, or an iterable of records) of ReForm-Eval, FlagEvalMM or CURE.

    `formulation` is one of SingleChoice, Generation, OCROpenEnded, KIEOpenEnded, MultiInference, Consistency; `options`
    are those that it takes. They become a run in `output`, which can be viewed and compared; told none,
    nothing stays. Values are fractions. Raises DataError naming the record, or UsageError.

    Example:
        >>> record = {"sample_id": 1, "answer": 1, "answer_options": ["cat", "dog"], "prediction": "The answer is B."}
        >>> snellen.score_predictions([record], "SingleChoice")["metrics"]["accuracy"]["value"]
        1.0
    """
    found: dict[str, Any] = _file_scoring().score_records(predictions, formulation, output=output, **options)
    return found


def _file_scoring() -> Any:
    return default_registry().get("score-file", "predictions")


def _judged(folder: Path, plugins: Sequence[str], name: str, model: str | None, how: Mapping[str, Any]) -> list[str]:
    """Ask a judge about every reply; without a model return the name under which its fallback scores them."""
    from .chosen_model import create_model
    from .judges import ask_judge, asking_settings, load_judge

    judge = load_judge(name)
    if not model:
        return [judge.without_judge]
    settings = asking_settings(model, how)
    ask_judge(folder, judge, create_model(settings, scoring_registry((plugins, None))), settings)
    return []


def scoring_registry(recipe: tuple[Sequence[str], str | None]) -> Registry:
    """Return what scores, in whatever process: plug-ins loaded, and the fallback of a judge that is not asked."""
    plugins, unasked = recipe
    registry = default_registry(plugins)
    if unasked is not None:
        from .judges import load_judge

        _add_fallback(load_judge(unasked), registry)
    return registry


def brought_scorers(plugins: Sequence[str], reader: RunReader) -> tuple[str, ...]:
    """Return the scorers that plug-ins register, used instead of the run's own; none where it uses them itself."""
    if not plugins:
        return ()
    known = set(default_registry().names("scorer"))
    brought = tuple(name for name in scoring_registry((plugins, None)).names("scorer") if name not in known)
    own = {name for task in reader.header().tasks for name in task.scorers}
    return () if own.intersection(brought) else brought


def in_protocol(reader: RunReader, reading: Reading, protocol: str) -> Reading:
    """Return a reading in another protocol of a run's cards; a task that has it not is refused, by name."""
    header = reader.header()
    own = {task.protocol for task in header.tasks}
    for task in header.tasks:
        read_in(task, protocol, header)
    return reading if own == {protocol} else msgspec.structs.replace(reading, protocol=protocol)


def make_reading(
    reader: RunReader, profile: str | None, scorers: Sequence[str], reduction: str | None, convention: str | None
) -> Reading:
    """Return the run's own reading with what is told otherwise; a convention where nothing has chains is refused."""
    own = own_reading(reader)
    if convention is not None:
        names = [task.name for task in reader.header().tasks]
        if not any(_has_chains(reader, name) for name in names):
            raise UsageError(f"--convention is about chains (Cf, Cb), and {reader.folder} has none: {', '.join(names)}")
    told = {"profile": profile, "scorers": tuple(scorers), "reduction": reduction, "convention": convention}
    return check_reading(msgspec.structs.replace(own, **{name: value for name, value in told.items() if value}))


def _has_chains(reader: RunReader, task: str) -> bool:
    return any("role" in sample.tags and "step" in sample.tags for sample in islice(reader.samples(task), 1))


def _add_fallback(judge: Judge, registry: Registry) -> None:
    """Register the judge's fallback scorer under the name that says no judge was asked."""
    fallback = registry.get("scorer", judge.fallback)

    def without_judge(sample: Sample, request: Request, prediction: Prediction, options: dict[str, Any]) -> list[Score]:
        return [rename_without_judge(judge, fallback(sample, request, prediction, options))]

    registry.add("scorer", judge.without_judge, without_judge)
