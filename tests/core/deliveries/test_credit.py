"""Credit is honest: what senders hold, receivers back, with one message ahead for each sender."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from router.amqp.performatives import Attach, Source, Target
from router.core.deliveries import credit
from router.core.model.address import FIRST_EDGE, HERE, MESH, MULTICAST, NO_TREE, OWN_TREE

from support.examples import examples
from support.in_memory import ReceivingLink, Router, SendingLink


def held(senders: list[SendingLink]) -> list[int]:
    return [sender.credit for sender in senders]


@pytest.mark.spec("B2.3.9-1")
def test_a_sender_gets_what_the_receiver_takes() -> None:
    router = Router()
    sender = router.client().sender("q")
    assert sender.credit == 0
    receiver = router.client().receiver("q", 7)
    assert sender.credit == 7
    receiver.grant(20)
    assert sender.credit in range(7, 21)


def test_a_sender_gets_no_more_than_its_capacity() -> None:
    router = Router()
    router.client().receiver("q", 10_000)
    assert router.client(link_capacity=25).sender("q").credit == 25


def test_senders_share() -> None:
    router = Router()
    senders = [router.client().sender("q") for _ in range(4)]
    router.client().receiver("q", 40)
    assert held(senders) == [10] * 4


@pytest.mark.spec("B2.3.9-2", "G1.4-5")
def test_each_sender_gets_one_ahead_but_only_while_there_is_any() -> None:
    router = Router()
    senders = [router.client().sender("q") for _ in range(4)]
    receiver = router.client().receiver("q", 2)
    assert held(senders) == [1] * 4
    sent = 0
    while any(held(senders)):
        next(sender for sender in senders if sender.credit).send(b"x")
        sent += 1
        assert sum(held(senders)) <= receiver.credit + 4
    assert len(receiver.received) == 2
    assert sent <= 6
    receiver.grant(sent - 2)
    assert len(receiver.received) == sent
    assert held(senders) == [0] * 4
    receiver.grant(1)
    assert held(senders) == [1] * 4


def test_a_multicast_s_slowest_receiver_decides() -> None:
    router = Router(default="multicast")
    receivers = [router.client().receiver("q", count) for count in (100, 3, 50)]
    sender = router.client().sender("q")
    assert sender.credit == 3
    for _ in range(3):
        sender.send(b"x")
    assert sender.credit == 0
    receivers[1].detach()
    assert sender.credit == 47


def test_credit_is_asked_back_when_the_last_receiver_goes() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = router.client().sender("q")
    receiver.detach()
    assert (sender.credit, sender.drain) == (5, True)
    sender.give_back()
    again = router.client().receiver("q", 3)
    assert (sender.credit, sender.drain) == (3, False)
    sender.send(b"x")
    assert again.take() == b"x"


def test_a_drain_is_over_when_there_is_a_receiver_again() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = router.client().sender("q")
    receiver.detach()
    assert (sender.credit, sender.drain) == (5, True)
    receiver = router.client().receiver("q", 5)
    assert (sender.credit, sender.drain) == (5, False)
    sender.send(b"x")
    receiver.detach()
    assert (sender.credit, sender.drain) == (4, True)
    router.client().receiver("q", 50)
    assert (sender.credit, sender.drain) == (50, False)


def test_a_drain_is_over_for_each_that_may_keep_what_it_has() -> None:
    """One holds less than its share, and all that there is room for is held by others."""
    router = Router()
    receiver = router.client().receiver("q", 8)
    senders = [router.client().sender("q") for _ in range(2)]
    receiver.detach()
    for sender in senders:
        sender.give_back()
    receiver = router.client().receiver("q", 8)
    for _ in range(held(senders)[0] - 1):
        senders[0].send(b"x")
    before = held(senders)
    receiver.detach()
    assert [sender.drain for sender in senders] == [True, True]
    router.client().receiver("q", sum(before))
    assert held(senders) == before
    assert [sender.drain for sender in senders] == [False, False]


def test_a_sender_that_does_not_give_back_is_not_stuck() -> None:
    router = Router()
    router.client().receiver("q", 5).detach()
    sender = router.client().sender("q")
    receiver = router.client().receiver("q", 5)
    receiver.detach()
    receiver = router.client().receiver("q", 50)
    for _ in range(40):
        sender.send(b"x")
    assert len(receiver.received) == 40


def test_a_congested_receiver_backs_one_message_at_most() -> None:
    router = Router()
    slow, fast = (router.client().receiver("q", 50) for _ in range(2))
    slow.client.read(reads=False)
    sender = router.client().sender("q")
    for _ in range(30):
        sender.send(b"x" * 60_000)
    address = next(iter(router.table.addresses()))
    assert slow.client.connection.outbox.congested
    assert credit.receiver_room(address) - fast.credit in {0, 1}
    slow.client.read()
    assert credit.receiver_room(address) == fast.credit + slow.credit


@pytest.mark.slow
def test_too_much_that_is_unsettled_stops_a_sender_until_some_is_settled() -> None:
    """The receiver grants once and then only settles: no flow of its helps out."""
    router = Router()
    receiver = router.client(window=10**6).receiver("q", 10**6)
    for address, payload in (("q", b"x"), (None, b"\x00\x53\x73\xc0\x06\x03\x40\x40\xa1\x01q")):
        sender = router.client().sender(address)
        for _ in range(65536):
            sender.send(payload)
        assert sender.credit == 0
        count = len(receiver.unsettled)
        numbers = list(receiver.unsettled)
        receiver.unsettled.clear()
        receiver.client.dispose(numbers)
        assert count == 65536
        assert sender.credit > 0
        sender.client.close()


def test_the_serial_numbers_of_a_link_may_wrap() -> None:
    router = Router()
    client = router.client()
    receiver = router.client().receiver("q", 30)
    sender = SendingLink(client, 0, "q", "link")
    client.links.append(sender)
    sender.delivery_count = 2**32 - 3
    client.say(
        Attach(
            sender.name,
            0,
            False,
            source=Source(),
            target=Target(address="q"),
            initial_delivery_count=2**32 - 3,
        )
    )
    for _ in range(100):
        sender.send(b"x")
        receiver.settle()
        receiver.grant(30)
    assert len(receiver.received) == 100
    assert sender.credit > 0


STEPS = st.tuples(
    st.sampled_from(["grant", "grant", "send", "send", "send", "settle", "attach", "detach"]),
    st.integers(0, 20),
    st.integers(0, 30),
)


@examples(300)
@given(st.sampled_from(["balanced", "closest", "multicast"]), st.lists(STEPS, max_size=40))
@example("balanced", [("grant", 0, 6), *[("send", 2, 0)] * 5])
@pytest.mark.spec("B2.3.9-1", "B2.3.9-2")
def test_no_more_is_granted_than_backs_it(default: str, steps: list[Any]) -> None:
    """A grant never lifts the senders' credit above the receivers', but for one a sender.

    That one a sender without any is given as long as receivers have credit, whatever others hold:
    those may never use it.
    """
    router = Router(default=default)
    senders = [router.client().sender("q") for _ in range(3)]
    receivers = [router.client().receiver("q") for _ in range(2)]
    address = next(iter(router.table.addresses()))
    multicast = address.treatment == MULTICAST

    def backed(links: list[ReceivingLink]) -> int:
        taken = [link.credit for link in links if link.attached]
        if not taken:
            return 0
        return min(taken) if multicast else sum(taken)

    for what, one, other in steps:
        before = held(senders)
        sender = senders[one % 3]
        taking = [link for link in receivers if link.attached]
        receiver = taking[one % len(taking)] if taking else None
        match what:
            case "grant" if receiver:
                receiver.grant(max(receiver.credit, other))
            case "send" if sender.can_send():
                before[one % 3] -= 1
                sender.send(b"x")
            case "settle" if receiver:
                receiver.settle()
            case "attach" if len(receivers) < 6:
                receivers.append(router.client().receiver("q", other))
            case "detach" if receiver:
                receiver.detach()
            case _:
                continue
        now = held(senders)
        if sum(now) > sum(before) and sum(now) > backed(receivers) + len(senders):
            assert all(after == was or after == 1 for after, was in zip(now, before, strict=True))
            assert backed(receivers) > 0
        for link, was in zip(senders, before, strict=True):
            # what was granted once is not taken away, only asked back
            assert link.credit >= was
        waiting = len(address.waiting) if not multicast else 0
        if backed(receivers) > waiting and not multicast:
            assert max(held(senders)) > 0, "nobody may send, although somebody takes"


# more links than an address may have to be looked at in one turn
MANY = 2100


def test_few_of_very_many_senders_are_given_credit_in_a_turn() -> None:
    router = Router()
    client = router.client()
    senders = [client.sender("q") for _ in range(MANY)]
    changed: list[int] = []
    before = [(0, False)] * MANY

    def count() -> None:
        nonlocal before
        now = [(sender.credit, sender.drain) for sender in senders]
        changed.append(sum(one != other for one, other in zip(before, now, strict=True)))
        before = now

    router.turn_ended = count
    receiver = router.client().receiver("q", MANY)
    assert held(senders) == [1] * MANY
    assert 0 < max(changed) <= 128
    changed.clear()
    receiver.detach()
    assert all(sender.drain for sender in senders)
    assert 0 < max(changed) <= 128


def far_from_shared(default: str, backers: list[int], holdings: list[int]) -> Any:
    """Return an address whose links have this credit, whatever backs it."""
    router = Router(default=default)
    for _ in holdings:
        router.client().sender("q")
    for _ in backers:
        router.client().receiver("q")
    address = router.table.in_use("q")
    assert address is not None
    for consumer, count in zip(address.consumers, backers, strict=True):
        consumer.link.credit = count
    for producer, count in zip(address.producers, holdings, strict=True):
        producer.link.credit = count
    return address


def shared(address: Any) -> list[Any]:
    return [(each.link.credit, each.link.drain, each.low_mark) for each in address.producers]


@examples(50)
@given(
    st.sampled_from(["balanced", "closest", "multicast"]),
    st.lists(st.integers(0, 50), max_size=3),
    st.lists(st.integers(0, 20), min_size=1, max_size=4),
)
@example("balanced", [], [3, 0])
@example("multicast", [7, 30], [0, 0])
def test_credit_is_shared_in_steps_as_it_is_at_once(
    default: str, backers: list[int], holdings: list[int]
) -> None:
    address = far_from_shared(default, backers, holdings)
    credit.replenish_at_once(address)
    other = far_from_shared(default, backers, holdings)
    other.sharing = sharing = credit.Sharing(other)
    while sharing.step():
        pass
    assert shared(other) == shared(address)
    assert other.sharing is None


def test_what_changes_while_credit_is_shared_counts_in_the_end() -> None:
    address = far_from_shared("balanced", [4], [0, 0])
    address.sharing = sharing = credit.Sharing(address)
    assert sharing.step()
    address.consumers[0].link.credit = 40
    sharing.is_again_due = True
    while sharing.step():
        pass
    assert [each.link.credit for each in address.producers] == [20, 20]
    # the last receiver goes when all that it could take is added up
    address.producers[0].link.credit = 0
    address.sharing = sharing = credit.Sharing(address)
    sharing.step()
    sharing.step()
    address.remove_consumer(address.consumers[0])
    while sharing.step():
        pass
    assert [(each.link.credit, each.link.drain) for each in address.producers] == [
        (0, False),
        (20, True),
    ]


def test_credit_that_others_share_out_by_now_is_left_to_them() -> None:
    address = far_from_shared("balanced", [4], [0])
    address.sharing = sharing = credit.Sharing(address)
    address.remote_ends = 1
    assert not sharing.step()
    assert address.sharing is None
    assert address.producers[0].link.credit == 0


def test_a_flow_that_opens_the_window_and_takes_the_credit_back_does_both() -> None:
    router = Router()
    client = router.client(window=1)
    receiver = client.receiver("q", 5)
    sender = router.client().sender("q")
    for _ in range(3):
        sender.send(b"x")
    client.window = 10
    receiver.grant(0)
    assert len(receiver.received) == 1
    receiver.grant(2)
    assert len(receiver.received) == 3


def sided(router: Router, *sides: tuple[int, int]) -> None:
    """Have the receivers of `q`, then its senders, be on these sides and trees; look at credit."""
    address = router.table.in_use("q")
    assert address is not None
    ends: list[Any] = [*address.consumers, *address.producers]
    for end, (side, tree) in zip(ends, sides, strict=True):
        end.side, end.tree = side, tree
        address.remote_ends += side != HERE
    router.forwarder.credit.note(address, None)
    router.finish_turn()


def test_what_goes_along_one_tree_has_to_do_with_no_credit_of_another() -> None:
    router = Router(default="multicast")
    receivers = [router.client().receiver("q") for _ in range(3)]
    senders = [router.client().sender("q") for _ in range(4)]
    sided(
        router,
        (MESH, OWN_TREE), (MESH, 5), (MESH, NO_TREE),
        (HERE, OWN_TREE), (MESH, 5), (MESH, 5), (MESH, 6),
    )  # fmt: skip
    receivers[0].grant(20)
    # nobody receives by the last one, and whatever comes by it is released
    assert held(senders) == [20, 0, 0, 16]
    receivers[1].grant(30)
    assert held(senders) == [20, 15, 15, 16]


def test_who_receives_here_takes_it_from_all_sides() -> None:
    router = Router(default="multicast")
    receivers = [router.client().receiver("q") for _ in range(2)]
    senders = [router.client().sender("q") for _ in range(2)]
    sided(router, (HERE, NO_TREE), (MESH, 5), (HERE, OWN_TREE), (MESH, 5))
    receivers[0].grant(20)
    assert held(senders) == [10, 0]
    receivers[1].grant(4)
    assert held(senders) == [10, 4]


def test_nobody_at_an_edge_backs_what_comes_from_there_alone() -> None:
    router = Router(default="multicast")
    receivers = [router.client().receiver("q") for _ in range(2)]
    sender = router.client().sender("q")
    sided(router, (FIRST_EDGE, NO_TREE), (FIRST_EDGE, NO_TREE), (FIRST_EDGE, OWN_TREE))
    for receiver in receivers:
        receiver.grant(10)
    assert sender.credit == 0
    address = router.table.in_use("q")
    assert address is not None
    address.consumers[1].side = FIRST_EDGE + 1
    receivers[1].grant(8)
    assert sender.credit == 8
    # it is not drained: the router there has nothing that waits
    receivers[1].detach()
    assert (sender.credit, sender.drain) == (0, False)
