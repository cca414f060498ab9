"""The operation and the arguments of a request are read by their types, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from router.management.requests import BAD_REQUEST, MAX_LOGGED_TEXT, Refused, Request


def test_an_operation_is_told_in_capitals() -> None:
    assert Request({"operation": "Get-Types"}, None).operation == "GET-TYPES"


@pytest.mark.parametrize("properties", [{}, {"operation": ""}, {"operation": 7}])
def test_no_operation_is_a_bad_request(properties: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        _ = Request(properties, None).operation
    assert refused.value.status == BAD_REQUEST


def test_arguments_have_types() -> None:
    request = Request({"name": "n", "offset": 3, "none": None}, None)
    assert (request.text("name"), request.text("none"), request.text("other")) == ("n", None, None)
    assert (request.count("offset"), request.count("none")) == (3, None)
    for read, name in ((request.text, "offset"), (request.count, "name")):
        with pytest.raises(Refused, match=name):
            read(name)
    assert Request({"count": "10"}, None).count("count") == 10
    for wrong in (-1, True, 1.5, "", "-1", "1.5", "9" * 5000, [1]):
        with pytest.raises(Refused, match="count"):
            Request({"count": wrong}, None).count("count")


def test_what_is_asked_is_told_in_short() -> None:
    request = Request({"operation": "get-log", "name": "x" * 1000, "identity": 5, "other": "y"}, {})
    assert request.subject == {"operation": "get-log", "name": "x" * MAX_LOGGED_TEXT}


def test_what_a_client_puts_into_a_request_is_not_shown() -> None:
    assert "t0ken" not in repr(Request({"security_token": "t0ken"}, None))
