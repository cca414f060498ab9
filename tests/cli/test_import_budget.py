"""Commands import what they use: most of the time that a short command takes is that of imports.

The budgets are numbers of the router's own modules, a little above what is imported now. To raise
one, look first at what came in: `python -X importtime -c "import router.cli.stat"` shows it.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

LISTED = "import sys, {module}; print(*sys.modules)"
SERVER_SIDE = {"structlog", "cattrs", "tomllib", "prometheus_client", "hypercorn"}


def imported_by(module: str) -> set[str]:
    """Return the modules that a new interpreter has imported after it has imported this one."""
    code = LISTED.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "budget", "forbidden"),
    [
        ("router.cli.main", 5, {*SERVER_SIDE, "trio", "attrs"}),
        ("router.client", 85, SERVER_SIDE),
        ("router.cli.send", 97, SERVER_SIDE),
        ("router.cli.receive", 97, SERVER_SIDE),
        ("router.cli.stat", 107, SERVER_SIDE),
        ("router.cli.manage", 97, SERVER_SIDE),
        # it tells of differences between configurations
        ("router.cli.apply", 135, SERVER_SIDE - {"cattrs"}),
        ("router.cli.check", 230, {"trio", "structlog", "prometheus_client", "hypercorn"}),
        ("router.cli.run", 530, {"hypercorn", "h11"}),
    ],
)
def test_a_command_imports_what_it_uses(module: str, budget: int, forbidden: set[str]) -> None:
    imported = imported_by(module)
    assert imported.isdisjoint(forbidden)
    own = [name for name in imported if name == "router" or name.startswith("router.")]
    assert len(own) <= budget, sorted(own)
