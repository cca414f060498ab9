"""Names of attached links, and which peers may take a name over (section 2.6.1).

A link is identified by the containers at its two ends, its name and its direction, on whichever
connection it is attached. The router is one of the two containers, so the key consists of the
peer's container-id, the name and the direction. A link is listed from its attach until it is lost;
half-attached, refused and ending links are not listed. An empty container-id does not identify a
peer, so the links of such a peer are never listed (docs/decisions/0027-link-stealing.md).

Links that are forwarded to containers connected to this router are also listed by the names that
these containers see. The clients of such links may be at any router of the network
(docs/decisions/0064).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from router.core.addresses.access import tenant_name
from router.core.addresses.link_origins import Origin, user_name
from router.core.model.split_table import SplitTable
from router.engine.link import Link, OutgoingLink

if TYPE_CHECKING:
    from router.engine.connection import Connection

# Which peers may steal a link: those of the same user, those of any user, or none (then the new
# attach is refused). With OFF, names are not tracked, and several links may have the same name.
SAME_USER = "same-user"
ANY = "any"
NEVER = "never"
OFF = "off"


@attrs.frozen
class ForwardedName:
    """Identity of a forwarded link as its container sees it, and the link's origin.

    Forwarded links with equal identities are the same link for the container.
    """

    container_id: str
    name: str
    we_send: bool
    origin: Origin = attrs.field(eq=False)


class LinkNames:
    """Table of the attached links of all peers, by name.

    `stealing` says which peers may take a link over: SAME_USER, ANY, NEVER or OFF.
    """

    def __init__(self, stealing: str = SAME_USER) -> None:
        self.stealing = stealing
        self._links: SplitTable[tuple[str, str, bool], Link] = SplitTable()
        self._forwarded: SplitTable[ForwardedName, Link] = SplitTable()
        # number of links that were stolen, and number of attaches that were refused instead
        self.stolen = 0
        self.refused = 0

    def __len__(self) -> int:
        return len(self._links)

    def set_stealing(self, stealing: str, attached: Iterable[Link]) -> None:
        """Set which peers may take a name over; `attached` contains all attached links.

        If names were not tracked before, several links may have the same name. The last of these
        then holds the name.
        """
        was_off = self.stealing == OFF
        self.stealing = stealing
        if stealing == OFF:
            self._links.clear()
        elif was_off:
            for link in attached:
                self.enter(link)

    def holder(self, link: Link) -> Link | None:
        """Return the link that is listed with the name of `link`, or None if there is no such link.

        The listed link may be `link` itself.
        """
        return self._links.get(key_of(link))

    def may_steal(self, link: Link, holder: Link) -> bool:
        """Return whether the peer of `link` may take over the name from `holder`."""
        if self.stealing == SAME_USER:
            return user_of(link.session.connection) == user_of(holder.session.connection)
        return self.stealing == ANY

    def may_resume(self, link: Link, suspended: Link) -> bool:
        """Return whether the peer of `link` may resume the link `suspended`."""
        if self.stealing == ANY:
            return True
        return user_of(link.session.connection) == user_of(suspended.session.connection)

    def is_tracked(self, link: Link) -> bool:
        """Return whether names are tracked and the link's peer has a container-id."""
        return self.stealing != OFF and bool(key_of(link)[0])

    def enter(self, link: Link) -> None:
        """List `link` as the holder of its name, if the name is tracked."""
        if self.is_tracked(link):
            self._links[key_of(link)] = link

    def leave(self, link: Link) -> None:
        """Remove a lost link, unless another link holds its name by now."""
        key = key_of(link)
        if self._links.get(key) is link:
            self._links.pop(key)

    # Links that are forwarded to containers connected here.

    @property
    def forwarded_count(self) -> int:
        """Return how many links are forwarded to containers connected to this router."""
        return len(self._forwarded)

    def forwarded(self, holding: ForwardedName) -> Link | None:
        """Return the forwarded link that a container knows by this name, or None."""
        return None if self.stealing == OFF else self._forwarded.get(holding)

    def may_steal_forwarded(self, origin: Origin, holder: Origin) -> bool:
        """Return whether the client `origin` may take over a forwarded link of the client `holder`.

        Both clients may be at any router of the network.
        """
        if self.stealing == SAME_USER:
            return origin.user == holder.user and (
                origin.user is not None or origin.key == holder.key
            )
        return self.stealing == ANY

    def enter_forwarded(self, holding: ForwardedName, link: Link) -> None:
        """List `link` as the link that a container knows by the name `holding`."""
        if holding.container_id:
            self._forwarded[holding] = link

    def leave_forwarded(self, holding: ForwardedName | None, link: Link) -> None:
        """Remove a forwarded link, unless another link holds its name by now."""
        if holding is not None and self._forwarded.get(holding) is link:
            self._forwarded.pop(holding)


def key_of(link: Link) -> tuple[str, str, bool]:
    """Return the key of a link: its peer's container-id, its name, and whether the router sends.

    Different tenants have separate link names: the container-id of a tenant's client is preceded by
    the tenant and NUL. For clients without a tenant, a container-id that contains NUL is preceded
    by another, so that it cannot be taken for that of a tenant's client.
    """
    connection = link.session.connection
    container = connection.remote_open.container_id
    tenant = tenant_name(connection)
    if container and (tenant or "\0" in container):
        container = f"{tenant}\0{container}"
    return container, link.name, isinstance(link, OutgoingLink)


def user_of(connection: Connection) -> tuple[bool, str]:
    """Return the user of a peer: whether this router opened the connection, and a name.

    For a connection that this router opened, the name is the host and port that it connected to.
    For any other it is the user that the peer authenticated as; all peers without one count as the
    same user. Users of different tenants are never the same.
    """
    return connection.is_client, connection.name if connection.is_client else user_name(connection)
