"""SASL frames: the five frame bodies of an authentication (part 5, section 5.3.3)."""

from __future__ import annotations

import attrs

from router.amqp import field_types as t
from router.amqp.composite import Composite, Field, composite
from router.amqp.constants import Descriptor, SaslCode


@composite(
    "amqp:sasl-mechanisms:list",
    Descriptor.SASL_MECHANISMS,
    "sasl-frame",
    Field("sasl_server_mechanisms", t.SYMBOL, mandatory=True, multiple=True),
)
@attrs.frozen
class SaslMechanisms(Composite):
    """Mechanisms that the server offers, best first (section 5.3.3.1)."""

    sasl_server_mechanisms: tuple[str, ...]


@composite(
    "amqp:sasl-init:list",
    Descriptor.SASL_INIT,
    "sasl-frame",
    Field("mechanism", t.SYMBOL, mandatory=True),
    Field("initial_response", t.BINARY),
    Field("hostname", t.STRING),
)
@attrs.frozen
class SaslInit(Composite):
    """Choice of a mechanism by the client, and the initial response (section 5.3.3.2)."""

    mechanism: str
    initial_response: bytes | None = attrs.field(default=None, repr=False)
    hostname: str | None = None


@composite(
    "amqp:sasl-challenge:list",
    Descriptor.SASL_CHALLENGE,
    "sasl-frame",
    Field("challenge", t.BINARY, mandatory=True),
)
@attrs.frozen
class SaslChallenge(Composite):
    """Challenge from the server (section 5.3.3.3)."""

    challenge: bytes = attrs.field(repr=False)


@composite(
    "amqp:sasl-response:list",
    Descriptor.SASL_RESPONSE,
    "sasl-frame",
    Field("response", t.BINARY, mandatory=True),
)
@attrs.frozen
class SaslResponse(Composite):
    """Response from the client (section 5.3.3.4)."""

    response: bytes = attrs.field(repr=False)


@composite(
    "amqp:sasl-outcome:list",
    Descriptor.SASL_OUTCOME,
    "sasl-frame",
    Field("code", t.SASL_CODE, mandatory=True),
    Field("additional_data", t.BINARY),
)
@attrs.frozen
class SaslOutcome(Composite):
    """Outcome of the authentication (section 5.3.3.5)."""

    code: SaslCode
    additional_data: bytes | None = attrs.field(default=None, repr=False)
