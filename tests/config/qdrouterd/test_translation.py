"""Settings of Dispatch's files are translated into ours."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.qdrouterd.json_form import read_json
from router.config.qdrouterd.report import Sort
from router.config.qdrouterd.sections import read_sections
from router.config.qdrouterd.translation import Translation, translate


def translated(text: str) -> Translation:
    """Return the translation of a text in the section syntax."""
    return translate(read_sections(text, "f"), "f")


def one(name: str, *lines: str) -> Translation:
    """Return the translation of one section."""
    return translated("\n".join([f"{name} {{", *lines, "}"]))


def said(made: Translation, *sorts: Sort) -> list[str]:
    """Return the remarks of these sorts, and all mistakes."""
    remarks = [each.shown("f") for each in made.remarks if each.sort in sorts]
    return [*map(str, made.mistakes), *remarks]


ALL: tuple[Sort, ...] = ("guard", "missing", "changed", "old", "ignored")


def test_attributes_go_by_their_names() -> None:
    made = one("listener", "port: 5671", "maxSessions: 10", "http: no", "linkCapacity: 7")
    table = made.data["listener"][0]
    assert (table["port"], table["maxSessions"], table["linkCapacity"]) == (5671, 10, 7)
    assert said(made, *ALL) == []
    assert made.lines["listener", 0, "port"] == 2
    assert made.lines["listener", 0, "host"] == 1


@pytest.mark.parametrize("name", ["max-frame-size", "max_frame_size", "maxFrameSize"])
def test_every_way_to_write_a_name(name: str) -> None:
    assert one("listener", f"{name}: 4096").data["listener"][0]["maxFrameSize"] == 4096


def test_attributes_of_ours_are_taken_as_well() -> None:
    made = one("listener", "management: none", "connectionBufferBytes: 65536")
    table = made.data["listener"][0]
    assert (table["management"], table["connectionBufferBytes"]) == ("none", 65536)


def test_entities_of_ours_are_taken_as_well() -> None:
    made = one("metrics", "addressLabelLimit: 7")
    assert made.data["metrics"] == {"addressLabelLimit": 7}
    assert made.mistakes == []


def test_what_dispatch_does_is_written_out() -> None:
    made = one("router", "id: A")
    assert made.data["router"] == {
        "id": "A",
        "linkStealing": "off",
        "unsupportedFilters": "ignore",
        "durableSubscriptions": "ignore",
    }
    assert said(made, "default") == [
        'router.linkStealing: taken as "off"; here it would be "same-user"',
        'router.unsupportedFilters: taken as "ignore"; here it would be "refuse"',
        'router.durableSubscriptions: taken as "ignore"; here it would be "refuse"',
    ]
    assert one("router", "linkStealing: any").data["router"]["linkStealing"] == "any"


def test_defaults_are_said_once() -> None:
    made = translated("connector {\n}\nconnector {\nport: 1\n}")
    assert [table["linkCapacity"] for table in made.data["connector"]] == [250, 250]
    assert len([each for each in said(made, "default") if "linkCapacity" in each]) == 1


@pytest.mark.parametrize(
    ("name", "lines", "remarks"),
    [
        ("router", ["workerThreads: 4"], []),
        (
            "router",
            ["workerThreads: 8"],
            ["f:2: router.workerThreads 8: one thread does all the work"],
        ),
        ("router", ["mode: interior", "helloMaxAgeSeconds: 5", "remoteLsMaxAgeSeconds: 60"], []),
        (
            "router",
            ["raIntervalFluxSeconds: 8"],
            ["f:2: router.raIntervalFluxSeconds 8: neighbours report changes to each other"],
        ),
        (
            "router",
            ["routerId: A"],
            ["f:2: router.routerId: is now called id"],
        ),
        ("connector", ["addr: h"], ["f:2: connector[0].addr: is now called host"]),
        ("connector", ["verifyHostName: yes"], ["f:2: connector[0].verifyHostName: is now called"]),
        (
            "connector",
            ["allowRedirect: yes"],
            ["f:2: connector[0].allowRedirect true: had no effect in Dispatch, and has none"],
        ),
        ("listener", ["multiTenant: no", "cost: 1", "requireSsl: no"], []),
        (
            "listener",
            ["allowUnsecured: no"],
            ["f:2: listener[0].allowUnsecured: is the opposite of"],
        ),
        (
            "listener",
            ["maxSessions: 0"],
            ["f:2: listener[0].maxSessions 0: taken as 32768"],
        ),
        (
            "listener",
            ["maxFrameSize: 5"],
            ["f:2: listener[0].maxFrameSize 5: taken as 512"],
        ),
        ("policy", ["enableVhostPolicy: yes", "maxConnections: 65535"], []),
        ("vhost", ["id: h"], ["f:2: vhost[0].id: is now called hostname"]),
        (
            "address",
            ["prefix: a", "}", "address {", "prefix: a"],
            ["f:4: address[1]: repeats an earlier address, which takes"],
        ),
        ("fixedAddress", ["prefix: a"], ["f:1: fixedAddress: is an entity from before Dispatch"]),
        ("router", ["id: A", "id: B"], ["f:3: router.id: is given twice; the last counts"]),
        ("router", ["id: A#B"], ["f:2: router.id: continues after a #"]),
    ],
)
def test_what_is_said(name: str, lines: list[str], remarks: list[str]) -> None:
    found = said(one(name, *lines), *ALL)
    starts = [each[: len(wanted)] for each, wanted in zip(found, remarks, strict=False)]
    assert starts == remarks, found
    assert len(found) >= len(remarks)
    assert bool(found) == bool(remarks)


@pytest.mark.parametrize(
    ("name", "lines", "mistakes"),
    [
        ("listner", [], ["f:1: listner: is not a known entity; did you mean listener?"]),
        ("quux", [], ["f:1: quux: is not a known entity; known here: router, sslProfile"]),
        (
            "listener",
            ["prot: 1"],
            ["f:2: listener[0].prot: is not a known attribute; did you mean port?"],
        ),
        (
            "listener",
            ["port: 1", "authenticatePeer: maybe"],
            ['f:3: listener[0].authenticatePeer: "maybe" is not allowed; give yes, true, on, no'],
        ),
        (
            "listener",
            ["role: normale"],
            ['f:2: listener[0].role: "normale" is not allowed; give one of normal, inter-router'],
        ),
        (
            "linkRoute",
            ["dir: in", "direction: in"],
            ["f:2: linkRoute[0].dir: is the old name of direction, which is given as well"],
        ),
        ("router", ["id: a b"], ['f:2: router.id: "a b" is not allowed; give text of 1 to 127']),
        ("listener", ["port: nowhere"], ['f:2: listener[0].port: "nowhere" is not allowed']),
        ("listener", ["allowNoSasl: so"], ['f:2: listener[0].allowNoSasl: "so" is not allowed']),
    ],
)
def test_what_is_wrong(name: str, lines: list[str], mistakes: list[str]) -> None:
    found = list(map(str, one(name, *lines).mistakes))
    assert [each[: len(wanted)] for each, wanted in zip(found, mistakes, strict=True)] == mistakes


def test_one_router_alone() -> None:
    made = translated("router {\n}\nrouter {\n}")
    assert [str(mistake) for mistake in made.mistakes] == [
        "f:3: router: occurs twice; give it once"
    ]


def test_an_old_container_is_a_part_of_the_router() -> None:
    made = translated("container {\ncontainerName: A\n}\nrouter {\nmode: standalone\n}")
    assert made.mistakes == []
    assert made.data["router"]["id"] == "A"


def test_a_password_is_not_shown() -> None:
    text = '[["connector", {"saslPassword": {"secret": 1}}]]'
    (mistake,) = translate(read_json(text, "f"), "f").mistakes
    assert str(mistake) == "f:1: connector[0].saslPassword: (a secret) is not allowed; give text"


def test_null_is_left_out_of_properties() -> None:
    properties: dict[str, Any] = {"a": None, "b": {"c": None, "d": [1, None]}}
    lines = ["openProperties: " + str(properties).replace("None", "null").replace("'", '"')]
    made = one("listener", *lines)
    assert made.data["listener"][0]["openProperties"] == {"b": {"d": [1]}}
    assert said(made, "missing")[0].startswith("f:2: listener[0].openProperties: null is left out")


def test_limits_of_groups_that_are_zero_are_no_limits() -> None:
    group = '{ "users": "a, b", "maxSessions": 0, "maxSenders": "3", "allowDynamicSource": "true" }'
    made = one("vhost", "hostname: h", f'groups: {{ "g": {group} }}')
    assert made.mistakes == []
    assert made.data["vhost"][0]["groups"] == {
        "g": {"users": "a, b", "maxSenders": 3, "allowDynamicSource": True}
    }


def test_mistakes_in_groups_have_their_places() -> None:
    made = one("vhost", "hostname: h", 'groups: { "g": { "maxSenders": "many", "odd": 1 } }')
    (mistake,) = made.mistakes
    assert str(mistake).startswith('f:3: vhost[0].groups.g.maxSenders: "many" is not allowed')
    assert said(made, "ignored")[1].startswith("f:3: vhost[0].groups.g.odd 1: is not an attribute")


def test_a_port_by_name() -> None:
    assert one("listener", "port: amqps").data["listener"][0]["port"] == 5671


def test_nothing_of_our_log_is_taken_for_a_module() -> None:
    made = one("log", "module: AGENT", "linesPerSecond: 5")
    assert [str(mistake)[:40] for mistake in made.mistakes] == [
        "f:3: log[0].linesPerSecond: is not a kno"
    ]


def test_entities_that_are_left_out_keep_their_number() -> None:
    nothing = "listener {\nhttp: yes\nmetrics: no\nhealthz: no\nwebsockets: no\n}\n"
    made = translated(f"{nothing}listener {{\nport: 1\n}}")
    assert len(made.data["listener"]) == 1
    assert made.places["listener", 0] == ("listener", 1)


def test_an_auto_link_that_is_said_twice_is_two() -> None:
    section = "autoLink {\naddress: q\ndirection: in\ncontainerId: broker\n}\n"
    made = translated(section + section)
    assert [table.get("name") for table in made.data["autoLink"]] == [
        None,
        "autoLink/in/q/broker/2",
    ]
    assert len(said(made, "changed")) == 1
    assert "taken as another link" in said(made, "changed")[0]
