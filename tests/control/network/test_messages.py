"""Messages have an opcode each, and the codec knows every one."""

from __future__ import annotations

from typing import get_args

from router.control.network.codec import _KINDS
from router.control.network.messages import Message


def test_every_message_has_an_opcode_of_its_own_which_the_codec_knows() -> None:
    kinds = get_args(Message)
    assert {kind.opcode: kind for kind in kinds} == {op: each.kind for op, each in _KINDS.items()}
    assert len({kind.opcode for kind in kinds}) == len(kinds)
