"""The result of a simulation as data."""

from __future__ import annotations

import json

from router.simulation.loading import parse_topology
from router.simulation.phases import Phase
from router.simulation.report import as_data, by_action, mean
from router.simulation.running import simulate


def test_a_result_can_be_said_in_json_with_times_from_when_traffic_began() -> None:
    topology = parse_topology(
        '[simulation]\nseconds = 1\n[[router]]\nname = "a"\n[[receiver]]\naddress = "q"\n'
        '[[sender]]\naddress = "q"\n[[event]]\nat = 0.5\naction = "restart"\n',
        source="a test",
    )

    data = json.loads(json.dumps(as_data(simulate(topology))))

    assert data["routers"] == 1
    assert data["links"] == 0
    assert [phase["began_s"] for phase in data["phases"]][1:3] == [0, 0.5]
    messages = data["messages"]
    assert messages.pop("sent") == sum(messages.values())
    assert data["mistakes"] == 0


def test_phases_of_like_actions_are_added_up() -> None:
    one = Phase("kill", "kill a", 1.0, 2.0, converged_s=0.5, sent=3, longest_wait_s=4.0)
    two = Phase("start", "start a", 2.0, 3.0, converged_s=0.1, sent=1)
    three = Phase("kill", "kill b", 3.0, 4.0, converged_s=0.7, sent=5, longest_wait_s=1.0)

    kills, starts = by_action((one, two, three))

    assert (kills.what, kills.sent, kills.longest_wait_s) == ("kill, 2 times", 8, 4.0)
    assert kills.converged_s == 0.7
    assert starts.what == "start a"


def test_what_never_converged_has_no_longest_time() -> None:
    phases = (Phase("kill", "", 0.0, converged_s=None), Phase("kill", "", 1.0, converged_s=1.0))

    assert by_action(phases)[0].converged_s is None


def test_the_mean_of_nothing_is_nothing() -> None:
    assert (mean(3, 2), mean(0, 0)) == (1.5, 0)
