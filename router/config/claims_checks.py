"""Checks of claims and their keys, and of listeners that refer to them.

See `router.config.checks`, which runs these checks. Whether keys can be used is checked in
`router.net.claims.checking`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from router.config.mistakes import Data, Finding
from router.config.model import Configuration


def _names(configuration: Configuration, _: Data) -> Iterator[Finding]:
    keys = [each.name for each in configuration.shared_access_keys]
    claims = [each.name for each in configuration.claims]
    for entity, names in (("sharedAccessKey", keys), ("claims", claims)):
        seen: dict[str, int] = {}
        for index, name in enumerate(names):
            if name is None:
                yield Finding((entity, index, "name"), "is missing", "give a name")
            elif name in seen:
                yield Finding(
                    (entity, index, "name"),
                    f"is taken: {entity}[{seen[name]}] has the same name",
                    "give another name",
                    shown=True,
                )
            else:
                seen[name] = index


def _missing_keys(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, each in enumerate(configuration.shared_access_keys):
        if each.key is None:
            yield Finding(
                ("sharedAccessKey", index, "key"),
                "is missing",
                "give the key, preferably as env:VARIABLE or file:PATH",
            )


def _claims(configuration: Configuration, data: Data) -> Iterator[Finding]:
    keys = {each.name: each for each in configuration.shared_access_keys}
    for index, each in enumerate(configuration.claims):
        taken: dict[str, str] = {}
        for name in each.shared_access_keys:
            if name not in keys:
                yield _unknown("claims", index, "sharedAccessKeys", name, "sharedAccessKey", keys)
                continue
            first = taken.setdefault(keys[name].name_in_tokens, name)
            if first != name:
                yield Finding(
                    ("claims", index, "sharedAccessKeys"),
                    f"names {first} and {name}, which have the same keyName",
                    "give each key another keyName, or use secondaryKey",
                )
        if not (each.shared_access_keys or each.accepts_jwt):
            yield Finding(
                ("claims", index),
                "accepts no token, because it has no key",
                "give sharedAccessKeys, or jwksFile, publicKeyFile or hmacKey for JWTs",
                concerns=tuple(
                    ("claims", index, key)
                    for key in ("sharedAccessKeys", "jwksFile", "publicKeyFile", "hmacKey")
                ),
            )
        if each.accepts_jwt and not each.audiences:
            yield Finding(
                ("claims", index, "audiences"),
                "is missing, though JWTs are accepted",
                "give the audience that JWTs for this router name",
            )
        if each.accepts_jwt:
            continue
        for key in ("algorithms", "issuer", "audiences", "rightsClaim"):
            if key in data["claims"][index]:
                yield Finding(
                    ("claims", index, key),
                    "has no effect, because there is no key for JWTs",
                    "give jwksFile, publicKeyFile or hmacKey, or remove it",
                    concerns=(("claims", index, "jwksFile"), ("claims", index, "hmacKey")),
                )


def _listeners(configuration: Configuration, _: Data) -> Iterator[Finding]:
    known = {each.name: each for each in configuration.claims}
    for index, listener in enumerate(configuration.listeners):
        if listener.claims is None or not listener.serves_amqp:
            continue
        if listener.claims not in known:
            yield _unknown("listener", index, "claims", listener.claims, "claims", known)
        elif listener.role in ("inter-router", "edge"):
            yield Finding(
                ("listener", index, "claims"),
                "has no effect on a listener for other routers",
                "remove it, or give the listener another role",
                concerns=(("listener", index, "role"),),
            )


def _unknown(
    entity: str, index: int, key: str, name: str, of: str, known: Iterable[str | None]
) -> Finding:
    names = ", ".join(str(each) for each in known if each is not None)
    allowed = f"known here: {names}" if names else f"add a [[{of}]]"
    return Finding((entity, index, key), f"names {name}, but no [[{of}]] has that name", allowed)


CLAIMS_CHECKS: Final = (_names, _missing_keys, _claims, _listeners)
