"""Compare Protocols with the objects that implement them, when the program runs."""

from __future__ import annotations


def members(protocol: type) -> set[str]:
    """Return the names of the members that a Protocol asks for, with those that it inherits."""
    return {
        name
        for each in protocol.__mro__
        if getattr(each, "_is_protocol", False)
        for name in {*vars(each), *vars(each).get("__annotations__", {})}
        if not name.startswith("_")
    }


def missing(protocol: type, provider: object) -> set[str]:
    """Return the members of a Protocol that an object does not have."""
    return {name for name in members(protocol) if not hasattr(provider, name)}
