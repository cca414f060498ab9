"""Links that leave their addresses, and what is resolved then; the rest is in `test_linking`."""

from __future__ import annotations

from router.amqp.message import Message, Properties, encode_message
from router.amqp.performatives import Modified, Released
from router.core.links import detach
from router.engine.link import OutgoingLink

from support.in_memory import Router, SendingLink


def test_before_a_shutdown_what_receivers_have_is_resolved() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = router.client().sender("q")
    sendings = [sender.send(b"one"), sender.send(b"half", more=True)]
    list(detach.release_all(router.forwarder, receiver.client.connection))
    router.finish_turn()
    assert [sending.outcome for sending in sendings] == [Modified(delivery_failed=True)] * 2
    sender.go_on(b"rest")
    receiver.client.dispose([0])
    receiver.grant(9)
    receiver.client.connection.close()
    router.finish_turn()
    assert router.forwarder.backlog.held_bytes == 0
    assert not [
        link
        for client in router.clients
        for session in client.connection.local_sessions.values()
        for link in session.local_links.values()
        if isinstance(link, OutgoingLink)
    ]


def waiting_messages(router: Router, count: int) -> list[SendingLink]:
    """So many messages wait at `q`; their senders."""
    senders = []
    for _ in range(0, count, 100):
        sender = router.client(link_capacity=100).sender(None)
        for _ in range(100):
            sender.send(encode_message(Message(properties=Properties(to="q"))))
        senders.append(sender)
    return senders


def released(senders: list[SendingLink]) -> int:
    found = [each.outcome for sender in senders for each in sender.client.sent.values()]
    return found.count(Released())


def test_what_waits_for_nobody_any_more_is_released_over_several_turns() -> None:
    router = Router()
    receiver = router.client().receiver("q")
    senders = waiting_messages(router, 800)
    router.is_patient = True
    receiver.client.lose()
    assert released(senders) == 512
    assert router.table.in_use("q") is not None
    router.catch_up()
    assert released(senders) == 800
    assert router.table.in_use("q") is None
    assert router.table.total().released == 800
    # they may send on
    assert all(sender.can_send() for sender in senders)


def test_what_still_waits_is_for_whoever_comes_meanwhile() -> None:
    router = Router()
    receiver = router.client().receiver("q")
    senders = waiting_messages(router, 800)
    router.is_patient = True
    receiver.client.lose()
    other = router.client().receiver("q", 100)
    router.catch_up()
    assert len(other.received) == 100
    assert released(senders) == 512
    other.grant(200)
    assert len(other.received) == 288


def test_copies_for_a_receiver_that_has_gone_are_released_over_several_turns() -> None:
    router = Router([(False, "q", "multicast")])
    receiver = router.client().receiver("q")
    senders = waiting_messages(router, 800)
    router.is_patient = True
    receiver.client.lose()
    assert released(senders) == 512
    router.catch_up()
    assert released(senders) == 800
    assert router.table.in_use("q") is None
    assert router.table.total().released == 800
