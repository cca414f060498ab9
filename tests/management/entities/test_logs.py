"""The `log` and `logStats` entities: levels of each module, and lines counted by level."""

from __future__ import annotations

from router.config.log_levels import MODULES
from router.config.log_settings import LogSettings
from router.management.entities.logs import LOG, LOG_STATS

from support.entities import told
from support.loopback import running_node


async def test_every_module_is_told_with_the_levels_of_its_own() -> None:
    async with running_node() as running:
        running.node.journal.change(LogSettings(level="error", levels={"AGENT": "debug"}))
        entities = {entity["module"]: entity for entity in told(running, LOG)}
        assert list(entities) == list(MODULES)
        assert entities["AGENT"]["identity"] == "log/AGENT"
        assert entities["AGENT"]["enable"] == "debug"
        assert entities["HTTP"]["enable"] is None
        default = entities["DEFAULT"]
        assert (default["enable"], default["outputFile"]) == ("error+", "stderr")
        assert (default["includeTimestamp"], default["includeSource"]) == (True, False)
        assert entities["AGENT"]["outputFile"] is None


async def test_lines_are_counted_by_level() -> None:
    async with running_node() as running:
        running.node.journal.modules["HTTP"].counts["warning"] += 3
        counts = {entity["identity"]: entity for entity in told(running, LOG_STATS)}
        assert len(counts) == len(MODULES)
        assert counts["logStats/HTTP"]["warningCount"] == 3
        assert counts["logStats/HTTP"]["traceCount"] == 0
