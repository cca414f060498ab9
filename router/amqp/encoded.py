"""Keep received maps encoded, and decode their values on request.

A dict takes up to forty times the octets of an encoded map. The maps in an open, begin or attach
are kept for as long as the connection or link lasts, hardly ever read, and often only passed on. So
the maps of these frames are checked (`walking`) and kept encoded (docs/decisions/0080).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from router.amqp.decode import decode_value
from router.amqp.encode import WRITERS
from router.amqp.reader import DEFAULT_LIMITS, Limits
from router.amqp.types import Value, ValueMap
from router.amqp.walking import Walk, malformed

FRAME_LIMITS: Final = Limits(max_items=1024)
"""Limit of a frame's values outside of its maps: fields, and some dozens of capabilities.
The same limit holds for each value of a map whose values are restricted to a type."""
CHECKED_AT_ONCE: Final = 64
"""Number of values of a map that are checked when the frame is decoded, if each takes time."""
# The offset of a map's first item, by its format code.
_HEADS: Final = {0xC1: 3, 0xD1: 9}
# Some clients write strings as the keys of maps whose keys are symbols.
_AS_SYMBOL: Final = {0xA1: 0xA3, 0xB1: 0xB3}
_SHORT: Final = 256
_NULL: Final = 0x40
_DESCRIBED: Final = 0x00
# The format codes that a descriptor may have: symbol and ulong (section 1.2).
_DESCRIPTORS: Final = b"\xa3\xb3\x80\x53\x44"

Item = tuple[Any, Any]
"""Key and value of a map."""
ReadValue = Callable[[object, str], object]


class EncodedMap:
    """Encoded map that has been checked; each read decodes the value anew.

    It is not iterable, so that no code takes it for a dict and looks up its keys one by one.
    """

    __slots__ = ("_read_value", "octets", "unchecked")

    def __init__(self, octets: bytes, read_value: ReadValue | None = None) -> None:
        self.octets = octets
        # converts a decoded value to the field's type, if that differs
        self._read_value = read_value
        # an iterator that checks one value after the other; None once it has checked all
        self.unchecked: Iterator[None] | None = None

    def __len__(self) -> int:
        octets = self.octets
        count = octets[2] if octets[0] == 0xC1 else int.from_bytes(octets[5:9], "big")
        return count // 2

    def _walk(self) -> Walk:
        octets = self.octets
        limits = DEFAULT_LIMITS
        at = _HEADS[octets[0]]
        return Walk(octets, at, len(octets), limits.max_depth, limits.max_items)

    def _value(self, at: int) -> Value:
        if self._read_value is None:
            return decode_value(self.octets, at)[0]
        # a single value may be as large as a frame, and most of that a map
        value, _ = decode_value(self.octets, at, None, FRAME_LIMITS, EncodedMap)
        return self._read_value(value, "a value of a map")

    def get(self, key: str | bytes, default: object = None) -> Any:
        """Return the value of a key, or `default`.

        `key` is the text of a symbol or string, or the octets of a binary.
        """
        walk = self._walk()
        return self._value(walk.at) if walk.find(_forms(key)) else default

    def get_map(self, key: str | bytes) -> EncodedMap | None:
        """Return the map that is a key's value, still encoded; None if it is absent or null.

        Raises ValueError if the value is not a map.
        """
        walk = self._walk()
        if not walk.find(_forms(key)):
            return None
        value, _ = decode_value(self.octets, walk.at, None, FRAME_LIMITS, EncodedMap)
        if value is not None and not isinstance(value, EncodedMap):
            raise ValueError(f"the value of {key!r} is not a map")
        return value

    def __getitem__(self, key: str | bytes) -> Any:
        walk = self._walk()
        if not walk.find(_forms(key)):
            raise KeyError(key)
        return self._value(walk.at)

    def __contains__(self, key: str | bytes) -> bool:
        return self._walk().find(_forms(key))

    def decode(self) -> ValueMap:
        """Return the map as a dict, which may take many times the memory."""
        return dict(self.read_entries())

    def outline(self, most: int) -> tuple[list[tuple[Value, Value]], int]:
        """Return the first `most` keys with non-null values, and how many entries follow the last.

        Each key comes with the descriptor of its value, or None if the value is not described.
        Values may be large, so they are not decoded.
        """
        walk = self._walk()
        found: list[tuple[Value, Value]] = []
        seen = 0
        while len(found) < most and walk.at < len(self.octets):
            key_at = walk.at
            walk.step()
            value_at = walk.at
            walk.step()
            seen += 1
            if self.octets[value_at] != _NULL:
                key = decode_value(self.octets, key_at)[0]
                found.append((key, self._descriptor(value_at)))
        return found, len(self) - seen

    def _descriptor(self, at: int) -> Value:
        if self.octets[at] != _DESCRIBED or self.octets[at + 1] not in _DESCRIPTORS:
            return None
        return decode_value(self.octets, at + 1)[0]

    def read_tags(self) -> set[bytes]:
        """Return all keys of a map whose keys are delivery-tags, without decoding values."""
        return self._walk().read_binaries()

    def read_entries(self) -> Iterator[Item]:
        """Yield the keys and values, each decoded when it is reached."""
        walk = self._walk()
        while walk.at < len(self.octets):
            key = decode_value(self.octets, walk.at)[0]
            walk.step()
            value = self._value(walk.at)
            walk.step()
            yield key, value

    def checked(
        self, codes: bytes, read_key: Callable[[object], object], read_value: ReadValue | None
    ) -> EncodedMap:
        """Check the types of the map's keys and values, and return the checked map.

        `codes` are the allowed format codes of keys. String keys become symbols if symbols are
        allowed. `read_key` and `read_value` raise AmqpError for a key or value of a wrong type. If
        `read_value` is given and the map has more than `CHECKED_AT_ONCE` entries, each value is
        checked only when the caller iterates over `unchecked` of the returned map.
        """
        others = self._walk().find_keys_beside(codes)
        kept = self._with_symbols(others, codes, read_key) if others else self
        if read_value is None:
            return kept
        kept = EncodedMap(kept.octets, read_value)
        kept.unchecked = kept._check()
        if len(kept) <= CHECKED_AT_ONCE:
            for _ in kept.unchecked:
                pass
        return kept

    def _check(self) -> Iterator[None]:
        """Return an iterator that checks one value of the map at each step.

        It yields None each time. The caller can divide the steps among several turns.
        """
        octets = self.octets
        walk = self._walk()
        known = b""
        while walk.at < len(octets):
            walk.step()
            value_at = walk.at
            walk.step()
            value = octets[value_at : walk.at]
            # usually very many deliveries are in the same state
            if octets[value_at] != _NULL and value != known:
                self._value(value_at)
                known = value
            yield None
        self.unchecked = None

    def _with_symbols(
        self, others: list[int], codes: bytes, read_key: Callable[[object], object]
    ) -> EncodedMap:
        """Return the map with symbols in place of the string keys at the positions `others`.

        Raises AmqpError if one of these keys is not a string, or if `codes` does not allow symbols.
        """
        octets = bytearray(self.octets)
        for at in others:
            code = _AS_SYMBOL.get(octets[at], _DESCRIBED)
            if code not in codes:
                read_key(decode_value(self.octets, at)[0])
                raise malformed("a map has a key of a type that is not allowed")
            octets[at] = code
        kept = EncodedMap(bytes(octets))
        limits = DEFAULT_LIMITS
        # check that the symbols are ASCII, and that no key occurs twice
        Walk(kept.octets, 0, len(octets), limits.max_depth, limits.max_items).step()
        return kept

    def __eq__(self, other: object) -> bool:
        if isinstance(other, EncodedMap):
            return self.octets == other.octets or self.decode() == other.decode()
        return isinstance(other, dict) and self.decode() == other

    __hash__ = None  # type: ignore[assignment]
    __iter__ = None

    def __repr__(self) -> str:
        return f"EncodedMap({self.octets!r})"


AnyMap = ValueMap | EncodedMap
"""The type of a composite's fields that are maps."""


def decoded(value: AnyMap | None) -> ValueMap:
    """Return the map of a field as a dict, which is empty if the field is null."""
    if value is None:
        return {}
    return value.decode() if isinstance(value, EncodedMap) else value


def tags_of(value: AnyMap | None) -> set[bytes]:
    """Return the keys of a map whose keys are delivery-tags; an empty set if the map is None.

    The map's values are not decoded.
    """
    if value is None:
        return set()
    return value.read_tags() if isinstance(value, EncodedMap) else set(value)


def entries_of(value: AnyMap | None) -> Iterator[Item]:
    """Yield the entries of a map, each decoded when it is reached; none if the map is None."""
    if value is None:
        return iter(())
    return value.read_entries() if isinstance(value, EncodedMap) else iter(value.items())


def decode_map(octets: bytes) -> EncodedMap:
    """Return the map that `octets` encode; raise AmqpError if they encode anything else."""
    value, _ = decode_value(octets, 0, None, FRAME_LIMITS, EncodedMap)
    if not isinstance(value, EncodedMap):
        raise malformed("the octets do not encode a map")
    return value


def _forms(key: str | bytes) -> tuple[bytes, ...]:
    """Return all encodings of a key that a peer may use."""
    octets, short, long = (key, b"\xa0", b"\xb0") if isinstance(key, bytes) else (
        key.encode(), b"\xa3\xa1", b"\xb3\xb1"
    )  # fmt: skip
    forms = [bytes([code]) + len(octets).to_bytes(4, "big") + octets for code in long]
    if len(octets) < _SHORT:
        forms += [bytes([code, len(octets)]) + octets for code in short]
    return tuple(forms)


def _write(buffer: bytearray, value: EncodedMap) -> None:
    buffer += value.octets


WRITERS[EncodedMap] = _write
