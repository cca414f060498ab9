"""64-bit digests that show whether two tables differ.

The digest of a table is the sum of its entries' digests, modulo 2**64. So the order of the entries
does not matter, and an update costs no more than the change. Digests detect mistakes; they are no
defence against forgery.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from router.control.network.messages import Row

MASK = 2**64 - 1
BUCKETS = 32
"""Number of groups that routers are divided into when neighbours compare digests."""


def _number(octets: bytes) -> int:
    return int.from_bytes(blake2b(octets, digest_size=8).digest(), "big")


def entry_digest(key: str, terms: int) -> int:
    """Return the digest of one address, computed over `terms` and then the key in UTF-8.

    `terms` is the octet that encodes the treatment of the address (`messages.TERMS`).
    """
    return _number(bytes((terms,)) + key.encode())


def table_digest(entries: Iterable[tuple[str, int]]) -> int:
    """Return the digest of a whole table of addresses."""
    return sum(entry_digest(key, terms) for key, terms in entries) & MASK


def bucket_of(router: str) -> int:
    """Return the bucket (group of routers) that a router belongs to by its id."""
    return _number(router.encode()) % BUCKETS


def row_digest(row: Row) -> int:
    """Return the digest of a `Row`, which has the versions of what is known about a router."""
    numbers = (row.instance, row.seq, row.mobile_seq, row.digest)
    return _number(b"".join(each.to_bytes(8, "big") for each in numbers) + row.router.encode())


def summary(rows: Iterable[Row]) -> tuple[int, ...]:
    """Return the digest of each bucket of routers: the sum of the digests of their rows."""
    sums = [0] * BUCKETS
    for row in rows:
        sums[bucket_of(row.router)] += row_digest(row)
    return tuple([each & MASK for each in sums])
