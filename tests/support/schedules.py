"""Schedules: the steps of several peers of one router, and what must hold at the end.

A schedule is a list of steps; each names what happens and, by number, to whom. Steps that make no
sense when they come are passed over, so that hypothesis may leave out any of them. After the last
step every peer does what is reasonable: reads, opens its window, grants credit, settles.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from router.amqp.constants import ReceiverSettleMode
from router.amqp.performatives import Accepted, Modified, Rejected, Released

from support.audit import check_accounts, check_nothing_is_left
from support.in_memory import Client, Received, ReceivingLink, Router, Sending, SendingLink
from support.ledger import MARK

SECOND = ReceiverSettleMode.SECOND
ADDRESSES = ["balanced", "closest", "multicast", "multicast"]
RULES = [(False, name, name) for name in sorted(set(ADDRESSES))]
OUTCOMES = [Accepted(), Accepted(), Released(), Rejected(), Modified(delivery_failed=True)]
Outcome = Accepted | Rejected | Released | Modified
GIVES_BACK = (Released, Modified)
OFTEN = ["send", "settle", "grant", "begin_sending", "go_on", "send_settled"]
NOW_AND_THEN = [
    "drain",
    "give_back",
    "stop_reading",
    "read",
    "read",
    "narrow_window",
    "open_window",
    "sender_settles",
    "told_unsettled",
    "given_back_unsettled",
    "abort",
    "abort_at_once",
    "send_short_lived",
    "wait",
    "attach_sender",
    "attach_sender_that_settles",
    "attach_receiver",
    "attach_anonymous",
    "attach_settled_receiver",
    "steal",
]
RARELY = ["detach", "detach", "close", "lose", "end"]
STEPS = [*OFTEN * 6, *NOW_AND_THEN * 2, *RARELY]
# where there are steps of the router too, which no peer has a part in
STEPS_IN_TURNS = [*STEPS, *["later_turn", "later_turn_of_client"] * 20]
# a header section with nothing but a ttl
TTL_100_MS = bytes.fromhex("005370c00503404052 64")


class Play:
    """Router with a few clients, and the ledger of what they sent and received.

    Besides the usual receivers there are `crowd` more, with much credit, at the unicast addresses.
    With `copies_at_once` only so many copies of a message are made in a turn. The others are made
    when a step says so, and all that a client says after the message waits for that, too.
    """

    def __init__(self, crowd: int = 0, copies_at_once: int | None = None) -> None:
        self.router = Router(RULES)
        if copies_at_once is not None:
            self.router.forwarder.distribution.copies_at_once = copies_at_once
        self.clients = [
            self.router.client(max_frame_size=size, window=window)
            for size, window in ((65536, 1000), (512, 1000), (512, 3), (4096, 1))
        ]
        self.sendings: list[Sending] = []
        # how often receivers gave a message back
        self.given_back: Counter[bytes] = Counter()
        # what senders had sent when they were stolen
        self.owed: list[Sending] = []
        self.stolen: set[SendingLink | ReceivingLink] = set()
        for number, name in enumerate(ADDRESSES[:3]):
            self.clients[number % 4].receiver(name, credit=3)
            self.clients[(number + 1) % 4].receiver(name, credit=2)
            self.clients[(number + 2) % 4].sender(name)
        self.clients[3].sender(None)
        for number in range(crowd):
            self.clients[number % 4].receiver(ADDRESSES[number % 2], credit=50)
        self.router.is_patient = copies_at_once is not None

    def senders(self) -> list[SendingLink]:
        return [
            link
            for client in self.clients
            for link in client.links
            if isinstance(link, SendingLink) and link.attached
        ]

    def receivers(self) -> list[ReceivingLink]:
        return [
            link
            for client in self.clients
            for link in client.links
            if isinstance(link, ReceivingLink) and link.attached
        ]

    def step(self, what: str, one: int, other: int) -> None:
        client = self.clients[one % len(self.clients)]
        senders, receivers = self.senders(), self.receivers()
        if what in {"send", "send_settled", "begin_sending", "abort_at_once", "send_short_lived"}:
            senders = [link for link in senders if link.can_send()]
        if what in {"go_on", "abort"}:
            senders = [link for link in senders if link.current and link.client.router_window > 0]
        sender = senders[one % len(senders)] if senders else None
        receiver = receivers[one % len(receivers)] if receivers else None
        address = ADDRESSES[other % len(ADDRESSES)]
        match what:
            case "attach_sender" if not client.over:
                client.sender(address)
            case "attach_sender_that_settles" if not client.over:
                client.sender(address if one % 4 else None, rcv_settle_mode=SECOND)
            case "attach_anonymous" if not client.over:
                client.sender(None)
            case "attach_receiver" if not client.over:
                client.receiver(address, credit=other % 5)
            case "attach_settled_receiver" if not client.over:
                client.receiver(address, credit=other % 5, snd_settle_mode=1)
            case "abort_at_once" if sender:
                sender.send(b"gone", aborted=True).is_over = True
            case "send_short_lived" if sender and sender.address:
                self.send(sender, size=other, header=TTL_100_MS)
            case "wait":
                self.router.wait(other / 100)
            case "send" | "send_settled" | "begin_sending" if sender:
                self.send(
                    sender,
                    size=other * 40,
                    settled=what == "send_settled",
                    more=what == "begin_sending",
                )
            case "go_on" if sender and (sending := sender.current):
                more = other % 3 != 0
                sender.go_on(
                    data_section(b"+" * (other * 40)), more=more, settled=sending.settled or None
                )
            case "abort" if sender:
                sender.abort()
            case "grant" | "drain" if receiver:
                receiver.grant(receiver.credit + other % 7, drain=what == "drain")
            case "give_back" if sender and sender.drain and sender.credit > 0:
                sender.give_back()
            case "settle" if receiver:
                self.settle(receiver, OUTCOMES[other % len(OUTCOMES)])
            case "told_unsettled" if receiver:
                receiver.settle(Accepted(), settled=False)
            case "given_back_unsettled" if receiver:
                self.settle(receiver, Released(), settled=False)
            case "sender_settles" if sender:
                for sending in self.sendings:
                    if sending.link is sender and sending.complete and not sending.is_over:
                        sender.settle(sending)
                        break
            case "detach" if sender or receiver:
                links: list[SendingLink | ReceivingLink] = [*senders, *receivers]
                links[other % len(links)].detach(closed=bool(one % 2))
            case "steal" if sender or receiver:
                links = [*senders, *receivers]
                self.steal(links[other % len(links)], one)
            case "close" | "lose" | "end":
                self.replace(client, what)
            case "stop_reading" | "read" if not client.over:
                client.read(reads=what == "read")
            case "narrow_window" if not client.over:
                client.open_window(1 + other % 3)
            case "open_window" if not client.over:
                client.open_window(1000)
            case "later_turn":
                self.router.go_on()
            case "later_turn_of_client" if client.is_behind():
                client.go_on()
            case _:
                pass
        for each in self.clients:
            assert not each.connection.finished or each.over
            assert each.connection.held_bytes >= 0

    def send(
        self,
        sender: SendingLink,
        *,
        size: int,
        settled: bool = False,
        more: bool = False,
        header: bytes = b"",
    ) -> None:
        mark = b"<%06d>" % len(self.sendings)
        head = header
        if sender.address is None:
            head += to_section(ADDRESSES[size % len(ADDRESSES)])
        payload = head + data_section(mark + b"." * size)
        self.sendings.append(sender.send(payload, settled=settled, more=more))

    def settle(self, receiver: ReceivingLink, state: Any, *, settled: bool = True) -> None:
        """Have a receiver say this of all that it has."""
        if isinstance(state, GIVES_BACK):
            whole = [each for each in receiver.unsettled.values() if each.complete]
            self.given_back.update({mark_of(each) for each in whole})
        receiver.settle(state, settled=settled)

    def steal(self, link: SendingLink | ReceivingLink, how: int) -> None:
        """Attach a link again, on the same session or on another connection.

        As often as not it is to the same address.
        """
        # a peer that does not read may send on a link that was stolen before; that is ignored, and
        # so is what the router comes to too late
        if link not in self.stolen and not link.client.is_behind():
            self.owed += [each for each in self.sendings if each.link is link and not each.settled]
        self.stolen.add(link)
        client = link.client
        if how % 3 and len(self.clients) < 16:
            sizes = {"max_frame_size": client.max_frame_size, "window": 1 + how * how}
            # its other links must not steal those of the first client
            prefix = f"link-of-{len(self.clients)}"
            client = self.router.client(container=client.container, link_prefix=prefix, **sizes)
            self.clients.append(client)
        address = ADDRESSES[how % len(ADDRESSES)] if how % 4 == 0 else link.address
        if isinstance(link, SendingLink):
            client.sender(address, name=link.name)
        else:
            client.receiver(address, credit=how % 5, name=link.name)

    def replace(self, client: Client, how: str) -> None:
        """Have a client go, in one of three ways, and another come."""
        if len(self.clients) < 12 and not client.over:
            {"close": client.close, "lose": client.lose, "end": client.end}[how]()
            self.clients.append(self.router.client())

    # The end of it.

    def settle_down(self) -> None:
        """Let every peer do what is reasonable until nothing changes any more."""
        self.router.catch_up()
        for client in self.clients:
            client.read()
            client.open_window(100_000)
        for receiver in self.receivers():
            receiver.grant(10_000)
        # From here on nobody says anything that nobody has to say: no flow may help out.
        for _ in range(60):
            before = self.snapshot()
            for sender in self.senders():
                if sender.current is not None and sender.client.router_window > 0:
                    sender.go_on(data_section(b"="), settled=sender.current.settled or None)
                if sender.drain and sender.credit > 0:
                    sender.give_back()
            for receiver in self.receivers():
                receiver.settle()
            self.settle_as_senders()
            if self.snapshot() == before:
                return
        raise AssertionError("it never comes to rest")

    def settle_as_senders(self) -> None:
        """Have senders settle deliveries with an outcome that are theirs to settle."""
        for sending in self.sendings:
            is_told = any(isinstance(state, Outcome) for state in sending.states)
            if is_told and not sending.is_over and sending.link.attached:
                sending.link.settle(sending)

    def snapshot(self) -> Any:
        received = [link.delivery_count for link in self.receivers()]
        over = [sending.is_over for sending in self.sendings]
        return received, over, [link.credit for link in self.senders()]

    def check_ledger(self) -> None:
        """Check that each unsettled delivery has one outcome and comes twice only for a retry.

        Each further time a receiver gave it back before; and no link has it twice.
        """
        for sending in self.sendings:
            if sending.link.attached and sending.complete and not sending.settled:
                assert sending.is_over, f"{sending} has no outcome"
        for sending in self.owed:
            is_told = sending.is_over or (sending.settles_second and sending.states)
            assert is_told or sending.link.client.over, f"{sending} was stolen untold"
        seen: Counter[tuple[bytes, str]] = Counter()
        by_link: Counter[tuple[bytes, int]] = Counter()
        for client in self.clients:
            for link in client.links:
                if isinstance(link, ReceivingLink):
                    assert link.current is None or not link.attached
                    for received in link.received:
                        mark = mark_of(received)
                        by_link[mark, id(link)] += 1
                        seen[mark, "" if link.address != "multicast" else str(id(link))] += 1
        assert not [mark for mark, count in by_link.items() if count > 1]
        assert not [
            (mark, address)
            for (mark, address), count in seen.items()
            if count > 1 + (0 if address else self.given_back[mark])
        ]

    def check_liveness(self) -> None:
        """Check that senders to addresses with receivers can send, and all of it is settled."""
        for sender in self.senders():
            addresses = {link.address for link in self.receivers()}
            if sender.address is not None and sender.address not in addresses:
                continue
            assert sender.can_send(), f"credit {sender.credit} at {sender.address}"
            if sender.address is None:
                continue
            for _ in range(3):
                self.send(sender, size=3)
                for receiver in self.receivers():
                    receiver.settle()
                assert self.sendings[-1].states == [Accepted()]
                self.settle_as_senders()


def mark_of(received: Received) -> bytes:
    """Which message it is."""
    # a ttl of 60 ms is written as "<" as well
    found = MARK.search(received.payload)
    assert found is not None, f"{received.payload!r} has no mark"
    return found[0]


def to_section(address: str) -> bytes:
    """Return a properties section with only `to`."""
    to = address.encode()
    items = b"\x40\x40\xa1" + bytes((len(to),)) + to
    return b"\x00\x53\x73\xc0" + bytes((len(items) + 1, 3)) + items


def data_section(octets: bytes) -> bytes:
    """Return a data section, for a body or a part of one."""
    return b"\x00\x53\x75\xb0" + len(octets).to_bytes(4, "big") + octets


def play(
    schedule: list[tuple[str, int, int]], crowd: int = 0, copies_at_once: int | None = None
) -> int:
    """Play a schedule to its end, check the result, and return the number of redeliveries."""
    game = Play(crowd, copies_at_once)
    for what, one, other in schedule:
        game.step(what, one, other)
    game.settle_down()
    check_accounts(game.router)
    game.check_ledger()
    game.check_liveness()
    check_nothing_is_left(game.router)
    return game.router.table.total().redelivered
