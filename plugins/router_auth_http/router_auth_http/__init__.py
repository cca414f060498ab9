"""Ask a web service who may log in, and which connections are allowed."""

from __future__ import annotations

import ipaddress
import json
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlsplit

import attrs

from router import plugin

if TYPE_CHECKING:
    import httpx

MAX_ANSWER_BYTES: Final = 64 * 1024
# As many as the router has calls in progress, at most.
MOST_CONNECTIONS: Final = 64
REFUSALS: Final = frozenset({401, 403})


class ServiceFailed(Exception):
    """Failure of the service: its answer neither allows nor refuses. The text has no secrets."""


def service_url() -> plugin.Kind:
    """Return the kind for a URL of the service, to which passwords are sent."""
    words = "a URL that begins with https://, or with http:// if it leads to this host's loopback"

    def read(value: object) -> str:
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise plugin.ValueNotAllowed(words)
        try:
            parts = urlsplit(value)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise plugin.ValueNotAllowed(words) from None
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))
        if not host or not is_safe or "@" in parts.netloc:
            raise plugin.ValueNotAllowed(words)
        return value

    return plugin.Kind(words, read)


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    """Settings of the plugin in the router's configuration."""

    authentication_url: str | None = attrs.field(
        default=None,
        metadata=plugin.setting(
            service_url(),
            "The URL to POST each login to, as JSON.",
            default="none; required",
            required=True,
        ),
    )
    authorization_url: str | None = attrs.field(
        default=None,
        metadata=plugin.setting(
            service_url(),
            "The URL to POST each connection to, as JSON, for listeners whose "
            "authorizationPlugin this is.",
            default="none",
        ),
    )
    authorization: plugin.Secret | None = attrs.field(
        default=None,
        metadata=plugin.setting(
            plugin.secret(),
            "What to send in the header Authorization, so that the service knows the router.",
            default="none: no such header",
        ),
    )
    ca_cert_file: Path | None = attrs.field(
        default=None,
        metadata=plugin.setting(
            plugin.file_path(),
            "The authorities that sign the service's certificate, in PEM form.",
            default="the system's",
        ),
    )
    timeout_seconds: float = attrs.field(
        default=5.0,
        metadata=plugin.setting(
            plugin.number(0.1, 60, "seconds"), "How long the service may take to answer."
        ),
    )
    passwords: bool = attrs.field(
        default=True,
        metadata=plugin.setting(plugin.flag(), "Whether to handle PLAIN."),
    )
    tokens: bool = attrs.field(
        default=True,
        metadata=plugin.setting(plugin.flag(), "Whether to handle XOAUTH2 and OAUTHBEARER."),
    )


class AuthHttp(plugin.Plugin):
    """Plugin that asks a web service who may log in, and optionally who may open a connection."""

    api_version = (1, 1)
    settings_class: ClassVar[type[attrs.AttrsInstance]] = Settings

    def __init__(self, settings: Settings) -> None:
        # only here, in a thread: it takes long, and `trioute check` does not need it
        import httpx  # noqa: F401

        self.options = settings
        self.mechanisms: tuple[str, ...] = ("PLAIN",) if settings.passwords else ()
        if settings.tokens:
            self.mechanisms += ("XOAUTH2", "OAUTHBEARER")
        self.headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if settings.authorization is not None:
            self.headers["Authorization"] = settings.authorization.reveal()
        file = settings.ca_cert_file
        self.tls = ssl.create_default_context(cafile=None if file is None else str(file))
        self._client: httpx.AsyncClient | None = None

    async def run(self, router: plugin.Router) -> None:
        """Keep connections to the service open until cancelled."""
        import httpx
        import trio

        async with httpx.AsyncClient(
            verify=self.tls,
            headers=self.headers,
            timeout=self.options.timeout_seconds,
            follow_redirects=False,
            # a proxy would see what is sent to a loopback address
            trust_env=False,
            limits=httpx.Limits(max_connections=MOST_CONNECTIONS),
        ) as client:
            self._client = client
            router.started()
            await trio.sleep_forever()

    async def authenticate(self, login: plugin.Login) -> plugin.Identity | None:
        """Return whom the service recognizes, or None if it refuses the peer."""
        asked: dict[str, object] = {"mechanism": login.mechanism}
        user = ""
        try:
            if login.mechanism == "PLAIN":
                said = plugin.read_plain(login.response)
                if said.identity not in ("", said.user):
                    # only the user's own identity is granted
                    return None
                user = said.user
                asked |= {"user": said.user, "password": said.password}
            else:
                token = plugin.read_token(login.mechanism, login.response)
                asked |= {"user": token.user, "token": token.token}
        except ValueError:
            return None
        asked |= {"hostname": login.hostname, "peer": login.peer}
        answer = await self._ask(self.options.authentication_url, asked)
        return None if answer is None else _identity(answer, user)

    async def authorize(self, request: plugin.AccessRequest) -> bool:
        """Return whether the service allows a request."""
        if self.options.authorization_url is None:
            raise ServiceFailed("no authorizationUrl is configured")
        connection = request.connection
        asked: dict[str, object] = {
            "action": request.action,
            "address": request.address,
            "user": request.user,
            "groups": sorted(request.groups),
            "connection": {
                "number": connection.number,
                "container": connection.container,
                "peer": connection.peer,
                "role": connection.role,
            },
        }
        return await self._ask(self.options.authorization_url, asked) is not None

    async def _ask(self, url: str | None, asked: dict[str, object]) -> bytes | None:
        """Return the body of the service's answer, or None if it refuses.

        Raises ServiceFailed, or an exception of httpx or trio, if the service fails.
        """
        import trio

        if self._client is None or url is None:
            raise ServiceFailed("the plugin is not set up")
        body = b""
        # httpx's own time-out is for each step, and not for all of them
        with trio.fail_after(self.options.timeout_seconds):
            async with self._client.stream("POST", url, json=asked) as answer:
                if answer.status_code in REFUSALS:
                    return None
                if answer.status_code != 200:
                    raise ServiceFailed(f"the service answered {answer.status_code}")
                # without decompression, since a short compressed body may be very long
                with trio.CancelScope() as enough:
                    async for piece in answer.aiter_raw():
                        body += piece
                        if len(body) > MAX_ANSWER_BYTES:
                            # leaving the loop would leave the generators in it unfinished
                            enough.cancel()
        if len(body) > MAX_ANSWER_BYTES:
            raise ServiceFailed("the service's answer is too long")
        return body


def _identity(answer: bytes, user: str) -> plugin.Identity:
    """Return the identity in an answer; `user` is that of the login, if the answer names none."""
    try:
        found = json.loads(answer) if answer.strip() else {}
    except (ValueError, RecursionError):
        raise ServiceFailed("the service's answer is not JSON") from None
    if not isinstance(found, dict):
        raise ServiceFailed("the service's answer is not a JSON object")
    name, groups = found.get("user", user), found.get("groups", [])
    if not isinstance(name, str) or not name:
        raise ServiceFailed("the service's answer names no user")
    if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
        raise ServiceFailed("the groups in the service's answer are not a list of text")
    return plugin.Identity(name, frozenset(groups))
