"""The places of a connector: how it goes round them, and which of those a peer names it goes to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.failover import MOST_TAKEN
from router.config.connectors import ConnectorSettings
from router.config.secret import Secret
from router.net.places import Place, Places

HOME = Place("a", 1, "a")


def connector(**fields: Any) -> ConnectorSettings:
    """Return the settings of a connector to host a, port 1."""
    return ConnectorSettings(host="a", port=1, **fields)


def named(*places: str) -> list[dict[str, str]]:
    """Return a failover-server-list of texts `host:port`."""
    pairs = [place.rpartition(":")[::2] for place in places]
    return [{"network-host": host, "port": port} for host, port in pairs]


def shown(places: Places) -> str:
    """Return the round, as management tells it."""
    return ", ".join(map(str, places.round))


def test_a_connector_alone_has_nowhere_else_to_go() -> None:
    places = Places(connector())
    assert places.here == HOME
    for _ in range(3):
        assert not places.advance()
        assert places.round == (HOME,)


def test_it_goes_round_and_says_when_it_has_been_everywhere() -> None:
    places = Places(connector(backup_urls=("b:2", "amqp://[::1]:3")))
    seen = [(str(places.here), places.advance()) for _ in range(6)]
    once = [("amqp://a:1", True), ("amqp://b:2", True), ("amqp://[::1]:3", False)]
    assert seen == once * 2


def test_after_a_success_a_round_begins_where_it_is() -> None:
    places = Places(connector(backup_urls=("b:2", "c:3")))
    assert places.advance()
    assert places.advance()
    places.restart_round()
    assert [places.advance() for _ in range(3)] == [True, True, False]


def test_a_place_that_is_configured_twice_is_one() -> None:
    assert shown(Places(connector(backup_urls=("b:2", "A:1")))) == "amqp://a:1, amqp://b:2"


def test_what_a_peer_names_is_gone_to_after_what_is_configured() -> None:
    places = Places(connector(backup_urls=("b:2",), failover_hosts=("C",)))
    learnt = places.learn(named("c:3", "b:2", "a:9", "d:4"))
    assert [str(place) for place in learnt.places] == ["amqp://c:3", "amqp://a:9"]
    assert learnt.left_out == (("amqp://d:4", "d is not among failoverHosts"),)
    assert shown(places) == "amqp://a:1, amqp://b:2, amqp://c:3, amqp://a:9"


def test_another_list_takes_the_place_of_the_first_and_here_stays() -> None:
    places = Places(connector(failover_hosts=("b", "c", "d")))
    places.learn(named("b:2", "c:3"))
    places.advance()
    places.learn(named("d:4"))
    assert shown(places) == "amqp://b:2, amqp://d:4, amqp://a:1"
    places.learn([])
    assert shown(places) == "amqp://b:2, amqp://a:1"
    places.advance()
    places.learn([])
    assert shown(places) == "amqp://a:1"


def test_it_learns_nothing_of_what_is_no_list() -> None:
    places = Places(connector(failover_hosts=("b",)))
    places.learn(named("b:2"))
    with pytest.raises(ValueError, match="is not a list"):
        places.learn("b:2")
    assert shown(places) == "amqp://a:1, amqp://b:2"


def test_any_host_will_do_where_that_is_said_and_there_is_no_password() -> None:
    places = Places(connector(failover_hosts=("*",)))
    assert not places.learn(named("x:1")).left_out
    assert shown(places) == "amqp://a:1, amqp://x:1"
    # the configuration is checked as a whole elsewhere; this is the second lock
    for login in ({"sasl_username": "u"}, {"sasl_password": Secret.parse("t0ken")}):
        locked = Places(connector(failover_hosts=("*",), **login))
        assert locked.learn(named("x:1")).left_out


def test_nobody_goes_where_another_protocol_is_spoken() -> None:
    places = Places(connector(failover_hosts=("b",)))
    learnt = places.learn([{"network-host": "b", "scheme": "amqps"}])
    assert learnt.left_out == (
        ("amqp://b:5671", "this connector does not support the scheme amqps"),
    )


def test_what_is_configured_anew_counts_at_once() -> None:
    places = Places(connector(backup_urls=("b:2",), failover_hosts=("c",)))
    places.learn(named("c:3"))
    places.advance()
    places.renew(connector(backup_urls=("d:4", "b:2"), failover_hosts=("c",)))
    assert shown(places) == "amqp://b:2, amqp://c:3, amqp://a:1, amqp://d:4"
    places.renew(connector())
    assert shown(places) == "amqp://a:1"


_NAMES = st.lists(st.sampled_from(["a:1", "a:2", "b:1", "c:1", "d:1", "d:2"]), max_size=40)


@given(st.lists(st.none() | _NAMES, max_size=20), st.sampled_from([(), ("b",), ("b", "c"), ("*",)]))
def test_the_round_is_bounded_and_here_is_in_it(
    steps: list[list[str] | None], hosts: tuple[str, ...]
) -> None:
    places = Places(connector(backup_urls=("b:1",), failover_hosts=hosts))
    for step in steps:
        if step is None:
            here, second = places.here, places.round[1]
            places.advance()
            assert places.here == second != here
        else:
            here = places.here
            places.learn(named(*step))
            assert places.here == here
        every = places.round
        assert len(set(every)) == len(every) <= 2 + MOST_TAKEN + 1
        assert every[0] == places.here
        assert HOME in every
        allowed = {"a", "b", *hosts}
        assert "*" in hosts or {place.host for place in every} <= allowed


def test_tls_is_used_for_all_of_them() -> None:
    places = Places(
        connector(ssl_profile="p", backup_urls=("amqps://b:2",), failover_hosts=("c", "d"))
    )
    learnt = places.learn([*named("c:3"), {"network-host": "d", "scheme": "amqps"}])
    assert learnt.left_out == ()
    assert shown(places) == "amqps://a:1, amqps://b:2, amqps://c:3, amqps://d:5671"
    plain = Places(connector(failover_hosts=("d",)))
    [(_, reason)] = plain.learn([{"network-host": "d", "scheme": "amqps"}]).left_out
    assert reason == "this connector does not support the scheme amqps"
