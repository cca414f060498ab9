"""Logins: which user a peer is by ANONYMOUS and PLAIN, and which logins fail."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs
from trio.testing import MockClock

from router.amqp.constants import Condition, SaslCode
from router.amqp.framing import SASL_HEADER
from router.amqp.performatives import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from router.amqp.types import Symbol
from router.config.users import Users, credentials_of, hash_password, load_users
from router.net import authentication
from router.net.authentication import (
    LONGEST_WAIT_S,
    MOST_WAITING,
    RESTS,
    Authenticator,
    Step,
    hashes_at_once,
)
from router.net.fair_limiter import FairLimiter
from router.net.scram import ScramClientLogin
from router.net.threads import NICENESS

from support.loopback import dialled, listening, running_node
from support.transcripts import On

SASL = 1
HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash two passwords at once, as with four processors."""
    monkeypatch.setattr(authentication, "_HASHING", FairLimiter(2))


@pytest.mark.parametrize(("count", "most"), [(1, 1), (2, 1), (3, 1), (4, 2), (64, 2)])
def test_hashes_leave_processors_to_the_loop(count: int, most: int) -> None:
    assert hashes_at_once(count) == most


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Users:
    """Ada, and her password."""
    path = tmp_path_factory.mktemp("users") / "users"
    path.write_text(f"ada:{hash_password('s3crét')}\n", encoding="utf-8")
    return load_users(path)


async def logged_in(users: Users | None, mechanism: str, response: bytes, host: str) -> str | None:
    """Return the user that logs in by one message, or None for nobody."""
    step = await Authenticator(users).begin(mechanism, host).step(response)
    assert step.challenge is None
    return step.user


async def test_anonymous_is_whoever_gives_no_name(users: Users) -> None:
    for known in (users, None):
        for trace in (b"", b"someone@example.com", b"\xff"):
            assert await logged_in(known, "ANONYMOUS", trace, HOST) == "anonymous"


@pytest.mark.parametrize("identity", ["", "ada"])
async def test_plain_takes_the_right_password(users: Users, identity: str) -> None:
    response = f"{identity}\0ada\0s3crét".encode()
    assert await logged_in(users, "PLAIN", response, HOST) == "ada"


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
    assert await logged_in(users, "PLAIN", response, HOST) is None


@pytest.mark.parametrize("mechanism", ["PLAIN", "EXTERNAL", ""])
async def test_without_users_nobody_is_anybody(mechanism: str) -> None:
    assert await logged_in(None, mechanism, b"\0ada\0s3cret", HOST) is None


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
            nursery.start_soon(logged_in, users, "PLAIN", b"\0ada\0x", HOST)
    assert most == 2


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Have every password be the right one, once this is set."""
    go_on = threading.Event()
    monkeypatch.setattr(authentication, "verify", lambda *_: go_on.wait(10))
    yield go_on
    go_on.set()


async def test_hosts_take_turns(
    users: Users, held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    # no thread gets ahead of the one beside it, however the system schedules them
    pair = threading.Barrier(2)

    def beside_another(*_: object) -> bool:
        held.wait(10)
        pair.wait(10)
        return True

    monkeypatch.setattr(authentication, "verify", beside_another)

    async def log_in(host: str) -> None:
        assert await logged_in(users, "PLAIN", b"\0ada\0x", host) == "ada"
        done.append(host)

    async with trio.open_nursery() as nursery:
        for _ in range(101):
            nursery.start_soon(log_in, "10.0.0.1")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(log_in, "10.0.0.2")
        await trio.testing.wait_all_tasks_blocked()
        held.set()
    # two were being hashed, and of the next two it is one
    assert done.index("10.0.0.2") in (2, 3)


async def test_who_waits_too_long_is_told_so(
    users: Users, held: threading.Event, autojump_clock: MockClock
) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(logged_in, users, "PLAIN", b"\0ada\0x", HOST)
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError):
            await logged_in(users, "PLAIN", b"\0ada\0x", HOST)
        assert trio.current_time() - began == pytest.approx(LONGEST_WAIT_S)
        # to be hashed may take longer
        held.set()
    assert await logged_in(users, "PLAIN", b"\0ada\0x", HOST) == "ada"


async def test_so_many_logins_of_a_host_wait_and_no_more(
    users: Users, held: threading.Event
) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(2 + MOST_WAITING):
            nursery.start_soon(logged_in, users, "PLAIN", b"\0ada\0x", HOST)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.TooSlowError):
            await logged_in(users, "PLAIN", b"\0ada\0x", HOST)
        nursery.start_soon(logged_in, users, "PLAIN", b"\0ada\0x", "10.0.0.2")
        await trio.testing.wait_all_tasks_blocked()
        held.set()


@pytest.mark.parametrize(("is_right", "rests"), [(False, RESTS), (True, 0)])
async def test_slowed_hosts_rest_after_each_wrong_password(
    users: Users,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
    is_right: bool,
    rests: int,
) -> None:
    begun: list[float] = []

    async def hash_for_a_second(*_: object) -> bool:
        begun.append(trio.current_time())
        # a second of the mock clock, which jumps
        await trio.sleep(1)
        return is_right

    # the clock would not stand still while threads run
    monkeypatch.setattr(trio.to_thread, "run_sync", hash_for_a_second)
    monkeypatch.setattr(authentication, "_SLOW_HASHING", FairLimiter(1))
    slowly = Authenticator(users, is_slowed=lambda host: host == HOST)

    async def log_in(host: str) -> None:
        await slowly.begin("PLAIN", host).step(b"\0ada\0x")

    for host, later in ((HOST, 1 + rests), ("10.0.0.2", 0)):
        begun.clear()
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(log_in, host)
        assert begun[1] - begun[0] == later


async def test_threads_that_hash_stand_back(users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def asked(*_: object) -> bool:
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return True

    monkeypatch.setattr(authentication, "verify", asked)
    own = os.getpriority(os.PRIO_PROCESS, os.getpid())
    for _ in range(3):
        await logged_in(users, "PLAIN", b"\0ada\0x", HOST)
    assert found == [min(own + NICENESS, 19)] * 3
    assert os.getpriority(os.PRIO_PROCESS, os.getpid()) == own


async def test_a_peer_that_waits_too_long_may_try_again(
    tmp_path: Path, held: threading.Event, autojump_clock: MockClock
) -> None:
    path = tmp_path / "users"
    path.write_text(f"ada:{hash_password('x')}\n", encoding="utf-8")
    configuration = listening(users_file=path, sasl_mechanisms=("PLAIN",), authenticate_peer=True)
    with capture_logs() as logs:
        async with running_node(configuration) as running, AsyncExitStack() as stack:
            peers = [await stack.enter_async_context(dialled(running.address)) for _ in range(3)]
            for peer in peers:
                await peer.say(SASL_HEADER, _init(b"\0ada\0x"))
                assert await peer.octets(8) == SASL_HEADER
                await peer.hear(SaslMechanisms)
            # no outcome, which clients would take for a wrong password
            assert await peers[2].rest() == b""
            # what threads do takes real time, in which the clock must not jump to the test's end
            autojump_clock.autojump_threshold = math.inf
            held.set()
            for peer in peers[:2]:
                assert (await peer.hear(SaslOutcome)).code is SaslCode.OK
            autojump_clock.autojump_threshold = 0
    closed = [line for line in logs if line["event"] == "connection closed"]
    (line,) = (line for line in closed if line.get("by_peer") is False)
    assert line["condition"] == Condition.RESOURCE_LIMIT_EXCEEDED
    assert line["description"] == "too many clients are logging in"


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


@pytest.mark.spec("0.2-10", "0.2-11", "5.1-1")
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
                    # what still comes is read to its end
                    await peer.say(bytes(500_000))
                    await peer.stream.aclose()
        await running.until_empty()


def _init(response: bytes, mechanism: str = "PLAIN", hostname: str | None = None) -> On:
    init = SaslInit(Symbol(mechanism), initial_response=response, hostname=hostname)
    return On(0, init, frame_type=SASL)


@pytest.mark.spec("5.3.3.2-3")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_the_host_name_of_the_init_chooses_among_users(
    tmp_path: Path, mechanism: str
) -> None:
    path = tmp_path / "users"
    passwords = {"ada": "one", "ada@a.example": "two", "bob@b.example": "three"}
    lines = [f"{name}:{credentials_of(each, [mechanism])}\n" for name, each in passwords.items()]
    path.write_text("".join(lines), encoding="utf-8")
    configuration = listening(users_file=path, sasl_mechanisms=(mechanism,), authenticate_peer=True)
    logins = [
        ("ada", "one", None, "ada"),
        ("ada", "one", "b.example", "ada"),
        ("ada", "two", "a.example", "ada@a.example"),
        ("ada", "one", "a.example", None),
        ("bob", "three", "b.example", "bob@b.example"),
        ("bob", "three", "a.example", None),
        ("bob", "three", None, None),
        ("bob@b.example", "three", None, "bob@b.example"),
    ]
    async with running_node(configuration) as running:
        for name, password, hostname, user in logins:
            async with dialled(running.address) as peer:
                client = None
                response = f"\0{name}\0{password}".encode()
                if mechanism != "PLAIN":
                    client = ScramClientLogin(mechanism, name, password)
                    response = client.first()
                await peer.say(SASL_HEADER, _init(response, mechanism, hostname))
                assert await peer.octets(8) == SASL_HEADER
                await peer.hear(SaslMechanisms)
                if client is not None:
                    answer = client.answer(bytes((await peer.hear(SaslChallenge)).challenge))
                    await peer.say(On(0, SaslResponse(answer), frame_type=SASL))
                code = (await peer.hear(SaslOutcome)).code
                assert code is (SaslCode.AUTH if user is None else SaslCode.OK), (name, hostname)
                if user is not None:
                    await peer.begin()
                    assert (await running.pump_of(peer)).connection.user == user


@pytest.mark.parametrize(
    ("user", "response", "logged"),
    [("ada", b"", "ada"), ("ada", b"ada", "ada"), ("ada", b"bob", None), (None, b"", None)],
)
async def test_external_is_whom_the_certificate_stands_for(
    user: str | None, response: bytes, logged: str | None
) -> None:
    step = await Authenticator(None).begin("EXTERNAL", HOST, user).step(response)
    assert step.user == logged


async def test_scram_takes_two_messages(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"ada:{credentials_of('s3cret', ['SCRAM-SHA-256'])}\n", encoding="utf-8")
    client = ScramClientLogin("SCRAM-SHA-256", "ada", "s3cret")
    login = Authenticator(load_users(path)).begin("SCRAM-SHA-256", HOST)
    # a client that waits to be asked
    assert (await login.step(b"")).challenge == b""
    challenge = (await login.step(client.first())).challenge
    assert challenge is not None
    last = await login.step(client.answer(challenge))
    assert last.user == "ada"
    assert last.proof is not None
    client.check(last.proof)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "OTHER"])
async def test_what_is_no_login_is_refused(users: Users, mechanism: str) -> None:
    assert await Authenticator(users).begin(mechanism, HOST).step(b"x") == Step()
