"""Addresses that have to do with others: who is whose fallback, and where messages go by that.

Where an address has a fallback, what is sent to it goes there while nobody else receives it.
(docs/decisions/0053-fallback.md)
"""

from __future__ import annotations

from router.core.address import Address, Producer, Ties


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
    for address in (primary, fallback):
        ties = ties_of(address)
        if address is primary:
            ties.fallback = None
        else:
            ties.primary = None
        if ties.is_none():
            address.ties = None


def served_by(address: Address) -> Address:
    """Where receivers are of what is sent to an address, if there are any: there, or at its
    fallback.
    """
    ties = address.ties
    if ties is None or ties.fallback is None or address.consumers:
        return address
    return ties.fallback if ties.fallback.consumers else address


def places(address: Address) -> list[Address]:
    """The addresses whose receivers get what is sent to this one."""
    place = served_by(address)
    return [place] if place.consumers else []


def sources(address: Address) -> list[Address]:
    """The addresses whose senders' messages may come to the receivers of this one."""
    ties = address.ties
    found = [address]
    if ties is not None and ties.primary is not None and not ties.primary.consumers:
        found.append(ties.primary)
    return found


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
