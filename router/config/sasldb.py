"""Users in a database of Cyrus SASL, sasldb2, as `saslpasswd2` writes it.

The database is a Berkeley DB file of type hash. Each entry has a key `user NUL realm NUL property`;
the property `userPassword` has the password itself, not a hash. This is all of the format that is
read: all pairs of all pages, without locks, logs, checksums, encryption or overflow pages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import attrs

LARGEST_BYTES: Final = 16 * 2**20
_MAGIC: Final = 0x061561
_MAGIC_AT: Final = 12
_PAGE_SIZES: Final = frozenset(2**power for power in range(9, 17))
_PAGE_HEADER_BYTES: Final = 26
# pages with pairs, whose keys are sorted or, in files of older versions, unsorted
_HASH_PAGES: Final = (13, 2)
_KEY_OR_DATA: Final = 1
_PROPERTY: Final = b"userPassword"


@attrs.frozen
class StoredUser:
    """User in a database, with the realm and the password."""

    name: str
    realm: str
    password: str = attrs.field(repr=False)

    @property
    def full_name(self) -> str:
        """Return the name with the realm, by which the user can log in at any host."""
        return f"{self.name}@{self.realm}" if self.realm else self.name


def is_sasldb(data: bytes) -> bool:
    """Return whether a file that begins with `data` is a Berkeley DB file of type hash."""
    return bool(_byte_order(data))


def read_sasldb(data: bytes) -> list[StoredUser]:
    """Return the users in a database, sorted by name and realm.

    Raises ValueError, without any of the content, if the file is damaged or has a form that is not
    read.
    """
    found: list[StoredUser] = []
    for key, value in _pairs(data):
        parts = key.split(b"\0")
        if len(parts) != 3:
            raise ValueError("has a key that is not of the form user, realm, property")
        if parts[2] != _PROPERTY:
            continue
        try:
            found.append(StoredUser(parts[0].decode(), parts[1].decode(), value.decode()))
        except UnicodeDecodeError:
            raise ValueError("has a user or a password that is not UTF-8 text") from None
    return sorted(found, key=lambda user: (user.name, user.realm))


def _byte_order(data: bytes) -> str:
    magic = data[_MAGIC_AT : _MAGIC_AT + 4]
    return {_MAGIC.to_bytes(4, "little"): "<", _MAGIC.to_bytes(4, "big"): ">"}.get(magic, "")


def _pairs(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of all pages."""
    order = _byte_order(data)
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"has more than {LARGEST_BYTES} bytes")
    if not order or len(data) < 512:
        raise ValueError("is not a Berkeley DB file of type hash")
    page_size, encryption, _, flags = struct.unpack_from(f"{order}IBBB", data, 20)
    if page_size not in _PAGE_SIZES or len(data) % page_size:
        raise ValueError("is damaged: its size does not fit that of its pages")
    if encryption or flags & 1:
        raise ValueError("has checksums or encryption, which is not supported")
    for start in range(page_size, len(data), page_size):
        page = data[start : start + page_size]
        if page[25] in _HASH_PAGES:
            items = list(_items(page, order))
            yield from zip(items[::2], items[1::2], strict=True)


def _items(page: bytes, order: str) -> Iterator[bytes]:
    """Yield the items of a page; they are stored from its end to its beginning."""
    (count,) = struct.unpack_from(f"{order}H", page, 20)
    table_end = _PAGE_HEADER_BYTES + 2 * count
    if count % 2 or table_end > len(page):
        raise ValueError("is damaged: a page has an impossible number of items")
    end = len(page)
    for begin in struct.unpack_from(f"{order}{count}H", page, _PAGE_HEADER_BYTES):
        if not table_end <= begin < end:
            raise ValueError("is damaged: the items of a page overlap")
        if page[begin] != _KEY_OR_DATA:
            raise ValueError("has an entry that is larger than a page, or has several values")
        yield page[begin + 1 : end]
        end = begin
