"""Sets of hosts from which the users of a group may connect."""

from __future__ import annotations

import ipaddress
from bisect import bisect_right
from collections.abc import Iterable

from router.config.policy_kinds import ANY, LOCALHOST, host_range


class RemoteHosts:
    """Set of hosts, given by entries of remoteHosts; a look-up takes logarithmic time."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._has_all = False
        self._has_localhost = False
        ranges: dict[int, list[tuple[int, int]]] = {4: [], 6: []}
        for entry in entries:
            if entry == ANY:
                self._has_all = True
            elif entry == LOCALHOST:
                self._has_localhost = True
            else:
                version, low, high = host_range(entry)
                ranges[version].append((low, high))
        # by IP version, the lowest and highest addresses of disjoint ranges, in ascending order
        self._ranges = {version: _merged(each) for version, each in ranges.items()}

    def has(self, host: str) -> bool:
        """Return whether a host, given by its IP address, is in the set."""
        if self._has_all:
            return True
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return False
        # a socket for both families shows an IPv4 peer so
        mapped = getattr(address, "ipv4_mapped", None)
        address = address if mapped is None else mapped
        if self._has_localhost and address.is_loopback:
            return True
        lows, highs = self._ranges[address.version]
        at = bisect_right(lows, int(address)) - 1
        return at >= 0 and int(address) <= highs[at]


def _merged(ranges: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the lowest and the highest numbers of the ranges, with overlapping ranges joined."""
    lows: list[int] = []
    highs: list[int] = []
    for low, high in sorted(ranges):
        if highs and low <= highs[-1]:
            highs[-1] = max(highs[-1], high)
        else:
            lows.append(low)
            highs.append(high)
    return lows, highs
