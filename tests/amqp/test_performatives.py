"""The performatives octet for octet, with every field in its place."""

from __future__ import annotations

import attrs
import pytest

from router.amqp import performatives
from router.amqp.constants import ReceiverSettleMode, Role, SenderSettleMode
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Composite,
    Coordinator,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
    decode_composite,
    encode_composite,
)

from support.wire import COMPOSITES

SOURCE = "005328c01a0ba1016143a30b73657373696f6e2d656e644342404040404040"

VECTORS: list[tuple[Composite, str]] = [
    (Open("c"), "005310 c013 0a a10163 40 70ffffffff 60ffff 40 40 40 40 40 40"),
    (
        Open("c", "h", 512, 0, 8000, ("en-US",), (), ("q",), ("r", "s"), {"p": None}),
        "005310 c034 0a a10163 a10168 7000000200 600000 7000001f40 e00801a305" + b"en-US".hex()
        + "40 e00401a30171 e00602a301720173 c10502a3017040",
    ),
    (
        Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=256),
        "005311 c012 08 40 43 5201 7000000100 70ffffffff 40 40 40",
    ),
    (
        Begin(remote_channel=1, next_outgoing_id=2, incoming_window=3, outgoing_window=4,
              handle_max=5),
        "005311 c00f 08 600001 5202 5203 5204 5205 40 40 40",
    ),
    (
        Attach("l", 0, Role.RECEIVER),
        "005312 c013 0e a1016c 43 41 5002 5000 40 40 40 42 40 40 40 40 40",
    ),
    (
        Attach("l", 1, Role.SENDER, SenderSettleMode.SETTLED, ReceiverSettleMode.SECOND,
               Source("a"), Coordinator(), {b"t": Accepted()}, True, 7, 300),
        "005312 c04c 0e a1016c 5201 42 5001 5001" + SOURCE + "005330c00201 40"
        "c10a02 a00174 005324c00100 41 5207 80000000000000012c 40 40 40",
    ),
    (
        Flow(incoming_window=1, next_outgoing_id=2, outgoing_window=3),
        "005313 c00f 0b 40 5201 5202 5203 40 40 40 40 42 42 40",
    ),
    (
        Flow(0, 0, 0, next_incoming_id=5, handle=0, delivery_count=0, link_credit=100,
             available=0, drain=True, echo=True),
        "005313 c00e 0b 5205 43 43 43 43 43 5264 43 41 41 40",
    ),
    (Transfer(0), "005314 c00c 0b 43 40 40 40 40 42 40 40 42 42 42"),
    (
        Transfer(1, 2, b"tag", 0, False, True, ReceiverSettleMode.FIRST, Accepted(), True, True,
                 True),
        "005314 c018 0b 5201 5202 a003746167 43 42 41 5000 005324c00100 41 41 41",
    ),
    (Disposition(Role.RECEIVER, 0), "005315 c007 06 41 43 40 42 40 42"),
    (
        Disposition(Role.SENDER, 1, 2, True, Accepted(), True),
        "005315 c00e 06 42 5201 5202 41 005324c00100 41",
    ),
    (Detach(0), "005316 c004 03 43 42 40"),
    (Detach(1, True, Error("a:b")), "005316 c011 03 5201 41 00531dc00803a303613a624040"),
    (End(), "005317 c002 01 40"),
    (Close(Error("a:b")), "005318 c00e 01 00531dc00803a303613a624040"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), VECTORS)
def test_they_are_written_and_read(value: Composite, text: str) -> None:
    octets = encode_composite(value)
    assert octets.hex() == bytes.fromhex(text).hex()
    assert decode_composite(octets) == (value, len(octets))


def test_they_are_changed_by_making_another() -> None:
    attach = Attach("l", 0, Role.SENDER, target=Target("a"))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        attach.handle = 1  # type: ignore[misc]
    assert attrs.evolve(attach, handle=1).target == Target("a")


def test_every_composite_is_found_here() -> None:
    assert {cls.__name__ for cls in COMPOSITES} <= set(performatives.__all__)
