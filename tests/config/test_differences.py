"""Differences of two configurations: entities, attributes, and changes that need a restart."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from router.config.connectors import ConnectorSettings
from router.config.differences import (
    RESTART_ONLY,
    SECRET,
    Difference,
    FieldChange,
    NotApplied,
    find_differences,
    find_restart_only,
    key_of,
)
from router.config.listeners import ListenerSettings
from router.config.load import default_configuration
from router.config.model import AddressSettings, Configuration, MetricsSettings
from router.config.redirects import RedirectSettings
from router.config.router_settings import RouterSettings
from router.config.secret import Secret


def test_what_is_the_same_has_no_differences() -> None:
    assert find_differences(default_configuration(), default_configuration()) == ()


def test_what_is_added_comes_first_and_what_is_removed_last() -> None:
    old = Configuration(
        listeners=(ListenerSettings(name="gone", port=1),),
        addresses=(AddressSettings(prefix="a"),),
        metrics=MetricsSettings(address_label_limit=3),
    )
    new = Configuration(
        router=RouterSettings(link_stealing="off"),
        connectors=(ConnectorSettings(name="new", port=2),),
        addresses=(AddressSettings(prefix="a", distribution="multicast"),),
    )
    assert find_differences(old, new) == (
        Difference("connector", "new", "added", (FieldChange("port", 5672, 2),)),
        Difference("router", "", "changed", (FieldChange("linkStealing", "same-user", "off"),)),
        Difference(
            "address",
            "router.config.address/a",
            "changed",
            (FieldChange("distribution", "balanced", "multicast"),),
        ),
        Difference("metrics", "", "changed", (FieldChange("addressLabelLimit", 3, 100),)),
        Difference("listener", "gone", "removed", (FieldChange("port", 1, 5672),)),
    )


def test_there_and_back_again_are_opposites() -> None:
    old, new = default_configuration(), Configuration()
    there, back = find_differences(old, new), find_differences(new, old)
    opposite = {"added": "removed", "removed": "added", "changed": "changed"}
    assert {(each.place, each.what) for each in there} == {
        (each.place, opposite[each.what]) for each in back
    }


def test_the_order_of_entities_is_no_difference() -> None:
    one, two = AddressSettings(prefix="a"), AddressSettings(prefix="b")
    assert not find_differences(
        Configuration(addresses=(one, two)), Configuration(addresses=(two, one))
    )


def test_no_secret_is_told() -> None:
    connector = ConnectorSettings(
        name="c", sasl_username="u", sasl_password=Secret("literal", "hidden-1")
    )
    other = attrs.evolve(connector, sasl_password=Secret("literal", "hidden-2"))
    none, one, two = (Configuration(connectors=each) for each in ((), (connector,), (other,)))
    (change,) = find_differences(one, two)
    assert change.fields == (FieldChange("saslPassword", SECRET, SECRET),)
    assert "hidden" not in repr([change, find_differences(none, one), find_differences(one, none)])


def test_paths_and_lists_are_told_as_in_a_file(tmp_path: Path) -> None:
    old = ListenerSettings(name="l")
    new = attrs.evolve(old, sasl_mechanisms=("PLAIN",), users_file=tmp_path / "users")
    (change,) = find_differences(Configuration(listeners=(old,)), Configuration(listeners=(new,)))
    assert change.place == "listener l"
    assert change.fields == (
        FieldChange("saslMechanisms", ["ANONYMOUS"], ["PLAIN"]),
        FieldChange("usersFile", None, str(tmp_path / "users")),
    )


@pytest.mark.parametrize(
    ("redirect", "key"),
    [
        (RedirectSettings(prefix="a", to_network_host="h"), "prefix a"),
        (RedirectSettings(pattern="a/#", direction="in", to_network_host="h"), "pattern a/# in"),
        (RedirectSettings(hostname="old", to_network_host="h"), "hostname old"),
        (RedirectSettings(to_network_host="h"), "to h"),
    ],
)
def test_a_redirect_is_known_by_what_it_redirects(redirect: RedirectSettings, key: str) -> None:
    assert key_of(redirect) == key


def test_what_cannot_be_changed_is_named_with_the_reason() -> None:
    old = Configuration(router=RouterSettings(id="one"))
    new = Configuration(router=RouterSettings(id="two", link_stealing="off"))
    (reason,) = find_restart_only(find_differences(old, new))
    assert reason.startswith("router.id cannot be changed while the router runs: ")
    assert reason.endswith(RESTART_ONLY["router", "id"])


def test_reasons_make_the_text_of_the_error() -> None:
    error = NotApplied(iter(["one", "two"]))
    assert error.reasons == ("one", "two")
    assert str(error) == "one\ntwo"
