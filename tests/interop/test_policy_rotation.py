"""A policy changes again and again while clients of a vhost send and receive: nothing is lost.

Only a right that is gone ends a link or a connection, and with the right error.
"""

from __future__ import annotations

import signal
from functools import partial
from typing import Any

import pytest
from proton import Message

from support.management_tool import Tool
from support.proton_peers import ProtonConnection, ProtonPeers
from support.routers import RouterProcess, StartRouter
from support.traffic import Traffic

TIMES = 20
# at these steps the addresses old/* and the vhost b.com go
WITHOUT_OLD, WITHOUT_B = 10, 14
UNAUTHORIZED = "amqp:unauthorized-access"
LIMITED = "amqp:resource-limit-exceeded"


def configuration(step: int) -> str:
    """Return a configuration that differs from that of every other step in all of its policy."""
    names = "q/*" + (", old/*" if step < WITHOUT_OLD else "")
    if step % 3 == 0:
        rights = f'targets = "{names}"\nsources = "{names}"\n'
    elif step % 3 == 1:
        patterns = names.replace("/*", "/#")
        rights = f'targetPattern = "{patterns}"\nsourcePattern = "{patterns}"\n'
    else:
        # the same rights, by other entries
        rights = f'targets = "q/1, q/2, {names}"\nsourcePattern = "*/#, x/{step}"\n'
        if step >= WITHOUT_OLD:
            rights = f'targets = "q/1, q/2, {names}"\nsourcePattern = "q/#, x/{step}"\n'
    text = f"""
[[listener]]
name = "clients"
host = "127.0.0.1"
port = 0

[policy]
enableVhostPolicy = true
maxConnections = {1000 + step}
enableVhostNamePatterns = {"true" if step % 2 else "false"}

[[vhost]]
hostname = "a.com"
aliases = ["alias-{step}.com"]
allowUnknownUser = true
maxConnections = {100 + step}
maxConnectionsPerUser = {50 + step}
maxSessionsPerHost = {500 + step}
maxLinksPerUser = {300 + step}
maxStateBytes = {10_000_000 + step}

[vhost.groups.staff-{step}]
users = "ada, user-{step}"
remoteHosts = "10.0.0.{step}"
targets = "secret"

[vhost.groups."$default"]
remoteHosts = "{("localhost", "127.0.0.0/8", "*")[step % 3]}, 10.1.0.{step}"
maxSenders = {20 + step}
maxFrameSize = {65_536 + step}
connectionBufferBytes = {1_000_000 + step}
allowAnonymousSender = true
allowUserIdProxy = {"true" if step % 2 else "false"}
{rights}
[[vhost]]
hostname = "127.0.0.1"
allowUnknownUser = true

[vhost.groups."$default"]
remoteHosts = "*"
targets = "$management"
allowDynamicSource = true
"""
    if step < WITHOUT_B:
        text += f"""
[[vhost]]
hostname = "b.com"
allowUnknownUser = true

[vhost.groups."$default"]
remoteHosts = "*"
sources = "q/*, {step}"
"""
    return text


class Changes:
    """Changes of a router's policy: by its file and SIGHUP, and by management, in turns."""

    def __init__(self, router: RouterProcess, proton: ProtonPeers, how: str) -> None:
        self._router = router
        self._proton = proton
        self._how = how
        self._reloads = 0

    def make(self, step: int, traffic: Traffic) -> None:
        """Change to the configuration of a step, and wait until it is in force."""
        text = configuration(step)
        if self._how == "APPLY":
            tool = Tool(self._router)
            try:
                answer = tool.ask(text, operation="APPLY")
            finally:
                tool.close()
            assert answer.properties["statusCode"] == 200, answer.properties
            return
        self._reloads += 1
        file = self._router.log.parent / "trioute.toml"
        file.write_text(text, encoding="utf-8")
        self._router.process.send_signal(signal.SIGHUP)

        def is_reloaded() -> bool:
            traffic.go_on()
            log = self._router.log_text()
            assert "configuration refused" not in log
            return log.count("configuration reloaded") == self._reloads

        self._proton.until(is_reloaded, "the file is read again")


def connect(proton: ProtonPeers, router: RouterProcess, name: str) -> ProtonConnection:
    """Connect to a vhost."""
    return proton.connect(router.url(), virtual_host=name)


def condition(ended: Any) -> str:
    """Return the condition with which a link or connection was ended."""
    assert ended.condition is not None
    return str(ended.condition.name)


@pytest.mark.parametrize("how", ["SIGHUP", "APPLY"])
def test_no_message_is_lost_while_the_policy_changes(
    routers: StartRouter, proton: ProtonPeers, how: str
) -> None:
    router = routers(configuration(0))
    traffic = Traffic()
    for address in ("q/1", "q/2"):
        receiver = connect(proton, router, "a.com").receiver(address, 50)
        receiver.renews = True
        traffic.receivers.append(receiver)
        traffic.senders.append(connect(proton, router, "a.com").sender(address))
    mixed = connect(proton, router, "a.com")
    relay = mixed.sender(None)
    losing = [mixed.sender("old/x"), mixed.receiver("old/x", 5)]
    other = connect(proton, router, "b.com")
    theirs = other.receiver("q/3")
    changes = Changes(router, proton, how)
    relayed = 0
    for step in range(1, TIMES + 1):
        changes.make(step, traffic)
        proton.until(traffic.another_of_each(), "another message of each sender has arrived")
        sent = relay.send(Message("relayed", address="q/1"))
        proton.until(lambda: traffic.goes_on() and sent.is_settled, "it is settled")  # noqa: B023
        assert sent.outcome == "accepted"
        relayed += 1
        if step < WITHOUT_OLD:
            assert not any(each.is_over for each in losing)
        if step == WITHOUT_OLD:
            proton.until(lambda: all(each.is_over for each in losing), "the rights are gone")
            assert [condition(each) for each in losing] == [UNAUTHORIZED, UNAUTHORIZED]
        if step < WITHOUT_B:
            assert not theirs.is_over
            assert not other.is_lost
        if step == WITHOUT_B:
            proton.until(partial(getattr, other, "is_lost"), "the vhost is gone")
            assert condition(other) == LIMITED
            assert other.condition is not None
            assert other.condition.description == "connection disallowed by local policy"
    proton.until(traffic.all_settled, "all is settled")
    sent_ = sum(len(each.sent) for each in traffic.senders)
    assert traffic.outcomes() == {"accepted": sent_}
    assert sum(len(each.received) for each in traffic.receivers) == sent_ + relayed
    assert not any(each.is_over for each in (*traffic.senders, *traffic.receivers, relay))
    assert not mixed.is_lost
    assert router.warnings("refused by policy")
