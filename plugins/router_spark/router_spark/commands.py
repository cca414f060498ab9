"""Commands of the jobs that read datasets and return tables."""

from __future__ import annotations

from datetime import timedelta

import attrs
import click
from router_telemetry.schema import DELIVERIES, EVENTS, FLOWS

from router_spark.jobs import capacity, incidents, latency, losses, offsets, paths, skew, traffic
from router_spark.running import Run, run_job, run_options

DEFAULTS = incidents.Limits()


@click.command("traffic")
@click.option(
    "--rounds",
    default=2,
    show_default=True,
    type=click.IntRange(1),
    help="Number of rounds in which estimates are fitted to counters.",
)
@run_options
def traffic_command(run: Run, rounds: int) -> None:
    """Show how much each client sends to each receiver."""
    run_job(
        run,
        "traffic",
        (DELIVERIES, FLOWS),
        lambda deliveries, flows: {
            "matrix": traffic.matrix(deliveries, flows, rounds),
            "totals": traffic.totals(flows),
        },
    )


@click.command("paths")
@click.option(
    "--slack",
    default=60,
    show_default=True,
    type=click.IntRange(0),
    help="Seconds after --to in which messages may still be in transit.",
)
@run_options
def paths_command(run: Run, slack: int) -> None:
    """Show the path of each sampled message, and where it was lost."""
    start, end = run.period.start, run.period.end
    read = attrs.evolve(run.period, end=None if end is None else end + timedelta(seconds=slack))
    run_job(
        run,
        "paths",
        (DELIVERIES,),
        lambda deliveries: {"paths": paths.entered_within(paths.paths(deliveries), start, end)},
        read=read,
    )


@click.command("latency")
@run_options
def latency_command(run: Run) -> None:
    """Measure latencies per router, next container and address, by hour and by day."""
    run_job(
        run,
        "latency",
        (DELIVERIES,),
        lambda deliveries: {
            "hours": latency.by_hour(deliveries),
            "days": latency.by_day(latency.by_hour(deliveries)),
        },
    )


@click.command("offsets")
@click.option("--reference", help="The router whose clock is taken as correct.")
@run_options
def offsets_command(run: Run, reference: str | None) -> None:
    """Estimate the offsets between the routers' clocks."""
    run_job(
        run,
        "offsets",
        (DELIVERIES,),
        lambda deliveries: {"offsets": offsets.offsets(deliveries, reference)},
    )


@click.command("losses")
@run_options
def losses_command(run: Run) -> None:
    """Count deliveries that were not accepted, by the router or receiver that decided so."""
    run_job(run, "losses", (DELIVERIES,), lambda deliveries: {"losses": losses.losses(deliveries)})


@click.command("incidents")
@click.option(
    "--steals",
    default=DEFAULTS.steals,
    show_default=True,
    type=click.IntRange(1),
    help="Minimum number of times that a link is stolen in a steal war.",
)
@click.option(
    "--redirects",
    default=DEFAULTS.redirects,
    show_default=True,
    type=click.IntRange(1),
    help="Minimum number of redirects of a client in a redirect storm.",
)
@click.option(
    "--closings",
    default=DEFAULTS.closings,
    show_default=True,
    type=click.IntRange(1),
    help="Minimum number of closed connections of a flapping peer.",
)
@click.option(
    "--neighbour-losses",
    default=DEFAULTS.neighbour_losses,
    show_default=True,
    type=click.IntRange(1),
    help="Minimum number of times that a router loses a flapping neighbour.",
)
@click.option(
    "--route-changes",
    default=DEFAULTS.route_changes,
    show_default=True,
    type=click.IntRange(1),
    help="Minimum number of times that the reachable routers change.",
)
@click.option(
    "--gap",
    "gap_s",
    default=DEFAULTS.gap_s,
    show_default=True,
    type=click.IntRange(1),
    help="Seconds without an event that end an incident.",
)
@run_options
def incidents_command(run: Run, /, **limits: int) -> None:
    """Find steal wars, redirect storms, flapping peers and route changes."""
    run_job(
        run,
        "incidents",
        (EVENTS,),
        lambda events: {"incidents": incidents.incidents(events, incidents.Limits(**limits))},
    )


@click.command("skew")
@click.option(
    "--top",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help="Maximum number of addresses and of containers to list.",
)
@run_options
def skew_command(run: Run, top: int) -> None:
    """Find the addresses, containers and links with the most load."""
    run_job(
        run,
        "skew",
        (FLOWS,),
        lambda flows: {
            "addresses": skew.hot_addresses(flows, top),
            "containers": skew.hot_containers(flows, top),
            "links": skew.link_balance(flows),
        },
    )


@click.command("capacity")
@click.option(
    "--limit",
    required=True,
    type=click.FloatRange(0, min_open=True),
    help="Deliveries per second that a link can carry.",
)
@click.option(
    "--least-hours",
    default=24,
    show_default=True,
    type=click.IntRange(3),
    help="Minimum number of whole hours of data for a link's forecast.",
)
@run_options
def capacity_command(run: Run, limit: float, least_hours: int) -> None:
    """Forecast when links will reach a limit of deliveries per second."""
    run_job(
        run,
        "capacity",
        (FLOWS,),
        lambda flows: {"links": capacity.capacity(flows, limit, least_hours)},
    )


COMMANDS: tuple[click.Command, ...] = (
    traffic_command,
    paths_command,
    latency_command,
    offsets_command,
    losses_command,
    incidents_command,
    skew_command,
    capacity_command,
)
