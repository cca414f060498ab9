"""TLS profiles in the configuration: certificates, and rules for TLS."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.endpoints import NAME
from router.config.secret import Secret
from router.config.setting import checked, setting

Protocol = Literal["TLSv1.2", "TLSv1.3"]

_PROTOCOLS: Final = kinds.words(get_args(Protocol))


@attrs.frozen(kw_only=True, field_transformer=checked)
class SslProfileSettings:
    """Certificates and rules for TLS, which listeners and connectors refer to by its name."""

    name: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The profile's name, by which listeners and connectors refer to it.",
            default="none; it is required",
            required=True,
        ),
    )
    cert_file: Path | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.file_path(),
            "The router's certificate in PEM form, followed by those of intermediate authorities.",
            default="none; required at a listener",
        ),
    )
    private_key_file: Path | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.file_path(), "The certificate's private key in PEM form.", default="certFile"
        ),
    )
    password: Secret | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.secret(),
            "The password of the private key, if it is encrypted: the text itself, or an "
            "environment variable or a file.",
            default="none",
        ),
    )
    ca_cert_file: Path | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.file_path(),
            "The authorities in PEM form that the peer's certificate must be signed by.",
            default="the system's authorities at a connector; required at a listener that asks "
            "for a certificate",
        ),
    )
    crl_file: Path | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.file_path(),
            "Revocation lists in PEM form, of the authorities that sign the peers' certificates. "
            "A certificate on a list is refused, and so is one whose authority has no valid list.",
            default="none: revocation is not checked",
        ),
    )
    protocols: tuple[Protocol, ...] = attrs.field(
        default=get_args(Protocol),
        metadata=setting(
            _PROTOCOLS,
            "The allowed TLS versions. Older ones are not supported, because they are not safe.",
        ),
    )
    ciphers: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(4096),
            "The ciphers allowed with TLS 1.2, in OpenSSL's form. Those of TLS 1.3 are all safe, "
            "and cannot be selected.",
            default="those that Python considers safe",
        ),
    )
    uid_format: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.letters("csloun125"),
            "How the name of a peer's user is made from its certificate: letters for the country "
            "(c), state (s), locality (l), organization (o), organizational unit (u) and common "
            "name (n) of the subject, and for the certificate's fingerprint by SHA-1 (1), SHA-256 "
            "(2) or SHA-512 (5). The parts are separated by semicolons.",
            default="none: the name is the whole subject",
        ),
    )
    uid_name_mapping_file: Path | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.file_path(),
            "A JSON file with an object that maps such names to the names of users.",
            default="none; used with uidFormat",
        ),
    )
