"""Each row is sampled by its own seed, stops for its own reasons, and takes what it does not set from the checkpoint."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from extras import needs

torch = needs("torch")

from snellen.core.types import Params, Request, TrialKey, Turn
from snellen.model.local.transformers import RowSampler, make_row, sample_token
from snellen.model.plain import cut_at_stop

DEFAULTS = SimpleNamespace(do_sample=False, temperature=0.6, top_p=0.9, max_new_tokens=None)


def request(sample="s", **params):
    return Request(TrialKey("t", sample), (Turn("user", "x"),), Params(**params))


def test_a_uniform_number_points_into_the_distribution():
    scores = torch.log(torch.tensor([0.1, 0.2, 0.3, 0.4]))
    assert [sample_token(scores, 1.0, 1.0, u) for u in (0.05, 0.15, 0.45, 0.95)] == [0, 1, 2, 3]


def test_the_nucleus_is_the_smallest_set_that_reaches_top_p():
    scores = torch.log(torch.tensor([0.1, 0.2, 0.3, 0.4]))
    drawn = {sample_token(scores, 1.0, 0.6, u / 100) for u in range(100)}
    assert drawn == {2, 3}
    assert {sample_token(scores, 1.0, 0.1, u / 100) for u in range(100)} == {3}


def test_frequencies_follow_temperature():
    scores = torch.log(torch.tensor([0.2, 0.8]))
    draws = [sample_token(scores, 2.0, 1.0, (u + 0.5) / 1000) for u in range(1000)]
    expected = math.sqrt(0.8) / (math.sqrt(0.2) + math.sqrt(0.8))
    assert sum(draws) / 1000 == pytest.approx(expected, abs=0.01)


def test_rows_do_not_depend_on_their_neighbours():
    def run(names):
        rows = [make_row(request(name, temperature=1.0, max_tokens=6), DEFAULTS, 100) for name in names]
        sampler = RowSampler(rows, [0], lambda tokens: "", lambda: 0.0)
        scores = torch.zeros(len(rows), 50)
        for _ in range(6):
            chosen = sampler(torch.zeros(len(rows), 1), scores).argmax(-1).tolist()
        assert chosen
        return {name: row.tokens for name, row in zip(names, rows, strict=True)}

    together = run(["a", "b", "c"])
    assert run(["c", "a"]) == {name: together[name] for name in ("c", "a")}
    assert together["a"] != together["b"]


def test_a_row_ends_at_its_own_length_stop_or_end_token():
    rows = [
        make_row(request(max_tokens=2), DEFAULTS, 100),
        make_row(request(max_tokens=9, stop=("xy",)), DEFAULTS, 100),
        make_row(request(max_tokens=9), DEFAULTS, 100),
    ]
    letters = "_xyz"
    sampler = RowSampler(rows, [0], lambda tokens: "".join(letters[token] for token in tokens), lambda: 1.5)
    for wanted in ([3, 1, 3], [3, 2, 0], [1, 1, 1]):
        scores = torch.full((3, 4), -10.0)
        scores[torch.arange(3), torch.tensor(wanted)] = 0.0
        forced = sampler(torch.zeros(3, 1), scores)
    assert [row.finish for row in rows] == ["length", "stop", "stop"]
    assert [row.tokens for row in rows] == [[3, 3], [1, 2], [3]]
    assert forced.argmax(-1).tolist() == [0, 0, 0], "finished rows are fed the end token"
    assert rows[0].first_token == 1.5


def test_what_is_unset_is_the_checkpoints_own_and_zero_is_zero():
    sampled = SimpleNamespace(do_sample=True, temperature=0.6, top_p=0.9, max_new_tokens=33)
    assert (make_row(request(), sampled, 100).temperature, make_row(request(), sampled, 100).top_p) == (0.6, 0.9)
    assert make_row(request(temperature=0.0), sampled, 100).temperature == 0.0
    assert make_row(request(), DEFAULTS, 100).temperature == 0.0
    assert make_row(request(), sampled, 100).max_tokens == 33
    assert make_row(request(max_tokens=50), sampled, 20).max_tokens == 20


def test_seeds_of_repeats_and_runs_differ():
    def first(seed, repeat):
        key = TrialKey("t", "s", "base", repeat)
        return make_row(Request(key, (), Params(temperature=1, seed=seed)), DEFAULTS, 10).generator.random()

    assert len({first(seed, repeat) for seed in (1, 2) for repeat in (0, 1)}) == 4
    assert first(1, 0) == first(1, 0)


def test_text_is_cut_at_the_first_stop_string():
    assert cut_at_stop("one. two! three", ("!", ".")) == "one"
    assert cut_at_stop("one", ("!",)) == "one"
