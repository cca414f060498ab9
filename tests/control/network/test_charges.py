"""Neighbours are charged for what they tell of others, and not for what they take back."""

from __future__ import annotations

from bench.costs.network import World

from router.engine.account import ROUTES


def charged(world: World, router: str, neighbour: str) -> int:
    connection = world[router].forwarder.reach.neighbours[neighbour]
    return int(connection.account.of_kind(ROUTES))


def test_a_neighbour_is_charged_for_the_addresses_that_it_tells_of() -> None:
    world = World("a", "b", "c")
    # c's addresses come to a by way of b
    world.want("c", 200)
    world.rest(2)
    protocol = world["a"].hub.network.protocol
    told = charged(world, "a", "b")
    assert told == protocol.mobile.octets_told["b"] > 200 * len("M0address/")
    assert world["a"].hub.turn.ledger.by_kind[ROUTES] == told
    assert charged(world, "b", "a") < told
    world.want("c", 200, None)
    world.rest(2)
    assert charged(world, "a", "b") == protocol.mobile.octets_told["b"] < told


def test_nothing_is_charged_to_a_connection_that_is_over() -> None:
    world = World("a", "b")
    world.want("b", 200)
    world.rest(2)
    account = world["a"].forwarder.reach.neighbours["b"].account
    assert account.of_kind(ROUTES) > 0
    world["b"].kill()
    world.rest(2)
    assert account.total == 0
    assert world["a"].hub.turn.ledger.by_kind[ROUTES] == 0
