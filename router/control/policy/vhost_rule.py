"""Access rule of a connection: what the group of its user may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.constants import Condition
from router.core.addresses.phases import FALLBACK_CAPABILITY, WAYPOINT
from router.core.routers.names import COORDINATOR
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.control.policy.policy import Group
    from router.core.addresses.access import Access, LinkRequest

# Error description, the same as in Dispatch, since programs compare it. The reason is only logged.
LINK_DISALLOWED: Final = "link disallowed by local policy"
# Without the address, which the sender knows, and which may be too long for a frame.
MESSAGE_DISALLOWED: Final = "message disallowed by local policy"
# How many characters of an address are logged.
_SHOWN: Final = 100


@attrs.frozen
class Denial:
    """Refusal by a policy: `what` was refused, and the reason for operators.

    `attribute` is the attribute of the group that refuses it, or empty.
    """

    what: str
    reason: str
    condition: str = Condition.UNAUTHORIZED_ACCESS
    attribute: str = ""


@attrs.define(eq=False)
class VhostRule:
    """Access rule of one connection, whose `user` is in `group`; `denied` is called on refusals."""

    group: Group
    user: str
    denied: Callable[[Denial], None]

    def link_refusal(self, access: Access, request: LinkRequest) -> AmqpError | None:
        """Return why the peer may not attach a link, or None if it may."""
        denial = self.judge(access, request)
        if denial is None:
            return None
        self.denied(denial)
        return AmqpError(denial.condition, LINK_DISALLOWED, Scope.LINK)

    def message_refusal(self, access: Access, name: str) -> AmqpError | None:
        """Return why an anonymous sender may not send to the address `name`, or None."""
        if self.group.entry_for(name, self.user, is_sender=True) is not None:
            return None
        self.denied(_not_in("message", "targets", name))
        return AmqpError(Condition.UNAUTHORIZED_ACCESS, MESSAGE_DISALLOWED, Scope.LINK)

    def judge(self, access: Access, request: LinkRequest) -> Denial | None:
        """Return why a link is refused, without counting the refusal; None if it is allowed."""
        settings = self.group.settings
        is_sender = request.is_sender
        what = "sender" if is_sender else "receiver"
        held = access.senders if is_sender else access.receivers
        most = settings.max_senders if is_sender else settings.max_receivers
        if most is not None and held >= most:
            limit = "maxSenders" if is_sender else "maxReceivers"
            reason = f"the connection has {held} links of this kind; {limit} is {most}"
            return Denial(what, reason, Condition.RESOURCE_LIMIT_EXCEEDED, limit)
        excess = None if access.member is None else access.member.link_excess()
        if excess is not None:
            reason, setting = excess.reason, excess.setting
            return Denial(what, reason, Condition.RESOURCE_LIMIT_EXCEEDED, setting)
        if request.is_coordinator:
            allowed = settings.allow_anonymous_sender or self._allows(request, COORDINATOR)
            return None if allowed else _not_in(what, "targets", COORDINATOR)
        if any(str(each).startswith(WAYPOINT) for each in request.capabilities):
            if not settings.allow_waypoint_links:
                return _is_false(what, "allowWaypointLinks")
        if FALLBACK_CAPABILITY in request.capabilities and not settings.allow_fallback_links:
            return _is_false(what, "allowFallbackLinks")
        if request.is_dynamic and not settings.allow_dynamic_source:
            return _is_false(what, "allowDynamicSource")
        if request.address is None:
            if request.is_dynamic or settings.allow_anonymous_sender:
                return None
            return _is_false(what, "allowAnonymousSender")
        if self._allows(request, request.address):
            return None
        return _not_in(what, "targets" if is_sender else "sources", request.address)

    def _allows(self, request: LinkRequest, name: str) -> bool:
        found = self.group.entry_for(name, self.user, is_sender=request.is_sender)
        return found is not None


def _is_false(what: str, attribute: str) -> Denial:
    return Denial(what, f"{attribute} is false", attribute=attribute)


def _not_in(what: str, attribute: str, name: str) -> Denial:
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
    return Denial(what, f"{attribute} does not contain {shown!r}", attribute=attribute)
