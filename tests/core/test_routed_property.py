"""Whatever two peers say on a routed link, each hears what it would hear from the other itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from router.amqp.constants import ReceiverSettleMode
from router.amqp.performatives import (
    Accepted,
    Detach,
    Disposition,
    Flow,
    Modified,
    Received,
    Rejected,
    Released,
    TransactionalState,
    Transfer,
)
from router.amqp.types import Described, Symbol

from support.examples import examples
from support.routed import EDGES, Pair, receiver, sender
from support.transcripts import On

STATES: list[Any] = [
    Accepted(),
    Rejected(),
    Released(),
    Modified(delivery_failed=True),
    Received(0, 3),
    TransactionalState(b"tx", Released()),
    Described(Symbol("of-mine:list"), [1]),
    None,
]
FIRST = {
    "settled": st.booleans(),
    "more": st.booleans(),
    "aborted": st.sampled_from([False, False, False, True]),
    "batchable": st.booleans(),
    "resume": st.sampled_from([False, False, True]),
    "message_format": st.sampled_from([0, 7]),
    "rcv_settle_mode": st.sampled_from([None, *ReceiverSettleMode]),
    "state": st.sampled_from(STATES),
}
LATER = {"more": st.booleans(), "aborted": st.booleans(), "settled": st.booleans()}
STEPS = st.one_of(
    st.tuples(st.just("transfer"), st.fixed_dictionaries(FIRST), st.fixed_dictionaries(LATER)),
    st.tuples(
        st.just("receiver says"), st.integers(0, 9), st.integers(0, 3), st.booleans(),
        st.sampled_from(STATES),
    ),
    st.tuples(
        st.just("sender says"), st.integers(0, 9), st.integers(0, 3), st.booleans(),
        st.sampled_from(STATES),
    ),
    st.tuples(st.just("credit"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("window"), st.integers(0, 3)),
)  # fmt: skip


class Link:
    """Both ends of one link, which compare what they hear with what was said."""

    def __init__(
        self, mode: ReceiverSettleMode, initial: int, *, client_sends: bool, routers: int = 1
    ) -> None:
        self.pair = Pair(routers=routers)
        self.client_sends = client_sends
        if client_sends:
            self.pair.attach(sender(rcv_settle_mode=mode, initial_delivery_count=initial))
        else:
            self.pair.attach(receiver(rcv_settle_mode=mode), initial_delivery_count=initial)
        self.initial = initial
        # the sender's and the receiver's view of the link, and what they have said
        self.credit = 0
        self.drain = False
        self.begun = 0
        self.current: int | None = None
        self.arrived = 0
        self.frames_heard = 0
        self.said: list[tuple[Transfer, bytes]] = []
        self.heard: list[tuple[Transfer, bytes]] = []
        # by which side a delivery is settled, and the dispositions that are to be heard
        self.settled: set[int] = set()
        self.awaited: dict[bool, list[Any]] = {True: [], False: []}
        self.came: dict[bool, list[Any]] = {True: [], False: []}
        self.limit = initial
        self.window_end = 10000

    # Saying.

    def say(self, by_sender: bool, said: Any, payload: bytes | None = None) -> None:
        """Have one end say something, and both listen."""
        if by_sender is self.client_sends:
            self.pair.client >> On(0, said, payload)
        else:
            self.pair.from_container(said, payload)
        self.listen()

    def listen(self) -> None:
        """Hear all that there is to hear."""
        for peer, is_sender in (
            (self.pair.client, self.client_sends),
            (self.pair.container, not self.client_sends),
        ):
            for each in peer.frames():
                self.hear(is_sender, each.performative, each.payload or b"")

    def hear(self, is_sender: bool, frame: Any, payload: bytes) -> None:
        """One end hears a frame."""
        match frame:
            case Transfer():
                assert not is_sender
                self.heard.append((frame, payload))
                self.frames_heard += 1
                if frame.delivery_id is not None:
                    self.arrived += 1
            case Disposition():
                first = int(frame.first)
                last = first if frame.last is None else int(frame.last)
                for number in range(first, last + 1):
                    self.came[is_sender].append((number, frame.settled, frame.state))
            case Flow() if frame.handle is not None and is_sender:
                ahead = (self.initial + self.begun - int(frame.delivery_count or 0)) % 2**32
                self.credit = int(frame.link_credit or 0) - ahead
                self.drain = frame.drain
            case Detach():
                raise AssertionError(f"detached: {frame}")

    # What can be said.

    def transfer(self, first: dict[str, Any], later: dict[str, Any]) -> None:
        """Send a frame as the sender: of the delivery under way, or of a new one."""
        if self.current is None:
            if self.credit <= 0:
                return
            number = self.begun
            self.begun += 1
            self.credit -= 1
            if first["aborted"]:
                first = {**first, "more": False}
            frame = Transfer(0, number, b"tag %d" % number, **first)
        else:
            number = self.current
            if later["aborted"]:
                later = {**later, "more": False}
            if number in self.settled:
                later = {**later, "settled": True}
            frame = Transfer(0, **later)
        payload = b"" if frame.aborted else b"%d." % len(self.said)
        self.said.append((frame, payload))
        self.current = number if frame.more else None
        if frame.settled or frame.aborted:
            self.settled.add(number)
        self.say(True, frame, payload)

    def state(self, by_sender: bool, start: int, width: int, settled: bool, state: Any) -> None:
        """One end tells the state of some deliveries that it knows."""
        known = self.begun if by_sender else self.arrived
        first = max(0, known - 1 - start)
        last = min(known - 1, first + width)
        if last < first or (state is None and not settled):
            return
        if self.arrived < self.begun or normal(self.heard)[-1] != normal(self.said)[-1]:
            # what has not arrived as a whole is told it with its transfer: another test's matter
            return
        for number in range(first, last + 1):
            if number not in self.settled:
                self.awaited[not by_sender].append((number, settled, state))
                if settled:
                    self.settled.add(number)
        self.say(by_sender, Disposition(not by_sender, first, last, settled, state))

    def grant(self, credit: int, drain: bool) -> None:
        """Give credit as the receiver, from its delivery-count."""
        count = (self.initial + self.arrived) % 2**32
        self.limit = (count + credit) % 2**32
        self.say(False, self._flow(handle=0, delivery_count=count, link_credit=credit, drain=drain))

    def window(self, size: int) -> None:
        """Open the receiver's session window for `size` frames, or close it."""
        self.window_end = self.frames_heard + size
        self.say(False, self._flow())

    def _flow(self, **fields: Any) -> Flow:
        return Flow(
            next_incoming_id=self.frames_heard,
            incoming_window=self.window_end - self.frames_heard,
            next_outgoing_id=0,
            outgoing_window=10000,
            **fields,
        )

    def finish(self) -> None:
        """Open all windows, and compare."""
        self.window_end = self.frames_heard + 10000
        self.say(False, self._flow())
        # what was sent before its credit was taken back waits for this
        waiting = self.begun - self.arrived
        self.grant(10000, False)
        assert normal(self.heard) == normal(self.said)
        assert self.came == self.awaited
        assert self.credit == 10000 - waiting
        assert self.arrived == self.begun
        assert not any(each.forwarder.backlog.held_bytes for each in self.pair.routers)


def normal(frames: list[tuple[Transfer, bytes]]) -> list[Any]:
    """Deliveries as they were in the end, whatever the frames: what waits may leave as one."""
    found: list[dict[str, Any]] = []
    for frame, payload in frames:
        if frame.delivery_id is not None:
            found.append(
                {
                    "tag": frame.delivery_tag,
                    "format": frame.message_format,
                    "mode": frame.rcv_settle_mode,
                    "state": frame.state,
                    "resume": frame.resume,
                    "batchable": frame.batchable,
                    "octets": b"",
                    "settled": False,
                    "aborted": False,
                    "complete": False,
                }
            )
        delivery = found[-1]
        delivery["octets"] += payload
        delivery["settled"] = delivery["settled"] or frame.settled or frame.aborted
        delivery["aborted"] = frame.aborted
        delivery["complete"] = not frame.more
    for delivery in found:
        if delivery["aborted"]:
            # how much of it left before is up to the windows; nobody awaits a state of it
            delivery["octets"] = b""
            delivery["batchable"] = False
    return found


@examples(150)
@given(
    steps=st.lists(STEPS, max_size=30),
    mode=st.sampled_from(ReceiverSettleMode),
    initial=st.sampled_from([0, 1, 2**32 - 3]),
    client_sends=st.booleans(),
    routers=st.sampled_from([1, 1, 2, 3, EDGES]),
)
def test_what_goes_through_routers_is_what_was_said(
    steps: list[Any], mode: ReceiverSettleMode, initial: int, client_sends: bool, routers: int
) -> None:
    link = Link(mode, initial, client_sends=client_sends, routers=routers)
    link.grant(5, False)
    for step in steps:
        match step:
            case ("transfer", first, later):
                link.transfer(first, later)
            case ("receiver says", start, width, settled, state):
                link.state(False, start, width, settled, state)
            case ("sender says", start, width, settled, state):
                link.state(True, start, width, settled, state)
            case ("credit", credit, drain):
                link.grant(credit, drain)
            case ("window", size):
                link.window(size)
    link.finish()


def test_the_ends_that_are_compared_are_of_one_link() -> None:
    link = Link(ReceiverSettleMode.FIRST, 0, client_sends=True)
    link.grant(1, False)
    assert link.credit == 1
    link.transfer({"more": False, "settled": False, "aborted": False}, {})
    assert [each[0].delivery_tag for each in link.heard] == [b"tag 0"]
