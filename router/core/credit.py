"""How much senders may send: never more than receivers' credit backs (section 2.6.7).

At the end of a turn each address that something happened to is looked at once. The credit of its
receivers, less what already waits and what its senders hold, is shared among the senders; a sender
with none gets one message's worth even then, so that idle senders that hold credit cannot starve
it. That window ahead, one message a sender, is what may wait in the router.
"""

from __future__ import annotations

from router.core.address import Address, Consumer, Producer
from router.engine import serial
from router.engine.held_up import hold_up
from router.engine.link import IncomingLink

MULTICAST = 2
ROUTED = 4
HERE = 0
MESH = 1
OWN_TREE = 0
# A sender whose deliveries are not settled gets no further credit beyond this many of them.
UNSETTLED_LIMIT = 65536
# How much may come from another router at a time that nobody receives here any more.
FOR_NOBODY = 16


def backing(address: Address) -> int:
    """How many more deliveries the receivers of an address can take.

    All together where each delivery goes to one of them; for multicast, where each gets a copy,
    the slowest of them decides.
    """
    total = 0
    slowest = -1
    for consumer in address.consumers:
        credit = taken_by(consumer)
        total += credit
        if address.sided and consumer.side == MESH and consumer.tree != OWN_TREE:
            # what is sent from elsewhere, if this is a multicast
            continue
        left = max(0, credit - consumer.waiting.count)
        if slowest < 0 or left < slowest:
            slowest = left
    if address.treatment == MULTICAST:
        return max(0, slowest)
    return total - address.waiting.count


def taken_by(consumer: Consumer) -> int:
    """How many more deliveries one receiver can take, those included that wait for it."""
    link = consumer.link
    session = link.session
    credit = link.credit
    if session.outbox.congested and credit > 1:
        # One message ahead: it may be another link that fills the socket all the time. When there
        # is room its address is looked at again.
        credit = 1
        hold_up(session, link)
    return credit


def has_too_much_unsettled(link: IncomingLink) -> bool:
    """Whether a sender gets no credit because of what is unsettled, whoever receives."""
    return link.unsettled >= UNSETTLED_LIMIT


def replenish(address: Address) -> None:
    """Share what the receivers can take among the senders of an address."""
    producers = address.producers
    count = len(producers)
    if count == 0:
        return
    if address.treatment == ROUTED:
        pass_on(address)
        return
    if address.sided and address.treatment == MULTICAST:
        replenish_spread(address)
        return
    room = backing(address)
    if not address.consumers:
        for producer in producers:
            take_back(producer)
        return
    granted = 0
    for producer in producers:
        granted += producer.link.credit
    share = max(1, room // count)
    for producer in producers:
        granted += offer(producer, share, room, room - granted)


def replenish_spread(address: Address) -> None:
    """Share what the receivers of a multicast can take among senders of several sides.

    What one router's senders send goes along a tree of its own, whose links have to do with nobody
    else's credit; those who receive here, or at an edge, take it from all.
    """
    slowest = -1
    # the edge that all are at who are not routers, or `HERE`
    only_side = -1
    trees: dict[int, int] = {}
    for consumer in address.consumers:
        left = max(0, taken_by(consumer) - consumer.waiting.count)
        if consumer.side == MESH:
            if consumer.tree >= 0:
                trees[consumer.tree] = min(left, trees.get(consumer.tree, left))
            continue
        if only_side != consumer.side:
            only_side = consumer.side if only_side < 0 else HERE
        if slowest < 0 or left < slowest:
            slowest = left
    granted = 0
    held: dict[int, int] = {}
    counts: dict[int, int] = {}
    for producer in address.producers:
        granted += producer.link.credit
        held[producer.tree] = held.get(producer.tree, 0) + producer.link.credit
        counts[producer.tree] = counts.get(producer.tree, 0) + 1
    for producer in address.producers:
        # none is the same as one who takes everything
        room = slowest
        share = left = UNSETTLED_LIMIT
        if only_side != HERE and producer.side == only_side:
            room = -1
        if room >= 0:
            share = room // len(address.producers)
            left = room - granted
        if producer.tree in trees:
            beyond = trees[producer.tree]
            share = min(share, beyond // counts[producer.tree])
            left = min(left, beyond - held[producer.tree])
            room = beyond if room < 0 else min(room, beyond)
        if room < 0 and producer.tree > OWN_TREE:
            # its router knows of somebody who is gone by now: what it sends is released
            room = left = share = FOR_NOBODY
        if room < 0:
            if producer.side == HERE:
                take_back(producer)
            else:
                producer.low_mark = -1
                stop(producer.link)
            continue
        given = offer(producer, max(1, share), room, left)
        granted += given
        held[producer.tree] += given


def offer(producer: Producer, share: int, room: int, left: int) -> int:
    """Give a sender credit up to its share of what receivers have room for; returns how much.

    `left` is what no sender holds yet. Where it is nothing, one that has no credit is given one
    message ahead.
    """
    link = producer.link
    held = link.credit
    target = min(share, producer.capacity, UNSETTLED_LIMIT - link.unsettled)
    producer.low_mark = target // 2
    if room <= 0:
        return 0
    give = 0
    if held * 2 <= target and held < target:
        give = min(target - held, left)
        if give <= 0:
            give = 1 if held == 0 else 0
    if give > 0 or link.drain:
        # what it was asked to give back it may keep: there is a receiver again
        session = link.session
        session.grant(link, held + give, False)
    return give


def take_back(producer: Producer) -> None:
    """Ask a sender to give its credit back: nobody receives any more (drain, section 2.6.7).

    A broker is only told to stop: if it drained, it would first send what it has, to nobody.
    """
    link = producer.link
    producer.low_mark = -1
    session = link.session
    if session.owner is not None:
        stop(link)
    elif link.credit and not link.drain:
        session.grant(link, link.credit, True)


def stop(link: IncomingLink) -> None:
    """Have a sender send nothing any more; what it has sent until it hears of it may come."""
    if link.credit:
        # what was taken back before may be under way as well, but is no more than this allowed
        link.overdraft = max(link.overdraft, link.credit)
        session = link.session
        session.grant(link, 0, False)


def replenish_anonymous(producer: Producer) -> None:
    """An anonymous sender's messages can go anywhere: its window is bounded by what waits of it."""
    link = producer.link
    if not link.is_attached():
        return
    target = min(producer.capacity - producer.waiting, UNSETTLED_LIMIT - link.unsettled)
    producer.low_mark = producer.capacity // 2
    if link.credit * 2 <= target and link.credit < target:
        session = link.session
        session.grant(link, target, False)


def pass_on(address: Address) -> None:
    """Tell each end of a routed link how the other one stands: one credit for one (section 2.6.7).

    What has come and not gone on yet has taken its credit already. Where the receiver took credit
    back, what was sent before the sender knew still comes.
    """
    if not address.consumers:
        return
    producer = address.producers[0]
    consumer = address.consumers[0]
    incoming = producer.link
    outgoing = consumer.link
    ahead = serial.ahead(outgoing.delivery_count, incoming.delivery_count)
    is_told = True
    if ahead and address.waiting.count == 0:
        # a drain is over: the sender has used up its credit
        outgoing.delivery_count = incoming.delivery_count
        outgoing.credit -= min(ahead, outgoing.credit)
        ahead = 0
        session = outgoing.session
        session.note_link(outgoing)
    elif outgoing.told_more is not None:
        session = outgoing.session
        session.note_link(outgoing)
    else:
        is_told = False
    if is_told and outgoing.credit == 0:
        outgoing.drain_due = False
    credit = max(0, outgoing.credit - ahead)
    held = incoming.credit
    if credit < held:
        incoming.overdraft += held - credit
    if credit != held or incoming.drain != outgoing.drain or incoming.told_more is not None:
        session = incoming.session
        session.grant(incoming, credit, outgoing.drain)
