"""Ledger of messages: what was sent, where it arrived, what was said of it, and the invariants.

A message bears its number in its body, as a mark that is repeated to the end, so that each part of
it can be recognised. `Ledger.look` reads what has arrived since the last look, and checks what must
hold at once: that it is a message that was sent, octet for octet as far as it has come, in the
order of its link and priority, not after its ttl, and no more often than it was given back.
`Ledger.check_outcomes` is for the end, when all have heard everything: each sender was told what a
receiver said, or what the router may say by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import attrs

from router.amqp.composite import composite_from, decode_composite
from router.amqp.constants import Descriptor
from router.amqp.decode import decode_value
from router.amqp.message import Message as Sections, encode_message, section_spans
from router.amqp.performatives import (
    Accepted,
    Disposition,
    Header,
    Modified,
    Properties,
    Received as ReceivedState,
    Rejected,
    Released,
)
from router.amqp.sections import Data
from router.amqp.types import Described, ULong
from router.core.model import router_outcomes

from support.audit import router_end, session_of
from support.in_memory import Client, Received, ReceivingLink, Router, Sending, SendingLink

MARK = re.compile(rb"<[0-9]{6}>")
GIVES_BACK = (Released, Modified)
OUTCOMES = (Accepted, Rejected, Released, Modified)
FAILED = Modified(delivery_failed=True)
NO_TO = decode_composite(router_outcomes.NO_TO)[0]
EXPIRED = "trioute:expired"
# of time that is reckoned in floating point and told in whole milliseconds
TOLERANCE_S = 0.002
UNTOLD = "untold"
NEVER = 1 << 60


@attrs.define(eq=False)
class Arrival:
    """Delivery at a receiver.

    `told` is its receiver's first outcome, None if it settled without one, UNTOLD if it has said
    nothing while the router still awaited an outcome.
    """

    link: ReceivingLink
    received: Received
    message: Message | None = None
    told: Any = UNTOLD
    told_at: int = NEVER
    # its link was lost before it was settled
    lost_at: int = NEVER
    # its link has gone, and is to be resumed or has been: then it comes once more
    is_pending: bool = False
    was_whole: bool = False
    # its receiver said when it resumed its link that it does not know it
    disowned: bool = False
    # when it was seen, where that was when it was sent
    seen_at: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Return whether it is complete and was not aborted."""
        return self.was_whole or (self.received.complete and not self.received.aborted)

    def is_lost(self, message: Message) -> bool:
        """Return whether its receiver was lost while its sender could hear of it."""
        return self.lost_at < NEVER and self.lost_at <= message.closed_at

    @property
    def presettles(self) -> bool:
        """Return whether its receiver wants everything settled."""
        return self.link.attach is not None and self.link.attach.snd_settle_mode == 1


@attrs.define(eq=False)
class Message:
    """Message that is being sent, or has been."""

    number: int
    octets: bytes = attrs.field(repr=False)
    # where the bare message begins
    bare_at: int
    header: Header
    address: str
    sending: Sending
    link: SendingLink
    # when its ttl ends, if all of it is spent here
    deadline: float
    # what has not been sent yet, in frames
    rest: list[bytes] = attrs.field(repr=False)
    # as the router sees it, which does not look for a header beyond the first frame
    priority: int
    # the router had taken the link away by then, and ignores it
    ignored: bool
    settled_at_first: bool
    arrivals: list[Arrival] = attrs.Factory(list)
    # when its sender's link was lost or stolen, or its sender settled it
    closed_at: int = NEVER
    stolen: bool = False
    aborted: bool = False

    # its first frame does not tell which it is
    obscure: bool = False

    @property
    def tag(self) -> bytes:
        """Return its delivery-tag."""
        return b"%d" % self.number

    @property
    def is_done(self) -> bool:
        """Return whether no more of it will be sent, or said to its sender."""
        return self.sending.is_over and (self.aborted or not self.rest)

    def told(self) -> list[Arrival]:
        """Return the arrivals with an outcome that the sender could still hear."""
        return [
            each
            for each in self.arrivals
            if each.told is not UNTOLD and each.told_at <= self.closed_at
        ]

    def returned(self) -> list[Arrival]:
        """Return the arrivals whose receivers gave the message back."""
        return [each for each in self.arrivals if isinstance(each.told, GIVES_BACK)]


def written(
    number: int, size: int, header: Header | None = None, to: str | None = None
) -> tuple[bytes, int]:
    """Return a message with a body of `size` octets, and the offset of its bare message."""
    mark = b"<%06d>" % number
    body = (mark * (size // len(mark) + 1))[: max(size, len(mark))]
    properties = None if to is None else Properties(to=to)
    bare = encode_message(Sections(properties=properties, body=(Data(body),)))
    head = b"" if header is None else encode_message(Sections(header=header))
    return head + bare, len(head)


def mark_of(received: Received) -> int | None:
    """Which message it is, if it has come that far."""
    found = MARK.search(received.payload)
    return None if found is None else int(found[0][1:-1])


class Ledger:
    """All messages of one router. `is_multicast` says whether an address is multicast."""

    def __init__(self, router: Router, is_multicast: Callable[[str], bool]) -> None:
        self.router = router
        self.is_multicast = is_multicast
        # turns, more or less: what happens in one of them happens at once
        self.step = 0
        self.messages: list[Message] = []
        self.by_sending: dict[int, Message] = {}
        self.open: list[Message] = []
        self.arrivals: dict[tuple[int, int], Arrival] = {}
        self._unread: dict[ReceivingLink, int] = {}
        # receivers that are attached, and when the others were lost
        self._there: set[ReceivingLink] = set()
        self._gone: dict[ReceivingLink, int] = {}
        # who had not read everything at the last look
        self._deaf: set[Client] = set()
        self._unfinished: list[Arrival] = []
        self._unsettled: list[Arrival] = []
        # the last message of each sender and priority that each receiver got
        self._last: dict[tuple[int, int, int], int] = {}
        self.stolen: set[SendingLink | ReceivingLink] = set()
        # the router's ends of links, there or gone
        self.ends: dict[SendingLink | ReceivingLink, Any] = {}
        # what is to be resumed on a link: by its sender, or by the router
        self.to_resume: dict[SendingLink, dict[bytes, Message]] = {}
        self.awaited: dict[ReceivingLink, dict[bytes, Arrival]] = {}
        # links that are for resuming only, because somebody's map was incomplete
        self.held: set[SendingLink | ReceivingLink] = set()

    # What the test tells.

    def enter(self, link: ReceivingLink) -> None:
        """Add a receiver whose deliveries are to be read."""
        self._unread[link] = 0
        self._there.add(link)

    def send(
        self,
        link: SendingLink,
        address: str,
        size: int,
        *,
        cuts: list[int] | None = None,
        header: Header | None = None,
        settled: bool = False,
    ) -> Message:
        """Begin a message to an address; `cuts` are where its frames after the first begin."""
        number = len(self.messages)
        to = address if link.address is None else None
        octets, bare_at = written(number, size, header, to)
        places = [0, *sorted({min(cut, len(octets) - 1) for cut in cuts or () if cut}), len(octets)]
        first, *rest = [octets[begin:end] for begin, end in pairwise(places)]
        ignored = router_end(link) is None
        header_is_seen = header is not None and len(first) >= bare_at
        deadline: float = NEVER
        if header is not None and header_is_seen and header.ttl is not None:
            deadline = self.router.turn.now + header.ttl / 1000
        message = Message(
            number=number,
            octets=octets,
            bare_at=bare_at,
            header=header if header is not None else Header(),
            address=address,
            # set as soon as it is sent: what comes of that asks for the message
            sending=None,  # type: ignore[arg-type]
            link=link,
            deadline=deadline,
            rest=rest,
            priority=header.priority if header is not None and header_is_seen else 4,
            ignored=ignored,
            settled_at_first=settled,
            obscure=MARK.search(first) is None,
        )
        self.messages.append(message)
        self.open.append(message)
        message.sending = link.send(
            first, more=bool(rest), settled=settled, message_format=0, tag=message.tag
        )
        self.by_sending[id(message.sending)] = message
        return message

    def go_on(self, link: SendingLink, *, settled: bool = False) -> None:
        """Send the next frame of what is under way, and settle it with that."""
        message = self.of(link.current)
        chunk = message.rest.pop(0)
        link.go_on(chunk, more=bool(message.rest), settled=settled or message.sending.settled)
        if settled:
            self._close(message)

    def abort(self, link: SendingLink) -> None:
        """Give up what is under way."""
        message = self.of(link.current)
        message.aborted = True
        link.abort()

    def of(self, sending: Sending | None) -> Message:
        """Return the message that is sent by this delivery."""
        return self.by_sending[id(sending)]

    def settle_sent(self, message: Message, state: Any = None) -> None:
        """Settle a message as its sender."""
        self._close(message)
        message.link.settle(message.sending, state)

    def tell(self, client: Client, first: int, last: int, state: Any, *, settled: bool) -> None:
        """Have a receiver say this of its deliveries from first to last."""
        session = session_of(client)
        for number in range(first, last + 1):
            arrival = self.arrivals.get((id(client), number))
            if arrival is None or number not in arrival.link.unsettled:
                continue
            delivery = None if session is None else session.outgoing.find(number)
            # what has been given up half way may still wait for room to be aborted
            is_asked = delivery is not None and (
                (delivery.incoming_open and not delivery.discarded)
                or delivery.parent is not None
                or delivery.suspended is not None
            )
            if is_asked and arrival.told is UNTOLD and (settled or state is not None):
                arrival.told = state
                arrival.told_at = self.step
            if settled:
                del arrival.link.unsettled[number]
        client.say(Disposition(True, first, last, settled, state))

    # What is seen.

    def look(self) -> None:
        """Read what has come since the last look; call it after each step."""
        for link, count in list(self._unread.items()):
            received = link.received
            for at in range(count, len(received)):
                first = received[at].first
                if first is not None and first.resume:
                    arrival = self._resumed(link, received[at])
                else:
                    arrival = Arrival(link, received[at])
                if link.client not in self._deaf:
                    arrival.seen_at = self.router.turn.now
                self.arrivals[id(link.client), received[at].number] = arrival
                self._unfinished.append(arrival)
            self._unread[link] = len(received)
            if link.client.connection.finished and link.client.over:
                del self._unread[link]
        unfinished, self._unfinished = self._unfinished, []
        for arrival in unfinished:
            self._read(arrival)
            if not arrival.received.complete and not arrival.received.aborted:
                self._unfinished.append(arrival)
        self._deaf = {link.client for link in self._unread if not link.client.reads}
        self._see_who_is_lost()
        self.step += 1

    def _see_who_is_lost(self) -> None:
        suspended = {id(each.link) for each in self._termini()}

        def is_suspended(link: SendingLink | ReceivingLink) -> bool:
            return router_end(link) is None and id(self.ends.get(link)) in suspended

        for link in [each for each in self._there if router_end(each) is None]:
            if not is_suspended(link):
                self._there.remove(link)
                self._gone[link] = self.step
        still: list[Message] = []
        for message in self.open:
            is_kept = message.sending.complete and is_suspended(message.link)
            if router_end(message.link) is None and not is_kept:
                # what was to be resumed on that link had no id there
                had_id = message.sending.link is message.link and not message.ignored
                message.stolen = had_id and message.link in self.stolen
                message.closed_at = min(message.closed_at, self.step)
            elif not message.is_done:
                still.append(message)
        self.open = still
        unsettled: list[Arrival] = []
        for arrival in self._unsettled:
            if not arrival.is_pending and arrival.received.number not in arrival.link.unsettled:
                continue
            if arrival.disowned or arrival.lost_at < NEVER:
                continue
            if arrival.link in self._gone:
                arrival.lost_at = self._gone[arrival.link]
            elif (
                not arrival.is_pending
                and not arrival.received.complete
                and is_suspended(arrival.link)
            ):
                # half a message is never resumed
                arrival.lost_at = self.step
            else:
                unsettled.append(arrival)
        self._unsettled = unsettled

    def _close(self, message: Message) -> None:
        message.closed_at = min(message.closed_at, self.step)

    def _read(self, arrival: Arrival) -> None:
        received = arrival.received
        if arrival.message is None:
            number = mark_of(received)
            if number is None:
                assert not received.complete or received.aborted, f"{received} has no mark"
                return
            arrival.message = self.messages[number]
            self._identified(arrival, arrival.message)
        self._compare(arrival, arrival.message)

    def _identified(self, arrival: Arrival, message: Message) -> None:
        link = arrival.link
        assert not message.ignored, "a message that was ignored"
        assert link.address is None or _same_address(link.address, message.address)
        message.arrivals.append(arrival)
        self._unsettled.append(arrival)
        received = arrival.received
        if received.settled and not received.aborted:
            assert message.sending.settled or message.closed_at < NEVER or arrival.presettles
        given_back = len(message.returned())
        disowned = sum(each.disowned for each in message.arrivals)
        if self.is_multicast(message.address):
            allowed = 1
            came = sum(
                (each.link.name, each.link.client.container) == (link.name, link.client.container)
                for each in message.arrivals
            )
        else:
            allowed = 1 if message.settled_at_first else 1 + given_back
            known = [each for each in message.arrivals if not each.disowned]
            came = len(known)
            assert len({id(each.link) for each in known}) == came, "twice on a link"
            assert came <= 8
        assert came <= allowed, f"message {message.number} came {came} times"
        # the ttl is reckoned from when the head had come whole
        is_in_time = arrival.seen_at < message.deadline + TOLERANCE_S
        assert is_in_time or message.obscure, "it had expired"
        if not (given_back or disowned) or self.is_multicast(message.address):
            key = (id(message.link), message.priority, id(link))
            assert self._last.get(key, -1) < message.number, "out of order"
            self._last[key] = message.number

    def _compare(self, arrival: Arrival, message: Message) -> None:
        payload = arrival.received.payload
        is_whole = arrival.received.complete and not arrival.received.aborted
        sent = message.octets[: len(message.octets) - sum(len(each) for each in message.rest)]
        if is_whole:
            assert len(sent) == len(message.octets), "whole before its sender said the end"
            assert not message.aborted
        if sent.startswith(payload):
            assert not is_whole or payload == sent
            return
        # the header has been written anew; nothing else may have
        bare_at = message.bare_at
        if is_whole:
            spans = {each.descriptor: each for each in section_spans(payload)}
            bare_at = spans[Descriptor.HEADER].end
        elif not bare_at:
            bare_at = decode_value(payload, 0)[1]
        rest = payload[bare_at:]
        expected = sent[message.bare_at :]
        assert rest == expected if is_whole else expected.startswith(rest)
        value, end = decode_value(payload, 0)
        assert end == bare_at
        assert isinstance(value, Described)
        header = composite_from(Described(ULong(Descriptor.HEADER), value.value), "header")
        assert isinstance(header, Header)
        self._compare_headers(arrival, message, header)

    def _compare_headers(self, arrival: Arrival, message: Message, header: Header) -> None:
        before = message.header
        assert header.durable == before.durable
        assert header.priority == before.priority
        if before.ttl is None:
            assert header.ttl is None
        else:
            assert header.ttl is not None
            assert 0 < header.ttl <= before.ttl
        failed = [
            each
            for each in message.arrivals
            if isinstance(each.told, Modified) and each.told.delivery_failed and each is not arrival
        ]
        assert before.delivery_count <= header.delivery_count
        assert header.delivery_count <= before.delivery_count + len(failed)
        assert not header.first_acquirer or before.first_acquirer

    # Links that are resumed.

    def _termini(self) -> list[Any]:
        """Return the router's termini that have no link."""
        return list(self.router.forwarder.suspended._termini.values())

    def is_suspended(self, link: SendingLink | ReceivingLink | None) -> bool:
        """Return whether a link has gone and the router remembers its terminus."""
        if link is None or router_end(link) is not None:
            return False
        return any(each.link is self.ends.get(link) for each in self._termini())

    def sent_by(self, link: SendingLink) -> dict[bytes, Message]:
        """Return the complete unsettled messages that a sender remembers on a link, by tag."""
        return {
            each.tag: each
            for each in self.open
            if each.link is link
            and each.sending.complete
            and not (each.sending.is_over or each.sending.settled or each.ignored)
            and each.closed_at == NEVER
        }

    def received_by(self, link: ReceivingLink) -> dict[bytes, Arrival]:
        """Return the complete unsettled arrivals that a receiver remembers on a link."""
        found = dict(self.awaited.get(link, {}))
        for received in link.unsettled.values():
            arrival = self.arrivals[id(link.client), received.number]
            if received.complete and received.tag is not None:
                found[received.tag] = arrival
        return found

    def sender_resumed(
        self, link: SendingLink, mine: dict[bytes, Message], claimed: set[bytes]
    ) -> None:
        """Record that a sender, which remembers `mine`, attached again with `claimed` tags."""
        assert link.attach is not None
        theirs = link.attach.unsettled or {}
        is_partial = link.attach.incomplete_unsettled
        to_resume = self.to_resume.setdefault(link, {})
        for tag, message in mine.items():
            if tag in claimed and tag in theirs:
                message.link = link
                to_resume[tag] = message
            elif (tag in claimed and is_partial) or (tag not in claimed and link in self.held):
                # another time
                message.link = link
            else:
                # forgotten, and so settled
                # Or its outcome was told while its connection was being lost, its receiver's link
                # with it: no receiver has kept it then.
                is_known = tag not in claimed or message.sending.states
                kept = [each for each in message.told() if not isinstance(each.told, GIVES_BACK)]
                assert is_known or not kept, f"{message} is not known"
                message.sending.is_over = message.sending.given_up = True
                self._close(message)
        if is_partial:
            self.held.add(link)

    def receiver_resumed(
        self, link: ReceivingLink, mine: dict[bytes, Arrival], claimed: dict[bytes, Any]
    ) -> None:
        """Record that a receiver, which remembers `mine`, attached with `claimed` states."""
        assert link.attach is not None
        theirs = link.attach.unsettled or {}
        is_partial = link.attach.incomplete_unsettled
        awaited = self.awaited.setdefault(link, {})
        for tag, arrival in mine.items():
            arrival.link.unsettled.pop(arrival.received.number, None)
            assert arrival.message is not None
            if tag in claimed and (tag in theirs or is_partial):
                if arrival.told is UNTOLD and isinstance(claimed[tag], OUTCOMES):
                    arrival.told = claimed[tag]
                    arrival.told_at = self.step
                self._await(link, tag, arrival, awaited)
            elif tag in claimed:
                is_known = arrival.message.closed_at < NEVER or arrival.told is not UNTOLD
                # or it was given up when its receiver came the last time
                assert is_known or arrival.is_pending, f"{arrival} is not known"
                arrival.is_pending = False
                if arrival.told is UNTOLD:
                    arrival.lost_at = min(arrival.lost_at, self.step)
            elif link in self.held:
                self._await(link, tag, arrival, awaited)
            elif arrival.told is UNTOLD and isinstance(theirs.get(tag), ReceivedState):
                arrival.lost_at = self.step
            elif arrival.told is UNTOLD and (is_partial or tag in theirs):
                arrival.disowned = True
        if is_partial:
            self.held.add(link)

    def _await(
        self, link: ReceivingLink, tag: bytes, arrival: Arrival, awaited: dict[bytes, Arrival]
    ) -> None:
        arrival.link = link
        arrival.is_pending = True
        awaited[tag] = arrival

    def reattached(
        self, old: SendingLink | ReceivingLink, new: SendingLink | ReceivingLink
    ) -> None:
        """Move a link's deliveries to another link of its session; they keep their ids."""
        if isinstance(old, SendingLink):
            assert isinstance(new, SendingLink)
            for message in self.sent_by(old).values():
                message.link = message.sending.link = new
            return
        assert isinstance(new, ReceivingLink)
        for number, received in list(old.unsettled.items()):
            arrival = self.arrivals[id(old.client), number]
            if received.complete:
                arrival.link = new
                new.unsettled[number] = old.unsettled.pop(number)

    def resume(self, link: SendingLink, *, how: str = "resume") -> bool:
        """Have a sender resume its next delivery, or give it up ("abort", "settle")."""
        waiting = self.to_resume.get(link)
        if not waiting or link.current is not None or link.credit <= 0:
            return False
        if link.client.router_window <= 0 or not link.attached or link.client.over:
            return False
        tag, message = next(iter(waiting.items()))
        del waiting[tag]
        states = message.sending.states
        outcome = states[-1] if states and isinstance(states[-1], OUTCOMES) else None
        is_over = how != "resume" or outcome is not None
        if is_over:
            self._close(message)
        fields = {"aborted": True} if how == "abort" and outcome is None else {"state": outcome}
        payload = b"" if how == "abort" or is_over else message.octets[:100]
        settles = is_over and "aborted" not in fields
        sending = link.send(
            payload, settled=settles, message_format=0, tag=tag, resume=True, **fields
        )
        sending.states = [*states, *sending.states]
        if is_over:
            sending.is_over = sending.given_up = True
        message.sending = sending
        self.by_sending[id(sending)] = message
        return True

    def _resumed(self, link: ReceivingLink, received: Received) -> Arrival:
        """Return the arrival that the router resumes; the receiver must know it."""
        assert received.tag is not None
        arrival = self.awaited.get(link, {}).pop(received.tag, None)
        assert arrival is not None, f"{received} is resumed, and its receiver does not know it"
        arrival.is_pending = False
        arrival.was_whole = True
        if received.complete and not received.payload:
            received.payload = arrival.received.payload
        arrival.received = received
        if received.aborted and arrival.told is UNTOLD:
            arrival.lost_at = self.step
        return arrival

    # The end.

    def check_outcomes(self) -> None:
        """Check that each message has the outcome that it must have, once all was heard."""
        for message in self.messages:
            sending = message.sending
            states = [each for each in sending.states if isinstance(each, OUTCOMES)]
            if sending.settled:
                continue
            if sending.given_up:
                if states and not message.aborted:
                    self._check_outcome(message, states[-1])
                continue
            if sending.is_over:
                assert not message.ignored
                for state in states[:-1]:
                    assert state == states[-1], "two outcomes"
                # one that has been told need not be told again when it is settled
                is_told = sending.outcome is None and states
                self._check_outcome(message, states[-1] if is_told else sending.outcome)
                continue
            if sending.settles_second and states and message.closed_at < NEVER:
                # told, and it could not settle any more
                self._check_outcome(message, states[-1])
                continue
            is_owed = message.closed_at == NEVER or (
                message.stolen and not message.link.client.over
            )
            assert not is_owed or message.aborted or message.ignored, f"{message} has no outcome"

    def _check_outcome(self, message: Message, outcome: Any) -> None:
        try:
            if not message.arrivals:
                self._check_unsent(message, outcome)
            elif self.is_multicast(message.address):
                self._check_merged(message, outcome)
            else:
                self._check_single(message, outcome)
        except AssertionError as error:
            raise AssertionError(f"{outcome} of {message}: {error}") from error

    def _check_single(self, message: Message, outcome: Any) -> None:
        told = message.told()
        kept = [each for each in told if not isinstance(each.told, GIVES_BACK)]
        assert len(kept) <= 1, "more than one receiver has kept it"
        if kept:
            if kept[0].told is None and message.sending.settles_second:
                # what became of it nobody will ever know, unless there is a default
                assert outcome == kept[0].link.default_outcome or outcome == FAILED
                return
            assert _is(outcome, kept[0]), f"and its receiver said {kept[0].told}"
            return
        silent = [each for each in message.arrivals if each not in told]
        open_ones = [each for each in silent if not each.disowned]
        if any(each.is_whole and each.presettles for each in open_ones):
            assert outcome == Accepted()
            return
        if len(silent) > len(open_ones) and not open_ones:
            # nobody has it any more, whether it was to be sent anew or could not be
            defaults = [each.link.default_outcome for each in silent]
            assert outcome == FAILED or _is_expiry(outcome) or outcome in defaults or told
            return
        if not open_ones and told:
            assert any(_is(outcome, each) for each in told), "and no receiver said so"
            return
        if any(each.is_whole for each in open_ones):
            lost = [each for each in open_ones if each.is_lost(message)]
            assert lost or message.stolen, "and its receiver is there, and silent"
            defaults = [each.link.default_outcome for each in lost]
            assert outcome == FAILED or (outcome is not None and outcome in defaults)
            return
        assert outcome in (FAILED, Released()), "and a part of it was sent"

    def _check_unsent(self, message: Message, outcome: Any) -> None:
        if _is_expiry(outcome):
            assert self.router.turn.now >= message.deadline, "before its time"
            return
        if outcome == FAILED or outcome == NO_TO:
            # a part of it has been seen
            assert message.obscure
            assert outcome == FAILED or message.link.address is None
            return
        assert outcome == Released(), "and nobody got it"

    def _check_merged(self, message: Message, outcome: Any) -> None:
        told = message.told()
        states = [
            each.told if each.told is not None else each.link.default_outcome for each in told
        ]
        open_ones = [each for each in message.arrivals if each not in told]
        # or there are some of which nobody saw whose they are
        partly = bool(open_ones) or message.obscure
        for each in open_ones:
            if each.is_whole and each.presettles:
                states.append(Accepted())
            elif each.is_lost(message):
                # the default is for those that had got it whole
                default = each.link.default_outcome if each.is_whole else None
                states.append(FAILED if default is None else default)
        if _is_expiry(outcome):
            self._check_unsent(message, outcome)
        elif any(isinstance(each, Rejected) for each in states):
            assert isinstance(outcome, Rejected)
            assert outcome in states
        elif any(each is None or isinstance(each, Accepted) for each in states):
            # one that settles without a word has taken it, as far as anybody knows
            if Accepted() not in states and message.sending.settles_second:
                assert outcome == FAILED
            else:
                assert outcome == (Accepted() if Accepted() in states else None)
        elif any(isinstance(each, Modified) for each in states):
            assert isinstance(outcome, Modified)
            assert outcome in states or (partly and outcome == FAILED)
        elif partly:
            assert outcome in (FAILED, Released())
            closed = any(each.is_whole and not each.is_lost(message) for each in open_ones)
            assert not closed or outcome == FAILED
        else:
            assert outcome == Released()


def _is(outcome: Any, arrival: Arrival) -> bool:
    if arrival.told is None:
        return bool(outcome == arrival.link.default_outcome)
    return bool(outcome == arrival.told)


def _is_expiry(outcome: Any) -> bool:
    return (
        isinstance(outcome, Rejected)
        and outcome.error is not None
        and outcome.error.condition == EXPIRED
    )


def _same_address(one: str, other: str) -> bool:
    return one.removeprefix("amqp:/") == other.removeprefix("amqp:/")
