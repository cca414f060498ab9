"""Verify tokens with the keys of a configured `claims` entity, which are reloaded on changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

from router.config.claims import ClaimsSettings, SharedAccessKeySettings
from router.config.model import Configuration
from router.config.secret import Secret, SecretUnavailable
from router.core.addresses.claims import (
    RIGHTS,
    SUPPORTED,
    Grant,
    TokenRefused,
    VerifiedToken,
    covering_paths,
    path_in,
)
from router.errors import ConfigurationError
from router.net.claims.jwt_tokens import (
    JwtKey,
    JwtRules,
    KeyUnusable,
    check_usable,
    covers_audience,
    key_set,
    public_key,
    secret_key,
)
from router.net.claims.sas import PREFIX, SasKey, SasKeys

MAX_FILE_BYTES: Final = 1 << 20
EXTRA: Final = "trioute[claims]"
# A token that is valid for longer expires after this time.
LONGEST_LIFETIME_S: Final = 10 * 365 * 86400.0


class ClaimsUnusable(ConfigurationError):
    """Failure to load keys: `entity` and `name` say which entity, `attribute` which attribute."""

    def __init__(self, entity: str, name: str, attribute: str, reason: str) -> None:
        super().__init__(f"{entity} {name}: {attribute} {reason}")
        self.entity = entity
        self.name = name
        self.attribute = attribute
        self.reason = reason


@attrs.frozen(eq=False)
class LoadedClaims:
    """Settings of a `claims` entity, with the keys that were read for it."""

    settings: ClaimsSettings
    sas: SasKeys = attrs.field(repr=False)
    jwt: JwtRules | None = attrs.field(repr=False)

    def verify(self, token: str, audience: str | None, now: float) -> VerifiedToken:
        """Return what a token allows; raise TokenRefused if it is not valid.

        Its kind is recognized by its form, since some clients declare a wrong type. `now` is in
        seconds since 1970.
        """
        if token.startswith(PREFIX) and self.sas:
            verified = self.sas.verify(token, now, self.settings.leeway_seconds)
        elif token.count(".") == 2 and not token.startswith(PREFIX) and self.jwt is not None:
            verified = self.jwt.verify(token, now)
        else:
            accepted = [
                *(["SAS tokens"] if self.sas else []),
                *([] if self.jwt is None else ["JWTs (amqp:jwt)"]),
            ]
            raise TokenRefused(400, f"the token is of no accepted kind: {', '.join(accepted)}")
        if audience is not None:
            name = path_in(audience)
            if not covers_audience(verified, covering_paths(name)):
                raise TokenRefused(401, "the token does not cover the audience (name)")
        lifetime_s = min(verified.lifetime_s, LONGEST_LIFETIME_S)
        return attrs.evolve(verified, lifetime_s=lifetime_s)


class LiveClaims:
    """Verifier of the tokens of some listeners' peers; its keys are replaced when they change.

    Implements `router.core.addresses.claims.TokenVerifier`.
    """

    def __init__(self, loaded: LoadedClaims, wall_clock: Callable[[], float] = time.time) -> None:
        # None once the entity is removed: then no token is accepted any more
        self.loaded: LoadedClaims | None = loaded
        self._settings = loaded.settings
        self._wall_clock = wall_clock

    def replace(self, loaded: LoadedClaims | None) -> None:
        """Use other keys for later tokens; with None, accept no more tokens."""
        self.loaded = loaded
        if loaded is not None:
            self._settings = loaded.settings

    @property
    def requires_of_all(self) -> bool:
        """Return whether peers that have authenticated by SASL need tokens as well."""
        return self._settings.required_of == "everyone"

    @property
    def time_limit_s(self) -> float:
        """Return how many seconds a peer may be without a valid token; 0 means no limit."""
        return self._settings.token_timeout_seconds

    def log_in(self, name: str, secret: str) -> VerifiedToken | None:
        """Return what a login with the name and value of a shared access key allows.

        It allows the key's rights at all addresses for as long as the connection lasts. Return None
        if no key has this name and value.
        """
        key = None if self.loaded is None else self.loaded.sas.log_in(name, secret)
        if key is None:
            return None
        grant = Grant("", key.rights)
        return VerifiedToken((grant,), LONGEST_LIFETIME_S, name, key.name, key.vhost)

    def verify(self, kind: str, token: str, audience: str | None) -> VerifiedToken:
        """Return what a token allows; raise TokenRefused if it is not valid."""
        if self.loaded is None:
            raise TokenRefused(401, "the router accepts no tokens here any more")
        if kind == "amqp:swt":
            raise TokenRefused(400, f"tokens of this type are not supported; {SUPPORTED} are")
        return self.loaded.verify(token, audience, self._wall_clock())


def renew(live: dict[str, LiveClaims], loaded: Mapping[str, LoadedClaims]) -> None:
    """Replace the keys of verifiers; connections keep the tokens that were accepted before."""
    for name in [name for name in live if name not in loaded]:
        # connections that are still open accept no tokens any more
        live.pop(name).replace(None)
    for name, each in loaded.items():
        if name in live:
            live[name].replace(each)
        else:
            live[name] = LiveClaims(each)


def load_all(configuration: Configuration) -> dict[str, LoadedClaims]:
    """Read the keys of all claims of a configuration; raise ClaimsUnusable if some cannot be used.

    This reads files; call it in a thread.
    """
    keys = {str(each.name): each for each in configuration.shared_access_keys}
    return {str(each.name): load(each, keys) for each in configuration.claims}


def load(settings: ClaimsSettings, keys: Mapping[str, SharedAccessKeySettings]) -> LoadedClaims:
    """Read the keys of claims; raise ClaimsUnusable if some cannot be used."""
    loaded = [load_key(keys[name]) for name in settings.shared_access_keys]
    sas = SasKeys(attrs.evolve(each, vhost=each.vhost or settings.vhost) for each in loaded)
    if not settings.accepts_jwt:
        return LoadedClaims(settings, sas, None)
    jwt = JwtRules(
        tuple(_jwt_keys(settings)),
        frozenset(settings.algorithms),
        frozenset(settings.audiences),
        settings.issuer,
        settings.rights_claim,
        settings.leeway_seconds,
        settings.vhost,
    )
    return LoadedClaims(settings, sas, jwt)


def load_key(settings: SharedAccessKeySettings) -> SasKey:
    """Read a shared access key; raise ClaimsUnusable if it cannot be read."""
    secrets = []
    for attribute, secret in (("key", settings.key), ("secondaryKey", settings.secondary_key)):
        if secret is not None:
            try:
                secrets.append(secret.reveal().encode())
            except SecretUnavailable as error:
                raise ClaimsUnusable(
                    "sharedAccessKey", str(settings.name), attribute, f"is unusable: {error}"
                ) from None
    rights = sum(RIGHTS[each] for each in settings.rights)
    return SasKey(settings.name_in_tokens, tuple(secrets), rights, settings.vhost)


def _jwt_keys(settings: ClaimsSettings) -> Iterable[JwtKey]:
    attribute = "jwksFile"
    found: list[JwtKey] = []
    allowed = frozenset(settings.algorithms)
    try:
        try:
            import jwt  # noqa: F401 - only routers that accept JWTs need it
        except ImportError:
            raise KeyUnusable(f"needs PyJWT, which is not installed: install {EXTRA}") from None
        if settings.jwks_file is not None:
            # a set may have keys for other uses too
            found += [
                each for each in key_set(_contents(settings.jwks_file)) if each.algorithms & allowed
            ]
            if not found:
                raise KeyUnusable("has no key for the algorithms")
        attribute = "publicKeyFile"
        if settings.public_key_file is not None:
            key = public_key(_contents(settings.public_key_file))
            check_usable([key], allowed)
            found.append(key)
        attribute = "hmacKey"
        if settings.hmac_key is not None:
            key = secret_key(_revealed(settings.hmac_key))
            check_usable([key], allowed)
            found.append(key)
    except KeyUnusable as unusable:
        raise ClaimsUnusable("claims", str(settings.name), attribute, str(unusable)) from None
    return found


def _contents(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            octets = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise KeyUnusable(f"cannot be read: {reason}") from None
    if len(octets) > MAX_FILE_BYTES:
        raise KeyUnusable(f"has more than {MAX_FILE_BYTES} bytes")
    return octets


def _revealed(secret: Secret) -> bytes:
    try:
        return secret.reveal().encode()
    except SecretUnavailable as error:
        raise KeyUnusable(f"is unusable: {error}") from None
