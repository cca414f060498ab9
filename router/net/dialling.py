"""Connect sockets, and describe failures to connect in words that operators understand."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Final

import trio

from router.config.endpoints import AddressFamily
from router.engine.failures import Failure

# How long a connection attempt may take, including the look-up of the host's name.
CONNECT_TIMEOUT_S: Final = 10.0
# How long one address of a host may take before the next is tried as well (RFC 8305).
NEXT_ADDRESS_S: Final = 0.25
SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
"""Address as the resolver returns it: IPv4, IPv6, or IPv6 if Python does not support it."""
Resolved = tuple[socket.AddressFamily, socket.SocketKind, int, str, SocketAddress]
"""Result of the resolver for one address of a host."""
_FAMILIES: Final = {None: socket.AF_UNSPEC, "IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}


class NotConnected(Exception):
    """Failure to connect a socket; `failure` is the reason."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.reason)


async def connect_socket(
    host: str, port: int, family: AddressFamily | None = None
) -> socket.socket:
    """Return a socket that is connected to a host; raise NotConnected if that fails.

    If the host has several addresses, the next address is tried as soon as the previous one has
    failed or has taken `NEXT_ADDRESS_S`.
    """
    within = f"within {CONNECT_TIMEOUT_S:g} s"
    too_slow = Failure("unresolved", f"the name {host} was not resolved {within}")
    try:
        with trio.fail_after(CONNECT_TIMEOUT_S):
            found = await trio.socket.getaddrinfo(
                host, port, family=_FAMILIES[family], type=socket.SOCK_STREAM
            )
            too_slow = Failure("silent", f"no answer {within}")
            return await _first_connected(found)
    except trio.TooSlowError:
        raise NotConnected(too_slow) from None
    except socket.gaierror as error:
        raise NotConnected(Failure("unresolved", f"{host}: {error.strerror}")) from None
    except UnicodeError:
        raise NotConnected(Failure("unresolved", f"{host}: not a valid host name")) from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise NotConnected(Failure("unreachable", reason)) from None


async def _first_connected(found: Sequence[Resolved]) -> socket.socket:
    """Return a socket that is connected to one of these addresses.

    Raise the error of the first address if no connection can be made.
    """
    errors: dict[int, OSError] = {}
    connected: list[socket.socket] = []
    over = [trio.Event() for _ in found]

    async def attempt(number: int) -> None:
        if number:
            with trio.move_on_after(NEXT_ADDRESS_S):
                await over[number - 1].wait()
        family, kind, protocol, _, address = found[number]
        try:
            sock = trio.socket.socket(family, kind, protocol)
            try:
                await sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except BaseException:
                sock.close()
                raise
        except OSError as error:
            errors[number] = error
            over[number].set()
            return
        connected.append(socket.socket(fileno=sock.detach()))
        nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            for number in range(len(found)):
                nursery.start_soon(attempt, number)
    except BaseException:
        for each in connected:
            each.close()
        raise
    for each in connected[1:]:
        each.close()
    if not connected:
        raise errors.get(0) or OSError("the host has no address")
    return connected[0]
