"""The queries of docs/how-to/analyse-telemetry.md, on files of the exporter."""

from __future__ import annotations

import contextlib
import io
import re
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from plugins.telemetry.test_deliveries import samples
from router_telemetry.deliveries import DeliveryRows
from router_telemetry.files import Files
from router_telemetry.rows import US, Rows
from router_telemetry.schema import FLOWS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "analyse-telemetry.md").read_text(encoding="utf-8")
LAKE = "/var/lib/trioute/telemetry"


def blocks(language: str) -> list[str]:
    """Return the code blocks of the page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Write the files of two routers, with two messages of three, one of them rejected."""
    flows = Rows(FLOWS, "a", 1, 100)
    now = round(datetime.now(UTC).timestamp() * US)
    for _ in range(2):
        flows.add(
            interval_start=now,
            container="client",
            role="normal",
            direction="in",
            address="q",
            deliveries=3,
            accepted=2,
        )
    for batch in flows.take():
        Files(tmp_path, "a", 1).write(batch)
    rejected = {"trace_low": 3, "outcome": 0x25}
    for router, hop in (("a", 1), ("b", 2)):
        deliveries = DeliveryRows(router, 1, 100)
        deliveries.add(samples({"hop": hop}, {"hop": hop} | rejected), 0)
        for part in deliveries.take():
            Files(tmp_path, router, 1).write(part)
    return tmp_path


def test_duckdb(lake: Path) -> None:
    with duckdb.connect() as database:
        totals, latency, losses = [
            database.execute(each.replace(LAKE, str(lake))).fetchall() for each in blocks("sql")
        ]
    assert totals == [("client", "q", 6, 4)]
    assert latency == [("a", "b", 2, [5000.0, 5000.0]), ("b", "b", 2, [5000.0, 5000.0])]
    assert losses == [("b", "rejected", "receiver", None, 1, 1.0)]


def test_polars(lake: Path) -> None:
    (code,) = blocks("python")
    said = io.StringIO()
    found: dict[str, object] = {}
    with contextlib.redirect_stdout(said):
        exec(code.replace(LAKE, str(lake)), found)
    paths = found["paths"]
    assert sorted(paths.rows(), key=repr) == [  # type: ignore[attr-defined]
        ((1).to_bytes(8, "big") + low.to_bytes(8, "big"), ["a", "b"], 2, True) for low in (2, 3)
    ]
    assert "true" in said.getvalue()
