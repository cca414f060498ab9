"""Checks of dead letter addresses, fallbacks, held messages and stuck receivers.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from router.config.kinds import address_tokens
from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration


def _dead_letters(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, address in enumerate(configuration.addresses):
        if address.dead_letter_address is None:
            continue
        here: Path = ("address", index, "deadLetterAddress")
        if address.distribution == "unavailable":
            yield Finding(
                here,
                "has no effect, because nothing can be sent to these addresses",
                "remove it, or give another distribution",
                shown=True,
                concerns=(("address", index, "distribution"),),
            )
        elif address_tokens(address.dead_letter_address) == address_tokens(address.pattern or ""):
            yield Finding(
                here,
                "must not be the address itself",
                "give another address",
                shown=True,
                concerns=(("address", index, "pattern"),),
            )


def _fallbacks(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, address in enumerate(configuration.addresses):
        if address.enable_fallback and (address.ingress_phase or address.egress_phase):
            yield Finding(
                ("address", index, "enableFallback"),
                "cannot be combined with a phase other than 0, which has no fallback",
                "remove it, or remove waypoint and the phases",
                shown=True,
                concerns=tuple(
                    ("address", index, key) for key in ("waypoint", "ingressPhase", "egressPhase")
                ),
            )


def _holds(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, address in enumerate(configuration.addresses):
        here: Path = ("address", index, "holdSeconds")
        if address.hold_seconds and configuration.router.mode != "edge":
            yield Finding(
                here,
                f"has no effect on a router whose mode is {configuration.router.mode}",
                "remove it; only edge routers hold messages",
                shown=True,
                concerns=(("router", "mode"),),
            )
        elif address.hold_seconds and address.distribution in ("multicast", "unavailable"):
            yield Finding(
                here,
                f"has no effect with the distribution {address.distribution}",
                "remove it, or give another distribution",
                shown=True,
                concerns=(("address", index, "distribution"),),
            )


def _stuck_receivers(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, address in enumerate(configuration.addresses):
        if address.stuck_receiver == "drop" and address.distribution != "multicast":
            yield Finding(
                ("address", index, "stuckReceiver"),
                f"has no effect with the distribution {address.distribution}",
                "remove it, or set the distribution to multicast",
                shown=True,
                concerns=(("address", index, "distribution"),),
            )


ADDRESS_CHECKS: Final[tuple[Callable[[Configuration, Data], Iterator[Finding]], ...]] = (
    _dead_letters,
    _fallbacks,
    _holds,
    _stuck_receivers,
)
"""Checks, in the order in which they run."""
