"""Small databases of Cyrus SASL, in the format of Berkeley DB."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Literal

PAGE_BYTES = 512


def sasldb(
    users: Mapping[tuple[str, str], str], order: Literal["<", ">"] = "<", page_type: int = 13
) -> bytes:
    """Return a database with the passwords of users, by name and realm."""
    pairs = {
        f"{name}\0{realm}\0userPassword".encode(): password.encode()
        for (name, realm), password in users.items()
    }
    return hash_file(pairs, order, page_type)


def hash_file(
    pairs: Mapping[bytes, bytes], order: Literal["<", ">"] = "<", page_type: int = 13
) -> bytes:
    """Return a hash file with a page of metadata, a free page, and a page for each pair."""
    head = struct.pack(f"{order}8xIIIIBB", 0, 0x061561, 9, PAGE_BYTES, 0, 8)
    pages = [head.ljust(PAGE_BYTES, b"\0"), bytes(PAGE_BYTES)]
    for key, value in pairs.items():
        ends = PAGE_BYTES - 1 - len(key), PAGE_BYTES - 2 - len(key) - len(value)
        table = struct.pack(f"{order}8xIIIHHBBHH", 1, 0, 0, 2, ends[1], 0, page_type, *ends)
        items = b"\x01" + value + b"\x01" + key
        pages.append(table + bytes(PAGE_BYTES - len(table) - len(items)) + items)
    return b"".join(pages)
