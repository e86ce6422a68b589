"""Prepared requests to predictions on one device: a copy of the model, its memory of prefixes, its batch size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import torch

from ...core.errors import ModelError
from ...core.ids import sha256_hex
from ...core.types import FailureKind, Image, Prediction, Request, Timing, TrialKey, Turn, Usage
from ..likelihood import ask_for_priors, byte_counts, check_choices, storable
from . import encoder_decoder
from .batch_size import CPU_LIMIT, BatchSizer, free_share
from .batch_test import rows_agree
from .candidate_scores import ROWS, SCRATCH, TREE, Candidates, TokenLogprobs, score_candidates, score_from_scratch
from .checkpoint import Checkpoint
from .inputs import LocalPrompter, Prepared, grey
from .prefix import BY_TOKEN, PrefixMemory, encode_prefix
from .quirks import drops_closing_token, reads_both_ways
from .sampling import RowSampler, cut_at_stop, make_row

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
