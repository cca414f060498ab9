"""Many senders fill the memory of a real router at once, and whoever receives does not read."""

from __future__ import annotations

from proton import Message

from support.configuring import entity
from support.proton_peers import ProtonPeers
from support.routers import StartRouter

MIB = 2**20
# each for itself is no more than a session may have waiting
SENDERS = 150
BODY = bytes(20_000)


def test_what_is_too_much_is_released_and_the_rest_arrives(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    router = routers(entity("listener", port=0) + f"[router]\nmemoryLimitBytes = {MIB}\n")
    receiver = proton.connect(router.url()).receiver(address, 10 * SENDERS)
    receiver.reads = False
    senders = [proton.connect(router.url()).sender(address) for _ in range(SENDERS)]
    sent = [sender.send(Message(body=BODY), wait=False) for sender in senders for _ in range(2)]
    proton.until(lambda: any(each.is_settled for each in sent), "some have their message back")
    assert {each.outcome for each in sent} == {"released", ""}
    # others are served meanwhile
    beside = proton.connect(router.url()).receiver(f"{address}/beside", 10)
    other = proton.connect(router.url()).sender(f"{address}/beside")
    assert other.outcome(Message("still here")).outcome == "accepted"
    assert beside.bodies() == ["still here"]
    receiver.reads = True

    def is_over() -> bool:
        receiver.read()
        return all(each.is_settled for each in sent)

    proton.until(is_over, "all is settled")
    outcomes = [each.outcome for each in sent]
    assert set(outcomes) == {"accepted", "released"}
    assert len(receiver.received) == outcomes.count("accepted")
    assert "waiting messages exceed memoryLimitBytes" in router.log_text()
