"""The interfaces of core, compared with the classes that implement them."""

from __future__ import annotations

import pytest

from router.amqp.constants import TerminusExpiryPolicy
from router.core import ports
from router.core.deliveries import across, credit, fallbacks, max_message_size, related_credit
from router.core.diagnosis.stuck_receivers import DroppedReceiver, Progress
from router.core.link_routes.routed_links import RoutedLink
from router.core.links import detach, resuming, resumption, stealing, terminus
from router.core.model.address import BALANCED, Address
from router.core.network.holding import Holds
from router.core.network.lane_numbers import FIRST_LANE
from router.core.network.transit import Transit
from router.engine.link import OutgoingLink

from support.in_memory import Router
from support.protocols import members, missing

ROUTER = Router()
FORWARDER = ROUTER.forwarder
ADDRESS = Address("q", BALANCED)
REFUSING = max_message_size._Refusing(FORWARDER, ADDRESS)
SHARING = related_credit._Sharing(ADDRESS)
MOVE = fallbacks.FallbackMove(FORWARDER, ADDRESS, ADDRESS, ADDRESS)
WAY = Transit(FORWARDER.network, "b", ADDRESS, FIRST_LANE)
TERMINUS = terminus.Terminus(
    OutgoingLink(Holds(FORWARDER)._session, "link", 0), TerminusExpiryPolicy.NEVER, 1
)
DROPPED = DroppedReceiver(0.0, 1, "container", "link", 1.0, "it takes nothing")


PROVIDERS: list[tuple[type, object]] = [
    (ports.BatchSplitting, FORWARDER.batches),
    (ports.Copies, FORWARDER.distribution.pending_copies),
    (ports.Core, FORWARDER),
    (ports.CreditNotes, FORWARDER.credit),
    (ports.RelatedSharing, SHARING),
    (ports.Distribution, FORWARDER.distribution),
    (ports.DroppedReceiver, DROPPED),
    (ports.FallbackMove, MOVE),
    (ports.MovedTerminus, TERMINUS),
    (ports.Moving, resuming._Moving(FORWARDER, TERMINUS)),
    (ports.Observer, ROUTER),
    (ports.Progress, Progress()),
    (ports.Queues, FORWARDER.queues),
    (ports.Refusing, REFUSING),
    (ports.RepeatedTask, across.Sharing(FORWARDER, ADDRESS)),
    (ports.RepeatedTask, credit.Sharing(ADDRESS)),
    (ports.Resuming, RoutedLink),
    (ports.Resuming, detach._LEAVING),
    (ports.Resuming, resumption.Resumption),
    (ports.Settlement, FORWARDER.settlement),
    (ports.TransitWay, WAY),
    (ports.Withholding, stealing._StolenSender),
]


@pytest.mark.parametrize(
    ("port", "provider"), PROVIDERS, ids=lambda each: getattr(each, "__name__", "")
)
def test_core_has_what_its_parts_need(port: type, provider: object) -> None:
    assert members(port)
    assert missing(port, provider) == set()


def test_each_interface_is_compared_with_what_implements_it() -> None:
    compared = {port.__name__ for port, _ in PROVIDERS}
    assert compared == {
        name for name, each in vars(ports).items() if getattr(each, "_is_protocol", False)
    } - {"Protocol"}
