"""The number of a suite: means by hand, members that lack, intervals of independent members."""

from __future__ import annotations

from typing import Any

import pytest

from snellen.core.errors import ConfigError
from snellen.data.atlas.protocols import Suite, SuiteMember, read_suite
from snellen.data.catalog import Catalog
from snellen.scoring.suites import suite_figure, suite_figures


def result(value: float | None, stderr: float | None = 0.03, metric: str = "accuracy") -> dict[str, Any]:
    estimate = {"value": value, "stderr": stderr, "ci95": None}
    return {"metrics": {metric: estimate}, "headline": metric, "protocol": {"name": "official"}}


def test_a_mean_of_weighted_and_scaled_members() -> None:
    members = (SuiteMember("a", weight=0.5), SuiteMember("b", weight=0.5), SuiteMember("c", "points", scale=0.001))
    tasks = {"a": result(0.4), "b": result(0.6), "c": result(800.0, 30.0, "points")}
    found = suite_figure(Suite(members=members, headline="average"), tasks)
    assert found["value"] == pytest.approx((0.5 * 0.4 + 0.5 * 0.6 + 0.8) / 2)
    assert found["stderr"] == pytest.approx((0.015**2 + 0.015**2 + 0.03**2) ** 0.5 / 2)
    low, high = found["ci95"]
    assert low < found["value"] < high
    assert found["members"]["c:points"] == pytest.approx(0.8)


def test_with_a_member_lacking_there_is_no_number() -> None:
    suite = Suite(members=(SuiteMember("a"), SuiteMember("b"), SuiteMember("c", "judged")), headline="average")
    found = suite_figure(suite, {"a": result(0.4), "c": result(0.5)})
    assert found["value"] is None
    assert found["lacking"] == ["b: not measured", "c: has no judged"]
    assert found["mean_of_present"] == 0.4


def test_a_member_without_an_error_leaves_no_interval() -> None:
    suite = Suite(members=(SuiteMember("a"), SuiteMember("b")), headline="average")
    found = suite_figure(suite, {"a": result(0.4), "b": result(0.6, None)})
    assert (found["value"], found["ci95"]) == (0.5, None)


def test_a_suite_is_found_by_the_tasks_that_were_measured() -> None:
    tasks = {"mmmu-pro": result(0.4), "mmmu-pro-vision": result(0.2)}
    assert suite_figures(tasks)["mmmu-pro-overall"]["value"] == pytest.approx(0.3)
    assert suite_figures({"mmmu-pro": result(0.4)}) == {}
    assert "openvlm" not in suite_figures(tasks)


@pytest.mark.parametrize("table", [{}, {"members": []}, {"tasks": ["a"], "members": [{"task": "b"}]}])
def test_a_suite_that_names_nothing_or_twice_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must name its tasks"):
        read_suite(table, "mine")


WANTED = (
    *("openvlm", "qwen3-vl", "internvl3.5", "molmo", "documents", "charts", "maths"),
    *("hallucination", "perception", "spatial", "chinese"),
)


@pytest.mark.parametrize("name", WANTED)
def test_every_suite_has_a_headline_and_says_what_it_lacks(name: str) -> None:
    catalog = Catalog()
    suite, known = catalog.suite(name), set(catalog.names("datasets"))
    assert suite.headline
    assert catalog.expand(name) == [task for task in suite.names if task in known]
    for task in catalog.expand(name):
        card = catalog.task_table(task)
        assert not suite.protocol or suite.protocol in card.get("protocols", {}), task
