"""Change the configuration of a running router, whose parts `router.node` creates.

Everything that can fail is done first, without affecting the running router. The rest is done
without waiting, and cannot fail (docs/decisions/0038-changes-under-traffic.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog
import trio

from router.changes import MANY_EDITS, Changes, pieces, prepare, stage, unstage
from router.config.differences import (
    Applied,
    Difference,
    NotApplied,
    StaleConfiguration,
    find_differences,
    find_restart_only,
)
from router.config.edits import Edits
from router.config.incremental_checks import IncrementalChecks
from router.config.mistakes import InvalidConfiguration, Mistake
from router.config.model import Configuration
from router.config.revisions import History, Revision, share
from router.config.saved import BaseConfiguration, StateFile
from router.config.validate import find_mistakes
from router.control.control import ControlPlane
from router.control.policy.gate import Gate
from router.core.forwarding.rule_updates import RuleUpdater
from router.endpoints import Endpoints
from router.engine.deferred import pop_from_end
from router.hosting.host import PluginHost
from router.logs.journal import Journal
from router.management.views import RouterView
from router.metrics.exposition import Exposition
from router.metrics.readiness import STARTING
from router.net.claims.verifier import ClaimsUnusable
from router.net.extra_checks import EXTRA_CHECKS
from router.net.hub import SLICE_S
from router.net.router_hub import RouterHub
from router.net.tls.contexts import ProfileUnusable
from router.settings import apply_settings

log = structlog.get_logger("router")

# Maximum number of changed entities that the log names for one change.
MOST_LOGGED = 50
# Time limit for resolving the hosts of listeners. No other change is made meanwhile.
LONGEST_BIND_S = 10.0


class ReconfigurableRouter:
    """Router whose configuration can be changed while it runs; `node` provides its parts.

    `base` is the content of the configuration file, `state_file` stores changes that are not in the
    configuration file, and `revision` is the revision number of `configuration`.
    """

    hub: RouterHub
    control: ControlPlane
    gate: Gate
    exposition: Exposition
    treating: RuleUpdater
    journal: Journal
    plugins: PluginHost
    endpoints: Endpoints

    def __init__(
        self,
        base: BaseConfiguration,
        state_file: StateFile | None,
        configuration: Configuration,
        revision: int,
    ) -> None:
        self.base = base
        self.state_file = state_file
        self.history = History(configuration, time.time(), revision)
        # the view for management, once that is started
        self.view: RouterView | None = None
        # why the configuration cannot be changed now, or None
        self.refuses: str | None = STARTING
        self.rechecks = IncrementalChecks(EXTRA_CHECKS)
        self._applying = trio.Lock()

    @property
    def configuration(self) -> Configuration:
        """Return the running configuration."""
        return self.history.current.configuration

    @property
    def saved_in(self) -> str | None:
        """Return where changes are saved for the next start, or None if they are lost."""
        return None if self.state_file is None else str(self.state_file.file)

    async def apply(
        self,
        wanted: Configuration,
        cause: str = "",
        base: BaseConfiguration | None = None,
        edits: Edits | None = None,
    ) -> Applied:
        """Apply another configuration under traffic, as a whole or not at all.

        Calls run one after the other. If another call has changed the configuration meanwhile, a
        waiting call raises `StaleConfiguration`, and the caller has to derive `wanted` again.
        `base` is the content of the configuration file, if it is new. `edits`, if known, has all
        differences between `configuration` and `wanted`. Raises
        `router.config.differences.NotApplied`, and changes nothing, if `wanted` cannot be applied.
        """
        before = self.configuration
        async with self._applying:
            if self.configuration is not before:
                raise StaleConfiguration
            self._check_phase()
            given = wanted
            changes = await trio.to_thread.run_sync(_readied, self, before, given, edits)
            wanted, differences = changes.wanted, changes.differences
            try:
                with trio.fail_after(LONGEST_BIND_S):
                    prepared = await self.endpoints.prepare(wanted)
            except (OSError, InvalidConfiguration, ProfileUnusable, ClaimsUnusable) as error:
                raise NotApplied([str(error)]) from None
            except trio.TooSlowError:
                reason = f"a listener's host was not resolved within {LONGEST_BIND_S:g} s"
                raise NotApplied([reason]) from None
            try:
                await self._enter(changes)
                if differences or base is not None:
                    await self._save(wanted, base or self.base)
                if self.refuses is not None:
                    # shutdown began meanwhile; the next start must not use the new configuration
                    with trio.CancelScope(shield=True):
                        await self._save(before, self.base)
                    self._check_phase()
            except BaseException:
                prepared.discard()
                self._give_up(changes)
                raise
            # from now on nothing fails, and nothing waits
            self.hub.begin_turn()
            apply_settings(self, changes)
            forget = self.hub.turn.deferred.forget
            if edits is None:
                forget(pieces(given))
            if base is not None:
                forget(pieces(self.base.configuration))
                self.base = base
            revision, oldest = self._note(wanted, differences, cause)
            if oldest is not None:
                self._forget(oldest)
            self.hub.finish_turn()
            self.endpoints.commit(prepared)
        return Applied(differences, revision.number, self.saved_in)

    async def examine(self, wanted: Configuration) -> tuple[Difference, ...]:
        """Return what `apply` would change; raise `NotApplied` if `apply` would refuse the change.

        This takes a while for a large configuration; the router continues meanwhile.
        """
        self._check_phase()
        try:
            return await trio.to_thread.run_sync(_examined, self.configuration, wanted)
        finally:
            self.hub.turn.deferred.forget(pieces(wanted))

    def _check_phase(self) -> None:
        if self.refuses is not None:
            raise NotApplied([self.refuses])

    async def _enter(self, changes: Changes) -> None:
        """Stage changes a little at a time, so that other tasks run in between."""
        clock = self.hub.clock
        end = clock() + SLICE_S
        for _ in stage(self, changes):
            if clock() >= end:
                await trio.lowlevel.checkpoint()
                end = clock() + SLICE_S

    def _give_up(self, changes: Changes) -> None:
        self.hub.begin_turn()
        unstage(self, changes)
        self.hub.finish_turn()

    async def _save(self, wanted: Configuration, base: BaseConfiguration) -> None:
        """Save the configuration that is about to run; a crash before it takes effect does no harm.

        Does nothing without a state file. Raises `NotApplied` if saving fails.
        """
        state_file = self.state_file
        if state_file is None:
            return
        number = self.history.current.number + 1
        try:
            await trio.to_thread.run_sync(state_file.save, base, wanted, number, time.time())
        except OSError as error:
            words = error.strerror or error
            reason = f"the configuration cannot be saved in {state_file.file}: {words}"
            raise NotApplied([reason]) from None

    def _note(
        self, wanted: Configuration, differences: tuple[Difference, ...], cause: str
    ) -> tuple[Revision, Revision | None]:
        """Record and log the configuration that runs from now on, and show it to management.

        Returns the revision of this configuration, and the revision that was dropped from the
        history, if any.
        """
        if not differences:
            return self.history.current, None
        revision, oldest = self.history.add(wanted, differences, cause, time.time())
        if self.view is not None:
            self.view.configuration = revision.configuration
        log.info("configuration changed", revision=revision.number, cause=cause)
        for difference in differences[:MOST_LOGGED]:
            log.info("entity changed", what=difference.what, place=difference.place)
        return revision, oldest

    def _forget(self, oldest: Revision) -> None:
        """Free a revision that was dropped from the history.

        If the following revision changed only a few entities, all others are still in use. Then
        only the old versions of the changed entities are freed.
        """
        *_, following = self.history
        forget = self.hub.turn.deferred.forget
        if len(following.differences) > MANY_EDITS:
            forget(pieces(oldest.configuration, oldest.differences))
        else:
            forget(pop_from_end(list(oldest.differences)))

    def treat_addresses(self) -> None:
        """Apply configured treatments to addresses for which that was not possible before."""
        if self.treating.pending:
            self.hub.begin_turn()
            self.treating.go_on()
            self.hub.finish_turn()


def _readied(
    running: ReconfigurableRouter, old: Configuration, wanted: Configuration, edits: Edits | None
) -> Changes:
    """Check a new configuration, and prepare the change to it.

    This takes long if the configuration is large, so it runs in a thread. It does not change the
    router. Raises `NotApplied` if the configuration cannot be applied.
    """
    if edits is None:
        wanted = share(old, wanted)
    differences = find_differences(old, wanted, edits)
    _check(differences, lambda: running.rechecks.find_mistakes(old, wanted, edits))
    return prepare(running, old, wanted, differences, edits)


def _examined(old: Configuration, wanted: Configuration) -> tuple[Difference, ...]:
    differences = find_differences(old, wanted)
    _check(differences, lambda: find_mistakes(wanted, EXTRA_CHECKS))
    return differences


def _check(differences: tuple[Difference, ...], find: Callable[[], list[Mistake]]) -> None:
    reasons = find_restart_only(differences) or [str(mistake) for mistake in find()]
    if reasons:
        raise NotApplied(reasons)
