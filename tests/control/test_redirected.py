"""Auto-links that a container redirects are attached where it says, and come back from there."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.redirects import Redirect
from router.amqp.types import Int, Symbol
from router.control.auto_links import RETRY_S
from router.control.link_supervisor import RETRY_JITTER
from router.control.redirected import ATTACH_TIMEOUT_S, MAX_REDIRECTS

from support.containers import Container, ControlledRouter, plan

LONGEST_S = RETRY_S * (1 + RETRY_JITTER) + 0.5


@attrs.define
class Port:
    """Connections that are to be made, which the test makes itself; `reason`: why none is."""

    router: ControlledRouter
    reason: str = ""
    asked: list[tuple[Any, Redirect, str]] = attrs.Factory(list)
    left: list[str] = attrs.Factory(list)

    def follow(self, connection: Any, redirect: Redirect, name: str) -> str:
        self.asked.append((connection, redirect, name))
        return self.reason

    def leave(self, name: str) -> None:
        self.left.append(name)

    def connect(self) -> Container:
        """Make the connection that was asked for last."""
        return Container(self.router, "another", self.asked[-1][2])


def info(host: str | None = "elsewhere", **fields: Any) -> dict[Symbol, Any]:
    values = {"network-host": host, "port": Int(5672), **fields}
    return {Symbol(name): value for name, value in values.items() if value is not None}


def redirecting(reason: str = "", **fields: Any) -> tuple[ControlledRouter, Container, Port]:
    """Return a router with an auto-link that its container has redirected."""
    router = ControlledRouter()
    port = router.auto_links.redirected.port = Port(router, reason)
    container = Container(router)
    redirect(container, **fields)
    router.configure(plan("q"))
    return router, container, port


def redirect(container: Container, node: str = "q", **fields: Any) -> None:
    container.refuses[node] = "amqp:link:redirect"
    container.info = info(**fields)


def status(router: ControlledRouter) -> str:
    return str(router.auto_links.status_of("out q"))


@pytest.mark.parametrize(("address", "node"), [(None, "q"), ("theirs", "theirs")])
@pytest.mark.spec("2.8.18-2")
def test_a_redirect_is_followed(address: str | None, node: str) -> None:
    router, container, port = redirecting(address=address)
    [(connection, there, _)] = port.asked
    assert connection is container.connection
    assert there == Redirect(network_host="elsewhere", port=5672, address=address)
    other = port.connect()
    assert len(other.attached(node)) == 1
    assert status(router) == "active"
    # what is sent goes there, and nobody asks again where it came from
    other.nodes[0].grant(1)
    sender = router.client().sender("q")
    sender.send(b"x")
    assert [payload for _, payload in other.nodes[0].received] == [b"x"]
    router.wait(10 * LONGEST_S)
    assert len(container.attaches) == 1
    assert port.left == []


def test_nothing_else_goes_there() -> None:
    router, _, port = redirecting()
    name = port.asked[0][2]
    router.configure(plan("q"), plan("p", container_id="another"), plan("r", connection=name))
    other = port.connect()
    assert [each.address for each in other.attached()] == ["q"]


def test_one_that_may_not_be_followed_is_tried_again_where_it_is() -> None:
    router, container, port = redirecting("allowRedirect is off")
    assert status(router) == "failed"
    router.wait(LONGEST_S)
    assert len(container.attaches) == len(port.asked) >= 2
    assert len(router.auto_links.redirected) == 0
    del container.refuses["q"]
    router.wait(LONGEST_S)
    assert status(router) == "active"


@pytest.mark.parametrize("how", ["close", "lose", "detach", "refuse"])
def test_where_it_fails_it_is_tried_again_at_home(how: str) -> None:
    router, container, port = redirecting()
    name = port.asked[0][2]
    if how == "refuse":
        other = Container(router, "another", name, opens=False)
        other.refuses["q"] = "amqp:not-found"
        other.open()
    else:
        other = port.connect()
    if how == "detach":
        other.nodes[0].detach("amqp:resource-deleted")
    elif how != "refuse":
        getattr(other, how)()
    assert port.left == [name]
    assert len(router.auto_links.redirected) == 0
    del container.refuses["q"]
    router.wait(LONGEST_S)
    assert len(container.attached("q")) == 1
    assert status(router) == "active"


def test_where_nobody_answers_it_is_tried_again_at_home() -> None:
    router, container, port = redirecting()
    router.wait(ATTACH_TIMEOUT_S - 0.5)
    assert (len(container.attaches), port.left) == (1, [])
    router.wait(1 + LONGEST_S)
    assert port.left == [port.asked[0][2]]
    assert len(container.attaches) == len(port.asked) == 2


def test_redirects_follow_one_another_but_not_for_ever() -> None:
    router, _, port = redirecting()
    for hop in range(1, MAX_REDIRECTS + 1):
        assert len(port.asked) == hop
        other = Container(router, "another", port.asked[-1][2], opens=False)
        redirect(other, host=f"host-{hop}")
        other.open()
    assert len(port.asked) == MAX_REDIRECTS == len(port.left)
    assert len(router.auto_links.redirected) == 0


def test_redirects_in_a_circle_end() -> None:
    router, _, port = redirecting()
    other = Container(router, "another", port.asked[0][2], opens=False)
    redirect(other)
    other.open()
    assert len(port.asked) == len(port.left) == 1
    assert len(router.auto_links.redirected) == 0


@pytest.mark.parametrize("how", ["withdraw", "lose"])
def test_it_leaves_with_what_it_was_for(how: str) -> None:
    router, container, port = redirecting()
    other = port.connect()
    if how == "lose":
        container.lose()
    else:
        router.configure()
    assert port.left == [port.asked[0][2]]
    other.lose()
    assert status(router) == "inactive"
    assert router.auto_links.lines_of("out q") == []
    assert not router.control.containers.dedicated_observers


def test_one_that_names_no_host_is_left_to_who_makes_connections() -> None:
    _, _, port = redirecting(host=None, reason="it names no host")
    assert [each[1].host for each in port.asked] == [None]
