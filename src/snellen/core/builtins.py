"""What the registry knows before any plug-in: plain data, nothing is imported until it is used."""

from __future__ import annotations

from .registry import Registry

LOADERS = {
    "table": "snellen.data.loaders.table:load",
    "reform": "snellen.data.loaders.reform:load",
    "eyechart": "snellen.data.loaders.eyechart:load",
    "cure": "snellen.data.loaders.cure:load",
    "longbench-v2": "snellen.data.loaders.document:load_choice",
    "niah": "snellen.data.loaders.document:load_needles",
}

MODELS = {
    "openai": "snellen.model.openai:create",
    "anthropic": "snellen.model.anthropic:create",
    "gemini": "snellen.model.gemini:create",
    "reader": "snellen.model.reader:create",
    "blind": "snellen.model.blind:create",
    "hf": "snellen.model.transformers:create",
    "vllm": "snellen.model.vllm:create",
    "plugin": "snellen.model.plugin:create",
    "replay": "snellen.model.replay:create",
}

SCORERS = {
    "likelihood": "snellen.score.likelihood:score",
    "choice": "snellen.score.choice:score",
    "yesno": "snellen.score.choice:score_yesno",
    "exact": "snellen.score.text:exact",
    "contains": "snellen.score.text:contains",
    "wer": "snellen.score.text:word_error",
    "eyechart": "snellen.score.eyechart:score",
    "needle": "snellen.score.needle:score",
    "needle-case": "snellen.score.needle:score_case",
    "vqa": "snellen.score.vqa:score_vqa",
    "vqa_simple": "snellen.score.vqa:score_vqa_simple",
    "anls": "snellen.score.vqa:score_anls",
    "relaxed": "snellen.score.vqa:score_relaxed",
    "any_exact": "snellen.score.vqa:score_any_exact",
    "ocr": "snellen.score.ocr:score",
    "ocr_reform": "snellen.score.ocr:score_reform",
    "kie": "snellen.score.kie:score",
    "kie_reform": "snellen.score.kie:score_reform",
    "kie_f1": "snellen.score.kie:score_f1",
    "caption": "snellen.score.caption:score",
}

AGGREGATES = {
    "calibration": "snellen.score.confidence:calibration",
    "mean": "snellen.score.summary:mean_of_tables",
    "repeats": "snellen.score.summary:repeats_of_tables",
    "instability": "snellen.score.summary:instability_of_tables",
    "rounds": "snellen.score.summary:rounds_of_tables",
    "consistency": "snellen.score.summary:consistency_of_tables",
    "robustness": "snellen.score.summary:robustness_of_tables",
    "variance": "snellen.score.summary:variance_of_tables",
    "acuity": "snellen.score.eyechart:acuity",
    "compensated": "snellen.score.documents:compensated",
    "variants": "snellen.score.documents:compare_variants",
    "perturbed": "snellen.score.documents:perturbed",
    "ladder": "snellen.score.documents:ladder",
    "page-cost": "snellen.score.documents:page_cost",
    "caption": "snellen.score.caption:aggregate",
    "cure": "snellen.score.cure:aggregate",
}


def default_registry() -> Registry:
    """Return a registry that knows all built-ins."""
    registry = Registry()
    for kind, names in (("loader", LOADERS), ("model", MODELS), ("scorer", SCORERS), ("aggregate", AGGREGATES)):
        for name, target in names.items():
            registry.add(kind, name, target)
    return registry
