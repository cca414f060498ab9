"""Check that a connector's first frames have at most 512 octets each (sections 2.4.1 and 5.3.1).

No setting changes this limit; only a SASL init with a token may have 16 KiB. Some values in these
frames are known only when connecting, such as a password that is read again, or the name of another
host after a redirect. So the frames are checked again when they are sent.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

from router.amqp.constants import SASL_FRAME
from router.amqp.framing import encode_frame
from router.config.connectors import ConnectorSettings
from router.config.mistakes import Finding, Path
from router.config.model import Configuration
from router.config.secret import SecretUnavailable
from router.core.routers.membership import FEATURES_SPOKEN, LARGEST_INSTANCE, Membership
from router.engine.opening import LARGEST_NUMBER, MIN_MAX_FRAME_SIZE, own_open
from router.engine.sasl import CLEARTEXT, TOKENS, largest_frame, own_init
from router.engine.settings import ConnectionSettings
from router.net.endpoints import connector_settings

# the longest possible open properties of a router
_LARGEST = Membership("", "interior", LARGEST_INSTANCE, FEATURES_SPOKEN)


def find_too_long(configuration: Configuration, _: Mapping[str, object]) -> Iterator[Finding]:
    """Yield a `Finding` for each connector whose SASL init or open is too long."""
    container_id = configuration.router.id or socket.gethostname()
    for index, connector in enumerate(configuration.connectors):
        here: Path = ("connector", index)
        try:
            settings = connector_settings(
                container_id, connector, connector.host, _LARGEST, port=connector.port
            )
        except SecretUnavailable:
            # another check reports it
            continue
        yield from _sasl_init(here, connector, settings)
        size = len(encode_frame(0, own_open(settings, LARGEST_NUMBER)))
        if size > MIN_MAX_FRAME_SIZE:
            key = "openProperties" if connector.open_properties else "host"
            yield Finding(
                (*here, key),
                f"results, with host and the router's id, in an open of {size} octets",
                f"shorten it: at most {MIN_MAX_FRAME_SIZE} octets are allowed before the peer's "
                "open",
                concerns=((*here, "host"), ("router", "id")),
            )


def _sasl_init(
    here: Path, connector: ConnectorSettings, settings: ConnectionSettings
) -> Iterator[Finding]:
    """Yield a `Finding` for a mechanism whose init is too long, or that needs a token."""
    for mechanism in connector.sasl_mechanisms:
        if mechanism not in CLEARTEXT or settings.sasl_password is None:
            # of the others the init is short; that the password is missing is reported elsewhere
            continue
        if mechanism in TOKENS:
            # only here: few connectors have a token
            from router.engine.bearer import TOKEN_FORM, is_token

            if not is_token(settings.sasl_password):
                yield Finding(
                    (*here, "saslPassword"),
                    f"is no bearer token, though {mechanism} is to be used",
                    TOKEN_FORM,
                    concerns=((*here, "saslMechanisms"),),
                )
                return
        most = largest_frame((mechanism,))
        size = len(encode_frame(0, own_init(settings, mechanism), frame_type=SASL_FRAME))
        if size > most:
            yield Finding(
                (*here, "saslPassword"),
                f"results, with saslUsername and host, in a SASL init of {size} octets",
                f"shorten them: at most {most} octets are allowed",
                concerns=tuple((*here, key) for key in ("saslUsername", "host")),
            )
            return
