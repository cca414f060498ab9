"""Links that are suspended: what stays when they go, how long, and for whom."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import TerminusExpiryPolicy as Policy
from router.amqp.encoded import decoded
from router.amqp.performatives import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Error,
    Modified,
    Rejected,
    Released,
    Source,
    Target,
)
from router.amqp.types import Symbol
from router.core.links import suspended
from router.engine.deferred import ITEMS_AT_ONCE

from support.in_memory import Client, ReceivingLink, Router, SendingLink
from support.schedules import to_section
from support.transcripts import OPAQUE

FAILED = Modified(delivery_failed=True)
LASTS: dict[str, Any] = {"expiry_policy": Policy.LINK_DETACH, "timeout": 30}


def lasting_receiver(client: Client, address: str = "q", credit: int = 5, **fields: Any) -> Any:
    """Attach a receiver, named "r", that asks to be kept for half a minute."""
    source = Source(address=address, **{**LASTS, **fields.pop("source", {})})
    return client.receiver(address, credit, name="r", source=source, **fields)


def lasting_sender(client: Client, address: str | None = "q", **fields: Any) -> SendingLink:
    """Attach a sender, named "s", that asks to be kept for half a minute."""
    target = Target(address=address, **{**LASTS, **fields.pop("target", {})})
    return client.sender(address, name="s", target=target, **fields)


def again(router: Router, client: Client, **settings: Any) -> Client:
    """Another connection of the same container."""
    return router.client(container=client.container, **settings)


def lose(link: SendingLink | ReceivingLink, how: str) -> None:
    """Have a link go otherwise than by a close."""
    client = link.client
    {
        "detach": lambda: link.detach(closed=False),
        "end": client.end,
        "close": client.close,
        "lose": client.lose,
    }[how]()


ways = pytest.mark.parametrize("how", ["detach", "end", "close", "lose"])


# What is granted.


@pytest.mark.parametrize(
    ("policy", "timeout", "granted"),
    [
        (Policy.SESSION_END, 0, (Policy.LINK_DETACH, 0)),
        (Policy.LINK_DETACH, 0, (Policy.LINK_DETACH, 0)),
        (Policy.LINK_DETACH, 20, (Policy.LINK_DETACH, 20)),
        (Policy.SESSION_END, 20, (Policy.SESSION_END, 20)),
        (Policy.CONNECTION_CLOSE, 0, (Policy.CONNECTION_CLOSE, 0)),
        (Policy.CONNECTION_CLOSE, 1000, (Policy.CONNECTION_CLOSE, 60)),
        (Policy.NEVER, 0, (Policy.LINK_DETACH, 60)),
        (Policy.NEVER, 5, (Policy.LINK_DETACH, 60)),
    ],
)
@pytest.mark.spec("2.6.3-5", "3.5.6-1")
def test_what_is_granted_is_said(policy: Policy, timeout: int, granted: tuple[Policy, int]) -> None:
    client = Router().client()
    asked = {"expiry_policy": policy, "timeout": timeout}
    receiver = lasting_receiver(client, source=asked)
    sender = lasting_sender(client, target=asked)
    assert receiver.attach.source is not None
    assert (receiver.attach.source.expiry_policy, receiver.attach.source.timeout) == granted
    assert sender.attach is not None
    assert isinstance(sender.attach.target, Target)
    assert (sender.attach.target.expiry_policy, sender.attach.target.timeout) == granted


@pytest.mark.parametrize("settings", [{"terminus_limit_s": 0}, {"stealing": "off"}])
def test_nothing_outlives_its_link_where_that_is_not_wanted(settings: dict[str, Any]) -> None:
    router = Router(**settings)
    receiver = lasting_receiver(router.client())
    sending = router.client().sender("q").send(b"x")
    assert receiver.attach.source.timeout == 0
    receiver.client.lose()
    assert sending.outcome == FAILED


def test_nothing_outlives_a_link_of_a_container_without_a_name() -> None:
    router = Router()
    receiver = lasting_receiver(router.client(container=""))
    assert receiver.attach.source.timeout == 0


# How long it lasts.


@ways
@pytest.mark.spec("3.5.6-1")
def test_what_a_receiver_leaves_is_kept_until_its_terminus_expires(how: str) -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sending = router.client().sender("q").send(b"x")
    lose(receiver, how)
    assert not sending.states
    assert len(router.forwarder.suspended) == 1
    router.wait(29)
    assert not sending.states
    router.wait(1)
    assert sending.outcome == FAILED
    assert len(router.forwarder.suspended) == 0
    assert router.forwarder.suspended.next_expiry == 0


@ways
def test_what_a_sender_leaves_travels_on(how: str) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = lasting_sender(router.client())
    sender.send(b"x")
    lose(sender, how)
    assert receiver.take() == b"x"
    receiver.settle(Accepted())
    router.wait(31)
    assert len(router.forwarder.suspended) == 0
    assert router.table.total().accepted == 1


def test_a_receiver_that_waits_for_its_sender_to_settle_waits_no_longer_than_that() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = lasting_sender(router.client())
    sender.send(b"x")
    sender.client.lose()
    receiver.settle(Accepted(), settled=False)
    router.wait(31)
    assert not receiver.unsettled


def test_a_link_that_is_closed_leaves_nothing() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sender = lasting_sender(router.client())
    sending = sender.send(b"x")
    receiver.detach()
    assert sending.outcome == FAILED
    sender.detach()
    assert len(router.forwarder.suspended) == 0


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        (Policy.LINK_DETACH, "detach"),
        (Policy.SESSION_END, "end"),
        (Policy.CONNECTION_CLOSE, "lose"),
    ],
)
@pytest.mark.spec("3.5.6-1")
def test_the_time_counts_from_what_the_policy_says(policy: Policy, starts: str) -> None:
    router = Router()
    receiver = lasting_receiver(router.client(), source={"expiry_policy": policy})
    client = receiver.client
    sending = router.client().sender("q").send(b"x")
    for how in ("detach", "end", "lose"):
        lose(receiver, how)
        if how == starts:
            break
        router.wait(100)
        assert not sending.states
    router.wait(29)
    assert not sending.states
    router.wait(1)
    assert sending.outcome == FAILED
    client.over = True


@pytest.mark.spec("3.5.6-2")
def test_the_time_begins_again_when_a_link_that_came_back_goes_once_more() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sending = router.client().sender("q").send(b"x")
    receiver.client.lose()
    router.wait(20)
    back = lasting_receiver(
        again(router, receiver.client), unsettled={receiver.received[0].tag: None}
    )
    router.wait(100)
    assert not sending.states
    back.client.lose()
    router.wait(29)
    assert not sending.states
    router.wait(1)
    assert sending.outcome == FAILED


@pytest.mark.parametrize(("policy", "how"), [(Policy.CONNECTION_CLOSE, "close")])
def test_a_terminus_without_a_timeout_goes_with_what_its_policy_says(
    policy: Policy, how: str
) -> None:
    router = Router()
    asked = {"expiry_policy": policy, "timeout": 0}
    receiver = lasting_receiver(router.client(), source=asked)
    sending = router.client().sender("q").send(b"x")
    receiver.detach(closed=False)
    router.wait(1000)
    assert not sending.states
    lose(receiver, how)
    assert sending.outcome == FAILED


def test_no_more_are_kept_than_a_router_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspended, "MAX_SUSPENDED", 3)
    router = Router()
    sender = router.client().sender("q")
    sendings = []
    for _ in range(5):
        receiver = lasting_receiver(router.client(), credit=1)
        sendings.append(sender.send(b"x"))
        receiver.client.lose()
    assert [each.outcome for each in sendings] == [FAILED, FAILED, None, None, None]
    assert len(router.forwarder.suspended) == 3


def test_who_leaves_too_much_takes_no_room_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspended, "MAX_SUSPENDED", 3)
    router = Router()
    sender = router.client().sender("q")
    sendings = []
    for user in ("alice", "mallory", "mallory", "mallory", "mallory"):
        receiver = lasting_receiver(router.client(user=user), credit=1)
        sendings.append(sender.send(b"x"))
        receiver.client.lose()
    assert [each.outcome for each in sendings] == [None, FAILED, FAILED, None, None]


# What is half way.


def test_what_is_half_way_is_not_kept() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sender = router.client().sender("q")
    sending = sender.send(b"half", more=True)
    receiver.detach(closed=False)
    assert sending.outcome == FAILED
    sender.go_on(b"rest")
    other = router.client().receiver("q", 5)
    sender.send(b"next")
    assert other.take() == b"next"


def test_what_a_sender_has_half_sent_is_aborted() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = lasting_sender(router.client())
    sender.send(b"half", more=True)
    sender.detach(closed=False)
    assert receiver.received[0].aborted
    assert not receiver.unsettled
    new = lasting_sender(again(router, sender.client), unsettled={b"0": None})
    assert new.attach is not None
    assert new.attach.unsettled == {}


@pytest.mark.parametrize("is_sender", [True, False])
def test_others_have_their_turn_between_attaches_that_resume_much(is_sender: bool) -> None:
    router = Router()
    receiver = lasting_receiver(router.client(), credit=400)
    sender = lasting_sender(router.client())
    for n in range(400):
        sender.send(b"x", tag=b"%d" % n)
    lost = sender if is_sender else receiver
    lost.client.lose()
    client = again(router, lost.client)
    attach = Attach(
        lost.name, 0, not is_sender, initial_delivery_count=0, source=Source(address="q", **LASTS),
        target=Target(address="q", **LASTS), unsettled={}, incomplete_unsettled=True,
    )  # fmt: skip
    client.reads = False
    client.give(*[attach, Detach(0)] * 20)
    assert client.connection.is_behind


# A link that is merely detached.


@pytest.mark.spec("2.7.6-2")
def test_what_a_detached_receiver_says_counts_as_long_as_its_session_lasts() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sender = router.client().sender("q")
    sendings = [sender.send(b"%d" % n) for n in range(3)]
    receiver.detach(closed=False)
    receiver.client.dispose([0], Rejected())
    receiver.client.dispose([1], Accepted())
    assert [each.outcome for each in sendings] == [Rejected(), Accepted(), None]
    receiver.client.end()
    router.wait(30)
    assert sendings[2].outcome == FAILED


@pytest.mark.spec("2.7.6-2")
def test_a_detached_sender_hears_outcomes_as_long_as_its_session_lasts() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = lasting_sender(router.client())
    first, second = sender.send(b"1"), sender.send(b"2")
    sender.detach(closed=False)
    receiver.client.dispose([0], Rejected())
    assert first.outcome == Rejected()
    sender.client.say(Disposition(False, second.number, settled=True))
    assert receiver.received[1].sender_settled is not None


@pytest.mark.spec("2.7.3-9")
def test_a_link_is_reattached_with_its_deliveries() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sender = lasting_sender(router.client())
    sending = sender.send(b"x")
    receiver.detach(closed=False)
    sender.detach(closed=False)
    new_receiver = lasting_receiver(receiver.client)
    new_sender = lasting_sender(sender.client)
    assert new_receiver.attach.unsettled is None
    assert new_sender.attach is not None
    assert new_sender.attach.unsettled is None
    links = [
        link
        for client in (receiver.client, sender.client)
        for link in client.connection.local_sessions[0].local_links.values()
    ]
    assert [link.unsettled for link in links] == [1, 1]
    receiver.client.dispose([0], Released())
    assert sending.outcome == Released()
    assert [link.unsettled for link in links] == [0, 0]
    new_sender.send(b"y")
    assert new_receiver.take() == b"y"
    assert router.forwarder.suspended.resumed == 2


def test_what_a_reattached_link_has_is_found_among_very_many_deliveries() -> None:
    """Whose deliveries these are was noted when another link of the session went."""
    router = Router()
    count = ITEMS_AT_ONCE + 500
    receiver, sent = lasting_with(router, count)
    client = receiver.client
    other = client.receiver("other", 1)
    router.client().sender("other").send(b"x")
    other.detach()
    receiver.detach(closed=False)
    lasting_receiver(client, credit=0)
    client.over = True
    client.connection.end_of_input()
    work_off(router)
    assert router.forwarder.suspended.deliveries() == count
    router.wait(31)
    work_off(router)
    assert [each.outcome for each in sent] == [Modified(delivery_failed=True)] * count


def test_what_waits_counts_for_the_link_that_it_was_handed_to() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = lasting_sender(router.client())
    sender.send(b"1")
    receiver.grant(0)
    sending = sender.send(b"2" * 100)
    assert sender.client.connection.held_bytes >= 100
    sender.detach(closed=False)
    new = lasting_sender(again(router, sender.client), unsettled={b"1": None})
    assert new.attach is not None
    assert list(decoded(new.attach.unsettled)) == [b"1"]
    resumed = new.send(b"", tag=b"1", resume=True)
    assert sender.client.connection.held_bytes == 0
    assert new.client.connection.held_bytes >= 100
    receiver.grant(1)
    assert new.client.connection.held_bytes == 0
    receiver.settle(Accepted())
    assert resumed.outcome == Accepted()
    assert not sending.states


@pytest.mark.parametrize("is_resumed", [True, False])
def test_what_waits_of_an_anonymous_sender_counts_for_its_link(is_resumed: bool) -> None:
    router = Router()
    receiver = router.client().receiver("q")
    sender = lasting_sender(router.client(), None)
    tags = [b"%d" % n for n in range(3)]
    for tag in tags:
        sender.send(to_section("q"), tag=tag)
    sender.detach(closed=False)
    if is_resumed:
        sender = lasting_sender(sender.client, None, unsettled=dict.fromkeys(tags))
        for tag in tags:
            sender.send(b"", tag=tag, resume=True)
    else:
        sender = lasting_sender(sender.client, None)
    (link,) = sender.client.connection.local_sessions[0].local_links.values()
    assert link.owner.waiting == 3
    receiver.grant(5)
    assert link.owner.waiting == 0


@pytest.mark.parametrize("payload", [b"", b"x" * 100])
def test_the_windows_of_two_sessions_are_right_when_what_waits_changes_hands(
    payload: bytes,
) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = lasting_sender(router.client())
    sender.send(payload, tag=b"first", message_format=OPAQUE)
    receiver.grant(0)
    sender.send(payload, tag=b"second", message_format=OPAQUE)
    sender.client.end()
    new = lasting_sender(
        again(router, sender.client, held_limit_bytes=99),
        unsettled=dict.fromkeys((b"first", b"second")),
    )
    new.send(b"", tag=b"second", resume=True)
    connection = new.client.connection
    window = connection.local_sessions[0].window
    assert (window.held_frames, connection.held_bytes) == (1, len(payload))
    assert connection.held_back == bool(payload)
    receiver.grant(5)
    assert (window.held_frames, connection.held_bytes, connection.held_back) == (0, 0, False)


# Who takes it up.


@pytest.mark.parametrize("stealing", ["same-user", "never"])
def test_another_user_cannot_resume_a_link(stealing: str) -> None:
    router = Router(stealing=stealing)
    receiver = lasting_receiver(router.client(user="alice"))
    sending = router.client().sender("q").send(b"x")
    receiver.client.lose()
    thief = lasting_receiver(again(router, receiver.client, user="mallory"))
    assert thief.detached is not None
    assert str(thief.detached.error.condition) == "amqp:resource-locked"
    owner = lasting_receiver(again(router, receiver.client, user="alice"))
    assert owner.detached is None
    assert not sending.states


def test_a_link_to_another_address_is_another_link() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sending = router.client().sender("q").send(b"x")
    receiver.client.lose()
    new = lasting_receiver(again(router, receiver.client), "other", unsettled={})
    assert sending.outcome == FAILED
    assert new.attach.unsettled is None


@pytest.mark.spec("2.6.3-8")
@pytest.mark.parametrize("source", [None, Source()])
def test_a_receiver_is_recovered_by_its_name(source: Source | None) -> None:
    router = Router()
    client = router.client()
    lasting_receiver(client)
    client.lose()
    client = again(router, client)
    new = client.receiver(None, name="r", source=source)
    assert new.attach is not None
    assert new.attach.source is not None
    assert (new.attach.source.address, new.attach.source.timeout) == ("q", 30)
    unknown = client.receiver(None, name="unknown", source=source)
    assert unknown.attach is not None
    assert unknown.attach.source is None
    assert unknown.detached is not None


@pytest.mark.spec("2.6.3-8")
def test_a_sender_is_recovered_by_its_name() -> None:
    router = Router()
    client = router.client()
    lasting_sender(client)
    client.lose()
    new = again(router, client).sender(None, name="s", target=None)
    assert new.attach is not None
    assert isinstance(new.attach.target, Target)
    assert (new.attach.target.address, new.attach.target.timeout) == ("q", 30)


def test_an_empty_target_is_an_anonymous_one_even_where_the_link_had_another() -> None:
    """What is sent there has an address of its own, and must not go to the former one."""
    router = Router()
    client = router.client()
    lasting_sender(client)
    client.lose()
    new = again(router, client).sender(None, name="s")
    assert new.attach is not None
    assert isinstance(new.attach.target, Target)
    assert new.attach.target.address is None


@pytest.mark.spec("3.5.10-1")
def test_a_dynamic_node_lasts_as_long_as_its_suspended_link() -> None:
    router = Router()
    asked = Source(dynamic=True, **LASTS)
    receiver = router.client().receiver(None, 5, name="r", source=asked)
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    address = receiver.attach.source.address
    sender = router.client().sender(address)
    receiver.client.lose()
    assert sender.attached
    client = again(router, receiver.client)
    new = client.receiver(None, 5, name="r", source=None)
    assert new.attach is not None
    assert new.attach.source is not None
    assert new.attach.source.address == address
    sender.send(b"x")
    assert new.take() == b"x"
    client.lose()
    router.wait(30)
    assert sender.detached is not None
    assert sender.detached.error is not None
    assert str(sender.detached.error.condition) == "amqp:resource-deleted"
    assert len(router.table) == 0


@pytest.mark.spec("2.6.1-2")
def test_a_stolen_link_is_resumed_where_the_thief_says_what_it_has() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sender = lasting_sender(router.client())
    sending = sender.send(b"x")
    (received,) = receiver.received
    thief = lasting_receiver(again(router, receiver.client), unsettled={received.tag: Accepted()})
    assert receiver.detached is not None
    assert str(receiver.detached.error.condition) == "amqp:link:stolen"
    assert sending.outcome == Accepted()
    assert thief.received[0].tag == received.tag
    half = sender.send(b"half", more=True)
    resumes = lasting_sender(again(router, sender.client), unsettled={b"1": None})
    assert half.outcome == Released()
    assert resumes.attach is not None
    assert resumes.attach.unsettled == {}


def test_a_shutdown_resolves_what_is_suspended() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sending = router.client().sender("q").send(b"x")
    receiver.client.lose()
    router.forwarder.suspended.end_all(router.forwarder)
    router.finish_turn()
    assert sending.outcome == FAILED


def test_an_answer_too_large_for_its_peer_leaves_what_was_suspended() -> None:
    router = Router()
    address = "q" * 450
    receiver = lasting_receiver(router.client(), address)
    sending = router.client().sender(address).send(b"x")
    receiver.client.lose()
    small = again(router, receiver.client, max_frame_size=512)
    link = lasting_receiver(small, address)
    assert small.over
    assert link.attach is None
    assert not sending.states
    router.wait(30)
    assert sending.outcome == FAILED


@pytest.mark.spec("2.6.5-2")
def test_a_detach_with_an_error_ends_the_delivery_ids() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sending = router.client().sender("q").send(b"x")
    receiver.attached = False
    receiver.client.say(Detach(receiver.handle, error=Error(Symbol("x"))))
    receiver.client.dispose([0], Accepted())
    assert not sending.states
    new = lasting_receiver(receiver.client, unsettled={receiver.received[0].tag: Accepted()})
    assert new.received[0].first.resume
    assert sending.outcome == Accepted()


# Very many of them.


def work_off(router: Router) -> None:
    """Take the turns that are left."""
    while router.turn.deferred:
        router.turn.deferred.step()
        router.end_turn()


def expire(router: Router) -> None:
    """Let half a minute pass, and take the turn in which links expire that were suspended then."""
    router.turn.now += 31
    router.forwarder.suspended.expire(router.forwarder)
    router.end_turn()


def many_suspended(router: Router, count: int) -> Client:
    """Return a client that has lost `count` receivers."""
    client = router.client()
    for number in range(count):
        source = Source(address=f"q{number}", **LASTS)
        client.receiver(None, name=f"r{number}", source=source)
    client.lose()
    return client


def test_very_many_links_expire_over_several_turns() -> None:
    router = Router()
    many_suspended(router, 200)
    expire(router)
    assert len(router.forwarder.suspended) == 200 - suspended.EXPIRED_AT_ONCE
    work_off(router)
    assert len(router.forwarder.suspended) == 0
    assert router.forwarder.suspended.next_expiry == 0
    assert len(router.table) == 0


def test_a_link_that_is_attached_again_before_its_turn_to_expire_stays() -> None:
    router = Router()
    client = many_suspended(router, 200)
    new = again(router, client)
    expire(router)
    router.finish_turn = router.end_turn  # type: ignore[method-assign]
    source = Source(address="q199", **LASTS)
    receiver = new.receiver(None, 5, name="r199", source=source)
    work_off(router)
    assert router.forwarder.suspended.resumed == 1
    router.client().sender("q199").send(b"x")
    assert receiver.take() == b"x"


def lasting_with(router: Router, count: int) -> tuple[Any, list[Any]]:
    """Return a receiver with `count` unsettled deliveries, and the sendings."""
    receiver = lasting_receiver(router.client(window=count + 10), credit=count)
    sender = router.client(link_capacity=count).sender("q")
    return receiver, [sender.send(b"x") for _ in range(count)]


def test_very_many_deliveries_of_a_link_are_parked_over_several_turns() -> None:
    router = Router()
    count = ITEMS_AT_ONCE + 500
    receiver, _ = lasting_with(router, count)
    session = receiver.client.connection.local_sessions[0]
    receiver.client.over = True
    receiver.client.connection.end_of_input()
    router.end_turn()
    assert count - ITEMS_AT_ONCE <= session.outgoing.count < count
    work_off(router)
    assert session.outgoing.count == 0
    assert router.forwarder.suspended.deliveries() == count


def test_a_link_is_resumed_whole_before_all_of_its_deliveries_are_parked() -> None:
    router = Router()
    count = ITEMS_AT_ONCE + 500
    receiver, sent = lasting_with(router, count)
    client = again(router, receiver.client, window=count + 10)
    router.finish_turn = router.end_turn  # type: ignore[method-assign]
    receiver.client.over = True
    receiver.client.connection.end_of_input()
    router.end_turn()
    unsettled = {each.tag: Accepted() for each in receiver.received}
    new = lasting_receiver(client, credit=count, unsettled=unsettled)
    assert new.attached
    work_off(router)
    assert [each.outcome for each in sent] == [Accepted()] * count
    assert len(router.forwarder.suspended) == 0


def test_very_many_deliveries_of_a_link_that_expires_are_resolved_over_several_turns() -> None:
    router = Router()
    count = ITEMS_AT_ONCE + 500
    receiver, sent = lasting_with(router, count)
    receiver.client.lose()
    expire(router)
    assert 0 < sum(each.is_over for each in sent) <= ITEMS_AT_ONCE
    work_off(router)
    assert [each.outcome for each in sent] == [FAILED] * count
    assert router.table.total().modified == count


def test_a_link_expires_whose_deliveries_are_not_all_parked() -> None:
    router = Router()
    count = ITEMS_AT_ONCE + 500
    receiver, sent = lasting_with(router, count)
    receiver.client.over = True
    receiver.client.connection.end_of_input()
    router.end_turn()
    expire(router)
    work_off(router)
    assert [each.outcome for each in sent] == [FAILED] * count
    assert len(router.forwarder.suspended) == 0


def test_what_is_half_way_is_given_up_before_its_link_is_resumed() -> None:
    router = Router()
    receiver = lasting_receiver(router.client())
    sender = lasting_sender(router.client())
    whole, half = sender.send(b"whole"), sender.send(b"half", more=True)
    client = again(router, receiver.client)
    router.finish_turn = router.end_turn  # type: ignore[method-assign]
    receiver.client.over = True
    deferred = router.turn.deferred
    # a round that has no steps left
    deferred.left = 0
    receiver.client.connection.end_of_input()
    while not len(router.forwarder.suspended):
        deferred.left = 0
        deferred.step()
    new = lasting_receiver(client, unsettled={each.tag: None for each in receiver.received})
    work_off(router)
    assert new.attach is not None
    assert list(decoded(new.attach.unsettled)) == [receiver.received[0].tag]
    sender.go_on(b"rest")
    assert half.outcome == FAILED
    assert not whole.is_over
