"""How many answers may wait for somebody, by number, size and age."""

from __future__ import annotations

from typing import Any

import pytest

from router.management.unsettled_answers import (
    MAX_ANSWERS,
    MAX_SMALL_ANSWERS,
    MAX_SMALL_BYTES,
    UnsettledAnswers,
)


def sending() -> Any:
    """Return something that is itself and nothing else, as what was sent is."""
    return object()


@pytest.mark.parametrize(("size", "most"), [(MAX_SMALL_BYTES, MAX_ANSWERS), (1, MAX_SMALL_ANSWERS)])
def test_how_many_there_may_be(size: int, most: int) -> None:
    answers = UnsettledAnswers(10.0)
    for _ in range(most):
        assert answers.may_send("a", 0.0)
        answers.add(sending(), "a", size, 0.0)
    assert not answers.may_send("a", 0.0)
    assert answers.may_send("b", 0.0)


def test_what_is_taken_counts_no_more() -> None:
    answers = UnsettledAnswers(10.0)
    sent = [sending() for _ in range(MAX_ANSWERS)]
    for each in sent:
        answers.add(each, "a", MAX_SMALL_BYTES, 0.0)
    assert not answers.may_send("a", 0.0)
    answers.forget(sent[7])
    answers.forget(sent[7])
    assert answers.may_send("a", 0.0)
    for each in sent:
        answers.forget(each)
    assert len(answers) == 0


def test_what_is_old_counts_no_more() -> None:
    answers = UnsettledAnswers(10.0)
    old = sending()
    for each in [old, *(sending() for _ in range(MAX_ANSWERS - 1))]:
        answers.add(each, "a", MAX_SMALL_BYTES, 0.0 if each is old else 5.0)
    assert not answers.may_send("a", 10.0)
    assert answers.may_send("a", 10.5)
    assert len(answers) == MAX_ANSWERS - 1
    # its outcome may come all the same
    answers.forget(old)


def test_with_the_link_all_are_lost() -> None:
    answers = UnsettledAnswers(10.0)
    for _ in range(MAX_ANSWERS):
        answers.add(sending(), "a", MAX_SMALL_BYTES, 0.0)
    answers.clear()
    assert answers.may_send("a", 0.0)
