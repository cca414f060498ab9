"""`trioute explain` in a network of real routers: who is waited for, and who is next."""

from __future__ import annotations

import json
from typing import Any

from proton import Message

from support.commands import Ended, invoke
from support.configuring import entity
from support.proton_peers import ProtonPeers
from support.router_lines import start_line, until_known
from support.routers import RouterProcess, StartRouter

WIDTH = 200
CLIENTS = entity("listener", name="clients", host="127.0.0.1", port=0)
NEWS = entity("address", prefix="news", distribution="multicast")


def explained(router: RouterProcess, address: str) -> Ended:
    asked = ("anonymous", "send", address, "--width", str(WIDTH))
    ended = invoke("explain", "-b", router.url(), *asked)
    assert ended.errors == ""
    return ended


def answer(router: RouterProcess, address: str) -> dict[str, Any]:
    """Return the explanation that `trioute explain --json` prints, as data."""
    ended = invoke("explain", "-b", router.url(), "anonymous", "send", address, "--json")
    found: dict[str, Any] = json.loads(ended.output)
    return found


def test_who_is_waited_for_and_who_is_next(routers: StartRouter, proton: ProtonPeers) -> None:
    line = start_line(routers, "a", "b", "c")
    receiver = proton.connect(line[2].url()).receiver("orders", 0)
    until_known(line[0], "M0orders")
    ended = explained(line[0], "orders")
    assert ended.code == 1
    assert "router c: no link leads there yet" in ended.lines[1]
    proton.connect(line[0].url()).sender("orders")
    words = "waits for credit from router c, via b"
    answered = f"Nothing flows: {words} (no_credit)."
    proton.until(lambda: explained(line[0], "orders").lines[1] == answered, "the link is there")
    ended = explained(line[0], "orders")
    row = ended.lines[ended.lines.index("Other routers that receive") + 2]
    assert row.split()[:3] == ["c", "2", "b"]
    assert row.endswith(words)
    receiver.link.flow(5)
    proton.until(lambda: explained(line[0], "orders").code == 0, "messages flow")
    assert "route     a > b > c, cost 2" in explained(line[0], "orders").lines


def test_branches_of_a_tree(routers: StartRouter, proton: ProtonPeers) -> None:
    line = start_line(routers, "a", "b", "c", every=NEWS)
    receiver = proton.connect(line[2].url()).receiver("news", 5)
    until_known(line[0], "M0news")
    sender = proton.connect(line[0].url()).sender("news")
    assert sender.outcome(Message("x")).outcome == "accepted"
    assert receiver.get()[0].body == "x"
    told = answer(line[0], "news")
    (branch,) = told["network"]["branches"]
    assert (branch["router"], branch["routers"], branch["behind"]) == ("b", ["c"], 1)
    assert (branch["agreed"], branch["chosen"], told["flows"]) == (True, True, True)


def test_an_edge_and_its_interior(routers: StartRouter, proton: ProtonPeers) -> None:
    door = entity("listener", name="edges", host="127.0.0.1", port=0, role="edge")
    interior = routers('[router]\nid = "a"\nmode = "interior"\n\n' + CLIENTS + door)
    port = interior.addresses[1][1]
    uplink = entity("connector", name="up", host="127.0.0.1", port=port, role="edge")
    edge = routers('[router]\nid = "e"\nmode = "edge"\n\n' + CLIENTS + uplink)
    proton.until(lambda: any(each["used"] for each in uplinks(edge)), "the uplink is used")
    (told,) = uplinks(edge)
    assert (told["router"], told["used"]) == ("a", True)
    receiver = proton.connect(interior.url()).receiver("orders", 0)
    proton.connect(edge.url()).sender("orders")
    proton.until(lambda: answer(edge, "orders")["destinations"], "the proxy link is there")
    words = "waits for credit from router a"
    proton.until(lambda: explained(edge, "orders").lines[1][15:-13] == words, "it is attached")
    receiver.link.flow(5)
    proton.until(lambda: explained(edge, "orders").code == 0, "messages flow")
    told = answer(edge, "orders")
    (link,) = told["destinations"]
    assert (link["router"], link["isEdge"], told["route"]) == ("a", False, ["e", "a"])
    # and the other way
    proton.connect(edge.url()).receiver("bills", 7)
    proton.connect(interior.url()).sender("bills")
    proton.until(lambda: explained(interior, "bills").code == 0, "messages flow")
    (link,) = answer(interior, "bills")["destinations"]
    assert (link["router"], link["isEdge"], link["chosen"]) == ("e", True, True)


def test_an_edge_without_an_uplink(routers: StartRouter) -> None:
    edge = routers('[router]\nid = "e"\nmode = "edge"\n\n' + CLIENTS)
    assert explained(edge, "orders").lines[1].endswith("(no_uplink).")


def uplinks(edge: RouterProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer(edge, "orders")["network"]["uplinks"]
    return found
