"""Management requests are allowed or refused by user, and nobody can act as another user."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

from router.amqp.message import AmqpValue, Message, Properties, encode_message
from router.amqp.performatives import Accepted, Disposition, Open, Rejected
from router.amqp.revision import change_annotations, encode_entry
from router.amqp.types import Symbol
from router.client import RequestRefused, connect, connect_management
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.users import hash_password
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings
from router.core.deliveries.router_annotations import CONNECTION, RIGHTS
from router.engine.connection import Connection
from router.engine.outbox import Turn
from router.engine.settings import ConnectionSettings
from router.management.access import (
    MAX_READ_BYTES,
    Requester,
    check,
    is_read_only,
    requester_of,
    rights_of,
)
from router.management.ports import Security
from router.management.requests import FORBIDDEN, Refused
from router.metrics.views import EndpointView

from support.loopback import dialled, running_node
from support.management import ANSWERS, NODE, asked, request, status
from support.transcripts import Recorder


@attrs.frozen
class Held:
    """A connection as the router holds it."""

    connection: Connection
    counters: EndpointView | None = None
    number: int = 7
    security: Security | None = None


def held(
    name: str, user: str | None, management: str, *, dialled: bool = False, role: str = "normal"
) -> Held:
    """Return the connection of a peer."""
    settings = ConnectionSettings("router", management=management, role=role)
    connection = Connection(settings, Recorder(), Turn(), name, dialled)
    connection.user = user
    return Held(connection)


@pytest.mark.parametrize("management", ["none", "read", "change"])
def test_what_is_said_plainly_holds_for_everybody(management: str) -> None:
    for name, user in (("127.0.0.1:5", "anonymous"), ("192.0.2.1:5", "somebody")):
        assert rights_of({7: held(name, user, management)}, Requester(7)) == management


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
    assert rights_of({7: held(name, user, "trusted")}, Requester(7)) == rights


@pytest.mark.parametrize("role", ["inter-router", "edge"])
def test_of_clients_of_another_router_that_router_says_what_they_may(role: str) -> None:
    for name, user in (("127.0.0.1:5", "anonymous"), ("192.0.2.1:5", "somebody")):
        for management in ("trusted", "change"):
            pumps = {7: held(name, user, management, role=role)}
            pumps[7].connection.remote_open = Open("east")
            assert rights_of(pumps, Requester(7)) == "read"
            assert rights_of(pumps, Requester(7, may_change=True)) == "change"
            check(pumps, Requester(7, may_change=True), "CREATE")
            with pytest.raises(Refused, match="from the router east, which does not state"):
                check(pumps, Requester(7), "CREATE")


@pytest.mark.parametrize("role", ["inter-router", "edge"])
def test_what_another_router_says_is_bounded_by_its_endpoint(role: str) -> None:
    for management, most in (("none", "none"), ("read", "read"), ("trusted", "read")):
        pumps = {7: held("192.0.2.1:5", "anonymous", management, role=role)}
        assert rights_of(pumps, Requester(7, may_change=True)) == most
        with pytest.raises(Refused, match=f'management = "{management}"') as refused:
            check(pumps, Requester(7, may_change=True), "CREATE")
        assert "at the router router, its listener has" in str(refused.value)
        assert (
            "the peer router has not authenticated and is not on this host" in str(refused.value)
        ) is (management == "trusted")


@pytest.mark.parametrize("name", ["127.0.0.1:5672", "192.0.2.1:5672"])
def test_a_router_that_is_dialled_is_trusted_on_this_host(name: str) -> None:
    pumps = {7: held(name, None, "trusted", dialled=True, role="inter-router")}
    rights = "change" if name.startswith("127.") else "read"
    assert rights_of(pumps, Requester(7, may_change=True)) == rights


def test_what_a_client_says_of_itself_is_not_heard() -> None:
    pumps = {7: held("192.0.2.1:5", "anonymous", "trusted")}
    assert rights_of(pumps, Requester(7, may_change=True)) == "read"


def test_whom_the_router_dials_has_proved_nothing() -> None:
    for name, user in (("127.0.0.1:5672", None), ("192.0.2.1:5672", "us")):
        assert rights_of({1: held(name, user, "trusted", dialled=True)}, Requester(1)) == "read"


def test_whoever_is_gone_may_nothing() -> None:
    pumps = {1: held("127.0.0.1:5", None, "change")}
    for number in (None, 0, 2):
        assert rights_of(pumps, Requester(number)) == "none"
        with pytest.raises(Refused, match="is closed or unknown") as refused:
            check(pumps, Requester(number), "QUERY")
        assert refused.value.status == FORBIDDEN


def test_what_is_not_known_to_read_needs_the_right_to_change() -> None:
    for reading in ("QUERY", "READ", "EXPLAIN", "GET-TYPES", "GET-LOG"):
        assert is_read_only(reading)
    for changing in ("CREATE", "UPDATE", "DELETE", "APPLY", "TRACE", "NOSUCH", "READS", ""):
        assert not is_read_only(changing)
    pumps = {1: held("192.0.2.1:5", None, "trusted")}
    check(pumps, Requester(1), "QUERY")
    with pytest.raises(Refused, match='management = "trusted", and the peer has not authenticated'):
        check(pumps, Requester(1), "CREATE")


def annotated(entries: Iterable[bytes]) -> bytes:
    """Return a message with these annotations."""
    return change_annotations(encode_message(Message(body=(AmqpValue(1),))), bool, list(entries))


def test_the_number_is_read_off_the_head() -> None:
    assert requester_of(annotated([encode_entry(CONNECTION, 12)])) == Requester(12)
    may = encode_entry(RIGHTS, "change")
    assert requester_of(annotated([encode_entry(CONNECTION, 12), may])) == Requester(
        12, may_change=True
    )
    for entries in ([may, may], [encode_entry(RIGHTS, "read")], [encode_entry(RIGHTS, 1)]):
        assert requester_of(annotated([encode_entry(CONNECTION, 12), *entries])) == Requester(12)
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
        annotated([may]),
    ):
        assert requester_of(octets) == Requester()


def listening(*managements: Any, **fields: Any) -> Configuration:
    """Return a configuration with a listener for each of these `management` values."""
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
    long = request({"attributeNames": ["x" * MAX_READ_BYTES]}, operation="QUERY")
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


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "refused"])
async def test_a_policy_says_who_may_close_connections(allowed: bool) -> None:
    group = VhostGroupSettings(
        remote_hosts=("*",),
        targets=(NODE,),
        allow_dynamic_source=True,
        allow_admin_status_update=allowed,
    )
    vhost = VhostSettings(hostname="$default", allow_unknown_user=True, groups={"$default": group})
    configuration = Configuration(
        listeners=(ListenerSettings(port=0, management="change"),),
        policy=PolicySettings(enable_vhost_policy=True),
        vhosts=(vhost,),
    )
    async with running_node(configuration) as running:
        where = f"127.0.0.1:{running.address[1]}"
        async with connect(f"amqp://{where}"), connect_management(where) as management:
            number = str(running.pumps[0].number)

            async def close(status: str) -> object:
                which = {"type": "connection", "identity": number}
                return await management.request("UPDATE", which, {"adminStatus": status})

            if allowed:
                await close("deleted")
                await running.until(lambda: len(running.pumps) == 1)
            else:
                with pytest.raises(RequestRefused, match="allowAdminStatusUpdate is false") as told:
                    await close("deleted")
                assert told.value.status == FORBIDDEN
                assert len(running.pumps) == 2
