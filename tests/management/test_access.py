"""Who may ask what, and that nobody can pass for somebody else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

from router.amqp.message import AmqpValue, Message, Properties, encode_message
from router.amqp.performatives import Accepted, Disposition, Rejected
from router.amqp.revision import change_annotations, encode_entry
from router.amqp.types import Symbol
from router.client import connect
from router.config.model import Configuration, ListenerSettings
from router.config.users import hash_password
from router.core.passage import CONNECTION
from router.engine.connection import Connection
from router.engine.outbox import Turn
from router.engine.settings import ConnectionSettings
from router.management.access import (
    LARGEST_READ_BYTES,
    check,
    connection_of,
    is_reading,
    rights_of,
)
from router.management.requests import FORBIDDEN, Refused

from support.loopback import dialled, running_node
from support.management import ANSWERS, NODE, asked, request, status
from support.transcripts import Recorder


@attrs.frozen
class Held:
    """A connection as the router holds it."""

    connection: Connection
    tally: Any = None


def held(
    name: str, user: str | None, management: str, *, dialled: bool = False, role: str = "normal"
) -> Held:
    """The connection of a peer."""
    settings = ConnectionSettings("router", management=management, role=role)
    connection = Connection(settings, Recorder(), Turn(), name, dialled)
    connection.user = user
    return Held(connection)


@pytest.mark.parametrize("management", ["none", "read", "change"])
def test_what_is_said_plainly_holds_for_everybody(management: str) -> None:
    for name, user in (("127.0.0.1:5", "anonymous"), ("192.0.2.1:5", "somebody")):
        assert rights_of({7: held(name, user, management)}, 7) == management


@pytest.mark.parametrize(
    ("name", "user", "rights"),
    [
        ("127.0.0.1:50000", "anonymous", "change"),
        ("127.8.9.10:50000", None, "change"),
        ("[::1]:50000", None, "change"),
        ("192.0.2.1:50000", "anonymous", "read"),
        ("192.0.2.1:50000", None, "read"),
        ("[2001:db8::1]:50000", None, "read"),
        ("[fe80::1%eth0]:50000", None, "read"),
        ("localhost.example.com:1", None, "read"),
        ("", None, "read"),
        ("192.0.2.1:50000", "somebody", "change"),
    ],
)
def test_trust_is_for_who_is_known_and_who_is_here(
    name: str, user: str | None, rights: str
) -> None:
    assert rights_of({7: held(name, user, "trusted")}, 7) == rights


@pytest.mark.parametrize("role", ["inter-router", "edge"])
def test_what_comes_by_another_router_may_be_from_anybody(role: str) -> None:
    for name, user in (("127.0.0.1:5", "anonymous"), ("192.0.2.1:5", "somebody")):
        assert rights_of({7: held(name, user, "trusted", role=role)}, 7) == "read"
        assert rights_of({7: held(name, user, "change", role=role)}, 7) == "change"
        with pytest.raises(Refused) as refused:
            check({7: held(name, user, "trusted", role=role)}, 7, "CREATE")
        assert "may be from anybody who is connected there" in str(refused.value)


def test_whom_the_router_dials_has_proved_nothing() -> None:
    for name, user in (("127.0.0.1:5672", None), ("192.0.2.1:5672", "us")):
        assert rights_of({1: held(name, user, "trusted", dialled=True)}, 1) == "read"


def test_whoever_is_gone_may_nothing() -> None:
    pumps = {1: held("127.0.0.1:5", None, "change")}
    for number in (None, 0, 2):
        assert rights_of(pumps, number) == "none"
        with pytest.raises(Refused, match="not known any more") as refused:
            check(pumps, number, "QUERY")
        assert refused.value.status == FORBIDDEN


def test_what_is_not_known_to_read_needs_the_right_to_change() -> None:
    for reading in ("QUERY", "READ", "EXPLAIN", "GET-TYPES", "GET-LOG"):
        assert is_reading(reading)
    for changing in ("CREATE", "UPDATE", "DELETE", "APPLY", "TRACE", "NOSUCH", "READS", ""):
        assert not is_reading(changing)
    pumps = {1: held("192.0.2.1:5", None, "trusted")}
    check(pumps, 1, "QUERY")
    with pytest.raises(Refused, match='management = "trusted", and the peer neither'):
        check(pumps, 1, "CREATE")


def annotated(entries: Iterable[bytes]) -> bytes:
    """A message with these annotations."""
    return change_annotations(encode_message(Message(body=(AmqpValue(1),))), bool, list(entries))


def test_the_number_is_read_off_the_head() -> None:
    assert connection_of(annotated([encode_entry(CONNECTION, 12)])) == 12
    one, text = encode_entry(CONNECTION, 12), encode_entry(CONNECTION, "12")
    for octets in (
        annotated([]),
        annotated([one, one]),
        annotated([text]),
        annotated([encode_entry(CONNECTION, True)]),
        annotated([encode_entry(CONNECTION + "s", 12)]),
        b"",
        b"nonsense",
        annotated([one])[:9],
    ):
        assert connection_of(octets) is None


def listening(*managements: Any, **fields: Any) -> Configuration:
    """A listener for each of these values."""
    return Configuration(
        listeners=tuple(
            ListenerSettings(port=0, name=f"{each}-{number}", management=each, **fields)
            for number, each in enumerate(managements)
        )
    )


@pytest.mark.parametrize(
    ("management", "reads", "changes"),
    [("none", 403, 403), ("read", 200, 403), ("trusted", 200, 501), ("change", 200, 501)],
)
async def test_each_listener_says_what_its_peers_may(
    management: str, reads: int, changes: int
) -> None:
    async with running_node(listening(management)) as running:
        port = running.address[1]
        async with connect(f"amqp://127.0.0.1:{port}") as connection:
            sender = await connection.open_sender(NODE)
            for operation, code in (("GET-TYPES", reads), ("FROBNICATE", changes)):
                answered = await asked(connection, sender, request(operation=operation))
                assert status(answered) == code
                assert answered.application_properties is not None
                if code == FORBIDDEN:
                    told = answered.application_properties["statusDescription"]
                    assert f'{management}-0 has management = "{management}"' in told


async def test_whoever_proves_who_he_is_may_change_things(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f"ann:{hash_password('secret')}\n", encoding="utf-8")
    configuration = listening("trusted", sasl_mechanisms=("PLAIN",), users_file=users)
    async with running_node(configuration) as running:
        port = running.address[1]
        async with connect(f"amqp://ann:secret@127.0.0.1:{port}") as connection:
            (pump,) = running.pumps
            # as if from elsewhere
            pump.connection.name = "192.0.2.1:50000"
            sender = await connection.open_sender(NODE)
            assert status(await asked(connection, sender, request(operation="NOSUCH"))) == 501
            pump.connection.user = "anonymous"
            assert status(await asked(connection, sender, request(operation="NOSUCH"))) == 403


@pytest.mark.parametrize("strip", ["in", "out", "both", "no"])
async def test_nobody_can_pass_for_another_connection(strip: Any) -> None:
    configuration = listening("change", "read", strip_annotations=strip)
    async with running_node(configuration) as running:
        (_, trusted), (_, other) = running.addresses
        async with connect(f"amqp://127.0.0.1:{trusted}"):
            (pump,) = running.pumps
            number = pump.number
            async with connect(f"amqp://127.0.0.1:{other}") as connection:
                sender = await connection.open_sender(NODE)
                message = attrs.evolve(
                    request(operation="FROBNICATE"),
                    message_annotations={Symbol(CONNECTION): number, Symbol("x-opt-qd.x"): 1},
                )
                assert status(await asked(connection, sender, message)) == FORBIDDEN
                anonymous = await connection.open_sender(None)
                assert message.properties is not None
                to_node = attrs.evolve(
                    message, properties=attrs.evolve(message.properties, to=NODE)
                )
                assert status(await asked(connection, anonymous, to_node)) == FORBIDDEN


async def test_what_cannot_be_written_on_is_no_request() -> None:
    async with running_node(listening("change")) as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.attach_sender(NODE)
        payload = encode_message(
            Message(
                message_annotations={Symbol(CONNECTION): 1},
                properties=Properties(reply_to=ANSWERS),
                application_properties={"operation": "GET-TYPES"},
            )
        )
        for number, (form, outcome) in enumerate(((1, Rejected), (0, Accepted))):
            await peer.transfer(number, payload, message_format=form)
            told = await peer.hear_until(Disposition)
            assert isinstance(told.state, outcome)


async def test_long_requests_are_for_those_who_may_change_things() -> None:
    long = request({"attributeNames": ["x" * LARGEST_READ_BYTES]}, operation="QUERY")
    async with running_node(listening("change", "read")) as running:
        (_, trusted), (_, other) = running.addresses
        async with connect(f"amqp://127.0.0.1:{trusted}") as connection:
            sender = await connection.open_sender(NODE)
            assert status(await asked(connection, sender, long)) == 404
        async with connect(f"amqp://127.0.0.1:{other}") as connection:
            sender = await connection.open_sender(NODE)
            refused = await sender.send(long)
            assert isinstance(refused, Rejected)
            assert refused.error is not None
            assert refused.error.condition == "amqp:link:message-size-exceeded"
