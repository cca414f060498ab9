"""Each attribute of a topology file is declared, and what it may be is kept to."""

from __future__ import annotations

import attrs
import pytest

from router.config.setting import setting_of
from router.simulation.topology import ENTITIES, EventEntry, ShapeEntry, Topology


def test_a_topology_can_be_made_without_anything() -> None:
    topology = Topology()

    assert topology.simulation.seed == 1
    assert topology.routers == ()


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.name)
def test_every_attribute_says_what_it_means(entity: object) -> None:
    for field in attrs.fields(entity.settings):  # type: ignore[attr-defined]
        assert setting_of(field).description.endswith((".", ".)"))


def test_what_a_program_passes_is_held_to_the_rules_of_the_file() -> None:
    with pytest.raises(ValueError, match="layout"):
        ShapeEntry(layout="circle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 different"):
        EventEntry(link=("a",))


def test_costs_are_all_the_same_unless_a_shape_says_more() -> None:
    assert ShapeEntry(cost=4).most_cost == 4
