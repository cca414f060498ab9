"""Both formats hold every metric, and strange addresses come through unharmed."""

from __future__ import annotations

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families as parse_text

from router.config.model import MetricsSettings
from router.config.plugins import PluginSettings
from router.core.addresses.table import AddressTable
from router.hosting.host import HostedPlugin
from router.metrics import reading
from router.metrics.catalogue import METRICS, PROCESS_METRICS
from router.metrics.dispatch import DISPATCH
from router.metrics.exposition import Exposition
from router.metrics.metric import Metric
from router.metrics.plugins import PluginsReading
from router.net.connector_status import ConnectorStatus
from router.net.places import Place
from router.net.router_hub import RouterHub

from support.scraping import Scrape, openmetrics

OPENMETRICS = "application/openmetrics-text"
PROMETHEUS = f"{OPENMETRICS};version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"


def exposition(*addresses: str, limit: int = 100) -> Exposition:
    """Return the metrics of a router without connections, with some addresses in use."""
    table = AddressTable([], "balanced", lambda _: "")
    for name in addresses:
        assert table.enter(name) is not None
    hub = RouterHub(table, 2**20, 65536)
    hub.add_counters("amqp", "in", "normal")
    hub.certificate_expiries = {"tls": 1.8e9}
    hub.crl_expiries = {"tls": 1.7e9}
    broker = hub.add_counters("broker", "out", "route-container")
    broker.status = ConnectorStatus((Place("b", 1, "b"),), hub.turn.now)
    shown = Exposition(hub, MetricsSettings(address_label_limit=limit))
    shown.collector.log_lines = lambda: {"info": 1}
    hosted = HostedPlugin(PluginSettings(plugin="example"))
    reading = PluginsReading([hosted], [("example", "crashed", 1)])
    shown.collector.plugins = lambda: reading
    return shown


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/html", "text/plain; version=0.0.4; charset=utf-8"),
        (PROMETHEUS, OPENMETRICS),
        (f"{OPENMETRICS};version=1.0.0", OPENMETRICS),
    ],
)
async def test_the_format_is_the_one_asked_for(accept: str, content_type: str) -> None:
    got, body = await exposition().render(accept)
    assert got.startswith(content_type)
    assert body.endswith(b"# EOF\n") == (content_type == OPENMETRICS)
    assert body.count(b"# EOF") == (content_type == OPENMETRICS)


async def test_a_version_that_is_none_is_answered() -> None:
    _, body = await exposition().render(f"{OPENMETRICS};version=nonsense")
    assert b"trioute_build_info" in body


async def test_both_formats_say_the_same() -> None:
    shown = exposition("orders")
    _, text = await shown.render("")
    _, strict = await shown.render(OPENMETRICS)
    assert (
        Scrape(parse_text(text.decode())).samples.keys()
        == openmetrics(strict.decode()).samples.keys()
    )


def names_of(metric: Metric) -> list[str]:
    """Return the sample names of a metric.

    An address without measurements has no histogram.
    """
    if metric.kind != "histogram":
        return [metric.name]
    ends = () if metric.is_by_address else ("_bucket", "_sum", "_count")
    return [f"{metric.name}{end}" for end in ends]


async def test_every_metric_is_there_and_known() -> None:
    _, body = await exposition("orders").render("")
    names = {name for name, _ in Scrape(parse_text(body.decode())).samples}
    assert names == {
        # a router that works alone has no neighbours
        *(name for m in METRICS for name in names_of(m) if "round_trip" not in name),
        *(each.name for each in DISPATCH),
        *(name for name, _, _ in PROCESS_METRICS),
    }


@pytest.mark.parametrize(
    "name",
    [
        'say "hello"',
        "back\\slash",
        "two\nlines",
        "carriage\rreturn\x00\x1b[31m",
        'x"} 1\ntrioute_fake{y="z',
        "größe/日本語/🐇",
        "other",
        "u\u2028v\x85w",
    ],
)
async def test_an_address_may_be_called_anything(name: str) -> None:
    shown = exposition(name)
    expected = {"/other" if name == "other" else name, "other"}
    for accept, parse in (("", parse_text), (OPENMETRICS, None)):
        _, body = await shown.render(accept)
        text = body.decode()
        scraped = Scrape(parse(text)) if parse else openmetrics(text)
        assert set(scraped.by("address", "trioute_address_consumers")) == expected


async def test_a_long_address_is_cut() -> None:
    _, body = await exposition("x" * 100_000).render("")
    assert len(body) < 50_000


async def test_all_who_asked_before_a_text_was_begun_get_it() -> None:
    shown = exposition("orders")
    texts: list[bytes] = []

    async def ask() -> None:
        texts.append((await shown.render(""))[1])

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(ask)
        while not shown.begun:
            await trio.lowlevel.checkpoint()
        for _ in range(10):
            nursery.start_soon(ask)
    assert len(texts) == 20
    assert shown.begun == 2
    assert len({id(text) for text in texts}) == 2


async def test_who_asks_later_gets_a_text_of_that_time() -> None:
    shown = exposition("orders")
    ticket = shown.begun
    _, text = await shown.render("")
    assert (await shown.render("", ticket))[1] is text
    assert (await shown.render(OPENMETRICS, ticket))[1] != text
    later = shown.begun
    assert (await shown.render("", later))[1] is not text


async def test_others_run_while_a_text_is_made() -> None:
    shown = exposition(*(f"a{n}" for n in range(100)))
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await shown.render("")
        nursery.cancel_scope.cancel()
    assert passes >= len(METRICS)


async def test_others_run_while_a_reading_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ADDRESSES_AT_ONCE", 2)
    shown = exposition(*(f"a{n}" for n in range(100)))
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await shown.collector.read()
        nursery.cancel_scope.cancel()
    assert passes > 40
