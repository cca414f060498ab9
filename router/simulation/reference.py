"""Markdown reference for topology files, generated from their model.

`python -m router.simulation.reference > docs/reference/simulation.md` updates the page.
"""

from __future__ import annotations

import sys
from typing import Final

from router.config.reference import format_entities
from router.simulation.topology import ENTITIES

_HEAD: Final = """\
# Topology files

<!-- Written by `python -m router.simulation.reference`; change the model, not this page. -->

A topology is one TOML file that describes a network of routers, its traffic, and what happens to
it, for `trioute simulate` ([how to](../how-to/simulate.md)). Every attribute is optional
unless its default says that it is needed. A key that is not on this page is a mistake. All mistakes
in a file are reported together, with their lines.
"""


def format_reference() -> str:
    """Return the reference page as Markdown."""
    return "\n".join([_HEAD, *format_entities(ENTITIES)])


if __name__ == "__main__":
    sys.stdout.write(format_reference())
