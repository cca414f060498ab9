"""ActiveMQ Artemis, as `make brokers` unpacks it, with a small heap; see `support.brokers`.

This module writes what `artemis create` would write: only AMQP, no console, anycast queues.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.brokers import Broker, unpacked

# Addresses that begin so take as many octets and refuse more, or are not made by attaching.
FULL = "full."
FULL_AT_BYTES = 20_000
ABSENT = "absent."

RIGHTS = (
    "createNonDurableQueue deleteNonDurableQueue createDurableQueue deleteDurableQueue "
    "createAddress deleteAddress consume browse send manage"
)

FILES = {
    "bootstrap.xml": """\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="activemq"/>
  <server configuration="file:{etc}/broker.xml"/>
</broker>
""",
    "management.xml": """\
<management-context xmlns="http://activemq.apache.org/schema"/>
""",
    "login.config": """\
activemq {{
  org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
    org.apache.activemq.jaas.properties.user="users.properties"
    org.apache.activemq.jaas.properties.role="roles.properties";
}};
""",
    "users.properties": "{user} = {password}\n",
    "roles.properties": "all = {user}\n",
    "log4j2.properties": """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
logger.audit.name = org.apache.activemq.audit
logger.audit.level = OFF
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5level [%logger] %msg%n
""",
    "broker.xml": """\
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>artemis</name>
    <journal-type>NIO</journal-type>
    <journal-file-size>1M</journal-file-size>
    <journal-pool-files>10</journal-pool-files>
    <paging-directory>{data}/paging</paging-directory>
    <bindings-directory>{data}/bindings</bindings-directory>
    <journal-directory>{data}/journal</journal-directory>
    <large-messages-directory>{data}/large-messages</large-messages-directory>
    <max-disk-usage>100</max-disk-usage>
    <security-enabled>{security}</security-enabled>
    {connections}
    <acceptors>
      <acceptor name="amqp">tcp://127.0.0.1:{port}?protocols=AMQP</acceptor>
    </acceptors>
    <security-settings>
      <security-setting match="#">{permissions}</security-setting>
    </security-settings>
    <address-settings>
      <address-setting match="#">
        <default-address-routing-type>ANYCAST</default-address-routing-type>
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
        <auto-delete-queues>false</auto-delete-queues>
        <auto-delete-addresses>false</auto-delete-addresses>
        <dead-letter-address>DLQ</dead-letter-address>
      </address-setting>
      <address-setting match="{full}#">
        <max-size-bytes>{full_at}</max-size-bytes>
        <address-full-policy>FAIL</address-full-policy>
      </address-setting>
      <address-setting match="{absent}#">
        <auto-create-queues>false</auto-create-queues>
        <auto-create-addresses>false</auto-create-addresses>
      </address-setting>
    </address-settings>
    <addresses>
      {queues}
    </addresses>
  </core>
</configuration>
""",
}


QUEUE = '<address name="{name}"><anycast><queue name="{name}"/></anycast></address>'

# It lives for seconds: quick to start and small, rather than fast at last.
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xms64M", "-Xmx256M")


class Artemis(Broker):
    """Artemis broker.

    `connections` is the part of broker.xml for connections that it makes itself. `queues` exist
    from the start. Without `security` everybody may do everything.
    """

    name = "artemis"
    user = "admin"
    password = "secret"

    def __init__(
        self,
        folder: Path,
        *,
        connections: str = "",
        queues: Sequence[str] = (),
        security: bool = True,
        machine: Sequence[str] = SHORT_LIVED,
    ) -> None:
        super().__init__(folder)
        self._machine = machine
        self._programs = unpacked("artemis", "ActiveMQ Artemis")
        self._etc = folder / "etc"
        self._etc.mkdir(exist_ok=True)
        values = {
            "etc": self._etc,
            "data": folder / "data",
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "full": FULL,
            "full_at": FULL_AT_BYTES,
            "absent": ABSENT,
            "connections": connections,
            "queues": "".join(QUEUE.format(name=name) for name in ("DLQ", *queues)),
            "security": str(security).lower(),
            "permissions": "".join(
                f'<permission type="{right}" roles="all"/>' for right in RIGHTS.split()
            ),
        }
        for name, text in FILES.items():
            (self._etc / name).write_text(text.format(**values), encoding="utf-8")

    def command(self) -> list[str | Path]:
        """Return the command of its own script, without the parts that a test does not need."""
        java = shutil.which("java")
        if java is None:
            pytest.fail("there is no java to run ActiveMQ Artemis with")
        properties = {
            "java.security.auth.login.config": self._etc / "login.config",
            "java.io.tmpdir": self.folder,
            "artemis.home": self._programs,
            "artemis.instance": self.folder,
            "artemis.instance.etc": self._etc,
            "data.dir": self.folder / "data",
            "log4j2.configurationFile": self._etc / "log4j2.properties",
            "log4j2.disableJmx": "true",
        }
        return [
            java,
            *self._machine,
            *("--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"),
            *(f"-D{name}={value}" for name, value in properties.items()),
            *("-classpath", self._programs / "lib/artemis-boot.jar"),
            *("org.apache.activemq.artemis.boot.Artemis", "run"),
        ]

    def is_ready(self) -> bool:
        """Return whether its log says that it is ready."""
        return "AMQ221007" in self.log_text()
