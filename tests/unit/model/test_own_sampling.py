"""What a checkpoint does when nobody says: one rule for both ways of running it, told before the run."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.types import Params
from snellen.model.local.checkpoint import OwnSampling, describe_sampling, find_own_sampling, read_own_sampling

SAMPLING = {"do_sample": True, "temperature": 0.6, "top_p": 0.9}


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({}, OwnSampling(0.0, 1.0)),
        ({"temperature": 0.6, "top_p": 0.9}, OwnSampling(0.0, 1.0)),
        (SAMPLING, OwnSampling(0.6, 0.9)),
        ({"do_sample": True}, OwnSampling(1.0, 1.0)),
        ({"do_sample": False, "max_new_tokens": 9, "repetition_penalty": 1.1}, OwnSampling(0.0, 1.0, 9, 1.1)),
        ({"do_sample": True, "temperature": None, "top_p": None, "max_new_tokens": None}, OwnSampling(1.0, 1.0)),
    ],
)
def test_greedy_unless_the_checkpoint_says_otherwise(table, wanted):
    assert read_own_sampling(table) == wanted


@given(st.none() | st.floats(0, 2), st.none() | st.floats(0.1, 1), st.none() | st.integers(1, 99), st.booleans())
def test_what_a_request_says_always_wins(temperature, top_p, max_tokens, samples):
    own = read_own_sampling(SAMPLING | {"do_sample": samples})
    used = own.settle(Params(temperature=temperature, top_p=top_p, max_tokens=max_tokens))
    assert used.temperature == (own.temperature if temperature is None else temperature)
    assert used.top_p == (own.top_p if top_p is None else top_p)
    assert used.max_tokens == (max_tokens or own.max_tokens)


def test_it_is_told_before_anything_is_loaded(tmp_path):
    assert find_own_sampling(str(tmp_path)) is None
    assert describe_sampling("owner/name", Params()).startswith("temperature unset: greedy, unless")
    (tmp_path / "config.json").write_text("{}")
    assert describe_sampling(str(tmp_path), Params()) == "greedy (temperature unset: the checkpoint's own)"
    (tmp_path / "generation_config.json").write_text(json.dumps(SAMPLING))
    assert describe_sampling(str(tmp_path), Params()).startswith("temperature 0.6, top_p 0.9 (temperature unset")
    assert describe_sampling(str(tmp_path), Params(temperature=0.0)) == "greedy"
