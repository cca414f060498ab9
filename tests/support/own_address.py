"""Address of this machine that is not its loopback address, for what depends on the difference."""

from __future__ import annotations

import ipaddress
import socket

import pytest

# Reserved for documentation (RFC 5737): to connect a UDP socket there sends nothing.
_ELSEWHERE = ("198.51.100.1", 9)


def own_address() -> str:
    """Return the IPv4 address from which this machine would reach others; skip without one.

    Connections to it stay within the machine, but are not those of the loopback address.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
            found: str = probe.getsockname()[0]
        except OSError:
            found = "127.0.0.1"
    if ipaddress.ip_address(found).is_loopback:
        pytest.skip("THIS MACHINE HAS ONLY A LOOPBACK ADDRESS: nothing is tried over another one")
    return found
