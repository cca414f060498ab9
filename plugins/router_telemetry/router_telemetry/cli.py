"""Command line: write the records of a simulated network."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from router.config.mistakes import InvalidConfiguration
from router.simulation.loading import load_topology
from router.simulation.running import Result, Simulation, without_log
from router.simulation.topology import Topology
from router_telemetry.simulated import SimulatedRecords, files_below

LEAST_INTERVAL_S = 0.1


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Write telemetry without a running router."""


@main.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--records",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write to. It must be empty or not exist yet.",
)
@click.option(
    "--share",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="The share of deliveries that is sampled where messages enter the network.",
)
@click.option(
    "--interval",
    default=1.0,
    show_default=True,
    type=click.FloatRange(LEAST_INTERVAL_S),
    help="The interval of a flow record, in simulated seconds.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), help="Use this seed instead of the plan's."
)
@click.option(
    "--ahead",
    multiple=True,
    metavar="ROUTER=SECONDS",
    help="How far a router's wall clock is ahead of the correct time; may be repeated.",
)
def simulate(
    plan: Path, records: Path, share: float, interval: float, seed: int | None, ahead: list[str]
) -> None:
    """Write the telemetry of a simulated network, which the topology file PLAN describes.

    The network is simulated as by `trioute simulate`, and its routers write the same files as with
    the plugin `telemetry`. The same PLAN, options and seed give the same rows.
    """
    try:
        topology = load_topology(plan)
    except InvalidConfiguration as invalid:
        raise click.ClickException("\n".join(map(str, invalid.mistakes))) from None
    if seed is not None:
        settings = attrs.evolve(topology.simulation, seed=seed)
        topology = attrs.evolve(topology, simulation=settings)
    if records.exists() and any(records.iterdir()):
        raise click.UsageError(f"--records {records}: the folder is not empty")
    try:
        with without_log():
            result = write_records(topology, records, share, interval, ahead)
    except OSError as error:
        raise click.ClickException(f"{records}: {error.strerror or error}") from None
    told = ", ".join(f"{count} {word}" for word, count in sorted(result.outcomes.items()))
    click.echo(f"{len(result.plan.routers)} routers, {result.sent} messages: {told or 'none'}")


def write_records(
    topology: Topology, directory: Path, share: float, interval_s: float, ahead: list[str]
) -> Result:
    """Simulate a network and write its records below a directory.

    Raises OSError if a file cannot be written, and click.UsageError if `ahead` is invalid.
    """
    simulation = Simulation(topology)
    records = SimulatedRecords(
        simulation.network,
        files_below(directory),
        share=share,
        interval_s=interval_s,
        ahead_s=_clocks(ahead, list(simulation.network.hosts)),
    )
    result = simulation.run()
    records.finish()
    return result


def _clocks(texts: list[str], routers: list[str]) -> dict[str, float]:
    found = {}
    for text in texts:
        router, _, seconds = text.rpartition("=")
        if router not in routers:
            raise click.UsageError(f"--ahead {text}: not a router of the plan")
        try:
            found[router] = float(seconds)
        except ValueError:
            raise click.UsageError(f"--ahead {text}: not a number of seconds") from None
    return found
