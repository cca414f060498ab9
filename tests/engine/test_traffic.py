"""Traffic of a connection is counted exactly once, for current links and for ended ones."""

from __future__ import annotations

from router.amqp.performatives import Detach
from router.engine.traffic import Traffic, traffic_of
from router.errors import AmqpError

from support.in_memory import Client, Router


def deliveries(client: Client) -> tuple[int, int]:
    """How many a connection has brought, and taken."""
    traffic = traffic_of(client.connection)
    return traffic.received_deliveries, traffic.sent_deliveries


def test_deliveries_of_links_that_come_and_go() -> None:
    router = Router()
    taking, giving = router.client(), router.client()
    receiver = taking.receiver("q", 100)
    sender = giving.sender("q")
    for _ in range(3):
        sender.send(b"x")
    assert (deliveries(giving), deliveries(taking)) == ((3, 0), (0, 3))
    giving.say(Detach(sender.handle, closed=True))
    taking.end()
    assert (deliveries(giving), deliveries(taking)) == ((3, 0), (0, 3))
    assert receiver.received
    other = router.client()
    other.receiver("r", 10)
    router.client().sender("r").send(b"y")
    for client in (giving, taking, other):
        client.lose()
    assert (deliveries(giving), deliveries(taking)) == ((3, 0), (0, 3))
    assert deliveries(other) == (0, 1)


def test_a_link_that_we_detach_is_counted_once_while_it_waits_for_the_answer() -> None:
    router = Router()
    client = router.client()
    client.receiver("q", 100)
    sender = client.sender("q", max_message_size=None)
    sender.send(b"x")
    link = next(
        link
        for session in client.connection.local_sessions.values()
        for link in session.local_links.values()
        if link.deliveries and link.credit
    )
    client.connection.fail_link(link, AmqpError("amqp:internal-error", "for the test"))
    router.finish_turn()
    assert deliveries(client) == (1, 1)
    client.lose()
    assert deliveries(client) == (1, 1)


def test_octets_are_those_on_the_wire() -> None:
    router = Router()
    client = router.client()
    before = traffic_of(client.connection)
    # an empty frame, in two reads
    client.connection.receive(memoryview(bytearray(b"\x00\x00\x00")), 3)
    kept = client.connection.prepare(router.buffer)
    assert kept == 3
    router.buffer[3:8] = b"\x08\x02\x00\x00\x00"
    client.connection.receive(router.buffer, 8)
    after = traffic_of(client.connection)
    assert after.received_bytes - before.received_bytes == 8
    assert after.sent_bytes == before.sent_bytes > 0


def test_traffic_adds_up() -> None:
    traffic = Traffic(1, 2, 3, 4)
    traffic.add(Traffic(10, 20, 30, 40))
    assert (traffic.received_bytes, traffic.sent_bytes) == (11, 22)
    assert (traffic.received_deliveries, traffic.sent_deliveries) == (33, 44)
