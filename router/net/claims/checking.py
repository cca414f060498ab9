"""Check that the keys for verifying tokens can be read and used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from router.config.mistakes import Finding
from router.config.model import Configuration
from router.net.claims.verifier import ClaimsUnusable, load, load_key


def find_unusable_claims(
    configuration: Configuration, _: Mapping[str, object]
) -> Iterator[Finding]:
    """Yield a `Finding` for each key that cannot be read or used."""
    keys = {}
    for index, key in enumerate(configuration.shared_access_keys):
        try:
            load_key(key)
        except ClaimsUnusable as unusable:
            yield Finding(("sharedAccessKey", index, unusable.attribute), unusable.reason)
        else:
            keys[str(key.name)] = key
    for index, claims in enumerate(configuration.claims):
        # another check reports names of keys that do not exist
        if any(name not in keys for name in claims.shared_access_keys):
            continue
        try:
            load(claims, keys)
        except ClaimsUnusable as unusable:
            yield Finding(("claims", index, unusable.attribute), unusable.reason)
