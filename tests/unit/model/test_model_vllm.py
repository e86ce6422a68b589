"""vLLM's offline engine behind the seam: the real code against a stand-in engine with the library's names and shapes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from snellen.core.answerer import answerer_of, differences
from snellen.core.errors import ConfigError, EnvironmentProblem, MissingExtra, ModelError, UsageError
from snellen.core.protocols import BatchModel, Capability
from snellen.core.types import FailureKind, Image, Likelihood, Params, Request, TrialKey, Turn
from snellen.model.local.checkpoint import weights_of
from snellen.model.local.vllm import create
from snellen.model.options import ModelOptions
from vllm_standin import LLM, make_lora_module, make_module

PICTURE = Image(ref=str(Path(__file__).resolve().parents[3] / "examples" / "colours" / "red.png"))


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", make_module())
    monkeypatch.setitem(sys.modules, "vllm.lora", ModuleType("vllm.lora"))
    monkeypatch.setitem(sys.modules, "vllm.lora.request", make_lora_module())


def ask(text="What is it?", name="s", **changes):
    return Request(TrialKey("t", name), (Turn("user", text, (PICTURE,)),), **changes)


def predict(model, *requests):
    return asyncio.run(model.predict_batch(list(requests), {}))


def test_text_with_pictures_and_parameters_in_one_call():
    model = create("some/checkpoint", ModelOptions(arguments={"half": True, "engine": {"enforce_eager": True}}))
    assert isinstance(model, BatchModel)
    assert Capability.LIKELIHOOD in model.capabilities
    first, second = predict(model, ask(params=Params(temperature=0.5, max_tokens=9)), ask(name="2"))
    assert (first.text, second.text) == ("0.5 9 True", "0.0 512 True"), "greedy where nothing is said"
    assert first.usage.output_tokens == 2
    (engine,) = LLM.made
    assert engine.calls == [2]
    assert engine.arguments == {
        "model": "some/checkpoint",
        "dtype": "bfloat16",
        "trust_remote_code": False,
        "tensor_parallel_size": 1,
        "enforce_eager": True,
    }


def test_what_is_left_open_is_the_checkpoints_own_and_stands_in_the_record(monkeypatch):
    own = {"do_sample": True, "temperature": 0.7, "top_p": 0.8, "repetition_penalty": 1.05, "max_new_tokens": 64}
    monkeypatch.setattr(LLM, "generation_config", own)
    first, second = predict(
        create("m", ModelOptions()), ask(), ask(name="2", params=Params(temperature=0.0, top_p=1.0))
    )
    assert (first.text, second.text) == ("0.7 64 True", "0.0 64 True")
    assert first.detail == {"temperature": 0.7, "top_p": 0.8, "max_tokens": 64, "repetition_penalty": 1.05}
    assert (second.detail["temperature"], second.detail["top_p"]) == (0.0, 1.0)
    monkeypatch.setattr(LLM, "generation_config", {"temperature": 0.7, "top_k": 20})
    (reply,) = predict(create("m", ModelOptions()), ask())
    assert reply.detail["temperature"] == 0.0, "a temperature without do_sample is not used, as in hf/"


def test_the_files_of_a_checkpoint_are_part_of_its_identity(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    before = create(str(tmp_path), ModelOptions()).identity()
    (tmp_path / "config.json").write_text('{"a": 1}')
    after = create(str(tmp_path), ModelOptions()).identity()
    assert before != after
    assert str(tmp_path) not in str(after), "where it lies changes nothing"


def test_weights_tuned_between_frozen_ends_are_another_answerer(tmp_path):
    frozen, tuned = b"\0" * 2**21, b"\1" * 2**20
    (tmp_path / "model.safetensors").write_bytes(frozen + b"\0" * 2**20 + frozen)
    before = answerer_of(create(str(tmp_path), ModelOptions()))
    (tmp_path / "model.safetensors").write_bytes(frozen + tuned + frozen)
    after = answerer_of(create(str(tmp_path), ModelOptions()))
    assert before.key != after.key
    assert "weights" in next(differences(before, after))
    assert not list(differences(msgspec.structs.replace(before, weights={}), after)), "a run that noted none goes on"


def test_a_training_that_goes_on_below_a_checkpoint_leaves_its_weights_as_they_are(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 2**10)
    before = answerer_of(create(str(tmp_path), ModelOptions()))
    (tmp_path / "checkpoint-500").mkdir()
    (tmp_path / "checkpoint-500" / "model.safetensors").write_bytes(b"\1" * 2**10)
    assert answerer_of(create(str(tmp_path), ModelOptions())) == before


def test_weights_are_read_once_in_a_process_and_again_if_they_change(tmp_path, monkeypatch):
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"\0" * 2**23)
    opened: list[str] = []
    plain_open = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *a, **k: opened.append(path.name) or plain_open(path, *a, **k))
    first = weights_of(str(tmp_path), None)
    assert weights_of(str(tmp_path), None) == first
    assert opened == ["model.safetensors"]
    weights.write_bytes(b"\1" * 2**23)
    assert weights_of(str(tmp_path), None) != first


def test_options_of_the_engine_are_checked_by_name():
    with pytest.raises(ConfigError, match=r"engine\.dtype.*--model-arg dtype="):
        create("m", ModelOptions(arguments={"engine": {"dtype": "half"}}))
    with pytest.raises(ConfigError, match="named by --model"):
        create("m", ModelOptions(arguments={"engine": {"model": "x"}}))
    with pytest.raises(UsageError, match="'enforce_eagr'"):
        asyncio.run(create("m", ModelOptions(arguments={"engine": {"enforce_eagr": True}})).check())


def test_candidates_are_what_comes_after_the_prompt():
    model = create("m", ModelOptions())
    (reply,) = predict(model, ask(choices=("a dog", "cat")))
    assert reply.loglikelihoods == (-4.0, -3.0)
    assert reply.detail["token_logprobs"] == [[-1.0, -3.0], [-3.0]]
    assert reply.detail["route"] == "vllm"
    assert LLM.made[0].calls == [1, 2], "the prompt once, then all candidates"


def test_priors_prefix_and_the_prompts_own_values():
    likelihood = Likelihood(baseline=(Turn("user", "Answer:"),), with_prompt=True)
    (reply,) = predict(
        create("m", ModelOptions()), ask(choices=("a dog", "cat"), likelihood=likelihood, prefix="It is")
    )
    assert reply.loglikelihoods == (-4.0, -3.0)
    assert reply.detail["priors"] == [-4.0, -3.0]
    assert reply.detail["prompt_logprobs"] == [-7.0, -4.0, -2.0, -3.0, -6.0, -2.0, -2.0]


def test_a_request_that_is_refused_fails_alone():
    replies = predict(
        create("m", ModelOptions()),
        ask(name="good"),
        ask("long " * 30, name="long"),
        ask(name="empty", choices=("", "x")),
        Request(TrialKey("t", "broken"), (Turn("user", "?", (Image(ref="/no.png"),)),)),
    )
    assert [reply.failure.kind if reply.failure else None for reply in replies] == [
        None,
        FailureKind.TOO_LONG,
        FailureKind.REQUEST,
        FailureKind.DECODE,
    ]
    with pytest.raises(ModelError, match="maximum model length"):
        asyncio.run(create("m", ModelOptions()).predict(ask("long " * 30), {}))


def test_what_is_wrong_is_named(monkeypatch):
    with pytest.raises(ConfigError, match="did you mean 'dtype'"):
        create("m", ModelOptions(arguments={"dtyp": "half"}))
    with pytest.raises(ConfigError, match="revision=COMMIT"):
        create("m", ModelOptions(arguments={"trust_remote_code": True}))
    with pytest.raises(UsageError, match="PATH_OR_ID"):
        create("", ModelOptions())
    with pytest.raises(Exception, match=r"broken.*no such checkpoint"):
        asyncio.run(create("broken", ModelOptions()).check())
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtra, match=r"snellen\[vllm\]"):
        asyncio.run(create("m", ModelOptions()).check())


def test_the_engine_is_let_go():
    model = create("m", ModelOptions())
    predict(model, ask())
    asyncio.run(model.close())
    assert model._engine is None
    assert LLM.made[0].ended, "its processes would hold the weights until ours ends"
    asyncio.run(create("m", ModelOptions()).close())


LANGUAGE = "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight"


def write_adapter(folder, *names, base=None, **config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 16, "lora_alpha": 32, "bias": "none", **config}))
    head = json.dumps({name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names or (LANGUAGE,)})
    (folder / "adapter_model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head.encode())
    if base:
        (folder / "snellen_base.json").write_text(json.dumps({"files": base}))
    return folder


def adapted(name, folder, **engine):
    return create(str(name), ModelOptions(arguments={"adapter": str(folder), "engine": engine}))


@pytest.mark.parametrize(("rank", "room"), [(1, 8), (8, 8), (12, 16), (64, 64), (257, 320), (512, 512)])
def test_an_adapter_is_applied_to_every_request(tmp_path, rank, room):
    folder = write_adapter(tmp_path / "tuned", r=rank)
    replies = predict(adapted("m", folder), ask(), ask(name="2", prefix="It"), ask(name="3", choices=("a dog", "cat")))
    assert all(reply.failure is None for reply in replies)
    (engine,) = LLM.made
    assert engine.arguments["enable_lora"] is True and engine.arguments["max_lora_rank"] == room
    assert engine.adapters and set(engine.adapters) == {str(folder)}
    predict(create("m", ModelOptions()), ask())
    assert "enable_lora" not in LLM.made[-1].arguments and LLM.made[-1].adapters == [None]


def test_an_adapter_is_part_of_the_identity(tmp_path):
    plain = create("m", ModelOptions()).identity()
    first = adapted("m", write_adapter(tmp_path / "a")).identity()
    again = adapted("m", write_adapter(tmp_path / "b")).identity()
    other = adapted("m", write_adapter(tmp_path / "c", r=8)).identity()
    assert "adapter" not in plain and first == again, "where it lies changes nothing"
    assert first != other and first["vllm"] == "m"


def test_an_adapter_of_other_weights_is_refused(tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text("{}")
    fits = create(str(base), ModelOptions()).identity()["files"]
    assert adapted(base, write_adapter(tmp_path / "fits", base=fits)).identity()["files"] == fits
    with pytest.raises(UsageError, match=rf"trained on other weights than vllm/{base} holds"):
        adapted(base, write_adapter(tmp_path / "other", base="0123456789abcdef"))
    (tmp_path / "run").mkdir()
    write_adapter(tmp_path / "run" / "model")
    with pytest.raises(UsageError, match=r"adapter_config\.json.*model"):
        adapted(base, tmp_path / "run")


@pytest.mark.parametrize(
    ("config", "name", "said"),
    [
        ({"r": 513}, LANGUAGE, "its rank is 513, and vLLM takes 1 to 512"),
        ({"r": 0}, LANGUAGE, "its rank is 0"),
        ({"r": None}, LANGUAGE, "its rank is None"),
        ({"use_dora": True}, LANGUAGE, "it has DoRA"),
        ({"modules_to_save": ["lm_head"]}, LANGUAGE, "it has whole layers"),
        ({"rank_pattern": {"q_proj": 4}}, LANGUAGE, "it has ranks by layer"),
        ({"alpha_pattern": {"q_proj": 4}}, LANGUAGE, "it has scales by layer"),
        ({"bias": "lora_only"}, LANGUAGE, "it has biases"),
        ({}, "base_model.model.model.vision_tower.layers.0.q_proj.lora_A.weight", "is not of the language half"),
        ({}, "base_model.model.visual.blocks.0.attn.qkv.lora_A.weight", "is not of the language half"),
        ({}, "base_model.model.model.multi_modal_projector.linear_1.lora_A.weight", "is not of the language half"),
    ],
)
def test_what_vllm_would_leave_out_is_refused_with_a_way(tmp_path, config, name, said):
    with pytest.raises(UsageError, match=said) as raised:
        adapted("m", write_adapter(tmp_path / "a", LANGUAGE, name, **config))
    assert "measure it through hf/, or merge it first (snellen train merge)" in str(raised.value)


def test_files_of_an_adapter_that_cannot_be_read_are_one_line(tmp_path):
    folder = write_adapter(tmp_path / "a")
    for body in (b"", b"short", b"\xff" * 64, (2).to_bytes(8, "little") + b"[]", (9).to_bytes(8, "little") + b"{"):
        (folder / "adapter_model.safetensors").write_bytes(body)
        with pytest.raises(EnvironmentProblem, match=r"adapter_model\.safetensors"):
            adapted("m", folder)
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(EnvironmentProblem, match=r"adapter_model\.safetensors"):
        adapted("m", folder)
    (folder / "adapter_config.json").write_text("[]")
    with pytest.raises(EnvironmentProblem, match="is no adapter's configuration"):
        adapted("m", folder)
    with pytest.raises(ConfigError, match="it would not be applied"):
        adapted("m", write_adapter(tmp_path / "b"), enable_lora=False)
