"""Attaches between routers go to who is to judge them, and others are refused."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Attach, Begin, Detach, Error, Open, Source, Target
from router.amqp.types import Symbol, ULong

from support.in_memory import Router
from support.transcripts import Talk, begin, like


class Neighbour(Talk):
    """Another router, or somebody who pretends to be one."""

    def __init__(self) -> None:
        self.router = Router(router_id="a")
        self.router.forwarder.network.turn_on()
        super().__init__(
            self.router.forwarder,
            turn=self.router.turn,
            sasl_mechanisms=(),
            role="inter-router",
        )
        self >> AMQP_HEADER << AMQP_HEADER
        self >> Open("b") << like(Open)
        self >> begin() << like(Begin)

    def refuses(self, attach: Attach) -> Error:
        """Send an attach, and return the error that it is refused with."""
        self >> attach
        answer, detach = (frame.performative for frame in self.frames())
        assert isinstance(answer, Attach)
        assert isinstance(detach, Detach)
        assert detach.closed
        assert detach.error is not None
        return detach.error


def sender(properties: dict[str, Any] | None = None, **fields: Any) -> Attach:
    named = None if properties is None else {Symbol(key): properties[key] for key in properties}
    fields.setdefault("target", Target(address="q"))
    return Attach(
        "link", 0, False, source=Source(), initial_delivery_count=0, properties=named, **fields
    )


TO_HERE = {"qd.destination": "a", "qd.cost": 1}


@pytest.mark.parametrize(
    "attach",
    [
        sender(),
        Attach("link", 0, True, source=Source(address="q"), target=Target()),
    ],
)
def test_who_is_nobody_s_business_is_refused(attach: Attach) -> None:
    assert Neighbour().refuses(attach).condition == "qd:connection-role"


def test_a_control_link_is_for_who_speaks_the_protocol() -> None:
    control = sender(target=Target(capabilities=(Symbol("qd.router"),)))
    assert Neighbour().refuses(control).condition == "qd:forbidden"


@pytest.mark.parametrize(
    "wrong",
    [
        {"qd.cost": None},
        {"qd.cost": -1},
        {"qd.cost": True},
        {"qd.cost": "1"},
        {"qd.cost": ULong(2**63)},
        {"qd.destination": 7},
        {"qd.phase": 10},
        {"qd.phase": 23},
        {"qd.phase": "F"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    assert Neighbour().refuses(sender(TO_HERE | wrong)).condition == "amqp:invalid-field"


def test_a_destination_without_a_name_or_a_way_is_refused() -> None:
    assert Neighbour().refuses(sender(TO_HERE, target=Target(address="/"))).condition == (
        "amqp:invalid-field"
    )
    away = TO_HERE | {"qd.destination": "far"}
    assert Neighbour().refuses(sender(away)).condition == "qd:no-route-to-dest"
    closed = sender(TO_HERE, target=Target(address="$cbs"))
    assert Neighbour().refuses(closed).condition == "amqp:not-found"
    receiver = Attach(
        "link",
        0,
        True,
        source=Source(address="q"),
        target=Target(),
        properties={Symbol(key): value for key, value in TO_HERE.items()},
    )
    assert Neighbour().refuses(receiver).condition == "amqp:invalid-field"


def test_a_refused_link_leaves_nothing_behind() -> None:
    neighbour = Neighbour()
    neighbour.refuses(sender(TO_HERE | {"qd.cost": -1}))
    assert len(neighbour.router.table) == 0
