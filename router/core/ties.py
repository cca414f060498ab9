"""Addresses that have to do with others: where messages go by that, and whose credit hangs on it.

Where an address has a fallback, what is sent to it goes there while nobody else receives it
(docs/decisions/0053-fallback.md). Where it has an exchange, the subject says where it goes
(docs/decisions/0054-exchanges.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from router.core.address import MESH, MULTICAST, OWN_TREE, Address, Producer, Ties


def ties_of(address: Address) -> Ties:
    """Those of an address, from now on at least."""
    if address.ties is None:
        address.ties = Ties()
    return address.ties


def tie(primary: Address, fallback: Address) -> None:
    """From now on one address is the fallback of another."""
    ties_of(primary).fallback = fallback
    ties_of(fallback).primary = primary


def untie(primary: Address, fallback: Address) -> None:
    """From now on it is not any more."""
    ties_of(primary).fallback = None
    ties_of(fallback).primary = None
    forget(primary)
    forget(fallback)


def forget(address: Address) -> None:
    """Keep no ties of an address that has none."""
    if address.ties is not None and address.ties.is_none():
        address.ties = None


def is_exchange(address: Address) -> bool:
    """Whether what is sent to an address goes where its subject leads, which is found out here."""
    return address.ties is not None and address.ties.exchange is not None


def is_received_from(address: Address) -> bool:
    """Whether anybody gets what is sent here to an address."""
    if not address.sided or address.treatment != MULTICAST:
        return bool(address.consumers)
    return any(each.side != MESH or each.tree == OWN_TREE for each in address.consumers)


def has_senders(address: Address) -> bool:
    """Whether anybody here sends what may have to go to receivers of an address elsewhere.

    What comes from another router does not, unless an exchange gives it on from here.
    """
    if address.ties is None:
        return any(producer.side != MESH for producer in address.producers)
    fed = {id(each) for each in address.ties.fed_by.values()}
    return any(
        producer.side != MESH or id(source) in fed
        for source in sources(address)
        for producer in source.producers
        if not (producer.is_fallback and _is_fallback_of(address, source))
    )


def served_by(address: Address) -> Address:
    """Where receivers are of what is sent to an address, if there are any: there, or at its
    fallback.
    """
    ties = address.ties
    if ties is None or ties.fallback is None or address.consumers:
        return address
    return ties.fallback if ties.fallback.consumers else address


def is_leaving(address: Address) -> bool:
    """Whether what waits at an address is on its way to where others receive (`fallbacks`)."""
    if address.ties is None:
        return False
    primary = address.ties.primary or address
    moving = None if primary.ties is None else primary.ties.moving
    return moving is not None and moving.source is address


def hops(address: Address) -> Iterator[Address]:
    """The addresses that what is sent to one may go on to."""
    ties = address.ties
    if ties is not None:
        if ties.fallback is not None:
            yield ties.fallback
        if ties.exchange is not None:
            yield from ties.exchange.hops


def places(address: Address) -> list[Address]:
    """The addresses whose receivers get what is sent to this one, or some of it."""
    return [place for place in each_place(address) if place is not None]


def each_place(address: Address) -> Iterator[Address | None]:
    """Yield those addresses, and None wherever one is looked at that is none of them, or known."""
    found: set[Address] = set()
    seen: set[Address] = set()
    pending = [iter([address])]
    while pending:
        each = next(pending[-1], None)
        if each is None:
            pending.pop()
            continue
        if each in seen:
            yield None
            continue
        seen.add(each)
        place = served_by(each)
        if is_received_from(place) and place not in found:
            found.add(place)
            yield place
        else:
            yield None
        if each.ties is not None and each.ties.exchange is not None:
            # there may be others by the time that the last of them is looked at
            pending.append(iter(list(each.ties.exchange.hops)))


def sources(address: Address) -> list[Address]:
    """The addresses whose senders' messages may come to the receivers of this one."""
    found = {id(address): address}
    pending = [address]
    while pending:
        ties = pending.pop().ties
        if ties is None:
            continue
        feeding = list(ties.fed_by.values())
        if ties.primary is not None and not ties.primary.consumers:
            feeding.append(ties.primary)
        for each in feeding:
            if id(each) not in found:
                found[id(each)] = each
                pending.append(each)
    return list(found.values())


def producers(place: Address) -> list[Producer]:
    """The senders whose messages may come to the receivers of an address."""
    return [
        producer
        for source in sources(place)
        for producer in source.producers
        # what a fallback itself gave on is not for it
        if not (producer.is_fallback and _is_fallback_of(place, source))
    ]


def _is_fallback_of(place: Address, address: Address) -> bool:
    return address.ties is not None and address.ties.fallback is place


def held(place: Address) -> int:
    """The credit that those have."""
    return sum(producer.link.credit for producer in producers(place))
