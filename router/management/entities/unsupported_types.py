"""Entity types that tools request, but of which this router has no entities."""

from __future__ import annotations

from typing import Final

from router.management.entities.attributes import AttributesOf, constant
from router.management.schema import CONFIGURATION, OPERATIONAL, EntityType

NOT_SUPPORTED: Final = "this router does not support it yet"


def _none(name: str, meaning: str, base: str, *absent: str) -> EntityType[object]:
    """Return a type that tools request, but of which this router has no entities."""
    attributes = tuple(AttributesOf[object].identified(constant(None), constant(None), name))
    return EntityType(name, meaning, base, attributes, absent, missing_feature=NOT_SUPPORTED)


# The attributes of each will be defined by the part of the router that has such entities.
UNSUPPORTED_TYPES: Final = (
    _none("authServicePlugin", "A service for SASL: there are none.", CONFIGURATION),
    _none(
        "allocator",
        "A pool of memory: there are none.",
        OPERATIONAL,
        *("typeName", "typeSize", "transferBatchSize", "localFreeListMax", "globalFreeListMax"),
        *("totalAllocFromHeap", "totalFreeToHeap", "heldByThreads", "batchesRebalancedToThreads"),
        "batchesRebalancedToGlobal",
    ),
)
