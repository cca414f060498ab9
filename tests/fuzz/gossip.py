"""Fuzz the routing protocol: a router says whatever a script decides; the others must cope.

Three well-behaved routers form a ring, and the wild one is a neighbour of each. It knows their ids
and instances, and speaks in its own name and in theirs.
"""

from __future__ import annotations

from typing import Any

from router.control.network import messages as m
from router.control.network.changes import Send
from router.control.network.codec import encode_control
from router.control.network.digests import BUCKETS
from router.control.network.timing import Timing

from fuzz.choices import Choices
from support.routing import Network, Router, Wire

NAMES = ("a", "b", "c", "w", "nobody", "x")
KEYS = ("M0one", "M0two", "Cqueues", "M0" + "x" * 300)
MOST_MESSAGES = 200
# What was said wrongly is forgotten soon.
TIMING = Timing(ra_interval_s=6, refresh_s=5, max_age_s=15)
# No router may answer with more than so many messages for one that came.
MOST_ANSWERS = 40


class Wild(Router):
    """Router that sends nothing but hellos and what the script decides."""

    def act(self) -> None:
        """Say hello, and nothing that the protocol says beside."""
        for change in self.protocol.take(self.network.now):
            if isinstance(change, Send) and isinstance(change.message, m.Hello):
                self.network.send(self, change)
        self.network.wake(self)


def gossip(script: bytes) -> None:
    """Run a whole script, and check that the routers agree on the truth once `Wild` has gone."""
    choices = Choices(script)
    network = Network(choices.octet(), TIMING, most_delay_s=0.01)
    for name in "abc":
        network.add(name).want("M0one", f"M0{name}")
    for pair in ("ab", "bc", "ca"):
        network.join(pair[0], pair[1])
    network.settle(5)
    wild = Wild(network, "w", 7_000)
    network.everybody.append(wild)
    wires = [network.join(wild, network.routers[name]) for name in "abc"]
    wild.act()
    network.run(0.5)
    said = 0
    before = network.count()
    while not choices.over and said < MOST_MESSAGES:
        wire = choices.of(wires)
        octets = encode_control(message(choices, network))
        if wire.is_up:
            wire.carry(wild, octets)
        said += 1
        if choices.one_in(4):
            network.run(choices.of((0.01, 0.3, 4.0)))
    network.run(0.1)
    assert network.count() - before <= 200 + MOST_ANSWERS * said, "a storm"
    _tidy(network, wild, wires)


def _tidy(network: Network, wild: Router, wires: list[Wire]) -> None:
    wild.is_alive = False
    for wire in wires:
        wire.lose()
    # what it has said is forgotten, and so is who has given way to it
    network.run(2 * network.timing.max_age_s)
    for pair in ("ab", "bc", "ca"):
        ends = [network.routers[each] for each in pair]
        if not any(set(wire.ends) == set(ends) for wire in network.wires.values()):
            network.join(ends[0], ends[1])
    network.settle(10)
    for router in network.routers.values():
        protocol = router.protocol
        assert len(protocol.states.records) == 2
        assert len(protocol.mobile.tables) == 2
        assert not protocol.mobile.wants
        assert not protocol.comparison.asked


def message(choices: Choices, network: Network) -> Any:
    """Return any message, usually about existing routers."""
    kind = choices.below(9)
    router = choices.of(NAMES)
    instance = _instance(choices, network, router)
    if kind == 0:
        return m.Hello(choices.mostly("w", NAMES), 7_000, instance)
    if kind == 1:
        return m.Summary(tuple(choices.octet() for _ in range(BUCKETS)))
    if kind == 2:
        rows = [
            m.Row(each, _instance(choices, network, each), *_numbers(choices, 3))
            for each in _some(choices, NAMES)
        ]
        return m.Rows(choices.one_in(2), tuple(rows))
    if kind == 3:
        states = [_state(choices, network, each) for each in _some(choices, NAMES)]
        return m.LinkStateUpdate(tuple(states))
    if kind == 4:
        return m.LinkStateRequest(tuple(_some(choices, NAMES)))
    if kind == 5 and choices.one_in(4) and instance > 0:
        return m.Withdrawal(router, instance, instance - 1)
    if kind == 6:
        wishes = [
            m.TableRequest(each, _instance(choices, network, each), *_numbers(choices, 1))
            for each in _some(choices, NAMES)
        ]
        return m.MobileRequest(tuple(wishes))
    keys = tuple(_some(choices, KEYS))
    terms = bytes(choices.of((0, 1, 2, 0x11)) for _ in keys)
    seq, digest = _numbers(choices, 2)
    if kind == 7:
        part = choices.below(3)
        return m.MobileTable(router, instance, seq, digest, part, part + 1, keys, terms)
    return m.MobileUpdate(router, instance, seq, seq + 1, digest, keys, terms)


def _some(choices: Choices, several: tuple[str, ...]) -> list[str]:
    return [choices.of(several) for _ in range(choices.below(4))]


def _instance(choices: Choices, network: Network, router: str) -> int:
    known = network.routers.get(router)
    right = 7_000 if known is None else known.instance
    return choices.mostly(right, (0, right + 1, max(0, right - 1), 2**63 - 1))


def _numbers(choices: Choices, count: int) -> list[int]:
    return [choices.mostly(choices.below(9), (0, 2**62, 2**63 - 2)) for _ in range(count)]


def _state(choices: Choices, network: Network, router: str) -> m.Aged:
    links = {each: 1 + choices.below(3) for each in _some(choices, NAMES)}
    seq, mobile_seq, digest = _numbers(choices, 3)
    state = m.LinkState(
        router, _instance(choices, network, router), seq, links, mobile_seq, digest, {}
    )
    return m.Aged(state, choices.mostly(0, (5_000, 89_000, 2**32 - 1)))
