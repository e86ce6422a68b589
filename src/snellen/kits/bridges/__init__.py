"""Predictions made elsewhere, read into runs and scored; their number beside ours: every reply where the two part."""

from __future__ import annotations

from ...core.registry import Command, Registry

NEEDS = ("parsing",)
FORMATS = {
    "helm": "helm_folders:FORMAT",
    "inspect": "inspect_logs:FORMAT",
    "lm-eval": "lm_eval_files:FORMAT",
    "lmms-eval": "lmms_files:FORMAT",
    "evalscope": "evalscope_files:FORMAT",
    "every-eval-ever": "eee_files:FORMAT",
    "nemo-evaluator": "nemo_results:FORMAT",
    "openai-evals": "openai_events:FORMAT",
    "aisbench": "opencompass_files:AISBENCH_FORMAT",
    "opencompass": "opencompass_files:FORMAT",
    "vlmevalkit": "vlmevalkit_files:FORMAT",
    "flageval": "flageval_results:FORMAT",
    "traces": "trace_exports:FORMAT",
    "rows": "formats:ROWS_FORMAT",
}
"""Harness -> its format, the most particular first."""


def register(registry: Registry) -> None:
    """Add formats of predictions, what scores them, the scorer of other harnesses, `import` and `second-opinion`."""
    here = "snellen.kits.bridges"
    for harness, target in FORMATS.items():
        registry.add("predictions", harness, f"{here}.{target}")
    registry.add("score-file", "predictions", f"{here}.scored_files")
    registry.add("scorer", "peer", f"{here}.protocol_scorer:score")
    words = "Read predictions of another harness into a run."
    registry.add("command", "import", Command(f"{here}.commands:import_command", words, "Read again"))
    words = "Read another harness's predictions again: its number, ours, and where they differ."
    registry.add("command", "second-opinion", Command(f"{here}.commands:second_opinion_command", words, "Read again"))
