"""RabbitMQ with its AMQP 1.0 plugin, from Debian's packages, unpacked; see `support.brokers`.

Erlang's nodes find each other by an epmd: each broker has its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from support.brokers import CHECK_S, PATIENCE_S, Broker, unpacked
from support.ports import free_port, is_open

CONFIGURATION = """\
listeners.tcp.1 = 127.0.0.1:{port}
amqp1_0.default_user = none
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = ANONYMOUS
load_definitions = {definitions}
disk_free_limit.absolute = 1MB
log.console = true
log.console.level = info
"""
# Where it tells that it has decided upon something, once that has been written.
DECIDED = b"committed"
# A queue whose name begins so takes as many messages, and refuses the others.
FULL = "full."
FULL_AT = 5


class RabbitMQ(Broker):
    """RabbitMQ broker. Its queues are durable if the terminus that created them is."""

    name = "rabbitmq"
    user = "guest"
    password = "guest"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._programs = unpacked("debian", "RabbitMQ")
        self._epmd_port = free_port()
        self._dist_port = free_port()
        self._epmd: subprocess.Popen[bytes] | None = None
        (folder / "enabled_plugins").write_text("[rabbitmq_amqp1_0].\n")
        definitions = folder / "definitions.json"
        definitions.write_text(json.dumps(self._definitions()))
        (folder / "rabbitmq.conf").write_text(
            CONFIGURATION.format(port=self.port, definitions=definitions)
        )

    def _definitions(self) -> dict[str, Any]:
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        limit = {"max-length": FULL_AT, "overflow": "reject-publish"}
        return {
            "vhosts": [{"name": "/"}],
            "users": [{"name": self.user, "password": self.password, "tags": "administrator"}],
            "permissions": [{"user": self.user, "vhost": "/", **everything}],
            "policies": [
                {
                    "vhost": "/",
                    "name": "full",
                    "pattern": f"^{FULL}".replace(".", "\\."),
                    "apply-to": "queues",
                    "priority": 1,
                    "definition": limit,
                }
            ],
        }

    def command(self) -> list[str | Path]:
        """See the class."""
        return [self._programs / "usr/lib/rabbitmq/bin/rabbitmq-server"]

    def environment(self) -> Mapping[str, str]:
        """Return all its paths, and no other node to look for."""
        files = {
            "HOME": "",
            "RABBITMQ_CONFIG_FILE": "rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": "enabled_plugins",
            "RABBITMQ_MNESIA_BASE": "data",
            "RABBITMQ_LOG_BASE": "log",
        }
        return {name: str(self.folder / file) for name, file in files.items()} | {
            "PATH": f"{self._programs / 'usr/bin'}{os.pathsep}{os.environ['PATH']}",
            "RABBITMQ_NODENAME": "rabbit@localhost",
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            # its script becomes the broker, where it would be a shell that waits for it: then the
            # broker is gone, with its ports and its name at the epmd, when its process is
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_MAX_PORTS": "4096",
            # schedulers that have nothing to do leave the processor to others
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} "
            "+sbwt none +sbwtdcpu none +sbwtdio none",
        }

    def is_ready(self) -> bool:
        """Return whether its log says that it is ready."""
        return "Server startup complete" in self.log_text()

    def begin_start(self) -> None:
        """Start an epmd first and wait for it: a broker that finds none starts one that stays."""
        if self._epmd is None or self._epmd.poll() is not None:
            epmd = ["epmd", "-address", "127.0.0.1", "-port", str(self._epmd_port)]
            program = self._programs / "usr/bin" / epmd[0]
            self._epmd = subprocess.Popen(
                [program, *epmd[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        end = time.monotonic() + PATIENCE_S
        while not is_open(self._epmd_port):
            with suppress(subprocess.TimeoutExpired):
                code = self._epmd.wait(CHECK_S)
                raise AssertionError(f"RabbitMQ's epmd ended with {code}")
            assert time.monotonic() < end, "RabbitMQ's epmd does not listen"
        super().begin_start()

    def stop(self) -> None:
        """Stop the broker, and its epmd after it."""
        super().stop()
        if self._epmd is not None:
            self._epmd.terminate()
            self._epmd.wait()
            self._epmd = None

    def has_stored(self, queue: str) -> bool:
        """Return whether it has logged its decision to have the queue.

        It answers before that: data is written at once, but the decision may be logged up to two
        seconds late, and what was not decided is undone when it starts again.
        """
        stored = self.folder / "data/rabbit@localhost"
        name = queue.encode()
        try:
            log = (stored / "LATEST.LOG").read_bytes()
            at = log.rfind(name)
            if at >= 0:
                return log.find(DECIDED, at) > at
            # what was decided has been moved, sooner or later, to where the queues are
            tables = stored.glob("rabbit_durable_queue.DC?")
            return any(name in table.read_bytes() for table in tables)
        except FileNotFoundError:
            # it is being moved
            return False

    def address(self, queue: str) -> str:
        """See the class."""
        return f"/queue/{queue}"

    def own_address(self, queue: str) -> str:
        """Return the address of an existing queue; attaching to any other is an error."""
        return f"/amq/queue/{queue}"
