"""Leases: every request is in one place, comes back when its replica is lost, and stays with its document."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.homes import home_of_request
from snellen.core.types import Image, Request, TrialKey, Turn
from snellen.kits.scale.items import Question
from snellen.kits.scale.leases import ALONE_AFTER, REMEMBERED_HOMES, LeaseBook, Waiting

LOOP = asyncio.new_event_loop()


def waiting(number: int, home: int | None = None, lost: int = 0) -> Waiting:
    request = Request(TrialKey("t", str(number)), (Turn("user", "?"),))
    return Waiting(number, Question(request, {}), LOOP.create_future(), home, lost_by=(9,) * lost)


def numbers(taken: list[Waiting]) -> list[int]:
    return [one.number for one in taken]


def hang(book: LeaseBook, replica: int, *, silent: bool) -> list[int]:
    """Give what a replica holds to others while it lives; return what that was."""
    book.silence(replica, silent)
    taken = book.take_back(replica, 0.0)
    for one in taken:
        book.put(one)
    return numbers(taken)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 4)),
        st.tuples(st.just("take"), st.integers(1, 3), st.integers(1, 5)),
        st.tuples(st.just("settle"), st.integers(1, 3), st.integers(0, 9)),
        st.tuples(st.just("lose"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("join"), st.integers(1, 3), st.integers(1, 6)),
        st.tuples(st.just("hang"), st.integers(1, 3), st.booleans()),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_whatever_happens_every_request_is_in_one_place_until_it_is_answered(steps: list[tuple[str, Any, int]]) -> None:
    book, known, held, answered = LeaseBook(), 0, {}, set()
    for kind, first, second in steps:
        if kind == "put":
            book.put(waiting(known, first, lost=second))
            known += 1
        elif kind == "join" and first not in held:
            book.join(first, second)
            held[first] = []
        elif kind == "take" and first in held:
            held[first] += book.take(first, second)
        elif kind == "settle" and first in held and held[first]:
            number = held[first].pop(second % len(held[first])).number
            found = book.settle(first, number)
            assert found is not None and found[0].number == number
            answered.add(number)
        elif kind == "lose" and first in held:
            returned = book.give_back(first)
            assert sorted(numbers(returned)) == sorted(numbers(held.pop(first)))
            for one in returned:
                book.put(one)
        elif kind == "hang" and first in held:
            assert sorted(hang(book, first, silent=bool(second))) == sorted(numbers(held[first]))
            held[first] = []
        places = numbers(list(book.everything()))
        assert sorted([*places, *answered]) == list(range(known))
    for replica, holding in held.items():
        assert book.held_by(replica) == len(holding)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_a_replica_that_takes_and_answers_everything_empties_the_book(steps: list[tuple[str, Any, int]]) -> None:
    book, known = LeaseBook(), 0
    for kind, first, second in steps:
        if kind == "put":
            book.put(waiting(known, first, lost=second))
            known += 1
    book.join(1, 4)
    answered = []
    while book.waiting:
        lease = book.take(1, 3)
        assert lease, "what waits is given to whoever is free"
        for one in lease:
            book.settle(1, one.number)
            answered.append(one.number)
    assert sorted(answered) == list(range(known))


def test_a_documents_requests_stay_with_the_replica_that_has_it() -> None:
    book = LeaseBook()
    book.join(1, 8)
    book.join(2, 8)
    for number in range(6):
        book.put(waiting(number, home=number % 2))
    assert numbers(book.take(1, 1)) == [0]
    assert numbers(book.take(2, 8)) == [1, 3, 5]
    assert numbers(book.take(1, 8)) == [2, 4]
    book.put(waiting(6, home=1))
    assert numbers(book.take(1, 8)) == [], "it waits for the replica whose cache holds it"
    assert numbers(book.take(2, 8)) == [6]


def test_an_idle_replica_takes_what_waits_for_a_full_one() -> None:
    book = LeaseBook()
    book.join(1, 2)
    book.join(2, 2)
    for number in range(4):
        book.put(waiting(number, home=7))
    assert numbers(book.take(1, 2)) == [0, 1]
    assert numbers(book.take(2, 2)) == [2, 3]


def test_a_request_that_was_lost_twice_is_leased_alone() -> None:
    book = LeaseBook()
    book.join(1, 8)
    book.put(waiting(0))
    book.put(waiting(1, lost=ALONE_AFTER))
    assert numbers(book.take(1, 8)) == [1]
    assert book.take(1, 8) == [], "nothing beside it"
    book.settle(1, 1)
    assert numbers(book.take(1, 8)) == [0]


def test_a_suspect_goes_to_a_replica_that_has_not_died_of_it() -> None:
    book = LeaseBook()
    book.join(9, 8)
    book.join(1, 8)
    book.put(waiting(0, lost=ALONE_AFTER))
    assert book.take(9, 8) == [], "two of its losses were this one's: it may be the replica that kills"
    assert numbers(book.take(1, 8)) == [0]
    book.give_back(1)
    book.put(waiting(1, lost=ALONE_AFTER))
    assert numbers(book.take(9, 8)) == [1], "nobody else is left"


def test_homes_of_a_replica_that_left_are_anyones() -> None:
    book = LeaseBook()
    book.join(1, 2)
    book.put(waiting(0, home=7))
    book.take(1, 1)
    book.put(waiting(1, home=7))
    for one in book.give_back(1):
        book.put(one)
    book.join(2, 8)
    assert sorted(numbers(book.take(2, 8))) == [0, 1]


def test_not_more_homes_are_remembered_than_fit() -> None:
    book = LeaseBook()
    book.join(1, 10 * REMEMBERED_HOMES)
    for number in range(REMEMBERED_HOMES + 10):
        book.put(waiting(number, home=number))
    book.take(1, REMEMBERED_HOMES + 10)
    assert len(book._homes) == REMEMBERED_HOMES


def test_requests_of_one_document_or_dialogue_have_one_home() -> None:
    def asks(*turns: Turn) -> Request:
        return Request(TrialKey("t", "1"), turns)

    page, other = Image("/a.png"), Image("/b.png")
    assert home_of_request(asks(Turn("user", "one?", (page,)))) == home_of_request(asks(Turn("user", "two?", (page,))))
    assert home_of_request(asks(Turn("user", "one?", (page,)))) != home_of_request(asks(Turn("user", "one?", (other,))))
    shot = Turn("user", "shot", (other,)), Turn("assistant", "A")
    assert home_of_request(asks(*shot, Turn("user", "one?", (page,)))) == home_of_request(
        asks(Turn("user", "one?", (page,)))
    )
    rounds = Turn("user", "first"), Turn("assistant", "A"), Turn("user", "second")
    assert home_of_request(asks(*rounds)) == home_of_request(
        asks(*rounds, Turn("assistant", "B"), Turn("user", "third"))
    )
    assert home_of_request(asks(Turn("user", "alone"))) is None
