"""Build Grafana's dashboard from a table of panels and from the catalogue of metrics.

`make docs` writes `trioute-dashboard.json` anew. Each expression names metrics of the catalogue,
and a panel shows their help as its description. A metric that was renamed or dropped raises an
error here instead of leaving a panel empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from router.metrics.catalogue import METRICS, PROCESS_METRICS

MEANINGS: Final = {
    **{metric.name: metric.meaning for metric in METRICS},
    **{name: meaning for name, _, meaning in PROCESS_METRICS},
    "up": "Whether the router could be scraped.",
}
# What a histogram's series are called.
_PART: Final = re.compile(r"_(bucket|sum|count)$")
_NAME: Final = re.compile(r"\b(?:trioute_|process_|python_)\w+|\bup\b")
# Of each router that is chosen, and of the job that the rules go by.
OF: Final = 'job="trioute", instance=~"$instance"'
RANGE: Final = "$__rate_interval"
SOURCE: Final = {"type": "prometheus", "uid": "$datasource"}
COLUMNS: Final = 24
HEIGHT: Final = 8


@attrs.frozen
class Panel:
    """Graph, or with `is_stat` a single number: its expressions, each with a legend."""

    title: str
    expressions: tuple[tuple[str, str], ...]
    unit: str = "short"
    is_stat: bool = False
    width: int = 8
    is_stacked: bool = False


def rate(name: str, *by: str, labels: str = "") -> str:
    """Return the expression for a counter's rate per second, summed by some labels."""
    inside = f"{name}{{{OF}{', ' if labels else ''}{labels}}}"
    return f"sum by ({', '.join(('instance', *by))}) (rate({inside}[{RANGE}]))"


def total(name: str, *by: str, labels: str = "") -> str:
    """Return the expression for a gauge, summed by some labels."""
    inside = f"{name}{{{OF}{', ' if labels else ''}{labels}}}"
    return f"sum by ({', '.join(('instance', *by))}) ({inside})"


def top(expression: str, count: int = 10) -> str:
    """Return the expression for the `count` largest series of an expression."""
    return f"topk({count}, {expression})"


def quantile(share: float, histogram: str, *by: str) -> str:
    """Return the expression for the time below which a share of a histogram's values lies."""
    buckets = rate(f"{histogram}_bucket", *by, "le")
    return f"histogram_quantile({share:g}, {buckets})"


HERE: Final = "{{instance}}"


def _stat(title: str, expression: str, unit: str = "short") -> Panel:
    return Panel(title, ((expression, HERE),), unit, is_stat=True, width=4)


ROWS: Final = (
    (
        "At a glance",
        (
            _stat("Up", f"up{{{OF}}}"),
            _stat("Ready", f"trioute_ready{{{OF}}}"),
            _stat("Running for", f"trioute_uptime_seconds{{{OF}}}", "s"),
            _stat("Connections", total("trioute_connections")),
            _stat("Deliveries a second", rate("trioute_deliveries_ingress_total"), "ops"),
            _stat("Waiting", f"trioute_held_bytes{{{OF}}}", "bytes"),
        ),
    ),
    (
        "Deliveries",
        (
            Panel(
                "In and out",
                (
                    (rate("trioute_deliveries_ingress_total"), f"{HERE} in"),
                    (rate("trioute_deliveries_egress_total"), f"{HERE} out"),
                    (rate("trioute_deliveries_from_routers_total"), f"{HERE} from routers"),
                    (rate("trioute_deliveries_transit_total"), f"{HERE} to routers"),
                ),
                "ops",
            ),
            Panel(
                "Outcomes",
                ((rate("trioute_deliveries_outcome_total", "outcome"), f"{HERE} {{{{outcome}}}}"),),
                "ops",
                is_stacked=True,
            ),
            Panel(
                "Octets of messages",
                (
                    (rate("trioute_ingress_bytes_total"), f"{HERE} in"),
                    (rate("trioute_egress_bytes_total"), f"{HERE} out"),
                ),
                "Bps",
            ),
            Panel(
                "Unsettled",
                (
                    (
                        total("trioute_deliveries_unsettled", "direction"),
                        f"{HERE} {{{{direction}}}}",
                    ),
                ),
            ),
            Panel("Waiting for a receiver", ((f"trioute_deliveries_waiting{{{OF}}}", HERE),)),
            Panel(
                "Dropped and given to another",
                (
                    (rate("trioute_deliveries_dropped_presettled_total"), f"{HERE} dropped"),
                    (rate("trioute_deliveries_redelivered_total"), f"{HERE} redelivered"),
                ),
                "ops",
            ),
        ),
    ),
    (
        "How long it takes",
        (
            Panel(
                "Until deliveries are sent on",
                (
                    (quantile(0.5, "trioute_deliveries_forward_seconds"), f"{HERE} half"),
                    (quantile(0.99, "trioute_deliveries_forward_seconds"), f"{HERE} 99 %"),
                ),
                "s",
            ),
            Panel(
                "Until deliveries are settled",
                (
                    (quantile(0.5, "trioute_deliveries_settle_seconds"), f"{HERE} half"),
                    (quantile(0.99, "trioute_deliveries_settle_seconds"), f"{HERE} 99 %"),
                ),
                "s",
            ),
            Panel(
                "Slowest addresses, until settled (99 %)",
                (
                    (
                        top(quantile(0.99, "trioute_address_settle_seconds", "address")),
                        f"{HERE} {{{{address}}}}",
                    ),
                ),
                "s",
            ),
        ),
    ),
    (
        "What is held up",
        (
            Panel(
                "Links without credit",
                ((total("trioute_links_blocked", "direction"), f"{HERE} {{{{direction}}}}"),),
            ),
            Panel(
                "Links that carry nothing, by reason",
                (
                    (
                        total("trioute_links_held_up", "direction", "reason") + " > 0",
                        f"{HERE} {{{{direction}}}} {{{{reason}}}}",
                    ),
                ),
                is_stacked=True,
            ),
            Panel("Connections held back", ((f"trioute_connections_held_back{{{OF}}}", HERE),)),
        ),
    ),
    (
        "Addresses",
        (
            Panel(
                "Busiest",
                (
                    (
                        top(rate("trioute_address_deliveries_ingress_total", "address")),
                        f"{HERE} {{{{address}}}}",
                    ),
                ),
                "ops",
            ),
            Panel(
                "Most waiting",
                (
                    (
                        top(total("trioute_address_deliveries_waiting", "address")),
                        f"{HERE} {{{{address}}}}",
                    ),
                ),
            ),
            Panel(
                "Not accepted",
                (
                    (
                        top(
                            rate(
                                "trioute_address_deliveries_outcome_total",
                                "address",
                                "outcome",
                                labels='outcome!="accepted"',
                            )
                        ),
                        f"{HERE} {{{{address}}}} {{{{outcome}}}}",
                    ),
                ),
                "ops",
            ),
        ),
    ),
    (
        "Connections",
        (
            Panel(
                "By listener and connector",
                (
                    (
                        total("trioute_connections", "endpoint", "direction"),
                        f"{HERE} {{{{endpoint}}}} {{{{direction}}}}",
                    ),
                ),
            ),
            Panel(
                "Opened, failed, refused",
                (
                    (
                        rate("trioute_connections_opened_total", "endpoint"),
                        f"{HERE} {{{{endpoint}}}} opened",
                    ),
                    (
                        rate("trioute_connections_failed_total", "endpoint"),
                        f"{HERE} {{{{endpoint}}}} failed",
                    ),
                    (
                        rate("trioute_connections_unauthenticated_total", "endpoint"),
                        f"{HERE} {{{{endpoint}}}} refused",
                    ),
                ),
                "ops",
            ),
            Panel(
                "On the wire",
                (
                    (
                        rate("trioute_connections_received_bytes_total", "endpoint"),
                        f"{HERE} {{{{endpoint}}}} in",
                    ),
                    (
                        rate("trioute_connections_sent_bytes_total", "endpoint"),
                        f"{HERE} {{{{endpoint}}}} out",
                    ),
                ),
                "Bps",
            ),
            Panel(
                "Who sends most",
                (
                    (
                        top(
                            rate(
                                "trioute_connection_received_bytes_total",
                                "connection",
                                "container",
                                "user",
                            )
                        ),
                        f"{HERE} {{{{connection}}}} {{{{user}}}} {{{{container}}}}",
                    ),
                ),
                "Bps",
            ),
            Panel(
                "Whose messages wait",
                (
                    (
                        top(total("trioute_connection_held_bytes", "connection", "container")),
                        f"{HERE} {{{{connection}}}} {{{{container}}}}",
                    ),
                ),
                "bytes",
            ),
            Panel(
                "Who does not read",
                (
                    (
                        top(total("trioute_connection_unsent_bytes", "connection", "container")),
                        f"{HERE} {{{{connection}}}} {{{{container}}}}",
                    ),
                ),
                "bytes",
            ),
        ),
    ),
    (
        "Brokers",
        (
            Panel(
                "Connectors without a connection, since",
                (
                    (
                        total("trioute_connector_disconnected_seconds", "connector"),
                        f"{HERE} {{{{connector}}}}",
                    ),
                ),
                "s",
            ),
            Panel(
                "Attempts to connect that failed",
                (
                    (
                        rate("trioute_connector_failures_total", "connector", "reason"),
                        f"{HERE} {{{{connector}}}} {{{{reason}}}}",
                    ),
                ),
                "ops",
            ),
            Panel(
                "Auto-links",
                ((total("trioute_auto_links", "status"), f"{HERE} {{{{status}}}}"),),
                is_stacked=True,
            ),
            Panel(
                "Auto-links that came to nothing",
                ((rate("trioute_auto_link_failures_total"), HERE),),
                "ops",
            ),
            Panel(
                "Link routes and the links by them",
                (
                    (total("trioute_link_routes", "status"), f"{HERE} {{{{status}}}}"),
                    (f"trioute_routed_links{{{OF}}}", f"{HERE} links"),
                ),
            ),
            Panel(
                "Links forwarded and refused",
                (
                    (rate("trioute_link_route_forwarded_total"), f"{HERE} forwarded"),
                    (rate("trioute_link_route_refused_total"), f"{HERE} refused"),
                    (rate("trioute_link_route_unplaced_total"), f"{HERE} without a container"),
                ),
                "ops",
            ),
        ),
    ),
    (
        "Network of routers",
        (
            Panel(
                "Neighbours, routers and connections",
                (
                    (f"trioute_network_neighbours{{{OF}}}", f"{HERE} neighbours"),
                    (f"trioute_network_routers{{{OF}}}", f"{HERE} routers"),
                    (f"trioute_network_connections{{{OF}}}", f"{HERE} connections"),
                ),
            ),
            Panel(
                "Ways that changed",
                ((rate("trioute_network_changes_total"), HERE),),
                "ops",
            ),
            Panel("In sync with its neighbours", ((f"trioute_network_synced{{{OF}}}", HERE),)),
            Panel(
                "Addresses received from elsewhere", ((f"trioute_network_addresses{{{OF}}}", HERE),)
            ),
            Panel(
                "Control messages",
                (
                    (
                        rate("trioute_network_control_messages_total", "direction", "opcode"),
                        f"{HERE} {{{{direction}}}} {{{{opcode}}}}",
                    ),
                ),
                "ops",
                is_stacked=True,
            ),
            Panel(
                "Control messages, octets",
                (
                    (
                        rate("trioute_network_control_bytes_total", "direction"),
                        f"{HERE} {{{{direction}}}}",
                    ),
                ),
                "Bps",
            ),
            Panel(
                "Deliveries from router to router",
                ((rate("trioute_deliveries_transit_total"), HERE),),
                "ops",
            ),
            Panel(
                "What went wrong",
                (
                    (rate("trioute_network_link_retries_total"), f"{HERE} links tried again"),
                    (rate("trioute_network_refused_total"), f"{HERE} peers refused"),
                    (rate("trioute_network_conflicts_total"), f"{HERE} ids that were taken"),
                ),
                "ops",
            ),
            Panel(
                "Since the ways changed",
                ((f"trioute_network_changed_seconds{{{OF}}}", HERE),),
                "s",
            ),
        ),
    ),
    (
        "Edges",
        (
            Panel(
                "Uplinks of edges",
                (
                    (total("trioute_edge_uplinks", "state"), f"{HERE} {{{{state}}}}"),
                    (rate("trioute_edge_uplinks_lost_total"), f"{HERE} lost a second"),
                ),
            ),
            Panel(
                "Edges of interior routers",
                (
                    (total("trioute_edges", "state"), f"{HERE} {{{{state}}}}"),
                    (rate("trioute_edge_silent_total"), f"{HERE} silent, a second"),
                ),
            ),
            Panel(
                "Links between edges and interiors",
                ((total("trioute_edge_links", "status"), f"{HERE} {{{{status}}}}"),),
                is_stacked=True,
            ),
            Panel(
                "Addresses that are watched", ((f"trioute_edge_watched_addresses{{{OF}}}", HERE),)
            ),
            Panel(
                "Held while there is no uplink",
                (
                    (f"trioute_edge_held_messages{{{OF}}}", f"{HERE} messages"),
                    (
                        rate("trioute_edge_held_released_total", "reason"),
                        f"{HERE} {{{{reason}}}} a second",
                    ),
                ),
            ),
            Panel("The fullest hold", ((f"trioute_edge_held_share{{{OF}}}", HERE),), "percentunit"),
        ),
    ),
    (
        "Room",
        (
            Panel(
                "Memory of the router, by reason",
                ((total("trioute_memory_bytes", "reason"), f"{HERE} {{{{reason}}}}"),),
                "bytes",
                is_stacked=True,
            ),
            Panel(
                "What may wait, and does",
                (
                    (f"trioute_held_bytes{{{OF}}}", f"{HERE} waits"),
                    (f"trioute_held_limit_bytes{{{OF}}}", f"{HERE} may wait"),
                ),
                "bytes",
            ),
            Panel(
                "Lines of the log",
                ((rate("trioute_log_lines_total", "level"), f"{HERE} {{{{level}}}}"),),
                "ops",
            ),
            Panel(
                "Memory of the process",
                ((f"process_resident_memory_bytes{{{OF}}}", HERE),),
                "bytes",
            ),
            Panel("Processor", ((rate("process_cpu_seconds_total"), HERE),), "percentunit"),
            Panel("File descriptors", ((f"process_open_fds{{{OF}}}", HERE),)),
            Panel(
                "Links and sessions",
                (
                    (total("trioute_links", "direction"), f"{HERE} links {{{{direction}}}}"),
                    (f"trioute_sessions{{{OF}}}", f"{HERE} sessions"),
                ),
            ),
        ),
    ),
)


def names_in(expression: str) -> list[str]:
    """Return the metrics that an expression reads; raise KeyError for an unknown one."""
    names = list(dict.fromkeys(_NAME.findall(expression)))
    for name in names:
        if name not in MEANINGS and _PART.sub("", name) not in MEANINGS:
            raise KeyError(f"there is no metric {name}")
    return names


def _described(panel: Panel) -> str:
    names = [name for expression, _ in panel.expressions for name in names_in(expression)]
    return "\n\n".join(
        f"`{name}`: {MEANINGS[name if name in MEANINGS else _PART.sub('', name)]}"
        for name in dict.fromkeys(names)
    )


def _panel(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    custom: dict[str, Any] = {"fillOpacity": 20, "showPoints": "never"}
    if panel.is_stacked:
        custom["stacking"] = {"mode": "normal", "group": "A"}
    return {
        "id": number,
        "type": "stat" if panel.is_stat else "timeseries",
        "title": panel.title,
        "description": _described(panel),
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": 4 if panel.is_stat else HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "custom": {} if panel.is_stat else custom},
            "overrides": [],
        },
        "options": {} if panel.is_stat else {"tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": SOURCE,
                "editorMode": "code",
                "expr": expression,
                "legendFormat": legend,
            }
            for index, (expression, legend) in enumerate(panel.expressions)
        ],
    }


def _panels() -> Iterator[dict[str, Any]]:
    number = y = 0
    for title, panels in ROWS:
        number += 1
        position = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": title, "gridPos": position,
               "collapsed": False, "panels": []}  # fmt: skip
        y += 1
        x = height = 0
        for panel in panels:
            if x + panel.width > COLUMNS:
                x = 0
                y += height
            number += 1
            made = _panel(panel, number, x, y)
            yield made
            height = made["gridPos"]["h"]
            x += panel.width
        y += height


def dashboard() -> dict[str, Any]:
    """Return the dashboard in the form that Grafana imports."""
    return {
        "uid": "trioute",
        "title": "Trioute",
        "tags": ["trioute", "amqp"],
        "schemaVersion": 38,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                {
                    "name": "instance",
                    "type": "query",
                    "datasource": SOURCE,
                    "query": {"query": 'label_values(trioute_build_info{job="trioute"}, instance)',
                              "refId": "instance"},
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                    "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "annotations": {"list": []},
        "panels": list(_panels()),
    }  # fmt: skip


def format_dashboard() -> str:
    """Return the text of the dashboard's file."""
    return json.dumps(dashboard(), indent=2) + "\n"
