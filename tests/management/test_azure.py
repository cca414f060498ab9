"""Requests of Azure's clients to `$management`, with claims and without."""

from __future__ import annotations

import pytest

from router.amqp.message import AmqpValue, Message, Properties, decode_message, encode_message
from router.amqp.performatives import Attach, Detach, Source, Target
from router.core.addresses.tenant_claims import TenantClaims
from router.core.links.cbs import MAX_TOKEN_CHARS
from router.management import azure
from router.management.requests import Refused, Request

from support.in_memory import Router
from support.loopback import Peer, dialled, listening, running_node
from support.tokens import Claimant, Verifier


def asked(operation: object, **properties: object) -> Request:
    """Return a request."""
    return Request({"operation": operation, **properties}, None)


def bringing(token: object, name: str = "hub") -> Request:
    """Return a request for the properties of a hub that brings a token."""
    return asked("READ", type=azure.HUB, name=name, security_token=token)


@pytest.mark.parametrize(
    ("token", "request_", "is_allowed"),
    [
        ("send:hub", asked("READ", type=azure.HUB, name="hub"), True),
        ("send:hub", asked("READ", type=azure.HUB, name="secret"), False),
        ("send:hub", asked("READ", type=azure.HUB), False),
        ("send:hub", asked("QUERY"), False),
        ("send:hub", asked("READ", type="router", name="hub"), False),
        ("send:hub", asked("UPDATE", type=azure.HUB, name="hub"), False),
        ("manage:hub", asked("QUERY"), False),
        ("send:other", bringing("send:hub"), True),
        ("send:other", bringing("send:secret", name="other"), True),
        ("send:other", bringing("?"), False),
        ("send:other", bringing(b"send:hub"), False),
        pytest.param("send:other", bringing("send:hub" + MAX_TOKEN_CHARS * "x"), False, id="long"),
        ("send:other", asked("QUERY", security_token="manage:"), False),
        ("manage:", asked("QUERY"), True),
        ("manage:$management", asked("UPDATE"), True),
    ],
    ids=str,
)
def test_what_tokens_allow(token: str, request_: Request, is_allowed: bool) -> None:
    claimant = Claimant(Router(), Verifier())
    sender, _ = claimant.attach()
    claimant.put(sender, token)
    if is_allowed:
        azure.check_claims(claimant.node.claims, request_)
        return
    with pytest.raises(Refused) as caught:
        azure.check_claims(claimant.node.claims, request_)
    assert caught.value.status == 403


def test_a_request_s_token_must_be_for_the_tenant() -> None:
    claims = Claimant(Router(), Verifier()).node.claims
    azure.check_claims(claims, bringing("send:hub"))
    claims.tenant = TenantClaims("b.com", "b.com".__eq__)
    # it names no host, and its key is bound to no vhost
    with pytest.raises(Refused):
        azure.check_claims(claims, bringing("send:hub"))


async def answer(peer: Peer, number: int, **given: object) -> Message:
    """Send a request to the management node, and return the answer."""
    message = Message(
        properties=Properties(message_id=f"id-{number}", reply_to="my$id"),
        application_properties=given,
        body=(AmqpValue(None),),
    )
    await peer.transfer(number, encode_message(message))
    _, payload = await peer.message()
    found = decode_message(payload)
    assert found.properties is not None
    assert found.properties.correlation_id == f"id-{number}"
    return found


def status(message: Message) -> tuple[object, str]:
    """Return the status of an answer, and its description."""
    given = message.application_properties or {}
    assert given["status-code"] == given["statusCode"]
    return given["statusCode"], given["status-description"]


@pytest.mark.spec("G3.1-1")
async def test_a_hub_has_one_empty_partition_and_the_rest_needs_a_broker() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.say(
            Attach("answers", 1, True, source=Source(address="$management"),
                   target=Target(address="my$id"))
        )  # fmt: skip
        await peer.hear_until(Attach)
        await peer.grant(10, handle=1)
        await peer.attach_sender("$management", handle=0)
        hub = await answer(peer, 0, operation=b"READ", type=b"com.microsoft:eventhub", name=b"h")
        [body] = hub.body
        assert isinstance(body, AmqpValue)
        assert status(hub)[0] == 200
        assert (body.value["name"], body.value["partition_count"]) == ("h", 1)
        assert list(body.value["partition_ids"].items) == ["0"]
        given = {"operation": "READ", "type": azure.PARTITION, "name": "h"}
        partition = await answer(peer, 1, partition="0", **given)
        assert isinstance(partition.body[0], AmqpValue)
        assert partition.body[0].value["is_partition_empty"] is True
        assert status(await answer(peer, 2, partition="1", **given))[0] == 404
        assert status(await answer(peer, 3, operation="READ", type=azure.HUB))[0] == 400
        peek = await answer(peer, 4, operation="com.microsoft:peek-message", type="entity-mgmt")
        assert status(peek)[0] == 501
        assert status(peek)[1].startswith("com.microsoft:peek-message is not implemented")
        # what is not Azure's is answered as before
        names = await answer(peer, 5, operation="GET-MGMT-NODES")
        assert status(names)[0] == 200


async def test_a_listener_without_management_answers_nothing() -> None:
    configuration = listening(management="none")
    async with running_node(configuration) as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.say(
            Attach("answers", 1, True, source=Source(address="$management"), target=Target())
        )
        detach = await peer.hear_until(Detach)
        assert detach.error is not None
        assert detach.error.condition == "amqp:not-allowed"
