"""Gate of a router: apply its policy to the connections of peers.

The gate decides about each open, counts the connections of each virtual host, and sets the access
of each connection. When the policy is replaced, it judges all connections again: connections that
are no longer allowed are closed, links are detached, and all others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.constants import Condition
from router.config.policy_kinds import normal_hostname
from router.config.vhosts import VhostGroupSettings
from router.control.policy.counts import (
    CONNECTION,
    MESSAGE_SIZE,
    SESSION,
    PolicyCounts,
    VhostCounts,
)
from router.control.policy.policy import Group, Judgement, Peer, Policy, Vhost
from router.control.policy.vhost_rule import Denial, VhostRule
from router.core.addresses.access import Access, AccessRule, provide
from router.core.addresses.link_origins import ANONYMOUS
from router.core.addresses.table import address_name
from router.core.addresses.tenants import Tenant
from router.core.links import admission
from router.engine import opening
from router.engine.events import ConnectionClosed, LinkDetached, SessionBegun, SessionEnded
from router.engine.link import IncomingLink
from router.engine.shared_accounts import Excess, Member
from router.engine.states import ConnectionState, SessionState
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.amqp.performatives import Error
    from router.core.forwarding.forward import Forwarder
    from router.engine.connection import Connection

_MAPPED: Final = int(SessionState.MAPPED)
# Largest window of a session, in frames: half of the sequence numbers (section 2.8.10).
MOST_FRAMES: Final = 2**31 - 1
# Error description, the same as in Dispatch, since programs compare it. The reason is only logged.
CONNECTION_DISALLOWED: Final = "connection disallowed by local policy"


@attrs.frozen(eq=False)
class Admitted:
    """Peer of a connection that the gate has admitted, with its virtual host and group.

    `management` is the setting of that name of its listener or connector.
    """

    peer: Peer
    vhost: Vhost | None
    group: Group | None
    management: str


class Gate:
    """Policy at work: it decides about opens, and keeps the counts of virtual hosts.

    `denied` is called with the connection on which something was refused, what it was, and why.
    `each_connection` yields the connections of the router; others may open or close meanwhile.
    """

    def __init__(
        self,
        forwarder: Forwarder,
        policy: Policy,
        each_connection: Callable[[], Iterator[Connection]],
    ) -> None:
        self.policy = policy
        self.counts: dict[str, VhostCounts] = {}
        self.admitted: dict[Connection, Admitted] = {}
        # counts of all virtual hosts, and of connections for which there is none
        self.totals = PolicyCounts()
        # refusals of connections for which there is no virtual host
        self.unknown_denied = 0
        self.denied: Callable[[Connection, str, str], None] = lambda *_: None
        self._forwarder = forwarder
        self._each_connection = each_connection
        # how many of the admitted connections this router has opened
        self._outgoing = 0
        forwarder.on_open = self.admit
        forwarder.may_redirect = self.may_redirect

    # One connection.

    def admit(self, connection: Connection) -> AmqpError | None:
        """Decide about a peer's open: set the access of the connection, or return the refusal."""
        settings = connection.settings
        if not (settings.is_policed or settings.policy_vhost):
            return None
        peer = peer_of(connection)
        judgement = self._judge(connection, peer)
        refusal = judgement.refusal or self._limit_reached(connection, peer, judgement)
        tenant = None
        if not refusal and settings.multi_tenant:
            tenant = tenant_for(peer, judgement)
            if tenant is None:
                name = peer.hostname[:255]
                refusal = f"the host name {name!r} cannot be that of a tenant"
        if refusal:
            return self._refuse(connection, judgement, refusal)
        if tenant is not None:
            access: Access = provide(connection)
            access.tenant = tenant
            access.names_tenant = partial(self._is_host_of, tenant)
        self._enter(connection, peer, judgement)
        self.totals.approved += 1
        if judgement.vhost is not None:
            self.counts_of(judgement.vhost).approved += 1
        if judgement.group is not None and not connection.is_client:
            _limit_transport(connection, judgement.group.settings)
        return None

    def may_redirect(self, connection: Connection) -> bool:
        """Return whether a peer may learn where the host that its open names has moved.

        If the host belongs to a virtual host or to a tenant, only its own users may.
        """
        settings, remote_open = connection.settings, connection.remote_open
        if not settings.is_policed or remote_open is None:
            return True
        hostname = remote_open.hostname or ""
        if not self.policy.settings.enable_vhost_policy:
            fixed = settings.policy_vhost if settings.multi_tenant else None
            return fixed is None or normal_hostname(fixed) == normal_hostname(hostname)
        named = self.policy.vhost_named(hostname)
        if named is None:
            return True
        judgement = self._judge(connection, peer_of(connection))
        return judgement.vhost is named and not judgement.refusal

    def event_received(self, connection: Connection, event: object) -> None:
        """Count what the engine refused because of limits of the policy, and ended connections."""
        if isinstance(event, ConnectionClosed):
            denial = None if event.by_peer else _session_denial(event.error)
            self._count_late(connection, denial)
            self._leave(connection)
            if connection.account.member is not None:
                connection.account.member.leave()
        elif isinstance(event, SessionBegun):
            if connection.account.member is not None and event.session.charged:
                connection.account.member.session_begun(event.session)
        elif isinstance(event, SessionEnded):
            if connection.account.member is not None:
                connection.account.member.session_ended(event.session)
        elif isinstance(event, LinkDetached) and event.error is not None and not event.by_peer:
            if event.error.condition == Condition.MESSAGE_SIZE_EXCEEDED:
                if isinstance(event.link, IncomingLink) and not event.lost:
                    reason = event.error.description or ""
                    self._count_late(
                        connection, Denial(MESSAGE_SIZE, reason, attribute="maxMessageSize")
                    )

    def _count_late(self, connection: Connection, denial: Denial | None) -> None:
        """Count a refusal by the engine, if the connection belongs to a virtual host."""
        admitted = self.admitted.get(connection)
        if denial is not None and admitted is not None and admitted.vhost is not None:
            self.counts_of(admitted.vhost).count(denial)
            self._tell(connection, denial)

    def _judge(self, connection: Connection, peer: Peer) -> Judgement:
        if not self.policy.settings.enable_vhost_policy:
            return Judgement(None, None)
        if connection.is_client:
            name = connection.settings.policy_vhost
            return Judgement(None, None) if name is None else self.policy.judge_connector(name)
        return self.policy.judge(peer)

    def _is_host_of(self, tenant: Tenant, hostname: str) -> bool:
        """Return whether a host name leads to a tenant."""
        vhost = None
        if self.policy.settings.enable_vhost_policy:
            vhost = self.policy.vhost_of(hostname)
            if vhost is None:
                return False
        peer = Peer(hostname, ANONYMOUS, "")
        return tenant_for(peer, Judgement(vhost, None)) == tenant

    def _limit_reached(self, connection: Connection, peer: Peer, judgement: Judgement) -> str:
        """Return the limit on connections that one more would exceed, or an empty text."""
        if connection.is_client:
            return ""
        most = self.policy.settings.max_connections
        count = len(self.admitted) - self._outgoing
        if count >= most:
            return f"{count} connections are open; maxConnections is {most}"
        vhost, group = judgement.vhost, judgement.group
        if vhost is None or group is None:
            return ""
        counts = self.counts_of(vhost)
        settings, mine = vhost.settings, group.settings
        per_user = _first(mine.max_connections_per_user, settings.max_connections_per_user)
        per_host = _first(mine.max_connections_per_host, settings.max_connections_per_host)
        limits = (
            ("maxConnections", counts.current, settings.max_connections, "the vhost"),
            ("maxConnectionsPerUser", counts.by_user[peer.user], per_user, f"user {peer.user!r}"),
            ("maxConnectionsPerHost", counts.by_host[peer.host], per_host, f"host {peer.host}"),
        )
        for name, count, limit, whose in limits:
            if count >= limit:
                return f"{whose} has {count} connections; {name} is {limit}"
        return counts.full_account(peer.user, peer.host, connection.account.total)

    def _enter(self, connection: Connection, peer: Peer, judgement: Judgement) -> None:
        """Count a connection, and set its access to what its group may do."""
        before = self.admitted.get(connection)
        management = connection.settings.management if before is None else before.management
        self._leave(connection)
        vhost, group = judgement.vhost, judgement.group
        self.admitted[connection] = Admitted(peer, vhost, group, management)
        self.totals.current += 1
        self._outgoing += connection.is_client
        access: Access | None = connection.access
        if vhost is not None and group is not None:
            self.counts_of(vhost).enter(peer.user, peer.host)
            self._grant(connection, vhost, group, peer)
        elif access is not None:
            access.rules = _without_policy(access)
            access.max_message_size = 0
            access.checks_user_id = False
            access.allows_link_routes = access.allows_admin_status = True
        self._share(connection, vhost if group is not None else None, peer)

    def _grant(self, connection: Connection, vhost: Vhost, group: Group, peer: Peer) -> None:
        counts = self.counts_of(vhost)
        access = provide(connection)

        def denied(denial: Denial) -> None:
            counts.count(denial)
            self._tell(connection, denial)

        access.rules = (VhostRule(group, peer.user, denied), *_without_policy(access))
        settings = group.settings
        access.max_message_size = self.policy.max_message_size(vhost, group)
        access.checks_user_id = not settings.allow_user_id_proxy
        access.allows_link_routes = settings.allow_dynamic_link_routes
        access.allows_admin_status = settings.allow_admin_status_update

    def _share(self, connection: Connection, vhost: Vhost | None, peer: Peer) -> None:
        """Count what a peer has with that of its virtual host, user and host, and nobody else's."""
        member = connection.account.member
        if vhost is None or connection.is_client:
            if member is not None:
                member.move(())
            return
        access = provide(connection)
        if member is None:
            # those that it began before there was a policy
            sessions = connection.local_sessions.values()
            begun = [each for each in sessions if each.charged and each.state == _MAPPED]
            member = Member(connection.account.total, begun, len(access.links))
            connection.account.member = access.member = member
        counts = self.counts_of(vhost)

        def denied(what: str, excess: Excess) -> None:
            denial = Denial(what, excess.reason, attribute=excess.setting)
            counts.count(denial)
            self._tell(connection, denial)

        member.denied = denied
        member.move(counts.accounts_of(vhost.settings, peer.user, peer.host))

    def _leave(self, connection: Connection) -> None:
        admitted = self.admitted.pop(connection, None)
        if admitted is None:
            return
        self._outgoing -= connection.is_client
        self.totals.current -= 1
        if admitted.vhost is not None:
            self.counts_of(admitted.vhost).leave(admitted.peer.user, admitted.peer.host)

    def _refuse(self, connection: Connection, judgement: Judgement, reason: str) -> AmqpError:
        denial = Denial(CONNECTION, reason)
        if judgement.vhost is None:
            self.unknown_denied += 1
        else:
            self.counts_of(judgement.vhost).count(denial)
        self._tell(connection, denial)
        return AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, CONNECTION_DISALLOWED)

    def _tell(self, connection: Connection, denial: Denial) -> None:
        self.totals.count(denial)
        self.denied(connection, denial.what, denial.reason)

    def counts_of(self, vhost: Vhost) -> VhostCounts:
        """Return the counts of a virtual host."""
        return self.counts.setdefault(vhost.name, VhostCounts())

    # All connections.

    def replace(self, policy: Policy) -> None:
        """Use another policy from now on, and judge all connections again in later turns."""
        self.policy = policy
        for name in [name for name in self.counts if name not in policy.vhosts]:
            if not self.counts[name].current:
                del self.counts[name]
        self._forwarder.turn.deferred.process_each(self._each_connection(), self._judge_again)

    def _judge_again(self, connection: Connection) -> None:
        """Apply the policy to a connection that was opened before it."""
        if connection.state != ConnectionState.OPENED:
            return
        before = self.admitted.get(connection)
        settings = connection.settings
        if not (settings.is_policed or settings.policy_vhost):
            return
        peer = peer_of(connection) if before is None else before.peer
        judgement = self._judge(connection, peer)
        refusal = judgement.refusal
        access: Access | None = connection.access
        if not refusal and access is not None and access.tenant is not None:
            if tenant_for(peer, judgement) != access.tenant:
                refusal = "the connection belongs to another tenant now"
        if refusal:
            opening.close(connection, self._refuse(connection, judgement, refusal))
            return
        self._enter(connection, peer, judgement)
        if not connection.is_client:
            _set_management(connection, self.admitted[connection])
        admission.recheck(self._forwarder, connection)


def peer_of(connection: Connection) -> Peer:
    """Return the peer of a connection as a policy sees it.

    The host name is the first that there is of: the policyVhost of the listener, the one in the
    peer's open, and the one that the peer asked for in TLS (server name) or HTTP.
    """
    settings = connection.settings
    hostname = settings.policy_vhost
    if hostname is None and connection.remote_open is not None:
        hostname = connection.remote_open.hostname
    return Peer(
        hostname or connection.requested_host or "",
        connection.user or ANONYMOUS,
        connection.name.rpartition(":")[0].strip("[]"),
        connection.groups,
    )


def tenant_for(peer: Peer, judgement: Judgement) -> Tenant | None:
    """Return the tenant of a peer; None if its name cannot be that of a tenant.

    The tenant has the name of the virtual host or, without a policy, the peer's host name.
    """
    vhost = judgement.vhost
    return tenant_named(normal_hostname(peer.hostname) if vhost is None else vhost.name)


def tenant_named(name: str) -> Tenant | None:
    """Return the tenant with a name; None if the name cannot be that of a tenant.

    The name must not contain /, with which the address spaces of two tenants could overlap. It must
    not begin like the names that routers give, nor like the scheme of an address.
    """
    if not name or "/" in name or name.startswith(("$", "_", ".")) or not name.isprintable():
        return None
    tenant = Tenant(name)
    # a scheme such as amqp: would be removed from the address
    return tenant if address_name(tenant.prefix + name) == tenant.prefix + name else None


def _session_denial(error: Error | None) -> Denial | None:
    """Return the refusal of a session, if an error closed a connection with too many of them."""
    text = "" if error is None else error.description or ""
    if error is None or error.condition != Condition.FRAMING_ERROR or "channel-max" not in text:
        return None
    return Denial(SESSION, text, attribute="maxSessions")


def _without_policy(access: Access) -> tuple[AccessRule, ...]:
    return tuple(each for each in access.rules if not isinstance(each, VhostRule))


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _set_management(connection: Connection, admitted: Admitted) -> None:
    """Set the management right of an open connection: that of its group, or of its listener."""
    settings, group = connection.settings, admitted.group
    allowed = (group and group.settings.management) or admitted.management
    if settings.management != allowed:
        connection.settings = attrs.evolve(settings, management=allowed)


def _limit_transport(connection: Connection, group: VhostGroupSettings) -> None:
    """Set the limits of a connection before its open is answered."""
    settings = connection.settings
    frame_size = group.max_frame_size or settings.max_frame_size
    sessions = group.max_sessions or settings.channel_max + 1
    window = group.max_session_window
    frames = min(max(1, (window or 0) // frame_size), MOST_FRAMES)
    opening.change_settings(
        connection,
        attrs.evolve(
            settings,
            max_frame_size=frame_size,
            channel_max=sessions - 1,
            window_limit=settings.window_limit if window is None else frames,
            held_limit_bytes=group.connection_buffer_bytes or settings.held_limit_bytes,
            management=group.management or settings.management,
        ),
    )
