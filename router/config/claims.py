"""Claims in the configuration: which security tokens the peers of a listener may present."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.endpoints import LONGEST_TIMEOUT_S, NAME
from router.config.secret import Secret
from router.config.setting import checked, setting

Right = Literal["Send", "Listen", "Manage"]
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
    "HS256", "HS384", "HS512",
]  # fmt: skip
RequiredOf = Literal["anonymous", "everyone"]

ASYMMETRIC: Final = tuple(each for each in get_args(Algorithm) if not each.startswith("HS"))
LONGEST_LEEWAY_S: Final = 600


@attrs.frozen(kw_only=True, field_transformer=checked)
class SharedAccessKeySettings:
    """A key that peers sign shared access signatures (SAS tokens) with, as clients of Azure do."""

    name: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The name by which claims refer to it.",
            default="none; it is required",
            required=True,
        ),
    )
    key_name: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(256, spaces=False),
            "The name of the key in tokens (skn), which is SharedAccessKeyName in a connection "
            "string.",
            default="name",
        ),
    )
    key: Secret | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.secret(),
            "The key itself, which is SharedAccessKey in a connection string: an environment "
            "variable or a file, or the text itself. It is used as written, without base64 "
            "decoding.",
            default="none; it is required",
            required=True,
        ),
    )
    secondary_key: Secret | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.secret(),
            "Another key that is valid as well, so that clients can change from one to the other.",
            default="none",
        ),
    )
    rights: tuple[Right, ...] = attrs.field(
        default=get_args(Right),
        metadata=setting(
            kinds.words(get_args(Right)),
            "What a token that is signed with the key allows at the address that the token names, "
            "and below it: to send (Send), to receive (Listen) or to manage the router (Manage).",
        ),
    )

    vhost: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(256, spaces=False),
            "The vhost whose clients alone may use the key, at listeners with multiTenant. There, "
            "a token that names no host, or a login by PLAIN, needs a key with a vhost.",
            default="that of the claims",
        ),
    )

    @property
    def name_in_tokens(self) -> str:
        """Return the name of the key in tokens."""
        return self.key_name or self.name or ""


@attrs.frozen(kw_only=True, field_transformer=checked)
class ClaimsSettings:
    """Security tokens that listeners accept at $cbs, by the keys that sign them."""

    name: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The name by which listeners refer to it.",
            default="none; it is required",
            required=True,
        ),
    )
    shared_access_keys: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            kinds.names(512, most=1000),
            "The names of the sharedAccessKeys whose tokens are accepted.",
        ),
    )
    jwks_file: Path | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.file_path(),
            "A JSON file with a JWK set (RFC 7517): the keys that verify the signatures of JWTs. "
            "It is read again when the configuration is reloaded.",
            default="none",
        ),
    )
    public_key_file: Path | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.file_path(),
            "A public key in PEM form that verifies the signatures of JWTs.",
            default="none",
        ),
    )
    hmac_key: Secret | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.secret(),
            "The secret that JWTs are signed with by HMAC, of at least 32 bytes; one of HS256, "
            "HS384 and HS512 must be in algorithms.",
            default="none",
        ),
    )
    algorithms: tuple[Algorithm, ...] = attrs.field(
        default=ASYMMETRIC,
        metadata=setting(
            kinds.words(get_args(Algorithm)),
            "The algorithms that JWTs may be signed with. Each key is used only with those of its "
            "own kind.",
        ),
    )
    issuer: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(1024, spaces=False),
            "The issuer (iss) that a JWT must name.",
            default="any",
        ),
    )
    audiences: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            kinds.names(1024, most=100),
            "The audiences (aud) of which a JWT must name one; required if JWTs are accepted.",
        ),
    )
    vhost: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(256, spaces=False),
            "The vhost whose clients alone may use these keys, at listeners with multiTenant. "
            "There, without it, a token has to name a host of the vhost with each address.",
            default="any",
        ),
    )
    rights_claim: str = attrs.field(
        default="rights",
        metadata=setting(
            kinds.text(256, spaces=False),
            "The claim that says what a JWT allows: a list of entries, or one text with spaces "
            'between them, such as "send:orders", "listen:orders/eu" or "manage:*"; or an object '
            "with lists of Send, Listen and Manage by address. An entry covers the address and "
            "what is below it; * covers all.",
        ),
    )
    leeway_seconds: float = attrs.field(
        default=60.0,
        metadata=setting(
            kinds.number(0, LONGEST_LEEWAY_S, "seconds"),
            "How far the clock of the issuer of tokens may differ from the router's: a token is "
            "valid this long before it begins (nbf) and after it expires (exp, se).",
        ),
    )
    required_of: RequiredOf = attrs.field(
        default="anonymous",
        metadata=setting(
            kinds.choice(get_args(RequiredOf)),
            "Which peers need a token for each link: those that have not authenticated with SASL "
            "(anonymous), or all (everyone).",
        ),
    )
    token_timeout_seconds: float = attrs.field(
        default=20.0,
        metadata=setting(
            kinds.seconds(LONGEST_TIMEOUT_S, zero="for ever"),
            "How long a peer that needs a token may be connected without a valid one.",
        ),
    )

    @property
    def accepts_jwt(self) -> bool:
        """Return whether there is a key for JWTs."""
        return any((self.jwks_file, self.public_key_file, self.hmac_key))
