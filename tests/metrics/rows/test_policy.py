"""The metrics of policies."""

from __future__ import annotations

import attrs

from router.metrics.policy import KINDS, VhostReading

from support.readings import idle_hub, reading_of, samples


def test_each_has_its_number() -> None:
    denied = {kind: number for number, kind in enumerate(KINDS, 1)}
    policy = [VhostReading("a", 7, denied), VhostReading("other")]
    reading = attrs.evolve(reading_of(idle_hub()), policy=policy)
    assert samples(reading, "trioute_policy_connections") == {("a",): 7, ("other",): 0}
    told = samples(reading, "trioute_policy_denied_total")
    assert told["a", "connection"] == 1
    assert told["a", "size"] == len(KINDS)
    assert told["other", "sender"] == 0
