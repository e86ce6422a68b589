"""The only door to TRL and PEFT: a recipe, weights and prepared chains in, one of their trainers out.

TRL renames arguments with nearly every minor version; whoever follows it looks here and nowhere else.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import peft
import torch
import trl

from ...core.errors import ConfigError, MissingExtra, not_among
from .blend import PreparedChains, RowMaker
from .chains import Chain, preference_row, prompt_row, sft_row
from .rationale_facts import rationale_reward
from .recipe import CONTROL, DPO, GRPO, SFT, Lora, Recipe

PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow"}
"""Listeners that have an extra of their name, and the package of each."""
TRLS_OWN = ("all", "none")


def check_listeners(names: Sequence[str]) -> None:
    """Refuse a name that the trainers do not know, and one whose package is missing, before anything is prepared."""
    if not names:
        return
    from transformers.integrations import integration_utils

    known = integration_utils.INTEGRATION_TO_CALLBACK
    for name in (name for name in names if name not in TRLS_OWN):
        if name not in known:
            raise ConfigError(f"training.report_to: {not_among(name, sorted(known))}")
        if name in PACKAGES and importlib.util.find_spec(PACKAGES[name]) is None:
            raise MissingExtra(name, f"--report-to {name}")
        try:
            known[name]()
        except (RuntimeError, ImportError, ValueError) as error:
            raise ConfigError(f"training.report_to = {name!r}: {' '.join(str(error).split())}") from None


def listener_errors(names: Sequence[str]) -> tuple[type[Exception], ...]:
    """Return what the libraries of listeners raise of their own, where a server or a key is missing."""
    found: list[type[Exception]] = []
    if "wandb" in names:
        from wandb.errors import Error

        found.append(Error)
    if "mlflow" in names:
        from mlflow.exceptions import MlflowException

        found.append(MlflowException)
    return tuple(found)


ROWS = {SFT: sft_row, CONTROL: sft_row, DPO: preference_row, GRPO: prompt_row}
TRAINERS = {
    SFT: (trl.SFTTrainer, trl.SFTConfig),
    CONTROL: (trl.SFTTrainer, trl.SFTConfig),
    DPO: (trl.DPOTrainer, trl.DPOConfig),
    GRPO: (trl.GRPOTrainer, trl.GRPOConfig),
}
OURS = (
    "output_dir",
    "seed",
    "save_strategy",
    "logging_nan_inf_filter",
    "remove_unused_columns",
    "max_steps",
)
"""Arguments that resuming and reporting rely on: a recipe may not change them."""


def open_dataset(chains: PreparedChains, trainer: str) -> Any:
    """Return the prepared chains as a dataset of places: pictures and texts are read when a batch is made."""
    table = datasets.Dataset.from_dict({"place": chains.order})
    return table.with_transform(RowMaker(chains, ROWS[trainer]))


def make_arguments(recipe: Recipe, folder: Path, batch_size: int, accumulate: int) -> Any:
    """Return TRL's configuration; an argument it does not know is refused by name."""
    how = recipe.training
    half = how.half and torch.cuda.is_available()
    given: dict[str, Any] = {
        "output_dir": str(folder),
        "seed": recipe.seed,
        "per_device_train_batch_size": batch_size,
        "gradient_accumulation_steps": accumulate,
        "learning_rate": recipe.rate,
        "lr_scheduler_type": how.schedule,
        "warmup_steps": how.warmup_steps,
        "weight_decay": how.weight_decay,
        "num_train_epochs": how.epochs,
        "max_steps": how.steps or -1,
        "logging_steps": how.log_steps,
        "logging_nan_inf_filter": False,  # it would print the last good loss in place of a NaN
        "save_strategy": "steps",
        "save_steps": how.save_steps,
        "save_total_limit": how.keep_checkpoints,
        "report_to": list(how.report_to) or "none",
        "dataloader_num_workers": how.workers,
        "dataloader_persistent_workers": how.workers > 0,
        "remove_unused_columns": False,  # the transform reads a column that no model knows
        "bf16": half,
        "gradient_checkpointing": half,
        "use_cpu": not torch.cuda.is_available(),
        "disable_tqdm": True,
        **_lengths(recipe),
    }
    taken = sorted(set(recipe.trl) & set(OURS))
    if taken:
        raise ConfigError(f"trl.{taken[0]}: resuming and reporting rely on it; it is set by the recipe itself")
    try:
        return TRAINERS[how.trainer][1](**(given | recipe.trl))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"[trl] of the recipe: {error}") from None


def _lengths(recipe: Recipe) -> dict[str, Any]:
    """Return how long replies may be; a cut through the tokens of a picture would not fit its pixels any more."""
    if recipe.training.trainer == GRPO:
        made = {"num_generations": recipe.feedback.samples, "max_completion_length": recipe.feedback.max_tokens}
        return {**made, "temperature": recipe.feedback.temperature}
    return {"max_length": None}


def learnt_tokens(processor: Any, chain: Chain) -> list[tuple[str, bool]]:
    """Return the tokens of one chain as the trainer's own collator makes them, and which of them are learnt."""
    from trl.trainer.sft_trainer import DataCollatorForVisionLanguageModeling

    collate = DataCollatorForVisionLanguageModeling(processor, max_length=None, completion_only_loss=True)
    batch = collate([sft_row(chain)])
    tokens = processor.tokenizer.convert_ids_to_tokens(batch["input_ids"][0].tolist())
    return list(zip(tokens, (batch["labels"][0] != -100).tolist(), strict=True))


def make_adapter(lora: Lora) -> Any:
    """Return the adapter's configuration."""
    settings: dict[str, Any] = {"r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": lora.dropout}
    return peft.LoraConfig(**settings, target_modules=lora.targets, task_type="CAUSAL_LM")


class Parts(NamedTuple):
    """What a trainer is made of."""

    arguments: Any
    model: Any
    reference: Any
    """The weights before training, where DPO compares with them and no adapter can be switched off instead."""
    processor: Any
    dataset: Any


def make_trainer(recipe: Recipe, parts: Parts, callbacks: Sequence[Any]) -> Any:
    """Return the trainer of the recipe, ready to train."""
    kind = TRAINERS[recipe.training.trainer][0]
    given: dict[str, Any] = {"model": parts.model, "args": parts.arguments, "train_dataset": parts.dataset}
    given |= {"processing_class": parts.processor, "callbacks": list(callbacks)}
    if recipe.training.weights == "lora":
        given["peft_config"] = make_adapter(recipe.lora)
    elif recipe.training.trainer == DPO:
        given["ref_model"] = parts.reference
    if recipe.training.trainer == GRPO:
        given["reward_funcs"] = [rationale_rewards]
    try:
        trainer = kind(**given)
    except ValueError as error:
        # Which layers an adapter finds, which template a processor lacks, which batch GRPO can share out.
        raise ConfigError(f"TRL refuses the recipe: {' '.join(str(error).split())}") from None
    # What is printed of the progress is ours; theirs writes a line of Python to the terminal.
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    return trainer


def rationale_rewards(
    completions: Sequence[Any],
    facts: Sequence[Any],
    options: Sequence[Any],
    answers: Sequence[Any],
    **others: Any,
) -> list[float]:
    """Return the reward of each completion, by our scorers."""
    texts = [completion[0]["content"] for completion in completions]
    texts = [text if isinstance(text, str) else "".join(part.get("text", "") for part in text) for text in texts]
    return [rationale_reward(*row) for row in zip(texts, facts, options, answers, strict=True)]


def adapter_state(model: Any) -> dict[str, Any]:
    """Return the adapter's weights under the names of its file."""
    state: dict[str, Any] = peft.get_peft_model_state_dict(model)
    return state


def versions_used() -> dict[str, str]:
    """Return the versions of all that a training's result hangs on."""
    from importlib.metadata import version

    names = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "tokenizers", "numpy")
    return {name: version(name) for name in names}
