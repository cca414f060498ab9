"""Names for auto-links that occur more than once in a Dispatch file.

In Dispatch each of them is a separate link. This router names an auto-link after its attributes by
default, so a repeated one needs a name of its own.
"""

from __future__ import annotations

from collections import Counter

from router.config.auto_links import AutoLinkSettings
from router.config.mistakes import Data


class AutoLinkNames:
    """Default names for the auto-links of a file; a repeated name gets a number."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def name_for(self, data: Data) -> str | None:
        """Return the name to give to an auto-link, or None if it needs none.

        `data` has the form of parsed TOML. An auto-link needs no name if it has one, or if no
        earlier auto-link has the same default name.
        """
        if "name" in data or not {"address", "direction"} <= data.keys():
            return None
        said = AutoLinkSettings(
            address=data["address"],
            direction=data["direction"],
            container_id=data.get("containerId"),
            connection=data.get("connection"),
        )
        self._seen[said.name] += 1
        count = self._seen[said.name]
        return None if count == 1 else f"{said.name}/{count}"
