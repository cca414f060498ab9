"""Router in this process with an HTTP listener, and HTTP requests to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import attrs
import h11
import trio
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration, MetricsSettings
from router.config.redirects import RedirectSettings
from router.node import Node

PATIENCE_S = 60.0
HTTP = ListenerSettings(port=0, http=True, name="http")


@attrs.frozen
class Response:
    """HTTP response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.body.decode()


class Scrape:
    """Samples of one scrape, found by name and labels."""

    def __init__(self, families: Iterable[Family]) -> None:
        self.families = {family.name: family for family in families}
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in self.families.values():
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.samples, f"{key} stands twice"
                self.samples[key] = sample.value

    def __call__(self, name: str, **labels: str) -> float:
        """Return one sample's value; raise KeyError if it is missing."""
        return self.samples[name, frozenset(labels.items())]

    def by(self, label: str, name: str, **others: str) -> dict[str, float]:
        """Return the samples of a name by one label; the other labels are as given."""
        found = {}
        for (sample, pairs), value in self.samples.items():
            labels = dict(pairs)
            of = labels.pop(label, None)
            if sample == name and of is not None and labels == others:
                found[of] = value
        return found


@attrs.frozen
class RunningNode:
    """Node that runs in this process, with one AMQP listener and one for HTTP."""

    node: Node
    stop: trio.Event
    amqp_port: int
    http_port: int

    async def request(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None
    ) -> Response:
        """Send one request on a connection of its own."""
        return await request(self.http_port, path, method, headers)

    async def scrape(self) -> Scrape:
        """Return the metrics, read in the text format."""
        response = await self.request("/metrics")
        assert response.status == 200
        return Scrape(parse_text(response.text))

    async def scrape_until(self, is_so: Callable[[Scrape], bool]) -> Scrape:
        """Scrape again and again until something is so."""
        with trio.fail_after(PATIENCE_S):
            while True:
                scraped = await self.scrape()
                if is_so(scraped):
                    return scraped


@asynccontextmanager
async def running_node(
    *,
    address_label_limit: int = 100,
    connection_label_limit: int = 100,
    qdr_names: bool = True,
    http: ListenerSettings = HTTP,
    addresses: tuple[AddressSettings, ...] = (),
    redirects: tuple[RedirectSettings, ...] = (),
    connectors: tuple[ConnectorSettings, ...] = (),
) -> AsyncIterator[RunningNode]:
    """Run a node until the block ends, then stop it in order."""
    configuration = Configuration(
        listeners=(ListenerSettings(port=0, name="amqp"), http),
        addresses=addresses,
        redirects=redirects,
        connectors=connectors,
        metrics=MetricsSettings(
            address_label_limit=address_label_limit,
            connection_label_limit=connection_label_limit,
            qdr_names=qdr_names,
        ),
    )
    node = Node(configuration)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        amqp, web = await nursery.start(node.run, stop)
        try:
            yield RunningNode(node, stop, amqp.addresses[0][1], web.addresses[0][1])
        finally:
            stop.set()


async def request(
    port: int, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> Response:
    """Send one request to a server on this machine, on a connection of its own."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        return await ask(stream, path, method, {"connection": "close", **(headers or {})})


async def ask(
    stream: trio.SocketStream, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> Response:
    """Send one request on a connection that may be used for further ones."""
    client = h11.Connection(h11.CLIENT)
    asked = h11.Request(
        method=method, target=path, headers=[("host", "localhost"), *(headers or {}).items()]
    )
    with trio.fail_after(PATIENCE_S):
        await stream.send_all(
            (client.send(asked) or b"") + (client.send(h11.EndOfMessage()) or b"")
        )
        return await _response(client, stream.receive_some)


async def _response(client: h11.Connection, receive: Callable[[], Awaitable[bytes]]) -> Response:
    status = 0
    headers: dict[str, str] = {}
    body = bytearray()
    while True:
        event = client.next_event()
        if event is h11.NEED_DATA:
            client.receive_data(await receive())
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode() for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += event.data
        else:
            assert isinstance(event, h11.EndOfMessage)
            return Response(status, headers, bytes(body))


def openmetrics(text: str) -> Scrape:
    """Return a scrape read as OpenMetrics, whose parser is the stricter one."""
    return Scrape(parse_openmetrics(text))  # type: ignore[no-untyped-call]
