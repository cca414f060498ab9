"""TLS of listeners and connectors: what their profiles' files contain, and whether they changed."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.ssl_profiles import SslProfileSettings
from router.net.tls.channel import ServerSide, TlsChannel, reason_of
from router.net.tls.contexts import ProfileUnusable, client_context, server_context

if TYPE_CHECKING:
    import trio

Stamps = tuple[tuple[str, int, int, int], ...]
"""Path, modification time in nanoseconds, size and inode of each file."""
SniCallback = Callable[[ssl.SSLObject, "str | None", ssl.SSLContext], None]
"""Callback of Python's `ssl` for the host name that a peer sends."""

_FILES: Final = (
    "cert_file",
    "private_key_file",
    "ca_cert_file",
    "crl_file",
    "uid_name_mapping_file",
)


@attrs.frozen(eq=False)
class ServerTls:
    """TLS of one listener, as its files were when it was loaded."""

    context: ssl.SSLContext
    profiles: tuple[SslProfileSettings, ...]
    stamps: Stamps
    allows_plain: bool
    user_names: Mapping[str, str]

    def channel(self) -> TlsChannel:
        """Return the TLS layer of a new connection."""
        return TlsChannel(self.context, allows_plain=self.allows_plain)

    def stream(self, stream: trio.SocketStream) -> trio.SSLStream[trio.SocketStream]:
        """Return TLS on a new connection of an HTTP listener."""
        # only here: `trioute check` needs neither
        import trio

        from router.net.tls.streams import stream_below_tls

        below = stream_below_tls(stream)
        return trio.SSLStream(below, self.context, server_side=True, https_compatible=True)

    def reason_of(self, error: ssl.SSLError) -> str:
        """Return why TLS has failed, for operators, from an error of OpenSSL."""
        return reason_of(error)

    def user_of(self, channel: TlsChannel) -> str | None:
        """Return the user that the peer's verified certificate stands for, or None without one."""
        return self.user_of_certificate(channel.peer_certificate())

    def user_of_certificate(self, certificate: bytes | None) -> str | None:
        """Return the user that a verified certificate in DER form stands for; None for None."""
        from router.net.tls.certificates import user_of

        if certificate is None:
            return None
        return user_of(certificate, self.profiles[0].uid_format, self.user_names)


@attrs.frozen(eq=False)
class ClientTls:
    """TLS of one connector, as its files were when it was loaded."""

    context: ssl.SSLContext
    stamps: Stamps
    upgrade: bool
    has_certificate: bool

    def channel(self, hostname: str) -> TlsChannel:
        """Return the TLS layer of a new connection to a host.

        Raises ValueError if `hostname` cannot be sent or verified.
        """
        return TlsChannel(self.context, server_hostname=hostname, upgrade=self.upgrade)


def load_server_tls(
    listener: ListenerSettings, profiles: Mapping[str, SslProfileSettings]
) -> ServerTls | None:
    """Load the TLS of a listener, or return None if the listener has no profile.

    Reads files, so call this in a thread. Raises `ProfileUnusable`, which names the profile.
    """
    if listener.ssl_profile is None:
        return None
    # loaded only with TLS, because it takes memory
    from router.net.tls.certificates import load_user_names, own_certificate

    names = (listener.ssl_profile, *listener.sni_ssl_profiles)
    used = tuple(profiles[name] for name in names)
    main = used[0]
    stamps = stamps_of(used)
    contexts: list[ssl.SSLContext] = []
    by_host: dict[str, ssl.SSLContext] = {}
    for name, profile in zip(names, used, strict=True):
        with _naming(name):
            context = server_context(main, listener.client_certificate, profile)
            assert profile.cert_file is not None
            certificate = own_certificate(profile.cert_file)
        contexts.append(context)
        for host in certificate.host_names:
            # of several certificates for a host, the first one counts
            by_host.setdefault(host, context)
    contexts[0].sni_callback = _choose(by_host)
    user_names: Mapping[str, str] = {}
    if main.uid_name_mapping_file is not None:
        with _naming(names[0]):
            user_names = load_user_names(main.uid_name_mapping_file)
    return ServerTls(contexts[0], used, stamps, not listener.needs_tls, user_names)


def renewed_server_tls(
    before: ServerTls | None,
    listener: ListenerSettings,
    profiles: Mapping[str, SslProfileSettings],
) -> ServerTls | None:
    """Return `before` if neither its profiles nor their files have changed; otherwise load anew.

    Returns and raises the same as `load_server_tls`; call it in a thread, too.
    """
    if before is not None:
        names = (str(listener.ssl_profile), *listener.sni_ssl_profiles)
        used = tuple(profiles[name] for name in names)
        if used == before.profiles and stamps_of(used) == before.stamps:
            return before
    return load_server_tls(listener, profiles)


def load_client_tls(connector: ConnectorSettings, profile: SslProfileSettings) -> ClientTls:
    """Load the TLS of a connector; reads files, so call this in a thread.

    Raises `ProfileUnusable`, which names the profile.
    """
    stamps = stamps_of([profile])
    with _naming(str(profile.name)):
        context = client_context(profile, connector.verify_hostname)
    return ClientTls(context, stamps, connector.ssl_upgrade, profile.cert_file is not None)


def renewed_client_tls(
    before: ClientTls | None, connector: ConnectorSettings, profile: SslProfileSettings
) -> ClientTls:
    """Return `before` if its files have not changed, otherwise as `load_client_tls`."""
    if before is not None and before.stamps == stamps_of([profile]):
        return before
    return load_client_tls(connector, profile)


@attrs.frozen
class Expiries:
    """When certificates and revocation lists expire, by profile, in seconds since 1970."""

    certificates: Mapping[str, float] = attrs.Factory(dict)
    lists: Mapping[str, float] = attrs.Factory(dict)


def expiries_of(profiles: Iterable[SslProfileSettings]) -> Expiries:
    """Return when the profiles' certificates and revocation lists expire.

    Files that cannot be used are left out. Reads files, so call this in a thread.
    """
    from router.net.tls.certificates import crl_expiry, own_certificate

    certificates, lists = {}, {}
    for profile in profiles:
        name = str(profile.name)
        if profile.cert_file is not None:
            with contextlib.suppress(ProfileUnusable):
                certificates[name] = own_certificate(profile.cert_file).expires_at
        if profile.crl_file is not None:
            with contextlib.suppress(ProfileUnusable):
                at = crl_expiry(profile.crl_file)
                if at is not None:
                    lists[name] = at
    return Expiries(certificates, lists)


def stamps_of(profiles: Iterable[SslProfileSettings]) -> Stamps:
    """Return the stamps of the profiles' files; a file that cannot be read is left out."""
    found = []
    for profile in profiles:
        files = [getattr(profile, name) for name in _FILES]
        if profile.password is not None and profile.password.kind == "file":
            files.append(Path(profile.password.reference))
        for file in files:
            if file is not None:
                with contextlib.suppress(OSError, ValueError):
                    status = file.stat()
                    stamp = (str(file), status.st_mtime_ns, status.st_size, status.st_ino)
                    found.append(stamp)
    return tuple(found)


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the profile's name to the reason why it cannot be used."""
    try:
        yield
    except ProfileUnusable as unusable:
        raise ProfileUnusable(unusable.attribute, unusable.reason, name) from None


def _choose(by_host: Mapping[str, ssl.SSLContext]) -> SniCallback:
    """Return a callback that notes the host that a peer names (SNI), and sets its context."""

    def choose(tls: ssl.SSLObject, host: str | None, _: ssl.SSLContext) -> None:
        if host is None:
            return
        host = host.lower()
        if isinstance(tls, ServerSide):
            tls.requested_host = host
        found = by_host.get(host) or by_host.get(f"*.{host.partition('.')[2]}")
        if found is not None and found is not tls.context:
            tls.context = found

    return choose
