"""Who a peer is: what ANONYMOUS and PLAIN take, and what they do not."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import trio

from router.amqp.constants import SaslCode
from router.amqp.framing import SASL_HEADER
from router.amqp.performatives import SaslInit, SaslMechanisms, SaslOutcome
from router.amqp.types import Symbol
from router.config.users import Users, hash_password, load_users
from router.net import authentication
from router.net.authentication import Authenticator

from support.loopback import dialled, listening, running_node
from support.transcripts import On

SASL = 1


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Users:
    """Ada, and her password."""
    path = tmp_path_factory.mktemp("users") / "users"
    path.write_text(f"ada:{hash_password('s3crét')}\n", encoding="utf-8")
    return load_users(path)


async def test_anonymous_is_whoever_gives_no_name(users: Users) -> None:
    for known in (users, None):
        for trace in (b"", b"someone@example.com", b"\xff"):
            assert await Authenticator(known).authenticate("ANONYMOUS", trace) == "anonymous"


@pytest.mark.parametrize("identity", ["", "ada"])
async def test_plain_takes_the_right_password(users: Users, identity: str) -> None:
    response = f"{identity}\0ada\0s3crét".encode()
    assert await Authenticator(users).authenticate("PLAIN", response) == "ada"


@pytest.mark.parametrize(
    "response",
    [
        b"\0ada\0wrong",
        b"\0ada\0",
        b"\0bob\0s3cr\xc3\xa9t",
        b"\0\0",
        b"\0Ada\0s3cr\xc3\xa9t",
        b"bob\0ada\0s3cr\xc3\xa9t",
        b"\0ada\0s3cr\xe9t",
        b"\0\xff\0s3cr\xc3\xa9t",
        b"",
        b"ada",
        b"ada\0s3cr\xc3\xa9t",
        b"\0ada\0s3cr\xc3\xa9t\0",
        b"\0ada\0" + b"x" * 4000,
    ],
)
async def test_plain_takes_nothing_else(users: Users, response: bytes) -> None:
    assert await Authenticator(users).authenticate("PLAIN", response) is None


@pytest.mark.parametrize("mechanism", ["PLAIN", "EXTERNAL", ""])
async def test_without_users_nobody_is_anybody(mechanism: str) -> None:
    assert await Authenticator(None).authenticate(mechanism, b"\0ada\0s3cret") is None


def test_users_are_not_shown(users: Users) -> None:
    assert "ada" not in repr(Authenticator(users))


async def test_only_a_few_passwords_are_hashed_at_once(
    users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = threading.Lock()
    now = most = 0
    together = threading.Barrier(2)

    def counted(*_: object) -> bool:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(10)
        with lock:
            now -= 1
        return True

    monkeypatch.setattr(authentication, "verify", counted)
    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(Authenticator(users).authenticate, "PLAIN", b"\0ada\0x")
    assert most == 2


async def test_a_peer_that_goes_while_its_password_is_hashed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "users"
    path.write_text(f"ada:{hash_password('x')}\n", encoding="utf-8")
    begun, go_on = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def slow(*_: object) -> bool:
        token.run_sync_soon(begun.set)
        return go_on.wait(10)

    monkeypatch.setattr(authentication, "verify", slow)
    configuration = listening(users_file=path, sasl_mechanisms=("PLAIN",), authenticate_peer=True)
    async with running_node(configuration) as running:
        async with dialled(running.address) as peer:
            await peer.say(SASL_HEADER, _init(b"\0ada\0x"))
            await begun.wait()
        go_on.set()
        await running.until_empty()


async def test_over_the_wire(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"ada:{hash_password('x')}\n", encoding="utf-8")
    configuration = listening(users_file=path, sasl_mechanisms=("PLAIN",), authenticate_peer=True)
    async with running_node(configuration) as running:
        for response, code in ((b"\0ada\0x", SaslCode.OK), (b"\0ada\0y", SaslCode.AUTH)):
            async with dialled(running.address) as peer:
                await peer.say(SASL_HEADER, _init(response))
                assert await peer.octets(8) == SASL_HEADER
                await peer.hear(SaslMechanisms)
                assert (await peer.hear(SaslOutcome)).code is code
                if code is SaslCode.OK:
                    await peer.begin()
                    assert (await running.pump_of(peer)).connection.user == "ada"
                else:
                    assert await peer.rest() == b""


def _init(response: bytes) -> On:
    return On(0, SaslInit(Symbol("PLAIN"), initial_response=response), frame_type=SASL)
