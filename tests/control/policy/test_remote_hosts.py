"""Hosts from which users may connect, compared with `ipaddress`."""

from __future__ import annotations

import ipaddress
from typing import Literal

import pytest
from hypothesis import given, strategies as st

from router.control.policy.remote_hosts import RemoteHosts

from support.examples import examples

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@st.composite
def networks(draw: st.DrawFn) -> tuple[str, Address, Address]:
    """Return an entry, and the first and the last address that it contains."""
    version: Literal[4, 6] = draw(st.sampled_from([4, 6]))
    first, last = sorted(draw(st.lists(st.ip_addresses(v=version), min_size=2, max_size=2)))
    kind = draw(st.sampled_from(["one", "range", "network"]))
    if kind == "one":
        return str(first), first, first
    if kind == "range":
        return f"{first} - {last}", first, last
    bits = draw(st.integers(0, 32 if version == 4 else 128))
    network = ipaddress.ip_network(f"{first}/{bits}", strict=False)
    return f"{first}/{bits}", network[0], network[-1]


@given(st.lists(networks(), max_size=6), st.data())
@examples(200)
def test_a_host_is_in_the_set_if_an_entry_contains_it(
    entries: list[tuple[str, Address, Address]], data: st.DataObject
) -> None:
    hosts = RemoteHosts(text for text, _, _ in entries)
    ends = [int(end) + by for _, *pair in entries for end in pair for by in (-1, 0, 1)]
    version = data.draw(st.sampled_from([4, 6]))
    most = 2 ** (32 if version == 4 else 128) - 1
    number = data.draw(st.sampled_from([at for at in ends if 0 <= at <= most] or [0]))
    host = (ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address)(number)
    expected = any(
        first.version == version and int(first) <= number <= int(last) for _, first, last in entries
    )
    if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped is not None:
        return
    assert hosts.has(str(host)) is expected
    if version == 4:
        assert hosts.has(f"::ffff:{host}") is expected


@pytest.mark.parametrize(
    ("entry", "inside", "outside"),
    [
        ("localhost", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"], ["10.0.0.1", "::2"]),
        ("*", ["10.0.0.1", "fe80::1%eth0", "", "client"], []),
        ("fe80::/16", ["fe80::1", "fe80::1%eth0", "FE80::1"], ["fe81::1"]),
        ("10.0.0.0/8", ["10.255.255.255"], ["11.0.0.0", "9.255.255.255"]),
        ("10.0.0.9/8", ["10.0.0.0"], []),
        ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255"], ["::1", "::"]),
        ("::/0", ["::", "::1"], ["127.0.0.1", "::ffff:127.0.0.1"]),
    ],
)
def test_some_hosts(entry: str, inside: list[str], outside: list[str]) -> None:
    hosts = RemoteHosts([entry])
    assert [host for host in inside if not hosts.has(host)] == []
    assert [host for host in outside if hosts.has(host)] == []


@pytest.mark.parametrize("host", ["", "client", "10.0.0.1.", "0x7f.1", "127.1", "%", "1" * 999])
def test_what_is_no_ip_address_is_in_no_set_but_all(host: str) -> None:
    assert not RemoteHosts(["localhost", "0.0.0.0/0", "::/0"]).has(host)
    assert not RemoteHosts().has(host)
