"""Of what waits the most urgent is sent first, and nothing that has begun is broken in on."""

from __future__ import annotations

import pytest

from router.amqp.message import Data, Header, Message, decode_message, encode_message
from router.amqp.performatives import Accepted, Released

from support.in_memory import ReceivingLink, Router, SendingLink
from support.pairs import pair

MORE = b"\0\x53\x75\xa0\x01+"


def urgent(priority: int | None, body: bytes) -> bytes:
    header = None if priority is None else Header(priority=priority)
    return encode_message(Message(header=header, body=(Data(body),)))


def bodies(receiver: ReceivingLink) -> list[bytes]:
    return [b"".join(part.octets for part in _data(each.payload)) for each in receiver.received]


def _data(payload: bytes) -> list[Data]:
    return [part for part in decode_message(payload).body if isinstance(part, Data)]


def closed(default: str = "balanced") -> tuple[Router, SendingLink, ReceivingLink]:
    """Return a router, a sender, and a receiver with much credit and a closed window.

    The receiver has got one message.
    """
    router, sender, receiver = pair(100, window=1, default=default)
    sender.send(urgent(None, b"first"))
    assert bodies(receiver) == [b"first"]
    return router, sender, receiver


@pytest.mark.parametrize("default", ["balanced", "closest", "multicast"])
@pytest.mark.spec("3.2.1-4", "B2.2.3-1", "3.2.1-1")
def test_what_waits_is_sent_by_priority_and_in_order_within_one(default: str) -> None:
    _, sender, receiver = closed(default)
    for n, priority in enumerate((None, 4, 0, 9, 200, 5, None, 10, 3, 9, 0)):
        sender.send(urgent(priority, b"%d" % n))
    receiver.client.open_window(100)
    order = [3, 4, 7, 9, 5, 0, 1, 6, 8, 2, 10]
    assert bodies(receiver)[1:] == [b"%d" % n for n in order]


@pytest.mark.spec("3.2.1-4")
def test_each_of_the_ten_priorities_is_one_of_its_own() -> None:
    _, sender, receiver = closed()
    for priority in (*range(10), 10, 255):
        sender.send(urgent(priority, b"%d" % priority))
    receiver.client.open_window(100)
    order = [9, 10, 255, *range(8, -1, -1)]
    assert bodies(receiver)[1:] == [b"%d" % priority for priority in order]


def test_all_that_is_sent_to_an_address_may_have_one_priority() -> None:
    rule = (True, "q", "balanced", True, None, 0, 0, False, None, 5)
    router = Router([rule])
    receiver = router.client(window=1).receiver("q", credit=100)
    sender = router.client().sender("q")
    for n, priority in enumerate((None, 4, 0, 9)):
        sender.send(urgent(priority, b"%d" % n))
    receiver.client.open_window(100)
    assert bodies(receiver) == [b"0", b"1", b"2", b"3"]
    (address,) = router.table.addresses()
    assert address.priority == 5


def test_senders_of_one_priority_take_their_turn() -> None:
    router, sender, receiver = closed()
    other = router.client().sender("q")
    for n in range(3):
        sender.send(urgent(4, b"a%d" % n))
        other.send(urgent(7, b"b%d" % n))
    receiver.client.open_window(100)
    assert bodies(receiver)[1:] == [b"b0", b"b1", b"b2", b"a0", b"a1", b"a2"]


def test_what_arrives_while_others_wait_goes_before_the_less_urgent() -> None:
    _, sender, receiver = closed()
    for n in range(3):
        sender.send(urgent(4, b"%d" % n))
    receiver.client.open_window(1)
    sender.send(urgent(8, b"urgent"))
    receiver.client.open_window(100)
    assert bodies(receiver) == [b"first", b"0", b"urgent", b"1", b"2"]


def test_a_message_that_has_begun_is_finished_before_a_more_urgent_one() -> None:
    router, sender, receiver = pair(100, window=1)
    slow = sender.send(urgent(0, b"slow"), more=True)
    assert receiver.received[0].payload == urgent(0, b"slow")
    other = router.client().sender("q")
    other.send(urgent(9, b"urgent"))
    receiver.client.open_window(100)
    # its rest has not come yet, and nothing may come between
    assert len(receiver.received) == 1
    sender.go_on(MORE)
    assert bodies(receiver) == [b"slow+", b"urgent"]
    receiver.settle()
    assert slow.outcome == Accepted()


def test_what_has_come_in_half_may_be_overtaken_and_overtake() -> None:
    router, sender, receiver = closed()
    other = router.client().sender("q")
    sender.send(urgent(4, b"half"), more=True)
    other.send(urgent(6, b"urgent"))
    receiver.client.open_window(2)
    assert bodies(receiver)[1] == b"urgent"
    assert receiver.received[2].payload == urgent(4, b"half")
    other.send(urgent(9, b"most urgent"))
    receiver.client.open_window(100)
    assert len(receiver.received) == 3
    sender.go_on(MORE)
    assert bodies(receiver)[2:] == [b"half+", b"most urgent"]


def test_a_half_message_that_is_the_most_urgent_begins_first() -> None:
    _, sender, receiver = closed()
    sender.send(urgent(4, b"whole"))
    sender.send(urgent(9, b"half"), more=True)
    receiver.client.open_window(100)
    assert len(receiver.received) == 2
    sender.go_on(MORE)
    assert bodies(receiver)[1:] == [b"half+", b"whole"]


def test_an_urgent_message_that_is_given_up_does_not_hold_up_the_others() -> None:
    _, sender, receiver = closed()
    sender.send(urgent(4, b"whole"))
    sender.send(urgent(9, b"half"), more=True)
    sender.abort()
    receiver.client.open_window(100)
    assert bodies(receiver)[1:] == [b"whole"]


def test_a_message_of_another_format_is_not_looked_into() -> None:
    _, sender, receiver = closed()
    sender.send(urgent(5, b"5"))
    sender.send(urgent(9, b"opaque"), message_format=1)
    receiver.client.open_window(100)
    assert bodies(receiver)[1:] == [b"5", b"opaque"]


def test_what_is_least_urgent_is_given_up_first_where_memory_is_short() -> None:
    router = Router(limit_bytes=100_000)
    receiver = router.client(window=1).receiver("q", 100)
    sender = router.client().sender("q")
    sender.send(urgent(None, b"first"))
    sent = [sender.send(urgent(priority, b"x" * 30_000)) for priority in (0, 9, 4, 5)]
    assert router.given_up == 2
    assert [each.outcome for each in sent] == [Released(), None, Released(), None]
    receiver.client.open_window(100)
    assert len(receiver.received) == 3
