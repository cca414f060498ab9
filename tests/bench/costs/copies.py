"""Costs of multicast messages with very many receivers, and of the credit of their senders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from bench.costs.world import SESSION_LINKS, Peer, World, attaches, flow, measured, transfers
from router.amqp.framing import encode_frame
from router.amqp.performatives import Accepted, Disposition, Transfer
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.model import AddressSettings, Configuration

CREDIT: Final = 10
# No end of a credit is reached by what is sent here.
MUCH: Final = 1000
NAME: Final = "q"
TREATED: Final = {
    treatment: Configuration(addresses=(AddressSettings(prefix=NAME, distribution=treatment),))
    for treatment in ("multicast", "balanced", "closest")
}
LARGE: Final = b"\x00\x53\x75\xb0\x00\x00\xea\x60" + bytes(60_000)


def named(_: int) -> str:
    """Return the address that all links share."""
    return NAME


def each(number: int) -> str:
    """Return an address of its own for each number."""
    return f"q{number}"


def receiving(
    world: World, count: int, address: Callable[[int], str] = named, credit: int = CREDIT
) -> Peer:
    """Create a peer with `count` receivers."""
    peer = world.peer()
    for channel, first, some in _sessions(count):
        if channel:
            peer.begin()
        peer.say(
            attaches(some, address, receives=True, first=first, channel=channel, credit=credit)
        )
    return peer


def sending(world: World, address: str, count: int = 1) -> Peer:
    """Create a peer with `count` senders."""
    peer = world.peer()
    peer.say(attaches(count, lambda _: address, receives=False))
    return peer


def _sessions(count: int) -> Iterator[tuple[int, int, int]]:
    """Yield each channel that `count` links need, with its first link and its number of links."""
    for channel, first in enumerate(range(0, count, SESSION_LINKS)):
        yield channel, first, min(SESSION_LINKS, count - first)


def multicast(count: int, *, credit: int = CREDIT) -> list[float]:
    """Send one message that so many receivers get."""
    world = World(TREATED["multicast"])
    receivers = receiving(world, count, credit=credit)
    sender = sending(world, NAME)
    turns = measured(world, lambda: sender.transfer(transfers(1)))
    sent = sum(session.outgoing.count for session in receivers.connection.local_sessions.values())
    assert sent == (count if credit else 0), f"{sent} copies"
    return turns


def multicast_held(count: int) -> list[float]:
    """Send one message to so many receivers that have no credit."""
    world = World(TREATED["multicast"])
    receiving(world, count, credit=0)
    sender = sending(world, NAME)
    _force_credit(sender)
    return measured(world, lambda: sender.transfer(transfers(1)))


def _force_credit(sender: Peer) -> None:
    """Let a peer send, as one may that was given credit when receivers had some."""
    for session in sender.connection.local_sessions.values():
        for link in session.local_links.values():
            link.credit = MUCH


def multicast_in_frames(count: int) -> list[float]:
    """Send one message in four frames."""
    world = World(TREATED["multicast"])
    receiving(world, count)
    sender = sending(world, NAME)
    body = LARGE[: 4 * 500]
    pieces = [LARGE[:8].replace(b"\0\0\xea\x60", (1992).to_bytes(4, "big")) + body[8:500]]
    pieces += [body[at : at + 500] for at in range(500, 2000, 500)]
    frames = []
    for at, piece in enumerate(pieces):
        first: dict[str, Any] = {}
        if at == 0:
            first = {"delivery_id": 0, "delivery_tag": b"0", "message_format": 0}
        frames.append(encode_frame(0, Transfer(0, more=at < 3, **first), piece))
    return measured(world, lambda: sender.transfer(frames))


def settle_copies(count: int) -> list[float]:
    """Have all receivers of one message settle it."""
    world = World(TREATED["multicast"])
    receivers = receiving(world, count)
    sender = sending(world, NAME)
    sender.transfer(transfers(1))
    said = [
        encode_frame(channel, Disposition(True, 0, some - 1, True, Accepted()))
        for channel, _, some in _sessions(count)
    ]
    turns = measured(world, lambda: receivers.say(said))
    [session] = sender.connection.local_sessions.values()
    assert session.incoming.count == 0, "not all have settled"
    return turns


def settle_as_sender(count: int) -> list[float]:
    """Have a sender settle one message that so many receivers have."""
    return _say_behind(count, [encode_frame(0, Disposition(False, 0, 0, True))])


def lose_sender(count: int) -> list[float]:
    """Lose the sender of a message, half of which so many receivers have."""
    world, sender = _half_sent(count)
    del world
    return measured(sender.world, sender.lose)


def abort(count: int) -> list[float]:
    """Abort a message, half of which so many receivers have."""
    world, sender = _half_sent(count)
    return measured(world, lambda: sender.say([encode_frame(0, Transfer(0, aborted=True))]))


def abort_waiting(count: int) -> list[float]:
    """Abort a message, half of which waits for so many receivers."""
    world, sender = _half_sent(count, credit=0)
    return measured(world, lambda: sender.say([encode_frame(0, Transfer(0, aborted=True))]))


def _half_sent(count: int, credit: int = CREDIT) -> tuple[World, Peer]:
    world = World(TREATED["multicast"])
    receiving(world, count, credit=credit)
    sender = sending(world, NAME)
    _force_credit(sender)
    sender.transfer(transfers(1, more=True))
    return world, sender


def _say_behind(count: int, frames: Iterable[bytes]) -> list[float]:
    world = World(TREATED["multicast"])
    receiving(world, count)
    sender = sending(world, NAME)
    sender.transfer(transfers(1))
    return measured(world, lambda: sender.say(frames))


def one_more_credit(treatment: str) -> Callable[[int], list[float]]:
    """One of so many receivers gives credit, some times, and each time its senders are seen to."""

    def run(count: int) -> list[float]:
        world = World(TREATED[treatment])
        receivers = receiving(world, count)
        sending(world, NAME)

        def act() -> None:
            for credit in range(1, 11):
                receivers.say([flow(0, CREDIT + credit)])

        return measured(world, act)

    return run


def one_of_senders(count: int) -> list[float]:
    """Measure a receiver that gives credit ten times while `count` senders are attached."""
    world = World()
    receivers = receiving(world, 1)
    senders = world.peer()
    for channel, first, some in _sessions(count):
        if channel:
            senders.begin()
        senders.say(attaches(some, named, receives=False, first=first, channel=channel))

    def act() -> None:
        for credit in range(1, 11):
            receivers.say([flow(0, CREDIT + credit)])

    return measured(world, act)


def one_of_many_dry(treatment: str) -> Callable[[int], list[float]]:
    """Send messages where the last of so many receivers alone has credit."""

    def run(count: int) -> list[float]:
        world = World(TREATED[treatment])
        receivers = receiving(world, count, credit=0)
        sender = sending(world, NAME)
        last = (count - 1) % SESSION_LINKS
        receivers.say([flow(last, MUCH, (count - 1) // SESSION_LINKS)])
        return measured(world, lambda: sender.transfer(transfers(10)))

    return run


def exchange(count: int, *, is_for_all: bool = True) -> World:
    """Create a router with an exchange that has `count` bindings."""
    bindings: dict[str, Any] = {"exchange_name": "e"}
    made = (
        BindingSettings(
            **bindings,
            name=f"b{number}",
            binding_key=None if is_for_all else f"k{number}",
            next_hop_address=each(number),
        )
        for number in range(count)
    )
    return World(
        Configuration(exchanges=(ExchangeSettings(name="e", address="e"),), bindings=tuple(made))
    )


def through_exchange(count: int) -> list[float]:
    """Send one message to an exchange, which so many places are for."""
    world = exchange(count)
    receivers = receiving(world, count, each)
    sender = sending(world, "e")
    _force_credit(sender)
    turns = measured(world, lambda: sender.transfer(transfers(1)))
    sent = sum(session.outgoing.count for session in receivers.connection.local_sessions.values())
    assert sent == count, f"{sent} copies"
    return turns


def credit_through_exchange(count: int) -> list[float]:
    """Measure a receiver at one of `count` bound addresses that gives credit three times."""
    world = exchange(count)
    receivers = receiving(world, count, each)
    sending(world, "e")

    def act() -> None:
        for credit in range(1, 4):
            receivers.say([flow(0, CREDIT + credit)])

    return measured(world, act)


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "multicast: one message for n receivers": multicast,
    "multicast: one message for n receivers without credit": multicast_held,
    "multicast: one message in four frames for n receivers": multicast_in_frames,
    "multicast: a message that n receivers settle": settle_copies,
    "multicast: a message of n receivers that its sender settles": settle_as_sender,
    "multicast: a half-sent message that its sender aborts": abort,
    "multicast: a half-sent message that waits and that its sender aborts": abort_waiting,
    "multicast: a half-sent message whose sender is lost": lose_sender,
    "multicast: ten flows of one of n receivers": one_more_credit("multicast"),
    "balanced: ten flows of one of n receivers": one_more_credit("balanced"),
    "balanced: ten flows of a receiver with n senders": one_of_senders,
    "balanced: ten messages, the last of n receivers has credit": one_of_many_dry("balanced"),
    "exchange: one message for n next hops": through_exchange,
    "exchange: three flows of the receiver of one of n next hops": credit_through_exchange,
}
