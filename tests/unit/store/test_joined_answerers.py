"""The tables of a run's parts as one: each answerer once, who is another, and what 0.2 wrote."""

from __future__ import annotations

from snellen.core.answerer import Answerer
from snellen.store.answerers import JoinedTable, Row, read_table


def who(address: str = "http://a/v1", **replies: str) -> Row:
    return Row(Answerer("openai/m", address=address, replies=replies))


def test_each_answerer_has_one_place_in_the_order_of_the_logs() -> None:
    table = JoinedTable([])
    first, second = who(model="m", fingerprint="1"), who(model="m", fingerprint="2")
    assert table.take([first, second]) == [1, 2]
    assert table.take([second, first, who("http://b/v1")]) == [2, 1, 3]
    assert table.take([who()]) == [1], "who heard no reply yet is the first who is he otherwise"
    assert [row.who.replies.get("fingerprint") for row in table.rows] == ["1", "2", None]


def test_an_answerer_entered_before_a_reply_learns_what_replies_say() -> None:
    table = JoinedTable([who()])
    assert table.take([who(model="m")]) == [1]
    assert [row.who.replies for row in table.rows] == [{"model": "m"}]
    assert table.take([who(model="n")]) == [2]


def test_a_part_of_another_model_is_told_and_of_one_that_is_silent_is_not() -> None:
    table = JoinedTable([who(model="m")])
    assert table.other([who(model="m"), who()]) == ""
    told = table.other([who(model="n")])
    assert "'m'" in told and "'n'" in told
    assert JoinedTable([who()]).other([who(model="n")]) == ""
    assert JoinedTable([]).other([who(model="n")]) == ""
    assert JoinedTable([who(model="m"), who(model="n")]).other([who(model="n")]) == "", "one of those here is it"
    assert table.other([who("http://b/v1", model="m")]) != ""


def test_a_table_of_02_names_its_servers_and_what_it_did_not_note() -> None:
    kept = {"servers": [{"base_url": "http://a/v1", "says": {"root": "r"}}]}
    (row,) = read_table(kept.get)
    assert (row.who.address, row.who.listed) == ("http://a/v1", {"root": "r"})
    assert {"headers", "weights", "listed.id"} <= set(row.who.unknown)
    assert "address" not in row.who.unknown
    assert read_table({}.get) == []
