"""The last few configurations that were run are kept, each of them once."""

from __future__ import annotations

import attrs

from router.config.model import AddressSettings, Configuration
from router.config.redirects import RedirectSettings
from router.config.revisions import MAX_REVISIONS, History, share


def addresses(*prefixes: str) -> Configuration:
    return Configuration(addresses=tuple(AddressSettings(prefix=each) for each in prefixes))


def test_the_newest_comes_first_and_the_oldest_is_forgotten() -> None:
    history = History(addresses("0"), 0.0, 5)
    assert (history.current.number, history.current.cause) == (5, "start")
    oldest = None
    for number in range(1, MAX_REVISIONS + 5):
        _, oldest = history.add(addresses(str(number)), (), f"for {number}", float(number))
        assert (oldest is None) == (number < MAX_REVISIONS)
    assert oldest is not None
    assert oldest.number == 9
    numbers = [each.number for each in history]
    assert numbers == list(range(5 + MAX_REVISIONS + 4, 9, -1))
    assert history.find(5) is None
    found = history.find(10)
    assert found is not None
    assert (found.cause, found.at_s) == ("for 5", 5.0)
    assert found.configuration == addresses("5")


def test_what_stays_the_same_is_kept_once() -> None:
    old = attrs.evolve(
        addresses("a", "b"), redirects=(RedirectSettings(prefix="x", to_network_host="h"),)
    )
    new = attrs.evolve(
        addresses("b", "a", "c"), redirects=(RedirectSettings(prefix="x", to_network_host="h"),)
    )
    kept = share(old, new)
    assert kept == new
    assert kept.addresses[0] is old.addresses[1]
    assert kept.addresses[1] is old.addresses[0]
    assert kept.redirects is old.redirects
    assert kept.router is old.router
