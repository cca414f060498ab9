"""The log of a router process, as Dispatch's tools ask for it: ids lead from lines to entities."""

from __future__ import annotations

import re
from typing import Any

from support.management_tool import Tool
from support.proton_peers import ProtonPeers
from support.routers import StartRouter


def lines(tool: Any, **arguments: Any) -> list[list[Any]]:
    """Return the lines that GET-LOG answers."""
    answered = tool.ask(operation="GET-LOG", type="org.amqp.management", name="self", **arguments)
    assert answered.properties["statusCode"] == 200
    return list(answered.body)


def test_ids_lead_from_lines_to_entities(start_router: StartRouter, proton: ProtonPeers) -> None:
    router = start_router()
    tool = Tool(router)
    peer = proton.connect(router.url())
    peer.receiver("watched", 1)
    (link,) = (each for each in tool.query("router.link") if each["owningAddr"] == "M0watched")
    ids = f"[C{link['connectionId']}][L{link['identity']}]"
    (line,) = (line for line in lines(tool) if "address=watched" in line[2])
    module, level, text, file, number, at_s = line
    assert (module, level, file, number) == ("ROUTER_CORE", "info", None, None)
    assert text.startswith(f"{ids} link attached ")
    assert at_s > 1_600_000_000
    (connection,) = (
        each for each in tool.query("connection") if each["identity"] == link["connectionId"]
    )
    container = f" container={connection['container']} "
    (opened,) = (line[2] for line in lines(tool) if "opened" in line[2] and container in line[2])
    assert opened.startswith(f"[C{connection['identity']}] connection opened ")
    # the log itself has the same
    assert f"link_id={link['identity']} " in router.log_text()
    tool.close()


def test_the_last_lines_are_those_asked_for(start_router: StartRouter) -> None:
    tool = Tool(start_router())
    every = lines(tool)
    assert len(every) > 2
    assert lines(tool, limit=2) == every[-2:]
    refused = tool.ask(operation="GET-LOG", type="org.amqp.management", limit=-1)
    assert refused.properties["statusCode"] == 400
    tool.close()


def test_every_line_about_a_connection_or_link_has_its_id(
    start_router: StartRouter, proton: ProtonPeers
) -> None:
    router = start_router('[log]\nlevel = "trace"\n\n[[listener]]\nport = 0\n')
    peer = proton.connect(router.url())
    peer.receiver("q", 1)
    peer.close()
    router.stop()
    # what is about a connection has a peer, and what is about a link a direction
    for line in router.log_text().splitlines():
        if "peer=" in line:
            assert re.search(r" connection=\d+", line), line
        if "direction=" in line:
            assert re.search(r" link_id=\d+\.\d+\.\d+", line), line


def test_frames_of_one_listener_are_logged(start_router: StartRouter, proton: ProtonPeers) -> None:
    router = start_router(
        '[[listener]]\nname = "plain"\nport = 0\n\n'
        '[[listener]]\nname = "traced"\nport = 0\nenableProtocolTrace = true\n'
    )
    tool = Tool(router)
    traced = proton.connect(router.url(listener=1))
    traced.receiver("watched", 1)
    (number,) = (
        each["identity"] for each in tool.query("connection") if each["enableProtocolTrace"]
    )
    frames = [line for line in lines(tool) if line[0] == "PROTOCOL"]
    assert {line[1] for line in frames} == {"trace"}
    assert all(line[2].startswith(f"[C{number}]:0 ") for line in frames)
    texts = [line[2].removeprefix(f"[C{number}]:0 ") for line in frames]
    assert sum("@attach(18) [name=" in text and '"watched"' in text for text in texts) == 2
    assert any(text.startswith("<- @sasl-init(65) [mechanism=:ANONYMOUS") for text in texts)
    assert f"connection={number}" in router.log_text()
    tool.close()
