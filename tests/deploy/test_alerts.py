"""Each alert fires when it should, not before its time, and not otherwise: promtool runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from router.metrics.catalogue import METRICS, PROCESS_METRICS

from support.prometheus import ROOT, RULES, promtool

HOST = 'job="trioute", instance="r:9672"'
BAD = "0+60x60"
QUIET = "0+0x60"
_ALERT = re.compile(r"^ +- alert: (\w+)$(.*?)(?=^ +- alert|\Z)", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Case:
    """Series with a value each minute, for a test of one alert.

    With `bad` the alert fires at minute `at` and not at minute `before`. With the changes of `good`
    it never fires.
    """

    bad: dict[str, str]
    good: dict[str, str]
    at: int
    before: int | None = None


def series(name: str, **labels: str) -> str:
    """Return the name of a series of one router."""
    pairs = [f'{label}="{value}"' for label, value in labels.items()]
    return f"{name}{{{', '.join([HOST, *pairs])}}}"


ENDPOINT = {"endpoint": "broker", "direction": "out", "role": "normal"}
UPLINK = {"endpoint": "up", "direction": "out", "role": "edge"}
INGRESS = {
    series("trioute_deliveries_ingress_total"): "0+50x60",
    series("trioute_deliveries_from_routers_total"): "0+50x60",
}


def outcome(name: str, values: str) -> dict[str, str]:
    """Return the series of a router with traffic, with this outcome counted by `values`."""
    return INGRESS | {series("trioute_deliveries_outcome_total", outcome=name): values}


def by_value(name: str, bad: str, good: str, at: int, before: int | None, **labels: str) -> Case:
    """One series, whose values make the difference."""
    one = series(name, **labels)
    return Case({one: bad}, {one: good}, at, before)


def limited(name: str, limit: str, at: int, before: int) -> Case:
    """Return the case of a series that approaches the limit in another series."""
    named, limiting = series(name), {series(limit): "100x60"}
    return Case({named: "81x60"} | limiting, {named: "79x60"} | limiting, at, before)


def settled(within: str) -> dict[str, str]:
    """Deliveries each of which takes as long as the bound says, or less, and more than others."""
    bounds = {"0.25": QUIET, "0.5": QUIET, "5": QUIET, "+Inf": "0+60x60"}
    at = list(bounds).index(within)
    name = "trioute_deliveries_settle_seconds_bucket"
    return {
        series(name, le=bound): BAD if place >= at else values
        for place, (bound, values) in enumerate(bounds.items())
    }


LINKS = "trioute_links_blocked"
CASES = {
    "TriouteDown": by_value("up", "0x60", "1x60", 1, 0),
    "TriouteRestarting": by_value("process_start_time_seconds", "1x3 2x3 3x60", "1x5 2x60", 10, 5),
    "TriouteNotReady": by_value("trioute_ready", "0x60", "1x60", 2, 1),
    "TriouteErrors": by_value("trioute_log_lines_total", "0x5 1x60", "1x60", 7, 5, level="error"),
    "TriouteConnectorDown": by_value("trioute_connections", "0x60", "1x60", 2, 1, **ENDPOINT),
    "TriouteConnectionsFailing": by_value(
        "trioute_connections_failed_total", "0+12x60", "0+1x60", 10, 4, **ENDPOINT
    ),
    "TriouteLoginsRefused": by_value(
        "trioute_connections_unauthenticated_total", "0+12x60", "0+1x60", 10, 4, **ENDPOINT
    ),
    "TrioutePolicyRefuses": by_value(
        "trioute_policy_denied_total", "0+12x60", "0+1x60", 10, 4, vhost="a", kind="sender"
    ),
    "TriouteAutoLinksDown": Case(
        {
            series("trioute_auto_links", status="failed"): "2x60",
            series("trioute_auto_links", status="active"): "9x60",
        },
        {
            series("trioute_auto_links", status="failed"): "0x60",
            series("trioute_auto_links", status="active"): "9x60",
        },
        2,
        1,
    ),
    "TriouteLinkRoutesInactive": by_value(
        "trioute_link_routes", "1x60", "0x60", 2, 1, status="inactive"
    ),
    "TriouteRoutedLinksRefused": Case(
        {
            series("trioute_link_route_refused_total"): "0+6x60",
            series("trioute_link_route_unplaced_total"): "0+6x60",
        },
        {
            series("trioute_link_route_refused_total"): "0+1x60",
            series("trioute_link_route_unplaced_total"): "0+1x60",
        },
        10,
        4,
    ),
    "TriouteNetworkNeighbourLost": by_value("trioute_network_neighbours", "2x5 1x60", "2x60", 9, 7),
    "TriouteNetworkRouterLost": by_value("trioute_network_routers", "9x5 8x60", "9x60", 9, 7),
    "TriouteNetworkNotSynced": by_value("trioute_network_synced", "0x60", "1x60", 2, 1),
    "TriouteNetworkDuplicateId": by_value(
        "trioute_network_conflicts_total", "0x5 1x60", "1x60", 7, 5
    ),
    "TriouteNetworkFlapping": by_value("trioute_network_changes_total", "0+4x60", "0+2x60", 20, 4),
    "TriouteNetworkRefused": by_value("trioute_network_refused_total", "0+2x60", "0+1x60", 15, 4),
    "TriouteNetworkLinksRetried": by_value(
        "trioute_network_link_retries_total", "0+66x60", "0+50x60", 15, 4
    ),
    "TriouteEdgeWithoutUplink": Case(
        {
            series("trioute_edge_uplinks", state="active"): "0x60",
            series("trioute_edge_uplinks", state="standby"): "1x60",
            series("trioute_connections", **UPLINK): "1x60",
        },
        # an interior router has none either
        {series("trioute_edge_uplinks", state="active"): "0x60"},
        2,
        1,
    ),
    "TriouteEdgeUplinksLost": Case(
        {
            series("trioute_edge_uplinks_lost_total"): "0+1x60",
            series("trioute_edge_silent_total"): QUIET,
        },
        {
            series("trioute_edge_uplinks_lost_total"): "0x10 1x60",
            series("trioute_edge_silent_total"): "0x10 1x60",
        },
        15,
        2,
    ),
    "TriouteEdgeLinksFailed": by_value("trioute_edge_links", "3x60", "0x60", 5, 4, status="failed"),
    "TriouteEdgeHoldNearLimit": by_value("trioute_edge_held_share", "0.9x60", "0.7x60", 1, 0),
    "TriouteEdgeHeldReleased": by_value(
        "trioute_edge_held_released_total", "0x5 5x60", "5x60", 7, 5, reason="exceeded"
    ),
    "TriouteReceiversBlocked": by_value(LINKS, "3x60", "0x60", 5, 4, direction="out"),
    "TriouteSendersBlocked": by_value(LINKS, "3x60", "0x60", 15, 14, direction="in"),
    "TriouteAddressBlocked": Case(
        {
            series("trioute_address_blocked", address="q", reason="no_credit"): "1x60",
            series("trioute_address_deliveries_waiting", address="q"): "2x60",
        },
        {
            series("trioute_address_blocked", address="q", reason="no_consumer"): "1x60",
            series("trioute_address_deliveries_waiting", address="q"): "0x60",
        },
        5,
        4,
    ),
    "TriouteDeliveriesStuck": by_value(
        "trioute_deliveries_stuck", "2x60", "0x60", 5, 4, direction="in"
    ),
    "TriouteSlowSettlement": Case(settled("5"), settled("0.5"), 20, 9),
    "TriouteRejects": Case(outcome("rejected", "0+6x60"), outcome("rejected", "0+4x60"), 10, 4),
    "TriouteReturned": Case(outcome("modified", "0+6x60"), outcome("accepted", "0+90x60"), 10, 4),
    "TriouteExpired": Case(outcome("expired", "0+1x60"), outcome("expired", QUIET), 10, 4),
    "TriouteMemoryNearLimit": limited("trioute_held_bytes", "trioute_held_limit_bytes", 2, 1),
    "TriouteHeldBack": by_value("trioute_connections_held_back", "1x60", "0x60", 5, 4),
    "TriouteBusy": by_value("process_cpu_seconds_total", "0+57x60", "0+50x60", 20, 9),
    "TriouteFewFilesLeft": limited("process_open_fds", "process_max_fds", 5, 4),
    "TriouteCertificateExpires": by_value(
        "trioute_certificate_expiry_timestamp_seconds",
        "1000000x60",
        "2000000x60",
        5,
        4,
        profile="p",
    ),
    "TriouteRevocationListExpires": by_value(
        "trioute_crl_expiry_timestamp_seconds",
        "43000x60",
        "60000x60",
        5,
        4,
        profile="p",
    ),
}


def rules() -> dict[str, str]:
    """Return the text of each alert rule by its name."""
    return dict(_ALERT.findall(RULES.read_text(encoding="utf-8")))


def expected(at: int | None, count: int) -> list[dict[str, Any]]:
    """How many alerts fire at a minute, by their names."""
    if at is None:
        return []
    return [{"eval_time": f"{at}m", "expr": 'count(ALERTS{alertstate="firing"}) or vector(0)',
             "exp_samples": [{"labels": "{}", "value": count}]}]  # fmt: skip


def test_the_rules_are_sound() -> None:
    assert f"{len(CASES)} rules found" in promtool("check", "rules", RULES)
    promtool("check", "config", RULES.with_name("prometheus.yml"))


def test_every_rule_has_its_case() -> None:
    assert set(rules()) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_says_what_is_wrong_and_what_to_do(name: str) -> None:
    text = rules()[name]
    for field in ("severity: ", 'summary: "', 'description: "'):
        assert text.count(field) == 1
    (page, anchor) = re.findall(r"runbook_url: (\S+)#(\S+)", text)[0]
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_reads_metrics_that_there_are(name: str) -> None:
    known = {metric.name for metric in METRICS} | {each for each, _, _ in PROCESS_METRICS}
    known |= {f"{m.name}_bucket" for m in METRICS if m.kind == "histogram"}
    used = set(re.findall(r"\b(?:trioute|process)_\w+", rules()[name]))
    assert used <= known


def test_each_fires_when_it_should_and_alone(tmp_path: Path) -> None:
    tests = []
    for name, case in CASES.items():
        for values, at, count in (
            (case.bad, case.at, 1),
            (case.bad, case.before, 0),
            (case.good, case.at, 0),
        ):
            tests.append(
                {
                    "name": name,
                    "interval": "1m",
                    "input_series": [{"series": s, "values": v} for s, v in values.items()],
                    "promql_expr_test": expected(at, count),
                }
            )
        named = {
            "eval_time": f"{case.at}m",
            "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
            "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1}],
        }
        tests[-3]["promql_expr_test"] = [named]
    file = tmp_path / "alerts-test.yml"
    suite = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(json.dumps(suite), encoding="utf-8")
    promtool("test", "rules", file)
