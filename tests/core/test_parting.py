"""Links that leave their addresses, and what is resolved then; the rest is in `test_linking`."""

from __future__ import annotations

from router.amqp.performatives import Modified
from router.core import parting
from router.engine.link import OutgoingLink

from support.in_memory import Router


def test_before_a_shutdown_what_receivers_have_is_resolved() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = router.client().sender("q")
    sendings = [sender.send(b"one"), sender.send(b"half", more=True)]
    list(parting.release_all(router.forwarder, receiver.client.connection))
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
