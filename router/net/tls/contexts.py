"""Make contexts of Python's `ssl` from the TLS profiles of the configuration."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

from router.config.listeners import ClientCertificate
from router.config.secret import SecretUnavailable
from router.config.ssl_profiles import SslProfileSettings
from router.errors import ConfigurationError
from router.net.tls.channel import ServerSide

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "optional": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class ProfileUnusable(ConfigurationError):
    """TLS profile that cannot be used: `attribute`, by its name in the file, and why.

    `profile` is the profile's name, as far as it is known.
    """

    def __init__(self, attribute: str, reason: str, profile: str = "") -> None:
        self.attribute = attribute
        self.reason = reason
        self.profile = profile
        super().__init__(f"sslProfile {profile}: {attribute} {reason}")


def server_context(
    profile: SslProfileSettings,
    client_certificate: ClientCertificate = "none",
    certificate_of: SslProfileSettings | None = None,
) -> ssl.SSLContext:
    """Return the context of a listener.

    The certificate that the router shows is that of `certificate_of`, if given; everything else is
    taken from `profile`. Reads files, so call this in a thread. Raises `ProfileUnusable`.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = ServerSide
    _set_rules(context, profile)
    _load_certificate(context, certificate_of or profile)
    if client_certificate != "none":
        context.verify_mode = _VERIFY[client_certificate]
        _load_authorities(context, profile)
    return context


def client_context(profile: SslProfileSettings, verify_hostname: bool) -> ssl.SSLContext:
    """Return the context of a connector.

    Reads files, so call this in a thread. Raises `ProfileUnusable`.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = verify_hostname
    _set_rules(context, profile)
    if profile.cert_file is not None:
        _load_certificate(context, profile)
    if profile.ca_cert_file is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    _load_authorities(context, profile)
    return context


def _set_rules(context: ssl.SSLContext, profile: SslProfileSettings) -> None:
    versions = [_VERSIONS[name] for name in profile.protocols]
    context.minimum_version = min(versions)
    context.maximum_version = max(versions)
    # A peer could keep the router busy with new handshakes on one connection.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    if profile.ciphers is not None:
        _tried("ciphers", lambda: context.set_ciphers(profile.ciphers or ""))


def _load_certificate(context: ssl.SSLContext, profile: SslProfileSettings) -> None:
    certificate, key = profile.cert_file, profile.private_key_file
    if certificate is None:
        raise ProfileUnusable("certFile", "is missing")
    try:
        # Without a function, OpenSSL would ask for a password on the terminal.
        password = "" if profile.password is None else profile.password.reveal()
    except SecretUnavailable as unavailable:
        raise ProfileUnusable("password", str(unavailable)) from None
    for attribute, file in (("certFile", certificate), ("privateKeyFile", key)):
        if file is not None:
            _tried(attribute, file.read_bytes)
    try:
        context.load_cert_chain(certificate, key, lambda: password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise _unusable_key(profile, password, error) from None


def _unusable_key(profile: SslProfileSettings, password: str, error: Exception) -> ProfileUnusable:
    """Return why a certificate and its key cannot be used together, which OpenSSL does not say."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if "KEY_VALUES_MISMATCH" in str(getattr(error, "reason", "")):
        return ProfileUnusable("privateKeyFile", "does not belong to the certificate in certFile")
    file, attribute = profile.private_key_file, "privateKeyFile"
    if file is None:
        # the key is in the file of the certificate
        file, attribute = profile.cert_file, "certFile"
    assert file is not None
    data = b""
    try:
        data = file.read_bytes()
        load_pem_private_key(data, password.encode() or None)
    except TypeError:
        reason = "is not encrypted; remove the password"
        if not password:
            reason = "is encrypted; give its password"
        return ProfileUnusable(attribute, reason)
    except OSError as unread:
        # removed since it was read
        return ProfileUnusable(attribute, f"cannot be read: {unread.strerror or unread}")
    except (ValueError, UnsupportedAlgorithm):
        if password and b"ENCRYPTED" in data:
            return ProfileUnusable("password", "is wrong: the private key cannot be decrypted")
        return ProfileUnusable(attribute, "has no private key in PEM form that can be used")
    return ProfileUnusable("certFile", "has no certificate in PEM form that can be used")


def _load_authorities(context: ssl.SSLContext, profile: SslProfileSettings) -> None:
    authorities, revoked = profile.ca_cert_file, profile.crl_file
    if authorities is not None:
        _tried("caCertFile", lambda: context.load_verify_locations(authorities))
    if revoked is not None:
        _tried("crlFile", lambda: context.load_verify_locations(revoked))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _tried(attribute: str, act: Callable[[], object]) -> None:
    """Call a function that reads a file; raise `ProfileUnusable` with the reason if it fails."""
    try:
        act()
    except ssl.SSLError as error:
        raise ProfileUnusable(attribute, _problem(attribute, error)) from None
    except OSError as error:
        raise ProfileUnusable(attribute, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ProfileUnusable(attribute, f"cannot be used: {error}") from None


def _problem(attribute: str, error: ssl.SSLError) -> str:
    """Return in words why OpenSSL does not accept an attribute of a profile."""
    # an error of Python itself has no reason
    reason = getattr(error, "reason", None) or str(error)
    if attribute == "ciphers":
        return "names no cipher that is available"
    if "NO_CERTIFICATE_OR_CRL_FOUND" in reason or "PEM" in reason:
        return "has nothing in PEM form of the kind that is needed here"
    return f"cannot be used: {reason.lower().replace('_', ' ')}"
