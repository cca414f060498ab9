"""Exchanges and bindings in the configuration, which route messages by their subjects."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.setting import checked, setting

MatchMethod = Literal["amqp", "mqtt"]

_NAME: Final = kinds.text(512)
_NEEDED: Final = "none; required"


@attrs.frozen(kw_only=True, field_transformer=checked)
class ExchangeSettings:
    """An address whose messages are routed by their subjects, according to its bindings."""

    name: str | None = attrs.field(
        default=None,
        metadata=setting(
            _NAME,
            "The exchange's name, in management and for its bindings.",
            default=_NEEDED,
            required=True,
        ),
    )
    address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address(), "The address that clients send to.", default=_NEEDED, required=True
        ),
    )
    phase: int = attrs.field(
        default=0, metadata=setting(kinds.phase(), "The phase of the address.")
    )
    alternate_address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address(),
            "The address for messages that have no receivers at the next hops of the bindings.",
            default="none; they are released",
        ),
    )
    alternate_phase: int = attrs.field(
        default=0, metadata=setting(kinds.phase(), "The phase of the alternateAddress.")
    )
    match_method: MatchMethod = attrs.field(
        default="amqp",
        metadata=setting(
            kinds.choice(get_args(MatchMethod)),
            "How keys match: tokens between full stops, with * for one and # for any number "
            "(amqp), or between slashes, with + for one and # at the end for any number (mqtt).",
        ),
    )


def _name_from_hop(self: BindingSettings) -> str:
    hop = self.next_hop_address
    if self.next_hop_phase:
        hop = f"{hop}/{self.next_hop_phase}"
    return f"binding/{self.exchange_name}/{self.binding_key or ''}/{hop}"


@attrs.frozen(kw_only=True, field_transformer=checked)
class BindingSettings:
    """A rule by which an exchange routes matching messages to an address."""

    exchange_name: str | None = attrs.field(
        default=None,
        metadata=setting(_NAME, "The name of the exchange.", default=_NEEDED, required=True),
    )
    binding_key: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(kinds.LONGEST_ADDRESS),
            "The key that the subjects of messages are matched against, by the exchange's "
            "matchMethod.",
            default="none; all messages match",
        ),
    )
    next_hop_address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address(),
            "The address that matching messages go to.",
            default=_NEEDED,
            required=True,
        ),
    )
    next_hop_phase: int = attrs.field(
        default=0, metadata=setting(kinds.phase(), "The phase of the nextHopAddress.")
    )
    name: str = attrs.field(
        default=attrs.Factory(_name_from_hop, takes_self=True),
        metadata=setting(
            kinds.text(2048),
            "The entity's name in management.",
            default="binding/exchangeName/bindingKey/nextHopAddress, and /nextHopPhase if not 0",
        ),
    )
