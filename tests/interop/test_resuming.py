"""Clients that want their links to outlive a detach or a lost connection, and come back to them.

Proton has no unsettled maps, so it can reattach and recover; rhea can be made to send one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Described, Link, Message, Terminus, symbol
from proton.reactor import LinkOption

from router.config.users import hash_password

from support.proton_peers import ProtonConnection, ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter

pytestmark = pytest.mark.both_builds

WITH_LINK = Terminus.EXPIRE_WITH_LINK
WITH_SESSION = Terminus.EXPIRE_WITH_SESSION
WITH_CONNECTION = Terminus.EXPIRE_WITH_CONNECTION
NEVER = Terminus.EXPIRE_NEVER
# the longest that a plain router grants
LONGEST = 60


class Lasting(LinkOption):
    """A link's source, as a receiver, or target, as a sender, that is to outlive the link."""

    def __init__(self, timeout_s: int = 30, policy: int = WITH_LINK) -> None:
        self.timeout_s = timeout_s
        self.policy = policy

    def apply(self, link: Link) -> None:
        """Ask for it."""
        terminus = link.target if link.is_sender else link.source
        terminus.timeout = self.timeout_s
        terminus.expiry_policy = self.policy


class NoTerminus(LinkOption):
    """A link without a source, as a receiver, or target, as a sender."""

    def apply(self, link: Link) -> None:
        """Take it out of the attach."""
        (link.target if link.is_sender else link.source).type = Terminus.UNSPECIFIED


def connect(proton: ProtonPeers, router: RouterProcess, container: str) -> ProtonConnection:
    return proton.connect(router.url(), container_id=container)


def lines(router: RouterProcess, *words: str) -> list[str]:
    """Return the lines of the log that contain all of these words."""
    return [line for line in router.log_text().splitlines() if all(word in line for word in words)]


def drop(
    rhea: RheaPeer, proton: ProtonPeers, router: RouterProcess, address: str, count: int
) -> None:
    """Lose rhea's connection, and wait until the router has suspended its link to `address`."""
    rhea.tell("drop", connection="connection")
    proton.until(
        lambda: lines(router, "link suspended", f"address={address} ", f"unsettled={count}"),
        "the router has seen that the connection is lost",
    )


@pytest.mark.parametrize(
    ("policy", "timeout_s", "granted"),
    [
        (WITH_SESSION, 0, (WITH_LINK, 0)),
        (WITH_LINK, 0, (WITH_LINK, 0)),
        (WITH_LINK, 10, (WITH_LINK, 10)),
        (WITH_SESSION, 10, (WITH_SESSION, 10)),
        (WITH_SESSION, LONGEST + 1, (WITH_SESSION, LONGEST)),
        (WITH_CONNECTION, 0, (WITH_CONNECTION, 0)),
        (NEVER, 0, (WITH_LINK, LONGEST)),
        (NEVER, 10, (WITH_LINK, LONGEST)),
    ],
)
def test_proton_is_told_how_long_its_termini_last(
    router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    policy: int,
    timeout_s: int,
    granted: tuple[int, int],
) -> None:
    connection = proton.connect(router.url())
    options = [Lasting(timeout_s, policy)]
    source = connection.receiver(address, options=options).link.remote_source
    target = connection.sender(address, options=options).link.remote_target
    for terminus in (source, target):
        assert (terminus.expiry_policy, terminus.timeout) == granted
        assert terminus.durability == Terminus.NONDURABLE


def test_rhea_is_told_how_long_its_termini_last(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address, "plain")
    rhea.receiver({"address": address, "expiry_policy": "never"}, "for-ever")
    rhea.sender({"address": address, "timeout": 7}, "seven")
    told = [
        rhea.wait(event, link=link)[0]
        for event, link in [
            ("receiver_open", "plain"),
            ("receiver_open", "for-ever"),
            ("sender_open", "seven"),
        ]
    ]
    assert [(each["expiry_policy"], each["timeout"]) for each in told] == [
        ("link-detach", 0),
        ("link-detach", LONGEST),
        ("session-end", 7),
    ]


def test_the_configuration_has_the_last_word(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    router = routers("""
        [router]
        terminusTimeoutLimitSeconds = 0
        [[listener]]
        port = 0
        """)
    connection = connect(proton, router, "c")
    receiver = connection.receiver(address, 1, name="l", accept=False, options=[Lasting(30, NEVER)])
    source = receiver.link.remote_source
    assert (source.expiry_policy, source.timeout) == (WITH_LINK, 0)
    sender = proton.connect(router.url()).sender(address)
    sent = sender.send(Message("x"))
    receiver.get(1)
    receiver.detach(closed=False)
    assert sender.settled(sent).outcome == "modified"


def test_a_proton_receiver_settles_after_it_has_detached(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    connection = connect(proton, router, address)
    old = connection.receiver(address, 5, name="l", accept=False, options=[Lasting()])
    sender = proton.connect(router.url()).sender(address)
    sent = [sender.send(Message(n)) for n in range(3)]
    old.get(3)
    old.detach(closed=False)
    assert old.condition is None
    old.received[0].accept()
    assert sender.settled(sent[0]).outcome == "accepted"
    # the others are as they were when the link is attached again, and so are their ids
    new = connection.receiver(address, 5, name="l", accept=False, options=[Lasting()])
    assert new.is_attached
    old.received[2].accept()
    assert sender.settled(sent[2]).outcome == "accepted"
    assert not sent[1].is_settled
    next_one = sender.send(Message("next"))
    new.get(1)[0].accept()
    assert sender.settled(next_one).outcome == "accepted"
    assert new.bodies() == ["next"]
    new.detach()
    assert sender.settled(sent[1]).outcome == "modified"


def test_a_proton_receiver_that_comes_back_without_a_map_has_forgotten_all(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    connection = connect(proton, router, address)
    old = connection.receiver(address, 5, name="l", accept=False, options=[Lasting()])
    sender = proton.connect(router.url()).sender(address)
    sent = [sender.send(Message(n)) for n in range(2)]
    old.get(2)
    connection.close()
    again = connect(proton, router, address)
    new = again.receiver(address, 5, name="l", options=[Lasting()])
    # what was small enough to be kept comes a second time
    assert [each.body for each in new.get(2)] == [0, 1]
    for each in sent:
        assert sender.settled(each).outcome == "accepted"


def test_a_lasting_receiver_that_stays_away_is_given_up(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    router = routers("""
        [router]
        terminusTimeoutLimitSeconds = 1
        [[listener]]
        port = 0
        """)
    rhea.connect(router.port, username="anonymous", container_id="away")
    source = {"address": address, "expiry_policy": "never"}
    rhea.receiver(source, "lasting", autoaccept=False)
    assert rhea.find("receiver_open")[0]["timeout"] == 1
    sender = proton.connect(router.url()).sender(address)
    sent = [sender.send(Message(n)) for n in range(2)]
    rhea.messages(2, link="lasting")
    drop(rhea, proton, router, address, 2)
    # it is said in doubt, for as long as somebody may come
    assert not any(each.outcome for each in sent)
    for each in sent:
        assert sender.settled(each).outcome == "modified"
        assert each.failed


def test_a_rhea_receiver_resumes_what_it_had(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    rhea.connect(router.port, username="anonymous", container_id=address)
    source = {"address": address, "timeout": 30}
    rhea.receiver(source, "l", autoaccept=False)
    sender = proton.connect(router.url()).sender(address)
    sent = [sender.send(Message(f"n{n}")) for n in range(4)]
    before = rhea.wait("message", 4, link="l")
    rhea.tell("settle", link="l", number=0, outcome="accepted")
    sender.settled(sent[0])
    drop(rhea, proton, router, address, 3)
    rhea.connect(router.port, "next", username="anonymous", container_id=address)
    # one it had accepted, one it has in hand, and one it knows nothing of
    answer = rhea.resume(
        "receiver",
        address,
        "l",
        {1: "accepted", 2: None},
        connection="next",
        source={"timeout": 30},
        autoaccept=False,
    )
    assert answer["unsettled"] == 3
    after = rhea.wait("message", 3, link="resumed")
    assert sender.settled(sent[1]).outcome == "accepted"
    assert [each["body"] for each in after[1:]] == ["n2", "n3"]
    assert [each["tag"] for each in after[:2]] == [each["tag"] for each in before[1:3]]
    assert after[0]["settled"]
    for number in (1, 2):
        assert not sent[number + 1].is_settled
        rhea.tell("settle", link="resumed", number=number, outcome="accepted")
        assert sender.settled(sent[number + 1]).outcome == "accepted"
    assert sender.send(Message("new")) is sender.sent[4]
    assert rhea.wait("message", 4, link="resumed")[3]["body"] == "new"
    rhea.tell("settle", link="resumed", number=3, outcome="accepted")
    assert sender.settled(sender.sent[4]).outcome == "accepted"


@pytest.mark.parametrize("options", [[NoTerminus()], []], ids=["no source", "an empty one"])
@pytest.mark.parametrize("ends", [True, False])
def test_a_proton_receiver_recovers_its_link_without_saying_what_it_was(
    router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    ends: bool,
    options: list[LinkOption],
) -> None:
    """As clients do that end a durable subscription, of which they may know no more than a name."""
    connection = connect(proton, router, address)
    old = connection.receiver(address, 5, name="l", accept=False, options=[Lasting(20)])
    sender = proton.connect(router.url()).sender(address)
    sent = sender.send(Message("x"))
    old.get(1)
    connection.close()
    assert not sent.outcome
    again = connect(proton, router, address)
    new = again.receiver(None, 5, name="l", accept=False, options=options)
    source = new.link.remote_source
    assert (source.address, source.expiry_policy, source.timeout) == (address, WITH_LINK, 20)
    (line,) = lines(router, "link resumed", f"address={address} ")
    assert "unsettled=1" in line
    if ends:
        new.detach()
        assert sender.settled(sent).outcome == "modified"
    else:
        new.get(1)[0].accept()
        assert sender.settled(sent).outcome == "accepted"
    unknown = again.receiver(None, name="unknown", options=options)
    unknown.until_over()
    assert unknown.condition is not None
    assert unknown.condition.name == "amqp:invalid-field"


def test_a_lasting_proton_sender_goes_and_comes_back(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 5, accept=False)
    connection = connect(proton, router, address)
    old = connection.sender(address, name="l", options=[Lasting()])
    sent = [old.send(Message(n)) for n in range(2)]
    receiver.get(2)
    old.detach(closed=False)
    # what it has sent is not over, and it is told of it on a link that it does not have
    receiver.received[0].accept()
    assert old.settled(sent[0]).outcome == "accepted"
    new = connection.sender(address, name="l", options=[Lasting()])
    assert new.is_attached
    receiver.received[1].accept()
    assert old.settled(sent[1]).outcome == "accepted"
    sending = new.send(Message("next"))
    receiver.get(3)[2].accept()
    assert new.settled(sending).outcome == "accepted"


def test_a_rhea_sender_hears_when_it_comes_back_what_is_remembered(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    connection = proton.connect(router.url())
    receiver = connection.receiver(address, 5, accept=False)
    rhea.connect(router.port, username="anonymous", container_id=address)
    rhea.sender({"address": address, "timeout": 30}, "l")
    rhea.wait("sendable", link="l")
    for n in range(3):
        rhea.tell("send", link="l", fields={"body": n})
    receiver.get(3)[0].accept()
    rhea.wait("accepted", link="l", number=0)
    drop(rhea, proton, router, address, 2)
    receiver.received[1].accept()
    # what follows on that connection comes after
    assert connection.sender(address).send(Message("x")).state is None
    receiver.get(4)
    rhea.connect(router.port, "next", username="anonymous", container_id=address)
    answer = rhea.resume("sender", address, "l", {1: None}, connection="next")
    assert answer["unsettled"] == 1
    # of the third it says nothing: it has settled it, and its receiver learns of that
    third = receiver.received[2].delivery
    proton.until(lambda: third.settled, "the receiver is told that its sender has settled")
    rhea.tell("close_link", link="resumed")
    rhea.wait("sender_close", link="resumed")


def test_another_user_resumes_nothing(
    routers: StartRouter, proton: ProtonPeers, address: str, tmp_path: Path
) -> None:
    users = tmp_path / "users"
    passwords = [f"{name}:{hash_password('s3cret')}\n" for name in ("ada", "bob")]
    users.write_text("".join(passwords), encoding="utf-8")
    router = routers(f"""
        [[listener]]
        port = 0
        saslMechanisms = ["PLAIN"]
        usersFile = "{users}"
        """)

    def as_user(user: str) -> ProtonConnection:
        plain: dict[str, Any] = {"user": user, "password": "s3cret", "allowed_mechs": "PLAIN"}
        return proton.connect(router.url(), container_id="c", **plain)

    connection = as_user("ada")
    old = connection.receiver(address, 1, name="l", accept=False, options=[Lasting()])
    sender = as_user("bob").sender(address)
    sent = sender.send(Message("ada's"))
    old.get(1)
    connection.close()
    bob = as_user("bob")
    for refused in (
        bob.receiver(address, 1, name="l", options=[Lasting()]),
        bob.receiver(None, 1, name="l", options=[NoTerminus()]),
    ):
        refused.until_over()
        assert refused.condition is not None
        assert refused.condition.name == "amqp:resource-locked"
        assert not refused.received
    assert not sent.outcome
    new = as_user("ada").receiver(address, 1, name="l", options=[Lasting()])
    assert new.get(1)[0].body == "ada's"
    assert sender.settled(sent).outcome == "accepted"


# Nodes made for one link.


class Until(LinkOption):
    """A dynamic node's lifetime-policy, by its name in the specification."""

    def __init__(self, policy: str) -> None:
        self.policy = policy

    def apply(self, link: Link) -> None:
        """Ask for it, in the node's properties."""
        policy = Described(symbol(f"amqp:{self.policy}:list"), [])
        properties = {symbol("lifetime-policy"): policy}
        terminus = link.target if link.is_sender else link.source
        terminus.dynamic = True
        terminus.properties.put_dict(properties)


def granted_policy(terminus: Any) -> int:
    """Return the code of the lifetime-policy in the peer's answer."""
    terminus.properties.rewind()
    terminus.properties.next()
    return int(terminus.properties.get_dict()[symbol("lifetime-policy")].descriptor)


POLICIES = {
    "delete-on-close": 0x2B,
    "delete-on-no-links": 0x2C,
    "delete-on-no-messages": 0x2D,
    "delete-on-no-links-or-messages": 0x2E,
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["receiver", "sender"])
def test_a_dynamic_node_is_called_after_its_link_and_lasts_as_was_asked(
    router: RouterProcess, proton: ProtonPeers, policy: str, kind: str
) -> None:
    connection = connect(proton, router, "who-asked")
    creator = getattr(connection, kind)(None, name="my-link", options=[Until(policy)])
    is_receiver = kind == "receiver"
    node = creator.link.remote_source if is_receiver else creator.link.remote_target
    assert node.address.endswith(".who-asked.my-link")
    assert granted_policy(node) == POLICIES[policy]
    # from a receiver's node nobody else receives
    other = connect(proton, router, "who-asked") if is_receiver else proton.connect(router.url())
    receiver = other.receiver(node.address, 1, accept=False)
    sender = other.sender(node.address)
    # a message keeps a node that lasts until it has none, and a link one that lasts until then
    sending = sender.send(Message("x"))
    receiver.get(1)
    creator.detach()
    if policy == "delete-on-close":
        assert sender.settled(sending).outcome == "modified"
    else:
        receiver.received[0].accept()
        assert sender.settled(sending).outcome == "accepted"
    if "no-links" in policy:
        receiver.link.flow(1)
        again = sender.send(Message("again"))
        receiver.get(2)[1].accept()
        assert sender.settled(again).outcome == "accepted"
        return
    for link in (receiver, sender):
        link.until_over()
        assert link.condition is not None
        assert link.condition.name == "amqp:resource-deleted"


def test_a_dynamic_node_waits_for_a_receiver_that_lasts(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    """It is not over while its link may come back, which names the node that it had."""
    connection = connect(proton, router, address)
    options = [Until("delete-on-close"), Lasting()]
    old = connection.receiver(None, 5, name="l", options=options)
    node = old.link.remote_source.address
    service = proton.connect(router.url()).sender(node)
    assert service.outcome(Message("one")).outcome == "accepted"
    connection.close()
    assert lines(router, "link suspended", f"address={node} ")
    again = connect(proton, router, address)
    new = again.receiver(node, 5, name="l", options=[Lasting()])
    assert service.outcome(Message("two")).outcome == "accepted"
    assert new.bodies() == ["two"]
    new.detach()
    service.until_over()
    assert service.condition is not None
    assert service.condition.name == "amqp:resource-deleted"
