"""Log the events of connections: one line for each event of interest to operators.

If a connection, session or link has ended, its line has the reason (`condition`, `description`) and
whether the peer ended it (`by_peer`). The line of a link that ended with its session or connection
is not a warning.
"""

from __future__ import annotations

from structlog.typing import FilteringBoundLogger

from router.amqp.constants import Condition
from router.amqp.performatives import Error
from router.amqp.redirects import REDIRECTS, read_redirect
from router.core.link_routes.remote_link_routes import (
    LinkRoutesUnsupported,
    RouteRefused,
    RoutesLeftOut,
)
from router.core.links.auto_links import AutoLinkChanged
from router.core.links.cbs import TokenAccepted, TokenNotAccepted
from router.core.model.own_links import OwnLink
from router.core.network.proxy_links import UplinkChanged
from router.core.routers.membership import ROLES
from router.engine import events
from router.engine.link import Link, OutgoingLink
from router.engine.naming import link_address, link_identity
from router.engine.session import Session
from router.errors import AmqpError

Ending = events.ConnectionClosed | events.SessionEnded | events.LinkDetached


def log_event(
    log: FilteringBoundLogger, link_log: FilteringBoundLogger, event: object, user: str | None
) -> None:
    """Log an event to `log`, or to `link_log` if the event is about a link.

    Both loggers are bound to the event's connection. `user` is the authenticated user of the peer.
    """
    if isinstance(event, events.ConnectionRefused):
        remote = event.remote_open
        names = {"container": remote.container_id, "hostname": remote.hostname, "user": user}
        _refused(log, "connection refused", "connection redirected", event.error, **names)
    elif isinstance(event, events.ConnectionOpened):
        log.info("connection opened", container=event.remote_open.container_id, user=user)
    elif isinstance(event, events.ConnectionClosed):
        _end(log, "connection closed", event)
    elif isinstance(event, AutoLinkChanged):
        _auto_link(link_log, event)
    elif isinstance(event, TokenAccepted):
        log.info(
            "token accepted",
            audience=event.audience,
            key=event.key,
            seconds=round(event.lifetime_s),
        )
    elif isinstance(event, TokenNotAccepted):
        log.warning("token refused", audience=event.audience, reason=event.reason)
    elif isinstance(event, UplinkChanged):
        said = "uplink in use" if event.is_active else "uplink on standby"
        link_log.info(said, connector=event.connector, router=event.router, reason=event.reason)
    elif isinstance(event, LinkRoutesUnsupported):
        said = "connection without link routes"
        link_log.info(
            said, router=event.router, reason="the other router does not support link routes"
        )
    elif isinstance(event, RouteRefused):
        reason = "the addresses are reserved for routers"
        facts = {"router": event.router, "key": event.key, "count": event.count}
        link_log.warning("link route refused", **facts, reason=reason)
    elif isinstance(event, RoutesLeftOut):
        reason = "the interior router announces more link routes than an edge keeps"
        facts = {"router": event.router, "count": event.count, "kept": event.kept}
        link_log.warning("link routes ignored", **facts, reason=reason)
    elif isinstance(event, events.SessionEnded):
        if _is_announced(event.session):
            return
        # a lost session ends with its connection, and an orderly end needs no line
        if event.error is not None:
            _end(log, "session ended", event, channel=event.session.channel)
    elif isinstance(event, events.LinkAttachReceived):
        # a refused link has a separate event, `LinkRefused`
        if event.link.is_attached():
            link_log.info("link attached", **_facts(event.link))
    elif isinstance(event, events.LinkRefused):
        _refused(link_log, "link refused", "link redirected", event.error, **_facts(event.link))
    elif isinstance(event, events.LinkDetached):
        if _is_announced(event.link.session):
            return
        facts = {"closed": event.closed, "lost": event.lost, **_facts(event.link)}
        is_news = not (event.lost or _is_of_gone_node(event))
        _end(link_log, "link detached", event, is_news=is_news, **facts)
    elif isinstance(event, events.FlowIgnored):
        reason = "it answers a drain of a link that the peer has already detached"
        link_log.debug("flow ignored", link_id=event.link_id, reason=reason)
    elif isinstance(event, events.LinkSuspended):
        link_log.info("link suspended", unsettled=event.unsettled, **_facts(event.link))
    elif isinstance(event, events.LinkResumed):
        facts = {"unsettled": event.unsettled, **_other_link_fields(event.previous)}
        # the previous link has the granted address, which the new one need not repeat
        facts = {**_facts(event.previous), **facts, "link_id": link_identity(event.link)}
        link_log.info("link resumed", **facts)
    elif isinstance(event, events.LinkStolen):
        link_log.info("link stolen", **_facts(event.link), **_other_link_fields(event.previous))
    elif isinstance(event, events.LinkStealingRefused):
        link_log.warning(
            "link stealing refused", **_facts(event.link), **_other_link_fields(event.holder)
        )


def _is_announced(session: Session) -> bool:
    """Return whether a session is that of an auto-link, proxy link or control link of this router.

    Other events report to the log what happens to these links.
    """
    return isinstance(session.owner, OwnLink) and session.owner.is_announced


def _is_of_gone_node(event: events.LinkDetached) -> bool:
    """Return whether a link between routers ended because its dynamic node was deleted.

    This is normal: the client that created the node, to receive replies, has left.
    """
    error, role = event.error, event.link.session.connection.settings.role
    return error is not None and error.condition == Condition.RESOURCE_DELETED and role in ROLES


def _auto_link(log: FilteringBoundLogger, event: AutoLinkChanged) -> None:
    rule = event.rule
    direction = "in" if rule.receives else "out"
    facts = {"auto_link": rule.name, "direction": direction, "address": rule.address}
    if event.status == "active":
        log.info("auto-link active", **facts, node=rule.external_address)
    else:
        log.warning("auto-link failed", **facts, node=rule.external_address, **_reason(event.error))


def _end(
    log: FilteringBoundLogger, what: str, event: Ending, is_news: bool = True, **facts: object
) -> None:
    is_wrong = event.error is not None and str(event.error.condition) not in REDIRECTS
    write = log.warning if is_wrong and is_news else log.info
    write(what, by_peer=event.by_peer, **facts, **_reason(event.error))


def _refused(
    log: FilteringBoundLogger, what: str, redirected: str, error: AmqpError, **facts: object
) -> None:
    """Log a refusal: `redirected` as info if it redirects the peer, else `what` as a warning."""
    redirect = read_redirect(error.condition, error.info)
    if redirect is None:
        log.warning(what, by_peer=False, **facts, **_reason(error))
    else:
        log.info(redirected, **facts, to=str(redirect))


def _reason(error: Error | AmqpError | None) -> dict[str, object]:
    if error is None:
        return {}
    return {"condition": str(error.condition), "description": error.description}


def _facts(link: Link) -> dict[str, object]:
    is_outgoing = isinstance(link, OutgoingLink)
    return {
        "link_id": link_identity(link),
        "link": link.name,
        "direction": "out" if is_outgoing else "in",
        "address": link_address(link),
    }


def _other_link_fields(link: Link) -> dict[str, object]:
    """Return the log fields `other_...` for `link`, the earlier of two links of the same name."""
    connection = link.session.connection
    return {
        "other_connection": connection.number,
        "other_link_id": link_identity(link),
        "other_peer": connection.name,
        "other_user": connection.user,
    }
