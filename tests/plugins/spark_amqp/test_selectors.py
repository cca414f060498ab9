"""Filters of Spark as selectors; what cannot be said is left to Spark."""

from __future__ import annotations

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from router_spark_amqp.selectors import combine, selector_of

pytestmark = pytest.mark.spark

SUBJECT, PRIORITY = ("subject",), ("priority",)


@pytest.mark.parametrize(
    ("filters", "selector"),
    [
        ([], None),
        ([EqualTo(SUBJECT, "red")], "JMSType = 'red'"),
        ([EqualTo(("_amqp", "subject"), "it's")], "JMSType = 'it''s'"),
        ([GreaterThan(PRIORITY, 4), EqualTo(SUBJECT, "a")], "JMSPriority > 4 AND JMSType = 'a'"),
        ([LessThanOrEqual(PRIORITY, 4)], "JMSPriority <= 4"),
        ([Not(EqualTo(SUBJECT, "red"))], "NOT (JMSType = 'red')"),
        ([In(SUBJECT, ("a", "b"))], "(JMSType = 'a' OR JMSType = 'b')"),
        ([IsNull(SUBJECT)], "JMSType IS NULL"),
        ([IsNotNull(SUBJECT)], "JMSType IS NOT NULL"),
        ([StringStartsWith(SUBJECT, "a%b")], "JMSType LIKE 'a\\%b%' ESCAPE '\\'"),
        ([StringEndsWith(SUBJECT, "_x")], "JMSType LIKE '%\\_x' ESCAPE '\\'"),
        ([StringContains(SUBJECT, "\\")], "JMSType LIKE '%\\\\%' ESCAPE '\\'"),
    ],
)
def test_what_can_be_said(filters: list[Filter], selector: str | None) -> None:
    assert selector_of(filters) == selector


@pytest.mark.parametrize(
    "given",
    [
        EqualTo(("message_id",), "x"),
        EqualTo(("body", "subject"), "x"),
        EqualTo(("_amqp", "body", "x"), "x"),
        EqualTo(PRIORITY, 1.5),
        EqualTo(PRIORITY, True),
        GreaterThan(SUBJECT, "x"),
        IsNotNull(PRIORITY),
        In(SUBJECT, ("a", None)),
        In(("to",), ("a",)),
        Not(GreaterThan(SUBJECT, "x")),
        StringContains(("to",), "x"),
    ],
    ids=str,
)
def test_what_cannot_be_said_is_left_out(given: Filter) -> None:
    assert selector_of([given]) is None
    assert selector_of([given, EqualTo(SUBJECT, "red")]) == "JMSType = 'red'"


def test_selectors_are_combined() -> None:
    assert combine(None, None) is None
    assert combine("a = 1", None) == combine(None, "a = 1") == "a = 1"
    assert combine("a = 1", "b = 2 OR c = 3") == "(a = 1) AND (b = 2 OR c = 3)"
