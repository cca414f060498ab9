"""`trioute run`: it says where it listens, stops in order, and says why it cannot start."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
import structlog.testing
from click.testing import CliRunner

from router.amqp.performatives import Detach, End
from router.cli.run import (
    EXIT_CONFIGURATION,
    EXIT_RUNTIME,
    REPORT_EVERY_S,
    SuppressionReporter,
    announcement,
    run,
)
from router.config.listeners import ListenerSettings
from router.log_limits import LogRateLimiter
from router.logs.journal import Journal
from router.running_listeners import ListenerAddresses

from support.launcher import trioute
from support.raw_peers import RawPeer
from support.routers import PLAIN, RouterProcess, StartRouter
from support.transcripts import attach_sender

pytestmark = pytest.mark.both_builds

TWO_LISTENERS = """\
[[listener]]
port = 0

[[listener]]
port = 0
name = "second"
"""


def test_the_announcement_names_every_socket() -> None:
    listening = [
        ListenerAddresses(ListenerSettings(), (("127.0.0.1", 5672), ("::1", 5672))),
        ListenerAddresses(ListenerSettings(http=True, port=9672), (("127.0.0.1", 9672),)),
    ]
    first, *rest = announcement("edge", listening, Path("my.toml"))
    assert first.startswith("trioute ")
    assert first.endswith("router edge, configured by my.toml")
    assert rest == [
        "  AMQP 1.0            amqp://127.0.0.1:5672",
        "  AMQP 1.0            amqp://[::1]:5672",
        "  metrics and health  http://127.0.0.1:9672/metrics  /healthz  /readyz",
        "Try it, in two other terminals:",
        "  trioute receive amqp://127.0.0.1:5672/hello --count 3",
        "  trioute send amqp://127.0.0.1:5672/hello --count 3 --body 'hello, world'",
        "Ctrl-C stops the router.",
    ]


def test_the_announcement_says_where_tls_is_needed() -> None:
    strict = ListenerAddresses(ListenerSettings(ssl_profile="p"), (("::1", 5671),))
    either = ListenerAddresses(
        ListenerSettings(ssl_profile="p", require_ssl=False), (("127.0.0.1", 5672),)
    )
    http = ListenerAddresses(
        ListenerSettings(ssl_profile="p", http=True, port=9672), (("127.0.0.1", 9672),)
    )
    _, *rest = announcement("edge", [strict, http], None)
    assert rest == [
        "  AMQP 1.0            amqps://[::1]:5671",
        "  metrics and health  https://127.0.0.1:9672/metrics  /healthz  /readyz",
        "Try it, in two other terminals:",
        "  trioute receive amqps://[::1]:5671/hello --count 3 --ssl-trustfile FILE",
        (
            "  trioute send amqps://[::1]:5671/hello --count 3 --body 'hello, world' "
            "--ssl-trustfile FILE"
        ),
        "Ctrl-C stops the router.",
    ]
    # where there is a choice, it is tried without TLS
    _, first, second, _, receive, send, _ = announcement("edge", [strict, either], None)
    assert first == "  AMQP 1.0            amqps://[::1]:5671"
    assert second == "  AMQP 1.0            amqp://127.0.0.1:5672  amqps://127.0.0.1:5672"
    assert receive == "  trioute receive amqp://127.0.0.1:5672/hello --count 3"
    assert send == "  trioute send amqp://127.0.0.1:5672/hello --count 3 --body 'hello, world'"


def test_without_an_amqp_listener_there_is_nothing_to_try() -> None:
    (line,) = announcement("edge", [], None)
    assert line.endswith("configured by the embedded default")


def test_it_listens_where_it_says(start_router: StartRouter) -> None:
    router = start_router(TWO_LISTENERS)
    assert len(router.addresses) == 2
    for address in router.addresses:
        socket.create_connection(address).close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(start_router: StartRouter, number: int) -> None:
    assert start_router().stop(number) == 0


def test_a_flood_of_attaches_leaves_a_short_log(start_router: StartRouter) -> None:
    router = start_router(PLAIN + '[log]\nformat = "json"\nlinesPerSecond = 1\n')
    flood = 3000
    with RawPeer(router.port) as peer:
        peer.open()
        for _ in range(flood):
            peer.say(attach_sender(0, "unavailable/x"), Detach(0, True))
            peer.hear_until(Detach)
        # ends the session, which is said all the same
        peer.say(Detach(77, True))
        peer.hear_until(End)
    assert router.stop() == 0
    lines = [json.loads(line) for line in router.log_text().splitlines()]
    refused = sum(line["event"] == "link refused" for line in lines)
    left_out = [line for line in lines if line["event"] == "lines suppressed"]
    assert refused < flood / 10
    assert {line["like"] for line in left_out} == {"link refused"}
    assert {line["condition"] for line in left_out} == {"amqp:not-found"}
    assert refused + sum(line["count"] for line in left_out) == flood
    (ended,) = (line for line in lines if line["event"] == "session ended")
    assert ended["condition"] == "amqp:session:unattached-handle"


def test_what_was_left_out_is_said_now_and_then() -> None:
    journal = Journal()
    journal.rate_limiter = floods = LogRateLimiter(1)
    reports = SuppressionReporter(journal)
    with structlog.testing.capture_logs() as lines:
        reports.report_if_due(1000.0)
        for now in (1001.0, 1000.0 + REPORT_EVERY_S, 1001.0 + REPORT_EVERY_S):
            for _ in range(100):
                with suppress(structlog.DropEvent):
                    floods(None, "warning", {"event": "link refused", "connection": 1})
            reports.report_if_due(now)
    # the second look was due, and told of two hundred but for a burst
    (line,) = lines
    assert (line["event"], line["like"]) == ("lines suppressed", "link refused")
    assert 100 < line["count"] < 200


def test_a_port_in_use_is_said(router_process: RouterProcess, tmp_path: Path) -> None:
    file = tmp_path / "trioute.toml"
    file.write_text(f"[[listener]]\nport = {router_process.port}\n", encoding="utf-8")
    result = subprocess.run(trioute("run", "-c", file), capture_output=True, text=True, check=False)
    assert result.returncode == EXIT_RUNTIME
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("trioute: cannot start: ")
    assert "in use" in line


def test_a_configuration_that_cannot_be_run_is_said(tmp_path: Path) -> None:
    file = tmp_path / "trioute.toml"
    file.write_text("[router]\nmode = 'sideways'\n", encoding="utf-8")
    result = CliRunner().invoke(run, ["-c", str(file)])
    assert result.exit_code == EXIT_CONFIGURATION
    assert result.output.startswith(f"{file}:2: ")
