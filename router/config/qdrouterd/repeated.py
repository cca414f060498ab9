"""Auto-links that a file of Dispatch's says more than once.

There each is a link of its own. Here what has no name is called after what it says, and so one that
says the same as another needs a name that tells the two apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from router.config.auto_links import AutoLinkSettings


class RepeatedAutoLinks:
    """Those of one file, in their order."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def name_for(self, data: Mapping[str, Any]) -> str | None:
        """The name that an auto-link, in the form of our file, has to be given; None where it has
        one, or says what no other one before it has said.
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
