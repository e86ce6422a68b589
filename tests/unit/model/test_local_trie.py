"""Candidates as a tree: nothing is lost, nothing is fed twice, ends are never fed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snellen.model.local.candidate_scores import ROOT, build_trie, split_candidates

candidate = st.lists(st.integers(0, 3), min_size=1, max_size=5)
candidates = st.lists(candidate, min_size=1, max_size=12)


def path(trie, node):
    tokens = []
    while node != ROOT:
        tokens.append(trie.tokens[node])
        node = trie.parents[node]
    return tokens[::-1]


@given(candidates)
def test_steps_spell_every_candidate(rows):
    trie = build_trie(rows)
    assert [[token for _, token in steps] for steps in trie.steps] == rows
    for row, steps in zip(rows, trie.steps, strict=True):
        for place, (node, _) in enumerate(steps):
            assert path(trie, node) == row[:place]


@given(candidates)
def test_fed_nodes_are_the_distinct_proper_prefixes(rows):
    trie = build_trie(rows)
    prefixes = {tuple(row[:end]) for row in rows for end in range(1, len(row))}
    assert sorted(tuple(path(trie, node)) for node in range(len(trie.tokens))) == sorted(prefixes)
    assert all(parent < node for node, parent in enumerate(trie.parents))
    assert all(len(path(trie, node)) == depth for node, depth in enumerate(trie.depths))


@given(candidates, st.integers(1, 10))
def test_groups_hold_every_candidate_once_within_the_limit(rows, limit):
    groups = split_candidates(rows, limit)
    assert sorted(index for group in groups for index in group) == list(range(len(rows)))
    for group in groups:
        assert len(group) == 1 or len(build_trie([rows[index] for index in group]).tokens) <= limit


def test_single_tokens_need_no_pass_at_all():
    assert build_trie([[5], [6], [5]]).tokens == []
