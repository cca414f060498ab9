"""Octets as transfers, dispositions and flows: read by hand and by the table-driven codec.

Whatever the octets, a reader reads or raises AmqpError, and sees nothing of what lies behind them.
What the codec takes the reader takes as well, and finds the same fields.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from router.amqp.framing import decode_frame_body
from router.amqp.performatives import Disposition, Flow, Transfer
from router.amqp.reading import Cursor, DispositionFrame, FlowFrame, TransferFrame
from router.errors import AmqpError

READERS: list[tuple[Any, Any, dict[str, str]]] = [
    (Transfer, TransferFrame, {"handle": "", "delivery_id": "has_delivery_id"}),
    (Disposition, DispositionFrame, {"first": ""}),
    (
        Flow,
        FlowFrame,
        {"incoming_window": "", "handle": "has_handle", "link_credit": "has_link_credit"},
    ),
]
BEHIND = b"\xff" * 32


def target(data: bytes) -> None:
    """The first octet chooses the frame, the others are its list and payload."""
    if not data:
        return
    kind, reader, fields = READERS[data[0] % len(READERS)]
    body = bytes((0x00, 0x53, kind.CODE)) + data[1:]
    frame, other = _read(reader, body, b""), _read(reader, body, BEHIND)
    assert (frame is None) is (other is None), "what lies behind makes a difference"
    try:
        expected, _ = decode_frame_body(body)
    except AmqpError:
        return
    assert frame is not None, f"refused {expected}"
    for name, has in fields.items():
        value = getattr(expected, name)
        assert not has or bool(getattr(frame, has)) is (value is not None), name
        if value is not None:
            assert getattr(frame, name) == getattr(other, name) == value, name


def _read(reader: Any, body: bytes, behind: bytes) -> Any:
    frame, cursor = reader(), Cursor()
    cursor.move(memoryview(body + behind), 3, len(body))
    try:
        frame.read(cursor)
    except AmqpError:
        return None
    return frame


if __name__ == "__main__":
    from support.alone import run

    run(target)
