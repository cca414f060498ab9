"""Names of peers and listening sockets, and under which name a peer is counted."""

from __future__ import annotations

from router.net.endpoint_names import endpoint_counted_host, endpoint_host, endpoint_name


def test_names_of_ipv6_are_in_brackets() -> None:
    assert endpoint_name("::1", 5672) == "[::1]:5672"
    assert endpoint_name("127.0.0.1", 5672) == "127.0.0.1:5672"
    for host in ("::1", "127.0.0.1"):
        assert endpoint_host(endpoint_name(host, 5672)) == host


def test_a_peer_counts_as_its_host_or_network() -> None:
    assert endpoint_counted_host("192.0.2.7:40000") == "192.0.2.7"
    assert endpoint_counted_host("[2001:db8::7]:40000") == "2001:db8::/64"
