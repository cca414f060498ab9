"""Incidents, as bursts of events: steal wars, redirect storms, flapping and route changes."""

from __future__ import annotations

from typing import Final

import attrs
from pyspark.sql import Column, DataFrame, functions as sf

MOST_NAMES: Final = 20


@attrs.frozen
class Limits:
    """Minimum counts of events for each kind of incident, and the gap that ends an incident."""

    steals: int = 3
    redirects: int = 20
    closings: int = 3
    neighbour_losses: int = 3
    route_changes: int = 1
    gap_s: int = 60


@attrs.frozen
class Kind:
    """Kind of incident, which consists of at least `least` events of the kind `event`.

    `subject` is the column whose value these events have in common at one router. It is None if the
    incident is one of the network as a whole. `names` is a column with an array of names, such as
    those of containers; an incident lists the names of all its events.
    """

    incident: str
    event: str
    subject: str | None
    names: Column
    least: int


def kinds(limits: Limits) -> tuple[Kind, ...]:
    """Return all kinds of incidents, with these limits."""
    routers = sf.concat(_or_none("routers_found"), _or_none("routers_lost"))
    return (
        Kind("steal-war", "link-stolen", "link_name", sf.array("container"), limits.steals),
        Kind("redirect-storm", "redirected", "container", sf.array("target"), limits.redirects),
        Kind(
            "flapping-connection",
            "connection-closed",
            "container",
            sf.array("condition"),
            limits.closings,
        ),
        Kind(
            "flapping-neighbour",
            "neighbour-lost",
            "other_router",
            sf.array("condition"),
            limits.neighbour_losses,
        ),
        Kind("route-change", "routers-changed", None, routers, limits.route_changes),
    )


def incidents(events: DataFrame, limits: Limits | None = None) -> DataFrame:
    """Return a row for each incident, in order of time.

    The columns are incident, subject, routers, start, end, count and names. The subject is the
    link, container or neighbour that the events have in common at one router. `names` are the
    containers that have stolen a link, the targets of redirects, the error conditions of closed
    connections, or the routers that were found or lost: at most 20.
    """
    known = kinds(Limits() if limits is None else limits)
    gap_s = (Limits() if limits is None else limits).gap_s
    marked = _marked(events, known)
    found = marked.groupBy(
        "incident", "least", "place", "subject", sf.session_window("time", f"{gap_s} seconds")
    ).agg(
        sf.array_sort(sf.collect_set("router")).alias("routers"),
        sf.min("time").alias("start"),
        sf.max("time").alias("end"),
        sf.count("*").alias("count"),
        _first_names(sf.collect_set("names")).alias("names"),
    )
    return (
        found.where("count >= least")
        .select("incident", "subject", "routers", "start", "end", "count", "names")
        .orderBy("start", "incident", "subject")
    )


def _marked(events: DataFrame, known: tuple[Kind, ...]) -> DataFrame:
    """Return the events that incidents consist of, with the columns by which they are grouped."""
    no_text, no_names = sf.lit(None).cast("string"), sf.lit(None).cast("array<string>")
    incident, subject, place, names = no_text, no_text, no_text, no_names
    least = sf.lit(0)
    for kind in known:
        is_kind = sf.col("kind") == kind.event
        incident = sf.when(is_kind, kind.incident).otherwise(incident)
        names = sf.when(is_kind, kind.names).otherwise(names)
        least = sf.when(is_kind, kind.least).otherwise(least)
        if kind.subject is not None:
            subject = sf.when(is_kind, sf.col(kind.subject)).otherwise(subject)
            place = sf.when(is_kind, sf.col("router")).otherwise(place)
    return events.where(sf.col("kind").isin(*(kind.event for kind in known))).select(
        incident.alias("incident"),
        least.alias("least"),
        place.alias("place"),
        subject.alias("subject"),
        sf.array_compact(names).alias("names"),
        "router",
        "time",
    )


def _or_none(column: str) -> Column:
    return sf.coalesce(sf.col(column), sf.array().cast("array<string>"))


def _first_names(sets: Column) -> Column:
    return sf.slice(sf.array_sort(sf.array_distinct(sf.flatten(sets))), 1, MOST_NAMES)
