"""Transaction types: the coordinator, messages to it, and delivery states (section 4.5)."""

from __future__ import annotations

import attrs

from router.amqp import field_types as t
from router.amqp.composite import Composite, Field, composite
from router.amqp.constants import Descriptor
from router.amqp.types import Described


@composite(
    "amqp:coordinator:list",
    Descriptor.COORDINATOR,
    "target",
    Field("capabilities", t.SYMBOL, multiple=True),
)
@attrs.frozen
class Coordinator(Composite):
    """Target of a link to a transaction coordinator (section 4.5.1)."""

    capabilities: tuple[str, ...] = ()


@composite(
    "amqp:declare:list",
    Descriptor.DECLARE,
    "",
    Field("global_id", t.ANY),
)
@attrs.frozen
class Declare(Composite):
    """Body of a message that declares a transaction (section 4.5.2)."""

    global_id: object = None


@composite(
    "amqp:discharge:list",
    Descriptor.DISCHARGE,
    "",
    Field("txn_id", t.TRANSACTION_ID, mandatory=True),
    Field("fail", t.BOOLEAN),
)
@attrs.frozen
class Discharge(Composite):
    """Body of a message that commits or rolls back a transaction (section 4.5.3)."""

    txn_id: bytes
    fail: bool | None = None


@composite(
    "amqp:declared:list",
    Descriptor.DECLARED,
    "delivery-state, outcome",
    Field("txn_id", t.TRANSACTION_ID, mandatory=True),
)
@attrs.frozen
class Declared(Composite):
    """Outcome of a message that declared a transaction (section 4.5.5)."""

    txn_id: bytes


@composite(
    "amqp:transactional-state:list",
    Descriptor.TRANSACTIONAL_STATE,
    "delivery-state",
    Field("txn_id", t.TRANSACTION_ID, mandatory=True),
    Field("outcome", t.OUTCOME),
)
@attrs.frozen
class TransactionalState(Composite):
    """State of a delivery in a transaction, with the provisional outcome (section 4.5.6)."""

    txn_id: bytes
    outcome: Composite | Described | None = None
