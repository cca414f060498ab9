"""Clients that ask of a source what no address of the router has: they hear that, or are let be.

Neither Proton nor rhea looks at the answer to its attach: what is not refused goes unnoticed.
"""

from __future__ import annotations

import pytest
from proton import Message, Terminus
from proton.reactor import Copy, DurableSubscription, Filter, LinkOption, Selector

from support.configuring import LENIENT
from support.go_peers import said_by_go
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter

NOT_IMPLEMENTED = "amqp:not-implemented"
RED = Selector("colour = 'red'")


@pytest.mark.spec("B2.3.10-1", "B2.3.11-1", "F2.3-2")
@pytest.mark.parametrize(
    ("option", "named"),
    [
        (RED, "unsupported source filter: selector (apache.org:selector-filter:string)"),
        (Copy(), "distribution-mode 'copy' is not available here"),
        (DurableSubscription(), "durable subscriptions are not available here"),
    ],
)
def test_proton_hears_what_it_cannot_have(
    router: RouterProcess, proton: ProtonPeers, address: str, option: LinkOption, named: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 10, options=[option])
    receiver.until_over()
    assert receiver.condition is not None
    assert receiver.condition.name == NOT_IMPLEMENTED
    assert str(receiver.condition.description).startswith(named)
    sender = proton.connect(router.url()).sender(address)
    assert not sender.link.credit


def test_go_amqp_hears_that_its_selector_is_not_applied(
    router: RouterProcess, address: str
) -> None:
    heard = said_by_go(router.url(), address, "colour = 'red'")
    assert heard == [f"refused: {NOT_IMPLEMENTED}"]


def test_proton_may_say_that_it_filters_nothing(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 10, options=[Filter({})])
    assert proton.connect(router.url()).sender(address).outcome(Message("x")).outcome == "accepted"
    assert receiver.bodies() == ["x"]


@pytest.mark.spec("3.5.3-6")
def test_proton_browses_a_multicast_address(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(router.url())
    browser = connection.receiver(f"multicast/{address}", 10, options=[Copy()])
    assert browser.link.remote_source.distribution_mode == Terminus.DIST_MODE_COPY
    plain = connection.receiver(f"multicast/{address}", 10)
    sender = connection.sender(f"multicast/{address}")
    assert sender.outcome(Message("x")).outcome == "accepted"
    assert (browser.bodies(), plain.bodies()) == (["x"], ["x"])


def test_proton_is_let_be_where_the_configuration_says_so(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(routers(LENIENT).url())
    receiver = connection.receiver(address, 10, options=[RED, Copy(), DurableSubscription()])
    source = receiver.link.remote_source
    assert not source.filter.get_object()
    assert source.distribution_mode == Terminus.DIST_MODE_MOVE
    assert (source.expiry_policy, source.timeout) == (Terminus.EXPIRE_WITH_LINK, 60)
    assert source.durability == Terminus.NONDURABLE
    assert connection.sender(address).outcome(Message("blue")).outcome == "accepted"


@pytest.mark.spec("B2.3.10-1")
def test_rhea_hears_that_its_selector_is_not_applied(
    router: RouterProcess, rhea: RheaPeer, address: str
) -> None:
    rhea.connect(router.port)
    rhea.receiver({"address": address, "selector": "colour = 'red'"})
    (refused,) = rhea.wait("receiver_error")
    assert refused["error"]["condition"] == NOT_IMPLEMENTED
    named = "jms-selector (apache.org:selector-filter:string)"
    assert refused["error"]["description"] == f"unsupported source filter: {named}"


def test_rhea_is_let_be_where_the_configuration_says_so(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    router = routers(LENIENT)
    rhea.connect(router.port)
    rhea.receiver({"address": address, "selector": "colour = 'red'"})
    (opened,) = rhea.find("receiver_open")
    assert opened["address"] == address
    assert not opened["filter"]
    assert proton.connect(router.url()).sender(address).outcome(Message("x")).outcome == "accepted"


@pytest.mark.spec("B2.3.11.3-2")
def test_rhea_hears_that_none_of_its_outcomes_is_known(
    router: RouterProcess, rhea: RheaPeer, address: str
) -> None:
    rhea.connect(router.port)
    rhea.receiver({"address": address, "outcomes": ["x:mine:list"]})
    (refused,) = rhea.wait("receiver_error")
    assert refused["error"]["condition"] == NOT_IMPLEMENTED
    assert refused["error"]["description"].startswith("unsupported source outcomes: x:mine:list")
    rhea.receiver({"address": address, "outcomes": ["x:mine:list", "amqp:accepted:list"]}, "both")
    assert rhea.find("receiver_open", link="both")[0]["address"] == address
