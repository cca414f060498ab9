"""Frames of fuzzing peers: frames that fit their place, and ways to spoil them."""

from __future__ import annotations

from typing import Any

from router.amqp.batches import BATCH_FORMAT
from router.amqp.constants import ReceiverSettleMode, SenderSettleMode, TerminusExpiryPolicy
from router.amqp.framing import encode_frame
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Open,
    Received,
    Rejected,
    Released,
    SaslInit,
    Source,
    Target,
    Transfer,
)
from router.amqp.transactions import Coordinator, Declared, TransactionalState
from router.amqp.types import Symbol

from fuzz.choices import Choices
from support.transcripts import OPAQUE, On, wire

ADDRESSES = ("other", "unavailable", "$cbs", "")

# A header with a ttl of 100 ms, in either width; properties with a `to`; plain data.
SECTIONS = (
    b"",
    bytes.fromhex("005370c0050340405264"),
    bytes.fromhex("005370c00803404070 00000064"),
    bytes.fromhex("005370c0020340"),
    bytes.fromhex("005373c00d034040a10862616c616e636564"),
    bytes.fromhex("005373d0000000100000000340 40b1000000056f74686572"),
    bytes.fromhex("005375a003616263"),
    # annotations, the router's own among them, and some cut short
    (
        b"\x00\x53\x72\xc1\x39\x06\xa3\x07x-opt-u\x54\x01\xa3\x0ex-opt-qd.trace\xc0\x04\x01\xa1\x01a"
        b"\xa3\x0bx-opt-qd.to\xa1\x08balanced"
    ),
    b"\x00\x53\x72\xd1\x00\x00\x00\x17\x00\x00\x00\x02\xa3\x0ex-opt-qd.trace\xa1\x01a",
    b"\x00\x53\x72\xc1\x17",
)


def state(choices: Choices) -> Any:
    """Return a delivery state of any kind, or None."""
    error = Error(condition=Symbol("amqp:internal-error"), description="x" * choices.below(600))
    return (
        Accepted(),
        Accepted(),
        None,
        Released(),
        Modified(delivery_failed=True),
        Rejected(error=error),
        Received(section_number=choices.below(4), section_offset=choices.below(100)),
        Declared(txn_id=b"t"),
        TransactionalState(txn_id=b"t", outcome=Accepted()),
    )[choices.below(9)]


def opening(choices: Choices) -> Open:
    """Return an open, usually with a small frame size so that messages are split."""
    return Open(
        # rarely the same as another's, or they would steal each other's links all the time
        f"peer {0 if choices.one_in(3) else choices.below(40)}",
        max_frame_size=511 if choices.wild() else choices.of((512, 600, 4096, 65536, 2**32 - 1)),
        channel_max=choices.mostly(65535, (1, 0)),
        idle_time_out=choices.mostly(None, (0, 1, 1000)),
    )


def begin(choices: Choices) -> Begin:
    """Return a begin whose window may be closed, with counters that may be about to wrap."""
    return Begin(
        remote_channel=choices.below(2) if choices.wild() else None,
        next_outgoing_id=choices.of((0, 2**32 - 2, 2**31 - 1)),
        incoming_window=choices.mostly(1000, (2, 1, 0, 2**32 - 1)),
        outgoing_window=choices.near(1000),
        handle_max=choices.mostly(2**32 - 1, (1, 0)),
    )


def attach(choices: Choices, handle: int, *, receives: bool) -> Attach:
    """Return an attach of either role to any address, or to none."""
    address = choices.mostly(choices.of(("balanced", "multicast", "closest")), ADDRESSES)
    dynamic = choices.mostly(False, (True,))
    anonymous = not receives and choices.mostly(False, (True,))
    lasts = lifetime(choices) if choices.one_in(2) else {}
    target: Any = Target(
        address=None if dynamic or anonymous else address, dynamic=dynamic, **lasts
    )
    source: Any = Source(address=None if dynamic else address, dynamic=dynamic, **lasts)
    if choices.wild():
        target = choices.of((None, Coordinator()))
    if choices.wild():
        source = None
    return Attach(
        name=f"link-{choices.near(handle)}",
        handle=choices.near(handle),
        role=receives,
        snd_settle_mode=SenderSettleMode(choices.mostly(2, (0, 1))),
        rcv_settle_mode=ReceiverSettleMode(choices.mostly(0, (1,))),
        source=source,
        target=target,
        initial_delivery_count=None if receives else 0,
        max_message_size=choices.mostly(None, (0, 100)),
        unsettled=unsettled(choices, receives=receives) if choices.one_in(2) else None,
        incomplete_unsettled=choices.mostly(False, (True,)),
    )


def lifetime(choices: Choices) -> dict[str, Any]:
    """Return the fields for a terminus's expiry, and for the lifetime of a dynamic node."""
    nodes = (
        None,
        {Symbol("lifetime-policy"): DeleteOnNoMessages()},
        {Symbol("lifetime-policy"): DeleteOnNoLinksOrMessages()},
    )
    return {
        "expiry_policy": choices.of(tuple(TerminusExpiryPolicy)),
        "timeout": choices.of((5, 1, 0, 2**32 - 1)),
        "dynamic_node_properties": choices.of(nodes),
    }


def unsettled(choices: Choices, *, receives: bool) -> dict[bytes, Any]:
    """Return an unsettled map, with tags of the peer's own or such as the router makes."""
    states = [state(choices) for _ in range(choices.below(6))]
    return {old_tag(choices, receives=receives): each for each in states}


def old_tag(choices: Choices, *, receives: bool) -> bytes:
    """Return the tag of a delivery that may have existed."""
    number = choices.below(8)
    return (number + 1).to_bytes(8, "big") if receives else b"%d" % number


def payload(choices: Choices, *, first: bool) -> bytes:
    """Return octets of a message: in a first frame some sections, and up to 3000 octets of body."""
    sections = {each[:3]: each for each in (choices.of(SECTIONS), choices.of(SECTIONS))}
    head = b"".join(sections[each] for each in sorted(sections)) if first else b""
    size = choices.of((0, 10, 100, 700, 3000))
    if choices.wild():
        return head + choices.of(SECTIONS) + b"x" * size
    return head + (b"\0\x53\x75\xb0" + size.to_bytes(4, "big") + b"x" * size if size else b"")


def transfer(choices: Choices, handle: int, number: int, *, first: bool, more: bool) -> On:
    """Return a transfer of a delivery, new or resumed."""
    resumes = choices.wild() or (first and choices.one_in(6))
    tag = old_tag(choices, receives=False) if resumes else b"%d" % number
    frame = Transfer(
        choices.near(handle),
        delivery_id=choices.near(number) if first or choices.wild() else None,
        delivery_tag=tag if first or choices.wild() else None,
        message_format=choices.mostly(0, (OPAQUE, None, BATCH_FORMAT, 2**32 - 1)),
        settled=choices.mostly(False, (None, True)),
        more=more,
        rcv_settle_mode=choices.mostly(None, tuple(ReceiverSettleMode)),
        state=state(choices) if choices.wild() else None,
        resume=resumes,
        aborted=choices.mostly(False, (False, True)),
        batchable=choices.wild(),
    )
    octets = payload(choices, first=first)
    if frame.message_format == BATCH_FORMAT and not choices.wild():
        octets = batch(choices, octets)
    return On(0, frame, octets)


def batch(choices: Choices, message: bytes) -> bytes:
    """Return some octets of a batch of messages, most of which are alike."""
    count = choices.of((1, 2, 20, 600))
    data = b"\0\x53\x75\xb0" + len(message).to_bytes(4, "big") + message
    return choices.of(SECTIONS)[: choices.of((0, 100))] + (data * count)[:3000]


def disposition(choices: Choices, first: int, last: int, *, receives: bool) -> Disposition:
    """Return a disposition with a state for a range of deliveries."""
    return Disposition(
        receives,
        choices.near(first),
        choices.near(last),
        settled=choices.mostly(True, (False,)),
        state=choices.of((Accepted(), state(choices))),
        batchable=choices.wild(),
    )


def flow(choices: Choices, session: dict[str, int], link: dict[str, int] | None) -> Flow:
    """Return a flow with the session's numbers, and with a link's if one is given."""
    fields: dict[str, Any] = {name: choices.near(value) for name, value in session.items()}
    if choices.wild():
        fields["next_incoming_id"] = None
    if link is not None:
        fields |= {name: choices.near(value) for name, value in link.items()}
        fields["drain"] = choices.mostly(False, (True,))
        fields["available"] = choices.near(0)
    return Flow(**fields, echo=choices.mostly(False, (True,)))


def rare(choices: Choices) -> On:
    """Return a frame that ends a connection or session, or that fits no place."""
    error = Error(condition=Symbol("amqp:internal-error"), description="so it goes")
    channel = choices.of((0, 0, 0, 1, 65535))
    return On(
        channel,
        choices.of(
            (
                End(),
                End(error=error),
                Close(),
                Close(error=error),
                begin(choices),
                opening(choices),
                Detach(choices.below(4), closed=choices.one_in(2), error=error),
                SaslInit(mechanism=Symbol("ANONYMOUS")),
            )
        ),
    )


def spoil(choices: Choices, octets: bytes) -> bytes:
    """Return a frame with octets changed, cut, inserted or repeated, its size correct or not."""
    result = bytearray(octets)
    way = choices.below(6)
    place = choices.below(len(result)) if result else 0
    if way == 0 and result:
        result[place] = choices.octet()
    elif way == 1 and result:
        for _ in range(1 + choices.below(4)):
            result[choices.below(len(result))] ^= 1 << choices.below(8)
    elif way == 2:
        del result[place : place + 1 + choices.below(8)]
    elif way == 3:
        result[place:place] = choices.octets(8)
    elif way == 4:
        result = result[:place]
    else:
        return octets + octets
    if choices.one_in(2) or len(result) < 8:
        return bytes(result)
    return len(result).to_bytes(4, "big") + bytes(result[4:])


def junk(choices: Choices) -> bytes:
    """Return a frame whose body comes straight from the script."""
    return encode_frame(choices.below(3), None, choices.octets(40))


__all__ = [
    "ADDRESSES",
    "attach",
    "begin",
    "disposition",
    "flow",
    "junk",
    "opening",
    "rare",
    "spoil",
    "transfer",
    "wire",
]
