"""What the registry knows before any plug-in: plain data, nothing is imported until it is used."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .registry import Registry

LOADERS = {
    "table": "snellen.data.loaders.table:load",
    "card": "snellen.data.atlas.card_rows:load",
    "reform": "snellen.data.reform.card_loader:load",
    "eyechart": "snellen.data.loaders.eyechart:load",
    "cure": "snellen.data.loaders.cure:load",
    "film": "snellen.data.loaders.film:load",
    "longbench-v2": "snellen.data.loaders.document:load_choice",
    "niah": "snellen.data.loaders.document:load_needles",
}

MODELS = {
    "openai": "snellen.model.served.openai:create",
    "openai-responses": "snellen.model.served.openai_responses:create",
    "anthropic": "snellen.model.served.anthropic:create",
    "gemini": "snellen.model.served.gemini:create",
    "vertex": "snellen.model.cloud.vertex_model:create",
    "bedrock": "snellen.model.cloud.bedrock_model:create",
    "litellm": "snellen.model.cloud.litellm_model:create",
    "reader": "snellen.model.ocr.reader_model:create",
    "blind": "snellen.model.blind:create",
    "hf": "snellen.model.local.transformers:create",
    "vllm": "snellen.model.local.vllm:create",
    "plugin": "snellen.model.plugin:create",
    "replay": "snellen.model.replay:create",
}

INFERENCERS = {
    "generate": "snellen.infer.generate:GENERATE",
    "generation": "snellen.infer.generate:GENERATE",
    "likelihood": "snellen.infer.likelihood:LIKELIHOOD",
    "perplexity": "snellen.infer.perplexity:PERPLEXITY",
    "document": "snellen.infer.document:DOCUMENT",
    "chain": "snellen.infer.chain:CHAIN",
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
    "annotated": "snellen.scoring.flageval.inference_rules:score",
    "chain_label": "snellen.scoring.aggregates.consistency:score_label",
    "file_verdict": "snellen.scoring.scorers.replies:score_verdict",
    "multiple": "snellen.scoring.scorers.option_sets:score_set",
    "yesno": "snellen.scoring.scorers.option_choice:score_yesno",
    "number": "snellen.scoring.scorers.number_match:score",
    "by_form": "snellen.scoring.scorers.by_form:score",
    "closed_forms": "snellen.scoring.scorers.by_form:score_closed",
    "mmmu_by_form": "snellen.scoring.scorers.by_form:score_mmmu",
    "exact": "snellen.scoring.scorers.text_match:exact",
    "short": "snellen.scoring.scorers.open_answer:score",
    "contains": "snellen.scoring.scorers.text_match:contains",
    "wer": "snellen.scoring.scorers.text_match:word_error",
    "eyechart": "snellen.scoring.scorers.acuity:score",
    "needle": "snellen.scoring.scorers.needle:score",
    "needle-case": "snellen.scoring.scorers.needle:score_case",
    "needle-shown": "snellen.scoring.videos.shown_frames:score_shown",
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
    "caption": "snellen.scoring.scorers.caption_scores:score",
    "mra": "snellen.scoring.videos.video_scores:score_mra",
    "temporal-iou": "snellen.scoring.videos.video_scores:score_span",
    "exam": "snellen.sight.exam_scorer:score",
    "box": "snellen.scoring.typed.grounding:score_box",
    "click": "snellen.scoring.typed.grounding:score_click",
    "braced": "snellen.scoring.typed.short_answers:score_braced",
    "json_answer": "snellen.scoring.typed.short_answers:score_json_answer",
    "label_set": "snellen.scoring.typed.short_answers:score_label_set",
    "word_f1": "snellen.scoring.typed.short_answers:score_word_f1",
    "chart_answer": "snellen.scoring.typed.chart_answers:score_chart_answer",
    "document_answer": "snellen.scoring.typed.document_answer:score_document_answer",
    "peer": "snellen.scoring.peers.protocol_scorer:score",
    "rationale": "snellen.train.rationale_facts:score",
}

AGGREGATES = {
    "calibration": "snellen.scoring.aggregates.calibration:calibration",
    "mean": "snellen.scoring.summary:mean_of_tables",
    "repeats": "snellen.scoring.summary:repeats_of_tables",
    "instability": "snellen.scoring.summary:instability_of_tables",
    "rounds": "snellen.scoring.summary:rounds_of_tables",
    "consistency": "snellen.scoring.summary:consistency_of_tables",
    "robustness": "snellen.scoring.summary:robustness_of_tables",
    "variance": "snellen.scoring.summary:variance_of_tables",
    "acuity": "snellen.scoring.scorers.acuity:acuity",
    "compensated": "snellen.scoring.aggregates.document_ladder:compensated",
    "variants": "snellen.scoring.aggregates.document_ladder:compare_variants",
    "perturbed": "snellen.scoring.aggregates.document_ladder:perturbed",
    "ladder": "snellen.scoring.aggregates.document_ladder:ladder",
    "page-cost": "snellen.scoring.aggregates.document_ladder:page_cost",
    "caption": "snellen.scoring.scorers.caption_scores:aggregate",
    "cure": "snellen.scoring.aggregates.blind_baselines:aggregate",
    "macro": "snellen.scoring.aggregates.macro_mean:macro",
    "threshold": "snellen.scoring.aggregates.level_threshold:threshold_of_level",
    "exam": "snellen.sight.exam_scorer:thresholds",
    "figures": "snellen.scoring.aggregates.quoted_figures:figures",
    "reform": "snellen.scoring.aggregates.instability:reform_figures",
}


BUILTINS = {
    "loader": LOADERS,
    "model": MODELS,
    "inferencer": INFERENCERS,
    "scorer": SCORERS,
    "aggregate": AGGREGATES,
}


def default_registry(plugins: Iterable[str | Path] = ()) -> Registry:
    """Return a registry that knows all built-ins, and what plug-ins bring."""
    registry = Registry()
    for kind, names in BUILTINS.items():
        for name, target in names.items():
            registry.add(kind, name, target)
    for plugin in plugins:
        registry.load_plugin(plugin)
    return registry
