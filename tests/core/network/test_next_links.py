"""A link to the next router is there from the first moment on, and says what it is for."""

from __future__ import annotations

from router.amqp.types import Symbol
from router.core.model.address import BALANCED, MESH, Address
from router.core.network.next_links import NextLink
from router.core.routers.link_properties import PHASE, SHOWS

from support.far_routers import Mesh


def test_it_says_the_phase_and_whether_somebody_is_shown_the_way_only_where_that_is_so() -> None:
    network = Mesh("a")["a"].forwarder.network
    key = Symbol("qd.mine")
    plain = NextLink(network, Address("q", BALANCED), {key: 1}, shows=False)
    assert plain.frame.properties == {key: 1}
    full = NextLink(network, Address("q", BALANCED, phase=2), {key: 1}, shows=True)
    assert full.frame.properties == {key: 1, PHASE: 2, SHOWS: True}
    assert plain.frame.name != full.frame.name


def test_its_consumer_is_at_the_address_before_anybody_has_answered() -> None:
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh.learn()
    router = mesh["a"]
    address = router.table.enter("q")
    assert address is not None
    link = NextLink(router.forwarder.network, address, {}, shows=True)
    connection = router.forwarder.reach.connection("b")
    assert connection is not None
    link.begin(connection)
    assert address.consumers == [link.consumer]
    assert address.remote_ends == 1
    consumer = address.consumers[0]
    assert (consumer.side, consumer.shows_passage) == (MESH, True)
    assert consumer.link.credit == 0
    assert not consumer.link.is_attached()
