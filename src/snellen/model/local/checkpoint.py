"""A checkpoint's folder or hub name to what it can do, its processor and its weights on a device."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...core.errors import EnvironmentProblem, MissingExtra, UsageError
from ...core.loaded_code import hash_folder
from ...core.protocols import Capability
from ...core.types import Params
from .local_options import LocalOptions

CONFIG = "adapter_config.json"
BASE = "snellen_base.json"
"""What a training of ours leaves beside its adapter: the fingerprint of the base it was trained on."""


def check_adapter(adapter: str, base: str, files: str | None) -> None:
    """Refuse a folder that is no adapter, and one that was trained on other weights than `base` (provider/name) holds.

    `files` is the fingerprint of the base; nothing is loaded.
    """
    folder = Path(adapter)
    if not (folder / CONFIG).is_file():
        hint = f" (did you mean {folder / 'model'}?)" if (folder / "model" / CONFIG).is_file() else ""
        raise UsageError(f"--model-arg adapter={adapter}: no {CONFIG} in it{hint}")
    try:
        trained_on = json.loads((folder / BASE).read_text("utf-8"))["files"] if (folder / BASE).is_file() else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EnvironmentProblem(f"{folder / BASE} cannot be read: {error}") from None
    if files is not None and trained_on not in (None, files):
        raise UsageError(f"--model-arg adapter={adapter}: trained on other weights than {base} holds")


def apply_adapter(model: Any, adapter: str) -> Any:
    """Return the model with the adapter merged into its weights."""
    try:
        import peft
    except ImportError:
        raise MissingExtra("train", "an adapter (--model-arg adapter=…)") from None
    try:
        return peft.PeftModel.from_pretrained(model, adapter).merge_and_unload()
    except (ValueError, RuntimeError, OSError, KeyError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UsageError(f"--model-arg adapter={adapter} does not fit the model: {reason}") from None


READS_PROMPT_BOTH_WAYS = frozenset(("paligemma",))
"""Prefix language models: every prompt token sees every other (token type 0), the answer's see those before (1)."""
COUNTS_FROM_ONE = frozenset(("paligemma",))
"""The first token stands at position 1."""

ANSWERS_BEFORE_THE_END = frozenset(("git",))
"""Their tokenizer closes a text with a token of its own; an answer goes on in its place, not after it."""


def reads_both_ways(model: Any) -> bool:
    """Tell whether the prompt's tokens see the ones after them: no cut and no prompt log-probability is right there."""
    return _model_type(model) in READS_PROMPT_BOTH_WAYS


def first_position(model: Any) -> int:
    """Return the position of a prompt's first token."""
    return int(_model_type(model) in COUNTS_FROM_ONE)


def drops_closing_token(model: Any) -> bool:
    """Tell whether the token that closes a prompt has to go before the answer."""
    return _model_type(model) in ANSWERS_BEFORE_THE_END


def _model_type(model: Any) -> str:
    return str(getattr(getattr(model, "config", None), "model_type", ""))


DEFAULT_TOKENS = 512
FILES = ("generation_config.json", "config.json")
"""Where a checkpoint says it; older ones in their configuration."""


class OwnSampling(NamedTuple):
    """What a checkpoint does where a request leaves it open."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = DEFAULT_TOKENS
    repetition_penalty: float = 1.0

    def settle(self, params: Params) -> OwnSampling:
        """Return what is really used for a request: what it says, and for the rest what the checkpoint says."""
        return self._replace(
            temperature=self.temperature if params.temperature is None else params.temperature,
            top_p=self.top_p if params.top_p is None else params.top_p,
            max_tokens=params.max_tokens or self.max_tokens,
        )


def read_own_sampling(table: Mapping[str, Any]) -> OwnSampling:
    """Return the defaults that a generation_config holds."""
    samples = bool(table.get("do_sample"))
    return OwnSampling(
        temperature=float(table.get("temperature") or 1.0) if samples else 0.0,
        top_p=float(table.get("top_p") or 1.0) if samples else 1.0,
        max_tokens=int(table.get("max_new_tokens") or DEFAULT_TOKENS),
        repetition_penalty=float(table.get("repetition_penalty") or 1.0),
    )


def find_own_sampling(checkpoint: str) -> OwnSampling | None:
    """Return the defaults of a checkpoint in a folder before it is loaded; None where that cannot be known yet."""
    folder = Path(checkpoint).expanduser()
    for name in FILES:
        try:
            return read_own_sampling(msgspec.json.decode((folder / name).read_bytes(), type=dict[str, Any]))
        except (OSError, msgspec.DecodeError):
            continue
    return None


def describe_sampling(checkpoint: str, params: Params) -> str:
    """Say how requests with these parameters are sampled, and who said so."""
    own = find_own_sampling(checkpoint)
    if params.temperature is None and own is None:
        return "temperature unset: greedy, unless the checkpoint says otherwise (each record tells)"
    used = (own or OwnSampling()).settle(params)
    how = "greedy" if used.temperature == 0 else f"temperature {used.temperature:g}, top_p {used.top_p:g}"
    return how if params.temperature is not None else f"{how} (temperature unset: the checkpoint's own)"


IMAGE_TEXT, CAUSAL, ENCODER_DECODER = "image-text", "causal", "encoder-decoder"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is known of a checkpoint from its configuration alone; no weights are loaded."""

    name: str
    kind: str
    config: Any
    options: LocalOptions

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Return what a model of this kind can do."""
        always = {Capability.GENERATE, Capability.LIKELIHOOD, Capability.BATCH}
        if self.kind != IMAGE_TEXT:
            return frozenset(always)
        videos = {Capability.VIDEO_FRAMES} if takes_videos(self.config) else set()
        return frozenset(always | {Capability.IMAGES} | videos)

    @property
    def context_tokens(self) -> int | None:
        """Return the longest sequence the checkpoint was made for, or None where it does not say."""
        if self.options.max_length:
            return self.options.max_length
        text = self.config.get_text_config(decoder=True)
        for field in ("max_position_embeddings", "n_positions", "max_seq_len"):
            value = getattr(text, field, None)
            if isinstance(value, int) and value > 0:
                return value
        return None

    def identity(self) -> Mapping[str, Any]:
        """Return what changes its answers: the files themselves for a folder, the revision for a hub name."""
        folder = Path(self.name)
        dtype = {"dtype": dtype_name(self)}
        if self.options.attention:
            dtype["attention"] = self.options.attention
        if self.options.adapter:
            dtype["adapter"] = fingerprint(Path(self.options.adapter))
        if folder.is_dir():
            return {"checkpoint": folder.name, **dtype, "files": fingerprint(folder)}
        return {"checkpoint": self.name, **dtype, "revision": str(getattr(self.config, "_commit_hash", None))}


def weights_of(folder: str, adapter: str | None) -> dict[str, str]:
    """Return what changes with every training of a checkpoint's or adapter's files; a hub name has its revision.

    What lies in folders below (`checkpoint-500/` of a training that goes on) is another checkpoint's.
    """
    named = {"checkpoint": Path(folder).expanduser(), "adapter": Path(adapter).expanduser() if adapter else None}
    return {name: hash_folder(path, "*") for name, path in named.items() if path is not None and path.is_dir()}


def takes_videos(config: Any) -> bool:
    """Tell whether a checkpoint has a token for videos."""
    return any(getattr(config, name, None) is not None for name in ("video_token_id", "video_token_index"))


def read_checkpoint(name: str, options: LocalOptions) -> Checkpoint:
    """Read a checkpoint's configuration, from a folder or the local hub cache first; errors name the fix."""
    transformers = import_transformers()
    folder = Path(name)
    if looks_like_folder(name) and not folder.is_dir():
        raise UsageError(f"model hf/{name}: no such folder")
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise UsageError(f"model hf/{name}: the folder has no config.json, so it is not a transformers checkpoint")
    try:
        config = transformers.AutoConfig.from_pretrained(name, **options.origin)
    except (OSError, ValueError, KeyError) as error:
        raise EnvironmentProblem(f"model hf/{name} cannot be read: {first_line(error)}") from None
    if options.adapter:
        check_adapter(options.adapter, f"hf/{name}", fingerprint(folder) if folder.is_dir() else None)
    return Checkpoint(name, _kind_of(config, name), config, options)


def _kind_of(config: Any, name: str) -> str:
    from transformers.models.auto import modeling_auto as known

    if type(config) in known.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return IMAGE_TEXT
    if type(config) in known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        return ENCODER_DECODER
    if type(config) in known.MODEL_FOR_CAUSAL_LM_MAPPING or "AutoModelForCausalLM" in getattr(config, "auto_map", {}):
        return CAUSAL
    raise UsageError(f"model hf/{name} is a {config.model_type!r}: neither an image-text-to-text nor a language model")


def load_processor(checkpoint: Checkpoint) -> Any:
    """Load the processor (or tokenizer) with left padding and a pad token."""
    transformers = import_transformers()
    kind = transformers.AutoProcessor if checkpoint.kind == IMAGE_TEXT else transformers.AutoTokenizer
    try:
        processor = kind.from_pretrained(checkpoint.name, **checkpoint.options.origin)
    except ImportError as error:
        needed = f"needs a package that is not installed: {first_line(error)}"
        raise EnvironmentProblem(f"the processor of hf/{checkpoint.name} {needed}") from None
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"the processor of hf/{checkpoint.name} cannot be read: {first_line(error)}") from None
    tokenizer = getattr(processor, "tokenizer", processor)
    tokenizer.padding_side = "left"  # a prompt must end where its reply begins, whatever its length
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    return processor


def load_weights(checkpoint: Checkpoint, device: str) -> Any:
    """Load the weights on one device (`auto` spreads them), ready for inference."""
    transformers = import_transformers()
    auto = {
        IMAGE_TEXT: transformers.AutoModelForImageTextToText,
        ENCODER_DECODER: transformers.AutoModelForSeq2SeqLM,
        CAUSAL: transformers.AutoModelForCausalLM,
    }[checkpoint.kind]
    options = checkpoint.options
    arguments: dict[str, Any] = {"dtype": dtype_name(checkpoint), **options.origin}
    if options.attention:
        arguments["attn_implementation"] = options.attention
    if device == "auto":
        arguments["device_map"] = "auto"
    try:
        model = auto.from_pretrained(checkpoint.name, **arguments)
        model = apply_adapter(model, options.adapter) if options.adapter else model
        return (model if device == "auto" else model.to(device)).eval().requires_grad_(False)
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        reason = f"cannot be loaded on {device}: {first_line(error)}"
        raise EnvironmentProblem(f"the weights of hf/{checkpoint.name} {reason}") from None


def choose_devices(options: LocalOptions) -> tuple[str, ...]:
    """Return the devices to put a copy of the model on."""
    if options.devices:
        return options.devices
    if options.device:
        return (options.device,)
    import torch

    return ("cuda:0",) if torch.cuda.is_available() else ("cpu",)


def dtype_name(checkpoint: Checkpoint) -> str:
    """Return the number format: `--half` is bfloat16, or float16 where the device lacks it; a CPU's is float32."""
    options = checkpoint.options
    if options.dtype != "auto":
        return options.dtype
    import torch

    if options.half:
        return "bfloat16" if not torch.cuda.is_available() or torch.cuda.is_bf16_supported() else "float16"
    return "auto" if choose_devices(options)[0] != "cpu" else "float32"


def import_transformers() -> Any:
    """Import the library, quietly, or say which extra brings it."""
    try:
        import torch  # noqa: F401 - transformers imports without it, and fails later
        import transformers
    except ImportError:
        raise MissingExtra("hf", "a local model (hf/…)") from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def fingerprint(folder: Path) -> str:
    """Hash a checkpoint folder, quickly: of each file its size and ends. It names runs; `weights_of` looks closer."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        size = file.stat().st_size
        digest.update(f"{file.name}:{size}:".encode())
        with file.open("rb") as stream:
            digest.update(stream.read(2**20))
            if size > 2**21:
                stream.seek(-(2**20), 2)
                digest.update(stream.read())
    return digest.hexdigest()[:16]


def looks_like_folder(name: str) -> bool:
    """Tell a path from a hub name (`owner/name`)."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1


def first_line(error: BaseException) -> str:
    """Return an error's first line, for a one-line message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
