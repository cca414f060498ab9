"""A simulated router: each life has parts of its own, and chance of its own seed."""

from __future__ import annotations

from router.config.load import parse_configuration
from router.simulation.host import SimulatedRouter, shared_buffer
from router.simulation.virtual_clock import EventScheduler

CONFIGURATION = """
[[address]]
prefix = "news"
distribution = "multicast"
"""


def host(name: str = "a", seed: str = "1") -> SimulatedRouter:
    """Create a router that is not started yet."""
    return SimulatedRouter(
        name,
        parse_configuration(CONFIGURATION, source="a test"),
        EventScheduler(),
        seed,
        shared_buffer(),
    )


def test_a_host_is_configured_as_a_router_and_named_as_the_host() -> None:
    made = host()
    made.start()

    assert made.parts.container_id == "a"
    assert made.reach.me == "a"
    assert made.control.forwarder is made.forwarder
    assert made.parts.table.treatment("news.today") != made.parts.table.treatment("other")


def test_each_life_has_parts_of_its_own_and_who_listens_hears_of_each() -> None:
    made = host()
    heard = []
    made.on_start.append(lambda each: heard.append(each.parts))
    made.start()
    made.start()
    made.kill()
    assert not made.runs
    made.kill()
    made.start()

    assert len(heard) == 2
    assert heard[0] is not heard[1]
    assert made.lives == 2


def test_clocks_are_looked_at_while_it_runs() -> None:
    made = host()
    made.start()
    looks: list[float] = []
    made.hub.timer_callbacks.append(looks.append)
    scheduler = made.scheduler
    scheduler.run(scheduler.now + 10)
    assert 38 <= len(looks) <= 41

    made.pause()
    scheduler.run(scheduler.now + 10)
    assert len(looks) <= 41
    made.resume()
    made.resume()
    scheduler.run(scheduler.now + 10)
    assert 76 <= len(looks) <= 83


def test_names_of_dynamic_nodes_are_the_same_for_the_same_seed_and_never_twice() -> None:
    def names(seed: str) -> list[str]:
        made = host(seed=seed)
        made.start()
        return [made.parts.table.create_dynamic("c", "l")[0] for _ in range(3)]

    assert names("1") == names("1")
    assert len({*names("1"), *names("2")}) == 6


def test_a_turn_is_taken_at_the_time_that_it_is() -> None:
    made = host()
    made.start()
    scheduler = made.scheduler
    scheduler.run(scheduler.now + 0.1)
    times: list[float] = []

    made.turn(lambda: times.append(made.hub.turn.now))

    assert times == [scheduler.now]
