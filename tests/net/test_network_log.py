"""Changes of the network are logged under its module."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from router.core.routers.news import (
    AnnouncementsIgnored,
    DuplicateRouterId,
    NeighbourCostChanged,
    NeighbourFound,
    NeighbourLost,
    NeighbourMeasured,
    News,
    RoutersChanged,
    TableChanged,
)
from router.logs.modules import module_of
from router.net.network_log import log_news

MANY = tuple(f"r{number:02}" for number in range(13))

OF_ONE = "maxAddressesPerRouter is 9; those beyond it are ignored"
IN_OCTETS = "maxAddressBytesPerNeighbour is 1000; those beyond it are ignored"
ROUTERS = "maxRoutersPerNeighbour is 20; those beyond it are ignored"


@pytest.mark.parametrize(
    ("news", "lines"),
    [
        (NeighbourFound("B", 7, 3), [("info", "neighbour found", {"router": "B", "cost": 3})]),
        (
            NeighbourMeasured("B", 3, 0.0123456),
            [("debug", "round trip to a neighbour", {"router": "B", "milliseconds": 12.346})],
        ),
        (
            NeighbourCostChanged("B", 7, 9, 3),
            [("info", "cost of a neighbour changed", {"router": "B", "cost": 9, "before": 3})],
        ),
        (NeighbourLost("B"), [("warning", "neighbour lost", {"router": "B"})]),
        (
            RoutersChanged(("B", "C"), ("D",), 2),
            [
                ("info", "routers reachable", {"routers": "B C", "known": 2}),
                ("warning", "routers unreachable", {"routers": "D"}),
            ],
        ),
        (TableChanged("B", 5), [("debug", "addresses changed", {"router": "B", "count": 5})]),
        (
            AnnouncementsIgnored("addresses", "B", 9, 9),
            [("error", "a router announces too many addresses", {"kept": 9, "reason": OF_ONE})],
        ),
        (
            AnnouncementsIgnored("addresses", "B", 9, 1000, in_octets=True),
            [
                (
                    "error",
                    "a router announces too many addresses",
                    {"router": "B", "reason": IN_OCTETS},
                )
            ],
        ),
        (
            AnnouncementsIgnored("routers", "B", 20, 20),
            [
                (
                    "error",
                    "a neighbour announces too many routers",
                    {"neighbour": "B", "reason": ROUTERS},
                )
            ],
        ),
        (
            DuplicateRouterId("B", "so"),
            [("error", "two routers have the same id", {"reason": "so"})],
        ),
        (DuplicateRouterId("B", "so", 2), []),
        (DuplicateRouterId("B", "so", 99), []),
        (
            DuplicateRouterId("B", "so", 100),
            [("error", "two routers have the same id", {"times": 100})],
        ),
    ],
)
def test_lines(news: News, lines: list[tuple[str, str, dict[str, object]]]) -> None:
    with capture_logs() as logged:
        log_news(news)
    assert [(line["log_level"], line["event"]) for line in logged] == [
        (level, text) for level, text, _ in lines
    ]
    for line, (_, _, facts) in zip(logged, lines, strict=True):
        assert facts.items() <= line.items()


def test_few_of_many_are_named() -> None:
    with capture_logs() as logged:
        log_news(RoutersChanged(MANY, (), 13))
    assert logged[0]["routers"] == " ".join(MANY[:10]) + " and 3 more"


def test_modules_are_dispatchs() -> None:
    loggers = {"hello": "ROUTER_HELLO", "ls": "ROUTER_LS", "ma": "ROUTER_MA", "network": "ROUTER"}
    for name, module in loggers.items():
        assert module_of(f"router.{name}") == module
