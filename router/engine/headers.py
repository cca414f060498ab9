"""Protocol headers of a connection (section 2.2).

A server answers a header that it does not support with one that it supports, and closes the socket
(section 2.2.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.constants import SASL_FRAME, Condition
from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import SaslMechanisms
from router.amqp.types import Symbol
from router.engine import opening, sasl
from router.engine.states import Act, ConnectionState
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.engine.connection import Connection


def check_partial_header(connection: Connection, data: bytes) -> None:
    """Refuse octets that can no longer become a header, without waiting for the rest."""
    if data != AMQP_HEADER[: len(data)] and data[:4] != b"AMQP"[: len(data)]:
        refuse_header(connection, data)


def header_received(connection: Connection, header: bytes) -> None:
    """Answer a protocol header."""
    if connection.is_client:
        _header_answered(connection, header)
    elif header == SASL_HEADER and connection.settings.sasl_mechanisms and connection.user is None:
        opening.write(connection, SASL_HEADER)
        _announce_mechanisms(connection)
    elif header == AMQP_HEADER and (
        connection.user is not None or not connection.settings.sasl_required
    ):
        opening.move(connection, Act.RECV_HEADER)
        opening.move(connection, Act.SEND_HEADER)
        opening.write(connection, AMQP_HEADER)
        connection.phase = opening.AMQP_PHASE
    else:
        refuse_header(connection, header)


def _announce_mechanisms(connection: Connection) -> None:
    """Send the SASL mechanisms; close if none can be offered on this connection (5.3.3.1)."""
    offered = sasl.offered_mechanisms(connection)
    if not offered:
        problem = (
            "no SASL mechanism can be offered: those that send a password or token in clear text "
            "need TLS, and EXTERNAL needs a certificate"
        )
        opening.give_up(connection, AmqpError(Condition.UNAUTHORIZED_ACCESS, problem))
        return
    mechanisms = SaslMechanisms(sasl_server_mechanisms=tuple(Symbol(name) for name in offered))
    opening.write(connection, encode_frame(0, mechanisms, frame_type=SASL_FRAME))
    connection.phase = opening.SASL_PHASE


def _header_answered(connection: Connection, header: bytes) -> None:
    """Process the header with which the server answers; give up if it differs from ours."""
    state = ConnectionState(connection.state)
    if header == SASL_HEADER and state is ConnectionState.START:
        connection.phase = opening.SASL_PHASE
    elif header == AMQP_HEADER and state in (
        ConnectionState.HDR_SENT,
        ConnectionState.OPEN_PIPE,
        ConnectionState.OC_PIPE,
    ):
        opening.move(connection, Act.RECV_HEADER)
        connection.phase = opening.AMQP_PHASE
    else:
        problem = f"the server answered the header with {header!r}{_looks_like(connection, header)}"
        if header == AMQP_HEADER:
            problem = "the server does not support SASL, which the router requires"
        opening.give_up(connection, AmqpError(Condition.FRAMING_ERROR, problem))


def refuse_header(connection: Connection, data: bytes) -> None:
    """Close because of a wrong header; as server, first send a header that we support (2.2.1)."""
    if not connection.is_client:
        settings = connection.settings
        wants_sasl = settings.sasl_mechanisms and settings.sasl_required and connection.user is None
        opening.write(connection, SASL_HEADER if wants_sasl else AMQP_HEADER)
    opening.give_up(
        connection,
        AmqpError(
            Condition.FRAMING_ERROR,
            f"{data[:8]!r} is not an AMQP 1.0 protocol header{_looks_like(connection, data)}",
        ),
    )


def _looks_like(connection: Connection, data: bytes) -> str:
    """Return a note on the protocol that the peer seems to speak, such as TLS on a plain port."""
    what = ""
    # a handshake, or the alert or header with which a TLS server answers our header
    if data[:2] in (b"\x16\x03", b"\x15\x03") or data[:5] == b"AMQP\x02":
        what = "TLS"
    elif data.startswith((b"GET ", b"HEAD ", b"POST ", b"PUT ", b"OPTIONS", b"HTTP/")):
        what = "HTTP"
    if not what:
        return ""
    whose = "that port serves" if connection.is_client else "this port does not serve"
    return f" (it is {what}, which {whose})"
