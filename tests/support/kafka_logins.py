"""OAUTHBEARER of kafka-python: a client of RFC 7628 that is not ours. It does not speak AMQP."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any


def kafka_login(token: str, extensions: Mapping[str, str]) -> Any:
    """Return the client's side of a login: `auth_bytes` to send, and `receive` for a challenge."""
    with warnings.catch_warnings():
        # of how it reads its own files
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka.net.sasl.oauth import AbstractTokenProvider, SaslMechanismOAuth

    # kafka-python has no type annotations
    class OneToken(AbstractTokenProvider):  # type: ignore[misc]
        """Source of one token."""

        def token(self) -> str:
            return token

        def extensions(self) -> dict[str, str]:
            return dict(extensions)

    return SaslMechanismOAuth(sasl_oauth_token_provider=OneToken())
