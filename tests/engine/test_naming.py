"""A link's name for operators is made of three numbers."""

from __future__ import annotations

from router.engine.naming import link_identity

from support.loopback import dialled, running_node


async def test_connection_channel_and_handle() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.attach_receiver("q", credit=1)
        (pump,) = running.pumps
        (session,) = pump.connection.local_sessions.values()
        (link,) = session.local_links.values()
        assert link_identity(link) == f"{pump.number}.{session.channel}.{link.handle}"
