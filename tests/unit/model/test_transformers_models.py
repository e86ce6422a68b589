"""Real architectures with random weights: every route equals the library's own loss, whatever stands beside it in the batch."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import io

import numpy as np
import PIL.Image
import pytest
from msgspec.structs import replace

from extras import needs

torch = needs("torch", "transformers")

from snellen.core.errors import ConfigError, EnvironmentProblem, ModelError, UsageError
from snellen.core.protocols import BatchModel, Capability
from snellen.core.types import FailureKind, Image, Likelihood, Params, Request, TrialKey, Turn
from snellen.model.local import candidate_scores as local_likelihood
from snellen.model.local.transformers import create
from snellen.model.options import ModelOptions
from tiny_checkpoints import LOADABLE, VISION, checkpoint

CHOICES = ("orange", "blue and orange", "blue and red", "yes", "blue and orange and a dog")
DECODERS = tuple(kind for kind in LOADABLE if kind not in ("t5", "instructblip"))
WINDOWED = ("sliding", "gemma3")
BY_ROWS = (*WINDOWED, "git")
TAKES_ONE = ("blip2", "instructblip", "instructblip_llama", "git", "paligemma")
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # PaliGemma's processor under numpy 2


def picture(seed=0):
    pixels = np.random.default_rng(seed).integers(0, 255, (40, 50, 3), dtype=np.uint8)
    out = io.BytesIO()
    PIL.Image.fromarray(pixels).save(out, "PNG")
    return Image(ref="data:image/png;base64," + base64.b64encode(out.getvalue()).decode())


def ask(kind, text="What colour is the truck?", name="s", seed=0, **changes):
    images = (picture(seed),) if kind in VISION else ()
    return Request(TrialKey("t", name), (Turn("user", text, images),), **changes)


_models = {}


def model_of(kind, **arguments):
    """A loaded model, shared by the tests of this file."""
    name = (kind, tuple(sorted(arguments.items())))
    if name not in _models:
        _models[name] = create(str(checkpoint(kind)), ModelOptions(arguments=arguments))
        asyncio.run(_models[name].check())
    return _models[name]


def predict(model, *requests):
    return asyncio.run(model.predict_batch(list(requests), {}))


def library_loss(replica, request, choice_ids, prompt_text):
    """The sum of token losses the library itself computes from labels."""
    prepared = replica.prompter.prepare(request)
    assert prepared.text == prompt_text
    inputs = replica.inputs([prepared])
    suffix = torch.tensor([choice_ids])
    with torch.inference_mode():
        if replica.is_encoder_decoder:
            return float(replica.model(**inputs, labels=suffix).loss) * len(choice_ids)
        ids = torch.cat([inputs["input_ids"], suffix], 1)
        labels = ids.clone()
        labels[:, : inputs["input_ids"].shape[1]] = -100
        whole = inputs | {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if replica.model.config.model_type == "paligemma":
            whole["token_type_ids"] = torch.cat([inputs["token_type_ids"], torch.ones_like(suffix)], 1)
        return float(replica.model(**whole, labels=labels).loss) * len(choice_ids)


@pytest.mark.parametrize("kind", LOADABLE)
def test_log_likelihoods_are_the_librarys_own_loss(kind):
    model = model_of(kind)
    replica = model.replicas[0]
    request = ask(kind, choices=CHOICES)
    (reply,) = predict(model, request)
    text = replica.prompter.prepare(request).text
    alone = replica.is_encoder_decoder or kind == "paligemma"
    ids, boundary = replica.prompter.encode_candidates(text, CHOICES, alone=alone)
    for value, choice_ids, count in zip(reply.loglikelihoods, ids, reply.detail["tokens"], strict=True):
        assert value == pytest.approx(-library_loss(replica, request, choice_ids, text), abs=1e-4, rel=1e-5)
        assert count == len(choice_ids)
    assert boundary == reply.detail["boundary"]
    assert reply.detail["bytes"] == [len(choice) for choice in CHOICES]
    assert [sum(tokens) for tokens in reply.detail["token_logprobs"]] == list(reply.loglikelihoods)


def test_a_hand_made_model_gives_hand_made_numbers():
    """Logits that are known: a model whose next token depends on the last one only, by a table."""
    table = torch.log(torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [0.8, 0.1, 0.1]]))

    class Bigram:
        dtype, device = torch.float32, torch.device("cpu")

        def __call__(self, input_ids, **_):
            from types import SimpleNamespace

            return SimpleNamespace(logits=table[input_ids])

    inputs = {"input_ids": torch.tensor([[0, 2]])}
    values = local_likelihood.score_from_scratch(Bigram(), inputs, [0, 2, 1])
    assert values == pytest.approx([np.log(0.8), np.log(0.7), np.log(0.1)])


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("route", ["tree", "rows"])
def test_every_route_agrees_with_scratch(kind, route, monkeypatch):
    model = model_of(kind)
    replica = model.replicas[0]
    assert replica.route == ("rows" if kind in BY_ROWS else "tree"), "a window is left to the library's own masks"
    if kind in BY_ROWS and route == "tree":
        return
    monkeypatch.setattr(local_likelihood, "MAX_NODES", 5)
    monkeypatch.setattr(local_likelihood, "MAX_ROWS", 2)
    request = ask(kind, text="What colour is the truck in the picture? " * 3, choices=CHOICES)
    prepared = replica.prompter.prepare(request)
    inputs = replica.inputs([prepared])
    candidates, _ = replica.prompter.encode_candidates(prepared.text, CHOICES, alone=False)
    replica.memory.clear()
    got = replica.score_by(route, inputs, candidates)
    for values, candidate in zip(got, candidates, strict=True):
        assert values == pytest.approx(local_likelihood.score_from_scratch(replica.model, inputs, candidate), abs=1e-4)


@pytest.mark.parametrize("route", ["tree", "rows"])
@pytest.mark.parametrize("cuts", [(), (17,)])
def test_positions_in_three_dimensions(route, cuts):
    """Qwen-VL's own processor needs torchvision; its weights do not, so its inputs are made by hand."""
    import transformers

    from snellen.model.local.candidate_scores import PrefixMemory, encode_prefix

    model = transformers.AutoModelForImageTextToText.from_pretrained(checkpoint("qwen2vl")).eval()
    images = transformers.Qwen2VLImageProcessorPil(patch_size=8, min_pixels=1024, max_pixels=4096)
    pixels = images(
        [PIL.Image.fromarray(np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8))],
        return_tensors="pt",
    )
    config, count = model.config, int(pixels["image_grid_thw"].prod()) // 4
    row = [
        60,
        61,
        config.vision_start_token_id,
        *[config.image_token_id] * count,
        config.vision_end_token_id,
        70,
        71,
        72,
    ]
    ids = torch.tensor([row])
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "mm_token_type_ids": (ids == config.image_token_id).int(),
        **pixels,
    }
    candidates = [[80, 81, 82], [80, 81, 90], [99], [100, 101]]
    prefix = encode_prefix(model, inputs, cuts, PrefixMemory(2), key="", with_prompt=False)
    assert prefix.next_position < prefix.length, "an image takes fewer positions than tokens"
    got = local_likelihood.score_candidates(model, route, prefix, candidates)
    for values, candidate in zip(got, candidates, strict=True):
        assert values == pytest.approx(local_likelihood.score_from_scratch(model, inputs, candidate), abs=1e-4)


def test_an_encoder_decoder_is_tested_too_and_can_go_from_scratch(monkeypatch):
    from snellen.model.local import encoder_decoder as local_encoder_decoder

    fast = predict(model_of("instructblip"), ask("instructblip", choices=CHOICES))[0]
    assert fast.detail["route"] == "encoder-decoder"

    def broken(model, inputs, candidates):
        raise AttributeError("no such cache")

    monkeypatch.setattr(local_encoder_decoder, "score_encoder_decoder", broken)
    slow = predict(create(str(checkpoint("instructblip")), ModelOptions()), ask("instructblip", choices=CHOICES))[0]
    assert slow.detail["route"] == "scratch"
    assert slow.loglikelihoods == pytest.approx(fast.loglikelihoods, abs=1e-4, rel=1e-5)


def test_the_self_test_falls_back_when_a_route_is_wrong(monkeypatch):
    from snellen.model.local import transformers as local_replica

    def broken(model, route, prefix, candidates):
        if route == "tree":
            raise TypeError("no such argument")
        return [[0.0] * len(candidate) for candidate in candidates]

    monkeypatch.setattr(local_replica, "score_candidates", broken)
    model = create(str(checkpoint("text")), ModelOptions())
    asyncio.run(model.check())
    monkeypatch.undo()
    assert model.replicas[0].route == "scratch"
    (reply,) = predict(model, ask("text", choices=CHOICES))
    assert reply.loglikelihoods == pytest.approx(
        predict(model_of("text"), ask("text", choices=CHOICES))[0].loglikelihoods, abs=1e-4
    )
    assert reply.detail["route"] == "scratch"
    (whole,) = predict(model, ask("text", choices=CHOICES, likelihood=Likelihood(with_prompt=True)))
    assert whole.loglikelihoods == reply.loglikelihoods
    assert len(whole.detail["prompt_logprobs"]) == whole.usage.input_tokens - 1


@pytest.mark.parametrize("kind", ["text", "llava", "idefics3", "blip2", "instructblip"])
def test_likelihoods_are_the_same_bits_in_any_batch_and_order(kind):
    requests = [
        ask(kind, text="What? " * (1 + number % 4), name=str(number), seed=number, choices=CHOICES)
        for number in range(6)
    ]
    alone = [predict(model_of(kind, batch_size=1), request)[0].loglikelihoods for request in requests]
    together = [reply.loglikelihoods for reply in predict(model_of(kind, batch_size=16), *requests[::-1])][::-1]
    assert together == alone


@pytest.mark.parametrize("kind", LOADABLE)
def test_generation_does_not_depend_on_the_batch(kind):
    texts = ["What colour is the truck?", "How many people are there in the street, left of the tree?", "Yes?"]
    params = [
        Params(max_tokens=8, temperature=0),
        Params(max_tokens=5, temperature=1.0, seed=3),
        Params(max_tokens=12, temperature=0.7, top_p=0.8),
    ]
    requests = [
        ask(kind, text, name=str(place), seed=place, params=each)
        for place, (text, each) in enumerate(zip(texts, params, strict=True))
    ]
    model = model_of(kind, batch_size=16)
    together = predict(model, *requests)
    alone = [predict(model, request)[0] for request in requests]
    assert [reply.text for reply in together] == [reply.text for reply in alone]
    assert [reply.finish for reply in together] == [reply.finish for reply in alone]
    assert all(
        reply.usage.output_tokens <= request.params.max_tokens
        for reply, request in zip(together, requests, strict=True)
    )


@pytest.mark.parametrize("kind", ["text", "llava", "blip2", "t5"])
def test_greedy_text_is_the_librarys_own(kind):
    model = model_of(kind)
    replica = model.replicas[0]
    request = ask(kind, params=Params(max_tokens=10, temperature=0))
    (reply,) = predict(model, request)
    inputs = replica.inputs([replica.prompter.prepare(request)])
    with torch.inference_mode():
        out = replica.model.generate(**inputs, max_new_tokens=10, do_sample=False, pad_token_id=0)
    tokens = out[0].tolist()
    if kind != "t5":
        tokens = tokens[inputs["input_ids"].shape[1] :]
    assert reply.text == replica.prompter.tokenizer.decode(tokens, skip_special_tokens=True)


def test_images_change_what_a_seeing_model_says():
    model = model_of("llava")
    one, other = predict(model, ask("llava", choices=CHOICES, seed=1), ask("llava", choices=CHOICES, seed=2))
    assert one.loglikelihoods != other.loglikelihoods


def test_priors_come_back_beside_the_values():
    model = model_of("llava")
    baseline = (Turn("user", "Answer:"),)
    (reply,) = predict(model, ask("llava", choices=CHOICES, likelihood=Likelihood(baseline=baseline)))
    (prior,) = predict(model, Request(TrialKey("t", "s"), baseline, choices=CHOICES))
    assert reply.detail["priors"] == list(prior.loglikelihoods)
    assert predict(model_of("blip2"), ask("blip2", choices=CHOICES, likelihood=Likelihood(baseline=baseline)))[
        0
    ].detail["priors"]


@pytest.mark.parametrize("kind", ["text", "llava", "blip2", "git"])
def test_the_prompts_own_log_probabilities_are_the_librarys_loss(kind):
    model = model_of(kind)
    replica = model.replicas[0]
    request = ask(kind, choices=("yes",), likelihood=Likelihood(reduction="prompt-mean", with_prompt=True))
    (reply,) = predict(model, request)
    inputs = replica.inputs([replica.prompter.prepare(request)])
    with torch.inference_mode():
        loss = float(replica.model(**inputs, labels=inputs["input_ids"]).loss)
    assert -np.mean(reply.detail["prompt_logprobs"]) == pytest.approx(loss, abs=1e-4)


@pytest.mark.parametrize("kind", ["t5", "paligemma"])
def test_prompt_mean_needs_a_decoder_alone(kind):
    request = ask(kind, choices=CHOICES, likelihood=Likelihood(reduction="prompt-mean", with_prompt=True))
    assert predict(model_of(kind), request)[0].failure.kind is FailureKind.CAPABILITY


def test_a_dialogue_is_not_cut_where_the_prompt_is_read_both_ways():
    turns = (Turn("user", "Is it a dog?", (picture(),)), Turn("assistant", "No"), Turn("user", "What colour is it?"))
    replica = model_of("paligemma").replicas[0]
    prepared = replica.prompter.prepare(Request(TrialKey("t", "d"), turns, choices=CHOICES))
    whole = dataclasses.replace(prepared, rounds=(prepared.text[:12],))
    assert replica.cuts(whole, replica.inputs([prepared])) == ()


@pytest.mark.parametrize("kind", ["instructblip", "instructblip_llama"])
def test_replies_of_many_lengths_are_the_same_alone_and_beside_each_other(kind):
    """Padding in front of the querying half's text moved every word of it."""
    texts = ["What?", "How many people are there in the street, left of the tree, in the picture?", "Is it a dog?"]
    requests = [
        ask(kind, texts[number % 3], name=str(number), seed=number, params=Params(max_tokens=12, temperature=0))
        for number in range(8)
    ]
    together = predict(model_of(kind, batch_size=8), *requests)
    alone = [predict(model_of(kind, batch_size=1), request)[0] for request in requests]
    assert [reply.text for reply in together] == [reply.text for reply in alone]


def test_inputs_to_score_are_made_ahead_and_are_the_same():
    prompter = model_of("llava").replicas[0].prompter
    scored, generated = prompter.prepare(ask("llava", choices=CHOICES)), prompter.prepare(ask("llava"))
    assert generated.tensors is None
    again = prompter.encode([generated.text], [generated.pictures])
    assert {name: value.tolist() for name, value in scored.tensors.items()} == {
        name: value.tolist() for name, value in again.items()
    }


def test_dialogue_rounds_reuse_the_prefix_and_change_no_bit():
    turns = (
        Turn("user", "Can you see the image?", (picture(),)),
        Turn("assistant", "Yes"),
        Turn("user", "Is it a dog?"),
    )
    longer = (*turns, Turn("assistant", "No"), Turn("user", "What colour is it?"))
    first, second = (Request(TrialKey("t", "d", "base", 0), messages, choices=CHOICES) for messages in (turns, longer))
    warm = create(str(checkpoint("llava")), ModelOptions())
    predict(warm, first)
    hits = warm.replicas[0].memory.hits
    after = predict(warm, second)[0]
    assert warm.replicas[0].memory.hits == hits + 1, "the first round was found in memory"
    cold = create(str(checkpoint("llava")), ModelOptions())
    assert predict(cold, second)[0].loglikelihoods == after.loglikelihoods
    replica = cold.replicas[0] if cold.replicas else None
    prepared = replica.prompter.prepare(second)
    candidates, _ = replica.prompter.encode_candidates(prepared.text, CHOICES, alone=False)
    assert len(replica.cuts(prepared, replica.inputs([prepared]))) == 2
    scratch = [
        sum(local_likelihood.score_from_scratch(replica.model, replica.inputs([prepared]), each)) for each in candidates
    ]
    assert after.loglikelihoods == pytest.approx(scratch, abs=1e-4)


def test_repeats_of_a_prompt_are_encoded_once():
    model = create(str(checkpoint("llava")), ModelOptions())
    predict(
        model, *(replace(ask("llava", choices=CHOICES), key=TrialKey("t", "s", "base", repeat)) for repeat in range(3))
    )
    assert model.replicas[0].memory.hits == 2


def test_many_candidates_are_no_problem():
    many = tuple(f"{first} {second} {third}" for first in "abcdef" for second in "ghijkl" for third in "mnopqrst")
    (reply,) = predict(model_of("text"), ask("text", choices=many))
    assert len(reply.loglikelihoods) == 288
    picked = (0, 100, 287)
    (few,) = predict(model_of("text"), ask("text", choices=tuple(many[place] for place in picked)))
    assert few.loglikelihoods == pytest.approx([reply.loglikelihoods[place] for place in picked], abs=1e-4)


def test_bad_requests_fail_alone_and_by_name():
    model = model_of("text")
    replies = predict(
        model,
        ask("text", name="good", choices=CHOICES),
        ask("text", name="empty", choices=("yes", "")),
        ask("text", name="none", choices=("",)),
        ask("text", text="long " * 2000, name="long", choices=CHOICES),
        ask("llava", name="image", choices=CHOICES),
        ask("text", text="long " * 2000, name="long2"),
        ask("text", name="good2", params=Params(max_tokens=2)),
        Request(TrialKey("t", "broken"), (Turn("user", "?", (Image(ref="/not/there.png"),)),)),
    )
    kinds = {reply.key.sample: reply.failure.kind if reply.failure else None for reply in replies}
    assert kinds == {
        "good": None,
        "empty": FailureKind.REQUEST,
        "none": FailureKind.REQUEST,
        "long": FailureKind.TOO_LONG,
        "image": FailureKind.CAPABILITY,
        "long2": FailureKind.TOO_LONG,
        "good2": None,
        "broken": FailureKind.CAPABILITY,
    }
    messages = {reply.key.sample: reply.failure.message for reply in replies if reply.failure}
    assert "candidate '' has no tokens" in messages["empty"]
    assert "has no candidates" in messages["none"]
    assert "context is 1024" in messages["long"]
    with pytest.raises(ModelError, match="takes no images"):
        asyncio.run(model.predict(ask("llava", name="image"), {}))
    (unreadable,) = predict(
        model_of("llava"), Request(TrialKey("t", "b"), (Turn("user", "?", (Image(ref="/not/there.png"),)),))
    )
    assert unreadable.failure.kind is FailureKind.DECODE


@pytest.mark.parametrize("kind", VISION)
def test_odd_requests_are_answered_or_fail_alone(kind):
    choices = ("ja", "日本語の答え", " leading", "emoji 🦊", "a" * 300)
    one, two = (picture(1),), (picture(1), picture(2))
    odd = {
        "two images": (Turn("user", "compare", two),),
        "system": (Turn("system", "be brief"), Turn("user", "q", one)),
        "image later": (Turn("user", "hi"), Turn("assistant", "yes"), Turn("user", "look", one)),
        "no image": (Turn("user", "hello there"),),
        "empty": (Turn("user", "" if "instructblip" not in kind else "?"),),  # its tokenizer makes no tensor of nothing
    }
    scored = predict(
        model_of(kind), *(Request(TrialKey("t", name), messages, choices=choices) for name, messages in odd.items())
    )
    told = Params(max_tokens=3)
    made = predict(model_of(kind), *(Request(TrialKey("t", name), messages, told) for name, messages in odd.items()))
    expected = [FailureKind.CAPABILITY if kind in TAKES_ONE and name == "two images" else None for name in odd]
    assert [reply.failure.kind if reply.failure else None for reply in scored] == expected
    assert [reply.failure.kind if reply.failure else None for reply in made] == expected


def test_what_the_architecture_raises_costs_one_request(monkeypatch):
    model = create(str(checkpoint("text")), ModelOptions(arguments={"batch_size": 4}))
    asyncio.run(model.check())
    replica = model.replicas[0]
    real = replica.inputs

    def broken(batch):
        if any(prepared.request.key.sample == "bad" for prepared in batch):
            raise RuntimeError("shapes do not match\nmore")
        return real(batch)

    monkeypatch.setattr(replica, "inputs", broken)
    replies = predict(
        model,
        *(ask("text", name=name, params=Params(max_tokens=2)) for name in ("a", "bad", "b")),
        ask("text", name="bad", choices=CHOICES),
    )
    assert [reply.failure is None for reply in replies] == [True, False, True, False]
    assert replies[1].failure.message == "bad: the model raised RuntimeError: shapes do not match"
    assert replies[3].failure.kind is FailureKind.SERVER


def test_out_of_memory_shrinks_the_batch_and_the_run_goes_on(monkeypatch):
    model = create(str(checkpoint("text")), ModelOptions(arguments={"batch_size": 8}))
    asyncio.run(model.check())
    replica = model.replicas[0]
    real, sizes = replica.model.generate, []

    def tight(**inputs):
        sizes.append(len(inputs["input_ids"]))
        if sizes[-1] > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(**inputs)

    monkeypatch.setattr(replica.model, "generate", tight)
    replies = predict(model, *(ask("text", name=str(number), params=Params(max_tokens=2)) for number in range(8)))
    assert all(reply.text is not None for reply in replies)
    assert sizes == [8, 4, 2, 2, 2, 2]
    assert model.batch_size == 2


def test_out_of_memory_in_scoring_is_tried_once_more_without_what_was_kept(monkeypatch):
    model = create(str(checkpoint("text")), ModelOptions())
    asyncio.run(model.check())
    replica = model.replicas[0]
    predict(model, ask("text", name="kept", choices=CHOICES))
    real, calls = replica.score, []

    def tight(prepared):
        calls.append(len(replica.memory))
        if prepared.request.key.sample == "huge" or len(replica.memory):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(prepared)

    monkeypatch.setattr(replica, "score", tight)
    good, huge = predict(model, ask("text", name="good", choices=CHOICES), ask("text", name="huge", choices=CHOICES))
    assert good.failure is None
    assert calls == [1, 0, 1, 0]
    assert huge.failure.kind is FailureKind.PAYLOAD


def test_two_devices_share_a_batch_without_collectives():
    pair = create(str(checkpoint("llava")), ModelOptions(arguments={"devices": "cpu,cpu", "batch_size": 2}))
    requests = [ask("llava", name=str(number), seed=number, choices=CHOICES) for number in range(5)]
    requests += [ask("llava", name=f"g{number}", seed=number, params=Params(max_tokens=3)) for number in range(4)]
    replies = predict(pair, *requests)
    assert pair.batch_size == 4
    assert [reply.key for reply in replies] == [request.key for request in requests]
    single = predict(model_of("llava"), *requests)
    assert [reply.loglikelihoods for reply in replies] == [reply.loglikelihoods for reply in single]
    assert [reply.text for reply in replies] == [reply.text for reply in single]


def test_capabilities_and_identity_are_known_before_weights_are_loaded():
    blind, seeing = create(str(checkpoint("text")), ModelOptions()), create(str(checkpoint("idefics3")), ModelOptions())
    assert Capability.IMAGES in seeing.capabilities
    assert Capability.IMAGES not in blind.capabilities
    assert {Capability.GENERATE, Capability.LIKELIHOOD, Capability.BATCH} <= blind.capabilities
    assert isinstance(blind, BatchModel)
    assert blind.identity() != seeing.identity()
    assert blind.identity() == create(str(checkpoint("text")), ModelOptions(arguments={"batch_size": 9})).identity()
    assert blind.identity() != create(str(checkpoint("text")), ModelOptions(arguments={"half": True})).identity()
    assert not blind.replicas


def test_half_precision_runs_and_is_close():
    half = model_of("llava", half=True)
    assert half.replicas[0].model.dtype is torch.bfloat16
    request = ask("llava", choices=CHOICES)
    assert predict(half, request)[0].loglikelihoods == pytest.approx(
        predict(model_of("llava"), request)[0].loglikelihoods, rel=0.1
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtyp": "float16"}, "did you mean 'dtype'"),
        ({"dtype": "float17"}, "choose one of"),
        ({"trust_remote_code": True}, "revision=COMMIT"),
        ({"batch_size": 0}, "at least 1"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ConfigError, match=message):
        create(str(checkpoint("text")), ModelOptions(arguments=arguments))


def test_wrong_folders_are_named(tmp_path):
    with pytest.raises(UsageError, match="no such folder"):
        create(str(tmp_path / "absent"), ModelOptions())
    with pytest.raises(UsageError, match=r"config\.json"):
        create(str(tmp_path), ModelOptions())
    with pytest.raises(UsageError, match="PATH_OR_ID"):
        create("", ModelOptions())
    (tmp_path / "config.json").write_text('{"model_type": "clip"}')
    with pytest.raises(UsageError, match="neither an image-text-to-text nor a language model"):
        create(str(tmp_path), ModelOptions())
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(EnvironmentProblem, match="cannot be read"):
        asyncio.run(create(str(tmp_path), ModelOptions()).check())


def test_prefetched_images_are_used_and_forgotten():
    model = create(str(checkpoint("llava")), ModelOptions(arguments={"batch_size": 2}))
    request = ask("llava", choices=CHOICES)
    model.prefetch(request)
    assert not model.prepared_ahead, "nothing is prepared before the weights are there"
    asyncio.run(model.check())
    for number in range(9):
        model.prefetch(ask("llava", name=str(number)))
    assert model.prepared_ahead == 4, "two batches ahead, no more"
    predict(model, ask("llava", name="0"))
    assert model.prepared_ahead == 3
    asyncio.run(model.close())


@pytest.mark.parametrize("kind", LOADABLE)
def test_what_no_batch_would_change_is_generated_together(kind):
    replica = model_of(kind, batch_size=16).replicas[0]
    (reply,) = predict(model_of(kind, batch_size=16), ask(kind, params=Params(max_tokens=2)))
    assert (replica.alone, replica.sizer.size == 1, reply.detail.get("batch")) == (False, False, None)


def test_what_a_batch_would_change_is_generated_alone(monkeypatch):
    """A processor that pads in front of words whose places are counted from the left: each reply depends on the others."""
    monkeypatch.setattr("snellen.model.local.inputs._pad_querying_right", lambda tensors: tensors)
    model = create(str(checkpoint("instructblip_llama")), ModelOptions(arguments={"batch_size": 16}))
    asyncio.run(model.check())
    (reply,) = predict(model, ask("instructblip_llama", params=Params(max_tokens=2)))
    (replica,) = model.replicas
    assert (replica.alone, replica.sizer.size, reply.detail.get("batch")) == (True, 1, "alone")
    asyncio.run(model.close())
