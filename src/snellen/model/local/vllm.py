"""`vllm/PATH_OR_ID`: a checkpoint in vLLM's offline engine, in this process; it batches and schedules by itself."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...core.answerer import installed
from ...core.config import convert
from ...core.errors import ConfigError, DataError, EnvironmentProblem, MissingExtra, ModelError, UsageError
from ...core.ids import derive_seed
from ...core.protocols import Capability, EncodedImages, ImagePolicy
from ...core.types import Failure, FailureKind, Params, Prediction, Request, Timing, Turn, Usage
from ...data.images.decode import open_image
from ..likelihood import ask_for_priors, byte_counts, check_choices, storable
from ..options import ModelOptions
from ..plain import separator
from ..served.logprob_routes import Token, continuation_values
from .batch_size import predict_alone
from .checkpoint import (
    CONFIG,
    OwnSampling,
    check_adapter,
    describe_sampling,
    fingerprint,
    first_line,
    read_own_sampling,
    weights_of,
)
from .local_options import check_pinned

WEIGHTS = "adapter_model.safetensors"
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The largest rank vLLM can be made ready for is one of these."""
NOT_LANGUAGE = re.compile(r"vision|visual|qformer|projector|connector|merger|image|audio|video")
"""Parts of a model's layers to which vLLM applies no adapter: it warns in its log and answers without them."""
UNLIKE = {"modules_to_save": "whole layers (modules_to_save)", "use_dora": "DoRA"}
UNLIKE |= {"rank_pattern": "ranks by layer (rank_pattern)", "alpha_pattern": "scales by layer (alpha_pattern)"}
"""What an adapter may have that vLLM refuses, or reads as if it were not there."""
LARGEST_HEAD = 100_000_000
"""Bytes of a safetensors head; its own library takes no more."""


def lora_arguments(adapter: str, engine: dict[str, Any]) -> dict[str, Any]:
    """Return the engine's arguments for an adapter, whose files are checked; `engine` is what the user gives it."""
    if engine.get("enable_lora", True) is not True:
        raise ConfigError("--model-arg engine.enable_lora=false with an adapter: it would not be applied; leave it out")
    config = _read_config(Path(adapter))
    for name, words in UNLIKE.items():
        if config.get(name):
            raise _unfit(adapter, f"it has {words}, which vLLM does not apply")
    if config.get("bias", "none") != "none":
        raise _unfit(adapter, "it has biases, which vLLM does not apply")
    layer = next((name for name in _weight_names(Path(adapter) / WEIGHTS) if NOT_LANGUAGE.search(name)), None)
    if layer is not None:
        raise _unfit(adapter, f"{layer} is not of the language half, and vLLM applies no others")
    return {"enable_lora": True, "max_lora_rank": _room_for(adapter, config.get("r"))}


def lora_request(adapter: str) -> Any:
    """Return the adapter as vLLM's chat takes it."""
    from vllm.lora.request import LoRARequest

    return LoRARequest("adapter", 1, str(Path(adapter).resolve()))


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"{folder / CONFIG} cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise EnvironmentProblem(f"{folder / CONFIG} is no adapter's configuration")
    return config


def _room_for(adapter: str, rank: object) -> int:
    fitting = [room for room in RANKS if isinstance(rank, int) and 0 < rank <= room]
    if not fitting:
        raise _unfit(adapter, f"its rank is {rank!r}, and vLLM takes 1 to {RANKS[-1]}")
    return fitting[0]


def _weight_names(path: Path) -> list[str]:
    """Return the names of an adapter's weights: the head of a safetensors file is its length and JSON."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            names = json.loads(stream.read(length)) if 0 < length < LARGEST_HEAD else None
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"{path} cannot be read: {error}") from None
    if not isinstance(names, dict):
        raise EnvironmentProblem(f"{path} is no file of weights")
    return [name for name in names if name != "__metadata__"]


def _unfit(adapter: str, why: str) -> UsageError:
    fix = "measure it through hf/, or merge it first (snellen train merge)"
    return UsageError(f"--model-arg adapter={adapter}: {why}; {fix}")


class Talk(NamedTuple):
    """One conversation for the engine. `continued`: its last message is the beginning of the answer."""

    messages: list[dict[str, Any]]
    sampling: dict[str, Any]
    continued: bool


def converse(request: Request, sampling: dict[str, Any]) -> Talk:
    """Return the conversation to answer; a forced beginning stands as the assistant's unfinished words."""
    turns = (*request.messages, Turn("assistant", request.prefix)) if request.prefix else request.messages
    return Talk([_message(turn) for turn in turns], sampling, bool(request.prefix))


def scoring_talks(request: Request) -> list[Talk]:
    """Return the prompt alone, then the prompt with each candidate, all to be scored and not continued."""
    sampling = {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0}
    gap = separator(request.prefix) if request.prefix else ""
    spoken = [replace(request, prefix=request.prefix + gap + choice) for choice in request.choices]
    return [converse(each, sampling) for each in (request, *spoken)]


def _message(turn: Turn) -> dict[str, Any]:
    if not turn.images:
        return {"role": turn.role, "content": turn.text}
    try:
        pictures = [{"type": "image_pil", "image_pil": open_image(image).convert("RGB")} for image in turn.images]
    except DataError as error:
        raise ModelError(FailureKind.DECODE, str(error)) from None
    shown = turn.arrange(pictures)
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in shown]
    return {"role": turn.role, "content": content}


TOO_LONG = ("maximum model length", "max_model_len", "context length")


GIVEN_APART = ("model", "dtype", "revision", "trust_remote_code", "tensor_parallel_size", "max_model_len")
"""Arguments of the engine that have a name of their own here."""


class VllmOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`--model-arg` of a vLLM model; `engine` goes to `vllm.LLM` as it is (`engine.enforce_eager=true`)."""

    dtype: str = "auto"
    half: bool = False
    revision: str | None = None
    trust_remote_code: bool = False
    tensor_parallel_size: int = 1
    max_model_len: int | None = None
    adapter: str | None = None
    """Folder of a LoRA adapter of this checkpoint; the engine applies it to every request."""
    batch_size: int = 256
    engine: dict[str, Any] = {}


def create(name: str, options: ModelOptions) -> VllmModel:
    """Return the model `vllm/NAME`; the engine starts with `check`."""
    if not name:
        raise UsageError("model 'vllm' needs a folder or a hub name: vllm/PATH_OR_ID")
    return VllmModel(name, options)


class VllmModel:
    """The offline engine behind the model seam: text and likelihood, pictures as the checkpoint allows."""

    cacheable = True

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name = f"vllm/{name}"
        self.capabilities = frozenset({Capability.GENERATE, Capability.LIKELIHOOD, Capability.IMAGES, Capability.BATCH})
        self.image_policy = options.image_policy or ImagePolicy()
        self._checkpoint = name
        self._options = read_vllm_options(options.arguments)
        self.batch_size = self._options.batch_size
        self._lora = self._check_adapter()
        self._clock = options.clock
        self._engine: Any = None
        self._own = OwnSampling()
        self._thread = ThreadPoolExecutor(1, "snellen-vllm")

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request, or raise ModelError."""
        return await predict_alone(self.predict_batch, request, images)

    async def predict_batch(self, requests: Sequence[Request], images: EncodedImages) -> list[Prediction]:
        """Answer all, in order; one that the engine refuses carries its failure."""
        await self.check()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, list(requests))

    def prefetch(self, request: Request) -> None:
        """Nothing is prepared ahead: the engine schedules by itself."""

    async def check(self) -> None:
        """Start the engine; raise if it cannot be."""
        if self._engine is None:
            self._engine = await asyncio.get_running_loop().run_in_executor(self._thread, self._start)

    def identity(self) -> Mapping[str, Any]:
        """Return checkpoint and adapter (of folders their files), revision, number format, engine and sampling rule."""
        revision, engine, folder = self._options.revision, self._options.engine, Path(self._checkpoint).expanduser()
        files = {"files": fingerprint(folder)} if folder.is_dir() else {}
        if self._options.adapter:
            files["adapter"] = fingerprint(Path(self._options.adapter))
        how = {"revision": revision, "dtype": self._dtype(), "engine": engine, "unset": "checkpoint"}
        return {"vllm": folder.name if "files" in files else self._checkpoint, **how, **files}

    def surroundings(self) -> Mapping[str, Any]:
        """Return the packages and weights that compute the replies."""
        weights = weights_of(self._checkpoint, self._options.adapter)
        return {"packages": installed("vllm", "torch", "torchvision", "transformers"), "weights": weights}

    def describe_sampling(self, params: Params) -> str:
        """Say how a request is sampled, what it leaves open included."""
        return describe_sampling(self._checkpoint, params)

    async def close(self) -> None:
        """End the engine: its processes hold the weights as long as they live."""
        core = getattr(getattr(self._engine, "llm_engine", None), "engine_core", None)
        if core is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, core.shutdown)
        self._engine = None
        await asyncio.to_thread(self._thread.shutdown)

    def _dtype(self) -> str:
        return "bfloat16" if self._options.half and self._options.dtype == "auto" else self._options.dtype

    def _check_adapter(self) -> dict[str, Any]:
        """Return what the engine is told for the adapter; refuse one of other weights, as hf/ does."""
        adapter, folder = self._options.adapter, Path(self._checkpoint).expanduser()
        if not adapter:
            return {}
        check_adapter(adapter, self.name, fingerprint(folder) if folder.is_dir() else None)
        return lora_arguments(adapter, self._options.engine)

    def _start(self) -> Any:
        try:
            import vllm
        except ImportError:
            raise MissingExtra("vllm", "a model in vLLM's offline engine (vllm/…)") from None
        options = self._options
        given = {"revision": options.revision, "max_model_len": options.max_model_len}
        try:
            engine = vllm.LLM(
                model=str(Path(self._checkpoint).expanduser())
                if self._checkpoint.startswith("~")
                else self._checkpoint,
                dtype=self._dtype(),
                trust_remote_code=options.trust_remote_code,
                tensor_parallel_size=options.tensor_parallel_size,
                **{key: value for key, value in given.items() if value is not None},
                **{**self._lora, **options.engine},
            )
        except TypeError as error:
            raise UsageError(f"--model-arg engine of vllm: {first_line(error)}") from None
        except (OSError, ValueError, RuntimeError) as error:
            raise EnvironmentProblem(f"vLLM cannot load {self._checkpoint}: {first_line(error)}") from None
        self._own = read_own_sampling(engine.llm_engine.model_config.try_get_generation_config())
        return engine

    def _answer(self, requests: list[Request]) -> list[Prediction]:
        """Answer together; if the engine refuses the lot, one by one, so that only the bad one fails."""
        try:
            return self._answer_all(requests)
        except ModelError as error:
            if len(requests) == 1:
                return [Prediction(requests[0].key, failure=Failure(error.kind, str(error)))]
        return [prediction for request in requests for prediction in self._answer([request])]

    def _answer_all(self, requests: Sequence[Request]) -> list[Prediction]:
        sent = self._clock.monotonic()
        settled = [self._own.settle(request.params) for request in requests]
        talks = [_talks_of(request, used) for request, used in zip(requests, settled, strict=True)]
        outputs = iter(self._talk([talk for group in talks for talk in group]))
        answers = []
        for request, used, group in zip(requests, settled, talks, strict=True):
            mine = [next(outputs) for _ in group]
            timing = Timing(sent, self._clock.monotonic())
            scored = _read_scores(request, mine, timing) if request.choices else None
            answers.append(scored or _read_text(request, mine[0], timing, used))
        return answers

    def _talk(self, talks: Sequence[Talk]) -> list[Any]:
        """Run conversations through the engine: those that continue an answer and those that begin one apart."""
        results: list[Any] = [None] * len(talks)
        for continued in (False, True):
            places = [place for place, talk in enumerate(talks) if talk.continued is continued]
            outputs = self._chat([talks[place] for place in places], continued=continued) if places else []
            for place, output in zip(places, outputs, strict=True):
                results[place] = output
        return results

    def _chat(self, talks: Sequence[Talk], *, continued: bool) -> list[Any]:
        """Send conversations of one kind; what the engine refuses is an error of the request."""
        from vllm import SamplingParams

        adapted = {"lora_request": lora_request(self._options.adapter)} if self._options.adapter else {}
        try:
            outputs: list[Any] = self._engine.chat(
                [talk.messages for talk in talks],
                [SamplingParams(**talk.sampling) for talk in talks],
                add_generation_prompt=not continued,
                continue_final_message=continued,
                use_tqdm=False,
                **adapted,
            )
        except (ValueError, TypeError) as error:
            kind = FailureKind.TOO_LONG if any(words in str(error) for words in TOO_LONG) else FailureKind.REQUEST
            raise ModelError(kind, f"vLLM refuses the request: {str(error).splitlines()[0]}") from None
        return outputs


def read_vllm_options(arguments: Mapping[str, Any]) -> VllmOptions:
    """Check the arguments by name; the engine's own are its to check, unless they have a name here."""
    options = convert(dict(arguments), VllmOptions, "--model-arg of vllm")
    check_pinned(trusted=options.trust_remote_code, revision=options.revision)
    for name in GIVEN_APART:
        if name in options.engine:
            raise ConfigError(f"--model-arg engine.{name}: " + _own_name(name))
    return options


def _own_name(name: str) -> str:
    return "the model is named by --model vllm/…" if name == "model" else f"give it as --model-arg {name}=…"


def _talks_of(request: Request, used: OwnSampling) -> list[Talk]:
    if not request.choices:
        return [converse(request, _sampling(request, used))]
    check_choices(request, byte_counts(request))
    talks = scoring_talks(request)
    return [*talks, *scoring_talks(ask_for_priors(request))] if request.likelihood.baseline else talks


def _sampling(request: Request, used: OwnSampling) -> dict[str, Any]:
    """Return the engine's sampling parameters, nothing left to its defaults; each trial has its own seed."""
    params, key = request.params, request.key
    stop = {} if params.stop is None else {"stop": list(params.stop)}
    seed = derive_seed(params.seed or 0, key.task, key.sample, key.variant, key.repeat, "sampling") % 2**63
    return {**used._asdict(), **stop, "seed": seed}


def _read_text(request: Request, output: Any, timing: Timing, used: OwnSampling) -> Prediction:
    made = output.outputs[0]
    usage = Usage(len(output.prompt_token_ids or ()), len(made.token_ids))
    text = request.prefix + made.text
    return Prediction(
        request.key, text=text, finish=made.finish_reason, usage=usage, timing=timing, detail=used._asdict()
    )


def _read_scores(request: Request, outputs: Sequence[Any], timing: Timing) -> Prediction:
    """Read the prompt's output and each candidate's, and the same again for the priors if they were asked."""
    count = len(request.choices)
    prompt, tokens = _read_group(request, outputs[: count + 1])
    detail: dict[str, Any] = {
        "route": "vllm",
        "tokens": [len(values) for values in tokens],
        "token_logprobs": tokens,
        "bytes": byte_counts(request),
    }
    if request.likelihood.baseline:
        detail["priors"] = [sum(values) for values in _read_group(request, outputs[count + 1 :])[1]]
    if request.likelihood.with_prompt:
        detail["prompt_logprobs"] = storable([token.logprob for token in prompt if token.logprob is not None])
    usage = Usage(input_tokens=len(prompt))
    return Prediction(
        request.key, loglikelihoods=tuple(sum(values) for values in tokens), usage=usage, timing=timing, detail=detail
    )


def _read_group(request: Request, outputs: Sequence[Any]) -> tuple[list[Token], list[list[float]]]:
    prompt, *wholes = [_scored_prompt(output) for output in outputs]
    tokens = [storable(continuation_values(whole, prompt)) for whole in wholes]
    check_choices(request, [len(values) for values in tokens])
    return prompt, tokens


def _scored_prompt(output: Any) -> list[Token]:
    rows = zip(output.prompt_token_ids, output.prompt_logprobs, strict=True)
    return [Token("", row[token].logprob if row else None, str(token)) for token, row in rows]
