"""Outcomes for a peer that lists those it supports, and substitutes for the unsupported ones."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import Descriptor
from router.amqp.performatives import Accepted, Modified, Rejected, Released, Source
from router.amqp.types import Symbol
from router.core.model.peer_outcomes import NOT_SENT, listed_outcomes

ACCEPTED = int(Descriptor.ACCEPTED)
REJECTED = int(Descriptor.REJECTED)
RELEASED = int(Descriptor.RELEASED)
MODIFIED = int(Descriptor.MODIFIED)
RECEIVED = int(Descriptor.RECEIVED)
NONE = 0
EXTENSION = 0xFF


def source(*kinds: type, default: Any = None) -> Source:
    """Return a source that lists these outcomes."""
    names = tuple(Symbol(kind.NAME) for kind in kinds)  # type: ignore[attr-defined]
    return Source(address="q", outcomes=names, default_outcome=default)


@pytest.mark.parametrize(
    "listed",
    [
        Source(address="q"),
        source(Accepted, Rejected, Released, Modified),
        Source(address="q", outcomes=(Symbol("com.example:kept:list"),)),
    ],
)
def test_most_peers_understand_everything(listed: Source) -> None:
    assert listed_outcomes(listed) is None


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (ACCEPTED, ACCEPTED),
        (REJECTED, REJECTED),
        (RELEASED, RELEASED),
        (MODIFIED, RELEASED),
        (NONE, RELEASED),
        (RECEIVED, RELEASED),
        (EXTENSION, RELEASED),
    ],
)
def test_one_without_modified_has_its_message_back(said: int, word: int) -> None:
    listed = listed_outcomes(source(Accepted, Rejected, Released, default=Released()))
    assert listed is not None
    assert listed.code_to_send(said, settled=True) == word


def test_what_is_no_outcome_is_not_said_of_what_goes_on() -> None:
    listed = listed_outcomes(source(Accepted, Rejected, Released))
    assert listed is not None
    assert listed.code_to_send(MODIFIED, settled=False) == RELEASED
    for code in (NONE, RECEIVED, EXTENSION):
        assert listed.code_to_send(code, settled=False) == NOT_SENT


def test_to_settle_without_an_outcome_is_the_default_one() -> None:
    listed = listed_outcomes(source(Accepted, Released, default=Accepted()))
    assert listed is not None
    assert listed.code_to_send(NONE, settled=True) == ACCEPTED
    # a default that is not listed is none
    listed = listed_outcomes(source(Accepted, Released, default=Modified()))
    assert listed is not None
    assert listed.code_to_send(NONE, settled=True) == RELEASED


def test_nothing_is_accepted_that_was_not() -> None:
    for kinds in ((Accepted,), (Accepted, Rejected), (Accepted, Modified), (Rejected,)):
        listed = listed_outcomes(source(*kinds))
        assert listed is not None
        for code in (REJECTED, RELEASED, MODIFIED):
            assert listed.code_to_send(code, settled=True) != ACCEPTED
        assert listed.code_to_send(ACCEPTED, settled=True) == ACCEPTED
