"""Name the auto-links that a Dispatch file repeats.

In Dispatch each of them is a separate link. Here an auto-link without a name gets one made from its
attributes, so a repeated one needs a name that distinguishes it.
"""

from __future__ import annotations

from collections import Counter

from router.config.auto_links import AutoLinkSettings
from router.config.mistakes import Data


class AutoLinkNames:
    """Counter of the auto-links of one file, by the names that they get from their attributes."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def name_for(self, data: Data) -> str | None:
        """Return the name to give to an auto-link, whose `data` has the form of parsed TOML.

        Return None if it has a name, or is the first of its kind.
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
