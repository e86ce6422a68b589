"""What is filtered is what one walks through: next, previous, breadcrumb and counts agree with the table."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi import call
from made_runs import make_run, make_task
from snellen.report.query import OUTCOMES, Query, select, sift

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from starlette.datastructures import QueryParams

from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.run_library import OpenRun, RunLibrary
from snellen.report.viewer.walk import PAGE, Walk, walk_of, walk_through

FILTERS = (
    "outcome=wrong",
    "outcome=wrong&sort=latency&order=down",
    "outcome=right&sort=sample",
    "flipped=1&group=shape%3Dcircle&group=page%3D0",
    "text=clearly+visible&sort=tokens",
    "slower=0.5&outcome=right",
    "text=shape-000%5B12%5D&regex=1&sort=latency",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walks")
    make_run(folder / "run", count=40, skill=0.6, task=make_task(repeats=2))
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> OpenRun:
    return RunLibrary([folder]).runs()[0]


@pytest.fixture(scope="module")
def app(folder: Path) -> Any:
    from snellen.api.view import make_viewer

    return make_viewer([folder], "key")


def read(app: Any, path: str) -> str:
    answer = call(app, path, headers={"cookie": f"{cookie_name('key')}=key"})
    assert answer.status == 200, path
    return str(answer.text)


def way(page: str, rel: str) -> str | None:
    found = re.search(rf'<a href="([^"]*)" rel="{rel}"', page)
    return html.unescape(found[1]) if found else None


def name_of(address: str) -> tuple[str, str]:
    told = dict(parse_qsl(urlsplit(address).query))
    return told["sample"], told.get("repeat", "0")


def steps(app: Any, address: str | None) -> Iterator[str]:
    while address is not None:
        yield address
        address = way(read(app, address), "next")


def table(app: Any, run: OpenRun, told: str) -> list[str]:
    found: list[str] = []
    page: str | None = f"/run/{run.key}/trials?{told}"
    while page is not None:
        text = read(app, page)
        found += [html.unescape(one) for one in re.findall(r'href="(/run/[^"]*/trial\?[^"]*)"', text)]
        page = way(text, "next")
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("told", FILTERS)
def test_next_goes_through_what_was_filtered_in_its_order(app: Any, run: OpenRun, told: str) -> None:
    listed = table(app, run, told)
    assert 2 <= len(listed) < 80, "the filter splits the trials"
    assert [name_of(one) for one in steps(app, listed[0])] == [name_of(one) for one in listed]
    assert way(read(app, listed[0]), "prev") is None
    assert name_of(str(way(read(app, listed[-1]), "prev"))) == name_of(listed[-2])


@pytest.mark.parametrize("told", FILTERS)
def test_breadcrumb_leads_back_to_the_filter_and_the_page(app: Any, run: OpenRun, told: str) -> None:
    last = table(app, run, told)[-1]
    crumbs = re.search(r'<p class="crumbs">(.*?)</p>', read(app, last))
    assert crumbs
    back = html.unescape(re.findall(r'href="([^"]*/trials\?[^"]*)"', crumbs[1])[0])
    pairs = parse_qsl(urlsplit(back).query)
    assert set(parse_qsl(told)) | {("task", "shapes")} == {pair for pair in pairs if pair[0] != "page"}
    assert last in {html.unescape(one) for one in re.findall(r'href="([^"]*)"', read(app, back))}


def test_trial_outside_the_filter_says_so_and_leads_into_it(app: Any, run: OpenRun) -> None:
    right = table(app, run, "outcome=right")[0].replace("outcome=right", "outcome=wrong")
    page = read(app, right)
    listed = table(app, run, "outcome=wrong")
    assert f"this trial is not among the {len(listed)} that match · wrong" in page
    assert name_of(str(way(page, "next"))) == name_of(listed[0])
    assert way(page, "prev") is None


def test_buttons_tell_how_many_trials_they_show(app: Any, run: OpenRun) -> None:
    page = read(app, f"/run/{run.key}/trials?group=shape%3Dcircle&outcome=wrong")
    bar = re.search(r'<nav class="bar-of-buttons" aria-label="Outcomes">(.*?)</nav>', page)
    assert bar
    buttons = re.findall(r'href="([^"]*)"[^>]*>(\w+) <span class="count">(\d+)</span>', bar[1])
    assert {"All", "Wrong", "Right"} <= {words for _, words, _ in buttons}
    for to, words, count in buttons:
        shown = table(app, run, urlsplit(html.unescape(to)).query)
        assert len(shown) == int(count), words
    assert "Pending" not in bar[1], "what is empty is not offered"


def test_run_page_offers_only_what_there_is_with_its_count(app: Any, run: OpenRun) -> None:
    page = read(app, f"/run/{run.key}")
    for words, told in (("Every trial", ""), ("Wrong", "outcome=wrong"), ("Flipped", "flipped=1")):
        count = len(table(app, run, told))
        assert f'{words} <span class="count">{count}</span>' in page


def test_text_search_says_how_much_of_a_reply_it_looked_at(app: Any, run: OpenRun) -> None:
    assert "first 4,000 characters of each reply" in read(app, f"/run/{run.key}/trials?text=visible")
    assert "4,000 characters" not in read(app, f"/run/{run.key}/trials")


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(OUTCOMES),
    st.booleans(),
    st.sampled_from([(), (("shape", "bar"),), (("page", "1"), ("group", "doc-3"))]),
    st.sampled_from([None, 0.4, 1.0]),
    st.sampled_from([None, 5, 20]),
)
def test_filters_combine_and_counts_are_those_of_the_lists(
    run: OpenRun, outcome: str, flipped: bool, also: Any, slower: float | None, longer: int | None
) -> None:
    columns, costs = run.columns("shapes"), run.costs("shapes")
    query = Query(outcome, also=also, flipped=flipped, slower=slower, longer=longer)
    rows, counts = sift(columns, query, costs=lambda: costs)
    apart = [Query(outcome), *(Query(key=key, group=value) for key, value in also)]
    apart += [Query(outcome="flipped")] if flipped else []
    kept = set.intersection(*(set(select(columns, one).tolist()) for one in apart))
    kept &= set(np.flatnonzero(costs.latency_s >= slower).tolist()) if slower is not None else kept
    kept &= set(np.flatnonzero(costs.tokens >= longer).tolist()) if longer is not None else kept
    assert set(rows.tolist()) == kept
    for name in OUTCOMES:
        if name != "flipped":
            other = Query(name, also=also, flipped=flipped, slower=slower, longer=longer)
            assert counts[name] == select(columns, other, costs=lambda: costs).size
    assert counts["flipped"] == np.count_nonzero(columns.flipped[list(kept)]) or flipped or outcome == "flipped"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=12), st.lists(st.tuples(st.text("ab =&é", min_size=1), st.text("xy =&")), max_size=3))
def test_address_keeps_the_whole_walk(run: OpenRun, text: str, groups: list[tuple[str, str]]) -> None:
    groups = [(key.replace("=", "-"), value) for key, value in groups]
    first, also = (groups[0], tuple(groups[1:])) if groups else (("", ""), ())
    walk = Walk("shapes", "accuracy", Query("wrong", "cue", *first, text, "value", True, also, True, 1.5, 7))
    again = walk_of(run, QueryParams(urlsplit(walk.to(run)).query))
    assert again == walk


@pytest.mark.parametrize("told", ["slower=abc", "longer=-3", "slower=nan", "slower=1e99", "group==x", "outcome=x"])
def test_what_is_not_understood_filters_nothing(run: OpenRun, told: str) -> None:
    assert walk_through(run, walk_of(run, QueryParams(told))).rows.size == 80
    assert PAGE == 50
