"""`trioute apply --advice FILE`: change the costs of connections between routers as advised."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import attrs
import click

from router.cli.advice import Advice, BadAdvice, Bounds, CostChange, read_advice
from router.cli.exit_codes import Incomplete
from router.cli.render import JsonMap
from router.cli.router_options import RouterTarget
from router.client import ManagementClient, RequestRefused, connect
from router.client.connection import ClientConnection
from router.client.failures import ClientError
from router.client.management import MANAGEMENT_NODE, Attributes, open_management
from router.core.routers.membership import INTER_ROUTER
from router.management.names import PREFIX

CONNECTOR: Final = f"{PREFIX}connector"
LISTENER: Final = f"{PREFIX}listener"
_NAMES: Final = {CONNECTOR: ("name", "role", "cost", "container"), LISTENER: ("role", "cost")}

Asked = Callable[[int], Awaitable[bool]]
"""Function that asks whether to make the given number of changes."""


@attrs.frozen
class Step:
    """Advised change, with the connector to change, or the reason why the change is left out.

    `connector` is the connector at `router` that opened the connection between the two routers.
    """

    change: CostChange
    router: str = ""
    connector: str = ""
    left_out: str = ""

    @property
    def line(self) -> str:
        """Return the change as text for people."""
        change = self.change
        costs = f"{change.cost} -> {change.advised}"
        if change.target != change.advised:
            costs += f" (on the way to {change.target})"
        line = " - ".join(change.routers)
        if self.left_out:
            return f"  {line}  cost {costs}  left out: {self.left_out}"
        return (
            f"~ {line}  cost {costs}  connector {self.connector} of {self.router}\n"
            f"      {change.reason}: {change.moved_per_s:.3g} messages a second take another "
            f"path, {change.now_ms:.3g} -> {change.then_ms:.3g} ms ({change.samples} samples)"
        )

    def as_data(self) -> JsonMap:
        """Return the change as data for JSON."""
        return {
            "routers": list(self.change.routers),
            "cost": self.change.cost,
            "advised": self.change.advised,
            "router": self.router or None,
            "connector": self.connector or None,
            "leftOut": self.left_out or None,
        }


def advice_from(text: str, name: str) -> Advice:
    """Parse advice from the text of a file called `name`.

    Raises click.UsageError if the text is not valid advice, or the advice has expired.
    """
    try:
        return read_advice(text, datetime.now(UTC))
    except BadAdvice as error:
        raise click.UsageError(f"{name} {error}") from None


class Network:
    """Network of routers, all of which are queried over a connection to one of them."""

    def __init__(self, connection: ClientConnection, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._asked: dict[str, ManagementClient | str] = {}
        self._found: dict[tuple[str, str], list[Attributes]] = {}

    async def router(self, name: str) -> ManagementClient | str:
        """Return the management client for a router, or why the router cannot be queried."""
        if name not in self._asked:
            node = f"_topo/0/{name}/{MANAGEMENT_NODE}"
            try:
                management = self._asked[name] = await open_management(
                    self._connection, node=node, timeout_s=self._timeout_s
                )
                for kind, names in _NAMES.items():
                    table = await management.query(kind, names)
                    self._found[name, kind] = [
                        each for each in table.entities() if each["role"] == INTER_ROUTER
                    ]
            except (ClientError, RequestRefused) as error:
                self._asked[name] = f"router {name} cannot be asked: {error}"
        return self._asked[name]

    def entities(self, name: str, kind: str) -> list[Attributes]:
        """Return the inter-router listeners or connectors of a router.

        `kind` is `LISTENER` or `CONNECTOR`. Call the method `router` with the same name first.
        """
        return self._found[name, kind]


async def plan(network: Network, advice: Advice, bounds: Bounds) -> list[Step]:
    """Return a step for each advised change: the connector to change, or why it is left out."""
    return [await _step(network, change, bounds) for change in advice.changes]


async def _step(network: Network, change: CostChange, bounds: Bounds) -> Step:
    objection = bounds.objection(change)
    if objection:
        return Step(change, left_out=objection)
    for here, there in (change.routers, change.routers[::-1]):
        asked = await network.router(here)
        if isinstance(asked, str):
            return Step(change, left_out=asked)
        for connector in network.entities(here, CONNECTOR):
            if connector.get("container") == there:
                return await _step_at(network, change, here, there, connector)
    return Step(change, left_out="neither router has a connector to the other")


async def _step_at(
    network: Network, change: CostChange, here: str, there: str, connector: Attributes
) -> Step:
    asked = await network.router(there)
    if isinstance(asked, str):
        return Step(change, left_out=asked)
    # the larger cost of both ends applies; the listener is not known, so take the cheapest one
    costs = [int(each["cost"]) for each in network.entities(there, LISTENER)]
    least = min(costs, default=1)
    now = max(int(connector["cost"]), least)
    if now != change.cost:
        return Step(change, left_out=f"its cost is {now} now")
    if change.advised < least:
        words = f"all listeners of {there} for routers have a cost of {least} or more"
        return Step(change, left_out=words)
    return Step(change, here, str(connector["name"]))


async def apply_advice(
    target: RouterTarget,
    advice: Advice,
    bounds: Bounds,
    *,
    dry_run: bool,
    as_json: bool,
    wanted: Asked,
) -> None:
    """Show the advised changes, and make them if the user confirms.

    `wanted` is called with the number of changes, and asks the user for confirmation. With
    `dry_run`, the changes are only shown. Otherwise, Incomplete is raised if a change was left out,
    or if the changes were not confirmed.
    """
    async with connect(target.url, timeout_s=target.timeout_s) as connection:
        network = Network(connection, target.timeout_s)
        steps = await plan(network, advice, bounds)
        to_do = [each for each in steps if not each.left_out]
        if not as_json:
            _print(each.line for each in steps)
        sentence = "nothing was advised"
        if steps and not to_do:
            sentence = "nothing to do within the bounds"
        elif to_do and dry_run:
            sentence = "nothing was changed"
        elif to_do:
            if not await wanted(len(to_do)):
                raise Incomplete("nothing was changed")
            await _do(network, to_do)
            sentence = f"changed: {_number(len(to_do), 'cost')}; connections stay"
        if as_json:
            _print([json.dumps([each.as_data() for each in steps], indent=2)])
        else:
            _print([sentence])
        if len(to_do) < len(steps) and not dry_run:
            raise Incomplete(f"left out: {_number(len(steps) - len(to_do), 'change')}")


async def _do(network: Network, steps: Sequence[Step]) -> None:
    for number, step in enumerate(steps):
        management = await network.router(step.router)
        assert isinstance(management, ManagementClient)
        try:
            await management.update(CONNECTOR, {"cost": step.change.advised}, name=step.connector)
        except RequestRefused as refused:
            done = f"; before it, {_number(number, 'cost')} changed" if number else ""
            where = f"connector {step.connector} of {step.router}: {refused.description}{done}"
            raise RequestRefused(refused.status, where) from None


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
