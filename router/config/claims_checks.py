"""Checks of claims and their keys, and of listeners that refer to them.

See `router.config.checks`, which runs these checks. Whether keys can be used is checked in
`router.net.claims.checking`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.config.claims import ClaimsSettings
from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration
from router.config.name_checks import check_names, unknown_name
from router.config.policy_kinds import normal_hostname


def _names(configuration: Configuration, _: Data) -> Iterator[Finding]:
    yield from check_names("sharedAccessKey", (k.name for k in configuration.shared_access_keys))
    yield from check_names("claims", (each.name for each in configuration.claims))


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
                where = ("claims", index, "sharedAccessKeys")
                yield unknown_name(where, name, "sharedAccessKey", keys)
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
            where = ("listener", index, "claims")
            yield unknown_name(where, listener.claims, "claims", known)
        elif listener.role in ("inter-router", "edge"):
            yield Finding(
                ("listener", index, "claims"),
                "has no effect on a listener for other routers",
                "remove it, or give the listener another role",
                concerns=(("listener", index, "role"),),
            )


def _vhosts(configuration: Configuration, _: Data) -> Iterator[Finding]:
    """Yield a finding for each vhost of keys that does not exist, or contradicts another one."""
    vhosts = {normal_hostname(str(each.hostname)): each.hostname for each in configuration.vhosts}
    bound: list[tuple[Path, str | None]] = [
        *(
            (("sharedAccessKey", index, "vhost"), each.vhost)
            for index, each in enumerate(configuration.shared_access_keys)
        ),
        *(
            (("claims", index, "vhost"), each.vhost)
            for index, each in enumerate(configuration.claims)
        ),
    ]
    if configuration.policy.enable_vhost_policy:
        for path, name in bound:
            if name is not None and normal_hostname(name) not in vhosts:
                yield unknown_name(path, name, "vhost", vhosts.values())
    keys = {each.name: each.vhost for each in configuration.shared_access_keys}
    for index, claims in enumerate(configuration.claims):
        for key in claims.shared_access_keys:
            other = keys.get(key)
            if None in (other, claims.vhost):
                continue
            if normal_hostname(str(other)) != normal_hostname(str(claims.vhost)):
                yield Finding(
                    ("claims", index, "sharedAccessKeys"),
                    f"names {key}, which is a key of another vhost, {other}",
                    "remove the key, or one of the two vhosts",
                    concerns=(("claims", index, "vhost"),),
                )


def _tenants(configuration: Configuration, _: Data) -> Iterator[Finding]:
    """Yield a finding for each listener to whose tenants the vhosts of keys do not fit."""
    known = {each.name: each for each in configuration.claims}
    for index, listener in enumerate(configuration.listeners):
        claims = known.get(listener.claims)
        if claims is None or listener.claims is None or not listener.serves_amqp:
            continue
        bound = [name for name in _vhosts_of_keys(configuration, claims) if name is not None]
        if bound and not listener.multi_tenant:
            yield Finding(
                ("listener", index, "claims"),
                f"has keys of the vhost {bound[0]}, but the listener is not multiTenant, and "
                "tokens would be valid for all addresses of the router",
                "set multiTenant, or use claims whose keys have no vhost",
                concerns=(("listener", index, "multiTenant"), ("claims",), ("sharedAccessKey",)),
            )
        has_others = listener.users_file is not None or listener.authentication_plugin is not None
        if listener.multi_tenant and "PLAIN" in listener.sasl_mechanisms and not has_others:
            if claims.shared_access_keys and not bound:
                yield Finding(
                    ("listener", index, "saslMechanisms"),
                    "offers PLAIN, but no key of the claims has a vhost, so that nobody can log "
                    "in with one here",
                    "give the sharedAccessKeys a vhost, or remove PLAIN",
                    concerns=(("listener", index, "multiTenant"), ("claims",)),
                )


def _vhosts_of_keys(configuration: Configuration, claims: ClaimsSettings) -> Iterator[str | None]:
    """Yield the vhost of claims, and of each of their shared access keys."""
    yield claims.vhost
    for key in configuration.shared_access_keys:
        if key.name in claims.shared_access_keys:
            yield key.vhost


CLAIMS_CHECKS: Final = (_names, _missing_keys, _claims, _listeners, _vhosts, _tenants)
