"""Shared access signatures (SAS tokens), as clients of Azure Service Bus and Event Hubs make them.

A token is `SharedAccessSignature sr=AUDIENCE&sig=SIGNATURE&se=EXPIRY&skn=KEYNAME`, with each value
percent-encoded. The signature is the HMAC-SHA256 of the encoded audience, a line feed and the
expiry in seconds since 1970; its key is the text of the shared access key. The token gives the
key's rights at the path of the audience and below it. The scheme and port of the audience do not
matter; the host does to the clients of a tenant (`router.core.addresses.tenant_claims`).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

import attrs

from router.core.addresses.claims import Grant, TokenRefused, VerifiedToken, host_in, path_in

PREFIX: Final = "SharedAccessSignature "
_FIELDS: Final = ("sr", "sig", "se", "skn")
_EXPIRY: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_LONGEST_PATH: Final = 2048
# used in place of an unknown key, so that its check takes as long as that of a known one
_NO_KEY: Final = (b"\0" * 32,)
# The same text for an unknown key and a wrong signature: nobody learns which keys exist.
_NOT_SIGNED: Final = "the SAS token is not signed with a key that is accepted here"


@attrs.frozen
class SasKey:
    """Shared access key; `secrets` are the octets of its primary and secondary value.

    `vhost` is the virtual host that it is bound to, or None.
    """

    name: str
    secrets: tuple[bytes, ...] = attrs.field(repr=False)
    rights: int
    vhost: str | None = None


class SasKeys:
    """Shared access keys by their names in tokens (skn)."""

    def __init__(self, keys: Iterable[SasKey] = ()) -> None:
        self._keys = {each.name: each for each in keys}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def log_in(self, name: str, secret: str) -> SasKey | None:
        """Return the key with this name if `secret` is its value; otherwise None."""
        key = self._keys.get(name)
        is_right = False
        for each in _NO_KEY if key is None else key.secrets:
            is_right |= hmac.compare_digest(each, secret.encode())
        return key if is_right else None

    def verify(self, token: str, now: float, leeway_s: float) -> VerifiedToken:
        """Return what a token allows; raise TokenRefused if it is not valid.

        `now` is in seconds since 1970. The token is valid for `leeway_s` beyond its expiry.
        """
        fields = _fields(token)
        key = self._keys.get(_decoded(fields["skn"]))
        signed = f"{fields['sr']}\n{fields['se']}".encode()
        try:
            signature = base64.b64decode(_decoded(fields["sig"]), validate=True)
        except (binascii.Error, ValueError):
            raise TokenRefused(401, "the signature (sig) of the SAS token is not base64") from None
        is_right = False
        for secret in _NO_KEY if key is None else key.secrets:
            # both are always computed, so that the time does not tell which one was used
            is_right |= hmac.compare_digest(hmac.digest(secret, signed, "sha256"), signature)
        if key is None or not is_right:
            raise TokenRefused(401, _NOT_SIGNED)
        # only now, so that a client without a key learns nothing more
        if not _EXPIRY.fullmatch(fields["se"]):
            raise TokenRefused(401, "the expiry (se) of the SAS token is not a number of seconds")
        lifetime_s = int(fields["se"]) + leeway_s - now
        if lifetime_s <= 0:
            raise TokenRefused(401, "the SAS token has expired (se)")
        audience = _decoded(fields["sr"])
        if not audience.isprintable() or len(audience) > _LONGEST_PATH:
            raise TokenRefused(401, "the audience (sr) of the SAS token is not an address")
        grant = Grant(path_in(audience), key.rights, host_in(audience))
        return VerifiedToken((grant,), lifetime_s, audience, key.name, key.vhost)


def _fields(token: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in token.removeprefix(PREFIX).split("&"):
        name, _, value = part.partition("=")
        if name in found:
            raise TokenRefused(400, f"the SAS token has {name} twice" if name in _FIELDS else "the "
                               "SAS token has a field twice")  # fmt: skip
        found[name] = value
    missing = [name for name in _FIELDS if not found.get(name)]
    if missing:
        raise TokenRefused(400, f"the SAS token lacks {', '.join(missing)}")
    return found


def _decoded(text: str) -> str:
    """Decode a percent-encoded value, in which a + stands for itself."""
    try:
        if _ESCAPE.search(text):
            raise ValueError
        return unquote(text, errors="strict")
    except ValueError:
        raise TokenRefused(400, "a field of the SAS token is not percent-encoded UTF-8") from None
