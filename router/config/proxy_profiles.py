"""HTTP proxies in the configuration, which connectors may connect through."""

from __future__ import annotations

import attrs

from router.config import kinds
from router.config.endpoints import HOST, NAME
from router.config.secret import Secret
from router.config.setting import checked, setting


@attrs.frozen(kw_only=True, field_transformer=checked)
class ProxyProfileSettings:
    """An HTTP proxy that supports CONNECT, which connectors refer to by its name."""

    name: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The proxy's name, by which connectors refer to it.",
            default="none; it is required",
            required=True,
        ),
    )
    host: str | None = attrs.field(
        default=None,
        metadata=setting(
            HOST,
            "The address or host name of the proxy.",
            default="none; it is required",
            required=True,
        ),
    )
    port: int | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.port(1), "The proxy's TCP port.", default="none; it is required", required=True
        ),
    )
    username: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(255),
            "The user to log in to the proxy as, without colons. Basic authentication is used, "
            "which does not encrypt the password.",
            default="none",
        ),
    )
    password: Secret | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.secret(),
            "The user's password: the text itself, or an environment variable or a file, which is "
            "read again for each connection.",
            default="none",
        ),
    )
