"""The cross checks: a table of files, and exactly what is said of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from router.config.checks import find_contradictions
from router.config.listeners import ListenerSettings
from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration
from router.config.model import Configuration
from router.config.users import hash_password

HASH = hash_password("x")

GOOD = {
    "two ports": "[[listener]]\nport = 1\n[[listener]]\nport = 2",
    "two hosts": '[[listener]]\nhost = "::1"\n[[listener]]\nhost = "127.0.0.1"',
    "two families": """
        [[listener]]
        host = "localhost"
        name = "a"
        socketAddressFamily = "IPv4"
        [[listener]]
        host = "localhost"
        socketAddressFamily = "IPv6"
        """,
    "any free port, twice": '[[listener]]\nport = 0\nname = "a"\n[[listener]]\nport = 0',
    "names of different entities": """
        [[listener]]
        name = "a"
        [[connector]]
        name = "a"
        """,
    "an address inside another": """
        [[address]]
        prefix = "a"
        [[address]]
        prefix = "a/b"
        [[address]]
        pattern = "a/*"
        """,
    "a redirect for each direction, and of each kind": """
        [[redirect]]
        prefix = "a"
        direction = "in"
        toNetworkHost = "h"
        [[redirect]]
        pattern = "a/#"
        direction = "out"
        toNetworkHost = "h"
        [[redirect]]
        hostname = "a"
        toNetworkHost = "h"
        [[address]]
        prefix = "a"
        """,
    "hosts to be redirected to": """
        [[connector]]
        allowRedirect = true
        redirectHosts = ["a"]
        """,
    "a port and nothing else for HTTP": "[[listener]]\nport = 1\nhttp = true",
    "HTTP for health alone": "[[listener]]\nport = 1\nhttp = true\nmetrics = false",
    "a user": '[[connector]]\nsaslUsername = "u"\nsaslPassword = "p"',
    "a user, if PLAIN is offered": """
        [[connector]]
        saslUsername = "u"
        saslPassword = "p"
        saslMechanisms = "PLAIN ANONYMOUS"
        """,
    "a users file": """
        [[listener]]
        saslMechanisms = "PLAIN"
        authenticatePeer = true
        usersFile = "users"
        """,
    "a small router": "[router]\nmemoryLimitBytes = 1048576\n[[listener]]",
}

# What is written over several lines here is one line: only the words are compared.
BAD = {
    "a port taken": (
        """\
        [[listener]]
        port = 1
        [[listener]]
        port = 1
        [[listener]]
        port = 1
        """,
        """
        f:4: listener[1].port: 1 is taken: listener[0] also listens on 127.0.0.1:1; give another
            port or another host
        f:6: listener[2].port: 1 is taken: listener[0] also listens on 127.0.0.1:1; give another
            port or another host
        """,
    ),
    "a port taken by its service name, in part of the families": (
        """\
        [[listener]]
        [[listener]]
        port = "amqp"
        socketAddressFamily = "IPv6"
        """,
        """
        f:3: listener[1].port: "amqp" is taken: listener[0] also listens on 127.0.0.1:5672; give
            another port or another host
        """,
    ),
    "a name given twice": (
        """\
        [[listener]]
        name = "a"
        port = 1
        [[listener]]
        port = 2
        name = "a"
        """,
        """
        f:6: listener[1].name: "a" is also the name of listener[0]; give each its own name
        """,
    ),
    "no names where only names differ": (
        """\
        [[listener]]
        port = 0
        [[listener]]
        port = 0
        [[connector]]
        [[connector]]
        """,
        """
        f:3: listener[1].name: is missing, and listener[0] has none either on the same host and
            port; give each its own name
        f:6: connector[1].name: is missing, and connector[0] has none either on the same host and
            port; give each its own name
        """,
    ),
    "an address of two names, and two of one": (
        """\
        [[address]]
        prefix = "a"
        name = "n"
        [[address]]
        prefix = "b"
        name = "n"
        """,
        """
        f:6: address[1].name: "n" is also the name of address[0]; give each its own name
        """,
    ),
    "neither prefix nor pattern, and both": (
        """\
        [[address]]
        [[address]]
        prefix = "a"
        pattern = "b"
        """,
        """
        f:1: address[0]: does not say which addresses it covers; give a prefix or a pattern
        f:4: address[1].pattern: "b" cannot be combined with a prefix; give one of the two
        """,
    ),
    "the same addresses": (
        """\
        [[address]]
        prefix = "a/b"
        [[address]]
        prefix = "a.b/"
        [[address]]
        pattern = "a/b/#"
        """,
        """
        f:4: address[1].prefix: "a.b/" covers the same addresses as address[0]; give each
            address only once
        f:6: address[2].pattern: "a/b/#" covers the same addresses as address[0]; give each
            address only once
        """,
    ),
    "a fallback beside phases": (
        """\
        [[address]]
        prefix = "a"
        enableFallback = true
        waypoint = true
        [[address]]
        prefix = "b"
        enableFallback = true
        egressPhase = 2
        [[address]]
        prefix = "c"
        enableFallback = true
        ingressPhase = 0
        """,
        """
        f:3: address[0].enableFallback: true cannot be combined with a phase other than 0, which
             has no fallback; remove it, or remove waypoint and the phases
        f:7: address[1].enableFallback: true cannot be combined with a phase other than 0, which
             has no fallback; remove it, or remove waypoint and the phases
        """,
    ),
    "dead letters of nobody, and of themselves": (
        """\
        [[address]]
        prefix = "a"
        distribution = "unavailable"
        deadLetterAddress = "dead"
        [[address]]
        pattern = "b/dead"
        deadLetterAddress = "b.dead"
        [[address]]
        pattern = "#"
        deadLetterAddress = "dead"
        """,
        """
        f:4: address[0].deadLetterAddress: "dead" has no effect, because nothing can be sent to
            these addresses; remove it, or give another distribution
        f:7: address[1].deadLetterAddress: "b.dead" must not be the address itself; give
            another address
        """,
    ),
    "a redirect of nothing, and of two things, to nowhere": (
        """\
        [[redirect]]
        toNetworkHost = "h"
        [[redirect]]
        prefix = "a"
        hostname = "b"
        pattern = "c"
        toNetworkHost = "h"
        [[redirect]]
        prefix = "d"
        """,
        """
        f:1: redirect[0]: does not say what to redirect; give a prefix, a pattern or a hostname
        f:5: redirect[1].hostname: "b" cannot be combined with a prefix; give one of prefix, pattern
            and hostname
        f:6: redirect[1].pattern: "c" cannot be combined with a prefix; give one of prefix, pattern
            and hostname
        f:8: redirect[2].toNetworkHost: is missing; give the host that clients are to connect to
        """,
    ),
    "a redirect of a host with what links have": (
        """\
        [[redirect]]
        hostname = "a"
        direction = "in"
        toNetworkHost = "h"
        toAddress = "b"
        """,
        """
        f:3: redirect[0].direction: "in" has no effect on connections; remove it, or give a prefix
            or a pattern instead of the hostname
        f:5: redirect[0].toAddress: "b" has no effect on connections; remove it, or give a prefix
            or a pattern instead of the hostname
        """,
    ),
    "a redirect to a path without a WebSocket": (
        """\
        [[redirect]]
        prefix = "a"
        toNetworkHost = "h"
        toScheme = "amqps"
        toPath = "/b"
        """,
        """
        f:5: redirect[0].toPath: "/b" has no effect with the toScheme amqps; remove it, or give the
            toScheme ws or wss
        """,
    ),
    "the same redirected twice": (
        """\
        [[redirect]]
        prefix = "a"
        direction = "in"
        toNetworkHost = "h"
        [[redirect]]
        pattern = "a/#"
        toNetworkHost = "h"
        [[redirect]]
        hostname = "a"
        toNetworkHost = "h"
        [[redirect]]
        hostname = "A"
        toNetworkHost = "h"
        """,
        """
        f:6: redirect[1].pattern: "a/#" redirects the same as redirect[0]; give each only
            once per direction
        f:12: redirect[3].hostname: "A" redirects the same as redirect[2]; give each host once
        """,
    ),
    "a redirect to what is no host": (
        """\
        [[redirect]]
        prefix = "a"
        toNetworkHost = "h:5672"
        """,
        """
        f:3: redirect[0].toNetworkHost: "h:5672" is not allowed; give a host name or IP address,
            without spaces or a port
        """,
    ),
    "hosts to be redirected to, though nothing is followed": (
        """\
        [[connector]]
        redirectHosts = ["a", "b"]
        """,
        """
        f:2: connector[0].redirectHosts: ["a", "b"] has no effect, because redirects are not
            followed; set allowRedirect = true, or remove it
        """,
    ),
    "PLAIN without users": (
        """\
        [[listener]]
        saslMechanisms = ["PLAIN"]
        """,
        """
        f:1: listener[0].usersFile: is missing, though PLAIN or SCRAM is offered; give the path of
            a users file, which `trioute user add` writes
        """,
    ),
    "users without PLAIN": (
        """\
        [[listener]]
        usersFile = "users"
        """,
        """
        f:2: listener[0].usersFile: "users" has no effect, because neither PLAIN nor SCRAM is
            offered; add "PLAIN" to saslMechanisms, or remove usersFile
        """,
    ),
    "users that are not there": (
        """\
        [[listener]]
        saslMechanisms = "PLAIN"
        usersFile = "gone"
        """,
        """
        f:3: listener[0].usersFile: "gone" cannot be read: No such file or directory; give a file
            that the router may read
        """,
    ),
    "a folder for a users file": (
        """\
        [[listener]]
        saslMechanisms = "PLAIN"
        usersFile = "."
        """,
        """
        f:3: listener[0].usersFile: "." cannot be read: Is a directory; give a file that the
            router may read
        """,
    ),
    "nobody let in": (
        """\
        [[listener]]
        authenticatePeer = true
        """,
        """
        f:2: listener[0].authenticatePeer: true lets no peer in, because only ANONYMOUS is
            offered; add "PLAIN" or "EXTERNAL" to saslMechanisms, or remove authenticatePeer
        """,
    ),
    "HTTP with what is for AMQP": (
        """\
        [[listener]]
        port = 1
        http = true
        maxFrameSize = 512
        role = "normal"
        """,
        """
        f:4: listener[0].maxFrameSize: has no effect on a listener for HTTP; remove it; such a
            listener has host, port, name, socketAddressFamily, http, metrics, healthz, websockets,
            sslProfile, sniSslProfiles, clientCertificate, and with websockets those of a listener
            for AMQP
        f:5: listener[0].role: has no effect on a listener for HTTP; remove it; such a listener
            has host, port, name, socketAddressFamily, http, metrics, healthz, websockets,
            sslProfile, sniSslProfiles, clientCertificate, and with websockets those of a listener
            for AMQP
        """,
    ),
    "AMQP with what is for HTTP": (
        """\
        [[listener]]
        metrics = true
        """,
        """
        f:2: listener[0].metrics: true has no effect on a listener for AMQP; remove it, or set
            http = true
        """,
    ),
    "HTTP on no port, with nothing to serve": (
        """\
        [[listener]]
        http = true
        metrics = false
        healthz = false
        """,
        """
        f:1: listener[0].port: is missing; there is no default port for HTTP; give a port
        f:1: listener[0]: serves nothing; set metrics, healthz or
            websockets to true
        """,
    ),
    "half a login": (
        """\
        [[connector]]
        saslUsername = "u"
        [[connector]]
        name = "b"
        saslPassword = "s3cret"
        """,
        """
        f:1: connector[0].saslPassword: is missing, though PLAIN or SCRAM is to be used; give
            saslUsername and saslPassword
        f:5: connector[1].saslPassword: has no effect, because neither PLAIN nor SCRAM nor a
            token is to be used; give saslUsername and saslPassword, and PLAIN, SCRAM, XOAUTH2 or
            OAUTHBEARER in saslMechanisms
        """,
    ),
    "a login that is not to be used": (
        """\
        [[connector]]
        saslUsername = "u"
        saslPassword = "p"
        saslMechanisms = "ANONYMOUS"
        """,
        """
        f:2: connector[0].saslUsername: has no effect, because neither PLAIN nor SCRAM nor a
            token is to be used; give saslUsername and saslPassword, and PLAIN, SCRAM, XOAUTH2 or
            OAUTHBEARER in saslMechanisms
        f:3: connector[0].saslPassword: has no effect, because neither PLAIN nor SCRAM nor a
            token is to be used; give saslUsername and saslPassword, and PLAIN, SCRAM, XOAUTH2 or
            OAUTHBEARER in saslMechanisms
        """,
    ),
    "a password that cannot be had": (
        """\
        [[connector]]
        saslUsername = "u"
        saslPassword = "env:TRIOUTE_NOT_SET"
        """,
        """
        f:3: connector[0].saslPassword: is not available: the environment variable
            TRIOUTE_NOT_SET is not set, or is empty
        """,
    ),
    "a buffer larger than the router": (
        """\
        [router]
        memoryLimitBytes = 1048576
        [[connector]]
        connectionBufferBytes = 2097152
        """,
        """
        f:4: connector[0].connectionBufferBytes: 2097152 is more than all connections may hold
            together, memoryLimitBytes = 1048576; give a smaller value, or a larger memoryLimitBytes
        """,
    ),
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_what_can_be_meant_is_taken(text: str, tmp_path: Path) -> None:
    (tmp_path / "users").write_text(f"u:{HASH}\n", encoding="utf-8")
    parse_configuration(text, source="f", folder=tmp_path)


@pytest.mark.parametrize(("text", "mistakes"), BAD.values(), ids=BAD)
def test_what_cannot_be_meant_is_said(text: str, mistakes: str, tmp_path: Path) -> None:
    (tmp_path / "users").write_text(f"u:{HASH}\n", encoding="utf-8")
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(text, source="f", folder=tmp_path)
    assert str(caught.value).split() == mistakes.split()


def test_mistakes_inside_a_users_file_are_said_once(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("# who\na:x\nb\n", encoding="utf-8")
    text = "".join(
        f'[[listener]]\nport = {port}\nsaslMechanisms = "PLAIN"\nusersFile = "users"\n'
        for port in (1, 2)
    )
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(text, source="f", folder=tmp_path)
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        f"{users}:{line}: has no hash of the form scrypt$n$r$p$salt$hash" for line in (2, 3)
    ]


def test_the_same_many_times_takes_no_longer_than_it_must() -> None:
    listeners = (ListenerSettings(port=5672),) * 5_000
    data: dict[str, Any] = {
        "listener": [{}] * len(listeners),
        "connector": [],
        "address": [],
        "redirect": [],
    }
    found = list(find_contradictions(Configuration(listeners=listeners), data))
    places = {finding.path for finding in found}
    assert {("listener", index, "port") for index in range(1, len(listeners))} <= places
    assert len(found) < 40 * len(listeners)
