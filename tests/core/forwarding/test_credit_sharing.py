"""Note senders whose credit may change, and grant it at the end of a turn."""

from __future__ import annotations

from router.core.forwarding.credit_sharing import CreditSharing

from support.in_memory import Router


def test_an_address_is_noted_once() -> None:
    router = Router()
    router.client().receiver("q", credit=5)
    address = router.table.in_use("q")
    assert address is not None
    credit = router.forwarder.credit
    assert isinstance(credit, CreditSharing)
    assert credit.due == []
    credit.note(address, None)
    credit.note(address, None)
    assert credit.due == [address]
    assert address.credit_due
    credit.share()
    assert credit.due == []
    assert not address.credit_due


def test_an_anonymous_sender_is_noted_by_itself_and_any_other_by_its_address() -> None:
    router = Router()
    client = router.client()
    client.sender(None)
    client.sender("q")
    links = client.connection.local_sessions[0].local_links.values()
    producers = [link.owner for link in links]
    credit = router.forwarder.credit
    for producer in producers:
        credit.note(producer.address, producer)
        credit.note(producer.address, producer)
    assert len(credit.due) == 2
    credit.share()
    assert credit.due == []


def test_senders_get_what_a_receiver_can_take_at_the_end_of_the_turn() -> None:
    router = Router()
    sender = router.client(link_capacity=100).sender("q")
    assert not sender.can_send()
    router.client().receiver("q", credit=5)
    assert sender.can_send()
