"""Other people's classes and functions as models, unchanged."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from snellen.core.errors import ModelError, UsageError
from snellen.core.protocols import BatchModel, Capability
from snellen.core.registry import Registry
from snellen.core.types import FailureKind, Image, Likelihood, Params, Request, TrialKey, Turn
from snellen.model.local.plugin import create
from snellen.model.options import ModelOptions
from snellen.scoring.scorers.option_likelihood import choose, option_values

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PLUGIN = '''
class Interface:
    """As a ReForm-style interface class is written."""

    def __init__(self, model_config=None, device=None, half=False, inference_method="generation"):
        self.model_config, self.seen = model_config, []

    def raw_batch_generate(self, image, prompt, temperature=1, max_new_tokens=30):
        if any("boom" in text for text in prompt):
            raise ValueError("boom in here")
        self.seen.append((temperature, max_new_tokens, len(prompt)))
        sizes = [picture.size if picture else None for picture in image]
        return [f"{self.model_config}|{text}|{size}|{temperature}|{max_new_tokens}" for size, text in zip(sizes, prompt)]

    def raw_batch_predict(self, image, prompt, candidates, likelihood_reduction="sum"):
        return [max(range(len(each)), key=lambda i: len(each[i])) for each in candidates]


def get_lynx(model_config=None):
    return Interface(model_config=model_config.get("model_name")), "a preprocessor"


class Single:
    def raw_generate(self, image, prompt, temperature=1, max_new_tokens=30):
        return prompt.upper()

    def raw_predict(self, image, prompt, candidates, likelihood_reduction="sum"):
        return len(candidates) - 1


class Indices:
    def raw_batch_predict(self, image, prompt, candidates):
        return [0 for _ in candidates]


class Unordered:
    def raw_batch_generate(self, image, prompt):
        return {text: "A" for text in prompt} if "dict" in prompt[0] else set(prompt)

    def raw_batch_predict(self, image, prompt, candidates):
        return [True for _ in candidates]


class Values:
    def raw_batch_predict(self, image, prompt, candidates, likelihood_reduction="sum"):
        share = {"sum": 1, "mean": 2, "per-byte": 4}[likelihood_reduction]
        return [[-float(len(each)) / share for each in row] for row in candidates]


def get_told(model_config=None):
    return Interface(model_config=model_config["inference_method"]), "a preprocessor"


def echo(prompt, candidates=(), shout=False):
    if candidates:
        return [-float(len(each)) for each in candidates]
    return prompt.upper() if shout else prompt


def odd(prompt):
    """Answers as plug-ins with a mistake do."""
    import sys

    if prompt == "leaves":
        sys.exit(0)
    if prompt == "gives up":
        raise BaseException("of no usual kind")
    made = {"nothing": None, "bytes": b"B", "list": ["B"], "object": {"text": "B"}, "no number": float("nan")}
    return made.get(prompt, 3)


def wrong(prompt, candidates):
    return 99


class Nothing:
    pass
'''


@pytest.fixture(autouse=True)
def plugin(tmp_path):
    (tmp_path / "others.py").write_text(PLUGIN)
    Registry().load_plugin(tmp_path / "others.py")


def request(text="hello", name="s", **changes):
    return Request(TrialKey("t", name), (Turn("user", text),), **changes)


def predict(model, *requests):
    return asyncio.run(model.predict_batch(list(requests), {}))


def test_the_interface_class_generates_and_predicts_unchanged():
    model = create("Interface", ModelOptions(arguments={"model_config": "lynx.yaml"}))
    assert isinstance(model, BatchModel)
    assert {Capability.GENERATE, Capability.LIKELIHOOD, Capability.IMAGES, Capability.BATCH} == model.capabilities
    (reply,) = predict(model, request(params=Params(temperature=0.2, max_tokens=7)))
    assert reply.text == "lynx.yaml|hello|None|0.2|7"
    (chosen,) = predict(model, request(choices=("a", "bbb", "cc")))
    assert choose(chosen.loglikelihoods).likeliest == (1,)
    assert chosen.detail["route"] == "plugin-index"


def test_unset_parameters_are_left_to_the_class_and_batches_are_alike():
    model = create("Interface", ModelOptions())
    replies = predict(model, request(name="1"), request(name="2", params=Params(temperature=0.0)), request(name="3"))
    assert [reply.text.split("|")[3] for reply in replies] == ["1", "0.0", "1"]
    assert [reply.key.sample for reply in replies] == ["1", "2", "3"]


def test_images_arrive_as_pictures():
    picture = Image(ref=str(EXAMPLES / "colours" / "red.png"))
    asked = Request(TrialKey("t", "s"), (Turn("user", "look", (picture,)),))
    assert "(64, 48)" in predict(create("Interface", ModelOptions()), asked)[0].text
    (unreadable,) = predict(
        create("Interface", ModelOptions()), Request(TrialKey("t", "s"), (Turn("user", "?", (Image(ref="/no.png"),)),))
    )
    assert unreadable.failure.kind is FailureKind.DECODE


def test_a_loader_with_a_preprocessor_is_taken_by_its_name():
    model = create("lynx", ModelOptions(arguments={"model_name": "L.yaml"}))
    assert predict(model, request())[0].text.startswith("L.yaml|")
    assert "is not used" in model.unused and "get_lynx" in model.unused


def test_a_module_beside_a_plugin_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "lib_of_neighbour.py").write_text("WORD = 'near'")
    plugin = "from lib_of_neighbour import WORD\ndef neighbour(prompt):\n    import lib_of_neighbour\n    return WORD\n"
    (tmp_path / "neighbour_plugin.py").write_text(plugin)
    Registry().load_plugin(tmp_path / "neighbour_plugin.py")
    assert predict(create("neighbour", ModelOptions()), request())[0].text == "near"


def test_methods_for_one_sample_and_plain_functions():
    single = create("Single", ModelOptions())
    assert predict(single, request())[0].text == "HELLO"
    assert choose(predict(single, request(choices=("a", "b")))[0].loglikelihoods).likeliest == (1,)
    echo = create("echo", ModelOptions(arguments={"shout": True}))
    assert [reply.text for reply in predict(echo, request(), request("you", name="2"))] == ["HELLO", "YOU"]
    (scored,) = predict(echo, request(choices=("a", "bbb"), likelihood=Likelihood(baseline=(Turn("user", "Answer:"),))))
    assert scored.loglikelihoods == (-1.0, -3.0)
    assert scored.detail["priors"] == [-1.0, -3.0]


def test_generation_and_likelihood_in_one_batch_keep_their_order():
    replies = predict(
        create("echo", ModelOptions()), request(), request(name="c", choices=("a", "b")), request("z", name="z")
    )
    assert [reply.text for reply in replies] == ["hello", None, "z"]


def test_a_request_that_breaks_the_plugin_fails_alone():
    replies = predict(
        create("Interface", ModelOptions()), request(name="1"), request("boom", name="2"), request(name="3")
    )
    assert [reply.failure is None for reply in replies] == [True, False, True]
    assert replies[1].failure.message == "plugin/Interface raised ValueError: boom in here"
    (nonsense,) = predict(create("wrong", ModelOptions()), request(choices=("a", "b")))
    assert nonsense.failure.kind is FailureKind.DECODE
    (empty,) = predict(create("Interface", ModelOptions()), request(choices=("a", "")))
    assert "candidate '' has no tokens" in empty.failure.message
    with pytest.raises(ModelError, match="boom"):
        asyncio.run(create("Interface", ModelOptions()).predict(request("boom"), {}))


def test_a_dialogue_becomes_lines_and_the_prefix_ends_the_prompt():
    turns = (Turn("system", "Be brief."), Turn("user", "Hi"), Turn("assistant", "Yes"), Turn("user", "Why?"))
    asked = Request(TrialKey("t", "s"), turns, prefix="The answer is")
    assert (
        predict(create("echo", ModelOptions()), asked)[0].text
        == "Be brief.\nUser: Hi\nAssistant: Yes\nUser: Why?\nAssistant: The answer is"
    )


def test_what_is_not_there_or_not_a_model_is_named():
    with pytest.raises(UsageError, match="did you mean 'Interface'"):
        create("Interfase", ModelOptions())
    with pytest.raises(UsageError, match="neither raw_batch_generate"):
        create("Nothing", ModelOptions())
    with pytest.raises(UsageError, match="--model-arg"):
        create("Interface", ModelOptions(arguments={"colour": 1}))
    with pytest.raises(UsageError, match="needs a name"):
        create("", ModelOptions())


def test_the_identity_follows_the_file_and_its_arguments(tmp_path):
    first = create("echo", ModelOptions()).identity()
    assert create("echo", ModelOptions(arguments={"batch_size": 3})).identity() == first
    assert create("echo", ModelOptions(arguments={"shout": True})).identity() != first
    (tmp_path / "others.py").write_text(PLUGIN + "\n# changed\n")
    Registry().load_plugin(tmp_path / "others.py")
    assert create("echo", ModelOptions()).identity() != first


def test_a_loader_and_a_class_are_told_the_inference_method():
    for method in ("generation", "likelihood"):
        options = ModelOptions(infer_method=method)
        assert predict(create("told", options), request())[0].text.startswith(f"{method}|")
    create("Single", ModelOptions(infer_method="likelihood"))  # a class that does not name it is not told


def test_a_reduction_that_cannot_be_had_is_refused_at_the_first_answer():
    """It was found out when the replies of a whole run were there."""
    mean = Likelihood(reduction="mean")
    (refused,) = predict(create("Indices", ModelOptions()), request(choices=("a", "b"), likelihood=mean))
    assert refused.failure.kind is FailureKind.CAPABILITY
    assert "--likelihood-reduction mean needs: leave it out" in refused.failure.message


@pytest.mark.parametrize("reduction", ["mean", "per-byte"])
def test_what_an_interface_reduced_itself_is_not_reduced_again(reduction):
    asked = request(choices=("a", "bbb"), likelihood=Likelihood(reduction=reduction))
    (index,) = predict(create("Interface", ModelOptions()), asked)
    assert choose(option_values(asked, index)).likeliest == (1,)
    (values,) = predict(create("Values", ModelOptions()), asked)
    assert option_values(asked, values) == list(values.loglikelihoods)
    with pytest.raises(UsageError, match="cannot be had"):
        option_values(asked, values, "sum")


@pytest.mark.parametrize("what", ["nothing", "bytes", "list", "object", "no number", "leaves", "gives up"])
def test_what_is_no_text_is_no_answer(what):
    odd_one, number = predict(create("odd", ModelOptions()), request(what, name="1"), request("number", name="2"))
    assert (odd_one.text, number.text) == (None, "3")
    assert odd_one.failure.kind is (FailureKind.SERVER if what in ("leaves", "gives up") else FailureKind.DECODE)


@pytest.mark.parametrize(
    "asked", [request("dict"), request("set"), request(choices=("a", "b"))], ids=["dict", "set", "bool"]
)
def test_answers_without_an_order_and_verdicts_for_an_index_are_no_answers(asked):
    (answer,) = predict(create("Unordered", ModelOptions()), asked)
    assert answer.failure is not None and (answer.text, answer.loglikelihoods) == (None, None)
