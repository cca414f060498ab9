"""Messages that the closest receivers release are sent on to receivers at farther routers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from router.amqp.message import Data, Header, Message, encode_message
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.core.network.farther_receivers import OPEN_S, PATIENCE_S
from router.engine.deferred import CHANGES_AT_ONCE, ITEMS_PER_STEP

from support.far_routers import Mesh
from support.in_memory import ReceivingLink, Sending
from support.turns import most_in_a_turn

BODY = encode_message(Message(body=(Data(b"body"),)))


def line(*names: str, **fields: Any) -> Mesh:
    mesh = Mesh(*names, **{"default": "closest", **fields})
    for one, other in pairwise(names):
        mesh.join(one, other)
    mesh.learn()
    return mesh


def receivers(mesh: Mesh, names: str, credit: int = 5) -> list[ReceivingLink]:
    made = [mesh[name].client().receiver("q", credit=credit) for name in names]
    mesh.run()
    return made


def sent_from(mesh: Mesh, name: str, payload: bytes = BODY) -> Any:
    sender = mesh[name].client().sender("q")
    mesh.run()
    sending = sender.send(payload)
    mesh.run()
    return sending


def settle(mesh: Mesh, receiver: ReceivingLink, state: Any) -> None:
    receiver.settle(state)
    mesh.run()


def has(receiver: ReceivingLink) -> int:
    return len(receiver.received)


@pytest.mark.parametrize("names", ["ab", "bc", "ac", "aab"])
def test_what_the_nearest_release_goes_to_the_next(names: str) -> None:
    mesh = line("a", "b", "c")
    *near, far = receivers(mesh, names)
    sending = sent_from(mesh, "a")
    for _ in near:
        assert has(far) == 0
        holder = next(each for each in near if each.unsettled)
        settle(mesh, holder, Released())
    assert has(far) == 1
    assert not sending.is_over
    assert far.take() == BODY
    settle(mesh, far, Accepted())
    assert sending.outcome == Accepted()
    redelivery = mesh["a"].forwarder.redelivery
    assert redelivery.kept_bytes == 0


def test_the_nearest_of_the_farther_comes_first_and_each_has_it_once() -> None:
    mesh = line("a", "b", "c", "d")
    every = receivers(mesh, "dcba")[::-1]
    sending = sent_from(mesh, "a")
    for at, receiver in enumerate(every):
        assert [has(each) for each in every] == [1] * (at + 1) + [0] * (3 - at)
        assert not sending.is_over
        settle(mesh, receiver, Released())
    assert sending.outcome == Released()
    assert [has(each) for each in every] == [1] * 4


@pytest.mark.parametrize("state", [Modified(delivery_failed=True), Rejected(), Accepted()])
def test_what_is_not_released_stays_with_the_nearest(state: Any) -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "ab")
    sending = sent_from(mesh, "a")
    settle(mesh, near, state)
    assert sending.outcome == state
    assert has(far) == 0


def test_what_comes_from_another_router_goes_no_farther_nor_back() -> None:
    mesh = line("a", "b", "c")
    far, near = receivers(mesh, "cb")
    back = mesh["a"]
    sending = sent_from(mesh, "a")
    settle(mesh, near, Released())
    # by a, who has sent it to b, and not by b, which is but on the way
    assert [link.destination for link in links(mesh, "b") if not link.address.transit] == []
    assert [link.destination for link in links(mesh, "a")] == ["b", "c"]
    assert has(far) == 1
    settle(mesh, far, Released())
    assert sending.outcome == Released()
    assert not back.forwarder.network.farther


def links(mesh: Mesh, name: str) -> list[Any]:
    network = mesh[name].forwarder.network
    found = [network.outward.links(address) for address in network.outward.addresses()]
    return sorted((link for each in found for link in each), key=lambda link: link.destination)


def test_without_credit_farther_away_the_sender_is_told_soon() -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "ab", 1)
    far.grant(0)
    mesh.run()
    sending = sent_from(mesh, "a")
    settle(mesh, near, Released())
    assert not sending.is_over
    mesh["a"].wait(PATIENCE_S / 2)
    assert not sending.is_over
    mesh["a"].wait(PATIENCE_S)
    assert sending.outcome == Released()
    assert mesh["a"].forwarder.redelivery.kept_bytes == 0
    far.grant(1)
    mesh.run()
    assert has(far) == 0


def test_credit_that_comes_in_time_is_used() -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "ab", 1)
    far.grant(0)
    mesh.run()
    sending = sent_from(mesh, "a")
    settle(mesh, near, Released())
    mesh["a"].wait(PATIENCE_S / 2)
    far.grant(1)
    mesh.run()
    settle(mesh, far, Accepted())
    assert sending.outcome == Accepted()


def test_a_ttl_that_ends_meanwhile_ends_it() -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "ab", 1)
    far.grant(0)
    payload = encode_message(Message(Header(ttl=300), body=(Data(b"x"),)))
    sending = sent_from(mesh, "a", payload)
    settle(mesh, near, Released())
    mesh["a"].wait(0.4)
    far.grant(1)
    mesh.run()
    assert has(far) == 0
    assert sending.outcome == Released()


@pytest.mark.parametrize("way", ["lose", "settle"])
def test_a_sender_that_is_done_with_it_is_not_waited_for(way: str) -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "ab", 1)
    far.grant(0)
    mesh.run()
    sending = sent_from(mesh, "a")
    settle(mesh, near, Released())
    if way == "lose":
        sending.link.client.lose()
    else:
        sending.link.settle(sending)
    far.grant(1)
    mesh.run()
    assert has(far) == 0
    assert mesh["a"].forwarder.redelivery.kept_bytes == 0
    assert not mesh["a"].forwarder.network.farther


def test_new_messages_go_to_the_nearest_all_the_same() -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "ab")
    sending = sent_from(mesh, "a")
    settle(mesh, near, Released())
    for _ in range(3):
        sending.link.send(BODY)
        mesh.run()
    assert (has(near), has(far)) == (4, 1)


def test_links_to_farther_routers_are_given_up_after_a_while() -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "ab")
    sent_from(mesh, "a")
    assert links(mesh, "a") == []
    settle(mesh, near, Released())
    settle(mesh, far, Accepted())
    assert len(links(mesh, "a")) == 1
    mesh["a"].wait(OPEN_S)
    mesh.run()
    assert links(mesh, "a") == []


def test_nothing_is_kept_where_nobody_is_farther_away() -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "ab")
    far.detach()
    mesh.run()
    sending = sent_from(mesh, "a")
    assert mesh["a"].forwarder.redelivery.kept_bytes == 0
    settle(mesh, near, Released())
    assert sending.outcome == Released()


def test_each_outcome_is_counted_where_it_is_told() -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "ab")
    sent_from(mesh, "a")
    settle(mesh, near, Released())
    settle(mesh, far, Accepted())
    total = mesh["a"].table.total()
    assert (total.ingress, total.egress, total.redelivered) == (1, 2, 1)
    assert (total.released, total.accepted) == (1, 1)


MANY = 2 * CHANGES_AT_ONCE + 10


def many_released(mesh: Mesh) -> tuple[ReceivingLink, list[Sending]]:
    """Very many messages wait for credit of a farther receiver: that receiver, and the messages."""
    near, far = receivers(mesh, "ab", 1)
    far.grant(0)
    near.grant(MANY)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sendings = [sender.send(encode_message(texted(number))) for number in range(MANY)]
    mesh.run()
    for _ in range(MANY):
        near.settle(Released())
    mesh.run()
    assert len(mesh["a"].forwarder.network.farther) == MANY
    return far, sendings


def texted(number: int) -> Message:
    return Message(body=(Data(b"%d" % number),))


def test_very_many_that_wait_are_sent_on_over_several_turns() -> None:
    mesh = line("a", "b")
    far, sendings = many_released(mesh)
    router = mesh["a"]
    farther = router.forwarder.network.farther

    def act() -> None:
        far.grant(MANY)
        mesh.run()

    assert 0 < most_in_a_turn(router, lambda: len(farther), act) <= CHANGES_AT_ONCE
    assert len(farther) == 0
    sent = [encode_message(texted(number)) for number in range(MANY)]
    assert [each.payload for each in far.received] == sent
    for _ in range(MANY):
        far.settle(Accepted())
    mesh.run()
    assert [each.outcome for each in sendings] == [Accepted()] * MANY
    assert router.forwarder.redelivery.kept_bytes == 0


def test_those_whose_sender_is_lost_meanwhile_are_not_sent_on() -> None:
    mesh = line("a", "b")
    far, _ = many_released(mesh)
    router = mesh["a"]
    router.is_patient = True
    far.grant(MANY)
    mesh.run()
    assert 0 < has(far) < MANY
    taken = has(far)
    router.clients[-1].lose()
    router.catch_up()
    mesh.run()
    assert has(far) == taken
    assert router.forwarder.redelivery.kept_bytes == 0
    assert not router.forwarder.network.farther


def test_very_many_that_have_waited_in_vain_are_released_over_several_turns() -> None:
    mesh = line("a", "b")
    far, sendings = many_released(mesh)
    router = mesh["a"]
    farther = router.forwarder.network.farther
    most = most_in_a_turn(router, lambda: len(farther), lambda: router.wait(PATIENCE_S))
    assert 0 < most <= ITEMS_PER_STEP
    assert [each.states for each in sendings] == [[Released()]] * MANY
    assert router.forwarder.redelivery.kept_bytes == 0
    far.grant(MANY)
    mesh.run()
    assert has(far) == 0


def test_one_that_is_sent_on_while_others_are_released_is_not_released() -> None:
    mesh = line("a", "b")
    far, sendings = many_released(mesh)
    router = mesh["a"]
    router.is_patient = True
    router.wait(PATIENCE_S)
    far.grant(MANY)
    mesh.run()
    router.catch_up()
    mesh.run()
    for _ in range(has(far)):
        far.settle(Accepted())
    mesh.run()
    outcomes = [each.states for each in sendings]
    assert has(far) > 0
    assert outcomes.count([Accepted()]) == has(far)
    assert outcomes.count([Released()]) == MANY - has(far)
