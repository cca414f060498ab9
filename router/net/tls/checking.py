"""Check that the files of TLS profiles can be used, as a listener or connector would use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from router.config.mistakes import Finding
from router.config.model import Configuration
from router.config.ssl_profiles import SslProfileSettings
from router.net.tls.contexts import ProfileUnusable, client_context
from router.net.tls.profiles import load_server_tls


def find_unusable_profiles(
    configuration: Configuration, _: Mapping[str, object]
) -> Iterator[Finding]:
    """Yield a `Finding` for each profile whose files cannot be read or used, or do not match.

    A profile that nothing refers to is checked as a connector would use it.
    """
    profiles: dict[str, SslProfileSettings] = {}
    indices: dict[str, int] = {}
    unusable: dict[str, ProfileUnusable] = {}
    for index, profile in enumerate(configuration.ssl_profiles):
        name = str(profile.name)
        if profile.name is None or name in profiles:
            # another check reports it
            continue
        profiles[name] = profile
        indices[name] = index
        try:
            client_context(profile, verify_hostname=True)
        except ProfileUnusable as error:
            unusable[name] = error
    for listener in configuration.listeners:
        used = (listener.ssl_profile, *listener.sni_ssl_profiles)
        # another check reports profiles that there are not, or that lack something
        if any(name in unusable or name not in profiles for name in used):
            continue
        if any(profiles[str(name)].cert_file is None for name in used):
            continue
        try:
            load_server_tls(listener, profiles)
        except ProfileUnusable as error:
            unusable[error.profile] = error
    for name, found in unusable.items():
        yield Finding(("sslProfile", indices[name], found.attribute), found.reason)
