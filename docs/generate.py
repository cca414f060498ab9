"""Write the generated pages again: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "deploy/prometheus"))
sys.path.insert(0, str(ROOT / "plugins/router_telemetry"))

# after the path, which some of them need: one is the tests' own, one lies beside what it writes
import dashboard  # noqa: E402
from router_telemetry import reference as telemetry  # noqa: E402

from router.cli import reference as command_line  # noqa: E402
from router.config import reference as configuration  # noqa: E402
from router.management import reference as management  # noqa: E402
from router.metrics import reference as metrics  # noqa: E402
from router.simulation import reference as simulation  # noqa: E402

from support.house import decisions, protocol, tree  # noqa: E402


def main() -> None:
    """Write each page and say which ones changed."""
    pages = {
        "docs/reference/command-line.md": command_line.format_reference(),
        "docs/reference/configuration.md": configuration.format_reference(),
        "docs/reference/management.md": management.format_reference(),
        "docs/reference/metrics.md": metrics.format_reference(),
        "docs/reference/simulation.md": simulation.format_reference(),
        "docs/reference/telemetry.md": telemetry.format_reference(),
        "deploy/prometheus/trioute-dashboard.json": dashboard.format_dashboard(),
        protocol.PAGE: protocol.format_page(ROOT),
        tree.PAGE: tree.format_page(ROOT),
        decisions.PAGE: decisions.format_index(ROOT),
    }
    for name, text in pages.items():
        page = ROOT / name
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{name} is another\n")


if __name__ == "__main__":
    main()
