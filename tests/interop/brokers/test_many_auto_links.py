"""A thousand auto-links to one broker: all of them are there, and again after it was killed."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

from proton import Message

from support.brokers import Broker
from support.configuring import LISTENER, entity
from support.management_tool import Tool
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter

COUNT = 1000


def attached(router: RouterProcess) -> int:
    """How many of the auto-links are attached."""
    with closing(Tool(router)) as tool:
        links = tool.query("router.link", "owningAddr", "linkDir", "operStatus")
    up = [each for each in links if each["linkDir"] == "out" and each["operStatus"] == "up"]
    return sum("many/" in (each["owningAddr"] or "") for each in up)


def test_a_thousand_auto_links(
    routers: StartRouter, proton: ProtonPeers, artemis: Broker, address: str
) -> None:
    router = routers(
        LISTENER
        + artemis.connector()
        + "".join(
            entity(
                "autoLink",
                address=f"many/{number}",
                direction="out",
                connection=artemis.name,
                externalAddress=f"{address}.{number}",
            )
            for number in range(COUNT)
        )
    )

    proton.until(lambda: attached(router) == COUNT, "all are active")
    client = proton.connect(router.url())
    # by one anonymous sender, so that this is about the router's links and no others
    sender = client.sender(None)
    for time in ("before", "after"):
        sent = [
            sender.send(Message(time, address=f"many/{number}", durable=True))
            for number in range(COUNT)
        ]
        proton.until(sender.all_settled, "all are settled")
        assert Counter(each.outcome for each in sent) == {"accepted": COUNT}
        if time == "before":
            artemis.kill()
            proton.until(lambda: attached(router) == 0, "none is active")
            artemis.begin_start()
            proton.until(artemis.is_ready, "the broker is back")
            proton.until(lambda: attached(router) == COUNT, "all are again")
    there = proton.connect(artemis.url())
    for number in (0, COUNT // 2, COUNT - 1):
        receiver = there.receiver(f"{address}.{number}", 2)
        receiver.get(2)
        assert receiver.bodies() == ["before", "after"]
