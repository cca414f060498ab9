"""Formats of a view: tables for people, CSV and JSON for programs."""

from __future__ import annotations

from typing import Any

from router.cli.view_formats import entities_as_json, format_csv, format_view
from router.cli.view_queries import ViewData
from router.cli.views import ADDRESSES, GENERAL

NAMES = ["identity", "key", "distribution", "deliveriesIngress", "remoteHostRouters", "inProcess"]


def address(name: str, count: int, **fields: Any) -> dict[str, Any]:
    """Return an address as management reports it."""
    told = {"identity": name, "key": name, "distribution": "closest", "inProcess": None}
    return {**told, "deliveriesIngress": count, "remoteHostRouters": [], **fields}


def seen(*entities: dict[str, Any], rates: Any = None) -> ViewData:
    """Return the data of a view of addresses."""
    return ViewData(ADDRESSES, NAMES, entities, rates)


def test_a_table_has_the_columns_that_have_values() -> None:
    assert list(format_view(seen(address("M0a", 1234), address("Lb", 5)), None, detail=True)) == [
        "Addresses",
        "address  distribution     in",
        "a        closest       1,234",
        "local:b  closest           5",
    ]


def test_more_is_shown_where_more_is_asked_for() -> None:
    look = seen(address("M0a", 1, inProcess=2))
    assert "in-proc" in list(format_view(look, None, detail=True))[1]
    assert "in-proc" not in list(format_view(look, None))[1]


def test_nothing_is_one_line() -> None:
    assert list(format_view(seen(), 80)) == ["There are no addresses in use."]


def test_rates_are_further_columns() -> None:
    look = seen(
        address("M0a", 1), address("M0b", 2), rates={"M0a": {"deliveriesIngress": 1234.5}}
    )  # fmt: skip
    assert list(format_view(look, None))[1:] == [
        "address  distribution  in   in/s  out/s",
        "a        closest        1  1,234      -",
        "b        closest        2      -      -",
    ]


def test_a_sheet_is_one_attribute_to_a_line() -> None:
    told = {"identity": "r", "id": "solo", "deliveriesIngress": 1234, "deliveriesStuck": 1}
    names = list(told)
    assert list(format_view(ViewData(GENERAL, names, [told]), None)) == [
        "Router",
        "router id         solo",
        "deliveries in    1,234",
        "stuck over 10 s      1",
    ]


def test_colours_say_what_to_look_at() -> None:
    told = {"id": "solo", "deliveriesStuck": 1, "deliveriesDelayed10Sec": 0}
    lines = list(format_view(ViewData(GENERAL, list(told), [told]), None, colours=True))
    assert lines[0] == "\x1b[1mRouter\x1b[0m"
    assert lines[-1].endswith("\x1b[33m   1\x1b[0m")
    assert not any("\x1b" in line for line in lines[1:-1])


def test_what_a_peer_chose_cannot_write_on_the_terminal() -> None:
    lines = list(format_view(seen(address("M0\x1b[2J", 1)), None))
    assert "\x1b" not in "".join(lines)
    assert "\\x1b[2J" in lines[2]


def test_csv_is_under_the_names_of_the_schema() -> None:
    look = seen(address('M0a,"b"', 1234, inProcess=True))
    assert list(format_csv(look)) == [
        "identity,key,distribution,deliveriesIngress,remoteHostRouters,inProcess",
        '"M0a,""b""","M0a,""b""",closest,1234,[],true',
    ]


def test_csv_of_several_looks() -> None:
    look = seen(address("M0a", 7), rates={"M0a": {"deliveriesIngress": 2.5}})
    lines = list(format_csv(look, header=False, time_text="12:00"))
    assert lines == ["12:00,M0a,M0a,closest,7,[],,2.500,"]
    header = next(format_csv(look, time_text="12:00"))
    assert header.startswith("time,identity,")
    assert header.endswith(",deliveriesIngress/s,deliveriesEgress/s")


def test_json_has_no_nulls_and_the_rates_that_are_known() -> None:
    assert entities_as_json(seen(address("M0a", 7))) == [
        {
            "identity": "M0a", "key": "M0a", "distribution": "closest", "deliveriesIngress": 7,
            "remoteHostRouters": [],
        }
    ]  # fmt: skip
    (told,) = entities_as_json(seen(address("M0a", 7), rates={"M0a": {"deliveriesIngress": 1 / 3}}))
    assert told["rates"] == {"deliveriesIngress": 0.333}
