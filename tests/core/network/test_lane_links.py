"""A link for one lane: what its attach says, and how it takes leave."""

from __future__ import annotations

from router.amqp.constants import ReceiverSettleMode
from router.amqp.types import UByte, UInt
from router.core.network.lane_links import LaneLink
from router.core.network.lane_numbers import lane_numbered, lane_of
from router.core.routers.link_properties import LANE, PRIORITY

from support.far_routers import Mesh
from support.waypoints import message


def pair() -> tuple[Mesh, LaneLink]:
    """Two routers, and a link of the second lane of priority 9 from one to the other."""
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh.learn()
    mesh["b"].client().receiver("q", credit=10)
    mesh["a"].client().sender("q")
    mesh.run()
    address = mesh["a"].table.in_use("q")
    assert address is not None
    (base,) = mesh["a"].forwarder.network.outward.links(address)
    lane = lane_numbered(lane_of(9, 0, settles_second=True))
    link = base.beside(lane)
    link.begin(base.connection)
    base.lanes[lane.number] = link
    mesh.run()
    return mesh, link


def test_its_attach_says_its_number_priority_and_mode() -> None:
    _, link = pair()
    properties = link.frame.properties
    assert properties is not None
    assert properties[LANE] == UInt(lane_of(9, 0, settles_second=True))
    assert properties[PRIORITY] == UByte(9)
    assert link.frame.rcv_settle_mode == ReceiverSettleMode.SECOND


def test_it_is_idle_since_it_was_seen_to_be_quiet() -> None:
    mesh, link = pair()
    now = mesh["a"].turn.now
    assert link.idle_s(now + 3) == 3
    sender = mesh["a"].client().sender("q", rcv_settle_mode=ReceiverSettleMode.SECOND)
    mesh.run()
    link.lane = lane_numbered(lane_of(4, 0, settles_second=True))
    assert link.consumer is not None
    link.consumer.lane_mask = 1 << link.lane.number
    link.address.lanes |= link.consumer.lane_mask
    sender.send(message("hello"))
    mesh.run()
    # what is unsettled is not over
    assert link.idle_s(now + 4) == 0
    assert link.idle_s(now + 9) == 0


def test_it_ends_when_it_has_taken_its_leave() -> None:
    mesh, link = pair()
    consumer = link.consumer
    assert consumer is not None
    assert consumer in link.address.consumers
    link.retire()
    mesh.run()
    assert link.is_over
    assert consumer not in link.address.consumers
    assert link not in mesh["a"].forwarder.network.outward.leaving
