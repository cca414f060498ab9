"""A report names everything once, under a title, with its line."""

from __future__ import annotations

from router.config.qdrouterd.report import FLAG, Remark, Report

GUARD = Remark("guard", 3, "listener[0].requireSsl", "true", "anybody is let in")
MISSING = Remark("missing", 5, "linkRoute[0]", "", "links end here")
DEFAULT = Remark("default", 0, "listener.linkCapacity", "", "taken as 250")


def test_it_is_told_by_title() -> None:
    report = Report("f", (MISSING, GUARD, DEFAULT), weaker_security=True)
    assert list(report.lines()) == [
        f"not supported, and less secure without it; accepted by {FLAG}:",
        "  f:3: listener[0].requireSsl true: anybody is let in",
        "not supported; the router starts without it:",
        "  f:5: linkRoute[0]: links end here",
        "not given in the file; the default of Dispatch is used:",
        "  listener.linkCapacity: taken as 250",
    ]
    assert report.summary() == "1 less secure than in Dispatch, 1 not supported"
    assert report.refusals() == ()


def test_what_nobody_accepted_is_refused() -> None:
    report = Report("f", (MISSING, GUARD))
    (mistake,) = report.refusals()
    assert str(mistake) == (
        "f:3: listener[0].requireSsl: true is not supported: anybody is let in; "
        f"remove it, or give {FLAG} to start the router without it"
    )
    assert list(report.lines()) == [
        "not supported; the router starts without it:",
        "  f:5: linkRoute[0]: links end here",
    ]


def test_nothing_to_tell() -> None:
    report = Report("f")
    assert list(report.lines()) == []
    assert report.summary() == "everything is supported"
