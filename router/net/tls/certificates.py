"""Read certificates: the name of the user that a certificate stands for, and when it expires."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from router.net.tls.contexts import ProfileUnusable

# Separator of the parts of a name.
_SEPARATOR: Final = ";"
_FIELDS: Final = {
    "c": NameOID.COUNTRY_NAME,
    "s": NameOID.STATE_OR_PROVINCE_NAME,
    "l": NameOID.LOCALITY_NAME,
    "o": NameOID.ORGANIZATION_NAME,
    "u": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "n": NameOID.COMMON_NAME,
}
_FINGERPRINTS: Final[Mapping[str, hashes.HashAlgorithm]] = {
    # a name that files of Dispatch ask for, not a signature
    "1": hashes.SHA1(),
    "2": hashes.SHA256(),
    "5": hashes.SHA512(),
}


def user_of(der: bytes, uid_format: str | None, names: Mapping[str, str]) -> str:
    """Return the name of the user that a verified certificate stands for.

    `der` is the certificate. `uid_format` has a letter for each part of the name, as in the
    configuration; parts that the subject lacks are left out. Without it, or without any part, the
    name is the whole subject in the form of RFC 4514. `names` maps such names to those of users.
    """
    certificate = x509.load_der_x509_certificate(der)
    if not uid_format:
        return certificate.subject.rfc4514_string()
    parts = [part for letter in uid_format for part in _parts(certificate, letter)]
    name = _SEPARATOR.join(parts) or certificate.subject.rfc4514_string()
    return names.get(name, name)


def _parts(certificate: x509.Certificate, letter: str) -> list[str]:
    """Return the part of a name for a letter, or nothing if the subject has no such part."""
    algorithm = _FINGERPRINTS.get(letter)
    if algorithm is not None:
        return [certificate.fingerprint(algorithm).hex()]
    found = certificate.subject.get_attributes_for_oid(_FIELDS[letter])
    return [str(found[0].value)] if found else []


_CRL: Final = re.compile(rb"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)
# What the library raises for a certificate that it cannot read.
_NO_CERTIFICATE: Final = (
    ValueError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


@attrs.frozen
class OwnCertificate:
    """Certificate that this side shows: when it expires, and the host names it is valid for.

    `expires_at` is in seconds since 1970. The names are in lower case, and may begin with `*.`.
    """

    expires_at: float
    host_names: frozenset[str]


def own_certificate(file: Path) -> OwnCertificate:
    """Read the first certificate of a file; raises `ProfileUnusable` if there is none."""
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
        names = _host_names(certificate)
    except OSError as error:
        raise ProfileUnusable("certFile", f"cannot be read: {error.strerror or error}") from None
    except _NO_CERTIFICATE:
        reason = "has no certificate in PEM form that can be read"
        raise ProfileUnusable("certFile", reason) from None
    return OwnCertificate(certificate.not_valid_after_utc.timestamp(), names)


def crl_expiry(file: Path) -> float | None:
    """Return when the first of a file's revocation lists expires, in seconds since 1970.

    Return None if no list has a next update. Raises `ProfileUnusable` if the file cannot be read.
    """
    try:
        status = file.stat()
        return _crl_expiry(file, (status.st_mtime_ns, status.st_size, status.st_ino))
    except OSError as error:
        raise ProfileUnusable("crlFile", f"cannot be read: {error.strerror or error}") from None
    except _NO_CERTIFICATE:
        raise ProfileUnusable("crlFile", "has a list that cannot be read") from None


@lru_cache(64)
def _crl_expiry(file: Path, _: tuple[int, int, int]) -> float | None:
    """Return the same; a list may be long, so it is read anew only if the file has changed."""
    lists = (x509.load_pem_x509_crl(each) for each in _CRL.findall(file.read_bytes()))
    updates = (each.next_update_utc for each in lists)
    return min((each.timestamp() for each in updates if each is not None), default=None)


def _host_names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = extension.value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        names = [str(each.value) for each in found]
    return frozenset(name.lower() for name in names)


def load_user_names(file: Path) -> Mapping[str, str]:
    """Read a file that maps names of certificates to names of users.

    Raises `ProfileUnusable` if the file cannot be read, or is not a JSON object of texts.
    """
    attribute = "uidNameMappingFile"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileUnusable(attribute, f"cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise ProfileUnusable(attribute, "is not JSON text") from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ProfileUnusable(attribute, "is not a JSON object whose values are texts")
    return found
