"""Connections are told of very many keys bit by bit, and of each as it is by then."""

from __future__ import annotations

from router.control.edge.key_streams import KEYS_A_STEP, STEPS_AT_ONCE, KeyStreams
from router.engine.deferred import Deferred

AT_ONCE = KEYS_A_STEP * STEPS_AT_ONCE


class Teller:
    """What connections, which are nothing but names, were told."""

    def __init__(self) -> None:
        self.deferred = Deferred()
        self.told: dict[str, list[str]] = {}
        self.telling = KeyStreams(self.deferred, self._say)

    def _say(self, connection: str, keys: list[str]) -> None:
        assert keys
        assert len(keys) <= KEYS_A_STEP
        self.told.setdefault(connection, []).extend(keys)

    def rest(self) -> None:
        """Take all later turns."""
        while self.deferred.step():
            pass


def keys(count: int, start: str = "k") -> list[str]:
    return [f"{start}{number}" for number in range(count)]


def test_few_are_told_at_once() -> None:
    teller = Teller()
    teller.telling.queue_keys("a", keys(AT_ONCE - 1))
    assert teller.told == {"a": keys(AT_ONCE - 1)}
    assert not teller.deferred
    teller.telling.queue_keys("a", [])
    assert not teller.deferred


def test_of_many_the_last_are_told_in_later_turns_in_their_order() -> None:
    teller = Teller()
    teller.telling.queue_keys("a", keys(1000))
    teller.telling.queue_keys("b", keys(900))
    assert [len(each) for each in teller.told.values()] == [AT_ONCE, AT_ONCE]
    # each has its turn
    teller.deferred.step()
    teller.deferred.step()
    assert [len(each) for each in teller.told.values()] == [AT_ONCE + KEYS_A_STEP] * 2
    teller.rest()
    assert teller.told == {"a": keys(1000), "b": keys(900)}


def test_what_is_to_be_told_besides_follows() -> None:
    teller = Teller()
    teller.telling.queue_keys("a", keys(1000))
    teller.telling.queue_keys("a", keys(3, "other"))
    teller.rest()
    assert teller.told == {"a": keys(1000) + keys(3, "other")}
    teller.telling.queue_keys("a", ["again"])
    assert teller.told["a"][-1] == "again"


def test_who_is_gone_is_told_nothing() -> None:
    teller = Teller()
    teller.telling.queue_keys("a", keys(1000))
    teller.telling.drop("a")
    teller.telling.drop("unknown")
    # one of the same name is another one
    teller.telling.queue_keys("a", keys(1000, "new"))
    teller.rest()
    assert teller.told["a"] == keys(AT_ONCE) + keys(1000, "new")
