"""Numbers and names of the specification: descriptors, format codes, conditions, modes, ports.

Descriptor codes come from parts 2 to 5, format codes from section 1.6, error conditions from
sections 2.8.15 to 2.8.18 and 4.5.8, the connection's constants from sections 2.8.19, 5.2.2 and
5.3.4.
"""

from __future__ import annotations

import enum
from typing import Final

PORT: Final = 5672
SECURE_PORT: Final = 5671

MIN_MAX_FRAME_SIZE: Final = 512
"""Largest frame that every peer accepts, and the largest before the open (section 2.8.19)."""

FRAME_HEADER_SIZE: Final = 8
MIN_DATA_OFFSET: Final = 2
AMQP_FRAME: Final = 0x00
SASL_FRAME: Final = 0x01

MAX_UINT: Final = 0xFFFF_FFFF
MAX_USHORT: Final = 0xFFFF

MESSAGE_FORMAT: Final = 0
MAX_DELIVERY_TAG_BYTES: Final = 32
# Part 4 section 4.5.4 has 32. ActiveMQ Artemis writes a UUID as text, which has 36, and its clients
# repeat whatever it sends.
MAX_TRANSACTION_ID_BYTES: Final = 255

DESCRIBED: Final = 0x00
"""The octet before a descriptor (section 1.2); not a format code itself."""


class FormatCode(enum.IntEnum):
    """Format code: the octet before a value that states its type and encoding (section 1.6)."""

    NULL = 0x40
    TRUE = 0x41
    FALSE = 0x42
    UINT0 = 0x43
    ULONG0 = 0x44
    LIST0 = 0x45
    UBYTE = 0x50
    BYTE = 0x51
    SMALLUINT = 0x52
    SMALLULONG = 0x53
    SMALLINT = 0x54
    SMALLLONG = 0x55
    BOOLEAN = 0x56
    USHORT = 0x60
    SHORT = 0x61
    UINT = 0x70
    INT = 0x71
    FLOAT = 0x72
    CHAR = 0x73
    DECIMAL32 = 0x74
    ULONG = 0x80
    LONG = 0x81
    DOUBLE = 0x82
    TIMESTAMP = 0x83
    DECIMAL64 = 0x84
    DECIMAL128 = 0x94
    UUID = 0x98
    VBIN8 = 0xA0
    STR8 = 0xA1
    SYM8 = 0xA3
    VBIN32 = 0xB0
    STR32 = 0xB1
    SYM32 = 0xB3
    LIST8 = 0xC0
    MAP8 = 0xC1
    LIST32 = 0xD0
    MAP32 = 0xD1
    ARRAY8 = 0xE0
    ARRAY32 = 0xF0


class Descriptor(enum.IntEnum):
    """Numeric descriptor of a type that the specification defines."""

    OPEN = 0x10
    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15
    DETACH = 0x16
    END = 0x17
    CLOSE = 0x18
    ERROR = 0x1D
    RECEIVED = 0x23
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27
    SOURCE = 0x28
    TARGET = 0x29
    DELETE_ON_CLOSE = 0x2B
    DELETE_ON_NO_LINKS = 0x2C
    DELETE_ON_NO_MESSAGES = 0x2D
    DELETE_ON_NO_LINKS_OR_MESSAGES = 0x2E
    COORDINATOR = 0x30
    DECLARE = 0x31
    DISCHARGE = 0x32
    DECLARED = 0x33
    TRANSACTIONAL_STATE = 0x34
    SASL_MECHANISMS = 0x40
    SASL_INIT = 0x41
    SASL_CHALLENGE = 0x42
    SASL_RESPONSE = 0x43
    SASL_OUTCOME = 0x44
    HEADER = 0x70
    DELIVERY_ANNOTATIONS = 0x71
    MESSAGE_ANNOTATIONS = 0x72
    PROPERTIES = 0x73
    APPLICATION_PROPERTIES = 0x74
    DATA = 0x75
    AMQP_SEQUENCE = 0x76
    AMQP_VALUE = 0x77
    FOOTER = 0x78


class Condition(enum.StrEnum):
    """Error condition that the specification defines; the value is the symbol on the wire."""

    INTERNAL_ERROR = "amqp:internal-error"
    NOT_FOUND = "amqp:not-found"
    UNAUTHORIZED_ACCESS = "amqp:unauthorized-access"
    DECODE_ERROR = "amqp:decode-error"
    RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded"
    NOT_ALLOWED = "amqp:not-allowed"
    INVALID_FIELD = "amqp:invalid-field"
    NOT_IMPLEMENTED = "amqp:not-implemented"
    RESOURCE_LOCKED = "amqp:resource-locked"
    PRECONDITION_FAILED = "amqp:precondition-failed"
    RESOURCE_DELETED = "amqp:resource-deleted"
    ILLEGAL_STATE = "amqp:illegal-state"
    FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small"

    CONNECTION_FORCED = "amqp:connection:forced"
    FRAMING_ERROR = "amqp:connection:framing-error"
    CONNECTION_REDIRECT = "amqp:connection:redirect"

    WINDOW_VIOLATION = "amqp:session:window-violation"
    ERRANT_LINK = "amqp:session:errant-link"
    HANDLE_IN_USE = "amqp:session:handle-in-use"
    UNATTACHED_HANDLE = "amqp:session:unattached-handle"

    DETACH_FORCED = "amqp:link:detach-forced"
    TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded"
    MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded"
    LINK_REDIRECT = "amqp:link:redirect"
    STOLEN = "amqp:link:stolen"

    TRANSACTION_UNKNOWN_ID = "amqp:transaction:unknown-id"
    TRANSACTION_ROLLBACK = "amqp:transaction:rollback"
    TRANSACTION_TIMEOUT = "amqp:transaction:timeout"


class Role:
    """Role of a link endpoint (section 2.8.1); a boolean on the wire."""

    SENDER: Final = False
    RECEIVER: Final = True


class SenderSettleMode(enum.IntEnum):
    """Settle mode of a sender (section 2.8.2)."""

    UNSETTLED = 0
    SETTLED = 1
    MIXED = 2


class ReceiverSettleMode(enum.IntEnum):
    """Settle mode of a receiver: it settles at once, or after the sender (section 2.8.3)."""

    FIRST = 0
    SECOND = 1


class TerminusDurability(enum.IntEnum):
    """Durability of a terminus: what is kept when its container's process ends (section 3.5.5)."""

    NONE = 0
    CONFIGURATION = 1
    UNSETTLED_STATE = 2


class TerminusExpiryPolicy(enum.StrEnum):
    """Event from which a terminus starts to expire (section 3.5.6)."""

    LINK_DETACH = "link-detach"
    SESSION_END = "session-end"
    CONNECTION_CLOSE = "connection-close"
    NEVER = "never"


class DistributionMode(enum.StrEnum):
    """Standard way to distribute a node's messages (section 3.5.7); peers may use others."""

    MOVE = "move"
    COPY = "copy"


class TransactionCapability(enum.StrEnum):
    """Capability of a transaction coordinator (section 4.5.7)."""

    LOCAL_TRANSACTIONS = "amqp:local-transactions"
    DISTRIBUTED_TRANSACTIONS = "amqp:distributed-transactions"
    PROMOTABLE_TRANSACTIONS = "amqp:promotable-transactions"
    MULTI_TXNS_PER_SSN = "amqp:multi-txns-per-ssn"
    MULTI_SSNS_PER_TXN = "amqp:multi-ssns-per-txn"


class SaslCode(enum.IntEnum):
    """Result of an authentication (section 5.3.3.6)."""

    OK = 0
    AUTH = 1
    SYS = 2
    SYS_PERM = 3
    SYS_TEMP = 4
