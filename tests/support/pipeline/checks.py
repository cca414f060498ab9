"""Compare the results of jobs with what was planted. Each check returns the errors as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from support.pipeline.answers import Answers, Cell, reaches, trends
from support.pipeline.crowds import FAULT
from support.pipeline.damage import Damage
from support.pipeline.happenings import planted_incidents
from support.pipeline.links import Counted, Key

Tables = Mapping[str, pa.Table]
Wrong = list[str]

SIGMAS: Final = 6
"""So many standard errors may an estimate be off: with thousands of cells, none is by chance."""

TOP: Final = 10
CLOSE: Final = 1e-6
MOST_US: Final = 10
"""How far a clock's offset may be off, where lines are as quick there as back."""


def differences(what: str, found: Mapping[Any, Any], planted: Mapping[Any, Any]) -> Wrong:
    """Name the first few keys whose values differ."""
    keys = [key for key in {**planted, **found} if found.get(key) != planted.get(key)]
    wrong = [f"{what} {key}: {found.get(key)}, planted {planted.get(key)}" for key in keys[:3]]
    return [*wrong, f"{what}: {len(keys)} differ"] if len(keys) > 3 else wrong


def near(found: float, planted: float) -> bool:
    """Return whether two numbers are equal but for rounding."""
    return abs(found - planted) <= CLOSE * max(1.0, abs(planted))


def check_traffic(answers: Answers, tables: Tables) -> Wrong:
    """Check that sampled rows and totals are exact, and estimates within their errors."""
    cells: dict[Cell, dict[str, Any]] = {
        (row["origin_container"], row["address"], row["destination"]): row
        for row in tables["matrix"].to_pylist()
    }
    sampled = {key: row["sampled"] for key, row in cells.items()}
    wrong = differences("cell", sampled, answers.sampled)
    for key, row in cells.items():
        arrived = answers.arrived[key]
        for name in ("deliveries", "estimate"):
            if abs(row[name] - arrived) > SIGMAS * max(row[f"{name}_error"], 1):
                wrong.append(f"{name} of {key}: {row[name]}, planted {arrived}")
    totals = {
        (row["direction"], row["container"], row["address"]): (row["deliveries"], row["presettled"])
        for row in tables["totals"].to_pylist()
    }
    planted = {
        (link.direction, link.peer, link.address): _sums(link, "deliveries", "presettled")
        for link in answers.links.values()
        if link.address is not None and link.deliveries.any()
    }
    return wrong + differences("total", totals, planted)


def _sums(link: Counted, *names: str) -> tuple[int, ...]:
    return tuple(int(link.counts[name].sum()) for name in names)


def check_paths(answers: Answers, tables: Tables) -> Wrong:
    """Check that each trace has its path and its state."""
    rows = tables["paths"]
    ways = pc.binary_join(rows.column("routers"), " ")
    names = ("state", "lost_at", "lost_to", "has_loop", "copies")
    grouped = pa.table({"way": ways, **{name: rows.column(name) for name in names}})
    counted = grouped.group_by(["way", *names]).aggregate([([], "count_all")])
    found = {tuple(row.values())[:-1]: row["count_all"] for row in _in_order(counted, names)}
    return differences("path", found, answers.paths)


def _in_order(counted: pa.Table, names: tuple[str, ...]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = counted.select(["way", *names, "count_all"]).to_pylist()
    return rows


def check_offsets(answers: Answers, tables: Tables) -> Wrong:
    """Offsets are as planted, and within their bounds."""
    rows = {row["router"]: row for row in tables["offsets"].to_pylist()}
    planted = answers.world.offsets_us
    if rows.keys() != set(answers.world.routers):
        return [f"offsets: of the routers {sorted(rows)}, not of {answers.world.routers}"]
    wrong = []
    for router, row in rows.items():
        offset = planted.get(router, 0) - planted.get(row["reference"], 0)
        if row["offset_us"] is None or abs(row["offset_us"] - offset) > min(
            MOST_US, max(row["bound_us"], 1)
        ):
            wrong.append(f"offset of {router}: {row['offset_us']} us, planted {offset}")
    return wrong


def check_losses(answers: Answers, tables: Tables) -> Wrong:
    """Check the losses by who decided them, and their shares of the samples."""
    names = ("outcome", "decided_by", "reason", "router", "link", "next_container")
    rows = tables["losses"].to_pylist()
    found = Counter({tuple(row[name] for name in names): row["sampled"] for row in rows})
    wrong = differences("loss", found, answers.losses)
    for row in rows:
        share = row["sampled"] / answers.traces
        if not near(row["share"], share):
            wrong.append(f"share of {row}: planted {share}")
    return wrong


def check_incidents(answers: Answers, tables: Tables) -> Wrong:
    """Check that all incidents are found and no others, with their times and names."""
    found = [
        (
            *(row["incident"], row["subject"], tuple(row["routers"])),
            *(_aware(row["start"]), _aware(row["end"]), row["count"], tuple(row["names"])),
        )
        for row in tables["incidents"].to_pylist()
    ]
    planted = [
        (each.incident, each.subject, each.routers, each.start, each.end, each.count, each.names)
        for each in planted_incidents(answers.world)
    ]
    return differences("incident", dict(enumerate(found)), dict(enumerate(planted)))


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def check_skew(answers: Answers, tables: Tables) -> Wrong:
    """Rankings and the balance of links are exact."""
    wrong: Wrong = []
    for name, table in (("address", "addresses"), ("container", "containers")):
        found = {
            (row["direction"], row["rank"]): (row[name], row["deliveries"])
            for row in tables[table].to_pylist()
        }
        wrong += differences(table, found, _ranked(answers.links, name))
    balance = {
        (row["router"], row["direction"], row["role"]): (
            *(row["links"], row["deliveries"], row["most"]),
        )
        for row in tables["links"].to_pylist()
    }
    return wrong + differences("links", balance, _balance(answers.links))


def _ranked(links: Mapping[Key, Counted], name: str) -> dict[tuple[str, int], tuple[str, int]]:
    """Rank addresses or containers by what clients' links have carried."""
    ranked: dict[tuple[str, int], tuple[str, int]] = {}
    for direction in ("in", "out"):
        sums = Counter[str]()
        for link in links.values():
            if link.address is not None and link.direction == direction:
                sums[link.address if name == "address" else link.peer] += int(link.deliveries.sum())
        most = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:TOP]
        ranked |= {(direction, rank): each for rank, each in enumerate(most, 1)}
    return ranked


def _balance(links: Mapping[Key, Counted]) -> dict[tuple[str, str, str], tuple[int, ...]]:
    groups: dict[tuple[str, str, str], list[int]] = {}
    for link in links.values():
        if load := int(link.deliveries.sum()):
            groups.setdefault((link.router, link.direction, link.role), []).append(load)
    return {key: (len(loads), sum(loads), max(loads)) for key, loads in groups.items()}


def check_capacity(answers: Answers, tables: Tables, limit_per_s: float, least_hours: int) -> Wrong:
    """Trends are those of NumPy, and the load that grows reaches the limit when it was planted."""
    world, wrong = answers.world, []
    planted = trends(world, answers.links, least_hours)
    rows = {
        (row["router"], row["direction"], row["container"], _address(row)): row
        for row in tables["links"].to_pylist()
    }
    if rows.keys() != planted.keys():
        wrong.append(f"capacity: {len(rows)} links, planted {len(planted)}")
    for key in rows.keys() & planted.keys():
        row, trend = rows[key], planted[key]
        if row["hours"] != trend.hours or not all(
            near(row[name], getattr(trend, name)) for name in ("mean_per_s", "per_s_per_day")
        ):
            wrong.append(f"trend of {key}: {row}, planted {trend}")
    growing = world.streams[0]
    row = rows[world.way(growing)[0], "in", growing.origin, growing.address]
    expected = reaches(world, growing, limit_per_s)
    if None in (row["earliest"], row["reaches_limit"], row["latest"]):
        return [*wrong, f"{growing.address}: its growth was not found"]
    earliest, at, latest = (_aware(row[each]) for each in ("earliest", "reaches_limit", "latest"))
    # a band of 95 % is missed by one in twenty, twice the band by hardly any
    if (
        not 2 * earliest.timestamp() - at.timestamp()
        <= expected.timestamp()
        <= (2 * latest.timestamp() - at.timestamp())
    ):
        wrong.append(f"{growing.address} reaches the limit at {at}, planted {expected}")
    return wrong


def _address(row: Mapping[str, Any]) -> str | None:
    if row["role"] == "inter-router":
        return None
    name: str = row["link_name"]
    return name.removeprefix(f"{row['direction']}-{row['container']}-")


def check_causes(answers: Answers, tables: Tables) -> Wrong:
    """Check that exactly the slow line, the steal war and the flapping line are named."""
    found = {(row["kind"], row["subject"]) for row in tables["causes"].to_pylist()}
    planted = {
        ("slow-line", f"{FAULT.a}-{FAULT.b}"),
        ("steal-war", "contested-link"),
        ("flapping-line", "r08-r09"),
    }
    return [f"causes: {sorted(found)}, planted {sorted(planted)}"] if found != planted else []


def check_validate(done: Damage, tables: Tables) -> Wrong:
    """Torn files are listed; lost rows and duplicates are counted."""
    torn = {Path(row["file"]): True for row in tables["torn"].to_pylist()}
    rows = tables["sequences"].to_pylist()
    lost, duplicates = Counter[str](), Counter[str]()
    for row in rows:
        lost[row["router"]] += row["lost"]
        duplicates[row["router"]] += row["duplicates"]
    return [
        *differences("torn file", torn, dict.fromkeys(done.torn, True)),
        *differences("lost", +lost, done.lost),
        *differences("duplicates", +duplicates, done.duplicates),
    ]
