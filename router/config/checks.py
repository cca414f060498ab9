"""Cross checks: duplicates, attributes that need or exclude each other, unreadable files.

Each check yields the findings of one rule. It gets a configuration in which each value is valid by
itself, and the parsed data, which shows whether an attribute was given or has its default.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path as FilePath
from typing import Final

from router.config.address_checks import ADDRESS_CHECKS
from router.config.auto_link_checks import AUTO_LINK_CHECKS
from router.config.claims_checks import CLAIMS_CHECKS
from router.config.connector_checks import CONNECTOR_CHECKS
from router.config.container_checks import CONTAINER_CHECKS
from router.config.exchange_checks import EXCHANGE_CHECKS
from router.config.http_checks import HTTP_CHECKS
from router.config.kinds import tokens_covered
from router.config.link_route_checks import LINK_ROUTE_CHECKS
from router.config.listeners import ListenerSettings
from router.config.mistakes import Data, Finding, InvalidConfiguration, Mistake, Path
from router.config.model import AddressSettings, Configuration
from router.config.network_checks import NETWORK_CHECKS
from router.config.plugin_checks import PLUGIN_CHECKS
from router.config.policy_checks import POLICY_CHECKS
from router.config.proxy_checks import PROXY_CHECKS
from router.config.redirects import RedirectSettings
from router.config.scram import MECHANISMS as SCRAM
from router.config.ssl_checks import SSL_CHECKS
from router.config.users import load_users

Check = Callable[[Configuration, Data], Iterator[Finding]]

# Maximum number of earlier equal entities that each duplicate is compared with.
MAX_DUPLICATES_COMPARED: Final = 3


def find_contradictions(configuration: Configuration, data: Data) -> Iterator[Finding]:
    """Yield a finding for each mistake in how the values of `configuration` fit together.

    The configuration was built from `data`.
    """
    for check in _CHECKS:
        yield from check(configuration, data)


def users_file_mistakes(configuration: Configuration) -> Iterator[Mistake]:
    """Yield the mistakes in the users files of listeners; unreadable files are skipped."""
    paths = {
        listener.users_file: None
        for listener in configuration.listeners
        if listener.users_file is not None and listener.serves_amqp
    }
    for path in paths:
        if _unreadable(path):
            continue
        try:
            load_users(path)
        except InvalidConfiguration as invalid:
            yield from invalid.mistakes


def _listener_sockets(configuration: Configuration, _: Data) -> Iterator[Finding]:
    listeners = configuration.listeners
    for index, first in _repeats([(one.host.lower(), one.port) for one in listeners]):
        if _collide(listeners[first], listeners[index]):
            host, port = listeners[index].host, listeners[index].port
            yield Finding(
                ("listener", index, "port"),
                f"is taken: listener[{first}] also listens on {host}:{port}",
                "give another port or another host",
                shown=True,
                concerns=tuple(
                    ("listener", at, key)
                    for at in (first, index)
                    for key in ("host", "port", "socketAddressFamily")
                ),
            )


def _collide(one: ListenerSettings, other: ListenerSettings) -> bool:
    """Return whether two listeners with the same host and port need the same socket."""
    families = {one.socket_address_family, other.socket_address_family}
    return one.port != 0 and (len(families) == 1 or None in families)


def _listener_names(configuration: Configuration, data: Data) -> Iterator[Finding]:
    listeners = configuration.listeners
    for index, first in _repeats([listener.name for listener in listeners]):
        # Unnamed listeners that need the same socket are reported by _listener_sockets.
        given = _given("listener", (first, index), "name", data)
        if given or not _collide(listeners[first], listeners[index]):
            yield _same_name("listener", index, first, given=given)


def _connector_names(configuration: Configuration, data: Data) -> Iterator[Finding]:
    for index, first in _repeats([connector.name for connector in configuration.connectors]):
        given = _given("connector", (first, index), "name", data)
        yield _same_name("connector", index, first, given=given)


def _address_names(configuration: Configuration, data: Data) -> Iterator[Finding]:
    for index, first in _repeats([address.name for address in configuration.addresses]):
        # Without names, two addresses have the same name only if they are duplicates, which
        # is found anyway.
        if _given("address", (first, index), "name", data):
            yield _same_name("address", index, first, given=True)


def _given(entity: str, indices: tuple[int, int], key: str, data: Data) -> bool:
    return any(key in data[entity][index] for index in indices)


def _same_name(entity: str, index: int, first: int, *, given: bool) -> Finding:
    return Finding(
        (entity, index, "name"),
        f"is also the name of {entity}[{first}]"
        if given
        else f"is missing, and {entity}[{first}] has none either on the same host and port",
        "give each its own name",
        shown=given,
        concerns=tuple(
            (entity, at, key) for at in (first, index) for key in ("name", "host", "port")
        ),
    )


def _address_forms(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, address in enumerate(configuration.addresses):
        if (address.prefix is None) != (address.pattern is None):
            continue
        concerns: tuple[Path, ...] = (("address", index, "prefix"), ("address", index, "pattern"))
        if address.prefix is None:
            yield Finding(
                ("address", index),
                "does not say which addresses it covers",
                "give a prefix or a pattern",
                concerns=concerns,
            )
        else:
            yield Finding(
                ("address", index, "pattern"),
                "cannot be combined with a prefix",
                "give one of the two",
                shown=True,
                concerns=concerns,
            )


def _address_repeats(configuration: Configuration, _: Data) -> Iterator[Finding]:
    covered = [_covered(address) for address in configuration.addresses]
    for index, first in _repeats(covered):
        key = "pattern" if configuration.addresses[index].prefix is None else "prefix"
        yield Finding(
            ("address", index, key),
            f"covers the same addresses as address[{first}]",
            "give each address only once",
            shown=True,
            concerns=tuple(
                ("address", at, key) for at in (first, index) for key in ("prefix", "pattern")
            ),
        )


def _covered(address: AddressSettings | RedirectSettings) -> tuple[str, ...] | None:
    """Return the prefix or pattern of an address or redirect as tokens; see `tokens_covered`."""
    return tokens_covered(address.prefix, address.pattern)


def _redirect_forms(configuration: Configuration, data: Data) -> Iterator[Finding]:
    for index, redirect in enumerate(configuration.redirects):
        here: Path = ("redirect", index)
        concerns: tuple[Path, ...] = tuple(
            (*here, key) for key in ("prefix", "pattern", "hostname")
        )
        given = data["redirect"][index]
        keys = [key for key in ("prefix", "pattern", "hostname") if key in given]
        if not keys:
            yield Finding(
                here,
                "does not say what to redirect",
                "give a prefix, a pattern or a hostname",
                concerns=concerns,
            )
        for key in keys[1:]:
            yield Finding(
                (*here, key),
                f"cannot be combined with a {keys[0]}",
                "give one of prefix, pattern and hostname",
                shown=True,
                concerns=concerns,
            )
        if redirect.to_network_host is None:
            yield Finding(
                (*here, "toNetworkHost"),
                "is missing",
                "give the host that clients are to connect to",
                concerns=((*here, "toNetworkHost"),),
            )
        if redirect.to_path is not None and redirect.to_scheme in ("amqp", "amqps"):
            yield Finding(
                (*here, "toPath"),
                f"has no effect with the toScheme {redirect.to_scheme}",
                "remove it, or give the toScheme ws or wss",
                shown=True,
                concerns=((*here, "toScheme"),),
            )
        if keys == ["hostname"]:
            for key in ("direction", "toAddress"):
                if key in given:
                    yield Finding(
                        (*here, key),
                        "has no effect on connections",
                        "remove it, or give a prefix or a pattern instead of the hostname",
                        shown=True,
                        concerns=concerns,
                    )


def _redirect_repeats(configuration: Configuration, _: Data) -> Iterator[Finding]:
    redirects = configuration.redirects
    of_hosts = [one.hostname and one.hostname.lower() for one in redirects]
    found: dict[int, tuple[int, str]] = {}
    for index, first in _repeats(of_hosts):
        found.setdefault(index, (first, "hostname"))
    for index, first in _repeats([_covered(one) for one in redirects]):
        directions = {redirects[index].direction, redirects[first].direction}
        # one redirect for each direction is not a duplicate
        if directions != {"in", "out"}:
            key = "pattern" if redirects[index].prefix is None else "prefix"
            found.setdefault(index, (first, key))
    for index, (first, key) in found.items():
        yield Finding(
            ("redirect", index, key),
            f"redirects the same as redirect[{first}]",
            "give each only once per direction" if key != "hostname" else "give each host once",
            shown=True,
            concerns=tuple(
                ("redirect", at, key)
                for at in (first, index)
                for key in ("prefix", "pattern", "hostname", "direction")
            ),
        )


def _listener_sasl(configuration: Configuration, _: Data) -> Iterator[Finding]:
    # shared access keys are passwords as well
    without_passwords = {each.name for each in configuration.claims if not each.shared_access_keys}
    for index, listener in enumerate(configuration.listeners):
        if not listener.serves_amqp:
            continue
        here: Path = ("listener", index)
        mechanisms: Path = (*here, "saslMechanisms")
        scram = any(each in SCRAM for each in listener.sasl_mechanisms)
        plain = scram or "PLAIN" in listener.sasl_mechanisms
        # passwords for PLAIN, but not for SCRAM, may also be checked by a plugin or by claims
        has_others = listener.authentication_plugin is not None or (
            listener.claims is not None and listener.claims not in without_passwords
        )
        needs_users = scram or (plain and not has_others)
        if needs_users and listener.users_file is None:
            yield Finding(
                (*here, "usersFile"),
                "is missing, though PLAIN or SCRAM is offered",
                "give the path of a users file, which `trioute user add` writes",
                concerns=(mechanisms,),
            )
        if listener.users_file is not None and not plain:
            yield Finding(
                (*here, "usersFile"),
                "has no effect, because neither PLAIN nor SCRAM is offered",
                'add "PLAIN" to saslMechanisms, or remove usersFile',
                shown=True,
                concerns=(mechanisms,),
            )
        if listener.authenticate_peer and listener.sasl_mechanisms == ("ANONYMOUS",):
            yield Finding(
                (*here, "authenticatePeer"),
                "lets no peer in, because only ANONYMOUS is offered",
                'add "PLAIN" or "EXTERNAL" to saslMechanisms, or remove authenticatePeer',
                shown=True,
                concerns=(mechanisms,),
            )
        if listener.users_file is not None and (reason := _unreadable(listener.users_file)):
            yield Finding(
                (*here, "usersFile"),
                f"cannot be read: {reason}",
                "give a file that the router may read",
                shown=True,
            )


def _buffers(configuration: Configuration, data: Data) -> Iterator[Finding]:
    limit = configuration.router.memory_limit_bytes
    buffers = {
        "listener": [one.connection_buffer_bytes for one in configuration.listeners],
        "connector": [one.connection_buffer_bytes for one in configuration.connectors],
    }
    for entity, sizes in buffers.items():
        for index, size in enumerate(sizes):
            # The default may be more than a small router has: it then never takes effect.
            if size > limit and "connectionBufferBytes" in data[entity][index]:
                yield Finding(
                    (entity, index, "connectionBufferBytes"),
                    f"is more than all connections may hold together, memoryLimitBytes = {limit}",
                    "give a smaller value, or a larger memoryLimitBytes",
                    shown=True,
                    concerns=(("router", "memoryLimitBytes"),),
                )


def _repeats(keys: Sequence[Hashable | None]) -> Iterator[tuple[int, int]]:
    """Yield pairs of indices of equal keys, the later index first; None equals nothing.

    Each key is paired with only the first few equal keys, because comparing all would take far too
    long for very many duplicates.
    """
    present = [key for key in keys if key is not None]
    if len(set(present)) == len(present):
        return
    seen: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        if key is None:
            continue
        earlier = seen.setdefault(key, [])
        yield from ((index, first) for first in earlier)
        if len(earlier) < MAX_DUPLICATES_COMPARED:
            earlier.append(index)


def _unreadable(path: FilePath) -> str:
    """Return why the file at `path` cannot be read, or an empty text if it can be."""
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        return error.strerror or str(error)
    return ""


_CHECKS: Final[tuple[Check, ...]] = (
    _listener_sockets,
    _listener_names,
    _connector_names,
    _address_names,
    _address_forms,
    _address_repeats,
    *ADDRESS_CHECKS,
    _redirect_forms,
    _redirect_repeats,
    _listener_sasl,
    *HTTP_CHECKS,
    *PROXY_CHECKS,
    *CONNECTOR_CHECKS,
    _buffers,
    *LINK_ROUTE_CHECKS,
    *AUTO_LINK_CHECKS,
    *CONTAINER_CHECKS,
    *EXCHANGE_CHECKS,
    *NETWORK_CHECKS,
    *PLUGIN_CHECKS,
    *POLICY_CHECKS,
    *SSL_CHECKS,
    *CLAIMS_CHECKS,
)
