"""Interface through which the agent reads and changes the router's configuration.

The class with this interface is in a layer above this package; its instance is passed down.
"""

from __future__ import annotations

from typing import Protocol

from router.config.differences import Applied, Difference
from router.config.edits import Edits
from router.config.model import Configuration
from router.config.revisions import History
from router.config.saved import BaseConfiguration


class ConfigurableRouter(Protocol):
    """Running router with a configuration that can be changed."""

    @property
    def configuration(self) -> Configuration:
        """Return the configuration that the router runs."""

    @property
    def history(self) -> History:
        """Return the revisions that the router has run, including the current one."""

    @property
    def base(self) -> BaseConfiguration:
        """Return the content of the router's configuration file."""

    @property
    def saved_in(self) -> str | None:
        """Return where changes are saved for the next start; None if they are not saved."""

    async def examine(self, wanted: Configuration) -> tuple[Difference, ...]:
        """Return the changes that `apply` would make; raise `NotApplied` if `apply` would fail."""

    async def apply(
        self,
        wanted: Configuration,
        cause: str = "",
        base: BaseConfiguration | None = None,
        edits: Edits | None = None,
    ) -> Applied:
        """Apply the configuration `wanted` under traffic, as a whole or not at all.

        Derive `wanted` from `configuration`, and do not await anything before this call: otherwise
        the call may undo the change of another request. `cause` is the reason that the history
        records, such as `CREATE listener edge`. `base` is the new content of the configuration
        file, if that has changed. `edits`, if given, must contain all differences between
        `configuration` and `wanted`; the change is then cheaper.

        Raise `router.config.differences.NotApplied`, with a text for the requester, if `wanted`
        cannot be applied or another call has changed the configuration first. Nothing has changed
        in that case.
        """
