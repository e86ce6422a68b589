"""What the registry knows before any plug-in: plain data, nothing is imported until it is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .registry import Command, Registry, Target, register_shipped_kits, resolve_target
from .tasks import Task
from .types import BASE_VARIANT

LOADERS = {
    "table": "snellen.data.loaders.table:load",
    "card": "snellen.data.atlas.card_rows:load",
    "eyechart": "snellen.data.loaders.eyechart:load",
}

MODELS = {
    "openai": "snellen.model.served.openai:create",
    "openai-responses": "snellen.model.served.openai_responses:create",
    "anthropic": "snellen.model.served.anthropic:create",
    "gemini": "snellen.model.served.gemini:create",
    "reader": "snellen.model.ocr.reader_model:create",
    "blind": "snellen.model.blind:create",
    "hf": "snellen.model.local.transformers:create",
    "vllm": "snellen.model.local.vllm:create",
    "plugin": "snellen.model.local.plugin:create",
    "replay": "snellen.model.replay:create",
}

INFERENCERS = {
    "generate": "snellen.infer.generate:GENERATE",
    "generation": "snellen.infer.generate:GENERATE",
    "likelihood": "snellen.infer.likelihood:LIKELIHOOD",
    "perplexity": "snellen.infer.perplexity:PERPLEXITY",
    "every": "snellen.infer.dialogue:EVERY",
    "every_likelihood": "snellen.infer.dialogue:EVERY_BY_LIKELIHOOD",
    "every_with_gt": "snellen.infer.generate:GENERATE",
    "last": "snellen.infer.generate:GENERATE",
}
"""`every`: a dialogue's rounds with the model's own answers as history; with right ones (`every_with_gt`), or with the
last round alone (`last`), each round is a trial like any other."""

SCORERS = {
    "likelihood": "snellen.scoring.scorers.option_likelihood:score",
    "choice": "snellen.scoring.scorers.option_choice:score",
    "option_index": "snellen.scoring.scorers.option_choice:score_place",
    "chain_label": "snellen.scoring.aggregates.consistency:score_label",
    "file_verdict": "snellen.scoring.scorers.replies:score_verdict",
    "multiple": "snellen.scoring.scorers.option_choice:score_set",
    "yesno": "snellen.scoring.scorers.option_choice:score_yesno",
    "number": "snellen.scoring.scorers.number_match:score",
    "by_form": "snellen.scoring.scorers.by_form:score",
    "closed_forms": "snellen.scoring.scorers.by_form:score_closed",
    "mmmu_by_form": "snellen.scoring.scorers.by_form:score_mmmu",
    "exact": "snellen.scoring.scorers.text_match:exact",
    "short": "snellen.scoring.scorers.open_answer:score",
    "contains": "snellen.scoring.scorers.text_match:contains",
    "wer": "snellen.scoring.scorers.text_match:word_error",
    "eyechart": "snellen.scoring.aggregates.acuity:score",
    "vqa": "snellen.scoring.scorers.vqa:score_vqa",
    "vqa_simple": "snellen.scoring.scorers.vqa:score_vqa_simple",
    "anls": "snellen.scoring.scorers.vqa:score_anls",
    "relaxed": "snellen.scoring.scorers.vqa:score_relaxed",
    "any_exact": "snellen.scoring.scorers.vqa:score_any_exact",
    "ocr": "snellen.scoring.scorers.word_accuracy:score",
    "ocr_reform": "snellen.scoring.scorers.word_accuracy:score_reform",
    "kie": "snellen.scoring.scorers.key_values:score",
    "kie_reform": "snellen.scoring.scorers.key_values:score_reform",
    "kie_f1": "snellen.scoring.scorers.key_values:score_f1",
    "caption": "snellen.scoring.aggregates.caption_scores:score",
    "mra": "snellen.scoring.scorers.video_scores:score_mra",
    "temporal-iou": "snellen.scoring.scorers.video_scores:score_span",
    "exam": "snellen.sight.exam_scorer:score",
    "box": "snellen.scoring.scorers.grounding:score_box",
    "place": "snellen.scoring.scorers.grounding:score_place",
    "click": "snellen.scoring.scorers.grounding:score_place",
    "points": "snellen.scoring.scorers.grounding:score_points",
    "detections": "snellen.scoring.aggregates.detections:score",
    "braced": "snellen.scoring.scorers.short_answers:score_braced",
    "json_answer": "snellen.scoring.scorers.short_answers:score_json_answer",
    "label_set": "snellen.scoring.scorers.short_answers:score_label_set",
    "word_f1": "snellen.scoring.scorers.short_answers:score_word_f1",
    "chart_answer": "snellen.scoring.scorers.chart_answers:score_chart_answer",
    "document_answer": "snellen.scoring.scorers.document_answer:score_document_answer",
}

AGGREGATES = {
    "calibration": "snellen.scoring.aggregates.calibration:calibration",
    "mean": "snellen.scoring.aggregates.summary:mean_of_tables",
    "repeats": "snellen.scoring.aggregates.summary:repeats_of_tables",
    "instability": "snellen.scoring.aggregates.summary:instability_of_tables",
    "rounds": "snellen.scoring.aggregates.summary:rounds_of_tables",
    "consistency": "snellen.scoring.aggregates.summary:consistency_of_tables",
    "robustness": "snellen.scoring.aggregates.summary:robustness_of_tables",
    "variance": "snellen.scoring.aggregates.summary:variance_of_tables",
    "acuity": "snellen.scoring.aggregates.acuity:acuity",
    "perturbed": "snellen.scoring.aggregates.robustness:perturbed",
    "caption": "snellen.scoring.aggregates.caption_scores:aggregate",
    "macro": "snellen.scoring.aggregates.means:macro",
    "detections": "snellen.scoring.aggregates.detections:average_precision",
    "exam": "snellen.sight.exam_scorer:thresholds",
    "figures": "snellen.scoring.aggregates.quoted_figures:figures",
}


COMMANDS = {
    "Measure": {
        "run": ("run:run", "Measure a model on tasks: plan, ask, store, score, report."),
        "exam": ("exam:exam", "Examine how a model sees: thresholds, and a prescription of what to send it."),
        "perf": ("perf.command:perf", "Measure serving performance: load, objectives, timelines."),
        "plan": ("plan:plan", "Say how many questions and repeats detect a gap."),
    },
    "Look": {
        "view": ("view:view", "Look at runs in the browser, also while they run."),
        "show": ("show:show", "Print a run, or one sample of it whole."),
        "report": ("report:report", "Write report.html of a run, its plots, or files for other programs."),
        "compare": (
            "compare:compare",
            "Compare runs sample by sample: difference, interval, exact test, first divergence.",
        ),
        "leaderboard": ("leaderboard:leaderboard", "Rank many runs, and say which cannot be told apart."),
    },
    "Read again": {
        "score": ("score:score", "Score predictions made elsewhere, or score a run again."),
        "judge": ("label:judge", "Label a few judged replies, and correct a judge's figure by them."),
        "extract": ("extract:extract", "Read one reply: the option, the rule that decided, and why."),
    },
    "Data and models": {
        "tasks": ("tasks:tasks", "List tasks and suites, or show one."),
        "data": ("data:data", "Build, check and export datasets."),
        "models": ("models:models", "List model providers, or check one model."),
        "serve-check": (
            "serve_check_command:serve_check",
            "Say in ten seconds what a server can do and which flags to use.",
        ),
    },
    "Workshop": {},
    "Upkeep": {
        "init": ("project:init", "Write snellen.toml: model, address and tasks for this folder."),
        "doctor": ("doctor:doctor", "Look at this machine, or at a run, and say what is missing."),
        "repair": ("doctor:repair", "Save every readable row of a damaged run into a new run.db."),
        "cache": ("cache:cache", "Look at or prune the response cache."),
        "completion": ("completion:completion", "Print what a shell needs to complete commands and options."),
    },
}
"""Heading in `snellen --help` -> command -> (`module:attribute` in `snellen.cli`, one line); kits bring more,
under these headings or others."""


BUILTINS: Mapping[str, Mapping[str, Target]] = {
    "loader": LOADERS,
    "model": MODELS,
    "inferencer": INFERENCERS,
    "scorer": SCORERS,
    "aggregate": AGGREGATES,
    "export": {form: f"snellen.report.trial_files:write_{form}" for form in ("jsonl", "csv", "parquet")},
    "command": {
        name: Command(f"snellen.cli.{target}", words, heading)
        for heading, commands in COMMANDS.items()
        for name, (target, words) in commands.items()
    },
}


def default_registry(plugins: Iterable[str | Path] = ()) -> Registry:
    """Return a registry that knows all built-ins, what plug-ins bring, and whom else to ask: shipped kits, packages."""
    registry = Registry(BUILTINS, [register_shipped_kits])
    for plugin in plugins:
        registry.load_plugin(plugin)
    return registry


def is_shipped(kind: str, name: str) -> bool:
    """Tell whether a name is the core's or a shipped kit's; what strangers bring is contained where it is called."""
    if name in BUILTINS[kind]:
        return True
    return str(default_registry().find(kind, name)).startswith("snellen.")


RESULT_KEYS = frozenset(
    {
        *("headline", "metrics", "groups", "notes", "right_answers", "protocol", "unread", "cost", "whole"),
        "sureness",
    }
)
"""What a task's part of results.json may have of the core; any other key is the name of a `part`."""


def parts_of(task: Task, use: str, registry: Registry | None = None) -> Iterator[tuple[str, Any]]:
    """Yield what kits have for one use of a task (a field of `Part`), each with the name of its part.

    A task of the core's own inferencers without variants asks for nothing.
    """
    if task.infer in INFERENCERS and {*task.variants} <= {BASE_VARIANT}:
        return
    axes = {axis.partition("=")[0] for variant in task.variants for axis in variant.split("&")}
    for name, part in (registry or default_registry()).entries("part").items():
        if (part.inferencer == task.infer or axes & {*part.axes}) and getattr(part, use) is not None:
            yield name, resolve_target(getattr(part, use))


def parts_in(
    result: Mapping[str, Any], use: str, registry: Registry | None = None, *, of_axes: bool = True
) -> Iterator[tuple[Any, Any]]:
    """Yield what kits have for one use of what a task's result has of their parts, and that.

    Without `of_axes` only of parts of an inferencer: what compares variants is left out.
    """
    if {*result} <= RESULT_KEYS:
        return
    for name, part in (registry or default_registry()).entries("part").items():
        if result.get(name) and getattr(part, use) is not None and (of_axes or part.inferencer):
            yield resolve_target(getattr(part, use)), result[name]
