"""`hf/PATH_OR_ID`: any transformers image-text-to-text checkpoint or language model, run here, in batches."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch

from ...core.answerer import installed
from ...core.errors import ModelError, UsageError
from ...core.ids import derive_seed, sha256_hex
from ...core.protocols import EncodedImages, ImagePolicy
from ...core.types import Failure, FailureKind, Image, Params, Prediction, Request, Timing, TrialKey, Turn, Usage
from ..likelihood import ask_for_priors, byte_counts, check_choices, storable
from ..options import ModelOptions
from ..plain import cut_at_stop
from . import encoder_decoder
from .batch_size import CPU_LIMIT, BatchSizer, free_share, is_out_of_memory, predict_alone, rows_agree
from .candidate_scores import (
    BY_TOKEN,
    ROWS,
    SCRATCH,
    TREE,
    Candidates,
    PrefixMemory,
    TokenLogprobs,
    encode_prefix,
    score_candidates,
    score_from_scratch,
)
from .checkpoint import (
    Checkpoint,
    choose_devices,
    describe_sampling,
    drops_closing_token,
    first_line,
    load_processor,
    load_weights,
    read_checkpoint,
    read_own_sampling,
    reads_both_ways,
    weights_of,
)
from .inputs import LocalPrompter, Prepared, grey, is_joined
from .local_options import read_options


@dataclass(slots=True)
class Row:
    """One request being generated."""

    temperature: float
    top_p: float
    max_tokens: int
    stop: tuple[str, ...]
    generator: random.Random
    tokens: list[int] = field(default_factory=list)
    finish: str | None = None
    first_token: float | None = None


def make_row(request: Request, defaults: Any, room_tokens: int) -> Row:
    """Return the state of one request; what it does not set is the checkpoint's own default."""
    params, key = request.params, request.key
    used = read_own_sampling(vars(defaults)).settle(params)
    seed = derive_seed(params.seed or 0, key.task, key.sample, key.variant, key.repeat, "sampling")
    generator = random.Random(seed)  # noqa: S311 - a draw that can be repeated, not a secret
    return Row(used.temperature, used.top_p, max(1, min(used.max_tokens, room_tokens)), params.stop or (), generator)


class RowSampler:
    """A logits processor for the library's `generate`: it chooses every row's token and leaves it no other choice."""

    def __init__(
        self, rows: Sequence[Row], eos: Sequence[int], decode: Callable[[list[int]], str], now: Callable[[], float]
    ) -> None:
        self._rows = rows
        self._eos = list(eos)
        self._decode = decode
        self._now = now

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores that are 0 at each row's chosen token and minus infinity elsewhere."""
        greedy = scores.argmax(-1).tolist()
        chosen = [self._next(row, scores[place], greedy[place]) for place, row in enumerate(self._rows)]
        forced = torch.full_like(scores, -torch.inf)
        forced[torch.arange(len(chosen), device=scores.device), torch.tensor(chosen, device=scores.device)] = 0.0
        return forced

    def _next(self, row: Row, scores: torch.Tensor, greedy: int) -> int:
        if row.finish:
            return self._eos[0] if self._eos else greedy
        token = greedy
        if row.temperature != 0:
            token = sample_token(scores, row.temperature, row.top_p, row.generator.random())
        if row.first_token is None:
            row.first_token = self._now()
        if token in self._eos:
            row.finish = "stop"
            return token
        row.tokens.append(token)
        if row.stop and any(stop in self._decode(row.tokens) for stop in row.stop):
            row.finish = "stop"
        elif len(row.tokens) >= row.max_tokens:
            row.finish = "length"
        return token


def sample_token(scores: torch.Tensor, temperature: float, top_p: float, uniform: float) -> int:
    """Return the token that `uniform` (in [0, 1)) points at in the distribution, cut to its nucleus."""
    # In double precision: over a vocabulary of 150,000 a float32 running sum is off by more than rare tokens weigh.
    weights = (scores.float() / temperature).softmax(-1).double()
    if top_p < 1:
        ordered, places = weights.sort(descending=True)
        outside = ordered.cumsum(-1) - ordered >= top_p
        weights[places[outside]] = 0.0
    cumulative = weights.cumsum(-1)
    return int(torch.searchsorted(cumulative, uniform * float(cumulative[-1]), right=True).clamp(max=len(weights) - 1))


ENCODER_DECODER_ROUTE = "encoder-decoder"
PROBE = "What colour is the bus in the picture? Answer in a word or two."
LONGER_PROBE = f"There is one bus, and it is near the tree; look at the whole picture first. {PROBE}"
PROBE_CHOICES = ("red", "red and blue", "red and green")
TOLERANCE = {torch.float32: 2e-3}
HALF_TOLERANCE = 0.25
"""How far two routes may differ for one token. The same sum in another order differs by rounding alone, far below this;
a route that mixes up positions or masks is off by whole units."""


class Replica:
    """One copy of a model on one device. Not thread-safe: one thread works it."""

    def __init__(
        self, model: Any, prompter: LocalPrompter, checkpoint: Checkpoint, device: str, now: Callable[[], float]
    ) -> None:
        self.model = model
        self.prompter = prompter
        self._checkpoint = checkpoint
        self._now = now
        self.memory = PrefixMemory(checkpoint.options.keep_prefixes)
        limit = checkpoint.options.max_batch_size
        self.sizer = BatchSizer(
            checkpoint.options.batch_size,
            limit if device != "cpu" else min(limit, CPU_LIMIT),
            lambda: free_share(device),
            self.free_memory,
        )
        text_model = getattr(model, "language_model", model)
        self.is_encoder_decoder = bool(
            model.config.is_encoder_decoder or getattr(text_model.config, "is_encoder_decoder", False)
        )
        self.route = SCRATCH
        self.alone = False
        """Whether replies are generated one at a time because a batch would change them."""
        if self.is_encoder_decoder:
            # An encoder reads the prompt whole and its decoder starts afresh: no prompt has to end flush right.
            prompter.tokenizer.padding_side = "right"

    def choose_route(self) -> None:
        """Find the fastest way of scoring that agrees with scoring from scratch on a fixed question."""
        prepared = self._probe()
        inputs = self.inputs([prepared])
        candidates, _ = self.prompter.encode_candidates(prepared.text, PROBE_CHOICES, alone=True)
        wanted = _attempt(partial(self._score_from_scratch, inputs, candidates))
        tolerance = TOLERANCE.get(self.model.dtype, HALF_TOLERANCE)
        for route in self._fast_routes():
            if _agrees(_attempt(partial(self.score_by, route, inputs, candidates)), wanted, tolerance):
                self.route = route
                break
        self.memory.clear()  # the probe's prefix is of no further use

    def choose_batch(self) -> None:
        """Answer one at a time where a reply would depend on the others in its batch."""
        prompts = [self._probe(), self._probe(LONGER_PROBE)]
        if self.sizer.can_grow and not rows_agree(
            self.model, self.inputs, prompts, self.prompter.tokenizer.pad_token_id
        ):
            self.sizer = BatchSizer(1, 1, lambda: 0.0, self.free_memory)
            self.alone = True

    def _fast_routes(self) -> list[str]:
        if self.is_encoder_decoder:
            return [ENCODER_DECODER_ROUTE]
        return [ROWS] if self._has_windows() else [TREE, ROWS]

    def _probe(self, question: str = PROBE) -> Prepared:
        """Return a fixed question, with a grey picture for a model that sees."""
        seen = (Image(ref="grey"),) if self.prompter.sees else ()
        messages = (Turn("user", question, seen),)
        request = Request(TrialKey("probe", "probe"), messages, choices=PROBE_CHOICES)
        return Prepared(request, self.prompter.render(messages, answer=True), tuple(grey() for _ in seen))

    def score_with_baseline(self, prepared: Prepared) -> Prediction:
        """Return the log-likelihoods, and as `priors` those after the content-free prompt if the request has one."""
        prediction = self.score(prepared)
        if not prepared.request.likelihood.baseline:
            return prediction
        priors = self.score(self.prompter.prepare(ask_for_priors(prepared.request)))
        detail = prediction.detail | {"priors": list(priors.loglikelihoods or ())}
        return msgspec.structs.replace(prediction, detail=detail)

    def score(self, prepared: Prepared) -> Prediction:
        """Return the log-likelihood of every choice of one request."""
        sent = self._now()
        request = prepared.request
        alone = self.is_encoder_decoder or reads_both_ways(self.model)  # an answer is a text of its own there
        candidates, boundary = self.prompter.encode_candidates(prepared.text, request.choices, alone=alone)
        check_choices(request, [len(candidate) for candidate in candidates])
        inputs = self.inputs([prepared])
        length = inputs["input_ids"].shape[1]
        self._check_length(request, length, max(len(candidate) for candidate in candidates))
        raw, prompt = self._token_logprobs(prepared, inputs, candidates)
        tokens = [storable(values) for values in raw]
        detail: dict[str, Any] = {"route": self.route, "boundary": boundary}
        detail |= {"tokens": [len(values) for values in tokens], "token_logprobs": tokens}
        detail |= {"bytes": byte_counts(request)} | ({"prompt_logprobs": storable(prompt)} if prompt else {})
        return Prediction(
            key=request.key,
            loglikelihoods=tuple(sum(values) for values in tokens),
            usage=Usage(input_tokens=length, output_tokens=sum(map(len, candidates))),
            timing=Timing(sent=sent, done=self._now()),
            detail=detail,
        )

    def generate(self, batch: Sequence[Prepared]) -> list[Prediction]:
        """Return the generated text of every request of a batch that fits in memory, in order."""
        sent = self._now()
        inputs = self.inputs(batch)
        lengths = inputs["attention_mask"].sum(1).tolist()
        defaults = self.model.generation_config
        context = self._checkpoint.context_tokens or 2**31
        for prepared, length in zip(batch, lengths, strict=True):
            self._check_length(prepared.request, length, 1)
        pairs = zip(batch, lengths, strict=True)
        rows = [make_row(prepared.request, defaults, context - length) for prepared, length in pairs]
        own_end = defaults.eos_token_id
        eos = _as_list(own_end if own_end is not None else self.prompter.tokenizer.eos_token_id)
        sampler = RowSampler(rows, eos, self._decode, self._now)
        with torch.inference_mode():
            # Greedy to the library: RowSampler has chosen already, each row by its own seed, so that a reply does not
            # depend on what else is in the batch.
            self.model.generate(
                **inputs,
                logits_processor=[sampler],
                max_new_tokens=max(row.max_tokens for row in rows),
                do_sample=False,
                num_beams=1,
                pad_token_id=self.prompter.tokenizer.pad_token_id,
            )
        done = self._now()
        return [
            Prediction(
                key=prepared.request.key,
                text=prepared.request.prefix + cut_at_stop(self._decode(row.tokens), row.stop),
                finish=row.finish or "length",
                usage=Usage(input_tokens=length, output_tokens=len(row.tokens)),
                timing=Timing(sent=sent, first_token=row.first_token, done=done),
                detail={
                    "temperature": row.temperature,
                    "top_p": row.top_p,
                    **({"batch": "alone"} if self.alone else {}),
                },
            )
            for prepared, row, length in zip(batch, rows, lengths, strict=True)
        ]

    def _token_logprobs(
        self, prepared: Prepared, inputs: dict[str, Any], candidates: Candidates
    ) -> tuple[TokenLogprobs, tuple[float, ...]]:
        """Return the values of the candidates' tokens, and of the prompt's if they were asked for."""
        with_prompt = prepared.request.likelihood.with_prompt
        if with_prompt:
            self._check_reads_forward()
        if self.route not in (TREE, ROWS) and not with_prompt:
            return self.score_by(self.route, inputs, candidates), ()
        # Token ids alone do not name a prefix: every picture stands there as the same placeholders.
        seen = (*prepared.pictures, *(frame for clip in prepared.clips for frame in clip.frames))
        images = ",".join(f"{picture.size}:{sha256_hex(picture.tobytes())}" for picture in seen)
        cuts = self.cuts(prepared, inputs)
        prefix = encode_prefix(self.model, inputs, cuts, self.memory, key=images, with_prompt=with_prompt)
        if self.route == SCRATCH:
            return self._score_from_scratch(inputs, candidates), prefix.prompt_logprobs
        return score_candidates(self.model, self.route, prefix, candidates), prefix.prompt_logprobs

    def _check_reads_forward(self) -> None:
        kind = "an encoder–decoder" if self.is_encoder_decoder else "a model that reads its prompt both ways"
        if self.is_encoder_decoder or reads_both_ways(self.model):
            reason = "gives no log-probabilities of the prompt itself, which prompt-mean needs"
            raise ModelError(FailureKind.CAPABILITY, f"{kind} {reason}")

    def score_by(self, route: str, inputs: dict[str, Any], candidates: Candidates) -> TokenLogprobs:
        """Return the log-probability of each token of each candidate, by one route."""
        if route == ENCODER_DECODER_ROUTE:
            return encoder_decoder.score_encoder_decoder(self.model, inputs, candidates)
        if route == SCRATCH:
            return self._score_from_scratch(inputs, candidates)
        prefix = encode_prefix(self.model, inputs, (), self.memory, key=route, with_prompt=False)
        return score_candidates(self.model, route, prefix, candidates)

    def _score_from_scratch(self, inputs: dict[str, Any], candidates: Candidates) -> TokenLogprobs:
        one = encoder_decoder.score_from_scratch if self.is_encoder_decoder else score_from_scratch
        return [one(self.model, inputs, candidate) for candidate in candidates]

    def cuts(self, prepared: Prepared, inputs: dict[str, Any]) -> tuple[int, ...]:
        """Return the token counts at which rounds end, where the text can be cut there without moving a token."""
        ids = inputs["input_ids"][0].tolist()
        if reads_both_ways(self.model):
            return ()
        cuts = []
        for part in prepared.rounds:
            tail = self.prompter.count_tail(prepared.text[len(part) :])
            if tail and ids[-len(tail) :] == tail and len(tail) < len(ids):
                cuts.append(len(ids) - len(tail))
        return tuple(cuts)

    def _has_windows(self) -> bool:
        """Tell whether some layer sees less than the whole prompt: only the library's own masks know how much."""
        text = self.model.config.get_text_config(decoder=True)
        kinds = set(getattr(text, "layer_types", None) or ["full_attention"])
        slides = getattr(text, "sliding_window", None) and getattr(text, "use_sliding_window", True)
        return kinds != {"full_attention"} or bool(slides)

    def inputs(self, batch: Sequence[Prepared]) -> dict[str, Any]:
        """Return the model's tensors of a batch, on its device and in its number format."""
        ahead = batch[0].tensors if len(batch) == 1 else None
        tensors = ahead or self.prompter.encode(
            [prepared.text for prepared in batch],
            [prepared.pictures for prepared in batch],
            [prepared.clips for prepared in batch],
        )
        device, dtype = self.model.device, self.model.dtype
        return {
            name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
            for name, value in self._opened(tensors).items()
        }

    def _opened(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """Take away the token that closes a prompt, where the answer would not go on behind it."""
        if not drops_closing_token(self.model) or not self._is_closed(tensors["input_ids"]):
            return tensors
        return {name: value[:, :-1] if name in BY_TOKEN else value for name, value in tensors.items()}

    def _is_closed(self, ids: torch.Tensor) -> bool:
        return bool(torch.isin(ids[:, -1], torch.tensor(self.prompter.tokenizer.all_special_ids)).all())

    def _check_length(self, request: Request, length: int, more: int) -> None:
        context = self._checkpoint.context_tokens
        if context is not None and length + more > context:
            sizes = f"{length} + {more} tokens, the checkpoint's context is {context}"
            raise ModelError(FailureKind.TOO_LONG, f"{request.key.sample}: {sizes}")

    def _decode(self, tokens: list[int]) -> str:
        return str(self.prompter.tokenizer.decode(tokens, skip_special_tokens=True))

    def free_memory(self) -> None:
        """Let go of all that can be made again."""
        self.memory.clear()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _attempt(score: Callable[[], TokenLogprobs]) -> TokenLogprobs | None:
    """Return the scores, or None if the architecture does not take this way."""
    try:
        return score()
    except (TypeError, ValueError, AttributeError, IndexError, KeyError, RuntimeError, NotImplementedError):
        return None


def _agrees(scores: TokenLogprobs | None, wanted: TokenLogprobs | None, tolerance: float) -> bool:
    if scores is None or wanted is None:
        return False
    pairs = (pair for rows in zip(scores, wanted, strict=True) for pair in zip(*rows, strict=True))
    return all(abs(value - reference) <= tolerance for value, reference in pairs)


def _as_list(value: int | Sequence[int] | None) -> list[int]:
    if value is None:
        return []
    return [value] if isinstance(value, int) else list(value)


PREFETCH_BATCHES = 2
MODEL_ERRORS = (RuntimeError, ValueError, IndexError)
"""What an architecture raises on inputs it was not made for: that costs the request, not the run."""


def create(name: str, options: ModelOptions) -> TransformersModel:
    """Return the model `hf/NAME`; reads its configuration, loads no weights yet."""
    if not name:
        raise UsageError("model 'hf' needs a folder or a hub name: hf/PATH_OR_ID")
    return TransformersModel(str(Path(name).expanduser()) if name.startswith("~") else name, options)


class TransformersModel:
    """A checkpoint on one or more devices. Weights are loaded by `check` or by the first request."""

    cacheable = True

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name = f"hf/{name}"
        self._options = read_options(options.arguments, "hf")
        self._checkpoint = read_checkpoint(name, self._options)
        self.capabilities = self._checkpoint.capabilities
        self.image_policy = options.image_policy or ImagePolicy()
        self._clock = options.clock
        self._replicas: list[Any] = []
        self._loading = asyncio.Lock()
        self._workers = ThreadPoolExecutor(self._options.threads, "snellen-prepare")
        self._devices = choose_devices(self._options)
        self._runners = ThreadPoolExecutor(len(self._devices), "snellen-device")
        self._prefetched: dict[TrialKey, Future[Prepared]] = {}

    @property
    def replicas(self) -> Sequence[Any]:
        """The copies of the model, one a device; none before the weights are loaded."""
        return self._replicas

    @property
    def prepared_ahead(self) -> int:
        """How many requests are being prepared for batches to come."""
        return len(self._prefetched)

    @property
    def batch_size(self) -> int:
        """How many requests to gather: one batch for every device, at its present size."""
        if not self._replicas:
            return (self._options.batch_size or 1) * len(self._devices)
        return sum(replica.sizer.size for replica in self._replicas)

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request, or raise ModelError."""
        return await predict_alone(self.predict_batch, request, images)

    async def predict_batch(self, requests: Sequence[Request], images: EncodedImages) -> list[Prediction]:
        """Answer all, in order; one that cannot be answered carries its failure."""
        await self._load()
        prepared = [self._prepare(request) for request in requests]
        for request in requests:
            self._prefetched.pop(request.key, None)
        scored = [place for place, request in enumerate(requests) if request.choices]
        generated = _by_images(requests)
        answers: list[Prediction | None] = [None] * len(requests)
        work: deque[tuple[list[int], Callable[[Any, Sequence[Prepared]], list[Prediction]]]] = deque(
            ([place], _score) for place in scored
        )
        share = -(-len(requests) // len(self._replicas))
        for group in generated:
            work.extend((group[start : start + share], _generate) for start in range(0, len(group), share))
        loop = asyncio.get_running_loop()
        await asyncio.gather(
            *(
                loop.run_in_executor(self._runners, _drain, replica, work, requests, prepared, answers)
                for replica in self._replicas
            )
        )
        return [answer for answer in answers if answer is not None]

    def prefetch(self, request: Request) -> None:
        """Begin to open and prepare the images of a request that will soon be part of a batch."""
        if self._replicas and len(self._prefetched) < PREFETCH_BATCHES * self.batch_size:
            self._prefetched.setdefault(request.key, self._prepare(request))

    async def check(self) -> None:
        """Load the weights and find the fastest right way to score; raise if they cannot be loaded."""
        await self._load()

    def identity(self) -> Mapping[str, Any]:
        """Return the checkpoint's content and number format."""
        return {**self._checkpoint.identity(), **({} if self._options.chat_template else {"chat_template": False})}

    def surroundings(self) -> Mapping[str, Any]:
        """Return the packages and weights that compute the replies."""
        weights = weights_of(self._checkpoint.name, self._options.adapter)
        return {"packages": installed("torch", "torchvision", "transformers", "tokenizers", "peft"), "weights": weights}

    def describe_sampling(self, params: Params) -> str:
        """Say how a request is sampled, what it leaves open included."""
        return describe_sampling(self._checkpoint.name, params)

    async def close(self) -> None:
        """Stop the threads and let go of the weights."""
        self._prefetched.clear()
        self._replicas.clear()
        await asyncio.to_thread(self._workers.shutdown, cancel_futures=True)
        await asyncio.to_thread(self._runners.shutdown, cancel_futures=True)

    def _prepare(self, request: Request) -> Future[Prepared]:
        return self._prefetched.get(request.key) or self._workers.submit(self._replicas[0].prompter.prepare, request)

    async def _load(self) -> None:
        async with self._loading:
            if not self._replicas:
                self._replicas = await asyncio.to_thread(self._load_replicas)

    def _load_replicas(self) -> list[Any]:

        replicas, checkpoint = [], self._checkpoint
        for device in self._devices:
            processor, weights = load_processor(checkpoint), load_weights(checkpoint, device)
            prompter = LocalPrompter(processor, checkpoint.kind, use_template=self._options.chat_template)
            replica = Replica(weights, prompter, checkpoint, device, self._clock.monotonic)
            replica.choose_route()
            replica.choose_batch()
            replicas.append(replica)
        return replicas


def _by_images(requests: Sequence[Request]) -> list[list[int]]:
    """Group the places of requests to generate for: with images and without cannot share a batch, nor with videos.

    A processor takes one list of pictures for all texts of a batch, or none at all.
    """
    groups: dict[frozenset[bool], list[int]] = {}
    for place, request in enumerate(requests):
        if not request.choices:
            kinds = frozenset(is_joined(image) for turn in request.messages for image in turn.images)
            groups.setdefault(kinds, []).append(place)
    return list(groups.values())


def _drain(
    replica: Any,
    work: deque[Any],
    requests: Sequence[Request],
    prepared: Sequence[Future[Prepared]],
    answers: list[Prediction | None],
) -> None:
    """Take pieces of work until none is left; runs in the replica's thread."""
    while work:
        try:
            places, act = work.popleft()
        except IndexError:
            return
        ready: list[tuple[int, Prepared]] = []
        for place in places:
            try:
                ready.append((place, prepared[place].result()))
            except ModelError as error:
                answers[place] = _failed(requests[place], error)
        for (place, _), answer in zip(ready, act(replica, [item for _, item in ready]), strict=True):
            answers[place] = answer


def _score(replica: Any, batch: Sequence[Prepared]) -> list[Prediction]:
    return [_guarded(replica, replica.score_with_baseline, item) for item in batch]


def _generate(replica: Any, batch: Sequence[Prepared]) -> list[Prediction]:
    """Generate for a batch; if one request spoils it, answer one by one so that only that one fails."""
    if not batch:
        return []
    try:
        predictions: list[Prediction] = replica.sizer.run(batch, replica.generate)
    except (ModelError, *MODEL_ERRORS):
        return [_guarded(replica, lambda one: replica.generate([one])[0], item) for item in batch]
    return predictions


def _guarded(replica: Any, act: Callable[[Prepared], Prediction], item: Prepared, *, again: bool = True) -> Prediction:
    """Return a prediction, or this request's typed failure; when memory is short, once more without what was kept."""
    try:
        return act(item)
    except ModelError as error:
        return _failed(item.request, error)
    except MODEL_ERRORS as error:
        if not is_out_of_memory(error):
            message = f"{item.request.key.sample}: the model raised {type(error).__name__}: {first_line(error)}"
            return _failed(item.request, ModelError(FailureKind.SERVER, message))
        replica.free_memory()
        if again:
            return _guarded(replica, act, item, again=False)
        message = f"{item.request.key.sample}: one request alone does not fit in memory"
        return _failed(item.request, ModelError(FailureKind.PAYLOAD, message))


def _failed(request: Request, error: ModelError) -> Prediction:
    return Prediction(request.key, failure=Failure(error.kind, str(error)))
