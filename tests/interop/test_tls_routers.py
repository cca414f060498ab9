"""Routers that connect to each other with TLS, and those that do not trust each other."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from support.certificates import Authority
from support.configuring import PATIENT, entity
from support.management_tool import Tool
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener, profile

CLIENTS = entity("listener", name="clients", port=0, **PATIENT)
LOGIN: dict[str, Any] = {"saslMechanisms": "EXTERNAL", "authenticatePeer": True}


def of(authority: Authority) -> dict[str, str]:
    """Return the attributes of a profile that trusts an authority."""
    return {"caCertFile": str(authority.ca_file), "uidFormat": "n"}


def listening(authority: Authority, role: str, own: Path, **more: Any) -> str:
    """Return the configuration of an interior router that other routers connect to."""
    return (
        '[router]\nid = "near"\nmode = "interior"\n\n'
        + CLIENTS
        + profile("own", own, **of(authority))
        + listener("routers", role=role, sslProfile="own", **(LOGIN | more))
    )


def connecting(to: RouterProcess, role: str, rules: str, **more: Any) -> str:
    """Return the configuration of a router with a profile, and a connector to another router."""
    mode = "edge" if role == "edge" else "interior"
    attributes: dict[str, Any] = {
        "name": "there",
        "host": "localhost",
        "port": to.addresses[1][1],
        "role": role,
        "sslProfile": "own",
    }
    connector = entity("connector", **(attributes | more))
    return f'[router]\nid = "far"\nmode = "{mode}"\n\n' + CLIENTS + rules + connector


def status_of(router: RouterProcess) -> dict[str, Any]:
    """Return what management says of a router's connector."""
    tool = Tool(router)
    (found,) = tool.query("connector")
    tool.close()
    return found


@pytest.mark.parametrize("upgrade", [False, True], ids=["at once", "upgrade"])
@pytest.mark.parametrize("role", ["inter-router", "edge"])
def test_routers_know_each_other_by_their_certificates(
    routers: StartRouter,
    authority: Authority,
    proton: ProtonPeers,
    address: str,
    role: str,
    upgrade: bool,
) -> None:
    near = routers(listening(authority, role, authority.issue("localhost")))
    own = profile("own", authority.issue("far.example", common_name="far"), **of(authority))
    far = routers(connecting(near, role, own, saslMechanisms="EXTERNAL", sslUpgrade=upgrade))
    for number, (to, source) in enumerate(((near, far), (far, near))):
        receiver = proton.connect(to.url()).receiver(f"{address}/{number}", 200)
        sender = proton.connect(source.url()).sender(f"{address}/{number}")
        bodies: list[Any] = [*range(100), "x" * 1_000_000]
        for body in bodies:
            sender.send(Message(body))
        proton.until(sender.all_settled, "all is settled")
        assert set(sender.outcomes) == {"accepted"}
        assert receiver.bodies() == bodies
    tool = Tool(near)
    (entity_of,) = (each for each in tool.query("connection") if each["container"] == "far")
    tool.close()
    assert (entity_of["isEncrypted"], entity_of["sslProto"]) == (True, "TLSv1.3")
    assert (entity_of["role"], entity_of["sasl"], entity_of["user"]) == (role, "EXTERNAL", "far")
    status = status_of(far)
    assert (status["connectionStatus"], status["lastError"]) == ("SUCCESS", None)


@pytest.mark.parametrize("role", ["inter-router", "edge"])
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("unknown authority", "the peer's certificate is refused: self-signed certificate"),
        ("other name", "the peer's certificate is refused: Hostname mismatch"),
        ("no certificate", "the peer requires a certificate"),
        ("no TLS", "the peer does not speak TLS"),
    ],
)
def test_a_connector_says_why_it_stays_disconnected(
    routers: StartRouter,
    authority: Authority,
    proton: ProtonPeers,
    stranger: Authority,
    role: str,
    case: str,
    reason: str,
) -> None:
    name = "elsewhere.example" if case == "other name" else "localhost"
    near = routers(listening(authority, role, authority.issue(name)))
    trusted = stranger if case == "unknown authority" else authority
    own = profile("own", authority.issue("far.example", common_name="far"), **of(trusted))
    more: dict[str, Any] = {}
    if case == "no certificate":
        own = entity("sslProfile", name="own", caCertFile=str(authority.ca_file))
    elif case == "no TLS":
        # the listener for clients has none
        more = {"port": near.port}
    far = routers(connecting(near, role, own, **more))
    proton.until(lambda: len(far.warnings(reason)) > 1, "it has tried more than once")
    status = status_of(far)
    assert status["connectionStatus"] != "SUCCESS"
    assert reason in status["lastError"]
    assert status["connectionMsg"].endswith(f"failed: {status['lastError']}")
    tool = Tool(near)
    assert "far" not in {each["container"] for each in tool.query("connection")}
    tool.close()


def test_a_connector_need_not_care_for_the_name(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    near = routers(listening(authority, "inter-router", authority.issue("elsewhere.example")))
    own = profile("own", authority.issue("far.example", common_name="far"), **of(authority))
    far = routers(connecting(near, "inter-router", own, verifyHostname=False))
    proton.until(lambda: status_of(far)["connectionStatus"] == "SUCCESS", "it is connected")


def test_a_revoked_router_is_let_go_where_it_connects_anew(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    file = authority.issue("far.example", common_name="far")
    revoked = authority.revoke(file)
    near = routers(
        listening(authority, "inter-router", authority.issue("localhost")).replace(
            "uidFormat", f'crlFile = "{revoked}"\nuidFormat'
        )
    )
    far = routers(connecting(near, "inter-router", profile("own", file, **of(authority))))
    proton.until(lambda: status_of(far)["lastError"], "it is refused")
    proton.until(lambda: near.warnings("certificate revoked"), "the log says why")
    # until there is another one
    file.write_bytes(authority.issue("far.example", common_name="far").read_bytes())
    proton.until(lambda: status_of(far)["connectionStatus"] == "SUCCESS", "it is connected")


def test_a_key_may_have_a_password(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, tmp_path: Path
) -> None:
    plain, encrypted = authority.issue("localhost"), tmp_path / "encrypted.key"
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n", encoding="utf-8")
    command = ["openssl", "ec", "-in", str(plain), "-out", str(encrypted), "-aes256"]
    command += ["-passout", "pass:s3cret"]
    subprocess.run(command, check=True, capture_output=True)
    near = routers(
        listening(authority, "inter-router", plain).replace(
            "uidFormat",
            f'privateKeyFile = "{encrypted}"\npassword = "file:{secret}"\nuidFormat',
        )
    )
    own = profile("own", authority.issue("far.example", common_name="far"), **of(authority))
    far = routers(connecting(near, "inter-router", own))
    proton.until(lambda: status_of(far)["connectionStatus"] == "SUCCESS", "it is connected")


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("revoked", "the peer's certificate is refused: certificate revoked"),
        ("expired", "crlFile has expired, so nobody with such a certificate is let in"),
    ],
)
@pytest.mark.parametrize("upgrade", [False, True], ids=["at once", "upgrade"])
def test_a_connector_refuses_a_router_by_its_revocation_list(
    routers: StartRouter,
    authority: Authority,
    proton: ProtonPeers,
    case: str,
    reason: str,
    upgrade: bool,
) -> None:
    file = authority.issue("localhost")
    near = routers(listening(authority, "inter-router", file))
    if case == "revoked":
        revoked = authority.revoke(file)
    else:
        revoked = authority.revoke(next_update=timedelta(hours=-1))
    own = profile(
        "own",
        authority.issue("far.example", common_name="far"),
        crlFile=str(revoked),
        **of(authority),
    )
    far = routers(connecting(near, "inter-router", own, sslUpgrade=upgrade))
    proton.until(lambda: far.warnings(reason), "the log says why")
    status = status_of(far)
    assert status["connectionStatus"] != "SUCCESS"
    assert reason in status["lastError"]
    tool = Tool(near)
    assert "far" not in {each["container"] for each in tool.query("connection")}
    tool.close()
    # until there is another list
    authority.revoke()
    proton.until(lambda: status_of(far)["connectionStatus"] == "SUCCESS", "it is connected")


def test_who_connects_is_told_of_an_expired_list(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    expired = authority.revoke(next_update=timedelta(hours=-1))
    near = routers(
        listening(authority, "inter-router", authority.issue("localhost")).replace(
            "uidFormat", f'crlFile = "{expired}"\nuidFormat'
        )
    )
    own = profile("own", authority.issue("far.example", common_name="far"), **of(authority))
    far = routers(connecting(near, "inter-router", own))
    proton.until(lambda: status_of(far)["lastError"], "it is refused")
    proton.until(
        lambda: near.warnings("the revocation list of its authority in crlFile has expired"),
        "the log says why",
    )
    authority.revoke()
    proton.until(lambda: status_of(far)["connectionStatus"] == "SUCCESS", "it is connected")


def test_certificates_of_both_routers_are_replaced_under_traffic(
    routers: StartRouter,
    authority: Authority,
    stranger: Authority,
    proton: ProtonPeers,
    address: str,
    tmp_path: Path,
) -> None:
    """The connection stays, and the next one uses the new files of both sides."""
    ours, theirs, trusted = (tmp_path / name for name in ("near.pem", "far.pem", "ca.pem"))
    files = {
        ours: authority.issue("localhost"),
        theirs: authority.issue("far.example", common_name="far"),
        trusted: authority.ca_file,
    }
    for file, content in files.items():
        file.write_bytes(content.read_bytes())
    rules = {"caCertFile": str(trusted), "uidFormat": "n"}
    near = routers(
        listening(authority, "inter-router", ours).replace(str(authority.ca_file), str(trusted))
    )
    far = routers(connecting(near, "inter-router", profile("own", theirs, **rules)))
    receiver = proton.connect(near.url()).receiver(address, 100)
    receiver.renews = True
    sender = proton.connect(far.url()).sender(address)

    def between() -> list[dict[str, Any]]:
        tool = Tool(near)
        found = [each for each in tool.query("connection") if each["container"] == "far"]
        tool.close()
        return found

    def settled(count: int) -> bool:
        """Return whether so many messages have been sent and are settled."""
        return len(sender.sent) >= count and all(each.is_settled for each in sender.sent[:count])

    def reloaded(count: int) -> bool:
        logs = [each.log_text() for each in (near, far)]
        return all(each.count("configuration reloaded") == count for each in logs)

    def unsettled() -> int:
        return sum(not each.is_settled for each in sender.sent[-50:])

    def goes_on(holds: Callable[[], object]) -> None:
        """Send until something is so."""

        def is_so() -> bool:
            while sender.link.credit > 0 and unsettled() < 50:
                sender.send(Message(len(sender.sent)))
            return bool(holds())

        proton.until(is_so, "it is so")

    goes_on(lambda: settled(200))
    (before,) = between()
    assert before["user"] == "far"
    # first all authorities are trusted, then the certificates are those of another one
    for count, replaced in enumerate(
        (
            {trusted: authority.ca_file.read_bytes() + stranger.ca_file.read_bytes()},
            {
                ours: stranger.issue("localhost").read_bytes(),
                theirs: stranger.issue("far.example", common_name="new far").read_bytes(),
            },
            {trusted: stranger.ca_file.read_bytes()},
        ),
        1,
    ):
        for file, octets in replaced.items():
            file.write_bytes(octets)
        for router in (near, far):
            router.process.send_signal(signal.SIGHUP)
        goes_on(partial(reloaded, count))
        goes_on(partial(settled, len(sender.sent) + 100))
    proton.until(sender.all_settled, "all is settled")
    assert set(sender.outcomes) == {"accepted"}
    assert receiver.bodies() == list(range(len(sender.sent)))
    assert [each["identity"] for each in between()] == [before["identity"]]
    tool = Tool(near)
    tool.ask({"adminStatus": "deleted"}, operation="UPDATE", identity=before["identity"])
    tool.close()
    proton.until(
        lambda: before["identity"] not in [each["identity"] for each in between() or [before]],
        "it is connected anew",
    )
    (after,) = between()
    assert (after["user"], after["sslProto"]) == ("new far", "TLSv1.3")
    assert sender.outcome(Message("last")).outcome == "accepted"
