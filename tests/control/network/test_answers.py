"""Neighbours that ask for addresses are told them: large tables bit by bit, if there is room."""

from __future__ import annotations

from router.control.network.answers import Answers
from router.control.network.links import RouterLink, RouterLinks
from router.control.network.messages import MobileRequest, MobileTable, MobileUpdate, TableRequest
from router.control.network.tables import SMALL, Table
from router.control.network.timing import Timing


class World:
    """A router with one neighbour, and its own table."""

    def __init__(self, addresses: int) -> None:
        self.links = RouterLinks("a", 1, Timing())
        self.link = RouterLink(1, "b", 1, 1, 1, 0.0)
        self.link.is_up = True
        self.links.add(self.link)
        self.links.elect()
        self.links.take(lambda _: (), lambda _: ())
        self.table = Table("a", 1)
        self.table.tell((f"M0{number}", 1) for number in range(addresses))
        self.answers = Answers({"a": self.table}.get, lambda _: True, self.links)

    def ask(self, seq: int = 0) -> None:
        self.answers.request_received(self.link, MobileRequest((TableRequest("a", 1, seq),)))

    def told(self) -> list[MobileTable | MobileUpdate]:
        """Return what was said since the last call."""
        return [send.message for send in self.links.take(lambda _: (), lambda _: ())]  # type: ignore[misc]


def keys(messages: list[MobileTable | MobileUpdate]) -> list[str]:
    return [key for message in messages for key in message.keys]


def test_a_small_table_is_told_at_once() -> None:
    world = World(SMALL)
    world.ask()
    assert not world.answers.is_behind
    assert len(keys(world.told())) == SMALL


def test_a_large_one_is_made_ready_bit_by_bit() -> None:
    world = World(50_000)
    world.ask()
    turns = 0
    while world.answers.is_behind:
        assert world.told() == []
        world.answers.work(100)
        turns += 1
        if turns == 3:
            # a change in the meantime comes behind it
            world.table.tell([("M0late", 1)])
    told = world.told()
    assert turns > 10
    assert isinstance(told[0], MobileTable)
    assert told[-1].keys == ("M0late",)
    assert len(keys(told)) == 50_001
    # it is not made again for the next who asks
    world.ask()
    assert not world.answers.is_behind
    assert world.told() == told


def test_who_takes_nothing_is_told_when_it_does() -> None:
    world = World(10)
    full = True
    world.links.is_full = lambda _: full
    world.ask()
    world.ask()
    assert world.told() == []
    full = False
    world.answers.serve_all(world.link)
    assert len(world.told()) == 1
    world.answers.serve_all(world.link)
    assert world.told() == []
