"""The options of a long command in groups, so that `--help` can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

OTHERS = "Others"

RUN_GROUPS: Mapping[str, Sequence[str]] = {
    "The model": (
        *(
            "model",
            "base_url",
            "api_key_env",
            "api_key_file",
            "api_key",
            "key_command",
            "config_file",
            "use_cache",
            "model_arguments",
        ),
        *("headers", "query", "strict_params", "half", "batch_size", "same_model"),
    ),
    "What is asked": (
        *("limit", "try_run", "sample", "sample_seed", "stratify", "ids", "ids_file", "num_infers", "duplication"),
        *("variants", "perturb", "until_ci", "subset", "core_eval", "dataset_debug", "data_root", "catalogs"),
    ),
    "Your own data": (
        *("split", "data_config", "sheet"),
        *("columns", "form", "preset", "duplicates", "allow_missing_images", "allow_outside", "strip_metadata"),
    ),
    "Sampling": ("temperature", "top_p", "max_tokens", "reasoning", "constrain", "sampling_seed", "seed", "stream"),
    "The prompt": (
        *(
            "option_mark",
            "shuffle_options",
            "shots",
            "shots_file",
            "post_prompt",
            "in_context_sample",
            "random_instruct",
            "response_prefix",
        ),
        *(
            "answer_space_instruct",
            "yesno_instruct",
            "capitalize",
            "style",
            "prompt_pack",
            "image_max_side",
            "image_min_side",
        ),
        *("options_in_history", "online_multi_round", "overrides"),
    ),
    "Inference and scoring": (
        *("infer_method", "likelihood_reduction", "candidates", "calibration", "profile", "plugins", "detailed_keys"),
        *("protocol", "convention", "eval_stability"),
    ),
    "Time, load and money": (
        *(
            "max_workers",
            "max_retries",
            "timeout_s",
            "deadline_s",
            "rate",
            "max_errors",
            "price",
            "max_cost",
            "yes",
            "no_cache",
        ),
        *("prompt_cache", "batch", "batch_leave", "batch_rest", "batch_lines", "batch_poll_s"),
    ),
    "More than one process": ("executor", "replicas", "gpus_per_replica", "replica_patience_s", "ray_address"),
    "Output": ("output_dir", "log", "show_prompts", "as_lines", "quiet", "as_json"),
}
"""Heading -> names of the options of `snellen run`, in the order they are shown."""


class GroupedCommand(click.Command):
    """A command whose help shows its options under headings; what no heading names comes last."""

    def __init__(self, *arguments: Any, groups: Mapping[str, Sequence[str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list a group."""
        records = {option.name: option.get_help_record(ctx) for option in self.get_params(ctx)}
        named = [name for names in self.groups.values() for name in names]
        rest = [name for name in records if name not in named]
        for heading, names in (*self.groups.items(), (OTHERS, rest)):
            lines = [record for name in names if (record := records.get(name)) is not None]
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)
