"""What the agent knows of the router that it can change: its configuration, and a way to another.

The router itself is above this part of the program, and is handed down to it.
"""

from __future__ import annotations

from typing import Protocol

from router.config.edits import Edits
from router.config.model import Configuration
from router.config.reload import Applied, Difference
from router.config.revisions import History
from router.config.saved import Base


class Changeable(Protocol):
    """A running router."""

    @property
    def configuration(self) -> Configuration:
        """What it runs."""

    @property
    def history(self) -> History:
        """What it has run, with what it runs now."""

    @property
    def base(self) -> Base:
        """What its configuration file says."""

    @property
    def kept_in(self) -> str | None:
        """Where what is changed is kept for the next start; None where it is lost."""

    async def examine(self, wanted: Configuration) -> tuple[Difference, ...]:
        """What `apply` would change; raises `router.config.reload.NotApplied` as it does."""

    async def apply(
        self,
        wanted: Configuration,
        cause: str = "",
        base: Base | None = None,
        edits: Edits | None = None,
    ) -> Applied:
        """Become what `wanted` says, under traffic, as a whole or not at all.

        One after the other, where several ask; so make `wanted` from `configuration` without
        waiting in between. `cause` is what the history says it was for: `CREATE listener edge`.
        `base` is what the configuration file says, where that is news, and `edits` all that
        `wanted` has other than `configuration`, where that is known: it costs less then.
        Raises `router.config.reload.NotApplied`, whose text is for whoever asked, where it cannot
        be; then nothing has changed.
        """
