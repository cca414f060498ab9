"""Catalogue of every metric of the router: name, kind, labels, meaning, and source of its values.

To add a metric, add a row: the exposition and the reference page are made from this table, whose
parts are in `rows`. Names follow the conventions of Prometheus: base units, and `_total` at the end
of counters.
"""

from __future__ import annotations

from typing import Final

from router.metrics.rows.addresses import ADDRESSES
from router.metrics.rows.auto_links import AUTO_LINKS
from router.metrics.rows.by_connection import BY_CONNECTION
from router.metrics.rows.certificates import CERTIFICATES
from router.metrics.rows.connections import CONNECTIONS
from router.metrics.rows.deliveries import DELIVERIES
from router.metrics.rows.edges import EDGES
from router.metrics.rows.latency import LATENCY
from router.metrics.rows.link_routes import LINK_ROUTES
from router.metrics.rows.memory import MEMORY
from router.metrics.rows.network import NETWORK
from router.metrics.rows.plugins import PLUGINS
from router.metrics.rows.policy import POLICY
from router.metrics.rows.router import ROUTER

METRICS: Final = (
    *ROUTER,
    *CONNECTIONS,
    *LINK_ROUTES,
    *AUTO_LINKS,
    *NETWORK,
    *EDGES,
    *DELIVERIES,
    *LATENCY,
    *MEMORY,
    *PLUGINS,
    *POLICY,
    *CERTIFICATES,
    *ADDRESSES,
    *BY_CONNECTION,
)

# Metrics of the process and of Python, which the Prometheus client library adds.
PROCESS_METRICS: Final = (
    ("process_cpu_seconds_total", "counter", "Processor time, user and system."),
    ("process_resident_memory_bytes", "gauge", "Memory in use."),
    ("process_virtual_memory_bytes", "gauge", "Address space in use."),
    ("process_start_time_seconds", "gauge", "Start of the process, in seconds since 1970."),
    ("process_open_fds", "gauge", "File descriptors in use; each connection has one."),
    ("process_max_fds", "gauge", "Maximum number of file descriptors."),
    ("python_info", "gauge", "Always 1: the version of Python that runs."),
    ("python_gc_collections_total", "counter", "Garbage collections, by generation."),
    ("python_gc_objects_collected_total", "counter", "Objects collected, by generation."),
    ("python_gc_objects_uncollectable_total", "counter", "Objects that could not be collected."),
)
