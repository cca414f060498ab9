"""What has become of exchanges and bindings, told beside what is configured of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from router.core.exchanges import Binding, Exchange
from router.management.entities.attributes import integers
from router.management.schema import Live, told_live
from router.management.views import RouterView


def exchanges(router: RouterView) -> Iterator[Live]:
    """The exchanges that are configured."""
    known = _known(router)
    for settings in router.configuration.exchanges:
        yield Live(settings, known.get(settings.name or ""))


def bindings(router: RouterView) -> Iterator[Live]:
    """The bindings that are configured."""
    known: dict[str, Binding] = {
        binding.rule.name: binding
        for exchange in _known(router).values()
        for binding in exchange.bindings
    }
    for settings in router.configuration.bindings:
        yield Live(settings, known.get(settings.name))


def _known(router: RouterView) -> dict[str, Exchange]:
    known: dict[str, Exchange] = router.observed.forwarder.exchanges.by_name
    return known


def _count(of: str) -> Any:
    return told_live(lambda state: int(getattr(state, of)))


EXCHANGE_STATE: Final = tuple(
    integers(
        (
            ("bindingCount", "Its bindings.", told_live(lambda state: len(state.bindings))),
            ("receivedCount", "Deliveries that came in for it.", _count("received")),
            ("droppedCount", "Those that nobody received.", _count("dropped")),
            ("forwardedCount", "Those that somebody received.", _count("forwarded")),
            ("divertedCount", "Of these, those at the alternate address.", _count("diverted")),
        )
    )
)

BINDING_STATE: Final = tuple(
    integers((("matchedCount", "Deliveries that matched its key.", _count("matched")),))
)
