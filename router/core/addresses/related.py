"""Ties between addresses, by which messages to one address reach receivers of another.

If an address has a fallback, its messages go there while no other receiver takes them
(docs/decisions/0053-fallback.md). If it has an exchange, each message goes where its subject leads
(docs/decisions/0054-exchanges.md). The credit of senders depends on the receivers that their
messages may reach.
"""

from __future__ import annotations

from collections.abc import Iterator

from router.core.model.address import MESH, MULTICAST, OWN_TREE, Address, Producer, RelatedAddresses


def ties_of(address: Address) -> RelatedAddresses:
    """Return the record of an address's relations to others, which is created if necessary."""
    if address.related_addresses is None:
        address.related_addresses = RelatedAddresses()
    return address.related_addresses


def tie(primary: Address, fallback: Address) -> None:
    """Make one address the fallback of another."""
    ties_of(primary).fallback = fallback
    ties_of(fallback).primary = primary


def untie(primary: Address, fallback: Address) -> None:
    """Undo `tie` for two addresses."""
    ties_of(primary).fallback = None
    ties_of(fallback).primary = None
    remove_empty_ties(primary)
    remove_empty_ties(fallback)


def remove_empty_ties(address: Address) -> None:
    """Remove the record of an address's relations to others, if it has no such relations."""
    if address.related_addresses is not None and address.related_addresses.is_none():
        address.related_addresses = None


def is_exchange(address: Address) -> bool:
    """Return whether this router has an exchange at an address."""
    return address.related_addresses is not None and address.related_addresses.exchange is not None


def is_received_from(address: Address) -> bool:
    """Return whether an address has a receiver for messages from senders at this router."""
    if not address.remote_ends or address.treatment != MULTICAST:
        return bool(address.consumers)
    return any(each.side != MESH or each.tree == OWN_TREE for each in address.consumers)


def has_senders(address: Address) -> bool:
    """Return whether senders at this router may reach an address's receivers at other routers.

    Links from other interior routers count only if an exchange at this router forwards their
    messages.
    """
    if address.related_addresses is None:
        return any(producer.side != MESH for producer in address.producers)
    fed = {id(each) for each in address.related_addresses.fed_by.values()}
    return any(
        producer.side != MESH or id(source) in fed
        for source in feeding_addresses(address)
        for producer in source.producers
        if not (producer.is_fallback and _is_fallback_of(address, source))
    )


def served_by(address: Address) -> Address:
    """Return the address whose receivers get an address's messages: itself or its fallback.

    It is the fallback if only the fallback has receivers.
    """
    ties = address.related_addresses
    if ties is None or ties.fallback is None or address.consumers:
        return address
    return ties.fallback if ties.fallback.consumers else address


def is_being_moved(address: Address) -> bool:
    """Return whether the messages that wait at an address are being moved to another address.

    The other address is its fallback, or the address whose fallback it is.
    """
    if address.related_addresses is None:
        return False
    primary = address.related_addresses.primary or address
    moving = None if primary.related_addresses is None else primary.related_addresses.moving
    return moving is not None and moving.source is address


def hops(address: Address) -> Iterator[Address]:
    """Yield the addresses to which an address's messages may be forwarded directly."""
    ties = address.related_addresses
    if ties is not None:
        if ties.fallback is not None:
            yield ties.fallback
        if ties.exchange is not None:
            yield from ties.exchange.hops


def receiving_addresses(address: Address) -> list[Address]:
    """Return the addresses whose receivers may get messages that are sent to `address`."""
    return [place for place in each_receiving_address(address) if place is not None]


def each_receiving_address(address: Address) -> Iterator[Address | None]:
    """Yield the addresses of `receiving_addresses`, and None for each step that finds none."""
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
        if each.related_addresses is not None and each.related_addresses.exchange is not None:
            # a snapshot, as they may change before the last of them is examined
            pending.append(iter(list(each.related_addresses.exchange.hops)))


def feeding_addresses(address: Address) -> list[Address]:
    """Return the addresses, including `address`, from which messages may reach its receivers."""
    found = {id(address): address}
    pending = [address]
    while pending:
        ties = pending.pop().related_addresses
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
    """Return the producers whose messages may go to the receivers of an address."""
    return [
        producer
        for source in feeding_addresses(place)
        for producer in source.producers
        # messages that a fallback sends do not go back to it
        if not (producer.is_fallback and _is_fallback_of(place, source))
    ]


def _is_fallback_of(place: Address, address: Address) -> bool:
    return address.related_addresses is not None and address.related_addresses.fallback is place


def held_credit(place: Address) -> int:
    """Return the total credit of the producers whose messages may go to an address's receivers."""
    return sum(producer.link.credit for producer in producers(place))
