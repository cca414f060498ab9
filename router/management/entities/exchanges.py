"""Live state of configured exchanges and bindings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from router.config.exchanges import BindingSettings, ExchangeSettings
from router.core.addresses.bindings import Exchange
from router.management.entities.attributes import integers
from router.management.schema import LiveEntity, live_reader
from router.management.views import RouterView


def exchanges(router: RouterView) -> Iterator[LiveEntity]:
    """Return the configured exchanges, with their live states."""
    return (exchange(router, settings) for settings in router.configuration.exchanges)


def exchange(router: RouterView, settings: ExchangeSettings) -> LiveEntity:
    """Return a configured exchange, with its live state."""
    return LiveEntity(settings, _known(router).get(settings.name or ""))


def bindings(router: RouterView) -> Iterator[LiveEntity]:
    """Return the configured bindings, with their live states."""
    return (binding(router, settings) for settings in router.configuration.bindings)


def binding(router: RouterView, settings: BindingSettings) -> LiveEntity:
    """Return a configured binding, with its live state."""
    its = _known(router).get(settings.exchange_name or "")
    return LiveEntity(settings, its and its.bound.by_name.get(settings.name))


def _known(router: RouterView) -> Mapping[str, Exchange]:
    known: Mapping[str, Exchange] = router.observed.forwarder.exchanges.by_name
    return known


def _count(of: str) -> Any:
    return live_reader(lambda state: int(getattr(state, of)))


EXCHANGE_STATE: Final = tuple(
    integers(
        (
            ("bindingCount", "Its bindings.", live_reader(lambda state: len(state.bindings))),
            ("receivedCount", "Deliveries that came in for it.", _count("received")),
            ("droppedCount", "Deliveries that nobody received.", _count("dropped")),
            ("forwardedCount", "Deliveries that were received.", _count("forwarded")),
            ("divertedCount", "Of these, those at the alternate address.", _count("diverted")),
        )
    )
)

BINDING_STATE: Final = tuple(
    integers((("matchedCount", "Deliveries that matched its key.", _count("matched")),))
)
