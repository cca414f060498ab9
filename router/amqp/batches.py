"""Read batches of messages, as clients of Azure Service Bus and Event Hubs send them.

A batch is a message in the format 0x80013700. Each of its data sections has the octets of one
message in AMQP's own format; what comes before them is not part of any of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.amqp.constants import Condition, Descriptor
from router.amqp.peek import take_section
from router.amqp.reading import Cursor
from router.errors import AmqpError, Scope

BATCH_FORMAT: Final = 0x80013700
_BEFORE_BODY: Final = range(int(Descriptor.HEADER), int(Descriptor.DATA))
_DATA: Final = int(Descriptor.DATA)
_FOOTER: Final = int(Descriptor.FOOTER)


def messages_in(octets: bytes) -> Iterator[bytes]:
    """Yield the octets of each message in a batch, given the octets of the whole batch.

    Raises amqp:decode-error when it comes to something that does not belong into a batch, or at the
    end of one without any message. The messages themselves are not checked.
    """
    cursor = Cursor()
    cursor.move(octets, 0, len(octets))
    section = 0
    while cursor.at < cursor.end:
        previous, at = section, cursor.at
        section = take_section(cursor)
        if section == _DATA and previous <= _DATA:
            if not cursor.take_binary():
                raise _malformed(f"the data section at octet {at} is null")
            yield octets[cursor.value_at : cursor.value_end]
        elif previous < section in _BEFORE_BODY or (previous == _DATA and section == _FOOTER):
            cursor.skip()
        else:
            raise _malformed(f"a section that is out of order, or no data, begins at octet {at}")
    if section not in (_DATA, _FOOTER):
        raise _malformed("it has no data section")


def _malformed(problem: str) -> AmqpError:
    told = f"this is not a batch of messages (format 0x{BATCH_FORMAT:x}): {problem}"
    return AmqpError(Condition.DECODE_ERROR, told, Scope.LINK)
