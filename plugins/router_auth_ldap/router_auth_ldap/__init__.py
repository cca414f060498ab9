"""Check passwords at an LDAP server by a simple bind (RFC 4513, section 5.1.3)."""

from __future__ import annotations

import ipaddress
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol
from urllib.parse import urlsplit

import attrs

from router import plugin

if TYPE_CHECKING:
    import trio

USER: Final = "{user}"
DN: Final = "{dn}"
LONGEST_NAME: Final = 256
MAX_GROUPS: Final = 1000
# Characters that a directory ignores in comparisons (RFC 4518, section 2.2), although Python takes
# them for printable.
_IGNORED: Final = frozenset("\u034f\u1806\u180b\u180c\u180d\ufffc") | frozenset(
    map(chr, range(0xFE00, 0xFE10))
)


def directory_url() -> plugin.Kind:
    """Return the kind for the URL of an LDAP server."""
    words = "ldaps://host[:port] or ldap://host[:port]"

    def read(value: object) -> str:
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise plugin.ValueNotAllowed(words)
        try:
            parts = urlsplit(value)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise plugin.ValueNotAllowed(words) from None
        rest = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
        if parts.scheme not in ("ldap", "ldaps") or not host or rest:
            raise plugin.ValueNotAllowed(words)
        return value

    return plugin.Kind(words, read)


def template(*names: str) -> plugin.Kind:
    """Return the kind for a text that contains at least one of these placeholders."""
    words = f"text with {' or '.join(names)} in it"

    def read(value: object) -> str:
        if not isinstance(value, str) or not any(name in value for name in names):
            raise plugin.ValueNotAllowed(words)
        return value

    return plugin.Kind(words, read)


@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    """Settings of the plugin in the router's configuration."""

    url: str | None = attrs.field(
        default=None,
        metadata=plugin.setting(
            directory_url(), "The LDAP server.", default="none; required", required=True
        ),
    )
    user_dn: str | None = attrs.field(
        default=None,
        metadata=plugin.setting(
            template(USER),
            "The DN to bind as, in which {user} is replaced by the user's name.",
            default="none; required",
            required=True,
        ),
    )
    start_tls: bool = attrs.field(
        default=True,
        metadata=plugin.setting(
            plugin.flag(),
            "With ldap: whether to use TLS by StartTLS; false only for this host's loopback.",
        ),
    )
    ca_cert_file: Path | None = attrs.field(
        default=None,
        metadata=plugin.setting(
            plugin.file_path(),
            "The authorities that sign the server's certificate, in PEM form.",
            default="the system's",
        ),
    )
    timeout_seconds: float = attrs.field(
        default=5.0,
        metadata=plugin.setting(
            plugin.number(0.1, 60, "seconds"), "How long a bind and a search may take."
        ),
    )
    threads: int = attrs.field(
        default=8,
        metadata=plugin.setting(
            plugin.whole_number(1, 64, "threads"), "How many binds may be in progress at a time."
        ),
    )
    groups_base: str | None = attrs.field(
        default=None,
        metadata=plugin.setting(
            plugin.text(1000),
            "The DN below which the user's groups are searched, as the user.",
            default="none: users have no groups",
        ),
    )
    groups_filter: str = attrs.field(
        default="(member={dn})",
        metadata=plugin.setting(
            template(DN, USER),
            "The filter for groups, in which {dn} and {user} are replaced.",
        ),
    )
    group_attribute: str = attrs.field(
        default="cn",
        metadata=plugin.setting(plugin.text(100), "The attribute of a group that is its name."),
    )


class Directory(Protocol):
    """Connection to an LDAP server: the used part of python-ldap's class, which has no types."""

    protocol_version: int

    def set_option(self, option: int, value: float | str) -> None:
        """Set an option of this connection."""

    def start_tls_s(self) -> None:
        """Upgrade the connection to TLS (StartTLS)."""

    def simple_bind_s(self, who: str, cred: str) -> object:
        """Bind by a password."""

    def search_ext_s(
        self, base: str, scope: int, filterstr: str, attrlist: list[str], **limits: float
    ) -> list[tuple[str | None, dict[str, list[bytes]]]]:
        """Return the entries that a filter selects, by their DNs."""

    def unbind_ext_s(self) -> None:
        """Close the connection."""


class AuthLdap(plugin.Plugin):
    """Plugin that checks passwords at an LDAP server, and reads the users' groups there."""

    api_version = (1, 1)
    settings_class: ClassVar[type[attrs.AttrsInstance]] = Settings
    mechanisms = ("PLAIN",)

    def __init__(self, settings: Settings) -> None:
        # only here, in a thread: `trioute check` does not need it
        import ldap  # noqa: F401

        self.options = settings
        parts = urlsplit(settings.url or "")
        if parts.scheme == "ldap" and not settings.start_tls and not _is_loopback(parts.hostname):
            raise ValueError("startTls = false is allowed only for this host's loopback address")
        self._limiter: trio.CapacityLimiter | None = None

    async def run(self, router: plugin.Router) -> None:
        """Wait until cancelled; each bind makes a connection of its own."""
        import trio

        self._limiter = trio.CapacityLimiter(self.options.threads)
        router.started()
        await trio.sleep_forever()

    async def authenticate(self, login: plugin.Login) -> plugin.Identity | None:
        """Return the user if the server accepts the password, and None if it does not.

        Raises an exception of python-ldap if the server fails.
        """
        import trio

        try:
            said = plugin.read_plain(login.response)
        except ValueError:
            return None
        user = canonical(said.user)
        # a bind with an empty password succeeds without a check (RFC 4513, section 5.1.2)
        if user is None or not said.password or said.identity not in ("", said.user):
            return None
        # the thread of a cancelled call keeps its place until it ends, at the time-out
        return await trio.to_thread.run_sync(
            self.bind, user, said.password, abandon_on_cancel=True, limiter=self._limiter
        )

    def bind(self, user: str, password: str) -> plugin.Identity | None:
        """Bind as a user, and read the user's groups; called in a thread."""
        import ldap
        from ldap.dn import escape_dn_chars

        settings = self.options
        dn = str(settings.user_dn).replace(USER, escape_dn_chars(user))
        directory: Directory = ldap.initialize(str(settings.url))
        try:
            self._prepare(directory)
            try:
                directory.simple_bind_s(dn, password)
            except (ldap.INVALID_CREDENTIALS, ldap.INAPPROPRIATE_AUTH, ldap.NO_SUCH_OBJECT):
                return None
            return plugin.Identity(user, self._groups(directory, dn, user))
        finally:
            directory.unbind_ext_s()

    def _prepare(self, directory: Directory) -> None:
        """Set the options of a connection, and upgrade it to TLS."""
        import ldap

        settings = self.options
        directory.protocol_version = ldap.VERSION3
        directory.set_option(ldap.OPT_REFERRALS, 0)
        directory.set_option(ldap.OPT_NETWORK_TIMEOUT, settings.timeout_seconds)
        directory.set_option(ldap.OPT_TIMEOUT, settings.timeout_seconds)
        directory.set_option(ldap.OPT_X_TLS_REQUIRE_CERT, ldap.OPT_X_TLS_DEMAND)
        if settings.ca_cert_file is not None:
            directory.set_option(ldap.OPT_X_TLS_CACERTFILE, str(settings.ca_cert_file))
        directory.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
        if settings.start_tls and str(settings.url).startswith("ldap:"):
            directory.start_tls_s()

    def _groups(self, directory: Directory, dn: str, user: str) -> frozenset[str]:
        """Return the groups of the user that the connection is bound as."""
        import ldap
        from ldap.filter import escape_filter_chars

        settings = self.options
        if settings.groups_base is None:
            return frozenset()
        # split first, so that a placeholder in the user's name or DN is not replaced
        parts = settings.groups_filter.split(DN)
        parts = [part.replace(USER, escape_filter_chars(user)) for part in parts]
        wanted = escape_filter_chars(dn).join(parts)
        name = settings.group_attribute
        found = directory.search_ext_s(
            settings.groups_base,
            ldap.SCOPE_SUBTREE,
            wanted,
            [name],
            timeout=settings.timeout_seconds,
            sizelimit=MAX_GROUPS,
        )
        # entries without a DN are references to other servers
        values = (value for place, entry in found if place for value in entry.get(name, ()))
        return frozenset(value.decode() for value in values)


def canonical(name: str) -> str | None:
    """Return the canonical form of a name, the same for all names that a directory takes for one.

    Returns None for a name with characters or spaces that a directory would leave out.
    """
    form = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    if not 0 < len(form) <= LONGEST_NAME or not form.isprintable() or _IGNORED & {*form}:
        return None
    return form if " ".join(form.split()) == form else None


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
