"""Live state of configured exchanges and bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from router.config.exchanges import BindingSettings, ExchangeSettings
from router.core.addresses.bindings import Binding, Exchange
from router.management.entities.attributes import AttributesOf
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
    return LiveEntity(settings, its and its.binding_set.by_name.get(settings.name))


def _known(router: RouterView) -> Mapping[str, Exchange]:
    return router.observed.forwarder.exchanges.by_name


def _of_exchange(read: Callable[[Exchange], object]) -> Callable[[object], object]:
    return live_reader(Exchange, read)


EXCHANGE_STATE: Final = tuple(
    AttributesOf[object].integers(
        (
            (
                "bindingCount",
                "Number of its bindings.",
                _of_exchange(lambda state: len(state.bindings)),
            ),
            (
                "receivedCount",
                "Deliveries that came in for it.",
                _of_exchange(lambda state: state.received),
            ),
            (
                "droppedCount",
                "Deliveries that were dropped because nobody received them.",
                _of_exchange(lambda state: state.dropped),
            ),
            (
                "forwardedCount",
                "Deliveries that were forwarded to at least one receiver.",
                _of_exchange(lambda state: state.forwarded),
            ),
            (
                "divertedCount",
                "Deliveries among these that went to the alternate address.",
                _of_exchange(lambda state: state.diverted),
            ),
        )
    )
)

BINDING_STATE: Final = tuple(
    AttributesOf[object].integers(
        (
            (
                "matchedCount",
                "Deliveries that matched its key.",
                live_reader(Binding, lambda state: state.matched),
            ),
        )
    )
)
