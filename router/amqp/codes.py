"""Descriptor codes for the data plane, which compares them for each message.

In the compiled build they are C integers. Modules that are never compiled use the enum
`constants.Descriptor`, which has the same codes.
"""

from __future__ import annotations

from router.amqp.constants import Descriptor

# The compiled build keeps these in C, under the names of `constants.Descriptor`.
TRANSFER = int(Descriptor.TRANSFER)
DISPOSITION = int(Descriptor.DISPOSITION)
FLOW = int(Descriptor.FLOW)

# Delivery states by descriptor code (sections 3.4 and 4.5). UNREAD_STATE stands for a symbolic or
# unknown descriptor: such a state is passed on unchanged.
NO_STATE = 0
RECEIVED = int(Descriptor.RECEIVED)
ACCEPTED = int(Descriptor.ACCEPTED)
REJECTED = int(Descriptor.REJECTED)
RELEASED = int(Descriptor.RELEASED)
MODIFIED = int(Descriptor.MODIFIED)
DECLARED = int(Descriptor.DECLARED)
TRANSACTIONAL = int(Descriptor.TRANSACTIONAL_STATE)
UNREAD_STATE = 0xFF
