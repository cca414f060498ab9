"""The interfaces between the parts of core, beside the classes that implement them."""

from __future__ import annotations

import inspect

import pytest

from router.core import ports
from router.core.forwarding.credit_sharing import CreditSharing

from support.in_memory import Router


def members(protocol: type) -> set[str]:
    """Return the names that a Protocol declares: attributes, properties and methods."""
    declared = set(inspect.get_annotations(protocol))
    return declared | {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("protocol", "part"),
    [
        (ports.Core, ""),
        (ports.CreditNotes, "credit"),
        (ports.Settlement, "settlement"),
        (ports.Queues, "queues"),
        (ports.Distribution, "distribution"),
        (ports.Copies, "distribution.pending_copies"),
        (ports.Observer, "observer"),
    ],
)
def test_a_part_has_all_that_its_interface_declares(protocol: type, part: str) -> None:
    found: object = Router().forwarder
    for name in filter(None, part.split(".")):
        found = getattr(found, name)
    assert members(protocol)
    assert {name for name in members(protocol) if not hasattr(found, name)} == set()


def test_a_part_that_lacks_a_member_is_found() -> None:
    assert "settle" in members(ports.Settlement)
    assert not hasattr(CreditSharing, "settle")
