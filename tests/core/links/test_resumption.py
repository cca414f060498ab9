"""A receiver resumes its link: the specification's example, with the router sending."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import (
    ReceiverSettleMode,
    SenderSettleMode,
    TerminusExpiryPolicy as Policy,
)
from router.amqp.performatives import (
    Accepted,
    Disposition,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
    Transfer,
)
from router.amqp.types import Symbol
from router.core.links.resuming import ALL_OF_IT
from router.core.links.terminus import TAG_BYTES

from support.in_memory import Client, ReceivingLink, Router, Sending
from support.schedules import to_section

FAILED = Modified(delivery_failed=True)
ABSENT = "absent"
# what the router keeps no octets of, because it is too large
LARGE = b"x" * 40000
SMALL = b"small"
TAG = (1).to_bytes(TAG_BYTES, "big")


def receiving(client: Client, address: str = "q", **fields: Any) -> ReceivingLink:
    source = Source(address=address, expiry_policy=Policy.LINK_DETACH, timeout=30)
    return client.receiver(address, name="r", source=source, **fields)


def suspended(
    router: Router, payload: bytes, told: Any = None, address: str = "q"
) -> tuple[Client, Sending]:
    """Return the client of a lost receiver with one delivery in state `told`, and the sending."""
    receiver = receiving(router.client(), address)
    receiver.grant(5)
    # with the ordinary mode nothing that has an outcome is unsettled
    mode = ReceiverSettleMode.FIRST if told is None else ReceiverSettleMode.SECOND
    sender = router.client().sender(address, rcv_settle_mode=mode)
    sending = sender.send(payload)
    if told is not None:
        receiver.client.dispose([0], told, settled=False)
        assert sending.states == [told]
    receiver.client.lose()
    return receiver.client, sending


def resume(router: Router, client: Client, state: Any, **fields: Any) -> ReceivingLink:
    """Attach again, telling this of the delivery, and grant credit."""
    unsettled = {} if state is ABSENT else {TAG: state}
    client = router.client(container=client.container)
    receiver = receiving(client, unsettled=unsettled, **fields)
    receiver.grant(5)
    return receiver


def ours(receiver: ReceivingLink) -> Any:
    """Return the delivery's state in the router's attach, or ABSENT."""
    assert receiver.attach is not None
    assert receiver.attach.unsettled is not None
    return receiver.attach.unsettled.get(TAG, ABSENT)


def first(receiver: ReceivingLink) -> Transfer:
    """Return the first frame of the only delivery that came."""
    (received,) = receiver.received
    assert received.first is not None
    return received.first


# Cases 1 to 4: the router can send the message from its start.


@pytest.mark.spec("3.4.6-1", "2.6.13-5")
def test_what_the_receiver_does_not_know_is_sent_anew() -> None:
    router = Router()
    client, sending = suspended(router, SMALL)
    receiver = resume(router, client, ABSENT)
    assert ours(receiver) is None
    assert not first(receiver).resume
    assert first(receiver).delivery_tag != TAG
    assert receiver.take() == SMALL
    receiver.settle(Accepted())
    assert sending.outcome == Accepted()


@pytest.mark.parametrize("payload", [SMALL, LARGE])
@pytest.mark.parametrize("state", [ABSENT, None, Received(0, 0)])
@pytest.mark.spec("3.4.6-8")
def test_an_outcome_of_the_sender_s_own_is_not_told_of_what_the_receiver_may_lack(
    state: Any, payload: bytes
) -> None:
    router = Router()
    receiver = receiving(router.client())
    receiver.grant(5)
    sender = router.client().sender("q")
    sending = sender.send(payload)
    own = Disposition(False, sending.number, settled=False, state=Accepted())
    sender.client.say(own)
    receiver.client.lose()
    assert ours(resume(router, receiver.client, state)) in (None, ALL_OF_IT)


@pytest.mark.parametrize("state", [Received(3, 0), Received(0, 0), None])
@pytest.mark.spec("2.6.13-3", "2.6.13-5", "3.4.6-5", "2.7.3-6", "2.7.5-19")
def test_what_the_receiver_has_a_part_of_is_resumed_from_its_start(state: Any) -> None:
    router = Router()
    client, sending = suspended(router, SMALL)
    receiver = resume(router, client, state)
    assert ours(receiver) is None
    assert (first(receiver).resume, first(receiver).state) == (True, None)
    assert first(receiver).delivery_tag == TAG
    assert receiver.take() == SMALL
    receiver.settle(Rejected())
    assert sending.outcome == Rejected()


@pytest.mark.parametrize("payload", [SMALL, LARGE])
@pytest.mark.parametrize("state", [Accepted(), Rejected(), Released(), FAILED])
@pytest.mark.spec("3.4.6-3", "3.4.6-4", "2.7.3-6")
def test_an_outcome_of_the_receiver_is_told_and_settled(payload: bytes, state: Any) -> None:
    router = Router()
    client, sending = suspended(router, payload)
    receiver = resume(router, client, state)
    assert sending.states == [state]
    transfer = first(receiver)
    assert (transfer.resume, transfer.settled, transfer.more) == (True, True, False)
    assert transfer.state == state
    assert receiver.take() == b""
    assert router.forwarder.redelivery.kept_bytes == 0


# Cases 5 to 9: the router can resume the message only behind its end.


def test_what_cannot_be_sent_anew_has_failed() -> None:
    router = Router()
    client, sending = suspended(router, LARGE)
    receiver = resume(router, client, ABSENT)
    assert ours(receiver) == ALL_OF_IT
    assert receiver.received == []
    assert sending.outcome == FAILED


def test_a_receiver_that_needs_nothing_more_is_sent_nothing_more() -> None:
    router = Router()
    client, sending = suspended(router, LARGE)
    receiver = resume(router, client, ALL_OF_IT)
    transfer = first(receiver)
    assert (transfer.resume, transfer.settled, transfer.more) == (True, False, False)
    assert transfer.state == ALL_OF_IT
    assert receiver.take() == b""
    receiver.settle(Accepted())
    assert sending.outcome == Accepted()


@pytest.mark.parametrize("state", [Received(0, 100), None])
@pytest.mark.spec("2.6.13-3", "3.4.6-13")
def test_what_cannot_be_completed_is_aborted(state: Any) -> None:
    router = Router()
    client, sending = suspended(router, LARGE)
    receiver = resume(router, client, state)
    assert (first(receiver).resume, first(receiver).aborted) == (True, True)
    assert sending.outcome == FAILED
    assert not receiver.unsettled


# Cases 10 to 14: the router has an outcome.


@pytest.mark.spec("3.4.6-14")
@pytest.mark.parametrize("payload", [SMALL, LARGE])
def test_an_outcome_that_the_receiver_has_forgotten_is_forgotten(payload: bytes) -> None:
    router = Router()
    client, sending = suspended(router, payload, Accepted())
    receiver = resume(router, client, ABSENT)
    assert ours(receiver) == Accepted()
    assert receiver.received == []
    assert sending.states == [Accepted()]


@pytest.mark.parametrize("state", [Received(1, 2000), None])
@pytest.mark.spec("3.4.6-9")
def test_an_outcome_of_what_the_receiver_has_not_got_is_final(state: Any) -> None:
    router = Router()
    client, sending = suspended(router, SMALL, Accepted())
    receiver = resume(router, client, state)
    assert (first(receiver).resume, first(receiver).aborted) == (True, True)
    assert sending.states == [Accepted()]


@pytest.mark.parametrize("outcome", [Accepted(), Released()])
@pytest.mark.spec("3.4.6-10")
def test_outcomes_that_agree_are_settled(outcome: Any) -> None:
    router = Router()
    client, sending = suspended(router, SMALL, outcome)
    receiver = resume(router, client, outcome)
    assert (first(receiver).resume, first(receiver).settled) == (True, True)
    assert sending.states == [outcome]


@pytest.mark.spec("3.4.6-11", "3.4.6-7")
def test_outcomes_that_differ_are_restated() -> None:
    router = Router()
    client, sending = suspended(router, SMALL, Accepted())
    receiver = resume(router, client, Released())
    transfer = first(receiver)
    assert (transfer.resume, transfer.settled, transfer.state) == (True, False, Accepted())
    receiver.settle(Accepted())
    assert sending.states == [Accepted()]


# Besides.


@pytest.mark.spec("2.6.13-2", "2.7.5-18")
def test_what_only_the_receiver_knows_is_ignored() -> None:
    router = Router()
    receiver = receiving(router.client(), unsettled={b"other": None})
    receiver.grant(5)
    assert receiver.received == []
    router.client().sender("q").send(b"x")
    assert receiver.take() == b"x"


@pytest.mark.spec("2.6.13-2", "2.7.5-18")
def test_what_its_sender_has_settled_meanwhile_is_not_told_of() -> None:
    router = Router()
    client, sending = suspended(router, SMALL, Accepted())
    sending.link.settle(sending, Accepted())
    receiver = resume(router, client, Accepted())
    assert ours(receiver) is ABSENT
    assert receiver.received == []


def test_nothing_new_comes_before_what_is_resumed() -> None:
    router = Router()
    receiver = receiving(router.client())
    receiver.grant(5)
    sender = router.client().sender("q")
    for n in range(3):
        sender.send(b"%d" % n)
    tags = [each.tag for each in receiver.received]
    receiver.client.lose()
    client = router.client(container=receiver.client.container)
    new = receiving(client, unsettled=dict.fromkeys(tags))
    other = router.client().receiver("q")
    new.grant(2)
    assert [each.payload for each in new.received] == [b"0", b"1"]
    sender.send(b"3")
    new.grant(5)
    assert [each.payload for each in new.received] == [b"0", b"1", b"2", b"3"]
    assert other.received == []


def test_an_address_lasts_while_a_receiver_resumes_its_link() -> None:
    router = Router()
    client, sending = suspended(router, SMALL)
    receiver = receiving(router.client(container=client.container), unsettled={TAG: None})
    sending.link.detach()
    receiver.grant(5)
    sender = router.client().sender("q")
    assert first(receiver).aborted
    sender.send(b"new")
    assert receiver.received[1].payload == b"new"
    sender.detach()
    receiver.detach()
    assert len(router.table) == 0


@pytest.mark.spec("3.5.10-1")
def test_a_node_that_is_deleted_takes_a_receiver_with_it_that_resumes_its_link() -> None:
    router = Router()
    creator = router.client().receiver(None, source=Source(dynamic=True))
    receiver = receiving(router.client(), creator.address or "")
    receiver.grant(1)
    router.client().sender(creator.address).send(SMALL)
    receiver.client.lose()
    client = router.client(container=receiver.client.container)
    new = receiving(client, creator.address or "", unsettled={TAG: None})
    creator.detach()
    assert new.detached is not None
    assert new.detached.error is not None
    assert str(new.detached.error.condition) == "amqp:resource-deleted"
    assert len(router.table) == 0


def test_a_message_that_takes_many_frames_is_resumed_as_there_is_room() -> None:
    router = Router()
    payload = bytes(range(256)) * 40
    client, sending = suspended(router, payload)
    small = router.client(container=client.container, max_frame_size=512, window=2)
    receiver = receiving(small, unsettled={TAG: None})
    receiver.grant(5)
    (received,) = receiver.received
    frames = received.frames
    sending.link.send(b"next")
    for _ in range(len(payload) // 400):
        small.open_window()
    assert 2 >= frames < received.frames
    assert received.complete
    assert received.payload == payload
    small.open_window()
    small.dispose([0], Accepted())
    assert sending.outcome == Accepted()
    assert router.forwarder.backlog.held_bytes == 0


@pytest.mark.spec("2.6.13-4", "2.7.3-10", "2.7.3-12")
def test_under_an_incomplete_map_only_what_it_tells_is_resumed() -> None:
    router = Router()
    receiver = receiving(router.client())
    receiver.grant(5)
    sender = router.client().sender("q")
    sendings = [sender.send(b"%d" % n) for n in range(2)]
    tags = [each.tag for each in receiver.received]
    receiver.client.lose()
    client = router.client(container=receiver.client.container)
    new = receiving(client, unsettled={tags[1]: Accepted()}, incomplete_unsettled=True)
    new.grant(5)
    assert [each.tag for each in new.received] == [tags[1]]
    assert [each.outcome for each in sendings] == [None, Accepted()]
    # nothing new, until the rest is resolved
    assert sender.send(b"early").outcome == Released()
    new.detach(closed=False)
    last = receiving(client, unsettled={tags[0]: Released()})
    assert sendings[0].outcome == Released()
    last.grant(5)
    sender.send(b"new")
    assert last.received[-1].payload == b"new"


@pytest.mark.spec("2.7.3-7", "2.6.13-4")
def test_a_map_too_large_for_a_frame_is_told_in_part() -> None:
    router = Router()
    receiver = receiving(router.client())
    receiver.grant(100)
    sender = router.client().sender("q")
    sendings = [sender.send(b"%d" % n) for n in range(100)]
    tags = {each.tag for each in receiver.received}
    receiver.client.lose()
    client = router.client(container=receiver.client.container, max_frame_size=512)
    rounds = 0
    while tags:
        new = receiving(client, unsettled=dict.fromkeys(list(tags), Accepted()))
        assert new.attach is not None
        assert new.attach.unsettled is not None
        assert new.attach.incomplete_unsettled
        assert 0 < len(new.attach.unsettled) < 100
        rounds += 1
        new.grant(100)
        tags.difference_update(each.tag for each in new.received)
        new.detach(closed=False)
    assert [each.outcome for each in sendings] == [Accepted()] * 100
    assert rounds == 1


def test_an_expired_message_is_not_sent_anew() -> None:
    router = Router()
    message = to_section("q")
    header = bytes.fromhex("005370c00503404052 64")
    client, sending = suspended(router, header + message)
    router.wait(1)
    receiver = resume(router, client, ABSENT)
    assert receiver.received == []
    assert isinstance(sending.outcome, Rejected)
    assert sending.outcome.error is not None
    assert sending.outcome.error.condition == Symbol("trioute:expired")
    assert router.table.total().expired == 1


def test_a_copy_of_a_multicast_is_resumed_without_its_octets() -> None:
    router = Router([(False, "m", "multicast")])
    receiver = receiving(router.client(), "m")
    other = router.client().receiver("m", 5)
    receiver.grant(5)
    sending = router.client().sender("m").send(SMALL)
    receiver.client.lose()
    other.settle(Accepted())
    client = router.client(container=receiver.client.container)
    new = receiving(client, "m", unsettled={TAG: Accepted()})
    assert sending.outcome == Accepted()
    new.grant(5)
    assert first(new).settled


def test_a_receiver_is_lost_again_before_it_has_all() -> None:
    router = Router()
    client, sending = suspended(router, SMALL)
    receiving(router.client(container=client.container), unsettled={TAG: None}).client.lose()
    receiver = resume(router, client, None)
    assert receiver.take() == SMALL
    receiver.detach()
    assert sending.outcome == FAILED
    assert router.forwarder.redelivery.kept_bytes == 0


def test_a_drain_while_nothing_new_may_come_is_answered() -> None:
    router = Router()
    client, _ = suspended(router, SMALL)
    receiver = resume(router, client, None, incomplete_unsettled=True)
    receiver.grant(5, drain=True)
    assert receiver.credit == 0
    assert receiver.drained == 5


@pytest.mark.parametrize(
    ("payload", "told", "state", "outcome"),
    [
        (SMALL, None, None, Accepted()),
        (SMALL, None, ABSENT, Accepted()),
        (LARGE, None, ALL_OF_IT, Accepted()),
        (SMALL, Released(), Accepted(), Released()),
    ],
)
def test_what_a_receiver_resumes_that_takes_all_settled_is_taken_when_it_is_sent(
    payload: bytes, told: Any, state: Any, outcome: Any
) -> None:
    router = Router()
    client, sending = suspended(router, payload, told)
    receiver = resume(router, client, state, snd_settle_mode=SenderSettleMode.SETTLED)
    assert first(receiver).settled
    assert sending.states == [outcome]
    total = router.table.total()
    assert (total.accepted, total.released) == (outcome == Accepted(), outcome == Released())
    assert router.forwarder.redelivery.kept_bytes == 0


def test_what_is_sent_in_parts_to_one_that_takes_all_settled_is_taken_at_its_end() -> None:
    router = Router()
    client, sending = suspended(router, b"x" * 3000)
    small = router.client(container=client.container, max_frame_size=512, window=2)
    settled = SenderSettleMode.SETTLED
    receiver = receiving(small, unsettled={TAG: None}, snd_settle_mode=settled)
    receiver.grant(5)
    assert sending.states == []
    for _ in range(5):
        small.open_window()
    assert receiver.take() == b"x" * 3000
    assert sending.outcome == Accepted()
    assert router.forwarder.redelivery.kept_bytes == 0


@pytest.mark.spec("2.6.14-1")
def test_what_is_half_resumed_when_its_sender_is_stolen_is_aborted() -> None:
    router = Router()
    sender = router.client().sender("q", name="s")
    receiver = receiving(router.client())
    receiver.grant(5)
    sending = sender.send(b"x" * 3000)
    receiver.client.lose()
    small = router.client(container=receiver.client.container, max_frame_size=512, window=2)
    new = receiving(small, unsettled={TAG: None})
    new.grant(5)
    assert new.current is not None
    thief = router.client(container=sender.client.container).sender("q", name="s")
    # the receiver may have had it whole, and done with it what it liked
    assert sending.outcome == FAILED
    small.open_window()
    assert new.received[0].aborted
    thief.send(b"next")
    assert new.received[1].payload == b"next"


@pytest.mark.parametrize("settles", [True, False])
def test_what_cannot_be_sent_again_when_its_turn_comes_is_aborted(settles: bool) -> None:
    router = Router()
    client, sending = suspended(router, SMALL)
    receiver = receiving(router.client(container=client.container), unsettled={TAG: None})
    assert ours(receiver) is None
    if settles:
        sending.link.settle(sending)
    else:
        sending.link.client.lose()
    receiver.grant(5)
    assert (first(receiver).resume, first(receiver).aborted) == (True, True)


def test_what_was_to_be_sent_anew_and_is_settled_is_not_sent() -> None:
    router = Router()
    client, sending = suspended(router, SMALL)
    receiver = receiving(router.client(container=client.container), unsettled={})
    sending.link.settle(sending)
    receiver.grant(5)
    assert receiver.received == []
    sending.link.send(b"next")
    assert receiver.take() == b"next"


@pytest.mark.parametrize(
    ("payload", "told", "state", "outcome"),
    [
        (SMALL, None, Released(), Released()),
        (SMALL, Accepted(), Accepted(), Accepted()),
        (LARGE, None, None, FAILED),
    ],
)
def test_an_outcome_counts_once_however_often_the_link_is_lost(
    payload: bytes, told: Any, state: Any, outcome: Any
) -> None:
    router = Router()
    client, sending = suspended(router, payload, told)
    for _ in range(3):
        again = receiving(router.client(container=client.container), unsettled={TAG: state})
        again.client.lose()
    resume(router, client, ABSENT)
    assert sending.states == [outcome]
    total = router.table.total()
    assert total.accepted + total.released + total.modified == 1
