"""The link properties of an attach that is routed to a container through other routers."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from router.amqp.framing import decode_frame_body, decode_frame_header, encode_frame
from router.amqp.performatives import Attach
from router.amqp.types import Symbol
from router.core.addresses.link_origins import Origin
from router.core.link_routes.routed_attach import (
    MAX_COST,
    RoutedAttach,
    is_routed_attach,
    read_routed_attach,
    route_changed,
)
from router.core.routers.link_properties import PROPERTIES
from router.errors import AmqpError, Scope

WHO = Origin("a#5", "l", "client", False, "anonymous")
KINDS = st.none() | st.booleans() | st.integers(0, 99) | st.text(max_size=5)
PROPERTY_MAPS = st.dictionaries(
    st.sampled_from(["colour", "qd.cost", "qd.link-route", "qd.properties"]).map(Symbol), KINDS
)


def attach(properties: dict[Any, Any] | None) -> Attach:
    return Attach("hop", 0, False, properties=properties)


def over_the_wire(frame: Attach) -> Attach:
    octets = encode_frame(0, frame)
    header = decode_frame_header(octets)
    decoded, _ = decode_frame_body(octets, header.body_offset, header.size)
    assert isinstance(decoded, Attach)
    return decoded


@given(
    properties=st.none() | PROPERTY_MAPS,
    is_container=st.booleans(),
    user=st.none() | st.text(max_size=5),
    cost=st.integers(0, MAX_COST),
)
def test_what_is_told_is_heard(
    properties: dict[Any, Any] | None, is_container: bool, user: str | None, cost: int
) -> None:
    origin = attrs.evolve(WHO, is_container=is_container, user=user)
    routed_attach = RoutedAttach("Cq", "c", cost, origin, properties)
    frame = over_the_wire(attach(routed_attach.to_properties()))
    assert is_routed_attach(frame)
    assert read_routed_attach(frame) == routed_attach


def test_a_cost_that_is_beyond_all_costs() -> None:
    told = RoutedAttach("Cq", "c", MAX_COST + 1, WHO, None).to_properties()
    assert read_routed_attach(attach(told)).cost == MAX_COST


@pytest.mark.parametrize("properties", [None, {}, {Symbol("qd.destination"): "c"}])
def test_other_links_are_no_travellers(properties: dict[Any, Any] | None) -> None:
    assert not is_routed_attach(attach(properties))


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("qd.link-route", 5),
        ("qd.destination", None),
        ("qd.cost", "much"),
        ("qd.cost", True),
        ("qd.cost", None),
        ("qd.name", None),
        ("qd.container", 5),
        ("qd.client", 5),
        ("qd.user", 5),
        (PROPERTIES, "none"),
    ],
)
def test_what_is_told_wrong_is_an_error_of_the_link(key: str, wrong: Any) -> None:
    told = RoutedAttach("Cq", "c", 1, WHO, {}).to_properties()
    with pytest.raises(AmqpError) as caught:
        read_routed_attach(attach({**told, Symbol(key): wrong}))
    assert caught.value.condition == "amqp:invalid-field"
    assert caught.value.scope is Scope.LINK


def test_who_says_that_the_way_is_another() -> None:
    assert route_changed().condition == "trioute:route-changed"
