"""Qpid JMS: what a program gets that asks for filters, copies, durable subscriptions and topics."""

from __future__ import annotations

import pytest

from support.configuring import LENIENT
from support.jms import jms
from support.routers import RouterProcess, StartRouter

REFUSED = "[condition = amqp:not-implemented]"


def test_a_jms_program_is_served(router: RouterProcess, address: str) -> None:
    assert jms(router.url(), address, "queue") == ["blue"]
    topic = f"multicast/{address}"
    assert jms(router.url(), topic, "topic", "temporary-topic") == ["blue, blue"] * 2


@pytest.mark.spec("B2.3.10-1", "B2.3.11-1")
def test_a_jms_program_hears_what_it_cannot_have(router: RouterProcess, address: str) -> None:
    told = jms(
        router.url(), address, "selector", "no-local", "browse", "durable", "transaction", "queue"
    )
    selector, no_local, browse, durable, transaction, queue = told
    filters = "JMSException: unsupported source filter:"
    assert selector == f"{filters} jms-selector (apache.org:selector-filter:string) {REFUSED}"
    assert no_local == f"{filters} no-local (apache.org:no-local-filter:list) {REFUSED}"
    assert browse.startswith("JMSException: distribution-mode 'copy' is not available here")
    assert durable.startswith("JMSException: durable subscriptions are not available here")
    assert all(each.endswith(REFUSED) for each in (browse, durable))
    assert "amqp:precondition-failed" in transaction
    # and goes on
    assert queue == "blue"


def test_a_jms_program_is_let_be_where_the_configuration_says_so(
    routers: StartRouter, address: str
) -> None:
    told = jms(routers(LENIENT).url(), address, "selector", "no-local", "browse", "durable")
    assert told == ["blue", "blue", "browsed: false", "blue"]
