"""Admit links as a connection's access allows, and detach them when the access has changed.

`router.core.addresses.access` decides. Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.constants import Condition
from router.amqp.performatives import Coordinator, Source
from router.amqp.types import Symbol
from router.core.addresses import phases
from router.core.addresses.access import Access, LinkRequest
from router.core.addresses.link_origins import ASKED_ADDRESS
from router.core.addresses.table import address_name
from router.core.link_routes import routed_detach
from router.core.links.message_end import ServiceEnd
from router.core.model.address import Producer
from router.engine import attaching, beginning
from router.engine.link import IncomingLink
from router.engine.states import LinkState
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.link import Link

_EMPTY = Source()
# How many characters of a waypoint capability are kept: a peer may make it as long as a frame.
_SHOWN = 16
# A detach takes as long as examining this many links.
_WORK_OF_A_DETACH = 8


def admit(forwarder: Core, link: Link) -> bool:
    """Admit a link that a peer attaches; raise `AmqpError` at link scope if it may not attach it.

    Return False if the decision is left to `Access.asks`, and comes in a later turn. An admitted
    link is counted until `link_ended`.
    """
    access: Access | None = link.session.connection.access
    if access is None or link in access.links:
        return True
    request = request_of(forwarder, link)
    refusal = access.link_refusal(request)
    if refusal is not None:
        raise refusal
    access.link_attached(link, request)
    if access.asks is None:
        return True
    access.asks(link, request)
    return False


def request_of(forwarder: Core, link: Link) -> LinkRequest:
    """Return what a peer's attach requests.

    An attach that names no terminus requests the one that it recovers by its name (section 2.6.3).
    For a link that is attached already, `capabilities` is empty, since they are no longer known.
    """
    is_sender = isinstance(link, IncomingLink)
    remote = link.remote_attach
    terminus = remote.target if is_sender else remote.source
    if terminus in (None, _EMPTY):
        found = forwarder.suspended.find(link)
        if found is not None:
            terminus = found.granted
        elif link.state == LinkState.ATTACHED:
            terminus = link.attach.target if is_sender else link.attach.source
    if terminus is None:
        return LinkRequest(is_sender, "")
    if isinstance(terminus, Coordinator):
        return LinkRequest(is_sender, None, is_coordinator=True)
    text = terminus.address
    if terminus.dynamic:
        asked = (terminus.dynamic_node_properties or {}).get(ASKED_ADDRESS)
        if isinstance(asked, str) and text is not None:
            # a container would get both, and only one would have been checked
            raise AmqpError(
                Condition.INVALID_FIELD,
                f"a terminus with dynamic and {ASKED_ADDRESS} must have no address (section 3.5.3)",
                Scope.LINK,
            )
        text = asked if isinstance(asked, str) else None
    elif text is None and not is_sender:
        text = ""
    name = None if text is None else forwarder.table.own_name(address_name(text))
    # the request is kept, and a peer may name any number of other capabilities
    asked_for = terminus.capabilities
    waypoint = next((each[:_SHOWN] for each in asked_for if each.startswith(phases.WAYPOINT)), None)
    fallback = phases.FALLBACK_CAPABILITY if phases.is_fallback(terminus) else None
    capabilities = tuple(Symbol(each) for each in (waypoint, fallback) if each is not None)
    return LinkRequest(is_sender, name, is_dynamic=terminus.dynamic, capabilities=capabilities)


def link_ended(link: Link) -> None:
    """Stop counting a link that was refused or has ended."""
    access: Access | None = link.session.connection.access
    if access is not None:
        access.link_ended(link)


def recheck(forwarder: Core, connection: Connection) -> None:
    """Detach the links of a connection that its access does not allow.

    These may have been attached before the connection had an access. If there are many links, most
    of them are examined in later turns. A recheck that is asked for meanwhile comes afterwards.
    """
    access: Access | None = connection.access
    if access is None:
        return
    access.rules_changed()
    if access.is_rechecking:
        # a peer may replace its tokens faster than its links are examined
        access.must_recheck = True
        return
    access.is_rechecking = True

    def over() -> None:
        access.is_rechecking = False
        if access.must_recheck:
            access.must_recheck = False
            recheck(forwarder, connection)

    forwarder.turn.deferred.process_each(
        _links(connection), lambda link: _recheck_link(forwarder, access, link), over
    )


def _recheck_link(forwarder: Core, access: Access, link: Link) -> None:
    # only a peer's links are charged to it, and no others are the peer's
    if link.state not in (LinkState.ATTACHED, LinkState.ATTACH_RCVD) or not link.charged:
        return
    if isinstance(link.terminus, ServiceEnd):
        return
    try:
        request = access.links.get(link) or request_of(forwarder, link)
    except AmqpError as invalid:
        # attached before the connection had an access, so its request was never examined
        _end(forwarder, link, invalid)
        return
    # the link itself must not count against its own limits
    access.link_ended(link)
    refusal = access.link_refusal(request)
    access.link_attached(link, request)
    if refusal is not None:
        _end(forwarder, link, refusal)
    elif isinstance(link.owner, Producer) and not link.is_routed:
        link.owner.checks_user_id = access.checks_user_id


def _end(forwarder: Core, link: Link, refusal: AmqpError) -> None:
    if link.state == LinkState.ATTACHED:
        attaching.detach(link, True, refusal)
        return
    if link.is_routed:
        # the link awaits the container's answer
        routed_detach.give_up(forwarder, link.terminus, routed_detach.FinalDetach(True, None))
    # otherwise its attach is put off to a later turn
    try:
        attaching.refuse(link, refusal)
    except AmqpError as error:
        # the answer does not fit into the peer's frames; in deferred work nobody else handles that
        beginning.end(link.session, error)


def _links(connection: Connection) -> Iterator[Link | None]:
    """Yield the links of a connection, each followed by several None for the work of a detach."""
    for session in list(connection.local_sessions.values()):
        for link in list(session.local_links.values()):
            yield link
            for _ in range(_WORK_OF_A_DETACH - 1):
                yield None
