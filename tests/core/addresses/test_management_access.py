"""The management rights of clients, and their limits, apply to requests to other routers too."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.message import AmqpValue, Message, Properties, encode_message
from router.amqp.revision import take_annotations
from router.core.addresses import management_access
from router.core.deliveries.router_annotations import CONNECTION, RIGHTS
from router.core.model.address import MANAGEMENT_WRITERS
from router.core.routers import link_properties

from support.far_routers import Mesh
from support.in_memory import ReceivingLink

NO_LINK: Any = None

NODE = "_topo/0/c/$management"


def message(text: str, to: str) -> bytes:
    return encode_message(Message(properties=Properties(to=to), body=(AmqpValue(text),)))


def line(*, there: str = "change", middle: str = "change") -> tuple[Mesh, ReceivingLink]:
    """Return three routers in a line, and a management receiver at the last one.

    Their connections limit access to management: none at a, `middle` at b, `there` at c.
    """
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c")
    bounds = {"a": "none", "b": middle, "c": there}
    for wire in mesh.wires:
        settings = wire.connection.settings
        name = wire.router.forwarder.reach.me
        wire.connection.settings = attrs.evolve(settings, management=bounds[name])
    mesh.learn()
    node = mesh["c"].client(is_own=True, shows_annotations=True).receiver(NODE, credit=20)
    mesh.run()
    return mesh, node


def said(node: ReceivingLink) -> list[str | None]:
    """Return the rights that each received message states."""
    found = []
    for each in node.received:
        _, entries = take_annotations(bytes(each.payload), lambda key: key in (CONNECTION, RIGHTS))
        told = {entry.key: entry.value() for entry in entries}
        assert CONNECTION in told
        found.append(told.get(RIGHTS))
    return found


def ask(mesh: Mesh, at: str, *, anonymous: bool = False, **client: Any) -> None:
    sender = mesh[at].client(**client).sender(None if anonymous else NODE)
    mesh.run()
    sender.send(message("ask", NODE))
    mesh.run()


@pytest.mark.parametrize("anonymous", [False, True])
def test_who_may_change_things_goes_by_another_link(anonymous: bool) -> None:
    mesh, node = line()
    ask(mesh, "a", anonymous=anonymous, management="change")
    ask(mesh, "a", anonymous=anonymous, management="read")
    ask(mesh, "b", anonymous=anonymous, management="change")
    ask(mesh, "a", anonymous=anonymous, management="trusted", user="kim")
    ask(mesh, "a", anonymous=anonymous, management="trusted")
    assert said(node) == ["change", None, "change", "change", None]
    ways = [way.phase for way in mesh["b"].table.transit.values()]
    assert sorted(ways) == [0, MANAGEMENT_WRITERS]


@pytest.mark.parametrize("middle", ["none", "read", "trusted"])
def test_a_router_on_the_way_bounds_it(middle: str) -> None:
    mesh, node = line(middle=middle)
    ask(mesh, "a", management="change")
    ask(mesh, "b", management="change")
    assert said(node) == [None, "change"]


def test_a_client_cannot_say_it_of_itself() -> None:
    mesh, node = line()
    for name in ("a", "c"):
        sender = (
            mesh[name]
            .client(management="read")
            .sender(NODE, properties={link_properties.RIGHTS: management_access.CHANGE})
        )
        mesh.run()
        sender.send(message("ask", NODE))
        mesh.run()
    client = mesh["c"].client(management="read").connection
    assert management_access.effective_right(client, True) == management_access.READ
    # what the client says is told of it at its own router, where nobody believes it
    assert said(node)[0] is None


def test_other_addresses_know_no_rights() -> None:
    mesh, _ = line()
    receiver = mesh["c"].client().receiver("orders", credit=5)
    mesh.run()
    sender = mesh["a"].client(management="change").sender("orders")
    mesh.run()
    sender.send(b"x")
    mesh.run()
    assert receiver.received
    assert [way.phase for way in mesh["b"].table.transit.values()] == [0]


def test_a_router_that_is_alone_has_no_others() -> None:
    mesh = Mesh("a")
    network = mesh["a"].forwarder.network
    link = mesh["a"].client(management="change").sender("_topo/0/a/$management")
    assert link.detached is None or link.detached.error is not None
    assert network.phase_of(NO_LINK, "orders", 3) == 3
