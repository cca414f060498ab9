"""Checks of exchanges and bindings: missing attributes, duplicates and loops.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from router.config.exchange_loops import Place, address_name
from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration


def _missing(configuration: Configuration, _: Data) -> Iterator[Finding]:
    needed = {
        "exchange": (configuration.exchanges, {"name": "name", "address": "address"}),
        "binding": (
            configuration.bindings,
            {"exchange_name": "exchangeName", "next_hop_address": "nextHopAddress"},
        ),
    }
    for entity, (every, attributes) in needed.items():
        for index, one in enumerate(every):
            for attribute, key in attributes.items():
                if getattr(one, attribute) is None:
                    yield Finding(
                        (entity, index, key),
                        "is missing",
                        "give one",
                        concerns=((entity, index, key),),
                    )


def _repeats(configuration: Configuration, _: Data) -> Iterator[Finding]:
    exchanges, bindings = configuration.exchanges, configuration.bindings
    yield from _same("exchange", "name", [each.name for each in exchanges], "is also the name of")
    # as in Dispatch, whatever the phase
    places = [each.address and address_name(each.address) for each in exchanges]
    yield from _same("exchange", "address", places, "is also the address of")
    same = [
        each.exchange_name
        and each.next_hop_address
        and (
            each.exchange_name,
            each.binding_key,
            address_name(each.next_hop_address),
            each.next_hop_phase,
        )
        for each in bindings
    ]
    told = "is, for the same exchange and key, also the next hop of"
    keys = ("exchangeName", "bindingKey", "nextHopPhase")
    found = list(_same("binding", "nextHopAddress", same, told, *keys))
    yield from found
    repeated = {finding.path[1] for finding in found}
    for finding in _same(
        "binding", "name", [each.name for each in bindings], "is also the name of"
    ):
        if finding.path[1] not in repeated:
            yield finding


def _same(
    entity: str, key: str, values: Sequence[Hashable], told: str, *others: str
) -> Iterator[Finding]:
    seen: dict[Hashable, int] = {}
    for index, value in enumerate(values):
        if value is None:
            continue
        first = seen.setdefault(value, index)
        if first != index:
            yield Finding(
                (entity, index, key),
                f"{told} {entity}[{first}]",
                "give each only once",
                shown=True,
                concerns=tuple(
                    (entity, at, each) for at in (first, index) for each in (key, *others)
                ),
            )


def _belonging(configuration: Configuration, _: Data) -> Iterator[Finding]:
    methods = {each.name: each.match_method for each in configuration.exchanges}
    for index, binding in enumerate(configuration.bindings):
        here: Path = ("binding", index)
        if binding.exchange_name is None:
            continue
        if binding.exchange_name not in methods:
            yield Finding(
                (*here, "exchangeName"),
                "names an exchange that does not exist",
                "give the name of a configured exchange",
                shown=True,
                concerns=((*here, "exchangeName"),),
            )
        elif methods[binding.exchange_name] == "mqtt" and _is_cut(binding.binding_key or ""):
            yield Finding(
                (*here, "bindingKey"),
                "has tokens after a #",
                "make # the last token, as matchMethod mqtt requires",
                shown=True,
                concerns=((*here, "bindingKey"),),
            )


def _is_cut(key: str) -> bool:
    return "#" in key.split("/")[:-1]


def _loops(configuration: Configuration, _: Data) -> Iterator[Finding]:
    """Yield a finding for each alternate or next-hop address that closes a loop of exchanges."""
    at: dict[Place, str] = {}
    leads: dict[str, list[tuple[Place, Path]]] = {}
    for index, exchange in enumerate(configuration.exchanges):
        if exchange.name is None or exchange.address is None:
            continue
        at.setdefault((address_name(exchange.address), exchange.phase), exchange.name)
        hops = leads.setdefault(exchange.name, [])
        if exchange.alternate_address is not None:
            place = (address_name(exchange.alternate_address), exchange.alternate_phase)
            hops.append((place, ("exchange", index, "alternateAddress")))
    for index, binding in enumerate(configuration.bindings):
        if binding.exchange_name in leads and binding.next_hop_address is not None:
            place = (address_name(binding.next_hop_address), binding.next_hop_phase)
            leads[binding.exchange_name].append((place, ("binding", index, "nextHopAddress")))
    for name, where in _closing(at, leads):
        phase = "alternatePhase" if where[2] == "alternateAddress" else "nextHopPhase"
        yield Finding(
            where,
            f"leads back to the exchange {name!r}, from which messages come here",
            "an exchange must not send to itself, not even through other exchanges",
            shown=True,
            concerns=(where, (*where[:2], phase)),
        )


def _closing(
    at: Mapping[Place, str], leads: Mapping[str, list[tuple[Place, Path]]]
) -> Iterator[tuple[str, Path]]:
    """Yield the exchange at each hop that closes a loop, and the path of that hop in the data.

    A hop is a place (address and phase) to which an exchange sends messages. `at` maps places to
    the exchanges there, and `leads` maps exchanges to their hops. The search is depth-first, and
    visits each exchange once.
    """
    done: set[str] = set()
    for start in leads:
        if start in done:
            continue
        on_the_way = {start: iter(leads[start])}
        while on_the_way:
            name, hops = next(reversed(on_the_way.items()))
            hop = next(hops, None)
            if hop is None:
                done.add(name)
                del on_the_way[name]
                continue
            place, where = hop
            following = at.get(place)
            if following in on_the_way:
                yield following, where
            elif following is not None and following not in done:
                on_the_way[following] = iter(leads[following])


EXCHANGE_CHECKS: Final = (_missing, _repeats, _belonging, _loops)
