"""A recipe: everything a training is told, as one record; the command line, TOML and Python fill the same one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, structs

from ...core.config import convert, read_config_file
from ...core.errors import ConfigError

SFT, CONTROL, DPO, GRPO = "sft", "control", "dpo", "grpo"
FEEDBACK = "feedback"
LANGUAGE_HALF = r"^(?!.*(vision|visual|qformer)).*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)$"
"""The linear layers of the language half of all architectures we know, whatever their halves are called."""
RATES = {(SFT, "lora"): 1e-4, (CONTROL, "lora"): 1e-4, (DPO, "lora"): 1e-5, (GRPO, "lora"): 1e-5}
FULL_RATES = {SFT: 1e-5, CONTROL: 1e-5, DPO: 1e-6, GRPO: 1e-6}


class DataSource(Struct, frozen=True, forbid_unknown_fields=True):
    """One source of chains and how often an epoch shows it."""

    path: str
    weight: float = 1.0
    image_root: str | None = None
    steps: bool = True
    """Of annotated chains: whether their steps are taught too. Without them short answers are forgotten."""


class Lora(Struct, frozen=True, forbid_unknown_fields=True):
    """The adapter."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.05
    targets: str = LANGUAGE_HALF
    """A regular expression on names of layers, or `all-linear`."""


class Training(Struct, frozen=True, forbid_unknown_fields=True):
    """How long, how fast, in which portions."""

    trainer: Literal["sft", "control", "dpo", "grpo"] = "sft"
    weights: Literal["lora", "full"] = "lora"
    epochs: float = 1.0
    steps: int | None = None
    """Optimiser steps; None: as many as the epochs have."""
    batch_size: int = 8
    accumulate: int = 1
    learning_rate: float | None = None
    """None: 1e-4 for an adapter by SFT, 1e-5 by preferences, a tenth of it for full weights."""
    schedule: str = "cosine"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    save_steps: int = 100
    log_steps: int = 1
    keep_checkpoints: int = 2
    workers: int = 0
    half: bool = False
    """Compute in bfloat16 and trade time for memory (gradient checkpoints): for GPUs."""
    report_to: tuple[str, ...] = ()
    """tensorboard, wandb, mlflow …: what TRL knows by these names."""


class Feedback(Struct, frozen=True, forbid_unknown_fields=True):
    """How preferences are made: who is sampled, how often, and who judges."""

    samples: int = 4
    temperature: float = 1.0
    max_tokens: int = 512
    judge: Literal["scorers", "points", "pairs"] = "scorers"
    """`scorers`: right answer and stated facts (labelled pictures); `points`, `pairs`: an LLM judges rationales."""
    judge_model: str = ""
    judge_url: str | None = None
    model: str = ""
    """Whom to sample; empty: the model that is tuned."""
    base_url: str | None = None
    model_arguments: dict[str, Any] = {}
    anchors: bool = True
    """Whether right short answers stand against another option, so that preferences do not unlearn them."""
    least_gap: float = 0.25
    """Points between best and worst below which a picture says nothing."""


class Recipe(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole training."""

    model: str
    data: tuple[DataSource, ...]
    output: str
    stage: Literal["sft", "feedback"] = "sft"
    seed: int = 0
    words: str = "rationale"
    """The card of catalog/train with the words of rationales."""
    training: Training = Training()
    lora: Lora = Lora()
    feedback: Feedback = Feedback()
    against: tuple[str, ...] = ()
    """Tasks whose pictures and texts must not be among the training data."""
    against_overrides: tuple[tuple[str, Any], ...] = ()
    allow_overlap: bool = False
    allow_missing_images: bool = False
    allow_answers: bool = False
    """Train although no reply has a rationale."""
    catalogs: tuple[str, ...] = ()
    trl: dict[str, Any] = {}
    """Further arguments of TRL's own configuration, by its names."""

    @property
    def rate(self) -> float:
        """Return the learning rate."""
        how = self.training
        chosen = FULL_RATES[how.trainer] if how.weights == "full" else RATES[how.trainer, "lora"]
        return chosen if how.learning_rate is None else how.learning_rate

    @property
    def folder(self) -> Path:
        """Return where everything goes."""
        return Path(self.output)


def read_recipe(path: Path) -> Recipe:
    """Read a recipe; paths in it are beside it."""
    recipe = convert(read_config_file(path), Recipe, str(path))
    home = path.parent
    data = tuple(_beside(source, home) for source in recipe.data)
    model = recipe.model
    if model.startswith("hf/") and (home / model[3:]).is_dir():
        model = f"hf/{home / model[3:]}"
    against = tuple(str(home / name) if (home / name).exists() else name for name in recipe.against)
    output = str(home / recipe.output)
    return check_recipe(structs.replace(recipe, data=data, model=model, output=output, against=against))


def _beside(source: DataSource, home: Path) -> DataSource:
    path = str(home / source.path) if (home / source.path).exists() else source.path
    root = None if source.image_root is None else str(home / source.image_root)
    return structs.replace(source, path=path, image_root=root)


def check_recipe(recipe: Recipe) -> Recipe:
    """Refuse what cannot work before anything is loaded."""
    how = recipe.training
    if not recipe.model.startswith("hf/"):
        raise ConfigError(f"model {recipe.model!r}: only weights of this machine can be trained; write hf/FOLDER")
    if not recipe.data:
        raise ConfigError("no data: name at least one file of chains (--data FILE)")
    if recipe.stage == SFT and how.trainer != SFT:
        raise ConfigError(f"trainer {how.trainer!r} learns from verdicts: use stage feedback (--stage feedback)")
    if recipe.stage == FEEDBACK and how.trainer == SFT:
        raise ConfigError("stage feedback is trained by control, dpo or grpo: choose one (--trainer)")
    _check_numbers(recipe)
    _check_feedback(recipe)
    return recipe


def _check_numbers(recipe: Recipe) -> None:
    how = recipe.training
    for name in ("batch_size", "accumulate", "save_steps", "log_steps", "keep_checkpoints", "steps"):
        value = getattr(how, name)
        if value is not None and value < 1:
            raise ConfigError(f"training.{name} = {value}: must be at least 1")
    if not how.epochs > 0 or not recipe.rate > 0:
        raise ConfigError("training.epochs and training.learning_rate must be above 0")


def _check_feedback(recipe: Recipe) -> None:
    feedback = recipe.feedback
    if recipe.stage == FEEDBACK and feedback.judge != "scorers" and not feedback.judge_model:
        raise ConfigError(f"feedback.judge = {feedback.judge!r} needs a judge: name it (--judge-model)")
    if recipe.stage == FEEDBACK and feedback.samples < 2:
        raise ConfigError(f"feedback.samples = {feedback.samples}: a preference needs at least 2")
