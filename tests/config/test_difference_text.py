"""Differences of configurations as text for people."""

from __future__ import annotations

from router.config.difference_text import format_differences
from router.config.differences import SECRET, Difference, FieldChange


def test_each_entity_and_each_attribute_has_a_line() -> None:
    differences = [
        Difference("listener", "edge", "added", (FieldChange("port", 5672, 5673),)),
        Difference(
            "address",
            "orders",
            "changed",
            (
                FieldChange("distribution", "closest", "multicast"),
                FieldChange("deadLetterAddress", "dead", None),
            ),
        ),
        Difference("router", "", "changed", (FieldChange("linkStealing", "any", "off"),)),
        Difference("connector", "broker", "removed", (FieldChange("port", 1, 2),)),
    ]
    assert format_differences(differences).splitlines() == [
        "+ listener edge",
        "      port = 5673",
        "~ address orders",
        '      distribution = "closest" -> "multicast"',
        '      deadLetterAddress = "dead" -> none',
        "~ router",
        '      linkStealing = "any" -> "off"',
        "- connector broker",
    ]


def test_secrets_are_named_and_not_shown() -> None:
    change = Difference("connector", "c", "changed", (FieldChange("saslPassword", SECRET, SECRET),))
    assert (
        format_differences([change]).splitlines()[1]
        == "      saslPassword = (a secret) -> (a secret)"
    )


def test_nothing_makes_no_line() -> None:
    assert format_differences([]) == ""
