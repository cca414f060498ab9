"""A model of the router: peers do anything, in any order, and a ledger says what must come of it.

Connections come, go and break; links are attached, detached and stolen; messages of all kinds are
sent, in one frame or several; receivers say anything of them, or nothing. After each step the books
must balance (`support.audit`) and what arrived must be what was sent (`support.ledger`). At the end
everybody does what is reasonable, each message has its one outcome, everybody can be sent to, and
when the last peer has gone nothing is left. `make model` goes on for longer.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from router.amqp.constants import TerminusExpiryPolicy as Policy
from router.amqp.performatives import (
    Accepted,
    Close,
    Detach,
    End,
    Error,
    Header,
    Modified,
    Rejected,
    Released,
)

from support.audit import check_accounts, check_nothing_is_left, check_views
from support.examples import examples
from support.in_memory import Client, ReceivingLink, Router, SendingLink
from support.ledger import GIVES_BACK, OUTCOMES, UNTOLD, Ledger
from support.network import (
    ALL,
    DYNAMIC,
    FORGETS,
    INCOMPLETE,
    MADE,
    PLAIN,
    Network,
    Place,
    ReceiverRole,
    SenderRole,
    receivers_of,
    senders_of,
    settle_down,
    who_can,
)

STEPS = 50
TREATMENTS = ["balanced", "closest", "multicast"]
ADDRESSES = st.integers(0, 2)
PLACES = st.integers(0, 5)
RULES = [(False, name, name) for name in TREATMENTS]
REJECTED = Rejected(error=Error(condition="amqp:internal-error", description="no"))
STATES = [
    Accepted(),
    Accepted(),
    Released(),
    Rejected(),
    REJECTED,
    Modified(delivery_failed=True),
    Modified(undeliverable_here=True),
    Modified(),
    None,
]
# most termini end with their links
LIFETIMES = st.sampled_from(
    [
        None,
        None,
        None,
        (Policy.LINK_DETACH, 5),
        (Policy.SESSION_END, 20),
        (Policy.CONNECTION_CLOSE, 1000),
        (Policy.CONNECTION_CLOSE, 0),
        (Policy.NEVER, 0),
    ]
)
WAYS = st.sampled_from([ALL, ALL, PLAIN, FORGETS, INCOMPLETE])
DEFAULTS = st.none() | st.sampled_from([Released(), Rejected(), Modified(delivery_failed=True)])
SENDERS_MODES = st.sampled_from([2, 2, 0, 1])
# where, with how much credit, whether they await their sender's settlement, and for how long
FIRST_RECEIVERS = st.tuples(ADDRESSES, st.sampled_from([5, 1, 0]), st.booleans(), LIFETIMES)
# where, whether they settle second, and for how long
FIRST_SENDERS = st.tuples(ADDRESSES | st.none(), st.sampled_from([0, 0, 1]), LIFETIMES)
RECEIVERS_MODES = st.sampled_from([2, 2, 2, 0, 1])
GIVEN_BACK = [each for each in STATES if isinstance(each, GIVES_BACK)]
SIZES = st.sampled_from([0, 0, 0, 1, 50, 400, 440, 1000, 3000, 40_000, 250_000])
HEADERS = st.builds(
    Header,
    durable=st.booleans(),
    priority=st.sampled_from([4, 4, 0, 9]),
    ttl=st.sampled_from([None, None, 105, 255, 70_005]),
)
CUTS = st.lists(st.integers(1, 1200), min_size=1, max_size=4)
# what a peer takes, and what the router takes of it
PEERS = [
    {},
    {"max_frame_size": 512},
    {"window": 2, "max_frame_size": 512},
    {"window_limit": 3, "link_capacity": 5, "held_limit_bytes": 3000},
    {"max_frame_size": 4096, "link_capacity": 2, "window": 7},
]
LARGEST_FRAME = 60_000


class Model(RuleBasedStateMachine):
    """One router and its peers."""

    places = Bundle("places")
    senders = Bundle("senders")
    receivers = Bundle("receivers")

    def __init__(self) -> None:
        super().__init__()
        self.router = Router(RULES)
        self.ledger = Ledger(self.router, lambda name: name == "multicast")
        self.network = Network(self.router, self.ledger)
        self.heard: dict[Client, int] = {}
        self.names = 0

    @initialize(
        target=places,
        peers=st.lists(st.sampled_from(PEERS), min_size=6, max_size=6),
        addresses=st.lists(st.sampled_from([*TREATMENTS, DYNAMIC]), min_size=1, max_size=3),
        limit_bytes=st.sampled_from([1 << 30, 1 << 30, 6000]),
    )
    def begin(self, peers: list[dict[str, Any]], addresses: list[str], limit_bytes: int) -> Any:
        network = self.network
        network.addresses += addresses
        self.router.forwarder.backlog.limit_bytes = limit_bytes
        for number, its_settings in enumerate(peers):
            container = f"container-{number % 3}"
            network.places.append(Place(self.router, container, its_settings))
        return multiple(*network.places)

    # Links come: each is attached when it is first used.

    @initialize(target=senders, kinds=st.lists(FIRST_SENDERS, min_size=2, max_size=3))
    def first_senders(self, kinds: list[tuple[int | None, int, Any]]) -> Any:
        return multiple(
            *(
                self.new_sender(at, address, 2, second, lifetime)
                for at, (address, second, lifetime) in enumerate(kinds)
            )
        )

    @initialize(target=receivers, kinds=st.lists(FIRST_RECEIVERS, min_size=2, max_size=4))
    def first_receivers(self, kinds: list[tuple[int, int, bool, Any]]) -> Any:
        return multiple(
            *(
                self.new_receiver(5 - at, address, credit=credit, second=second, lifetime=lifetime)
                for at, (address, credit, second, lifetime) in enumerate(kinds)
            )
        )

    @rule(
        target=senders,
        at=PLACES,
        address=ADDRESSES | st.none(),
        mode=SENDERS_MODES,
        second=st.integers(0, 1),
        lifetime=LIFETIMES,
    )
    def attach_sender(
        self, at: int, address: int | None, mode: int, second: int, lifetime: Any
    ) -> SenderRole:
        return self.new_sender(at, address, mode, second, lifetime)

    @rule(
        target=receivers,
        at=PLACES,
        address=ADDRESSES,
        mode=RECEIVERS_MODES,
        second=st.booleans(),
        default=DEFAULTS,
        credit=st.integers(0, 5),
        lifetime=LIFETIMES,
    )
    def attach_receiver(
        self,
        at: int,
        address: int,
        mode: int,
        second: bool,
        default: Any,
        credit: int,
        lifetime: Any,
    ) -> ReceiverRole:
        role = self.new_receiver(at, address, mode, second, default, credit, lifetime)
        role.living()
        return role

    def new_sender(
        self,
        at: int,
        address: int | None,
        mode: int = 2,
        second: int = 0,
        lifetime: Any = None,
    ) -> SenderRole:
        self.names += 1
        name = f"link-{self.names}"
        fields = {"snd_settle_mode": mode, "rcv_settle_mode": second}
        role = SenderRole(self.network, at, name, address, fields, lifetime)
        self.network.senders.append(role)
        return role

    def new_receiver(
        self,
        at: int,
        address: int,
        mode: int = 2,
        second: bool = False,
        default: Any = None,
        credit: int = 0,
        lifetime: Any = None,
    ) -> ReceiverRole:
        self.names += 1
        name = f"link-{self.names}"
        fields = {"snd_settle_mode": mode, "rcv_settle_mode": int(second)}
        role = ReceiverRole(self.network, at, name, address, default, fields, credit, lifetime)
        self.network.receivers.append(role)
        return role

    # Messages.

    @rule(role=senders, size=SIZES, to=ADDRESSES, count=st.sampled_from([1, 2, 5]))
    def send(self, role: SenderRole, size: int, to: int, count: int) -> None:
        link = self.sender_of(role)
        for _ in range(count):
            self.send_one(link, to, size, settled=role.fields["snd_settle_mode"] == 1)

    @rule(role=senders, size=SIZES, to=ADDRESSES, header=HEADERS, settled=st.booleans())
    def send_with_header(
        self, role: SenderRole, size: int, to: int, header: Header, settled: bool
    ) -> None:
        self.send_one(self.sender_of(role), to, size, header, role.settles(settled=settled))

    @rule(role=senders, size=SIZES, to=ADDRESSES, header=HEADERS, settled=st.booleans(), cuts=CUTS)
    def send_in_frames(
        self,
        role: SenderRole,
        size: int,
        to: int,
        header: Header | None,
        settled: bool,
        cuts: list[int],
    ) -> None:
        self.send_one(self.sender_of(role), to, size, header, role.settles(settled=settled), cuts)

    @rule(role=senders, settled=st.booleans(), cuts=CUTS)
    def send_late(self, role: SenderRole, settled: bool, cuts: list[int]) -> None:
        # it may not have heard that its link was stolen
        for link in role.former:
            self.send_one(link, 0, 10, None, role.settles(settled=settled), cuts)

    def sender_of(self, role: SenderRole) -> SendingLink:
        """Its link, when the first receivers are there."""
        for each in self.network.receivers:
            if each.link is None:
                each.living()
        return who_can(self.network.senders, role, SendingLink.can_send).living()

    def send_one(
        self,
        link: SendingLink,
        to: int,
        size: int,
        header: Header | None = None,
        settled: bool = False,
        cuts: list[int] | None = None,
    ) -> None:
        """Send a message, or begin to, if the link can take one."""
        if not link.can_send() or self.ledger.to_resume.get(link) or link in self.ledger.held:
            # what it resumes comes first
            return
        address = self.network.address(to) if link.address is None else link.address
        places = [*(cuts or ()), *range(LARGEST_FRAME, size, LARGEST_FRAME)]
        self.ledger.send(link, address, size, cuts=places, header=header, settled=settled)
        self.ledger.look()

    @rule(role=senders, how=st.sampled_from(["resume", "resume", "settle", "abort"]))
    def resume(self, role: SenderRole, how: str) -> None:
        role = who_can(
            self.network.senders, role, lambda link: bool(self.ledger.to_resume.get(link))
        )
        self.ledger.resume(role.living(), how=how)

    @rule(role=senders, how=st.sampled_from(["all", "all", "one", "settle", "abort"]))
    def go_on(self, role: SenderRole, how: str) -> None:
        role = who_can(self.network.senders, role, lambda link: link.current is not None)
        link = role.living()
        while link.attached and link.current is not None and link.client.router_window > 0:
            if how == "abort":
                self.ledger.abort(link)
            else:
                self.ledger.go_on(link, settled=role.settles(settled=how == "settle"))
            if how != "all":
                break

    @rule(role=senders)
    def give_back(self, role: SenderRole) -> None:
        link = who_can(self.network.senders, role, lambda link: link.drain).living()
        if link.drain and link.credit > 0:
            link.give_back()

    @rule(role=senders, number=st.integers(0, 5), state=st.sampled_from([None, Accepted()]))
    def settle_as_sender(self, role: SenderRole, number: int, state: Any) -> None:
        link = role.living()
        waiting = [
            message
            for message in self.ledger.open
            if message.link is link
            and message.sending.link is link
            and message.sending.complete
            and not message.sending.is_over
        ]
        if waiting:
            self.ledger.settle_sent(waiting[number % len(waiting)], state)

    # What receivers say.

    @rule(role=receivers, count=st.sampled_from([1, 2, 100]))
    def accept(self, role: ReceiverRole, count: int) -> None:
        link = who_can(self.network.receivers, role, lambda link: link.unsettled).living()
        for received in list(link.unsettled.values())[:count]:
            if received.complete:
                self.say_of(link.client, received.number, received.number, Accepted(), True)

    @rule(role=receivers, credit=st.integers(1, 9))
    def grant_more(self, role: ReceiverRole, credit: int) -> None:
        link = role.living()
        link.grant(link.credit + credit)

    @rule(role=receivers, credit=st.integers(0, 9), drain=st.booleans())
    def grant(self, role: ReceiverRole, credit: int, drain: bool) -> None:
        link = role.living()
        # what it has not read yet may have taken more
        link.grant(credit if link.client.reads else max(credit, link.credit), drain=drain)

    @rule(
        role=receivers,
        state=st.sampled_from(STATES),
        settled=st.booleans(),
        count=st.sampled_from([1, 2, 100]),
        half=st.booleans(),
    )
    def say(self, role: ReceiverRole, state: Any, settled: bool, count: int, half: bool) -> None:
        role = who_can(self.network.receivers, role, lambda link: link.unsettled)
        link = role.living()
        if role.default_outcome is None and state is None and not settled:
            return
        for received in list(link.unsettled.values())[:count]:
            if received.complete or (half and self.is_known(link, received.number)):
                self.say_of(link.client, received.number, received.number, state, settled)

    @rule(role=receivers, state=st.sampled_from(GIVEN_BACK), settled=st.booleans())
    def give_to_the_next(self, role: ReceiverRole, state: Any, settled: bool) -> None:
        """Give back what has come, when the others have credit for it."""
        for receiver in receivers_of(self.router.clients):
            receiver.grant(receiver.credit + 1)
        link = who_can(self.network.receivers, role, lambda link: link.unsettled).living()
        for received in list(link.unsettled.values()):
            if received.complete:
                self.say_of(link.client, received.number, received.number, state, settled)

    @rule(
        place=places, state=st.sampled_from(STATES), settled=st.booleans(), skip=st.integers(0, 3)
    )
    def say_of_many(self, place: Place, state: Any, settled: bool, skip: int) -> None:
        client = place.client()
        numbers = sorted(
            number
            for link in client.links
            if isinstance(link, ReceivingLink)
            for number in link.unsettled
        )[skip:]
        known = []
        for number in numbers:
            if (id(client), number) not in self.ledger.arrivals:
                continue
            arrival = self.ledger.arrivals[id(client), number]
            if arrival.message is None or arrival.told is not UNTOLD:
                break
            known.append(number)
        if known:
            self.say_of(client, known[0], known[-1], state, settled)

    def is_known(self, link: ReceivingLink, number: int) -> bool:
        arrival = self.ledger.arrivals.get((id(link.client), number))
        return arrival is not None and arrival.message is not None

    def say_of(self, client: Client, first: int, last: int, state: Any, settled: bool) -> None:
        self.ledger.look()
        arrival = self.ledger.arrivals[id(client), first]
        if first == last and arrival.told is not UNTOLD:
            # it abides by what it has said
            state, settled = arrival.told, True
        self.ledger.tell(client, first, last, state, settled=settled)
        self.ledger.look()

    # Links and connections go.

    @rule(role=senders | receivers, closed=st.booleans())
    def detach(self, role: SenderRole | ReceiverRole, closed: bool) -> None:
        link = role.link
        if link is not None and link.attached and not link.client.over:
            link.detach(closed=closed)

    @rule(role=senders, step=st.integers(0, 1), address=ADDRESSES, stay=st.booleans(), how=WAYS)
    def steal_sender(self, role: SenderRole, step: int, address: int, stay: bool, how: str) -> None:
        if not stay:
            role.address = address
        role.attach(step, how)

    @rule(
        role=receivers,
        step=st.integers(0, 1),
        address=ADDRESSES,
        stay=st.booleans(),
        credit=st.integers(0, 5),
        how=WAYS,
        said=st.none() | st.sampled_from([Accepted(), Released()]),
    )
    def steal_receiver(
        self,
        role: ReceiverRole,
        step: int,
        address: int,
        stay: bool,
        credit: int,
        how: str,
        said: Any,
    ) -> None:
        if not stay:
            role.address = address
        role.attach(step, credit, how, said)

    @rule(
        role=senders | receivers,
        go=st.sampled_from(["detach", "lose", "end", "close"]),
        step=st.integers(0, 1),
        credit=st.integers(0, 5),
        how=WAYS,
    )
    def come_again(
        self, role: SenderRole | ReceiverRole, go: str, step: int, credit: int, how: str
    ) -> None:
        """Go in some way and be back at once."""
        link = role.link
        if link is not None and link.attached and not link.client.over:
            if go == "detach":
                link.detach(closed=False)
            else:
                self.leave(link.client, go)
            self.ledger.look()
        if isinstance(role, SenderRole):
            role.attach(step, how)
        else:
            role.attach(step, credit, how)

    @rule(place=places, how=st.sampled_from(["close", "lose", "lose", "end"]))
    def go(self, place: Place, how: str) -> None:
        self.leave(place.client(), how)

    def leave(self, client: Client, how: str) -> None:
        if how != "end":
            client.overhear()
        {"close": client.close, "lose": client.lose, "end": client.end}[how]()

    # Sockets, windows and time.

    @rule(place=places, what=st.sampled_from(["read", "stop", 30, 500, 5000]))
    def read(self, place: Place, what: str | int) -> None:
        client = place.client()
        client.read(reads=what == "read")
        if isinstance(what, int):
            client.read_some(what)

    @rule(place=places, window=st.sampled_from([0, 1, 3, 1000, 1000]))
    def open_window(self, place: Place, window: int) -> None:
        place.client().open_window(window)

    @rule(hundredths=st.integers(1, 20))
    def wait(self, hundredths: int) -> None:
        self.router.wait(hundredths / 100)

    @rule(seconds=st.sampled_from([1, 6, 61]))
    def wait_for_long(self, seconds: int) -> None:
        self.router.wait(seconds)

    # What must hold.

    @invariant()
    def holds(self) -> None:
        self.ledger.look()
        check_accounts(self.router)
        for client in self.router.clients:
            assert not client.connection.finished or client.over
            check_views(client)
            self.check_errors(client)
            for link in client.links:
                assert link.credit >= 0

    def check_errors(self, client: Client) -> None:
        """Nobody is told an error but for what was done to it."""
        for heard in client.heard[self.heard.get(client, 0) :]:
            if not isinstance(heard, Detach | End | Close) or heard.error is None:
                continue
            assert isinstance(heard, Detach), f"{heard}"
            link = next(each for each in client.links if each.detached is heard)
            if heard.error.condition == "amqp:link:stolen":
                assert link in self.ledger.stolen
            else:
                assert heard.error.condition == "amqp:resource-deleted"
                assert str(link.address).startswith(MADE)
        self.heard[client] = len(client.heard)

    def teardown(self) -> None:
        clients = self.router.clients
        self.come_back(self.network.senders[::2], self.network.receivers[::2])
        self.router.wait(61)
        self.ledger.look()
        # or their connections or sessions are still there
        self.come_back(self.network.senders, self.network.receivers)
        settle_down(clients, self.be_reasonable)
        self.holds()
        self.ledger.check_outcomes()
        self.check_everybody_can_send()
        self.ledger.check_outcomes()
        check_nothing_is_left(self.router, self.network.ends)

    def come_back(self, senders: list[SenderRole], receivers: list[ReceiverRole]) -> None:
        for sender in senders:
            if self.ledger.is_suspended(sender.link):
                sender.attach(0)
        for receiver in receivers:
            if self.ledger.is_suspended(receiver.link):
                receiver.attach(0, 5)
        self.ledger.look()

    def be_reasonable(self) -> None:
        clients = self.router.clients
        links = [role.link for role in self.network.senders]
        for link in [*links, *(role.link for role in self.network.receivers)]:
            if link is not None and link in self.ledger.held and link.attached:
                # its maps were not complete: it may have nothing new until they are
                link.detach(closed=False)
        self.come_back(self.network.senders, self.network.receivers)
        for receiver in receivers_of(clients):
            if receiver.credit < 100:
                receiver.grant(10_000)
        for sender in senders_of(clients):
            while self.ledger.resume(sender):
                pass
            while sender.current is not None and sender.client.router_window > 0:
                self.ledger.go_on(sender)
            if sender.drain and sender.credit > 0:
                sender.give_back()
        for message in list(self.ledger.open):
            sending = message.sending
            has_outcome = sending.states and isinstance(sending.states[-1], OUTCOMES)
            if has_outcome and sending.complete and not sending.is_over and not sending.settled:
                self.ledger.settle_sent(message, sending.states[-1])
        for receiver in receivers_of(clients):
            self.ledger.look()
            for number, received in list(receiver.unsettled.items()):
                if received.complete and number in receiver.unsettled:
                    self.say_of(receiver.client, number, number, Accepted(), settled=True)
        self.ledger.look()

    def check_everybody_can_send(self) -> None:
        """Whoever has receivers can send, and it arrives and is settled."""
        clients = self.router.clients
        addresses = {link.address for link in receivers_of(clients)}
        for sender in senders_of(clients):
            if sender.address is None or sender.address in addresses:
                assert sender.can_send(), f"credit {sender.credit} at {sender.address}"
            for _ in range(2):
                if sender.address is not None and sender.address in addresses:
                    self.send_one(sender, 0, 3)
                    self.be_reasonable()
                    assert self.ledger.messages[-1].sending.states[-1] == Accepted()
        # whoever settles second has not yet
        self.be_reasonable()


TestModel = Model.TestCase
TestModel.settings = settings(examples(150), stateful_step_count=STEPS)
