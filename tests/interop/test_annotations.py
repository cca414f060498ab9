"""The router's own annotations as other implementations see them, for each stripAnnotations."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Message, symbol

from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter

STRIP = ["in", "out", "both", "no"]
CONFIGURATION = '[router]\nid = "here"\n' + "".join(
    f'[[listener]]\nhost = "127.0.0.1"\nport = 0\nname = "{strip}"\nstripAnnotations = "{strip}"\n'
    for strip in STRIP
)
USERS: dict[Any, Any] = {symbol("x-opt-user"): "u", symbol("x-opt-list"): [1, "two"]}
COME: dict[Any, Any] = {
    symbol("x-opt-qd.ingress"): "0/far",
    symbol("x-opt-qd.trace"): ["0/far", "0/near"],
}


def expected(sender: str, receiver: str, address: str) -> dict[Any, Any]:
    """Return the annotations that a receiver gets of a message that has users' and routers' ones.

    `sender` and `receiver` are the stripAnnotations of their listeners.
    """
    if receiver in ("out", "both"):
        return USERS
    believed = sender in ("out", "no")
    return {
        **USERS,
        "x-opt-qd.to": address,
        "x-opt-qd.ingress": "0/far" if believed else "0/here",
        "x-opt-qd.trace": ["0/far", "0/near", "0/here"] if believed else ["0/here"],
    }


def read(octets: bytes) -> Message:
    """Decode the octets with Proton."""
    message = Message()
    message.decode(octets)
    return message


@pytest.fixture
def stripping(routers: StartRouter) -> RouterProcess:
    """Start a router with a listener for each stripAnnotations value, in the order of `STRIP`."""
    return routers(CONFIGURATION)


@pytest.mark.spec("3.2.3-1", "3.2.3-2")
def test_what_proton_sees(stripping: RouterProcess, proton: ProtonPeers, address: str) -> None:
    for to, receiving in enumerate(STRIP):
        receiver = proton.connect(stripping.url(listener=to)).receiver(f"{address}/{to}", 10)
        for at, sending in enumerate(STRIP):
            sender = proton.connect(stripping.url(listener=at)).sender(f"{address}/{to}")
            sender.send(Message(at, annotations={**COME, **USERS}))
            found = receiver.get(at + 1)[-1].message
            assert found.annotations == expected(sending, receiving, f"{address}/{to}")
            assert found.body == at


@pytest.mark.spec("3.2.3-1", "3.2.3-2")
def test_what_rhea_sees(
    stripping: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    for number, strip in enumerate(STRIP):
        port = stripping.addresses[number][1]
        rhea.connect(port, strip, username="anonymous")
        rhea.receiver(f"{address}/{strip}", f"to-{strip}", strip)
    for receiving in STRIP:
        for count, sending in enumerate(STRIP, 1):
            name = f"{sending}-{receiving}"
            rhea.sender(f"{address}/{receiving}", name, sending)
            # as rhea itself encodes them
            annotations = {str(key): value for key, value in {**COME, **USERS}.items()}
            rhea.tell("send", link=name, fields={"body": name, "message_annotations": annotations})
            found = read(rhea.messages(count, f"to-{receiving}")[-1])
            assert found.annotations == expected(sending, receiving, f"{address}/{receiving}")
            assert found.body == name


def test_a_message_through_two_routers_tells_both(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    # what a client relays between them, as a router would
    text = (
        '[router]\nid = "{}"\n[[listener]]\nhost = "127.0.0.1"\nport = 0\nstripAnnotations = "no"\n'
    )
    first = routers(text.format("first"))
    second = routers(text.format("second"))
    between = proton.connect(first.url()).receiver(address, 10)
    last = proton.connect(second.url()).receiver(address, 10)
    proton.connect(first.url()).sender(address).send(Message("m"))
    proton.connect(second.url()).sender(address).send(bytes(between.get(1)[0].octets))
    found = last.get(1)[0].message
    assert found.annotations == {
        "x-opt-qd.to": address,
        "x-opt-qd.ingress": "0/first",
        "x-opt-qd.trace": ["0/first", "0/second"],
    }
