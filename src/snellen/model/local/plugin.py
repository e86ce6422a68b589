"""`plugin/NAME`: a class with the batch interface of ReForm-style evaluations, or a callable, from `--plugin file.py`.

A class has `raw_batch_generate(image, prompt, temperature, max_new_tokens)` and/or
`raw_batch_predict(image, prompt, candidates)` (or the same without `_batch`, for one sample); a loader is a function
`get_NAME(model_config)` that returns it, alone or with a preprocessor. A generator function
`raw_stream(image, prompt, temperature, max_new_tokens)` that yields pieces of the reply lets `snellen perf` time them.
A callable is called with what it names: image, images, prompt, candidates, temperature, max_new_tokens, request.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from numbers import Real
from types import ModuleType
from typing import Any

import msgspec

from ...core.errors import DataError, ModelError, UsageError, did_you_mean
from ...core.ids import derive_seed
from ...core.loaded_code import MOST_FILES, Loaded, Seen, hash_file, watching
from ...core.message_parts import write_markers
from ...core.protocols import Capability, EncodedImages, ImagePolicy
from ...core.registry import PLUGIN_PREFIX
from ...core.types import Failure, FailureKind, Prediction, Request, Timing
from ...data.images.decode import open_image
from ..likelihood import MINUS_INFINITY, ask_for_priors, byte_counts, check_choices, storable
from ..options import ModelOptions
from ..plain import plain_text, separator
from .batch_size import predict_alone

BatchCall = Callable[[Sequence[Request], Sequence[list[Any]], Sequence[str]], list[Any]]
"""Takes requests, their images and their prompts; returns one answer each."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What a plug-in can do; None is what it cannot."""

    generate: BatchCall | None
    predict: BatchCall | None
    reduces: bool = False
    """Whether it takes `likelihood_reduction`: what it then returns is reduced already."""
    stream: Callable[..., Iterator[str]] | None = None
    """Yields the pieces of one reply; takes what `raw_generate` takes."""
    unused: str = ""
    """What a loader returned beside the model and nobody calls here, with what to give instead."""


def wrap(found: Any, arguments: Mapping[str, Any], infer_method: str = "generation") -> Interface:
    """Return the calls of a class (made with `arguments`), of what a loader returns, or of a plain function.

    A loader's table and a class that names it are also told the `inference_method`.
    """
    told = {"inference_method": infer_method}
    if inspect.isclass(found):
        named = told if "inference_method" in inspect.signature(found).parameters else {}
        return _from_object(_make(found, {**named, **arguments}))
    if _is_loader(found):
        made = found({**told, **arguments})
        if not isinstance(made, tuple):
            return _from_object(made)
        return replace(_from_object(made[0]), unused=_name_unused(found.__name__, made[1:]))
    return _from_function(found, arguments)


def _name_unused(loader: str, rest: Sequence[Any]) -> str:
    """Say of the preprocessor that its prompt is not the one that is sent, and which flags say the same."""
    given = [thing for thing in rest if thing is not None]
    if not given:
        return ""
    prefix = getattr(given[0], "response_prefix", None)
    flags = f"--style NAME or FILE{f' --response-prefix {shlex.quote(str(prefix))}' if prefix else ''}"
    names = ", ".join(type(thing).__name__ for thing in given)
    return f"{names} of {loader} is not used: the prompt is the task's own; its form is {flags}"


def _make(kind: type[Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return kind(**arguments)
    except TypeError as error:
        fix = "give its arguments as --model-arg NAME=VALUE"
        raise UsageError(f"plug-in class {kind.__name__}: {error}; {fix}") from None


def _is_loader(function: Any) -> bool:
    parameters = list(inspect.signature(function).parameters)
    return str(getattr(function, "__name__", "")).startswith("get_") or parameters == ["model_config"]


def _from_object(made: Any) -> Interface:
    """Read the interface of an object; if it has none but can be called, take it as a function."""
    generate = _batch(made, "raw_batch_generate") or _one_by_one(made, "raw_generate")
    predict = _batch(made, "raw_batch_predict") or _one_by_one(made, "raw_predict")
    if generate or predict:
        scores = getattr(made, "raw_batch_predict", None) or getattr(made, "raw_predict", None)
        return Interface(generate, predict, reduces=_takes_reduction(scores), stream=getattr(made, "raw_stream", None))
    if callable(made):
        return _from_function(made, {})
    missing = "neither raw_batch_generate nor raw_batch_predict, and cannot be called"
    raise UsageError(f"plug-in {type(made).__name__} has {missing}")


def _batch(made: Any, name: str) -> BatchCall | None:
    method = getattr(made, name, None)
    return _call_in_groups(method) if callable(method) else None


def _call_in_groups(method: Callable[..., Any]) -> BatchCall:
    """Return a call that hands a method requests that share their sampling parameters, which it takes once for all."""

    def _call(requests: Sequence[Request], images: Sequence[list[Any]], prompts: Sequence[str]) -> list[Any]:
        answers: dict[int, Any] = {}
        for group in _alike(requests):
            first = requests[group[0]]
            extra = _extra(method, first)
            if first.choices:
                extra["candidates"] = [list(requests[place].choices) for place in group]
            given = method([_one(images[place]) for place in group], [prompts[place] for place in group], **extra)
            if isinstance(given, Mapping | Set):  # their members come in an order of their own
                raise TypeError(f"a {type(given).__name__} is no list of answers, one a prompt and in their order")
            answers |= zip(group, [given] if isinstance(given, int | str) else given, strict=True)
        return [answers[place] for place in range(len(requests))]

    return _call


def _one_by_one(made: Any, name: str) -> BatchCall | None:
    method = getattr(made, name, None)
    if not callable(method):
        return None

    def _call(requests: Sequence[Request], images: Sequence[list[Any]], prompts: Sequence[str]) -> list[Any]:
        answers = []
        for request, pictures, prompt in zip(requests, images, prompts, strict=True):
            candidates = {"candidates": list(request.choices)} if request.choices else {}
            answers.append(method(_one(pictures), prompt, **candidates, **_extra(method, request)))
        return answers

    return _call


def _from_function(function: Any, arguments: Mapping[str, Any]) -> Interface:
    names = set(inspect.signature(function).parameters)

    def _call(requests: Sequence[Request], images: Sequence[list[Any]], prompts: Sequence[str]) -> list[Any]:
        answers = []
        for request, pictures, prompt in zip(requests, images, prompts, strict=True):
            offered = {"image": _one(pictures), "images": pictures, "prompt": prompt, "request": request}
            offered |= {"candidates": list(request.choices), "likelihood_reduction": request.likelihood.reduction}
            offered |= _sampling(request) | dict(arguments)
            answers.append(function(**{name: value for name, value in offered.items() if name in names}))
        return answers

    return Interface(_call, _call if "candidates" in names else None, reduces=_takes_reduction(function))


def _takes_reduction(method: Any) -> bool:
    return callable(method) and "likelihood_reduction" in inspect.signature(method).parameters


def _extra(method: Any, request: Request) -> dict[str, Any]:
    """Return the optional arguments that are set and that the method names."""
    names = inspect.signature(method).parameters
    offered: dict[str, Any] = {} if request.choices else _sampling(request)
    if request.choices:
        offered["likelihood_reduction"] = request.likelihood.reduction
    return {name: value for name, value in offered.items() if name in names}


def _sampling(request: Request) -> dict[str, Any]:
    told = {"temperature": request.params.temperature, "max_new_tokens": request.params.max_tokens}
    return {name: value for name, value in told.items() if value is not None}


def _alike(requests: Sequence[Request]) -> list[list[int]]:
    """Group the places of requests that share their parameters."""
    groups: dict[Any, list[int]] = {}
    for place, request in enumerate(requests):
        groups.setdefault((request.params.temperature, request.params.max_tokens), []).append(place)
    return list(groups.values())


def _one(images: list[Any]) -> Any:
    """Return the image as such interfaces expect it: one picture, None without, a list of several."""
    if len(images) > 1:
        return images
    return images[0] if images else None


DEFAULT_BATCH_SIZE = 8


def create(name: str, options: ModelOptions) -> PluginModel:
    """Return the model `plugin/NAME`, an object of a file that `--plugin` loaded."""
    if not name:
        raise UsageError("model 'plugin' needs a name: --plugin FILE.py --model plugin/NAME")
    arguments = dict(options.arguments)
    batch_size = arguments.pop("batch_size", DEFAULT_BATCH_SIZE)
    module, found = find_object(name)
    made = Seen()
    with watching(made):
        interface = wrap(found, arguments, options.infer_method)
    loaded = Loaded(module.__name__, arguments, made)
    kind = PluginModel if interface.stream is None else StreamingPlugin
    return kind(name, interface, batch_size, options, arguments=arguments, loaded=loaded)


class PluginModel:
    """Someone's own model behind the interface; works in one thread of its own."""

    def __init__(
        self,
        name: str,
        interface: Interface,
        batch_size: int,
        options: ModelOptions,
        *,
        arguments: Mapping[str, Any],
        loaded: Loaded,
    ) -> None:
        self.name = f"plugin/{name}"
        self.batch_size = batch_size
        self.image_policy = options.image_policy or ImagePolicy()
        can = {Capability.BATCH, Capability.IMAGES}
        can |= {Capability.GENERATE} if interface.generate else set()
        can |= {Capability.LIKELIHOOD} if interface.predict else set()
        self.capabilities = frozenset(can)
        self._interface = interface
        self.unused = interface.unused
        self._loaded = loaded
        self._late = Seen()
        self.opened: dict[str, str] = {}
        """Files that it opened only while it answered, by name with a hash: a run that goes on compares them."""
        more = loaded.files()
        self._identity = {"plugin": name, "arguments": dict(arguments), "file": loaded.file}
        self._identity |= {"loaded": more} if more else {}
        self._clock = options.clock
        self._thread = ThreadPoolExecutor(1, "snellen-plugin")

    @property
    def cacheable(self) -> bool:
        """Tell whether all that makes its replies is part of its identity."""
        return not self.uncovered

    @property
    def uncovered(self) -> str:
        """Say what of it no hash covers; empty where all is covered."""
        return ", ".join(self._loaded.beyond)

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request, or raise ModelError."""
        return await predict_alone(self.predict_batch, request, images)

    async def predict_batch(self, requests: Sequence[Request], images: EncodedImages) -> list[Prediction]:
        """Answer all, in order; a request that breaks the plug-in fails alone."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, requests)

    def prefetch(self, request: Request) -> None:
        """Nothing is prepared ahead: a plug-in gets its images when it is called."""

    async def check(self) -> None:
        """Nothing to check: the object was made when the plan was."""

    def identity(self) -> Mapping[str, Any]:
        """Return the name, the arguments, and the content of the file and of all that it loaded."""
        return self._identity

    def surroundings(self) -> Mapping[str, Any]:
        """Return the versions of the packages that it imports."""
        return {"packages": self._loaded.packages}

    async def close(self) -> None:
        """Stop the thread."""
        await asyncio.to_thread(self._thread.shutdown)

    def _answer(self, requests: Sequence[Request]) -> list[Prediction]:
        if len({bool(request.choices) for request in requests}) == 1:
            return self._answer_alike(requests)
        answers = {request.key: answer for request in requests for answer in self._answer_alike([request])}
        return [answers[request.key] for request in requests]

    def _answer_alike(self, requests: Sequence[Request]) -> list[Prediction]:
        """Answer requests that are all to generate for, or all to score."""
        act = self._score if requests[0].choices else self._generate
        try:
            return act(requests)
        except ModelError as error:
            if len(requests) == 1:
                return [Prediction(requests[0].key, failure=Failure(error.kind, str(error)))]
        return [answer for request in requests for answer in self._answer_alike([request])]

    def _generate(self, requests: Sequence[Request]) -> list[Prediction]:
        sent = self._clock.monotonic()
        if self._interface.generate is None:
            raise ModelError(FailureKind.CAPABILITY, f"{self.name} cannot generate: it has no raw_batch_generate")
        answers = self._call(self._interface.generate, requests)
        timing = Timing(sent, self._clock.monotonic())
        return [
            Prediction(request.key, text=self._text_of(answer), timing=timing, finish="stop")
            for request, answer in zip(requests, answers, strict=True)
        ]

    def _score(self, requests: Sequence[Request]) -> list[Prediction]:
        sent = self._clock.monotonic()
        if self._interface.predict is None:
            reason = "cannot score candidates: it has no raw_batch_predict"
            raise ModelError(FailureKind.CAPABILITY, f"{self.name} {reason}")
        for request in requests:
            check_choices(request, byte_counts(request))
            if request.likelihood.with_prompt:
                reason = "gives no log-probabilities of the prompt itself, which prompt-mean needs"
                raise ModelError(FailureKind.CAPABILITY, f"{self.name} {reason}")
            if request.likelihood.reduction == "mean" and not self._interface.reduces:
                reason = "gives no tokens of the candidates, which --likelihood-reduction mean needs: leave it out"
                raise ModelError(FailureKind.CAPABILITY, f"{self.name} {reason}, or take likelihood_reduction")
        answers = self._call(self._interface.predict, requests)
        timing = Timing(sent, self._clock.monotonic())
        pairs = zip(requests, answers, strict=True)
        scored = [(request, self._to_likelihoods(request, answer, timing)) for request, answer in pairs]
        return [self._with_priors(request, prediction) for request, prediction in scored]

    def _with_priors(self, request: Request, prediction: Prediction) -> Prediction:
        if not request.likelihood.baseline or prediction.detail["route"] != "plugin":
            return prediction
        priors = self._score([ask_for_priors(request)])[0].loglikelihoods
        return msgspec.structs.replace(prediction, detail=prediction.detail | {"priors": list(priors or ())})

    def _to_likelihoods(self, request: Request, answer: Any, timing: Timing) -> Prediction:
        """Read an index (the likeliest candidate; nothing is known of the others) or one log-likelihood for each."""
        count = len(request.choices)
        if isinstance(answer, Sequence) and not isinstance(answer, str) and len(answer) == count:
            values, route = storable([float(value) for value in answer]), "plugin"
        elif _is_index(answer) and 0 <= int(answer) < count:
            values, route = [0.0 if place == int(answer) else MINUS_INFINITY for place in range(count)], "plugin-index"
        else:
            fix = f"give an index or {count} numbers"
            raise ModelError(FailureKind.DECODE, f"{self.name} answered {answer!r} for {count} candidates: {fix}")
        detail = {"route": route, "bytes": byte_counts(request)}
        if self._interface.reduces:
            detail["reduced"] = request.likelihood.reduction
        return Prediction(request.key, loglikelihoods=tuple(values), timing=timing, detail=detail)

    def _raised(self, error: BaseException) -> ModelError:
        return ModelError(FailureKind.SERVER, f"{self.name} raised {type(error).__name__}: {error}")

    def _text_of(self, answer: Any) -> str:
        """Return an answer as text; what is neither text nor a number was not meant as one (a missing `return`)."""
        if isinstance(answer, str) or (isinstance(answer, Real) and math.isfinite(answer)):
            return str(answer)
        given = f"{type(answer).__name__} ({str(answer)[:40]!r})" if isinstance(answer, Real) else type(answer).__name__
        raise ModelError(FailureKind.DECODE, f"{self.name} returned {given} where its answer belongs: return a str")

    def _call(self, act: Callable[..., list[Any]], requests: Sequence[Request]) -> list[Any]:
        try:
            images = [
                [open_image(image).convert("RGB") for turn in request.messages for image in turn.images]
                for request in requests
            ]
        except DataError as error:
            raise ModelError(FailureKind.DECODE, str(error)) from None
        _seed(requests)
        try:
            with watching(self._late):
                answers = act(requests, images, [_prompt(request) for request in requests])
            if self._late.files or self._late.beyond:
                self._note_late()
        except ModelError:
            raise
        except BaseException as error:  # noqa: BLE001 - others' code, not in the main thread: all it raises is its own
            raise self._raised(error) from None
        if len(answers) != len(requests):
            counts = f"{len(answers)} answers for {len(requests)} requests"
            raise ModelError(FailureKind.DECODE, f"{self.name} gave {counts}")
        return answers

    def _note_late(self) -> None:
        """Keep no reply that hangs on files which were opened only now: the identity of the run does not know them."""
        new = self._loaded.take(self._late)
        if new and not self._late.beyond:
            self._loaded.beyond |= {"opens files while it answers": None}
        for path in new:
            if path.is_file() and len(self.opened) < MOST_FILES:
                self.opened.setdefault(path.name, hash_file(path))
        self._late.files.clear()


class StreamingPlugin(PluginModel):
    """One whose interface has `raw_stream`."""

    async def stream(self, request: Request, images: EncodedImages) -> AsyncIterator[str]:
        """Yield the pieces as its generator makes them, in its own thread."""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[str | Exception | None]()

        def hand_over() -> None:
            end: Exception | None = None
            try:
                for piece in self._pieces(request):
                    loop.call_soon_threadsafe(pieces.put_nowait, self._text_of(piece))
            except BaseException as error:  # noqa: BLE001 - someone else's code; whoever waits hears of it
                end = error if isinstance(error, Exception) else self._raised(error)
            loop.call_soon_threadsafe(pieces.put_nowait, end)

        asked = loop.run_in_executor(self._thread, hand_over)
        while isinstance(piece := await pieces.get(), str):
            yield piece
        await asked
        if piece is not None:
            raise piece

    def _pieces(self, request: Request) -> Iterator[str]:
        if self._interface.stream is None:
            raise AssertionError("only what streams is of this class")
        pictures = [open_image(image).convert("RGB") for turn in request.messages for image in turn.images]
        _seed([request])
        stream = self._interface.stream
        return stream(_one(pictures), _prompt(request), **_extra(stream, request))


def find_object(name: str) -> tuple[ModuleType, Any]:
    """Return the plug-in file's object NAME, or its loader `get_NAME`."""
    modules = [module for key, module in sys.modules.items() if key.startswith(PLUGIN_PREFIX)]
    if not modules:
        raise UsageError(f"model 'plugin/{name}' needs the file it is in: --plugin FILE.py")
    for module in reversed(modules):
        for attribute in (name, f"get_{name}"):
            if callable(getattr(module, attribute, None)):
                return module, getattr(module, attribute)
    objects = (pair for module in modules for pair in vars(module).items())
    known = [key for key, value in objects if callable(value) and not key.startswith("_")]
    raise UsageError(f"no plug-in has a model {name!r}{did_you_mean(name, known)}")


def _prompt(request: Request) -> str:
    text = plain_text(write_markers(request.messages))  # a string cannot show where a picture stands but by a marker
    return text + separator(text) + request.prefix if request.prefix else text


def _is_index(answer: Any) -> bool:
    if isinstance(answer, bool):  # a verdict of its own, not the place of a candidate
        return False
    return hasattr(answer, "__index__") or (isinstance(answer, str) and answer.strip().isdigit())


def _seed(requests: Sequence[Request]) -> None:
    """Seed the generator such interfaces draw from, by the trials at hand: a run repeated is the same run."""
    torch = sys.modules.get("torch")
    if torch is not None:
        keys = ((request.params.seed or 0, *msgspec.structs.astuple(request.key)) for request in requests)
        torch.manual_seed(derive_seed(*(str(part) for key in keys for part in key)) % 2**63)
