"""Requirements of the specification on sockets that no other test here shows."""

from __future__ import annotations

import pytest

from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import SaslMechanisms

from support.loopback import dialled, running_node


@pytest.mark.spec("2.2-3", "2.2-4", "2.2-9", "5.1-1")
async def test_what_follows_a_strange_header_is_read_to_its_end() -> None:
    """Else the socket would be reset, and the peer might never read the answer."""
    async with running_node() as running, dialled(running.address) as peer:
        await peer.say(b"AMQP\x00\x00\x09\x01" + bytes(500_000))
        assert await peer.octets(8) == AMQP_HEADER
        assert await peer.rest() == b""
        await peer.say(bytes(500_000))
        await peer.stream.aclose()
        await running.until_empty()


@pytest.mark.spec("5.3.2-1", "5.3.3.1-2")
async def test_a_listener_that_asks_for_nothing_offers_anonymous_alone() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.say(SASL_HEADER)
        assert await peer.octets(8) == SASL_HEADER
        assert (await peer.hear(SaslMechanisms)).sasl_server_mechanisms == ("ANONYMOUS",)
