"""Fairness between hosts: if there are too many connections, the host with the most makes room.

A host may open any number of connections. Connections and waiting requests are counted by host
address, so that a host with many of them loses its own before other hosts lose any. With IPv6, a
host usually has very many addresses, with their first 64 bits in common (`counted_host`).
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")


_NETWORK_BYTES: Final = 8
# Addresses that are counted one by one: link-local ones, and those that stand for IPv4 (RFC 6052).
_SINGLE: Final = ("fe80:", "64:ff9b:")


def counted_host(address: str) -> str:
    """Return the host, or IPv6 network, that a peer with this IP address is counted as.

    A network has 64 bits, except for link-local addresses and those that stand for IPv4.
    """
    plain = address.partition("%")[0].lower()
    if ":" not in plain or plain.startswith(_SINGLE):
        return address
    try:
        octets = socket.inet_pton(socket.AF_INET6, plain)
    except OSError:
        return address
    network = octets[:_NETWORK_BYTES] + bytes(len(octets) - _NETWORK_BYTES)
    return f"{socket.inet_ntop(socket.AF_INET6, network)}/64"


def _any_host(_: str) -> bool:
    return True


class HostFairQueue(Generic[T]):
    """Queue of members grouped by host, in order of arrival within each host.

    Every operation takes constant time, except for `next`, which may have to skip hosts.
    """

    def __init__(self) -> None:
        # the host whose turn is next comes first
        self._hosts: dict[str, dict[T, None]] = {}
        # hosts by their number of members, which is the index; the hosts with the most come last
        self._by_size: list[dict[str, None]] = [{}]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def count(self, host: str) -> int:
        """Return how many members a host has."""
        return len(self._hosts.get(host, ()))

    def add(self, host: str, member: T) -> None:
        """Add a new member after all others of its host."""
        members = self._hosts.setdefault(host, {})
        size = len(members)
        members[member] = None
        self._count += 1
        self._by_size[size].pop(host, None)
        if len(self._by_size) == size + 1:
            self._by_size.append({})
        self._by_size[size + 1][host] = None

    def discard(self, host: str, member: T) -> bool:
        """Remove a member; return False if the host had no such member."""
        members = self._hosts.get(host)
        if members is None or member not in members:
            return False
        size = len(members)
        del members[member]
        self._count -= 1
        del self._by_size[size][host]
        if members:
            self._by_size[size - 1][host] = None
        else:
            del self._hosts[host]
        while len(self._by_size) > 1 and not self._by_size[-1]:
            self._by_size.pop()
        return True

    def largest(self) -> str:
        """Return the host with the most members; of several, the first that reached this count.

        Raises LookupError if there are no members.
        """
        if not self._count:
            raise LookupError("the queue has no members")
        return next(iter(self._by_size[-1]))

    def oldest(self, host: str) -> T:
        """Return the host's member that arrived first."""
        return next(iter(self._hosts[host]))

    def newest(self, host: str) -> T:
        """Return the host's member that arrived last."""
        return next(reversed(self._hosts[host]))

    def next_host(self) -> str:
        """Return the host whose turn is next.

        Raises LookupError if there are no members.
        """
        if not self._count:
            raise LookupError("the queue has no members")
        return next(iter(self._hosts))

    def next(self, may: Callable[[str], bool] = _any_host) -> T | None:
        """Remove and return the oldest member of the next host that `may` allows.

        Hosts take turns: this host then moves behind all others. Returns None if no host is
        allowed.
        """
        host = next(filter(may, self._hosts), None)
        if host is None:
            return None
        member = self.oldest(host)
        self.discard(host, member)
        if host in self._hosts:
            self._hosts[host] = self._hosts.pop(host)
        return member
