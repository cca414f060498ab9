"""The address and the phase that the attach of a proxy link carries."""

from __future__ import annotations

from typing import Any

import pytest

from router.core.model.address import FALLBACK, MESH
from router.core.network.proxy_links import Proxy, ProxyLink


def frame(proxy: Proxy) -> Any:
    observer: Any = None
    return ProxyLink(proxy, "name", MESH, 1, observer).frame


@pytest.mark.parametrize(
    ("phase", "receives", "capabilities"),
    [
        (0, True, ()),
        (0, False, ()),
        (1, True, ("qd.waypoint.2",)),
        (1, False, ("qd.waypoint.1",)),
        (FALLBACK, True, ("qd.fallback",)),
        (FALLBACK, False, ()),
    ],
)
def test_an_attach_says_its_phase(phase: int, receives: bool, capabilities: tuple[str]) -> None:
    attach = frame(Proxy("q", phase, receives))
    assert bool(attach.role) is receives
    terminus = attach.source if receives else attach.target
    assert (terminus.address, terminus.capabilities) == ("q", capabilities)
    assert (attach.initial_delivery_count is None) is receives
