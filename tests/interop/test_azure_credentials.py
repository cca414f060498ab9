"""Azure's clients with a TokenCredential that returns JWTs: their rights, renewal and expiry."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest
from azure.core.credentials import AccessToken
from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType
from azure.servicebus.exceptions import ServiceBusConnectionError, ServiceBusError
from proton import Message

from support.azure_peers import PATIENCE_S, said_by_node
from support.certificates import Authority
from support.configuring import entity
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener, profile
from support.tokens import hs256

SECRET = "h" * 32
CLAIMS = entity(
    "claims",
    name="tokens",
    hmacKey=SECRET,
    algorithms=["HS256"],
    audiences=["https://servicebus.azure.net/"],
    leewaySeconds=0,
)
LINK = "link attached"


def jwt(*rights: str, until: float) -> str:
    """Return a JWT."""
    claims = {"exp": int(until), "aud": "https://servicebus.azure.net/", "rights": list(rights)}
    return hs256(SECRET.encode(), claims)


@attrs.define
class Credential:
    """TokenCredential whose tokens live for some seconds; it may state another expiry.

    It counts how often it is asked.
    """

    rights: tuple[str, ...]
    lifetime_s: float = 3600.0
    stated_s: float | None = None
    asked: int = 0

    def get_token(self, *scopes: str, **more: Any) -> AccessToken:
        """Return a new token."""
        del scopes, more
        self.asked += 1
        now = time.time()
        stated_s = self.lifetime_s if self.stated_s is None else self.stated_s
        return AccessToken(jwt(*self.rights, until=now + self.lifetime_s), int(now + stated_s))


@pytest.fixture
def claimed(routers: StartRouter, authority: Authority) -> RouterProcess:
    """Start a router with claims, TLS, and a listener without either."""
    own = profile("own", authority.issue("localhost", "127.0.0.1"))
    secured = listener("secured", claims="tokens", sslProfile="own")
    return routers(CLAIMS + own + secured + listener("open"))


@pytest.fixture
def connect(
    claimed: RouterProcess, authority: Authority
) -> Callable[[Credential], ServiceBusClient]:
    """Make clients, which trust only this authority."""

    def made(credential: Credential) -> ServiceBusClient:
        return ServiceBusClient(
            "localhost",
            credential,
            custom_endpoint_address=f"sb://localhost:{claimed.port}",
            connection_verify=str(authority.ca_file),
            transport_type=TransportType.Amqp,
            retry_total=0,
        )

    return made


Connect = Callable[[Credential], ServiceBusClient]


@pytest.mark.spec("G3.2-6")
def test_a_jwt_opens_what_it_names(claimed: RouterProcess, connect: Connect, address: str) -> None:
    both = Credential((f"send:{address}", f"listen:{address}"))
    with (
        connect(both) as client,
        client.get_queue_receiver(address) as receiver,
        client.get_queue_sender(address) as sender,
        ThreadPoolExecutor() as pool,
    ):
        sent = pool.submit(sender.send_messages, ServiceBusMessage("hello"))
        [message] = receiver.receive_messages(max_message_count=1, max_wait_time=PATIENCE_S)
        assert str(message) == "hello"
        receiver.complete_message(message)
        sent.result(PATIENCE_S)
    with connect(Credential((f"listen:{address}",))) as client:
        client.get_queue_receiver(address).__enter__()
        with pytest.raises(ServiceBusError, match="right Send"):
            client.get_queue_sender(address).__enter__()
    # which does not cover the audience
    with (
        connect(Credential(("listen:other",))) as client,
        # as the client sees it with a custom endpoint
        pytest.raises(ServiceBusConnectionError),
    ):
        client.get_queue_receiver(address).__enter__()
    assert "does not cover the audience" in claimed.log_text()


def test_the_client_renews_and_its_link_stays(
    claimed: RouterProcess, connect: Connect, proton: ProtonPeers, address: str
) -> None:
    # the client renews a token when a tenth of its lifetime is left, in whole seconds
    credential = Credential((f"listen:{address}",), lifetime_s=10.0)
    with (
        connect(credential) as client,
        client.get_queue_receiver(address) as receiver,
        ThreadPoolExecutor() as pool,
    ):
        begun = time.monotonic()
        coming = pool.submit(
            receiver.receive_messages, max_message_count=1, max_wait_time=PATIENCE_S
        )
        proton.until(
            lambda: (
                time.monotonic() > begun + 11 and claimed.log_text().count("token accepted") >= 2
            ),
            "the client has renewed its token, and the first one has expired",
            PATIENCE_S,
        )
        sender = proton.connect(claimed.url(listener=1)).sender(address)
        sender.send(Message("hello"))
        proton.until(coming.done, "the message is received", PATIENCE_S)
        assert len(coming.result()) == 1
    assert credential.asked >= 2
    log = claimed.log_text()
    assert "unauthorized-access" not in log
    attached = [line for line in log.splitlines() if LINK in line and f"/{address} " in line]
    assert len(attached) == 1


def test_without_renewal_the_link_is_detached(
    claimed: RouterProcess, connect: Connect, proton: ProtonPeers, address: str
) -> None:
    # the client relies on what the credential states
    credential = Credential((f"listen:{address}",), lifetime_s=3.0, stated_s=3600.0)
    with (
        connect(credential) as client,
        client.get_queue_receiver(address) as receiver,
        ThreadPoolExecutor() as pool,
    ):
        coming = pool.submit(
            receiver.receive_messages, max_message_count=1, max_wait_time=PATIENCE_S
        )
        proton.until(coming.done, "the client is told", PATIENCE_S)
        assert isinstance(coming.exception(), ServiceBusError)
        assert "no valid token" in str(coming.exception())
    assert credential.asked == 1


def test_a_jwt_in_javascript(claimed: RouterProcess, authority: Authority, address: str) -> None:
    token = jwt(f"send:{address}", f"listen:{address}", until=4_000_000_000)
    said = said_by_node(
        "exchange",
        f"localhost:{claimed.port}",
        address,
        authority=authority,
        TOKEN=token,
    )
    assert said.get("received") == "hello", said
    assert said["sent"] is True


@pytest.mark.spec("C4-1")
def test_no_token_is_taken_without_tls_where_it_is_required(
    claimed: RouterProcess, proton: ProtonPeers
) -> None:
    connection = proton.begin_connect(claimed.url(), reconnect=False)
    proton.until(lambda: connection.is_lost, "the connection is lost")
    assert not connection.opened
    assert "$cbs" not in claimed.log_text()
