"""Filters, distribution modes and durability of a source: granted, ignored or refused."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import TerminusDurability, TerminusExpiryPolicy
from router.amqp.performatives import Accepted, Error, Source
from router.amqp.types import Described, Symbol, ULong
from router.core.addresses.sources import MOST_NAMED, MOST_TEXT

from support.in_memory import ReceivingLink, Router

SELECTOR = "apache.org:selector-filter:string"
JMS_SELECTOR = {Symbol("jms-selector"): Described(ULong(0x468C00000004), "colour = 'red'")}
NO_LOCAL = {Symbol("no-local"): Described(Symbol("apache.org:no-local-filter:list"), [])}


def receiver(
    router: Router | None = None, address: str | None = "q", **source: Any
) -> ReceivingLink:
    """Attach a receiver with such a source."""
    router = Router() if router is None else router
    return router.client().receiver(None, 10, source=Source(address, **source))


def refusal(link: ReceivingLink) -> Error:
    """Return the error that a link was refused with; check that nothing is left of it."""
    assert link.attach is not None
    assert link.attach.source is None
    assert link.detached is not None
    assert link.detached.closed
    assert link.detached.error is not None
    assert len(link.client.router.table) == 0
    return link.detached.error


def granted(link: ReceivingLink) -> Source:
    """Return the source that the router answered with."""
    assert link.attach is not None
    assert link.attach.source is not None
    assert link.detached is None
    return link.attach.source


# Filters.


@pytest.mark.spec("B2.3.10-1", "F2.3-1", "F2.3-2")
@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (JMS_SELECTOR, f"jms-selector ({SELECTOR})"),
        ({Symbol(SELECTOR): Described(Symbol(SELECTOR), "a = 1")}, SELECTOR),
        (NO_LOCAL, "no-local (apache.org:no-local-filter:list)"),
        ({Symbol("x"): Described(ULong(7), "")}, "x (0x7)"),
        ({Symbol("x"): "bare"}, "x"),
        ({**JMS_SELECTOR, **NO_LOCAL, Symbol("none"): None},
         f"jms-selector ({SELECTOR}), no-local (apache.org:no-local-filter:list)"),
    ],
)  # fmt: skip
def test_a_receiver_with_filters_is_refused_and_told_which(asked: Any, named: str) -> None:
    error = refusal(receiver(filter=asked))
    assert error.condition == "amqp:not-implemented"
    assert error.description == f"unsupported source filter: {named}"


@pytest.mark.spec("3.5.8-3")
@pytest.mark.parametrize("asked", [None, {}, {Symbol("com.microsoft:session-filter"): None}])
def test_a_filter_set_that_filters_nothing_is_no_reason_to_refuse(asked: Any) -> None:
    assert granted(receiver(filter=asked)).filter is None


def test_a_refusal_has_an_end_however_many_filters_there_are() -> None:
    many = {Symbol(f"{n}{'k' * 50}"): Described(Symbol("d" * 500), n) for n in range(100)}
    router = Router()
    # the smallest frame that there is
    link = router.client(max_frame_size=512).receiver("q", source=Source("q", filter=many))
    description = refusal(link).description
    assert description is not None
    assert description.endswith(f" and {100 - MOST_NAMED} more")
    assert len(description) < MOST_TEXT


@pytest.mark.spec("2.6.3-7", "3.5.3-12", "F2.3-1")
def test_filters_may_be_ignored_which_the_answer_shows() -> None:
    router = Router()
    router.forwarder.sources.refuses_filters = False
    assert granted(receiver(router, filter=JMS_SELECTOR)).filter is None


# Distribution modes.


@pytest.mark.spec("3.5.3-6")
@pytest.mark.parametrize("asked", [None, "move"])
@pytest.mark.parametrize("treatment", ["balanced", "closest"])
def test_the_mode_of_a_queue_is_move(treatment: str, asked: str | None) -> None:
    mode = None if asked is None else Symbol(asked)
    source = granted(receiver(Router(default=treatment), distribution_mode=mode))
    assert source.distribution_mode == "move"


@pytest.mark.spec("3.5.2-3", "3.5.3-6", "3.5.7-1")
@pytest.mark.parametrize("asked", [None, "move", "copy"])
def test_the_mode_of_a_multicast_is_copy(asked: str | None) -> None:
    router = Router(default="multicast")
    mode = None if asked is None else Symbol(asked)
    browser = receiver(router, distribution_mode=mode)
    assert granted(browser).distribution_mode == "copy"
    other = receiver(router)
    sent = router.client().sender("q").send(b"x")
    for each in (browser, other):
        each.settle(Accepted())
        assert each.take() == b"x"
    assert sent.outcome == Accepted()


@pytest.mark.spec("B2.3.11-1")
@pytest.mark.parametrize("source", [{"address": "q"}, {"address": None, "dynamic": True}])
@pytest.mark.parametrize("mode", ["copy", "x:sample"])
def test_a_mode_that_is_not_in_force_is_refused(mode: str, source: Any) -> None:
    error = refusal(receiver(distribution_mode=Symbol(mode), **source))
    assert error.condition == "amqp:not-implemented"
    assert error.description is not None
    assert error.description.startswith(f"distribution-mode {mode!r} is not available here")


def test_a_mode_may_be_ignored_and_the_answer_has_the_one_in_force() -> None:
    router = Router()
    router.forwarder.sources.refuses_filters = False
    source = granted(receiver(router, distribution_mode=Symbol("copy")))
    assert source.distribution_mode == "move"


def test_who_is_refused_leaves_others_at_the_address_alone() -> None:
    router = Router()
    first = receiver(router)
    refused = receiver(router, distribution_mode=Symbol("copy"))
    assert refused.detached is not None
    assert router.client().sender("q").send(b"x") is not None
    assert first.take() == b"x"


# Durable subscriptions.

DURABLE = TerminusDurability.UNSETTLED_STATE
NEVER = TerminusExpiryPolicy.NEVER


@pytest.mark.spec("3.5.5-1")
@pytest.mark.parametrize("durable", [TerminusDurability.CONFIGURATION, DURABLE])
@pytest.mark.parametrize("treatment", ["balanced", "multicast"])
def test_a_durable_subscription_is_refused(treatment: str, durable: TerminusDurability) -> None:
    router = Router(default=treatment)
    error = refusal(receiver(router, durable=durable, expiry_policy=NEVER))
    assert error.condition == "amqp:not-implemented"
    assert error.description is not None
    assert error.description.startswith("durable subscriptions are not available here")


@pytest.mark.spec("3.5.5-1")
@pytest.mark.parametrize(
    "asked",
    [{"durable": DURABLE}, {"expiry_policy": NEVER}, {"durable": DURABLE, "timeout": 5}],
)
def test_who_asks_for_less_is_told_what_there_is(asked: Any) -> None:
    source = granted(receiver(**asked))
    assert source.durable is TerminusDurability.NONE
    assert source.expiry_policy is not NEVER


def test_a_durable_subscription_may_be_granted_as_long_as_anything_lasts() -> None:
    router = Router(terminus_limit_s=30)
    router.forwarder.sources.refuses_durable = False
    source = granted(receiver(router, durable=DURABLE, expiry_policy=NEVER))
    assert source.durable is TerminusDurability.NONE
    assert (source.expiry_policy, source.timeout) == (TerminusExpiryPolicy.LINK_DETACH, 30)


@pytest.mark.parametrize("refuses", [True, False])
def test_each_kind_is_refused_or_not_by_itself(refuses: bool) -> None:
    router = Router()
    router.forwarder.sources.configure(refuses_filters=refuses, refuses_durable=not refuses)
    links = [
        receiver(router, filter=JMS_SELECTOR),
        receiver(router, durable=DURABLE, expiry_policy=NEVER),
    ]
    assert [link.detached is not None for link in links] == [refuses, not refuses]
