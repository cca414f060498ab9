"""Fuzz targets for policies: what sets of addresses and hosts contain, and files with policies."""

from __future__ import annotations

import contextlib
import ipaddress

import attrs

from router.config.kinds import Kind, ValueNotAllowed
from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration
from router.config.model import Configuration
from router.config.policy_kinds import USER_TOKEN, address_names, address_patterns, is_host_range
from router.config.write import format_configuration
from router.control.policy.address_names import AddressNames
from router.control.policy.decisions import ACTIONS, Question, decide
from router.control.policy.policy import Peer, Policy
from router.control.policy.remote_hosts import RemoteHosts
from router.core.addresses.table import address_name
from router.core.model.patterns import tokens

from fuzz.choices import Choices

MOST_ENTRIES = 12
# Characters of the texts of mistakes, for each octet of a file.
LONGEST_MISTAKES = 2000
_PARTS = (
    *("a", "b", "ab", "/", ".", "*", "#", USER_TOKEN),
    *("/", ".", "${", "}", "A", "//", f"{USER_TOKEN}/", f"/{USER_TOKEN}"),
)
_HOST_PARTS = (
    *("10.0.0.", "10.0.", "1", "9", "255", "-", "/8", "/31", "::", "::ffff:", "fe80::1", "%x"),
    *("*", "localhost", "127.0.0.1", " ", "0", "192.168.1.7", "10.0.0.1-10.0.0.9"),
)


def _text(choices: Choices, parts: tuple[str, ...], most: int) -> str:
    return "".join(choices.of(parts) for _ in range(choices.below(most + 1)))


def _name(choices: Choices, entries: list[str], user: str) -> str:
    """Return any name, or one that is like an entry: with the user's name, and more behind it."""
    if not entries or choices.one_in(3):
        return _text(choices, _PARTS, 6)
    name = choices.of(entries).replace(USER_TOKEN, user)
    for wildcard in "*#":
        name = name.replace(wildcard, _text(choices, _PARTS, 2))
    return name + _text(choices, _PARTS, 2) if choices.one_in(3) else name


def policy(octets: bytes) -> None:
    """Ask sets of addresses and of hosts, and a plain model of each; the octets decide all."""
    choices = Choices(octets)
    names, patterns = (
        _allowed(kind, [_text(choices, _PARTS, 5) for _ in range(MOST_ENTRIES)])
        for kind in (address_names(), address_patterns())
    )
    hosts = [_text(choices, _HOST_PARTS, 3) for _ in range(MOST_ENTRIES)]
    hosts = [each for each in hosts if is_host_range(each)]
    addresses, known = AddressNames(names, patterns), RemoteHosts(hosts)
    while not choices.over:
        user = _text(choices, _PARTS, 2)
        name = address_name(_name(choices, [*names, *patterns], user))
        found = addresses.entry_for(name, user)
        allowing = [entry for entry in names if _entry_allows(entry, name, user)]
        allowing += [pattern for pattern in patterns if _pattern_allows(pattern, name, user)]
        if found is None:
            assert not allowing, f"{name!r} of {user!r} is refused although {allowing} allow it"
        else:
            # equal entries, as `a` and `/a`, are one
            forms = {(_kind(each, names), _normal(each, names)) for each in allowing}
            assert (_kind(found, names), _normal(found, names)) in forms, (
                f"{found!r} does not allow {name!r} to {user!r}"
            )
        host = _text(choices, _HOST_PARTS, 3)
        assert known.has(host) is _has_host(hosts, host), (hosts, host)


def _allowed(kind: Kind, texts: list[str]) -> list[str]:
    """Return the texts that a configuration can have, each once."""
    found: dict[str, None] = {}
    for text in texts:
        with contextlib.suppress(ValueNotAllowed):
            kind.read([text])
            found[text] = None
    return list(found)


def _kind(entry: str, names: list[str]) -> str:
    return "name" if entry in names else "pattern"


def _normal(entry: str, names: list[str]) -> object:
    if entry not in names:
        return tuple(tokens(entry))
    is_open = entry.endswith("*")
    return is_open, entry[:-1].lstrip("/") if is_open else address_name(entry)


def _entry_allows(entry: str, name: str, user: str) -> bool:
    if not name:
        return False
    is_open = entry.endswith("*")
    text = entry[:-1].lstrip("/") if is_open else address_name(entry)
    if USER_TOKEN in text:
        if not user:
            return False
        before, _, after = text.partition(USER_TOKEN)
        text = before + user + after
    return name.startswith(text) if is_open else name == text


def _pattern_allows(pattern: str, name: str, user: str) -> bool:
    """Return whether a pattern allows a name; the user's name is replaced by a token of its own."""
    if not name:
        return False
    if USER_TOKEN not in pattern:
        return _matches(tokens(pattern), tokens(name))
    if not user:
        return False
    if pattern.startswith(USER_TOKEN):
        rest = name.removeprefix(user)
        if rest == name or (rest and rest[0] not in "./"):
            return False
        return _matches(tokens(pattern), tokens(USER_TOKEN + rest))
    rest = name.removesuffix(user)
    if rest == name or not rest.endswith(("/", ".")):
        return False
    return _matches(tokens(pattern), tokens(rest + USER_TOKEN))


def _matches(pattern: list[str], name: list[str]) -> bool:
    """Return whether tokens match a pattern, by comparing every beginning with every beginning."""
    reached = [True] + [False] * len(name)
    for token in pattern:
        if token == "#":
            for at in range(1, len(reached)):
                reached[at] = reached[at] or reached[at - 1]
            continue
        before, reached = reached, [False] * len(reached)
        for at, each in enumerate(name):
            reached[at + 1] = before[at] and token in ("*", each)
    return reached[-1]


def _has_host(entries: list[str], host: str) -> bool:
    if "*" in entries:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    for entry in entries:
        if entry == "localhost":
            if address.is_loopback:
                return True
        elif "-" in entry:
            low, high = (ipaddress.ip_address(part.strip()) for part in entry.split("-"))
            is_same = low.version == address.version
            if is_same and int(low) <= int(address) <= int(high):
                return True
        elif address in ipaddress.ip_network(entry.strip(), strict=False):
            return True
    return False


def vhosts(octets: bytes) -> None:
    """Read a configuration with policies, write it again, and ask what it allows."""
    configuration = _read(octets.decode("utf-8", "replace"))
    if isinstance(configuration, InvalidConfiguration):
        # an answer of management has all of them
        assert len(str(configuration)) <= LONGEST_MISTAKES * (len(octets) + 1)
        return
    again = parse_configuration(format_configuration(configuration), source="again")
    assert again.vhosts == configuration.vhosts
    assert again.policy == configuration.policy
    made = Policy(configuration.policy, configuration.vhosts)
    users = {user for each in made.vhosts.values() for user in each.group_names} | {"", "other"}
    for hostname in [*list(made.vhosts)[:4], "", "x.example:5671", "[::1]:1"]:
        for user in sorted(users)[:4]:
            peer = Peer(hostname, user, "10.0.0.1", frozenset({"g"}))
            for action in ACTIONS:
                for address in ("a", "a/b", user):
                    decision = decide(made, peer, Question(action, address))
                    assert decision.reason
                    local = attrs.evolve(peer, host="")
                    if decision.is_allowed:
                        # an unknown host is in all remoteHosts
                        assert decide(made, local, Question(action, address)).is_allowed


def _read(text: str) -> Configuration | InvalidConfiguration:
    try:
        return parse_configuration(text, source="f")
    except InvalidConfiguration as invalid:
        return invalid


_FILES = (
    """\
[policy]
enableVhostPolicy = true
enableVhostNamePatterns = true
defaultVhost = "$default"
maxConnections = 10

[[vhost]]
hostname = "*.example"
aliases = ["a.example", "b.example:5671"]
allowUnknownUser = true
maxConnectionsPerUser = 0

[vhost.groups.g]
users = ["ada", "bob"]
remoteHosts = ["10.0.0.0/8", "localhost"]
targets = ["a", "${user}/*", "b*"]
sources = "a, b"
allowAnonymousSender = true

[vhost.groups."$default"]
users = "*"
remoteHosts = "*"
sourcePattern = ["a/#", "${user}.*"]
management = "read"
""",
    '[[vhost]]\nhostname = "$default"\ngroups = { "$connector" = { targets = "*" } }\n',
)


def policy_seeds() -> list[bytes]:
    """Return scripts."""
    return [bytes(range(2, 250)) * 2, bytes((7 * n) % 251 for n in range(400)), bytes(300)]


def vhosts_seeds() -> list[bytes]:
    """Return configurations with policies."""
    return [text.encode() for text in _FILES]
