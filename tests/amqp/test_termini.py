"""Sources and targets: their defaults, and what a dynamic node's properties hold."""

from __future__ import annotations

import pytest

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.constants import TerminusDurability, TerminusExpiryPolicy
from router.amqp.encode import encode_value
from router.amqp.outcomes import Released
from router.amqp.termini import (
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    Source,
    Target,
)
from router.amqp.types import Described, ULong

EXPIRY = "a30b" + b"session-end".hex()

VECTORS: list[tuple[Composite, str]] = [
    (Source("a"), "005328 c01a 0b a10161 43" + EXPIRY + "43 42 40 40 40 40 40 40"),
    (Target("a"), "005329 c016 07 a10161 43" + EXPIRY + "43 42 40 40"),
    (DeleteOnClose(), "00532b c001 00"),
    (DeleteOnNoLinks(), "00532c c001 00"),
    (DeleteOnNoMessages(), "00532d c001 00"),
    (DeleteOnNoLinksOrMessages(), "00532e c001 00"),
]


@pytest.mark.parametrize(("value", "text"), VECTORS)
def test_they_are_written_and_read(value: Composite, text: str) -> None:
    octets = encode_composite(value)
    assert octets.hex() == bytes.fromhex(text).hex()
    assert decode_composite(octets) == (value, len(octets))


@pytest.mark.parametrize(("cls", "code"), [(Source, 0x28), (Target, 0x29)])
def test_a_terminus_without_fields_has_defaults(cls: type[Composite], code: int) -> None:
    found, _ = decode_composite(encode_value(Described(ULong(code), [])))
    assert found == cls()
    assert isinstance(found, Source | Target)
    assert found.durable is TerminusDurability.NONE
    assert found.expiry_policy is TerminusExpiryPolicy.SESSION_END
    assert (found.timeout, found.dynamic, found.capabilities) == (0, False, ())


def test_a_source_keeps_what_is_not_its_own() -> None:
    source = Source(
        dynamic=True,
        dynamic_node_properties={"lifetime-policy": DeleteOnClose(), "x": 1},
        filter={"f": Described(ULong(0x468C00000004), "colour = 'red'")},
        default_outcome=Released(),
        outcomes=("amqp:accepted:list",),
    )
    assert decode_composite(encode_composite(source))[0] == source
