"""A real Prometheus scrapes a router under traffic: every alert and every panel finds its data.

The router runs as a process, its clients are Proton's, and everything that should make an alert
fire happens: a connector that leads nowhere and what should go there, wrong passwords, receivers
without credit, messages that are rejected, given back, or wait until their ttl ends.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import socket
import time
import urllib.request
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from proton import Delivery, Message

from router.config.users import hash_password

from support.certificates import Authority
from support.prometheus import (
    DASHBOARD,
    PATIENCE_S,
    RULES,
    Prometheus,
    complaints,
    hasty,
    running_prometheus,
)
from support.proton_peers import (
    ProtonConnection,
    ProtonPeers,
    ProtonReceiver,
    ProtonSender,
    Received,
)
from support.routers import RouterProcess, running_router

pytestmark = pytest.mark.interop

# Long enough for two scrapes on a machine that is busy.
WINDOW = "4s"
OUTCOMES = itertools.cycle([Delivery.ACCEPTED, Delivery.REJECTED, Delivery.RELEASED])
BIG = 110_000
# One delivery of so many is settled so late.
SLOW_PART = 30
SLOW_S = 3.0
# What no test should do to its machine, no client here does, or takes a router that stays as it is:
# promtool has made these fire.
NOT_HERE = {
    "TriouteBusy",
    "TriouteErrors",
    "TriouteFewFilesLeft",
    "TriouteHeldBack",
    "TriouteNotReady",
    "TriouteRestarting",
}
# of routers that are several (`test_network_alerts`)
OF_NETWORKS = ("TriouteNetwork", "TriouteEdge")
NAMES = re.compile(r"\b(?:trioute|process)_\w+|\bup\b")


class Traffic:
    """Clients that keep a router busy with everything that an operator should hear of."""

    def __init__(self, peers: ProtonPeers, router: RouterProcess) -> None:
        self.peers = peers
        self.router = router
        self.receiver: ProtonReceiver = self._connect().receiver("orders", 1000, accept=False)
        self.sender: ProtonSender = self._connect().sender("orders")
        # receivers that do not read, until their windows are closed: what comes after waits, and
        # where it has a ttl, expires; and one that has taken one message and asks for no more
        for address in ("stuck", "late"):
            self._unread(address)
        self._connect().receiver("one", 1, accept=False)
        self.one = [self._connect().sender("one") for _ in range(3)]
        self.late = self._connect().sender("late")
        self.stuck = [self._connect().sender("stuck") for _ in range(9)]
        self._settled = 0
        # what is settled late, and when
        self._slow: deque[tuple[float, Received]] = deque()
        self._logins: list[ProtonConnection] = []
        # senders whose container is not there
        self._forwarding = self._connect()
        self._routed: list[ProtonSender] = []
        # senders that the policy refuses
        self._refused: list[ProtonSender] = []

    def _connect(self) -> ProtonConnection:
        return self.peers.connect(self.router.url(), allowed_mechs="ANONYMOUS")

    def _unread(self, address: str) -> None:
        connection = self._connect()
        session = connection.session()
        session.incoming_capacity = 65536
        connection.receiver(address, 1000, session=session, accept=False).reads = False

    def go_on(self) -> None:
        """Do some of everything, as far as there is credit for it."""
        if self.sender.link.credit:
            self.sender.send(Message(body="x" * 100), wait=False)
        for received in self.receiver.received[self._settled :]:
            self.receiver.link.flow(1)
            self._settled += 1
            if self._settled % SLOW_PART:
                received.settle(next(OUTCOMES))
            else:
                self._slow.append((time.monotonic() + SLOW_S, received))
        while self._slow and self._slow[0][0] <= time.monotonic():
            self._slow.popleft()[1].settle(Delivery.ACCEPTED)
        if self.late.link.credit:
            self.late.send(Message(ttl=0.05, body="late"), wait=False)
        for sender, size in [
            *((each, 1) for each in self.one),
            *((each, BIG) for each in self.stuck),
        ]:
            if sender.link.credit and not sender.sent:
                sender.send(Message(body="x" * size), wait=False)
        if all(login.is_lost for login in self._logins):
            url = self.router.url(user="ada:wrong")
            self._logins.append(self.peers.begin_connect(url, allowed_mechs="PLAIN"))
        if all(sender.is_over for sender in self._routed):
            self._routed.append(self._forwarding.begin_sender("routed/orders"))
        if all(sender.is_over for sender in self._refused):
            self._refused.append(self._forwarding.begin_sender("forbidden"))

    def settle_all(self) -> None:
        """Accept all that has come."""
        late = [received for _, received in self._slow]
        for received in (*self.receiver.received[self._settled :], *late):
            received.accept()
        self._settled = len(self.receiver.received)
        self._slow.clear()

    def until(self, holds: Any, what: str) -> None:
        """Go on until something is so."""

        def look() -> Any:
            self.go_on()
            return holds()

        self.peers.until(look, what, PATIENCE_S)


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    """Run a router whose metrics are all in use."""
    folder = tmp_path_factory.mktemp("scraped")
    users = folder / "users"
    users.write_text(f"ada:{hash_password('s3cret')}\n", encoding="utf-8")
    # for a week
    soon = datetime.now(UTC) + timedelta(days=7)
    authority = Authority(folder)
    certificate = authority.issue("localhost", not_after=soon)
    # for an hour
    revoked = authority.revoke(next_update=timedelta(hours=1))
    with socket.socket() as nobody:
        # bound, and nobody listens
        nobody.bind(("127.0.0.1", 0))
        configuration = f"""
            [router]
            memoryLimitBytes = 1048576

            [policy]
            enableVhostPolicy = true
            [[vhost]]
            hostname = "$default"
            allowUnknownUser = true
            [vhost.groups."$default"]
            remoteHosts = "*"
            sources = "*"
            targets = "orders, one, late, stuck, routed/*"
            [[sslProfile]]
            name = "router"
            certFile = "{certificate}"
            caCertFile = "{authority.ca_file}"
            crlFile = "{revoked}"

            [[listener]]
            port = 0
            saslMechanisms = ["PLAIN", "ANONYMOUS"]
            usersFile = "{users}"

            [[listener]]
            port = 0
            name = "http"
            http = true

            [[connector]]
            name = "broker"
            host = "127.0.0.1"
            port = {nobody.getsockname()[1]}
            role = "route-container"

            [[autoLink]]
            address = "fed"
            direction = "in"
            connection = "broker"

            [[linkRoute]]
            prefix = "routed"
            direction = "in"
            connection = "broker"
            """
        with running_router(folder, configuration) as started:
            yield started


@pytest.fixture(scope="module")
def peers() -> Iterator[ProtonPeers]:
    """Proton's connections, of all tests here."""
    peers = ProtonPeers()
    yield peers
    peers.close()


@pytest.fixture(scope="module")
def prometheus(
    router: RouterProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Prometheus, with the rules in a hurry, scraping the router."""
    host, port = router.http_addresses[0]
    rules = hasty(RULES.read_text(encoding="utf-8"), WINDOW)
    folder = tmp_path_factory.mktemp("prometheus")
    with running_prometheus(folder, [f"{host}:{port}"], rules) as started:
        yield started


@pytest.fixture(scope="module")
def traffic(router: RouterProcess, peers: ProtonPeers, prometheus: Prometheus) -> Traffic:
    """Traffic that Prometheus has seen for a while."""
    traffic = Traffic(peers, router)
    ingress = f"rate(trioute_deliveries_ingress_total[{WINDOW}]) > 0"
    traffic.until(lambda: prometheus.query(ingress), "deliveries are seen")
    return traffic


def test_names_are_as_prometheus_likes_them(router: RouterProcess, traffic: Traffic) -> None:
    host, port = router.http_addresses[0]
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=PATIENCE_S) as response:
        found = complaints(response.read().decode())
    # Dispatch calls gauges totals
    assert found
    assert [each for each in found if not each.startswith("qdr_")] == []


def rules_of(prometheus: Prometheus) -> dict[str, str]:
    """Return the expressions of the rules as Prometheus has read them."""
    (group,) = prometheus.get("rules")["groups"]
    return {rule["name"]: rule["query"] for rule in group["rules"]}


def test_every_alert_fires_that_should(prometheus: Prometheus, traffic: Traffic) -> None:
    expected = set(rules_of(prometheus)) - NOT_HERE - {"TriouteDown"}
    expected = {name for name in expected if not name.startswith(OF_NETWORKS)}
    assert len(expected) > 8
    seen: set[str] = set()

    def have_all_fired() -> bool:
        seen.update(prometheus.firing())
        return seen >= expected

    try:
        traffic.until(have_all_fired, "all fire")
    finally:
        # a scrape may take too long once, on a machine that is busy
        assert seen - {"TriouteDown"} == expected


def test_every_alert_looks_at_data_that_there_is(prometheus: Prometheus, traffic: Traffic) -> None:
    for name, expression in rules_of(prometheus).items():
        prometheus.query(expression)
        for metric in NAMES.findall(expression):
            assert prometheus.query(f'{metric}{{job="trioute"}}'), f"{name}: nothing in {metric}"


def test_no_rule_fails_to_be_evaluated(prometheus: Prometheus, traffic: Traffic) -> None:
    (group,) = prometheus.get("rules")["groups"]
    assert {rule["health"] for rule in group["rules"]} == {"ok"}
    assert not any(rule.get("lastError") for rule in group["rules"])


def panels() -> list[tuple[str, str]]:
    """Return the dashboard's expressions as Grafana would send them, each with its panel."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [
        (
            f"{panel['title']}: {target['legendFormat']}",
            target["expr"].replace("$__rate_interval", WINDOW).replace("$instance", ".*"),
        )
        for panel in board["panels"]
        for target in panel.get("targets", [])
    ]


@pytest.mark.parametrize(("what", "expression"), panels(), ids=lambda value: value[:40])
def test_every_panel_has_data(
    what: str, expression: str, prometheus: Prometheus, traffic: Traffic
) -> None:
    assert "$" not in expression

    def values() -> list[float]:
        found = prometheus.query(expression)
        assert all(series["metric"].get("instance") for series in found), "whose it is"
        # a quantile of nothing is no number, and no point of a graph
        numbers = [float(series["value"][1]) for series in found]
        return [number for number in numbers if not math.isnan(number)]

    traffic.until(values, what)
    assert min(values()) >= 0


def test_the_choice_of_instances_has_data(prometheus: Prometheus, traffic: Traffic) -> None:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    (query,) = [
        each["query"]["query"] for each in board["templating"]["list"] if each["name"] == "instance"
    ]
    selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()  # type: ignore[union-attr]
    assert prometheus.get(f"label/{label}/values", **{"match[]": selector})


def test_what_is_scraped_is_what_the_clients_did(prometheus: Prometheus, traffic: Traffic) -> None:
    def accepted() -> float:
        name = "trioute_address_deliveries_outcome_total"
        found = prometheus.query(f'{name}{{address="orders", outcome="accepted"}}')
        return float(found[0]["value"][1]) if found else 0.0

    # it stands still: what has been sent is settled, and nothing more is sent
    traffic.peers.until(lambda: not traffic.sender.link.queued, "all has been sent")
    outcomes = [sent for sent in traffic.sender.sent if sent.is_settled]
    assert outcomes

    def is_so() -> bool:
        traffic.settle_all()
        told = traffic.sender.outcomes
        return traffic.sender.all_settled() and accepted() == told.count("accepted")

    traffic.peers.until(is_so, "the counts are the same", PATIENCE_S)


def test_a_router_that_has_gone_is_missed(
    prometheus: Prometheus, traffic: Traffic, router: RouterProcess
) -> None:
    router.stop()
    traffic.peers.until(lambda: "TriouteDown" in prometheus.firing(), "it is missed", PATIENCE_S)
