"""The codes are those of the specification's tables, by whichever name they go."""

from __future__ import annotations

import re
from pathlib import Path

from router.amqp import codes
from router.amqp.constants import Descriptor

NAMES = {"TRANSACTIONAL": "TRANSACTIONAL_STATE"}
# Not descriptors: no state at all, and one that is passed on unread.
OWN = {"NO_STATE": 0, "UNREAD_STATE": 0xFF}


def declared() -> list[str]:
    """Return the names that `codes.pxd` declares for compiled modules."""
    pxd = Path(codes.__file__).with_name("codes.pxd").read_text("utf-8")
    return re.findall(r"^cdef int (\w+)$", pxd, re.MULTILINE)


def test_each_code_is_a_descriptor_or_our_own() -> None:
    source = Path(codes.__file__).with_name("codes.py").read_text("utf-8")
    for name in declared():
        if name in OWN:
            assert (
                f"\n{name} = 0x{OWN[name]:X}\n" in source or f"\n{name} = {OWN[name]}\n" in source
            )
        else:
            member = Descriptor[NAMES.get(name, name)].name
            assert f"\n{name} = int(Descriptor.{member})\n" in source


def test_our_own_codes_are_no_descriptors() -> None:
    assert not set(OWN.values()) & {int(each) for each in Descriptor}
