"""Log changes in the network of routers, under the log modules of Qpid Dispatch.

Neighbours are logged under ROUTER_HELLO, reachable routers under ROUTER_LS, their addresses under
ROUTER_MA, and conflicts under ROUTER.
"""

from __future__ import annotations

from typing import Final

import structlog

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

hello_log = structlog.get_logger("router.hello")
ls_log = structlog.get_logger("router.ls")
ma_log = structlog.get_logger("router.ma")
log = structlog.get_logger("router.network")

# Most routers that one line names if several appear or disappear together.
MOST_NAMED: Final = 10


def log_news(news: News) -> None:
    """Log a change in the network of routers."""
    match news:
        case NeighbourFound():
            hello_log.info(
                "neighbour found", router=news.router, connection=news.connection, cost=news.cost
            )
        case NeighbourCostChanged():
            hello_log.info(
                "cost of a neighbour changed",
                router=news.router,
                connection=news.connection,
                cost=news.cost,
                before=news.before,
            )
        case NeighbourMeasured():
            hello_log.debug(
                "round trip to a neighbour",
                router=news.router,
                milliseconds=round(news.round_trip_s * 1000, 3),
            )
        case NeighbourLost():
            hello_log.warning("neighbour lost", router=news.router)
        case RoutersChanged():
            if news.came:
                ls_log.info("routers reachable", routers=_named(news.came), known=news.known)
            if news.went:
                ls_log.warning("routers unreachable", routers=_named(news.went), known=news.known)
        case TableChanged():
            ma_log.debug("addresses changed", router=news.router, count=news.addresses)
        case AnnouncementsIgnored():
            _log_too_much(news)
        case DuplicateRouterId():
            if _is_told(news.times):
                facts = {"times": news.times} if news.times > 1 else {}
                log.error(
                    "two routers have the same id", router=news.router, reason=news.what, **facts
                )


def _log_too_much(news: AnnouncementsIgnored) -> None:
    if news.what == "routers":
        ls_log.error(
            "a neighbour announces too many routers",
            neighbour=news.router,
            kept=news.kept,
            reason=f"maxRoutersPerNeighbour is {news.most}; those beyond it are ignored",
        )
        return
    limit = "maxAddressBytesPerNeighbour" if news.in_octets else "maxAddressesPerRouter"
    ma_log.error(
        "a router announces too many addresses",
        router=news.router,
        kept=news.kept,
        reason=f"{limit} is {news.most}; those beyond it are ignored",
    )


def _is_told(times: int) -> bool:
    """Return whether a conflict is logged at its 1st, 10th, 100th (and so on) occurrence."""
    while times % 10 == 0:
        times //= 10
    return times == 1


def _named(routers: tuple[str, ...]) -> str:
    more = len(routers) - MOST_NAMED
    return " ".join([*routers[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])
